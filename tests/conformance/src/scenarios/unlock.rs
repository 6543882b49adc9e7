//! The end of an event: the owner installs what the requester says, once, and lets the next one in.

use super::build::{Scenario, any, ask, block, free, retire, unlock, who, with};
use rackmem_proto::wire::GlobalStatus::{Modified, Shared, Unshared};
use rackmem_proto::wire::Kind::{
    EvictModified, EvictShared, LockRead, LockWrite, ReadMiss, WriteMiss,
};
use rackmem_proto::wire::{Flags, Header};

pub fn all() -> Vec<Scenario> {
    let me = who(0, 0);
    let other = who(1, 1);
    let reader = |header| with(header, Flags::READER);
    let keep = |header| with(header, Flags::KEEP);
    vec![
        Scenario::new("a-writer", "A writer's unlock overwrites status and copyset")
            .owns(any(), Shared, &[1, 2, 3])
            .first(ask(WriteMiss, me, 1, any()))
            .packet(unlock(me, 1, any(), Modified, &[0])),
        Scenario::new("a-reader", "A reader's unlock adds to the copyset")
            .owns(any(), Shared, &[2])
            .first(ask(ReadMiss, me, 1, any()))
            .packet(reader(unlock(me, 1, any(), Shared, &[0, 2]))),
        Scenario::new(
            "two-readers",
            "Two read misses end in either order: the copyset is the union of what they say",
        )
        .owns(any(), Shared, &[2])
        .first(ask(ReadMiss, me, 1, any()))
        .first(ask(ReadMiss, other, 1, any()))
        .packet(reader(unlock(other, 1, any(), Shared, &[1, 2])))
        .packet(reader(unlock(me, 1, any(), Shared, &[0, 2]))),
        Scenario::new(
            "the-last-copy-is-dropped",
            "An eviction ends with nobody in the copyset",
        )
        .owns(any(), Shared, &[0])
        .first(ask(EvictShared, me, 1, any()))
        .packet(unlock(me, 1, any(), Unshared, &[])),
        Scenario::new(
            "a-dirty-copy-is-dropped",
            "The end of an EvictModified: nobody has it, home is current",
        )
        .owns(any(), Modified, &[0])
        .first(ask(EvictModified, me, 1, any()))
        .packet(unlock(me, 1, any(), Unshared, &[])),
        Scenario::new(
            "a-bare-writers-lock",
            "KEEP: whatever the packet says, status and copyset stay",
        )
        .owns(any(), Shared, &[2, 3])
        .first(ask(LockWrite, me, 1, any()))
        .packet(keep(unlock(me, 1, any(), Modified, &[0]))),
        Scenario::new(
            "a-bare-readers-lock",
            "KEEP of a reader: the count goes down and nothing else changes",
        )
        .owns(any(), Shared, &[2, 3])
        .first(ask(LockRead, me, 1, any()))
        .first(ask(LockRead, other, 1, any()))
        .packet(keep(reader(unlock(me, 1, any(), Modified, &[0])))),
        Scenario::new(
            "a-second-copy-of-an-unlock",
            "It is answered again, and releases nothing: the lock is free",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .packet(unlock(me, 1, any(), Modified, &[0]))
        .packet(unlock(me, 1, any(), Modified, &[0])),
        Scenario::new(
            "a-late-unlock-under-anothers-lock",
            "Its lock is someone else's by now: it stays his, and so does what he installed",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .first(unlock(me, 1, any(), Modified, &[0]))
        .first(ask(WriteMiss, other, 1, any()))
        .packet(unlock(me, 1, any(), Modified, &[0]))
        .packet(unlock(other, 1, any(), Modified, &[1]))
        .packet(unlock(me, 1, any(), Modified, &[0])),
        Scenario::new(
            "a-second-copy-of-a-readers-unlock",
            "Another reader's count is not his to take down",
        )
        .owns(any(), Shared, &[2])
        .first(ask(LockRead, me, 1, any()))
        .first(ask(LockRead, other, 1, any()))
        .packet(keep(reader(unlock(me, 1, any(), Shared, &[]))))
        .packet(keep(reader(unlock(me, 1, any(), Shared, &[])))),
        Scenario::new(
            "of-an-event-that-was-refused",
            "Who was refused has nothing to unlock; he is answered all the same",
        )
        .owns(any(), Unshared, &[])
        .first(ask(LockWrite, other, 1, any()))
        .first(ask(WriteMiss, me, 1, any()))
        .packet(unlock(me, 1, any(), Modified, &[0])),
        Scenario::new(
            "of-an-event-that-never-was",
            "Another number than the one that was granted, older or newer, unlocks nothing",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 3, any()))
        .packet(unlock(me, 1, any(), Modified, &[0]))
        .packet(unlock(me, 5, any(), Modified, &[0]))
        .packet(unlock(me, 2, any(), Modified, &[0])),
        Scenario::new(
            "a-request-and-its-unlock-overtaken",
            "An unlock before its request finds nothing; the request then takes the lock",
        )
        .owns(any(), Unshared, &[])
        .packet(unlock(me, 1, any(), Modified, &[0]))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "for-another-owner",
            "An unlock without IN_SWITCH is for the home agent that granted: dropped here",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .packet(Header {
            flags: Flags(0),
            ..unlock(me, 1, any(), Modified, &[0])
        }),
        Scenario::new(
            "of-an-entry-that-is-not-here",
            "It was passed on when it came: nothing to release, and it is answered",
        )
        .first(ask(WriteMiss, me, 1, any()))
        .packet(unlock(me, 1, any(), Modified, &[0])),
        Scenario::new(
            "after-the-entry-has-gone-home",
            "A second copy of an unlock whose entry has gone home: answered, and nobody else's location is touched",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .first(unlock(me, 1, any(), Modified, &[0]))
        .first(retire(any(), 0, 1))
        .first(free(any(), 0, 2))
        .packet(unlock(me, 1, any(), Modified, &[0])),
        Scenario::new(
            "in-the-second-way",
            "An entry in another way is found and released there, and the first way's stays locked",
        )
        .owns(any(), Unshared, &[])
        .owns(block(2, 2, 0), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .first(ask(WriteMiss, other, 1, block(2, 2, 0)))
        .packet(unlock(other, 1, block(2, 2, 0), Modified, &[1])),
    ]
}
