//! Histories too large to be held whole: gathered by key as they are read, and judged key by key.

use super::{KeyVerdict, Limits, Summary, Verdict, check_key};
use crate::history::{Operation, Outcome};
use std::collections::BTreeMap;

/// Operations by key. Those that failed are left out, and a key is kept once.
#[derive(Clone, Debug, Default)]
pub struct ByKey {
    keys: BTreeMap<String, Vec<Operation>>,
}

impl ByKey {
    /// Adds an operation; they may come in any order.
    pub fn add(&mut self, mut operation: Operation) {
        if matches!(operation.outcome, Outcome::Fail { .. }) {
            return;
        }
        let key = std::mem::take(&mut operation.key);
        self.keys.entry(key).or_default().push(operation);
    }

    /// Judges what was added, as [`super::check`] does; `each` is told of every key before it is
    /// looked at. Memory is given back key by key.
    pub fn check(self, limits: Limits, mut each: impl FnMut(&str)) -> Verdict {
        let mut summary = Summary::default();
        for (key, operations) in self.keys {
            each(&key);
            let borrowed: Vec<&Operation> = operations.iter().collect();
            match check_key(&borrowed, limits) {
                KeyVerdict::Linearizable { configurations } => {
                    summary.keys += 1;
                    summary.operations += operations.len();
                    summary.configurations += configurations;
                }
                KeyVerdict::Violation(mut found) => {
                    for operation in &mut found.operations {
                        operation.key.clone_from(&key);
                    }
                    found.key = key;
                    return Verdict::Violation(found);
                }
                KeyVerdict::GaveUp { configurations } => {
                    return Verdict::GaveUp {
                        key,
                        operations: operations.len(),
                        configurations,
                    };
                }
            }
        }
        Verdict::Linearizable(summary)
    }
}
