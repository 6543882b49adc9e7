//! What no host of a rack sends.

use super::build::{Scenario, any, ask, block, unlock, who, with};
use rackmem_proto::wire::GlobalStatus::{Modified, Shared, Unshared};
use rackmem_proto::wire::Kind::{
    EvictModified, LockRead, LockWrite, ReadMiss, WriteMiss, WriteShared,
};
use rackmem_proto::wire::{Flags, Header};

pub fn all() -> Vec<Scenario> {
    let me = who(0, 0);
    let other = who(1, 1);
    vec![
        Scenario::new(
            "a-copy-of-another-kind",
            "A number that was granted for a read miss comes as a write of a clean copy: no row of the forward table, nothing leaves",
        )
        .owns(any(), Unshared, &[])
        .first(ask(ReadMiss, me, 1, any()))
        .packet(ask(WriteShared, me, 1, any())),
        Scenario::new(
            "a-copy-of-another-kind-that-has-a-row",
            "The route is the first one's, the row the copy's",
        )
        .owns(any(), Modified, &[2])
        .first(ask(ReadMiss, me, 1, any()))
        .packet(ask(WriteMiss, me, 1, any()))
        .packet(ask(EvictModified, me, 1, any())),
        Scenario::new(
            "a-copy-for-another-block",
            "A number that was granted for one block comes for another, whose lock it takes and gives back",
        )
        .owns(any(), Modified, &[2])
        .owns(block(2, 0, 0), Shared, &[1, 3])
        .first(ask(ReadMiss, me, 1, any()))
        .packet(ask(ReadMiss, me, 1, block(2, 0, 0)))
        .packet(ask(WriteMiss, me, 1, block(2, 0, 0))),
        Scenario::new(
            "a-copy-for-a-block-that-its-provider-has-not",
            "The first one's provider is no member of the other block: the one copy that leaves is not the provider's",
        )
        .owns(any(), Shared, &[2])
        .owns(block(2, 0, 0), Shared, &[3])
        .first(ask(ReadMiss, me, 1, any()))
        .packet(ask(WriteMiss, me, 1, block(2, 0, 0))),
        Scenario::new(
            "shared-by-nobody",
            "A status that needs a member, and no member: no provider, nothing leaves, the lock is held",
        )
        .owns(any(), Shared, &[])
        .packet(ask(ReadMiss, me, 1, any()))
        .packet(ask(ReadMiss, me, 1, any()))
        .packet(with(unlock(me, 1, any(), Shared, &[0]), Flags::READER)),
        Scenario::new("written-and-shared-by-nobody", "A multicast to nobody")
            .owns(any(), Shared, &[])
            .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new("modified-by-nobody", "Nobody to fetch it from")
            .owns(any(), Modified, &[])
            .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "modified-by-two",
            "One of them provides, as of a shared one",
        )
        .owns(any(), Modified, &[1, 2])
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "unshared-and-held",
            "The status decides where it goes, the copyset whether it is valid",
        )
        .owns(any(), Unshared, &[0, 2])
        .packet(ask(ReadMiss, me, 1, any()))
        .packet(ask(ReadMiss, other, 1, any())),
        Scenario::new(
            "a-readers-unlock-of-a-writers-lock",
            "It is authorized and releases nothing, because there is no reader; what it says is installed as a reader's",
        )
        .owns(any(), Shared, &[2])
        .first(ask(LockWrite, me, 1, any()))
        .packet(with(unlock(me, 1, any(), Shared, &[0]), Flags::READER)),
        Scenario::new(
            "a-writers-unlock-of-a-readers-lock",
            "It releases nothing, because there is no writer; what it says is installed as a writer's",
        )
        .owns(any(), Shared, &[2])
        .first(ask(LockRead, me, 1, any()))
        .packet(unlock(me, 1, any(), Modified, &[0])),
        Scenario::new(
            "an-unlock-of-another-block",
            "It is authorized by its number, and finds the other block's lock free",
        )
        .owns(any(), Unshared, &[])
        .owns(block(2, 0, 0), Shared, &[3])
        .first(ask(WriteMiss, me, 1, any()))
        .packet(unlock(me, 1, block(2, 0, 0), Modified, &[0])),
        Scenario::new(
            "an-unlock-of-a-block-that-is-not-here",
            "It is authorized by its number, and there is nothing to release",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .packet(unlock(me, 1, block(2, 2, 0), Modified, &[0])),
        Scenario::new(
            "a-readers-unlock-of-a-free-lock",
            "The count does not go below zero",
        )
        .owns(any(), Unshared, &[])
        .owns(block(2, 0, 0), Shared, &[3])
        .first(ask(LockRead, me, 1, any()))
        .packet(with(unlock(me, 1, block(2, 0, 0), Shared, &[0]), Flags::READER)),
        Scenario::new(
            "number-zero",
            "Requesters begin with one: zero is what an empty score holds, and is refused as if it had been before",
        )
        .owns(any(), Shared, &[3])
        .packet(ask(ReadMiss, me, 0, any()))
        .packet(ask(ReadMiss, me, 0, block(1, 3, 0)))
        .packet(unlock(me, 0, any(), Shared, &[0])),
        Scenario::new(
            "a-move-of-another-block",
            "A slot's number stands for its first packet: a copy for another block is answered as that one",
        )
        .first(super::build::add(any(), 0, 1, Shared, &[2]))
        .packet(super::build::add(block(1, 0, 0), 0, 1, Modified, &[0]))
        .packet(super::build::retire(any(), 0, 1))
        .packet(super::build::free(any(), 0, 1)),
        Scenario::new(
            "a-move-numbered-zero",
            "Moves begin with one: zero is dropped as if it were under way",
        )
        .packet(super::build::add(any(), 0, 0, Shared, &[2]))
        .packet(super::build::retire(any(), 0, 0)),
        Scenario::new(
            "a-move-by-who-is-not-home",
            "The answer goes to who asked: it is his slot",
        )
        .packet(Header {
            requester: who(2, 0),
            ..super::build::add(any(), 0, 1, Shared, &[0])
        })
        .packet(Header {
            requester: who(2, 1),
            ..super::build::retire(any(), 0, 1)
        }),
    ]
}
