//! What threads were told, as a history of counters, and whether one memory could have told it.

use super::block::COUNTERS;
use super::oracle::Oracle;
use crate::history::{Call, Operation, Outcome, Reply};
use crate::linear::{Limits, Verdict, check};
use rackmem_proto::wire::Tag;

/// Configurations that the check of one key may visit.
const LIMITS: Limits = Limits {
    configurations: 200_000,
};

/// A recorder.
#[derive(Default)]
pub struct Record {
    operations: Vec<Operation>,
    on: bool,
}

/// An operation that is recorded as begun and not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(usize);

fn key(oracle: &Oracle, tag: Tag, counter: usize) -> String {
    let (generation, counter) = (oracle.generation(tag), counter % COUNTERS);
    format!("{:x}.{counter} generation {generation}", tag.0)
}

fn shown(value: u64) -> Reply {
    match value {
        0 => Reply::Nil,
        value => Reply::Text(value.to_string()),
    }
}

impl Record {
    /// Records, or does not.
    pub fn new(on: bool) -> Self {
        let operations = Vec::new();
        Record { operations, on }
    }

    fn begin(&mut self, client: u32, key: String, call: Call, invoke: u64) -> Option<Ticket> {
        if !self.on {
            return None;
        }
        let outcome = Outcome::Unknown;
        self.operations.push(Operation {
            client,
            key,
            call,
            invoke,
            outcome,
        });
        Some(Ticket(self.operations.len() - 1))
    }

    /// A read took place; its thread has not been told.
    pub fn read(
        &mut self,
        client: u32,
        oracle: &Oracle,
        (tag, counter): (Tag, usize),
        invoke: u64,
    ) -> Option<Ticket> {
        let key = key(oracle, tag, counter);
        self.begin(client, key, Call::Get, invoke)
    }

    /// A store of a value took place, or may yet.
    pub fn write(
        &mut self,
        client: u32,
        oracle: &Oracle,
        (tag, counter): (Tag, usize),
        invoke: u64,
        value: u64,
    ) -> Option<Ticket> {
        let key = key(oracle, tag, counter);
        let value = value.to_string();
        self.begin(client, key, Call::Set { value }, invoke)
    }

    /// An increment took place, or may yet.
    pub fn add(
        &mut self,
        client: u32,
        oracle: &Oracle,
        (tag, counter): (Tag, usize),
        invoke: u64,
    ) -> Option<Ticket> {
        let key = key(oracle, tag, counter);
        self.begin(client, key, Call::Incr { by: 1 }, invoke)
    }

    /// The thread has been told: the value that is there, after its operation.
    pub fn told(&mut self, ticket: Option<Ticket>, at: u64, value: u64) {
        let Some(operation) = ticket.and_then(|t| self.operations.get_mut(t.0)) else {
            return;
        };
        let reply = match operation.call {
            Call::Get => shown(value),
            Call::Incr { .. } => Reply::Int(value as i64),
            _ => Reply::Nil,
        };
        operation.outcome = Outcome::Ok { at, reply };
    }

    /// A new generation of a block begins with this.
    pub fn begin_generation(&mut self, oracle: &Oracle, tag: Tag, now: u64) {
        for (counter, value) in oracle.expected(tag).into_iter().enumerate() {
            if value != 0 {
                let ticket = self.write(u32::MAX, oracle, (tag, counter), now, value);
                self.told(ticket, now, value);
            }
        }
    }

    /// Operations recorded.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// What is wrong with the history, if anything is.
    pub fn judge(&self) -> Option<String> {
        match check(&self.operations, LIMITS) {
            Verdict::Violation(found) => Some(found.to_string()),
            Verdict::Linearizable(_) | Verdict::GaveUp { .. } => None,
        }
    }
}
