//! One operation of a history.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::line::Line;

/// What a client asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Read the value.
    Get,
    /// Store a value whatever was there.
    Set {
        /// The new value.
        value: String,
    },
    /// Store a value and return the one before.
    Swap {
        /// The new value.
        value: String,
    },
    /// Remove the value.
    Del,
    /// Remove the value, as one of many: whether there was one is not told.
    Clear,
    /// Add to the value taken as a decimal integer, where none counts as 0.
    Incr {
        /// What is added.
        by: i64,
    },
    /// Store a value if the one there is the expected one.
    Cas {
        /// What must be there, `None` for no value.
        expected: Option<String>,
        /// The new value.
        value: String,
    },
    /// Add text to the end of the value, where none counts as empty.
    Append {
        /// What is added.
        value: String,
    },
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// There is no value, or nothing to tell (`set`).
    Nil,
    /// Yes or no (`del`, `cas`).
    Bool(bool),
    /// An integer (`incr`, `append`).
    Int(i64),
    /// A value (`get`, `swap`).
    Text(String),
}

/// What a client knows about its operation in the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It happened, between its invocation and this return.
    Ok {
        /// When the answer came, in nanoseconds.
        at: u64,
        /// The answer.
        reply: Reply,
    },
    /// It did not happen and never will.
    Fail {
        /// When the refusal came, in nanoseconds.
        at: u64,
    },
    /// It may have happened, may still happen at any later time, or never.
    Unknown,
}

/// One operation of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Line", into = "Line")]
pub struct Operation {
    /// Who asked.
    pub client: u32,
    /// The key it is about; operations on different keys are independent.
    pub key: String,
    /// What was asked for.
    pub call: Call,
    /// When, in nanoseconds on the clock of the whole history.
    pub invoke: u64,
    /// What came of it.
    pub outcome: Outcome,
}

impl Operation {
    /// When the answer came, if one did.
    pub fn returned(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Ok { at, .. } | Outcome::Fail { at } => Some(at),
            Outcome::Unknown => None,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Get => write!(f, "get"),
            Call::Set { value } => write!(f, "set {value:?}"),
            Call::Swap { value } => write!(f, "swap {value:?}"),
            Call::Del => write!(f, "del"),
            Call::Clear => write!(f, "clear"),
            Call::Incr { by } => write!(f, "incr {by}"),
            Call::Cas {
                expected: None,
                value,
            } => write!(f, "cas nil, {value:?}"),
            Call::Cas {
                expected: Some(old),
                value,
            } => write!(f, "cas {old:?}, {value:?}"),
            Call::Append { value } => write!(f, "append {value:?}"),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Nil => write!(f, "nil"),
            Reply::Bool(yes) => write!(f, "{yes}"),
            Reply::Int(number) => write!(f, "{number}"),
            Reply::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// `set "a"`, `get -> "a"`, `incr 2 -> ?` (unknown), `del -> failed`.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.call)?;
        match (&self.outcome, &self.call) {
            (Outcome::Ok { .. }, Call::Set { .. }) => Ok(()),
            (Outcome::Ok { reply, .. }, _) => write!(f, " -> {reply}"),
            (Outcome::Fail { .. }, _) => write!(f, " -> failed"),
            (Outcome::Unknown, _) => write!(f, " -> ?"),
        }
    }
}
