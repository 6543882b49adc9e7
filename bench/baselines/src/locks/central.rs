//! A reader-writer lock in one word, readers first: Mellor-Crummey and Scott (*Scalable
//! Reader-Writer Synchronization for Shared-Memory Multiprocessors*, 1991), "a simple
//! reader-preference lock". `pthread_rwlock` is of this kind, and its default prefers readers, too;
//! it needs more operations, on one line as well, to be able to sleep.
//!
//! | | operations | a strict hand-over between writers |
//! |---|---|---|
//! | read | add a reader; a writer is inside: wait until it is not, being counted already | |
//! | no longer | subtract it | |
//! | write | compare-and-swap nobody to a writer | 1 transaction |
//! | | not so: wait for nobody (spinning on a copy), and again after a pause that grows | 2, critical |
//! | no longer | subtract it | 1, critical |
//!
//! Every waiter looks again after every change: transactions grow with the nodes. Writers
//! may wait for ever while readers come.

use super::Access;
use super::op::{At, Op, Step, Until};

/// All of it: bit 0 is a writer inside, the rest counts readers, inside or waiting for that writer.
const STATE: At = At::block(0);
pub(super) const WRITER: u64 = 1;
pub(super) const READER: u64 = 2;

pub(super) const BLOCKS: u16 = 1;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Central {
    word: Indicator,
}

impl Central {
    pub fn new() -> Self {
        let word = Indicator::new(STATE);
        Central { word }
    }

    pub fn enter(&mut self, access: Access) -> Step {
        self.word.enter(access)
    }

    pub fn leave(&mut self) -> Step {
        self.word.leave()
    }

    pub fn result(&mut self, word: u64) -> Step {
        self.word.result(word)
    }
}

/// One such word, wherever it is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Indicator {
    at: At,
    access: Access,
    phase: Phase,
    /// Compare-and-swaps that have failed.
    failed: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    Count,
    AwaitWriter,
    Take,
    Pause,
    AwaitNobody,
    Leave,
}

impl Indicator {
    pub fn new(at: At) -> Self {
        Indicator {
            at,
            access: Access::Read,
            phase: Phase::Idle,
            failed: 0,
        }
    }

    /// Another word, by the same machine.
    pub fn go_to(&mut self, at: At) {
        self.at = at;
    }

    fn next(&mut self, phase: Phase, op: Op) -> Step {
        self.phase = phase;
        Step::Do(op)
    }

    fn take(&mut self) -> Step {
        let take = Op::CompareSwap {
            at: self.at,
            old: 0,
            new: WRITER,
        };
        self.next(Phase::Take, take)
    }

    pub fn enter(&mut self, access: Access) -> Step {
        self.access = access;
        self.failed = 0;
        match access {
            Access::Read => self.next(Phase::Count, Op::Add(self.at, READER)),
            Access::Write => self.take(),
        }
    }

    pub fn leave(&mut self) -> Step {
        let mine = match self.access {
            Access::Read => READER,
            Access::Write => WRITER,
        };
        self.next(Phase::Leave, Op::Add(self.at, mine.wrapping_neg()))
    }

    pub fn result(&mut self, word: u64) -> Step {
        match self.phase {
            Phase::Count if word & WRITER != 0 => {
                let gone = Until::under(WRITER, 0);
                self.next(Phase::AwaitWriter, Op::Wait(self.at, gone))
            }
            Phase::Take if word != 0 => {
                self.failed = self.failed.saturating_add(1);
                match self.failed {
                    // It has waited for nothing yet.
                    1 => self.await_nobody(),
                    failed => self.next(Phase::Pause, Op::Pause(failed - 1)),
                }
            }
            Phase::Pause => self.await_nobody(),
            Phase::AwaitNobody => self.take(),
            Phase::Count | Phase::AwaitWriter | Phase::Take => {
                self.phase = Phase::Idle;
                Step::Inside
            }
            Phase::Leave | Phase::Idle => {
                self.phase = Phase::Idle;
                Step::Outside
            }
        }
    }

    fn await_nobody(&mut self) -> Step {
        self.next(Phase::AwaitNobody, Op::Wait(self.at, Until::is(0)))
    }
}
