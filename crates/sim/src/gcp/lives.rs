//! Freeing the lock and making another one in its place, and what must be true of that.
//!
//! The life is a word of the data, and travels with it. Beside it travels the truth, which nothing
//! but this file looks at: an even number for each lock that was there, and the odd one above it
//! when that has been freed. A home may hear that a lock has been freed at any time, long after or
//! for no reason: what it does then is a thread's operation, [`Op::Home`].

use super::mutation::Mutation;
use super::oracle::{Complaint, complain};
use super::packet::{LIFE, TRUTH};
use super::scenario::Op;
use super::world::{LockRack, Witness, World};
use crate::site::Words;
use rackmem_proto::gcp::Life;

/// The data of the first lock.
pub const FIRST: Words = [0, 5, 0, 2];

/// What a handle is of: the life, and the truth.
pub fn handle(data: &Words) -> (u64, u64) {
    (data[LIFE], data[TRUTH])
}

fn life(word: u64) -> Life {
    Life::from_word(word)
}

fn is_freed(truth: u64) -> bool {
    truth % 2 == 1
}

impl World {
    /// Whether a thread enters the lock for what it does next; otherwise that is done.
    pub(super) fn enters(&mut self, rack: &LockRack, thread: usize) -> bool {
        match rack.op(self, thread) {
            Some(Op::Attach) => {
                self.threads[thread].handle = self.oracle.made;
                false
            }
            Some(Op::Make) if !rack.has(Mutation::MakeUnasked) => {
                let knows = life(self.nodes[0].cell().fx.data[LIFE]).is_vacant();
                if !knows {
                    self.witness(Witness::Elsewhere);
                }
                knows
            }
            _ => true,
        }
    }

    /// A thread is inside, and looks which lock it has found. `false`: it leaves.
    pub(super) fn finds(&mut self, rack: &LockRack, thread: usize) -> Result<bool, Complaint> {
        let state = self.threads[thread];
        let node = &self.nodes[usize::from(state.node)];
        let (found, truth) = (life(node.cell().fx.data[LIFE]), node.cell().fx.data[TRUTH]);
        let (mine, right) = (life(state.handle.0), state.handle.1);
        let op = rack.op(self, thread).expect("it is inside for something");
        let goes_on = match op {
            Op::Home | Op::Attach => false,
            Op::Make => rack.has(Mutation::MakeUnasked) || found.is_vacant(),
            Op::Use(_) | Op::Free => rack.has(Mutation::SkipLife) || mine.admits(found),
        };
        if node.fenced {
            return Ok(goes_on);
        }
        let detail = || format!("thread {thread} finds {found:?}, truly {truth}, for {op:?}");
        let live = self
            .nodes
            .iter()
            .filter(|node| node.up && !node.gone && !node.fenced);
        if live
            .map(|node| life(node.cell().fx.data[LIFE]))
            .any(|known| known > found)
        {
            return complain("lives do not go back", detail()).map(|()| false);
        }
        let (promise, broken) = match (op, goes_on) {
            (Op::Make, true) => ("a lock is made where none is", !is_freed(truth)),
            (Op::Use(_) | Op::Free, true) => ("a freed lock admits nobody", truth != right),
            (Op::Use(_) | Op::Free, false) => ("a lock admits its users", truth == right),
            _ => ("", false),
        };
        if broken {
            return complain(promise, detail()).map(|()| false);
        }
        match (op, goes_on) {
            (Op::Use(_), false) => self.witness(Witness::Refused),
            (Op::Free, false) => self.witness(Witness::FreedTwice),
            (Op::Make, true) => self.witness(Witness::MadeAnew),
            (Op::Use(_) | Op::Free, true) if self.oracle.freed == Some(truth) => {
                self.witness(Witness::Revived);
            }
            _ => {}
        }
        Ok(goes_on)
    }

    /// A writer leaves: what it has done to the lock's life is whole now.
    pub(super) fn change_life(&mut self, rack: &LockRack, thread: usize) {
        let node = self.threads[thread].node;
        let mut data = self.nodes[usize::from(node)].cell().fx.data;
        let found = life(data[LIFE]);
        let next = match rack.op_of(self.threads[thread].done, thread) {
            Some(Op::Free) => {
                self.oracle.freed = Some(data[TRUTH]);
                data[TRUTH] += 1;
                found.freed()
            }
            Some(Op::Make) => {
                data[TRUTH] += 1;
                let vacant = found.freed();
                match rack.has(Mutation::SameLife) {
                    true => life(found.to_word() & !3 | 1),
                    false => vacant.next().unwrap_or(vacant),
                }
            }
            _ => return,
        };
        data[LIFE] = next.to_word();
        self.node_mut(node).cell_mut().fx.data = data;
        if next.is_live() {
            let made = handle(&data);
            self.oracle.made = made;
            self.threads[thread].handle = made;
        }
    }
}
