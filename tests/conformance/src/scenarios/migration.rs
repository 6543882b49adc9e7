//! Entries that move: each move happens once, and its outcome is final.

use super::build::{Scenario, add, any, ask, block, free, retire, unlock, who, with};
use rackmem_proto::flowcc::migration::MAX_MOVES;
use rackmem_proto::switch::{Field, Register};
use rackmem_proto::wire::Flags;
use rackmem_proto::wire::GlobalStatus::{Modified, Shared, Unshared};
use rackmem_proto::wire::Kind::{LockRead, LockWrite, ReadMiss, WriteMiss};

pub fn all() -> Vec<Scenario> {
    let mut scenarios = adds();
    scenarios.extend(removes());
    scenarios.extend(shadows());
    scenarios.extend(slots());
    scenarios
}

fn adds() -> Vec<Scenario> {
    let (first, second, third) = (block(1, 2, 0), block(2, 2, 0), block(3, 2, 0));
    vec![
        Scenario::new("add", "An entry moves to the switch with its metadata, and is served there")
            .packet(add(any(), 0, 1, Shared, &[0, 2]))
            .packet(ask(ReadMiss, who(1, 0), 1, any())),
        Scenario::new("add-into-each-way", "Two blocks of one set take a way each")
            .packet(add(first, 0, 1, Modified, &[3]))
            .packet(add(second, 0, 1, Shared, &[0, 1])),
        Scenario::new("add-when-full", "A third block of the set is told that it is full")
            .owns(first, Unshared, &[])
            .owns(second, Unshared, &[])
            .packet(add(third, 0, 1, Modified, &[0])),
        Scenario::new(
            "a-refusal-is-final",
            "A second copy of an ADD that was refused is refused when there is room: its home has kept the entry",
        )
        .owns(first, Unshared, &[])
        .owns(second, Unshared, &[])
        .first(add(third, 0, 1, Modified, &[0]))
        .first(retire(first, 0, 1))
        .first(free(first, 0, 2))
        .packet(add(third, 0, 1, Modified, &[0]))
        .packet(add(third, 0, 2, Modified, &[0])),
        Scenario::new(
            "the-first-free-way",
            "A location in the first way has become free: the next one takes it",
        )
        .owns(first, Unshared, &[])
        .owns(second, Shared, &[1])
        .first(retire(first, 0, 1))
        .first(free(first, 0, 2))
        .packet(add(third, 0, 1, Modified, &[0])),
        Scenario::new(
            "add-what-is-there",
            "A new move for an entry that the switch has is refused: it stays as it is",
        )
        .owns(first, Shared, &[1])
        .packet(add(first, 0, 1, Modified, &[0])),
        Scenario::new(
            "add-what-is-there-in-the-second-way",
            "The same when a way before it is free: an entry is never there twice",
        )
        .owns(first, Unshared, &[])
        .owns(second, Shared, &[1])
        .first(retire(first, 0, 1))
        .first(free(first, 0, 2))
        .packet(add(second, 0, 1, Modified, &[0])),
        Scenario::new(
            "a-second-copy-of-an-add",
            "It is answered as the first one, and installs nothing: the entry is locked by now",
        )
        .first(add(any(), 0, 1, Shared, &[0, 2]))
        .first(ask(WriteMiss, who(1, 0), 1, any()))
        .packet(add(any(), 0, 1, Shared, &[0, 2])),
        Scenario::new(
            "a-late-add-after-the-entry-went-home",
            "It is answered as the first one, and the switch does not own the entry a second time",
        )
        .first(add(any(), 0, 1, Shared, &[0]))
        .first(retire(any(), 1, 1))
        .first(free(any(), 1, 2))
        .packet(add(any(), 0, 1, Shared, &[0]))
        .packet(ask(ReadMiss, who(2, 0), 1, any())),
        Scenario::new(
            "an-add-from-before-the-slots-next-move",
            "Older than what its slot has moved since: dropped",
        )
        .first(add(first, 0, 1, Shared, &[0]))
        .first(add(block(1, 3, 0), 0, 2, Shared, &[0]))
        .packet(add(first, 0, 1, Shared, &[0])),
        Scenario::new(
            "a-lock-word-starts-free",
            "A location is taken over clean, whatever was there before",
        )
        .owns(first, Modified, &[3])
        .first(retire(first, 0, 1))
        .first(free(first, 0, 2))
        .packet(add(second, 0, 1, Unshared, &[]))
        .packet(ask(LockWrite, who(0, 0), 1, second)),
    ]
}

