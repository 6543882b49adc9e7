//! Random sequences: thousands of packets as a rack under loss and doubling sends them, and some that nobody sends.
//!
//! A sequence is a [`Case`]: the Rust program's replies and registers are in it, so it is replayed like a golden case, and one
//! that shows a difference can be shrunk and kept.

mod locks;
mod traffic;

use crate::{Case, Reference, Setup, Step};
use locks::Locks;
use traffic::Traffic;

/// A sequence of `packets` packets. The same seed gives the same sequence.
pub fn sequence(seed: u64, packets: usize) -> Case {
    let setup = Setup {
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
