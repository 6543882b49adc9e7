//! Histories to judge: taken from a register that works, and an oracle too simple to be wrong.

use std::collections::HashMap;

use rackmem_sim::history::{Call, Operation, Outcome, Reply};

/// The shape of a generated history.
#[derive(Clone, Copy)]
pub struct Shape {
    pub clients: u32,
    pub operations: usize,
    pub keys: usize,
    /// Different values that writes store; few of them make an ambiguous history.
    pub values: u64,
    /// One operation in so many has an unknown outcome; 0 for none.
    pub one_unknown_in: usize,
    /// Whether operations other than `get` and `set` occur.
    pub rich: bool,
}

pub const PLAIN: Shape = Shape {
    clients: 8,
    operations: 400,
    keys: 2,
    values: u64::MAX,
    one_unknown_in: 0,
    rich: false,
};

/// What real clients of atomic registers would have recorded: every operation takes effect at one
/// random instant between its invocation and its return.
pub fn atomic_history(rng: &mut fastrand::Rng, shape: Shape) -> Vec<Operation> {
    let mut clocks = vec![0u64; shape.clients as usize];
    let mut drafts: Vec<(u64, u64, Operation)> = Vec::with_capacity(shape.operations);
    for number in 0..shape.operations {
        let client = number % clocks.len();
        let invoke = clocks[client] + rng.u64(1..50);
        let point = invoke + rng.u64(0..100);
        let returned = point + rng.u64(0..100);
        clocks[client] = returned;
        let call = match shape.rich {
            true => rich_call(rng, shape.values, number),
            false => plain_call(rng, shape.values, number),
        };
        let operation = Operation {
            client: client as u32,
            key: format!("key-{}", rng.usize(0..shape.keys)),
            call,
            invoke,
            outcome: Outcome::Unknown,
        };
        drafts.push((point, returned, operation));
    }
    drafts.sort_by_key(|draft| draft.0);
    let mut registers: HashMap<String, Option<String>> = HashMap::new();
    for (_, at, operation) in &mut drafts {
        let lost = shape.one_unknown_in > 0 && rng.usize(0..shape.one_unknown_in) == 0;
        if lost && rng.bool() {
            continue;
        }
        let register = registers.entry(operation.key.clone()).or_default();
        let outcome = match apply(register, &operation.call) {
            Some(reply) => Outcome::Ok { at: *at, reply },
            None => Outcome::Fail { at: *at },
        };
        if !lost {
            operation.outcome = outcome;
        }
    }
    drafts.into_iter().map(|draft| draft.2).collect()
}

fn value(rng: &mut fastrand::Rng, values: u64, number: usize) -> String {
    match values {
        u64::MAX => number.to_string(),
        few => rng.u64(0..few).to_string(),
    }
}

fn plain_call(rng: &mut fastrand::Rng, values: u64, number: usize) -> Call {
    match rng.bool() {
        true => Call::Get,
        false => Call::Set {
            value: value(rng, values, number),
        },
    }
}

pub fn rich_call(rng: &mut fastrand::Rng, values: u64, number: usize) -> Call {
    let new = value(rng, values, number);
    match rng.u32(0..11) {
        0..=2 => Call::Get,
        3 => Call::Set { value: new },
        4 => Call::Swap { value: new },
        5 => Call::Del,
        10 => Call::Clear,
        6 | 7 => Call::Incr { by: rng.i64(-2..3) },
        8 => Call::Cas {
            expected: rng.bool().then(|| rng.u64(0..3).to_string()),
            value: new,
        },
        _ => Call::Append { value: new },
    }
}

/// The register, in the plainest words. `None` where the operation fails without effect.
pub fn apply(register: &mut Option<String>, call: &Call) -> Option<Reply> {
    let text = |value: Option<String>| value.map_or(Reply::Nil, Reply::Text);
    Some(match call {
        Call::Get => text(register.clone()),
        Call::Set { value } => {
            *register = Some(value.clone());
            Reply::Nil
        }
        Call::Swap { value } => text(register.replace(value.clone())),
        Call::Del => Reply::Bool(register.take().is_some()),
        Call::Clear => {
            *register = None;
            Reply::Nil
        }
        Call::Incr { by } => {
            let old: i64 = register.as_deref().unwrap_or("0").parse().ok()?;
            let new = old.checked_add(*by)?;
            *register = Some(new.to_string());
            Reply::Int(new)
        }
        Call::Cas { expected, value } => {
            let equal = register == expected;
            if equal {
                *register = Some(value.clone());
            }
            Reply::Bool(equal)
        }
        Call::Append { value } => {
            let all = register.take().unwrap_or_default() + value;
            let length = all.len() as i64;
            *register = Some(all);
            Reply::Int(length)
        }
    })
}

/// Whether there is an order, found by trying all of them; for a handful of operations on one key.
pub fn oracle(history: &[Operation]) -> bool {
    let happened = |o: &&Operation| !matches!(o.outcome, Outcome::Fail { .. });
    let operations: Vec<&Operation> = history.iter().filter(happened).collect();
    try_orders(&operations, &mut vec![false; operations.len()], &None)
}

fn try_orders(operations: &[&Operation], placed: &mut [bool], register: &Option<String>) -> bool {
    let waiting = |i: &usize| !placed[*i];
    let deadline = (0..operations.len())
        .filter(waiting)
        .filter_map(|i| operations[i].returned())
        .min();
    let Some(deadline) = deadline else {
        return true;
    };
    let candidates: Vec<usize> = (0..operations.len())
        .filter(waiting)
        .filter(|&i| operations[i].invoke <= deadline)
        .collect();
    candidates.into_iter().any(|i| {
        let mut after = register.clone();
        let reply = apply(&mut after, &operations[i].call);
        let fits = match &operations[i].outcome {
            Outcome::Ok { reply: told, .. } => reply.as_ref() == Some(told),
            _ => reply.is_some(),
        };
        if !fits {
            return false;
        }
        placed[i] = true;
        let found = try_orders(operations, placed, &after);
        placed[i] = false;
        found
    })
}
