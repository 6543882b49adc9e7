//! What the threads of a scenario did in the order that is gone through,
//! to tell when something does not hold.

use std::cell::RefCell;
use std::fmt::Write;

/// Steps that are told: the last ones.
const TOLD: usize = 60;

/// An access of an atomic.
struct Step {
    thread: String,
    /// Which atomic, by the order in which they were made.
    object: usize,
    what: &'static str,
    value: u64,
}

thread_local! {
    // All threads of a scenario are turns of one thread of the system.
    static STEPS: RefCell<(usize, Vec<Step>)> = const { RefCell::new((0, Vec::new())) };
}

/// Another order begins.
pub(crate) fn begin() {
    STEPS.with_borrow_mut(|(objects, steps)| {
        *objects = 0;
        steps.clear();
    });
}

/// A number for a new atomic.
pub(crate) fn object() -> usize {
    STEPS.with_borrow_mut(|(objects, _)| {
        *objects += 1;
        *objects
    })
}

/// Notes a step.
pub(crate) fn note(object: usize, what: &'static str, value: u64) {
    let thread = format!("{:?}", loom::thread::current().id());
    STEPS.with_borrow_mut(|(_, steps)| {
        steps.push(Step {
            thread,
            object,
            what,
            value,
        });
    });
}

/// The last steps, a line each.
pub(crate) fn told() -> String {
    STEPS.with_borrow(|(_, steps)| {
        let mut text = String::new();
        for step in &steps[steps.len().saturating_sub(TOLD)..] {
            let Step {
                thread,
                object,
                what,
                value,
            } = step;
            let _ = write!(text, "\n  {thread} {what} #{object}: {value:#x}");
        }
        text
    })
}
