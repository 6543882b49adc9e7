//! Going through a scenario.

use crate::{Scenario, steps};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How often a thread is interrupted that could go on, in one run:
/// defects of this kind need one or two.
pub const PREEMPTIONS: usize = 3;

/// Steps of one run: more are a loop that does not end.
const STEPS: usize = 5_000;

/// What has become of a scenario.
#[derive(Clone, Debug)]
pub struct Explored {
    /// Orders that were gone through.
    pub orders: usize,
    /// What did not hold in the last of them.
    pub violation: Option<String>,
}

/// Goes through every order of a scenario's steps, to the first in which something does not hold.
pub fn explore((_, body): Scenario) -> Explored {
    let orders = Arc::new(AtomicUsize::new(0));
    let counted = orders.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.max_branches = STEPS;
    let check = || {
        builder.check(move || {
            counted.fetch_add(1, Relaxed);
            steps::begin();
            body();
        });
    };
    let violation = catch_unwind(AssertUnwindSafe(check)).err().map(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "it panicked".into()) + &steps::told()
    });
    Explored {
        orders: orders.load(Relaxed),
        violation,
    }
}
