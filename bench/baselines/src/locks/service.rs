//! A lock service beside the memory (Soul's *Lock-Service*), after TreadMarks (Keleher et
//! al., *TreadMarks: Distributed Shared Memory on Standard Workstations and Operating Systems*,
//! 1994): every lock has a manager at one node, with a wait queue; who wants the lock asks it by a
//! message, and who leaves tells it. What the lock protects comes over coherent memory afterwards.
//!
//! | | messages | a strict hand-over |
//! |---|---|---|
//! | enter | to the manager; its answer when it is one's turn | 1; 1, critical |
//! | leave | to the manager | 1, critical |
//!
//! Requests are served in their order, readers together with the readers behind them. Messages may
//! be lost, duplicated and delayed: each thread numbers its turns,
//! and repeats what was not answered.

use super::Access;
use super::op::{Op, Request, Step, ThreadPlace};
use rackmem_proto::wire::Copyset;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Client {
    seat: ThreadPlace,
    turn: u64,
    inside: bool,
}

impl Client {
    pub fn new(seat: ThreadPlace) -> Self {
        let turn = 0;
        Client {
            seat,
            turn,
            inside: false,
        }
    }

    fn request(&self, want: Option<Access>) -> Request {
        Request {
            seat: self.seat,
            turn: self.turn,
            want,
        }
    }

    pub fn enter(&mut self, access: Access) -> Step {
        self.turn = self.turn.wrapping_add(1);
        self.inside = false;
        Step::Do(Op::Ask(self.request(Some(access))))
    }

    pub fn leave(&mut self) -> Step {
        self.inside = true;
        Step::Do(Op::Tell(self.request(None)))
    }

    pub fn result(&mut self, _word: u64) -> Step {
        match self.inside {
            true => Step::Outside,
            false => Step::Inside,
        }
    }
}

/// What a manager answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reply {
    /// To whom.
    pub seat: ThreadPlace,
    /// About which of its turns.
    pub turn: u64,
    /// It is inside; or the manager has heard that it is not any more.
    pub inside: bool,
}

/// The manager of one lock. Bounded by the seats that there are.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Manager {
    seats: BTreeMap<ThreadPlace, Row>,
    queue: VecDeque<(ThreadPlace, Access)>,
    readers: u16,
    writer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Row {
    turn: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Waiting,
    Inside(Access),
    Out,
}

impl Manager {
    /// A request has come; what to answer, and to whom.
    pub fn handle(&mut self, request: &Request) -> Vec<Reply> {
        let Request { seat, turn, want } = *request;
        let row = self.seats.entry(seat).or_insert(Row {
            turn: 0,
            state: State::Out,
        });
        let newer = turn > row.turn;
        let state = row.state;
        let mut replies = Vec::new();
        if turn < row.turn {
            return replies;
        }
        if newer {
            // Whatever it had by an earlier turn, it has told us that it has not any more,
            // and that was lost.
            self.out(seat, state);
            self.put(seat, turn, State::Out);
        }
        match (want, self.seats[&seat].state) {
            (Some(access), State::Out) if newer => {
                self.put(seat, turn, State::Waiting);
                self.queue.push_back((seat, access));
            }
            (Some(_), State::Inside(_)) => replies.push(Reply {
                seat,
                turn,
                inside: true,
            }),
            // It waits already; or this is a late copy of what is over.
            (Some(_), State::Waiting | State::Out) => {}
            (None, state) => {
                self.out(seat, state);
                self.put(seat, turn, State::Out);
                replies.push(Reply {
                    seat,
                    turn,
                    inside: false,
                });
            }
        }
        self.serve(&mut replies);
        replies
    }

    /// These nodes are dead: their threads are neither inside nor wait.
    /// Who enters next is not told.
    pub fn gone(&mut self, nodes: Copyset) -> Vec<Reply> {
        let dead = |seat: &ThreadPlace| nodes.contains(seat.node);
        let rows: Vec<(ThreadPlace, State)> =
            self.seats.iter().map(|(s, r)| (*s, r.state)).collect();
        for (seat, state) in rows.into_iter().filter(|(seat, _)| dead(seat)) {
            self.out(seat, state);
            self.seats.remove(&seat);
        }
        let mut replies = Vec::new();
        self.serve(&mut replies);
        replies
    }

    /// Threads that wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    fn put(&mut self, seat: ThreadPlace, turn: u64, state: State) {
        self.seats.insert(seat, Row { turn, state });
    }

    fn out(&mut self, seat: ThreadPlace, state: State) {
        match state {
            State::Inside(Access::Read) => self.readers -= 1,
            State::Inside(Access::Write) => self.writer = false,
            State::Waiting => self.queue.retain(|waiter| waiter.0 != seat),
            State::Out => {}
        }
    }

    fn serve(&mut self, replies: &mut Vec<Reply>) {
        while let Some(&(seat, access)) = self.queue.front() {
            let free = !self.writer && (access == Access::Read || self.readers == 0);
            if !free {
                return;
            }
            self.queue.pop_front();
            match access {
                Access::Read => self.readers += 1,
                Access::Write => self.writer = true,
            }
            let Some(row) = self.seats.get_mut(&seat) else {
                continue;
            };
            row.state = State::Inside(access);
            replies.push(Reply {
                seat,
                turn: row.turn,
                inside: true,
            });
        }
    }
}
