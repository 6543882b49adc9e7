//! The lock word: many readers or one writer.

use super::build::{Scenario, any, ask, block, unlock, who};
use crate::Setup;
use rackmem_proto::switch::{Field, Register, set_of};
use rackmem_proto::wire::GlobalStatus::{Modified, Shared, Unshared};
use rackmem_proto::wire::Kind::{
    self, EvictShared, LockRead, LockWrite, ReadMiss, WriteMiss, WriteShared,
};

pub fn all() -> Vec<Scenario> {
    let mut scenarios = vec![
        Scenario::new(
            "readers-share",
            "Read misses of two nodes hold the lock together",
        )
        .owns(any(), Shared, &[3])
        .packet(ask(ReadMiss, who(0, 0), 1, any()))
        .packet(ask(ReadMiss, who(1, 0), 1, any()))
        .packet(ask(LockRead, who(2, 0), 1, any())),
        Scenario::new(
            "a-full-count-of-readers",
            "The count of readers never becomes the writer's bit: one more is refused",
        )
        .owns(any(), Shared, &[3])
        .loaded(&[readers(0x7ffe)])
        .packet(ask(ReadMiss, who(0, 0), 1, any()))
        .packet(ask(ReadMiss, who(1, 0), 1, any())),
        Scenario::new(
            "more-than-a-full-count",
            "A count at its very end refuses readers and writers",
        )
        .owns(any(), Shared, &[3])
        .loaded(&[readers(0x7fff)])
        .packet(ask(LockRead, who(0, 0), 1, any()))
        .packet(ask(LockWrite, who(1, 0), 1, any())),
        Scenario::new(
            "locks-of-other-blocks",
            "A lock is of one entry: its neighbours in the set, in the way and in the table are free",
        )
        .owns(any(), Unshared, &[])
        .owns(block(1, 2, 1), Unshared, &[])
        .owns(block(2, 1, 0), Unshared, &[])
        .first(ask(LockWrite, who(0, 0), 1, any()))
        .packet(ask(LockWrite, who(1, 0), 1, block(1, 2, 1)))
        .packet(ask(LockWrite, who(1, 1), 1, block(2, 1, 0)))
        .packet(ask(LockWrite, who(2, 1), 1, any())),
        Scenario::new(
            "free-again",
            "What was refused because of a lock is granted under the next number when it is free",
        )
        .owns(any(), Shared, &[0])
        .first(ask(WriteShared, who(0, 0), 1, any()))
        .packet(ask(WriteMiss, who(1, 0), 1, any()))
        .packet(unlock(who(0, 0), 1, any(), Modified, &[0]))
        .packet(ask(WriteMiss, who(1, 0), 2, any())),
        Scenario::new(
            "locked-and-invalid",
            "Locked comes before invalid: who could not lock cannot have checked",
        )
        .owns(any(), Unshared, &[])
        .first(ask(LockWrite, who(0, 0), 1, any()))
        .packet(ask(EvictShared, who(1, 0), 1, any())),
    ];
    let holders = [("reader", ReadMiss), ("writer", WriteMiss)];
    let comers: [(&str, Kind); 4] = [
        ("read-miss", ReadMiss),
        ("write-miss", WriteMiss),
        ("lock-read", LockRead),
        ("lock-write", LockWrite),
    ];
    for (holder, held) in holders {
        for (comer, kind) in comers {
            scenarios.push(
                Scenario::new(
                    format!("{comer}-under-a-{holder}"),
                    format!("{} while a {holder} holds the lock", kind.name()),
                )
                .owns(any(), Shared, &[3])
                .first(ask(held, who(0, 0), 1, any()))
                .packet(ask(kind, who(1, 0), 1, any())),
            );
        }
    }
    scenarios
}

/// So many readers of the block that [`any`] names, which `owns` has put into the first way.
fn readers(count: u64) -> Register {
    Register {
        field: Field::Lock,
        way: 0,
        at: set_of(any(), Setup::default().sets as usize) as u32,
        value: count,
    }
}
