//! Threads of one node in line for a lock of its own, and those of them that wait no longer.

use rackmem_proto::engine::{AtHome, LOCKS, LockFx, LockPart, NodeLock};
use rackmem_proto::gcp::{Access, Body, Entered, Regions};
use rackmem_proto::wire::{Contract, Dest, Header, HomeId, NodeId, Tag};

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

/// A lock in which threads are, who came one after the other.
fn entered(accesses: &[Access]) -> (NodeLock<u8>, Seats) {
    let start = HomeId::of(ME).start();
    let tag = Tag(start.0 | (LOCKS as u64) << Tag::OFFSET_BITS).under(Contract::Locked);
    let part = LockPart {
        node: ME,
        epoch: 1,
        switch: false,
        cohort: 16,
        implicit: false,
        home: AtHome::of(ME, tag),
    };
    let mut lock = NodeLock::new(tag, Regions::default(), part, None);
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
