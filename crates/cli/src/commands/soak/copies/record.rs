//! The history of a run, put together from what processes have told.

use super::super::locks::Process;
use super::line::{Line, What};
use rackmem_sim::history::{Call, Operation, Outcome, Reply};
use std::collections::{BTreeSet, HashMap};

/// Threads of a process, at most.
const THREADS: u32 = 16;

/// See the module.
#[derive(Default)]
pub struct Record {
    history: Vec<Operation>,
    /// By client: what is under way.
    under_way: HashMap<u32, Operation>,
    /// Operations that have ended, by node.
    pub ended: HashMap<usize, u64>,
}

impl Record {
    /// A process says this.
    pub fn add(&mut self, process: Process, line: Line) {
        let (node, number) = process;
        // Each process is other clients: what one has begun before it died is under way for ever.
        let client = number as u32 * THREADS + line.thread % THREADS;
        let begins = |key: u64, call| Operation {
            client,
            key: key.to_string(),
            call,
            invoke: line.at,
            outcome: Outcome::Unknown,
        };
        let reply = match line.what {
            What::Reads(at) => return self.begin(begins(at, Call::Get)),
            What::Writes(at, value) => {
                let value = value.to_string();
                return self.begin(begins(at, Call::Set { value }));
            }
            What::Has(0) | What::Written => Some(Reply::Nil),
            What::Has(value) => Some(Reply::Text(value.to_string())),
            What::Failed => None,
        };
        let Some(mut operation) = self.under_way.remove(&client) else {
            return;
        };
        if let Some(reply) = reply {
            operation.outcome = Outcome::Ok { at: line.at, reply };
            *self.ended.entry(node).or_default() += 1;
        }
        self.keep(operation);
    }

    fn begin(&mut self, operation: Operation) {
        if let Some(before) = self.under_way.insert(operation.client, operation) {
            self.keep(before);
        }
    }

    /// A read without an answer says nothing.
    fn keep(&mut self, operation: Operation) {
        if operation.outcome != Outcome::Unknown || operation.call != Call::Get {
            self.history.push(operation);
        }
    }

    /// Operations that have ended.
    pub fn operations(&self) -> usize {
        self.history.len()
    }

    /// All of it, in the order of time.
    pub fn history(mut self) -> Vec<Operation> {
        let left: Vec<Operation> = self.under_way.drain().map(|entry| entry.1).collect();
        left.into_iter().for_each(|operation| self.keep(operation));
        self.history.sort_by_key(|operation| operation.invoke);
        self.history
    }
}

/// Writes of unknown outcome, and lines, in a history.
pub fn figures(history: &[Operation]) -> (usize, usize) {
    let unknown = history.iter().filter(|it| it.outcome == Outcome::Unknown);
    let keys: BTreeSet<&str> = history.iter().map(|it| it.key.as_str()).collect();
    (unknown.count(), keys.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_has_begun_is_unknown() {
        let mut record = Record::default();
        let mut tell = |process, at, what| {
            let line = Line {
                at,
                thread: 0,
                what,
            };
            record.add((0, process), line);
        };
        tell(0, 1, What::Writes(7, 70));
        tell(0, 2, What::Written);
        tell(0, 3, What::Writes(7, 71));
        // It is killed, and its next life is another client.
        tell(1, 4, What::Reads(7));
        tell(1, 5, What::Has(71));
        tell(1, 6, What::Reads(7));
        tell(1, 7, What::Failed);
        tell(1, 8, What::Reads(7));
        let history = record.history();
        let outcomes: Vec<_> = history.iter().map(|it| it.outcome.clone()).collect();
        let done = |at, reply| Outcome::Ok { at, reply };
        assert_eq!(
            outcomes,
            [
                done(2, Reply::Nil),
                Outcome::Unknown,
                done(5, Reply::Text("71".into()))
            ]
        );
        assert_ne!(history[1].client, history[2].client);
        assert_eq!(figures(&history), (1, 1));
    }
}
