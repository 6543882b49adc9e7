//! Objects without copies, which transactions write together with objects that have copies. They
//! are of the last node, to which nothing is done: with it they would be gone.

use super::worker::{AGAIN, Value, Work, find, insist};
use crate::failure::Result;
use crate::stop::Stop;
use rackmem::{Contract, Node, Region, RegionSpec};

/// The region's name.
const PLAIN: &str = "soak plain";
/// That of lines with copies which have the addresses of its objects: names of regions die with
/// node 0.
pub const ADDRESSES: &str = "soak addresses";
/// Addresses in a line.
const LINE: usize = size_of::<Value>() / 8;

/// Addresses of so many such objects; the last node makes them. `None` when told to stop.
pub fn objects(node: &Node, work: Work, count: usize, stop: &Stop) -> Result<Option<Vec<u64>>> {
    let lines = count.div_ceil(LINE);
    let spec = RegionSpec::new(ADDRESSES, lines * size_of::<Value>());
    let spec = spec.line(size_of::<Value>() as u32);
    let spec = spec.durability(work.durability);
    let Some(addresses) = find(node, &spec, work.copies, stop)? else {
        return Ok(None);
    };
    if usize::from(node.id()) + 1 == node.nodes() && read(&addresses, 1, stop)? == Some(vec![0]) {
        let bytes = 2 * count * size_of::<Value>() + (4 << 20);
        let plain = RegionSpec::new(PLAIN, bytes).contract(Contract::Object);
        let Some(plain) = insist(|| Ok(node.create_region(&plain)?), stop)? else {
            return Ok(None);
        };
        let made = (0..count).map(|_| Ok(plain.alloc::<Value>([0; LINE])?.addr()));
        let all = made.collect::<Result<Vec<u64>>>()?;
        // The first line says that all are there.
        for (nth, of_line) in all.chunks(LINE).enumerate().rev() {
            let mut line: Value = [0; LINE];
            line[..of_line.len()].copy_from_slice(of_line);
            let write = || Ok(addresses.replicated(nth)?.write(line)?);
            if insist(write, stop)?.is_none() {
                return Ok(None);
            }
        }
    }
    loop {
        match read(&addresses, count, stop)? {
            Some(all) if all.first() == Some(&0) => std::thread::sleep(AGAIN),
            all => return Ok(all),
        }
    }
}

/// So many of them.
fn read(addresses: &Region, count: usize, stop: &Stop) -> Result<Option<Vec<u64>>> {
    let mut all = Vec::new();
    for nth in 0..count.div_ceil(LINE) {
        let line = || Ok(addresses.replicated::<Value>(nth)?.read()?);
        match insist(line, stop)? {
            Some(line) => all.extend(line),
            None => return Ok(None),
        }
    }
    all.truncate(count);
    Ok(Some(all))
}
