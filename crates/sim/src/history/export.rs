//! Histories in the form that checkers outside have: events of processes, one JSON object a line,
//! in the order of time, as Jepsen and Knossos write them and Porcupine's converters read them.
//!
//! ```json
//! {"index":0,"time":100,"process":0,"type":"invoke","f":"write","value":["a","1"]}
//! {"index":1,"time":180,"process":0,"type":"ok","f":"write","value":["a","1"]}
//! {"index":2,"time":190,"process":1,"type":"invoke","f":"read","value":["a",null]}
//! {"index":3,"time":230,"process":1,"type":"ok","f":"read","value":["a","1"]}
//! ```
//!
//! | here | `f` | `value` of the invocation | of `ok` |
//! |---|---|---|---|
//! | `get` | `read` | `[key, null]` | `[key, value or null]` |
//! | `set` | `write` | `[key, value]` | the same |
//! | `swap` | `swap` | `[key, value]` | `[key, [value, the one before or null]]` |
//! | `del` | `delete` | `[key, null]` | `[key, whether there was a value]` |
//! | `clear` | `write` | `[key, null]` | the same |
//! | `incr` | `add` | `[key, number]` | `[key, [number, the sum]]` |
//! | `cas` | `cas` | `[key, [expected or null, value]]` | the same; where it was not stored: `fail` |
//! | `append` | `append` | `[key, text]` | `[key, [text, the length]]` |
//!
//! A `value` has its key in front, so each key is a register of its own. `fail`: it has not
//! happened. `info`: nobody knows; it is at the end, and its process asks for nothing after that,
//! so a client goes on as another process.

use super::operation::{Call, Operation, Outcome, Reply};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What happens at one moment. Invocations come before what ends at the same one: such two
/// operations overlap, which forbids no order of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    time: u64,
    ends: bool,
    /// Of which operation.
    at: usize,
}

/// Gives processes to the operations of clients.
#[derive(Default)]
struct Processes {
    /// By client: those that ask for nothing just now.
    idle: BTreeMap<u32, Vec<u64>>,
    count: u64,
}

impl Processes {
    fn take(&mut self, client: u32) -> u64 {
        let idle = self.idle.entry(client).or_default();
        idle.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    fn give_back(&mut self, client: u32, process: u64) {
        self.idle.entry(client).or_default().push(process);
    }
}

/// Writes a history as events. Says how many.
///
/// # Errors
/// Those of `into`.
pub fn export(history: &[Operation], mut into: impl Write) -> io::Result<u64> {
    let mut moments = Vec::with_capacity(history.len() * 2);
    for (at, operation) in history.iter().enumerate() {
        let moment = |time, ends| Moment { time, ends, at };
        moments.push(moment(operation.invoke, false));
        // Whoever records may have looked at the clock twice within its grain.
        let returned = operation.returned().map(|time| time.max(operation.invoke));
        moments.extend(returned.map(|time| moment(time, true)));
    }
    moments.sort_unstable();
    let last = moments.last().map_or(0, |moment| moment.time);
    let unknown = (0..history.len()).filter(|at| history[*at].outcome == Outcome::Unknown);
    moments.extend(unknown.map(|at| Moment {
        time: last,
        ends: true,
        at,
    }));
    let (mut processes, mut of) = (Processes::default(), vec![0; history.len()]);
    let mut index = 0u64;
    for Moment { time, ends, at } in moments {
        let operation = &history[at];
        if !ends {
            of[at] = processes.take(operation.client);
        } else if operation.outcome != Outcome::Unknown {
            processes.give_back(operation.client, of[at]);
        }
        let (kind, value) = match ends {
            false => ("invoke", asked(&operation.call)),
            true => ended(operation),
        };
        let event = json!({
            "index": index,
            "time": time,
            "process": of[at],
            "type": kind,
            "f": function(&operation.call),
            "value": [operation.key, value],
        });
        serde_json::to_writer(&mut into, &event)?;
        into.write_all(b"\n")?;
        index += 1;
    }
    into.flush()?;
    Ok(index)
}

fn function(call: &Call) -> &'static str {
    match call {
        Call::Get => "read",
        Call::Set { .. } | Call::Clear => "write",
        Call::Swap { .. } => "swap",
        Call::Del => "delete",
        Call::Incr { .. } => "add",
        Call::Cas { .. } => "cas",
        Call::Append { .. } => "append",
    }
}

fn asked(call: &Call) -> Value {
    match call {
        Call::Get | Call::Del | Call::Clear => Value::Null,
        Call::Set { value } | Call::Swap { value } | Call::Append { value } => json!(value),
        Call::Incr { by } => json!(by),
        Call::Cas { expected, value } => json!([expected, value]),
    }
}

fn told(reply: &Reply) -> Value {
    match reply {
        Reply::Nil => Value::Null,
        Reply::Bool(yes) => json!(yes),
        Reply::Int(number) => json!(number),
        Reply::Text(text) => json!(text),
    }
}

