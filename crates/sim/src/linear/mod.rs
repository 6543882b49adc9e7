//! Is a history linearizable?
//!
//! A history is linearizable when every operation can be given one instant between its invocation
//! and its return such that, done one at a time in the order of these instants,
//! each returns what it did return (Herlihy and Wing). Keys are independent,
//! so each is judged alone.
//!
//! The search is Wing and Gong's with Lowe's memory of configurations visited: a depth-first walk
//! over *(operations done so far, state of the register)*. It never recurses,
//! and remembers 16 bytes a configuration up to a limit; beyond it the answer is
//! [`Verdict::GaveUp`], never a guess. `search.rs` says what keeps it fast. A hundred thousand
//! reads and writes of one key by 16 clients take a fraction of a second; what stays hard is a key
//! under dozens of clients at once that mix increments, removals and appends,
//! or many increments of unknown outcome.
//!
//! Where no order exists, [`Counterexample`] shows the last few operations that already contradict
//! each other, whatever came before them.

mod by_key;
mod demand;
mod explain;
mod model;
mod problem;
mod register;
mod search;
mod seen;

pub use by_key::ByKey;
pub use explain::Counterexample;
pub use model::{Effect, Makes, Model};
pub use register::{Register, RegisterOp, RegisterState};

use crate::history::Operation;
use search::Answer;
use std::fmt;

/// How much a check may spend.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Configurations remembered for one key: about 20 bytes each, 40 where outcomes are unknown.
    pub configurations: usize,
}

impl Default for Limits {
    /// What fills a hash table of 2^23 slots: about 140 MiB at the worst.
    fn default() -> Self {
        Limits {
            configurations: 7 << 20,
        }
    }
}

/// What a check found.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Every key's operations have an order that explains them.
    Linearizable(Summary),
    /// One key's do not.
    Violation(Box<Counterexample>),
    /// The limit was reached before an answer was.
    GaveUp {
        /// The key that was too hard.
        key: String,
        /// Its operations.
        operations: usize,
        /// Configurations visited.
        configurations: usize,
    },
}

impl Verdict {
    /// `true` for [`Verdict::Linearizable`].
    pub fn is_linearizable(&self) -> bool {
        matches!(self, Verdict::Linearizable(_))
    }
}

/// What a person reads: the contradiction itself, where there is one.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Linearizable(summary) => write!(
                f,
                "linearizable: {} operations on {} keys",
                summary.operations, summary.keys
            ),
            Verdict::Violation(found) => write!(f, "not linearizable\n{found}"),
            Verdict::GaveUp {
                key,
                operations,
                configurations,
            } => write!(
                f,
                "gave up on key {key:?} with {operations} operations after {configurations} configurations"
            ),
        }
    }
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Keys.
    pub keys: usize,
    /// Operations that happened or may have.
    pub operations: usize,
    /// Configurations visited by the search, at least one an operation that happened.
    pub configurations: usize,
}

/// Judges a history of registers that all start without a value.
pub fn check(history: &[Operation], limits: Limits) -> Verdict {
    let mut keys = ByKey::default();
    history
        .iter()
        .cloned()
        .for_each(|operation| keys.add(operation));
    keys.check(limits, |_| ())
}

enum KeyVerdict {
    Linearizable { configurations: usize },
    Violation(Box<Counterexample>),
    GaveUp { configurations: usize },
}

/// What the first attempt may spend: a few configurations an operation are enough where all is
/// well, and where it is not, looking at short stretches finds out sooner than going through
/// everything.
const FIRST_ATTEMPT: usize = 20_000;
const FIRST_ATTEMPT_PER_OPERATION: usize = 4;

fn check_key(operations: &[&Operation], limits: Limits) -> KeyVerdict {
    let mut model = Register::default();
    let timed = problem::timed(&mut model, operations);
    let first = FIRST_ATTEMPT + FIRST_ATTEMPT_PER_OPERATION * timed.len();
    let first = Limits {
        configurations: first.min(limits.configurations),
    };
    let mut result = problem::solve(&mut model, &timed, RegisterState::ABSENT, first);
    if result.answer != Answer::Found
        && let Some(found) = explain::suspected(&mut model, operations, &timed)
    {
        return KeyVerdict::Violation(Box::new(found));
    }
    if result.answer == Answer::GaveUp && first.configurations < limits.configurations {
        result = problem::solve(&mut model, &timed, RegisterState::ABSENT, limits);
    }
    let configurations = result.configurations;
    match result.answer {
        Answer::Found => KeyVerdict::Linearizable { configurations },
        Answer::GaveUp => KeyVerdict::GaveUp { configurations },
        Answer::Impossible => {
            let found = explain::proved(&mut model, operations, &timed, limits);
            KeyVerdict::Violation(Box::new(found))
        }
    }
}
