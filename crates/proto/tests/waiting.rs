//! Threads of one node in line for a lock of its own, and those of them that wait no longer; and
//! what a node remembers of another's lock that it has no memory for.

use rackmem_proto::engine::{AtHome, LOCKS, LockFx, LockPart, NodeLock};
use rackmem_proto::gcp::{Access, Body, Entered, Known, Regions, Right};
use rackmem_proto::wire::{Contract, Copyset, Dest, Header, HomeId, NodeId, Reason, Tag};
use std::collections::{BTreeMap, VecDeque};

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
    lock_of(ME, home, known)
}

fn lock_of(node: NodeId, home: NodeId, known: Option<Known>) -> NodeLock<u8> {
    let start = HomeId::of(home).start();
    let tag = Tag(start.0 | (LOCKS as u64) << Tag::OFFSET_BITS).under(Contract::Locked);
    let part = LockPart {
        node,
        epoch: 1,
        switch: false,
        cohort: 16,
        implicit: false,
        home: AtHome::of(node, tag),
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

/// Nodes that share a lock, and packets between them, which come in order.
struct Nodes {
    locks: BTreeMap<NodeId, NodeLock<u8>>,
    under_way: VecDeque<(NodeId, Header)>,
}

/// What one of them does.
struct Wires<'a>(&'a mut VecDeque<(NodeId, Header)>);

impl LockFx for Wires<'_> {
    type Seat = u8;
    fn store(&mut self, _: &Header) {}
    fn install(&mut self, _: bool) {}
    fn clear(&mut self) {}
    fn send(&mut self, to: Dest, header: &Header, _: &Body) {
        let nodes = match to {
            Dest::Home(_) => Copyset::of(ME),
            Dest::Agent(node) => Copyset::of(node),
            Dest::Agents { nodes, .. } => nodes,
            Dest::Switch => panic!("there is none"),
            other => panic!("nothing of a lock goes to {other:?}"),
        };
        self.0.extend(nodes.iter().map(|node| (node, *header)));
    }
    fn inside(&mut self, _: u8, _: Entered, _: bool) {}
    fn send_away(&mut self, _: u8) {}
}

impl Nodes {
    fn at(&mut self, node: NodeId, act: impl FnOnce(&mut NodeLock<u8>, &mut Wires<'_>)) {
        let lock = self.locks.get_mut(&node).unwrap();
        act(lock, &mut Wires(&mut self.under_way));
        while let Some((to, header)) = self.under_way.pop_front() {
            let lock = self.locks.get_mut(&to).unwrap();
            lock.packet(&header, (0, &[]), &mut Wires(&mut self.under_way));
        }
    }
}

#[test]
fn who_leaves_hears_that_the_lock_has_come_home_though_it_has_gone_on_at_once() {
    const LEAVES: NodeId = 2;
    const STAYS: NodeId = 3;
    let locks = [ME, LEAVES, STAYS].map(|node| (node, lock_of(node, ME, None)));
    let mut nodes = Nodes {
        locks: locks.into(),
        under_way: VecDeque::new(),
    };
    nodes.at(LEAVES, |lock, fx| lock.enter(0, Access::Write, fx));
    nodes.at(LEAVES, |lock, fx| lock.leave(Access::Write, fx));
    // Two threads of the one that stays, the second of which comes in after the home.
    nodes.at(STAYS, |lock, fx| lock.enter(0, Access::Read, fx));
    nodes.at(STAYS, |lock, fx| lock.enter(1, Access::Write, fx));
    nodes.at(LEAVES, |lock, fx| {
        lock.begin_leaving();
        let (to, header) = lock.ask_home(None);
        fx.send(to, &header, &Body::None);
    });
    assert!(!nodes.locks[&LEAVES].has_left(), "a reader is inside");
    nodes.at(STAYS, |lock, fx| lock.leave(Access::Read, fx));
    assert_eq!(nodes.locks[&ME].whole(), None, "it has gone on");
    assert!(nodes.locks[&LEAVES].has_left());
}
