//! The scoreboard: a request that comes twice, late or in another order is decided once.

use super::build::{Scenario, any, ask, block, unlock, who, with};
use rackmem_proto::wire::Flags;
use rackmem_proto::wire::GlobalStatus::{Modified, Shared, Unshared};
use rackmem_proto::wire::Kind::{
    EvictShared, LockRead, LockWrite, ReadMiss, WriteMiss, WriteShared,
};

pub fn all() -> Vec<Scenario> {
    let me = who(0, 0);
    let other = who(1, 1);
    let mut scenarios = vec![
        Scenario::new(
            "a-second-copy-of-a-writers-request",
            "It finds the lock taken by the first one, and goes where that went",
        )
        .owns(any(), Modified, &[2])
        .first(ask(WriteMiss, me, 1, any()))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "a-second-copy-of-a-readers-request",
            "It takes the lock once more, which is given back: it counts once",
        )
        .owns(any(), Modified, &[2])
        .first(ask(ReadMiss, me, 1, any()))
        .packet(ask(ReadMiss, me, 1, any()))
        .packet(ask(ReadMiss, me, 1, any())),
        Scenario::new(
            "a-second-copy-when-the-count-is-shared",
            "Two readers hold it; a copy of one's request leaves the count at two",
        )
        .owns(any(), Shared, &[2, 3])
        .first(ask(ReadMiss, me, 1, any()))
        .first(ask(ReadMiss, other, 1, any()))
        .packet(ask(ReadMiss, me, 1, any())),
        Scenario::new(
            "a-copy-follows-the-first-one",
            "Another reader's unlock has changed status and copyset: the copy goes to the first one's provider all the same",
        )
        .owns(any(), Modified, &[2])
        .first(ask(ReadMiss, me, 1, any()))
        .first(ask(ReadMiss, other, 1, any()))
        .packet(with(unlock(other, 1, any(), Shared, &[1, 2]), Flags::READER))
        .packet(ask(ReadMiss, me, 1, any())),
        Scenario::new(
            "a-copy-follows-the-first-one-home",
            "The first one went home, when nobody had a copy; the later one goes there, too",
        )
        .owns(any(), Unshared, &[])
        .first(ask(ReadMiss, me, 1, any()))
        .first(ask(ReadMiss, other, 1, any()))
        .packet(with(unlock(other, 1, any(), Shared, &[1]), Flags::READER))
        .packet(ask(ReadMiss, me, 1, any())),
        Scenario::new(
            "refused-while-locked-stays-refused",
            "A late copy finds the lock free, and must not take it: its requester has been told no",
        )
        .owns(any(), Unshared, &[])
        .first(ask(LockWrite, other, 1, any()))
        .first(ask(WriteMiss, me, 1, any()))
        .first(with(unlock(other, 1, any(), Unshared, &[]), Flags::KEEP))
        .packet(ask(WriteMiss, me, 1, any()))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "refused-as-invalid-stays-refused",
            "What the check table refused is refused again when it would be valid",
        )
        .owns(any(), Unshared, &[])
        .first(ask(EvictShared, me, 1, any()))
        .first(ask(ReadMiss, me, 2, any()))
        .first(with(unlock(me, 2, any(), Shared, &[0]), Flags::READER))
        .packet(ask(EvictShared, me, 1, any())),
        Scenario::new(
            "refused-under-a-lock-stays-refused",
            "The second copy finds the lock still taken",
        )
        .owns(any(), Unshared, &[])
        .first(ask(LockWrite, other, 1, any()))
        .packet(ask(WriteMiss, me, 1, any()))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "a-copy-after-the-unlock",
            "The event is over: the copy takes nothing, a writer's nor a reader's",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .first(unlock(me, 1, any(), Modified, &[0]))
        .first(ask(ReadMiss, other, 2, any()))
        .first(with(unlock(other, 2, any(), Shared, &[0, 1]), Flags::READER))
        .packet(ask(WriteMiss, me, 1, any()))
        .packet(ask(ReadMiss, other, 2, any())),
        Scenario::new(
            "a-copy-after-the-unlock-under-anothers-lock",
            "The event is over and someone else holds the lock, which stays his",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .first(unlock(me, 1, any(), Modified, &[0]))
        .first(ask(LockWrite, other, 1, any()))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "a-copy-from-before-the-next-event",
            "Two events later of the same parity it is stale: dropped, and what it took is given back",
        )
        .owns(any(), Shared, &[2])
        .first(ask(LockRead, me, 1, any()))
        .first(with(unlock(me, 1, any(), Shared, &[]), Flags::READER.and(Flags::KEEP)))
        .first(ask(LockRead, me, 3, any()))
        .packet(ask(LockRead, me, 1, any())),
        Scenario::new(
            "a-stale-copy-that-takes-nothing",
            "It is stale and the lock is a writer's",
        )
        .owns(any(), Shared, &[2])
        .first(ask(LockWrite, me, 3, any()))
        .packet(ask(LockWrite, me, 1, any())),
        Scenario::new(
            "two-events-of-a-requester",
            "The two parities have a score each: an event may be open while the next one begins",
        )
        .owns(any(), Unshared, &[])
        .owns(block(2, 0, 0), Unshared, &[])
        .packet(ask(WriteMiss, me, 1, any()))
        .packet(ask(WriteMiss, me, 2, block(2, 0, 0)))
        .packet(unlock(me, 2, block(2, 0, 0), Modified, &[0]))
        .packet(ask(WriteMiss, me, 1, any()))
        .packet(unlock(me, 1, any(), Modified, &[0])),
        Scenario::new(
            "scores-of-others",
            "Requesters of a node and nodes with the same slot do not share scores",
        )
        .owns(any(), Shared, &[3])
        .packet(ask(LockRead, who(0, 0), 1, any()))
        .packet(ask(LockRead, who(0, 1), 1, any()))
        .packet(ask(LockRead, who(1, 0), 1, any()))
        .packet(ask(LockRead, who(3, 1), 1, any()))
        .packet(ask(LockRead, who(3, 1), 2, any())),
        Scenario::new(
            "numbers-are-left-out",
            "A requester that skips a number is not late",
        )
        .owns(any(), Unshared, &[])
        .first(ask(LockRead, me, 2, any()))
        .packet(ask(LockRead, me, 40, any()))
        .packet(ask(LockRead, me, 2, any())),
        Scenario::new(
            "after-the-wrap",
            "The half of a number that a row has room for wraps around: 2^32 is newer than the last ones before, and those are stale then",
        )
        .owns(any(), Shared, &[2])
        .first(ask(LockRead, me, 0xffff_fffe, any()))
        .packet(ask(LockRead, me, 1 << 32, any()))
        .packet(ask(LockRead, me, 0xffff_fffe, any()))
        .packet(ask(WriteShared, me, 1 << 32 | 2, any())),
    ];
    // The window behind a score: a number that is less than 2^31 behind is late; requesters show
    // none that is further ahead.
    for (name, seq, what) in [
        (
            "far-in-the-window",
            2,
            "2^31 - 2 behind, of the same parity, is late",
        ),
        (
            "out-of-the-window",
            1 << 32,
            "2^31 ahead is not: the requester comes back after long",
        ),
        (
            "half-way-round",
            0xc000_0000,
            "and half way to there is not",
        ),
        (
            "once-round",
            1 << 32 | 0x8000_0000,
            "2^32 ahead looks like a copy, which is why a requester leaves that number out",
        ),
    ] {
        scenarios.push(
            Scenario::new(name, format!("How late a copy can be: {what}"))
                .owns(any(), Shared, &[2])
                .first(ask(LockRead, me, 0x8000_0000, any()))
                .packet(ask(LockRead, me, seq, any())),
        );
    }
    scenarios
}
