//! The flat JSON form of an operation, and what makes one wrong.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::operation::{Call, Operation, Outcome, Reply};

/// A JSON scalar where a value or a result may stand.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Bool(bool),
    Int(i64),
    Text(String),
}

impl Scalar {
    /// Values are text; a number written without quotes is the text of its digits.
    fn into_text(self) -> Option<String> {
        match self {
            Scalar::Bool(_) => None,
            Scalar::Int(number) => Some(number.to_string()),
            Scalar::Text(text) => Some(text),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Get,
    Set,
    Swap,
    Del,
    Clear,
    Incr,
    Cas,
    Append,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Ending {
    Ok,
    Fail,
    Unknown,
}

/// One line of a history file. Unknown fields are allowed, so that recorders may add notes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Line {
    client: u32,
    op: Op,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Scalar>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected: Option<Scalar>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Scalar>,
    invoke: u64,
    #[serde(default, rename = "return", skip_serializing_if = "Option::is_none")]
    returned: Option<u64>,
    outcome: Ending,
}

/// A line that is JSON with the right fields, but no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// The operation needs a `value` of another type, or one at all.
    Value,
    /// `expected` is neither text nor `null`.
    Expected,
    /// The operation cannot have a `result` of this type.
    Result,
    /// An outcome `ok` or `fail` needs a `return` time.
    NoReturn,
    /// It returned before it was invoked.
    ReturnBeforeInvoke,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ShapeError::Value => "`value` is missing or of the wrong type for this `op`",
            ShapeError::Expected => "`expected` must be text or null",
            ShapeError::Result => "`result` is missing or of the wrong type for this `op`",
            ShapeError::NoReturn => "an outcome `ok` or `fail` needs a `return` time",
            ShapeError::ReturnBeforeInvoke => "`return` is earlier than `invoke`",
        })
    }
}

impl std::error::Error for ShapeError {}

impl TryFrom<Line> for Operation {
    type Error = ShapeError;

    fn try_from(line: Line) -> Result<Self, ShapeError> {
        if line.returned.is_some_and(|at| at < line.invoke) {
            return Err(ShapeError::ReturnBeforeInvoke);
        }
        let returned = line.returned.ok_or(ShapeError::NoReturn);
        let outcome = match line.outcome {
            Ending::Ok => Outcome::Ok {
                at: returned?,
                reply: reply(line.op, line.result)?,
            },
            Ending::Fail => Outcome::Fail { at: returned? },
            Ending::Unknown => Outcome::Unknown,
        };
        Ok(Operation {
            client: line.client,
            key: line.key,
            call: call(line.op, line.value, line.expected)?,
            invoke: line.invoke,
            outcome,
        })
    }
}

fn call(op: Op, value: Option<Scalar>, expected: Option<Scalar>) -> Result<Call, ShapeError> {
    let text = |value: Option<Scalar>| value.and_then(Scalar::into_text).ok_or(ShapeError::Value);
    Ok(match op {
        Op::Get => Call::Get,
        Op::Del => Call::Del,
        Op::Clear => Call::Clear,
        Op::Set => Call::Set {
            value: text(value)?,
        },
        Op::Swap => Call::Swap {
            value: text(value)?,
        },
        Op::Append => Call::Append {
            value: text(value)?,
        },
        Op::Incr => match value {
            Some(Scalar::Int(by)) => Call::Incr { by },
            _ => return Err(ShapeError::Value),
        },
        Op::Cas => Call::Cas {
            expected: match expected {
                None => None,
                Some(scalar) => Some(scalar.into_text().ok_or(ShapeError::Expected)?),
            },
            value: text(value)?,
        },
    })
}

fn reply(op: Op, result: Option<Scalar>) -> Result<Reply, ShapeError> {
    Ok(match (op, result) {
        (Op::Set | Op::Clear, _) | (Op::Get | Op::Swap, None) => Reply::Nil,
        (Op::Get | Op::Swap, Some(scalar)) => {
            Reply::Text(scalar.into_text().ok_or(ShapeError::Result)?)
        }
        (Op::Del | Op::Cas, Some(Scalar::Bool(yes))) => Reply::Bool(yes),
        (Op::Incr | Op::Append, Some(Scalar::Int(number))) => Reply::Int(number),
        _ => return Err(ShapeError::Result),
    })
}

impl From<Operation> for Line {
    fn from(operation: Operation) -> Self {
        let returned = operation.returned();
        let text = |value: String| Some(Scalar::Text(value));
        let (op, value, expected) = match operation.call {
            Call::Get => (Op::Get, None, None),
            Call::Del => (Op::Del, None, None),
            Call::Clear => (Op::Clear, None, None),
            Call::Set { value } => (Op::Set, text(value), None),
            Call::Swap { value } => (Op::Swap, text(value), None),
            Call::Append { value } => (Op::Append, text(value), None),
            Call::Incr { by } => (Op::Incr, Some(Scalar::Int(by)), None),
            Call::Cas { expected, value } => (Op::Cas, text(value), expected.map(Scalar::Text)),
        };
        let (outcome, result) = match operation.outcome {
            Outcome::Ok { reply, .. } => (Ending::Ok, scalar(reply)),
            Outcome::Fail { .. } => (Ending::Fail, None),
            Outcome::Unknown => (Ending::Unknown, None),
        };
        Line {
            client: operation.client,
            op,
            key: operation.key,
            value,
            expected,
            result,
            invoke: operation.invoke,
            returned,
            outcome,
        }
    }
}

fn scalar(reply: Reply) -> Option<Scalar> {
    match reply {
        Reply::Nil => None,
        Reply::Bool(yes) => Some(Scalar::Bool(yes)),
        Reply::Int(number) => Some(Scalar::Int(number)),
        Reply::Text(text) => Some(Scalar::Text(text)),
    }
}
