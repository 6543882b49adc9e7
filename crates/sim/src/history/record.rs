//! Recording a history while it happens, at the price of a clock read and a push.
//!
//! Every client writes into a buffer of its own; buffers are merged once,
//! when the clients are done. An operation enters the record when it *begins*, as one of unknown
//! outcome, and is completed when its answer arrives. So a client that dies in between leaves what
//! a checker must assume: that its last operation may yet happen.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::operation::{Call, Operation, Outcome, Reply};

/// The most operations one client's buffer may hold, about 400 MiB of them.
pub const MAX_CLIENT_OPERATIONS: usize = 4 << 20;

/// Hands out the buffers and merges them.
#[derive(Debug)]
pub struct Recorder {
    start: Instant,
    capacity: usize,
    done: Mutex<Vec<Vec<Operation>>>,
}

/// One client's buffer; given to the recorder when dropped.
#[derive(Debug)]
pub struct ClientLog<'a> {
    recorder: &'a Recorder,
    client: u32,
    operations: Vec<Operation>,
}

/// An operation under way in a [`ClientLog`].
#[derive(Debug)]
#[must_use = "an operation that is never completed counts as one of unknown outcome"]
pub struct Ticket(usize);

/// A client's buffer is full: stop the client, or go on unrecorded and let its keys alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// How many operations the buffer holds.
    pub capacity: usize,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capacity = self.capacity;
        write!(
            f,
            "the record of this client is full ({capacity} operations)"
        )
    }
}

impl std::error::Error for Full {}

impl Recorder {
    /// A recorder whose clients may record `capacity` operations each, at most
    /// [`MAX_CLIENT_OPERATIONS`].
    pub fn new(capacity: usize) -> Self {
        Recorder {
            start: Instant::now(),
            capacity: capacity.min(MAX_CLIENT_OPERATIONS),
            done: Mutex::new(Vec::new()),
        }
    }

    /// Nanoseconds since the recorder was made: the clock of a history in real time.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A buffer for one client; a client may have several in turn.
    pub fn client(&self, client: u32) -> ClientLog<'_> {
        ClientLog {
            recorder: self,
            client,
            operations: Vec::new(),
        }
    }

    /// Everything recorded, by time of invocation. Buffers still in use are not part of it, which
    /// the borrow of `self` by every [`ClientLog`] rules out.
    pub fn into_history(self) -> Vec<Operation> {
        let buffers = self.done.into_inner();
        let buffers = buffers.unwrap_or_else(PoisonError::into_inner);
        let mut history: Vec<Operation> = buffers.into_iter().flatten().collect();
        history.sort_by_key(|operation| operation.invoke);
        history
    }
}

impl ClientLog<'_> {
    /// Records that an operation is invoked now.
    pub fn begin(&mut self, key: &str, call: Call) -> Result<Ticket, Full> {
        // The clock is read last, so that the record's own cost stays outside the interval.
        let ticket = self.begin_at(key, call, 0)?;
        self.operations[ticket.0].invoke = self.recorder.now();
        Ok(ticket)
    }

    /// Records that an operation is invoked at a time of the caller's clock.
    pub fn begin_at(&mut self, key: &str, call: Call, invoke: u64) -> Result<Ticket, Full> {
        if self.operations.len() >= self.recorder.capacity {
            return Err(Full {
                capacity: self.recorder.capacity,
            });
        }
        self.operations.push(Operation {
            client: self.client,
            key: key.to_owned(),
            call,
            invoke,
            outcome: Outcome::Unknown,
        });
        Ok(Ticket(self.operations.len() - 1))
    }

    /// Records that an operation returns now with this answer.
    pub fn ok(&mut self, ticket: Ticket, reply: Reply) {
        let at = self.recorder.now();
        self.end(ticket, Outcome::Ok { at, reply });
    }

    /// Records that an operation is known not to have happened, as of now.
    pub fn fail(&mut self, ticket: Ticket) {
        let at = self.recorder.now();
        self.end(ticket, Outcome::Fail { at });
    }

    /// Records an outcome at a time of the caller's clock.
    pub fn end(&mut self, ticket: Ticket, outcome: Outcome) {
        if let Some(operation) = self.operations.get_mut(ticket.0) {
            operation.outcome = outcome;
        }
    }
}

impl Drop for ClientLog<'_> {
    fn drop(&mut self) {
        let operations = std::mem::take(&mut self.operations);
        let mut done = self
            .recorder
            .done
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        done.push(operations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_threads_are_merged_by_time() {
        let recorder = Recorder::new(100);
        std::thread::scope(|scope| {
            for client in 0..4 {
                let recorder = &recorder;
                scope.spawn(move || {
                    let mut log = recorder.client(client);
                    for _ in 0..50 {
                        let ticket = log.begin("k", Call::Get).unwrap();
                        log.ok(ticket, Reply::Nil);
                    }
                });
            }
        });
        let history = recorder.into_history();
        assert_eq!(history.len(), 200);
        assert!(history.is_sorted_by_key(|operation| operation.invoke));
        let sane = |o: &Operation| o.returned().is_some_and(|at| at >= o.invoke);
        assert!(history.iter().all(sane));
    }

    #[test]
    fn an_operation_without_an_answer_is_unknown() {
        let recorder = Recorder::new(8);
        let mut log = recorder.client(7);
        let set = Call::Set { value: "v".into() };
        let _lost = log.begin_at("k", set, 5).unwrap();
        let refused = log.begin_at("k", Call::Del, 6).unwrap();
        log.fail(refused);
        drop(log);
        let history = recorder.into_history();
        assert_eq!(history[0].outcome, Outcome::Unknown);
        assert!(matches!(history[1].outcome, Outcome::Fail { .. }));
    }

    #[test]
    fn a_full_buffer_says_so_before_the_operation_is_sent() {
        let recorder = Recorder::new(2);
        let mut log = recorder.client(0);
        for _ in 0..2 {
            let ticket = log.begin("k", Call::Get).unwrap();
            log.ok(ticket, Reply::Nil);
        }
        assert_eq!(log.begin("k", Call::Get).unwrap_err(), Full { capacity: 2 });
    }
}