fn ended(operation: &Operation) -> (&'static str, Value) {
    let call = &operation.call;
    let reply = match &operation.outcome {
        Outcome::Ok { reply, .. } => reply,
        Outcome::Fail { .. } => return ("fail", asked(call)),
        Outcome::Unknown => return ("info", asked(call)),
    };
    match call {
        // A register's compare-and-set that has found another value has not happened.
        Call::Cas { .. } if *reply == Reply::Bool(false) => ("fail", asked(call)),
        Call::Set { .. } | Call::Clear | Call::Cas { .. } => ("ok", asked(call)),
        Call::Get | Call::Del => ("ok", told(reply)),
        Call::Swap { .. } | Call::Incr { .. } | Call::Append { .. } => {
            ("ok", json!([asked(call), told(reply)]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(history: &[Operation]) -> Vec<Value> {
        let mut bytes = Vec::new();
        let count = export(history, &mut bytes).unwrap();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|l| !l.is_empty());
        let events: Vec<Value> = lines.map(|l| serde_json::from_slice(l).unwrap()).collect();
        assert_eq!(events.len() as u64, count);
        events
    }

    fn operation(client: u32, call: Call, invoke: u64, outcome: Outcome) -> Operation {
        Operation {
            client,
            key: "a".into(),
            call,
            invoke,
            outcome,
        }
    }

    fn ok(at: u64, reply: Reply) -> Outcome {
        Outcome::Ok { at, reply }
    }

    fn set(value: &str) -> Call {
        Call::Set {
            value: value.into(),
        }
    }

    #[test]
    fn events_are_in_the_order_of_time_and_name_their_process() {
        let history = [
            operation(7, Call::Get, 190, ok(230, Reply::Text("1".into()))),
            operation(3, set("1"), 100, ok(190, Reply::Nil)),
        ];
        let events = events(&history);
        let expected = [
            json!({"index":0,"time":100,"process":0,"type":"invoke","f":"write","value":["a","1"]}),
            json!({"index":1,"time":190,"process":1,"type":"invoke","f":"read","value":["a",null]}),
            json!({"index":2,"time":190,"process":0,"type":"ok","f":"write","value":["a","1"]}),
            json!({"index":3,"time":230,"process":1,"type":"ok","f":"read","value":["a","1"]}),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_process_whose_operation_is_unknown_asks_for_nothing_more() {
        let history = [
            operation(0, set("1"), 100, Outcome::Unknown),
            operation(0, set("2"), 200, Outcome::Fail { at: 210 }),
            operation(0, Call::Get, 220, ok(230, Reply::Nil)),
        ];
        let events = events(&history);
        let kinds: Vec<(&str, u64)> = events
            .iter()
            .map(|e| (e["type"].as_str().unwrap(), e["process"].as_u64().unwrap()))
            .collect();
        let expected = [
            ("invoke", 0),
            ("invoke", 1),
            ("fail", 1),
            ("invoke", 1),
            ("ok", 1),
            ("info", 0),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(events[5]["time"], 230);
    }

    #[test]
    fn a_client_that_asks_for_several_things_at_once_is_several_processes() {
        let history = [
            operation(0, set("1"), 100, ok(300, Reply::Nil)),
            operation(0, set("2"), 200, ok(250, Reply::Nil)),
            operation(0, set("3"), 260, ok(270, Reply::Nil)),
        ];
        let processes: Vec<u64> = events(&history)
            .iter()
            .map(|event| event["process"].as_u64().unwrap())
            .collect();
        assert_eq!(processes, [0, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn every_call_has_a_function_and_says_what_it_was_told() {
        let cas = |expected: Option<&str>| Call::Cas {
            expected: expected.map(str::to_owned),
            value: "2".into(),
        };
        let append = Call::Append { value: "x".into() };
        let rows = [
            (Call::Get, Reply::Nil, "read", "ok", json!(null)),
            (set("1"), Reply::Nil, "write", "ok", json!("1")),
            (Call::Clear, Reply::Nil, "write", "ok", json!(null)),
            (Call::Del, Reply::Bool(true), "delete", "ok", json!(true)),
            (
                Call::Incr { by: 5 },
                Reply::Int(6),
                "add",
                "ok",
                json!([5, 6]),
            ),
            (append, Reply::Int(1), "append", "ok", json!(["x", 1])),
            (
                cas(None),
                Reply::Bool(true),
                "cas",
                "ok",
                json!([null, "2"]),
            ),
            (
                cas(Some("1")),
                Reply::Bool(false),
                "cas",
                "fail",
                json!(["1", "2"]),
            ),
            (
                Call::Swap { value: "2".into() },
                Reply::Text("1".into()),
                "swap",
                "ok",
                json!(["2", "1"]),
            ),
        ];
        for (call, reply, function, kind, value) in rows {
            let events = events(&[operation(0, call, 1, ok(2, reply))]);
            assert_eq!(events[1]["f"], function);
            assert_eq!(events[1]["type"], kind, "{function}");
            assert_eq!(events[1]["value"], json!(["a", value]), "{function}");
        }
    }
}
