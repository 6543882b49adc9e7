//! Random reads, beside a home that writes: addresses, generations, offsets, lengths, versions,
//! room and epochs, of which some are right.

use super::scenarios::{EPOCH, LENGTHS, Read, home, put};
use super::{Event, Put, ReadsCase, ReadsReference};
use rackmem_proto::sabre::{Meta, SLAB, class_bytes};
use rackmem_proto::wire::Tag;

/// So many packets. Places are few, so that reads and writes meet.
pub fn sequence(seed: u64, packets: usize) -> ReadsCase {
    let mut rng = fastrand::Rng::with_seed(seed);
    let home = home();
    let mut events = vec![Event::Serve(EPOCH)];
    // Of the object of each slab: half its version, and its generation.
    let mut objects = [(0u64, 4u32); LENGTHS.len()];
    let mut epoch = EPOCH;
    for nth in 0..packets {
        let slab = rng.usize(..LENGTHS.len());
        let bytes = home.classes.get(slab).copied().and_then(class_bytes);
        let within = match rng.u8(..8) {
            0 => rng.u64(..SLAB),
            1 => SLAB - u64::from(bytes.unwrap_or(64)),
            _ => 0,
        };
        let (half, generation) = &mut objects[slab];
        if nth % 7 == 0 {
            *half += 1;
            *generation += u32::from(rng.u8(..20) == 0);
            events.push(Event::Put(write(&mut rng, slab, *half, *generation)));
        }
        if rng.u8(..100) == 0 {
            epoch = rng.u32(EPOCH..EPOCH + 2);
            events.push(Event::Serve(epoch));
        }
        let (version, generation) = (2 * *half, u64::from(*generation));
        let pick = |rng: &mut fastrand::Rng, of: &[u64]| rng.choice(of).copied().unwrap_or(0);
        let any_len = rng.u64(..70_000);
        let mut read = Read {
            epoch: epoch + pick(&mut rng, &[0, 0, 0, 0, 0, 1]) as u32,
            known: pick(&mut rng, &[0, 0, version, version - version.min(2)]),
            generation: pick(&mut rng, &[generation, generation, generation, 4]) as u32,
            offset: pick(&mut rng, &[0, 0, 1024, 2048, 64_512, 512, any_len]) as u32,
            wanted: pick(&mut rng, &[0, 1, 8, 1024, 1024, 1025, any_len]) as u32,
            room: pick(&mut rng, &[0, 8, 512, 1024, 3000]) as u32,
            seq: nth as u64,
            ..Read::of(slab as u32, within)
        };
        if rng.u8(..10) == 0 {
            read.tag = Tag(rng.u64(..) >> rng.u32(..32));
        }
        let mut came = read.bytes();
        // Any byte of it.
        if rng.u8(..10) == 0 {
            let at = rng.usize(..came.len());
            came[at] = rng.u8(..);
        }
        events.push(Event::Packet(came, super::Became::Agents));
    }
    let name = format!("sequence-{seed}");
    ReadsReference::case((&name, "Random reads beside writes"), &home, &events)
}

/// Another version of a slab's first object, sometimes freed, or with a writer in.
fn write(rng: &mut fastrand::Rng, slab: usize, version: u64, generation: u32) -> Put {
    let longest = LENGTHS[slab];
    let lengths = [
        longest,
        longest.min(1024),
        longest.min(2048),
        0,
        rng.u32(..=longest),
    ];
    let len = rng.choice(&lengths).copied().unwrap_or(longest);
    let odd = u64::from(rng.u8(..10) == 0);
    let made = put(slab as u32, 0, 2 * version + odd, len);
    Put {
        meta: Meta {
            generation,
            live: rng.u8(..10) != 0,
            ..made.meta
        },
        ..made
    }
}
