//! The queue lock of Mellor-Crummey and Scott (*Algorithms for Scalable Synchronization on
//! Shared-Memory Multiprocessors*, 1991), Soul's example of §2.1 and Fig. 2. For one at a time: who
//! only reads is alone as well.
//!
//! | | operations | a strict hand-over |
//! |---|---|---|
//! | enter | swap the queue's tail | 1 transaction |
//! | | behind somebody: write its `next`; wait for one's own `granted` | 1 |
//! | leave | read one's own `next` | 1, critical |
//! | | somebody behind: write its `granted`, which it reads | 2, critical |
//! | | nobody: compare-and-swap the tail to none | |
//!
//! Five, of which three lie between one critical section and the next: Soul's count (§2.2). The
//! textbook's thread also clears its entry before it queues, which takes a sixth when the entry was
//! last written by others; here entries are never cleared: a `next` says for which turn of its
//! owner it is meant, and `granted` counts. So this is, if anything, faster than the textbook's.

use super::Access;
use super::op::{At, Home, Op, Shape, Step, ThreadPlace, Until};

/// Block 0: the tail. Its word is the last one's turn and seat, or 0.
const TAIL: At = At::block(0);
/// Bits of a word for a seat's number; the rest is its turn.
const SEAT_BITS: u32 = 16;
const SEAT: u64 = (1 << SEAT_BITS) - 1;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Mcs {
    me: u16,
    turn: u64,
    /// Times that a predecessor has admitted this one.
    granted: u64,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    Queue,
    Link,
    Spin,
    LookBehind,
    Close,
    AwaitLink,
    Grant,
}

/// Block of a seat's entry: word 0 is `next`, word 1 `granted`.
const fn entry(seat: u16) -> At {
    At::block(1 + seat)
}

pub(super) fn blocks(shape: Shape) -> u16 {
    1 + shape.seats()
}

pub(super) fn home(shape: Shape, block: u16) -> Home {
    match block.checked_sub(1) {
        Some(seat) => Home::Node(seat / shape.places),
        None => Home::Lock,
    }
}

impl Mcs {
    pub fn new(shape: Shape, seat: ThreadPlace) -> Self {
        Mcs {
            me: shape.number(seat),
            turn: 0,
            granted: 0,
            phase: Phase::Idle,
        }
    }

    /// Who this is and when: never 0.
    fn name(&self) -> u64 {
        self.turn << SEAT_BITS | u64::from(self.me + 1)
    }

    fn next(&mut self, phase: Phase, op: Op) -> Step {
        self.phase = phase;
        Step::Do(op)
    }

    fn grant(&mut self, behind: u64) -> Step {
        let seat = ((behind & SEAT) as u16).saturating_sub(1);
        self.next(Phase::Grant, Op::Add(entry(seat).word(1), 1))
    }

    pub fn enter(&mut self, _access: Access) -> Step {
        self.turn = self.turn.wrapping_add(1) & (u64::MAX >> SEAT_BITS);
        self.next(Phase::Queue, Op::Swap(TAIL, self.name()))
    }

    pub fn leave(&mut self) -> Step {
        self.next(Phase::LookBehind, Op::Load(entry(self.me)))
    }

    pub fn result(&mut self, word: u64) -> Step {
        let mine = Until::under(!SEAT, self.turn << SEAT_BITS);
        match self.phase {
            Phase::Queue if word == 0 => self.inside(),
            Phase::Queue => {
                let before = entry(((word & SEAT) as u16).saturating_sub(1));
                let link = (word & !SEAT) | u64::from(self.me + 1);
                self.next(Phase::Link, Op::Store(before, link))
            }
            Phase::Link => {
                self.granted = self.granted.wrapping_add(1);
                let own = entry(self.me).word(1);
                self.next(Phase::Spin, Op::Wait(own, Until::is(self.granted)))
            }
            Phase::LookBehind if mine.met(word) => self.grant(word),
            Phase::LookBehind => {
                let close = Op::CompareSwap {
                    at: TAIL,
                    old: self.name(),
                    new: 0,
                };
                self.next(Phase::Close, close)
            }
            Phase::Close if word != self.name() => {
                // A successor has come since, and is about to write its link.
                self.next(Phase::AwaitLink, Op::Wait(entry(self.me), mine))
            }
            Phase::AwaitLink => self.grant(word),
            Phase::Spin => self.inside(),
            Phase::Close | Phase::Grant | Phase::Idle => {
                self.phase = Phase::Idle;
                Step::Outside
            }
        }
    }

    fn inside(&mut self) -> Step {
        self.phase = Phase::Idle;
        Step::Inside
    }
}
