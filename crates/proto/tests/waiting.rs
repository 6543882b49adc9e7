//! Threads of one node in line for a lock of its own, and those of them that wait no longer; and
//! what a node remembers of another's lock that it has no memory for.

use rackmem_proto::engine::{AtHome, LOCKS, LockFx, LockPart, NodeLock};
use rackmem_proto::gcp::{Access, Body, Entered, Known, Regions, Right};
use rackmem_proto::wire::{Contract, Dest, Header, HomeId, NodeId, Reason, Tag};

const ME: NodeId = 1;

/// Who was let in, and who was sent away.
#[derive(Default)]
struct Seats {
    inside: Vec<u8>,
    away: Vec<u8>,
}

impl LockFx for Seats {
    type Seat = u8;
    fn store(&mut self, _: &Header) {}
    fn install(&mut self, _: bool) {}
    fn clear(&mut self) {}
    fn send(&mut self, to: Dest, _: &Header, _: &Body) {
        panic!("nobody is to be asked, and {to:?} is");
    }
    fn inside(&mut self, seat: u8, _: Entered, _: bool) {
        self.inside.push(seat);
    }
    fn send_away(&mut self, seat: u8) {
        self.away.push(seat);
    }
}

fn lock(home: NodeId, known: Option<Known>) -> NodeLock<u8> {
    let start = HomeId::of(home).start();
    let tag = Tag(start.0 | (LOCKS as u64) << Tag::OFFSET_BITS).under(Contract::Locked);
    let part = LockPart {
        node: ME,
        epoch: 1,
        switch: false,
        cohort: 16,
        implicit: false,
        home: AtHome::of(ME, tag),
    };
    NodeLock::new(tag, Regions::default(), part, known)
}

/// A lock in which threads are, who came one after the other.
fn entered(accesses: &[Access]) -> (NodeLock<u8>, Seats) {
    let mut lock = lock(ME, None);
    let mut seats = Seats::default();
    for (seat, access) in (0..).zip(accesses) {
        lock.enter(seat, *access, &mut seats);
    }
    (lock, seats)
}

#[test]
fn who_gives_up_in_line_is_passed_over_and_who_is_inside_or_gone_cannot() {
    let (mut lock, mut seats) = entered(&[Access::Write; 5]);
    assert_eq!((&seats.inside[..], lock.waiting()), (&[0][..], 4));
    for (seat, waited) in [(2, true), (2, false), (0, false), (9, false), (3, true)] {
        let gave_up = lock.give_up(|is| *is == seat, &mut seats);
        assert_eq!(gave_up, waited, "seat {seat}");
    }
    assert_eq!((&seats.inside[..], lock.waiting()), (&[0][..], 2));
    for left in [1, 4] {
        lock.leave(Access::Write, &mut seats);
        assert_eq!(seats.inside.last(), Some(&left));
    }
    lock.leave(Access::Write, &mut seats);
    assert!(!lock.in_use() && seats.away.is_empty());
}

#[test]
fn readers_behind_a_writer_that_gives_up_come_in_at_once() {
    let (mut lock, mut seats) = entered(&[Access::Read, Access::Write, Access::Read, Access::Read]);
    assert_eq!((&seats.inside[..], lock.waiting()), (&[0][..], 3));
    assert!(lock.give_up(|is| *is == 1, &mut seats));
    assert_eq!((&seats.inside[..], lock.waiting()), (&[0, 2, 3][..], 0));
}

#[test]
fn threads_may_come_without_a_section_only_where_none_is_inside_or_waits() {
    let (mut lock, mut seats) = entered(&[]);
    assert_eq!(lock.free(), Right::Modified);
    for access in [Access::Read, Access::Write] {
        lock.enter(0, access, &mut seats);
        assert_eq!(lock.free(), Right::None, "{access:?} inside");
        lock.enter(1, Access::Write, &mut seats);
        assert_eq!(lock.free(), Right::None, "one waits");
        lock.leave(access, &mut seats);
        assert_eq!(lock.free(), Right::None, "the next one is inside");
        lock.leave(Access::Write, &mut seats);
        assert_eq!(lock.free(), Right::Modified);
    }
    // Who comes next is to be told.
    lock.came(Access::Write);
    lock.found(Reason::OwnerDied);
    assert_eq!(lock.free(), Right::None);
}

#[test]
fn what_is_known_of_a_lock_that_was_forgotten_goes_on() {
    for floor in [0, 7] {
        let again = lock(2, Some(Known::Abroad(floor))).forgettable(false);
        assert!(matches!(again, Some(Known::Abroad(is)) if is == floor));
    }
}
