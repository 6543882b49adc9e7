//! `bench miss`, many blocks: one thread that has one event at a time, and the same with several.

use super::miss::Options;
use super::{Progress, Result, executor, ways};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use rackmem::{Node, Rack, Shared};
use std::time::Instant;

/// A way to use blocks that another node has changed.
type Way = fn(&Node, &[Shared<u64>]) -> Result<()>;

/// What is done, in which ways; the first is what the others are compared with.
const CASES: [(&str, &[(&str, Way)]); 2] = [
    (
        "read-many",
        &[
            ("alone", read_alone),
            ("together", read_together),
            ("futures", read_by_futures),
        ],
    ),
    (
        "write-many",
        &[("alone", write_alone), ("futures", write_by_futures)],
    ),
];

fn read_alone(_: &Node, values: &[Shared<u64>]) -> Result<()> {
    for value in values {
        value.read()?;
    }
    Ok(())
}

fn read_together(node: &Node, values: &[Shared<u64>]) -> Result<()> {
    let addrs: Vec<u64> = values.iter().map(Shared::addr).collect();
    node.prefetch(&addrs);
    read_alone(node, values)
}

fn read_by_futures(_: &Node, values: &[Shared<u64>]) -> Result<()> {
    for read in executor::join(values.iter().map(Shared::read_async)) {
        read?;
    }
    Ok(())
}

fn write_alone(_: &Node, values: &[Shared<u64>]) -> Result<()> {
    for value in values {
        value.update(|n| n + 1)?;
    }
    Ok(())
}

fn write_by_futures(_: &Node, values: &[Shared<u64>]) -> Result<()> {
    let updates = values.iter().map(|value| value.update_async(|n| n + 1));
    for update in executor::join(updates) {
        update?;
    }
    Ok(())
}

/// Blocks that node 2 has changed, used by node 1. Microseconds for a block.
pub fn run(
    rack: &Rack,
    addrs: &[u64],
    options: &Options,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    let (node, writer) = (rack.node(1), rack.node(2));
    let attach = |addr: &u64| Ok(node.attach(*addr)?);
    let values: Vec<Shared<u64>> = addrs.iter().map(attach).collect::<Result<_>>()?;
    for (what, ways) in CASES {
        let case = format!("{}/{}/{what}", options.fabric.name(), options.mode.name());
        progress(&case);
        let mut times: Vec<Histogram> = ways.iter().map(|_| Histogram::new()).collect();
        // The ways take turns, and the first round of each is not counted.
        'rounds: for round in 0..=options.rounds.max(1) {
            for ((_, way), times) in ways.iter().zip(&mut times) {
                for addr in addrs {
                    writer.store(*addr, 1)?;
                }
                let began = Instant::now();
                way(&node, &values)?;
                if round > 0 {
                    let each = began.elapsed().as_nanos() as u64 / addrs.len().max(1) as u64;
                    times.record(each);
                }
            }
            if round > 0 && stop::requested() {
                break 'rounds;
            }
        }
        let names = ways.iter().map(|(name, _)| *name);
        ways::add(report, &case, names.zip(&times))?;
    }
    Ok(())
}