fn removes() -> Vec<Scenario> {
    let me = who(0, 0);
    let (first, second) = (block(1, 2, 0), block(2, 2, 0));
    vec![
        Scenario::new(
            "remove",
            "The first step locks the entry and tells its metadata, the second one frees the location",
        )
        .owns(any(), Shared, &[0, 3])
        .packet(retire(any(), 0, 1))
        .packet(free(any(), 0, 2))
        .packet(ask(ReadMiss, me, 1, any())),
        Scenario::new(
            "remove-from-the-second-way",
            "The other way's entry stays",
        )
        .owns(first, Shared, &[0])
        .owns(second, Modified, &[3])
        .packet(retire(second, 0, 1))
        .packet(free(second, 0, 2)),
        Scenario::new("nobody-locks-what-is-given-up", "Requests are refused between the steps")
            .owns(any(), Shared, &[0, 3])
            .first(retire(any(), 0, 1))
            .packet(ask(ReadMiss, who(1, 0), 1, any()))
            .packet(ask(LockWrite, me, 1, any())),
        Scenario::new(
            "a-second-copy-of-the-first-step",
            "The metadata is told as often as it is asked for",
        )
        .owns(any(), Shared, &[0, 3])
        .packet(retire(any(), 0, 1))
        .packet(retire(any(), 0, 1)),
        Scenario::new(
            "the-first-step-under-a-lock",
            "An event is going on: refused, and refused again when it is over",
        )
        .owns(any(), Shared, &[3])
        .first(ask(WriteMiss, me, 1, any()))
        .packet(retire(any(), 0, 1))
        .packet(unlock(me, 1, any(), Modified, &[0]))
        .packet(retire(any(), 0, 1))
        .packet(retire(any(), 0, 2)),
        Scenario::new("the-first-step-under-readers", "Readers hold it, too")
            .owns(any(), Shared, &[3])
            .first(ask(LockRead, me, 1, any()))
            .packet(retire(any(), 0, 1))
            .packet(with(unlock(me, 1, any(), Shared, &[]), Flags::READER.and(Flags::KEEP)))
            .packet(retire(any(), 1, 1)),
        Scenario::new("remove-what-is-not-here", "Refused: the entry has moved, or never came")
            .packet(retire(any(), 0, 1))
            .packet(retire(any(), 0, 1)),
        Scenario::new(
            "a-second-copy-of-the-first-step-after-the-second",
            "Its slot has gone on: dropped",
        )
        .owns(any(), Shared, &[0, 3])
        .first(retire(any(), 0, 1))
        .first(free(any(), 0, 2))
        .packet(retire(any(), 0, 1)),
        Scenario::new(
            "the-second-step-in-another-slot",
            "A copy of the first step finds that the location is free: it tells of nobody",
        )
        .owns(any(), Shared, &[0, 3])
        .first(retire(any(), 0, 1))
        .first(free(any(), 1, 1))
        .packet(retire(any(), 0, 1)),
        Scenario::new(
            "a-second-copy-of-the-second-step",
            "The location is someone else's by now, and stays his",
        )
        .owns(first, Shared, &[0, 3])
        .first(retire(first, 0, 1))
        .first(free(first, 0, 2))
        .first(add(second, 0, 1, Modified, &[3]))
        .packet(free(first, 0, 2)),
        Scenario::new(
            "a-second-copy-of-the-second-step-after-it-came-again",
            "The entry is here again, and stays",
        )
        .owns(first, Shared, &[0, 3])
        .first(retire(first, 0, 1))
        .first(free(first, 0, 2))
        .first(add(first, 1, 1, Shared, &[0]))
        .packet(free(first, 0, 2)),
        Scenario::new("the-second-step-of-what-is-not-here", "It is done already: answered")
            .packet(free(any(), 0, 1)),
    ]
}

fn shadows() -> Vec<Scenario> {
    let moves = |scenario: Scenario| {
        scenario
            .packet(add(any(), 0, 1, Shared, &[0]))
            .packet(retire(any(), 1, 1))
            .packet(free(any(), 1, 2))
            .packet(retire(any(), 2, 1))
    };
    vec![
        moves(
            Scenario::new("no-shadow", "Without a shadow the home alone is told")
                .setup(|setup| setup.shadow = None),
        ),
        moves(
            Scenario::new("the-home-is-the-shadow", "It is told once")
                .setup(|setup| setup.shadow = Some(1)),
        ),
        moves(
            Scenario::new(
                "another-shadow",
                "Every answer of a move goes to the shadow as well",
            )
            .setup(|setup| setup.shadow = Some(0)),
        ),
    ]
}

fn slots() -> Vec<Scenario> {
    let last = MAX_MOVES as u16 - 1;
    let under_way = Register {
        field: Field::Move,
        way: 0,
        at: MAX_MOVES as u32,
        value: 4 << 32 | 1,
    };
    vec![
        Scenario::new(
            "the-last-slot",
            "A home has 64 slots, and each its own numbers",
        )
        .packet(add(any(), last, 9, Unshared, &[]))
        .packet(retire(any(), 0, 1))
        .packet(free(any(), last - 1, 1)),
        Scenario::new(
            "slots-of-other-homes",
            "The same slot of two homes is two slots",
        )
        .packet(add(block(1, 2, 0), 5, 1, Unshared, &[]))
        .packet(add(block(2, 2, 0), 5, 1, Unshared, &[])),
        Scenario::new("moves-wrap", "Numbers of moves go on after 2^32")
            .packet(add(any(), 0, 0xffff_ffff, Unshared, &[]))
            .packet(retire(any(), 0, 0))
            .packet(add(any(), 0, 0xffff_ffff, Unshared, &[]))
            .packet(free(any(), 0, 1)),
        Scenario::new(
            "an-add-under-way",
            "A copy between the two passes of the first one: dropped, whoever asks will ask again",
        )
        .loaded(&[under_way])
        .packet(add(any(), 0, 4, Unshared, &[]))
        .packet(retire(any(), 0, 4))
        .packet(free(any(), 0, 4)),
    ]
}
