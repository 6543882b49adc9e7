//! C-RW-WP (Calciu et al., *NUMA-Aware Reader-Writer Locks*, 2013): writers first, an indicator of
//! readers at each node, and among writers a cohort lock, which stays at a node for several of its
//! threads (Dice et al., *Lock Cohorting*, 2012; C-PTL-TKT: between nodes a ticket lock whose
//! tickets are called in words of their own, inside a node a ticket lock).
//!
//! | | operations | a strict hand-over between writers of two nodes |
//! |---|---|---|
//! | read | add a reader at one's node; look for writers; there are: subtract it, wait until there are none, again | |
//! | no longer | subtract it | |
//! | write | a ticket of one's node, wait until it is called | none: the block is here |
//! | | the node has the lock already: nothing | |
//! | | else add a writer and take a ticket, one block | none: who left last still has it |
//! | | wait until that is called | 1 transaction, critical |
//! | | wait until no node has readers, one after the other | none, or 1 each |
//! | no longer | somebody of the node waits, and not too many have been served: call it | none |
//! | | else call the next ticket | 1, critical |
//! | | subtract the writer | 1 transaction |
//!
//! Left out is what lets readers that have waited long stop the writers: threads that wait here
//! would come in order even so.

use super::Access;
use super::op::{At, Home, Op, Shape, Step, ThreadPlace, Until};

/// How many threads of a node follow the first before the lock goes on to the next node.
pub const BATCH: u64 = 16;

/// Block 0: how many nodes write or want to, and the next ticket between nodes.
const WRITERS: At = At::block(0);
const TICKETS: At = WRITERS.word(1);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Cohort {
    nodes: u16,
    node: u16,
    access: Access,
    phase: Phase,
    /// Its ticket inside the node.
    ticket: u64,
    /// Its node's ticket, as long as it is inside.
    global: u64,
    /// How many of the node have followed the first by then.
    batch: u64,
    /// Which node's readers a writer waits for.
    visited: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Idle,
    Arrive,
    Look,
    Depart,
    AwaitWriters,
    LeaveRead,
    Local,
    AwaitLocal,
    Passed,
    Batch,
    Announce,
    Global,
    AwaitGlobal,
    Keep,
    AwaitReaders,
    AnyoneHere,
    CountBatch,
    ForgetBatch,
    Forget,
    CallGlobal,
    Withdraw,
    CallLocal,
}

/// The word in which every `nodes`-th ticket between nodes is called.
fn called(nodes: u16, ticket: u64) -> At {
    At::block(1 + (ticket % u64::from(nodes)) as u16)
}

impl Cohort {
    pub fn new(shape: Shape, seat: ThreadPlace) -> Self {
        Cohort {
            nodes: shape.nodes,
            node: seat.node,
            access: Access::Read,
            phase: Phase::Idle,
            ticket: 0,
            global: 0,
            batch: 0,
            visited: 0,
        }
    }

    /// The readers of a node.
    fn readers(&self, node: u16) -> At {
        At::block(1 + self.nodes + node)
    }

    /// Writers of this node: tickets given out, called; its ticket between nodes and one,
    /// while it has that; the threads that have followed the first.
    fn local(&self, word: u8) -> At {
        At::block(1 + 2 * self.nodes + self.node).word(word)
    }

    fn next(&mut self, phase: Phase, op: Op) -> Step {
        self.phase = phase;
        Step::Do(op)
    }

    pub fn enter(&mut self, access: Access) -> Step {
        self.access = access;
        match access {
            Access::Read => self.arrive(),
            Access::Write => self.next(Phase::Local, Op::Add(self.local(0), 1)),
        }
    }

    pub fn leave(&mut self) -> Step {
        match self.access {
            Access::Read => self.depart(Phase::LeaveRead),
            Access::Write => self.next(Phase::AnyoneHere, Op::Load(self.local(0))),
        }
    }

    fn arrive(&mut self) -> Step {
        self.next(Phase::Arrive, Op::Add(self.readers(self.node), 1))
    }

    fn depart(&mut self, phase: Phase) -> Step {
        let minus = 1u64.wrapping_neg();
        self.next(phase, Op::Add(self.readers(self.node), minus))
    }

    fn await_readers(&mut self, node: u16) -> Step {
        self.visited = node;
        let wait = Op::Wait(self.readers(node), Until::is(0));
        self.next(Phase::AwaitReaders, wait)
    }

    fn call_local(&mut self) -> Step {
        self.next(
            Phase::CallLocal,
            Op::Store(self.local(1), self.ticket.wrapping_add(1)),
        )
    }

    pub fn result(&mut self, word: u64) -> Step {
        match self.phase {
            Phase::Arrive => self.next(Phase::Look, Op::Load(WRITERS)),
            Phase::Look if word != 0 => self.depart(Phase::Depart),
            Phase::Depart => self.next(Phase::AwaitWriters, Op::Wait(WRITERS, Until::is(0))),
            Phase::AwaitWriters => self.arrive(),
            Phase::Local => {
                self.ticket = word;
                self.next(Phase::AwaitLocal, Op::Wait(self.local(1), Until::is(word)))
            }
            Phase::AwaitLocal => self.next(Phase::Passed, Op::Load(self.local(2))),
            Phase::Passed if word != 0 => {
                self.global = word - 1;
                self.next(Phase::Batch, Op::Load(self.local(3)))
            }
            Phase::Passed => {
                self.batch = 0;
                self.next(Phase::Announce, Op::Add(WRITERS, 1))
            }
            Phase::Announce => self.next(Phase::Global, Op::Add(TICKETS, 1)),
            Phase::Global => {
                self.global = word;
                let wait = Op::Wait(called(self.nodes, word), Until::is(word));
                self.next(Phase::AwaitGlobal, wait)
            }
            Phase::AwaitGlobal => self.next(
                Phase::Keep,
                Op::Store(self.local(2), self.global.wrapping_add(1)),
            ),
            Phase::Keep => self.await_readers(0),
            Phase::AwaitReaders if self.visited + 1 < self.nodes => {
                self.await_readers(self.visited + 1)
            }
            Phase::Batch => {
                // Who had the lock before has seen all readers leave, and none has come in since.
                self.batch = word;
                self.inside()
            }
            Phase::Look | Phase::AwaitReaders => self.inside(),
            Phase::AnyoneHere => {
                let waits = word != self.ticket.wrapping_add(1);
                match waits && self.batch < BATCH {
                    true => self.next(
                        Phase::CountBatch,
                        Op::Store(self.local(3), self.batch.wrapping_add(1)),
                    ),
                    false => self.next(Phase::ForgetBatch, Op::Store(self.local(3), 0)),
                }
            }
            Phase::CountBatch => self.call_local(),
            Phase::ForgetBatch => self.next(Phase::Forget, Op::Store(self.local(2), 0)),
            Phase::Forget => {
                let next = self.global.wrapping_add(1);
                let call = Op::Store(called(self.nodes, next), next);
                self.next(Phase::CallGlobal, call)
            }
            Phase::CallGlobal => self.next(Phase::Withdraw, Op::Add(WRITERS, 1u64.wrapping_neg())),
            Phase::Withdraw => self.call_local(),
            Phase::LeaveRead | Phase::CallLocal | Phase::Idle => {
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

pub(super) fn blocks(shape: Shape) -> u16 {
    1 + 3 * shape.nodes
}

pub(super) fn home(shape: Shape, block: u16) -> Home {
    match block.checked_sub(1 + shape.nodes) {
        Some(nth) => Home::Node(nth % shape.nodes),
        None => Home::Lock,
    }
}
