//! Planted defects, and where each must be noticed.

use rackmem_sim::driver::Report;
use std::fmt::Debug;

/// Each defect is noticed in the scenario beside it, by the promise that is broken there.
pub fn all_noticed<D: Copy + Debug>(
    noticed: &[(D, &str, &str)],
    explored: impl Fn(&str, D) -> Report,
) {
    let mut wrong = Vec::new();
    for (defect, name, promise) in noticed {
        match explored(name, *defect).violation() {
            Some(violation) if violation.invariant == *promise => {}
            Some(other) => wrong.push(format!("{defect:?} in {name}: {other}")),
            None => wrong.push(format!("{defect:?} is not noticed in {name}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
