//! Random sequences: thousands of packets as a rack under loss and doubling sends them,
//! and some that nobody sends.
//!
//! A sequence is a [`Case`]: the Rust program's replies and registers are in it, so it is replayed
//! like a golden case, and one that shows a difference can be shrunk and kept.

mod locks;
mod traffic;

use crate::{Case, Reference, Setup, Step};
use locks::Locks;
use rackmem_proto::wire::MAX_NODES;
use traffic::Traffic;

/// A sequence of `packets` packets. The same seed gives the same sequence.
pub fn sequence(seed: u64, packets: usize) -> Case {
    // Most racks are small, so that packets meet; one in eight has its nodes behind two ports,
    // and one is large.
    let (nodes, ports) = match seed % 8 {
        6 => (Setup::default().nodes, Some(2)),
        7 => (MAX_NODES as u16, None),
        _ => (Setup::default().nodes, None),
    };
    let setup = Setup {
        nodes,
        ports,
        seed: (seed as u32).wrapping_mul(0x9e37_79b9),
        shadow: (!seed.is_multiple_of(4)).then_some((seed % 4) as u16),
        ..Setup::default()
    };
    let mut rust = Reference::new(&setup);
    let mut traffic = Traffic::new(seed, setup);
    let mut locks = Locks::new(seed, setup);
    let mut steps = Vec::with_capacity(packets);
    for nth in 0..packets {
        // The two have nothing to do with each other, and every fourth packet is about a lock.
        let of_locks = nth % 4 == 3;
        let packet = match of_locks {
            true => locks.next_packet(),
            false => traffic.next_packet(),
        };
        let reply = rust.take(&packet);
        match of_locks {
            true => locks.heard(&reply),
            false => traffic.heard(&packet, &reply),
        }
        steps.push(Step { packet, reply });
    }
    Case {
        name: format!("random-{seed}"),
        about: format!("{packets} random packets of seed {seed}"),
        setup,
        prefix: Some(Vec::new()),
        before: Vec::new(),
        frozen: false,
        steps,
        after: rust.registers(),
    }
}
