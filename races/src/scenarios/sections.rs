//! Memory that a section may read is not given out: a thread that reads what leads to it, and one
//! that leads elsewhere and waits for sections.

use super::open_sections::OpenSections;
use crate::Scenario;
use crate::sync::{AtomicU64, Ordering::SeqCst, yield_now};
use loom::thread;
use std::sync::Arc;

pub const ALL: &[Scenario] = &[("memory is reused beside a section", reused)];

struct Shared {
    open: OpenSections<1>,
    /// Which of two objects is in place.
    word: AtomicU64,
    /// The first object: 0, and 1 when its memory is something else.
    object: AtomicU64,
}

fn reused() {
    let shared = Arc::new(Shared {
        open: OpenSections::new(),
        word: AtomicU64::new(0),
        object: AtomicU64::new(0),
    });
    let there = shared.clone();
    // The reader is this thread: with one preemption less, a late one meets two turns.
    let writer = thread::spawn(move || {
        // After a turn before, a thread that was late for it would be counted where nobody looks.
        for last in [false, true] {
            if last {
                there.word.store(1, SeqCst);
            }
            let turned = there.open.turn().expect("all threads are known");
            while !there.open.have_ended(turned) {
                yield_now();
            }
        }
        there.object.store(1, SeqCst);
    });
    let counted = shared.open.enter(0);
    if shared.word.load(SeqCst) == 0 {
        assert_eq!(shared.object.load(SeqCst), 0, "it is reused in a section");
    }
    shared.open.leave(0, counted);
    writer.join().expect("it reuses");
}
