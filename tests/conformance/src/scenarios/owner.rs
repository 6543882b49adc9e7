//! Whoever decides about the first copy of a request decides about all,
//! wherever the entry has moved meanwhile.

use super::build::{Scenario, add, any, ask, block, free, retire, unlock, who, with};
use rackmem_proto::wire::Flags;
use rackmem_proto::wire::GlobalStatus::{Modified, Shared, Unshared};
use rackmem_proto::wire::Kind::{EvictShared, LockRead, LockWrite, ReadMiss, WriteMiss};

pub fn all() -> Vec<Scenario> {
    let me = who(0, 0);
    let other = who(1, 1);
    vec![
        Scenario::new(
            "not-here",
            "A request for an entry that its home owns is passed on as it is",
        )
        .packet(ask(ReadMiss, me, 1, block(0, 1, 0)))
        .packet(ask(WriteMiss, me, 2, block(1, 1, 0)))
        .packet(ask(EvictShared, me, 3, block(2, 1, 0)))
        .packet(ask(LockWrite, me, 4, block(3, 1, 0))),
        Scenario::new(
            "block-zero",
            "The first block of node 0, whose tag is zero, is no free location",
        )
        .packet(ask(ReadMiss, me, 1, rackmem_proto::wire::Tag(0)))
        .packet(add(rackmem_proto::wire::Tag(0), 0, 1, Unshared, &[]))
        .packet(ask(ReadMiss, me, 3, rackmem_proto::wire::Tag(0))),
        Scenario::new(
            "neighbours-in-the-set",
            "Two other blocks fill the set: a third one is passed on",
        )
        .owns(block(1, 2, 0), Unshared, &[])
        .owns(block(1, 2, 1), Unshared, &[])
        .packet(ask(ReadMiss, me, 1, block(1, 2, 2)))
        .packet(ask(ReadMiss, me, 3, block(1, 2, 1))),
        Scenario::new(
            "the-same-offset-of-another-home",
            "Home is a part of the tag",
        )
        .owns(block(1, 2, 0), Shared, &[1])
        .packet(ask(ReadMiss, me, 1, rackmem_proto::wire::Tag(block(1, 2, 0).offset()))),
        Scenario::new(
            "passed-on-twice",
            "A second copy is passed on, too: its home knows it",
        )
        .packet(ask(WriteMiss, me, 1, any()))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "passed-on-and-then-here",
            "The entry has moved here since: the copy goes home all the same, and the lock it took is given back",
        )
        .first(ask(WriteMiss, me, 1, any()))
        .first(add(any(), 0, 1, Modified, &[0]))
        .packet(ask(WriteMiss, me, 1, any()))
        .packet(ask(ReadMiss, other, 1, any())),
        Scenario::new(
            "a-readers-copy-passed-on-and-then-here",
            "The same for a reader: the count of others stays",
        )
        .first(ask(LockRead, me, 1, any()))
        .first(add(any(), 0, 1, Shared, &[2]))
        .first(ask(LockRead, other, 1, any()))
        .packet(ask(LockRead, me, 1, any())),
        Scenario::new(
            "passed-on-and-then-locked-here",
            "The copy cannot lock what it must not lock: it is passed on",
        )
        .first(ask(WriteMiss, me, 1, any()))
        .first(add(any(), 0, 1, Unshared, &[]))
        .first(ask(LockWrite, other, 1, any()))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "granted-here-and-then-gone",
            "A copy of what was granted here comes after the entry has gone home: dropped while its event is open, refused after it",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .first(unlock(me, 1, any(), Modified, &[0]))
        .first(retire(any(), 0, 1))
        .first(free(any(), 0, 2))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "granted-for-another-block-that-is-not-here",
            "The number's event is open and this copy names a block that is not here: dropped",
        )
        .owns(any(), Unshared, &[])
        .first(ask(WriteMiss, me, 1, any()))
        .packet(ask(WriteMiss, me, 1, block(1, 3, 0))),
        Scenario::new(
            "refused-here-and-then-gone",
            "A copy of what was refused here is refused after the entry has gone home",
        )
        .owns(any(), Unshared, &[])
        .first(ask(EvictShared, me, 1, any()))
        .first(retire(any(), 0, 1))
        .first(free(any(), 0, 2))
        .packet(ask(EvictShared, me, 1, any())),
        Scenario::new(
            "late-for-an-entry-that-is-not-here",
            "An older number of the same parity is stale wherever its entry is",
        )
        .first(ask(WriteMiss, me, 3, any()))
        .packet(ask(WriteMiss, me, 1, any())),
        Scenario::new(
            "new-for-an-entry-that-has-come",
            "The next event is decided here",
        )
        .first(ask(WriteMiss, me, 1, any()))
        .first(add(any(), 0, 1, Modified, &[0]))
        .packet(ask(LockRead, me, 3, any()))
        .packet(with(unlock(me, 3, any(), Modified, &[]), Flags::READER.and(Flags::KEEP))),
    ]
}
