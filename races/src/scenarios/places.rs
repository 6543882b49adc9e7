//! A copy of two words that a thread reads while another one puts the next, and drops that.

use super::places::Places;
use crate::Scenario;
use loom::thread;
use rackmem_proto::bi::cached::HeldItem;
use std::sync::Arc;

pub const ALL: &[Scenario] = &[("a copy that is replaced while it is read", replaced)];

fn put(places: &Places, number: u64) {
    let change = |held: &mut HeldItem<()>| {
        let kept = held.put((), number, 0, None);
        (kept, kept)
    };
    places.change(0, change, |_| number);
}

fn replaced() {
    let places = Arc::new(Places::new(1, 2));
    put(&places, 1);
    let there = places.clone();
    let writer = thread::spawn(move || {
        put(&there, 2);
        there.change(0, |held| (held.hear(3), false), |_| 0);
    });
    let mut last = 0;
    for _ in 0..2 {
        let mut seen = [0; 2];
        if places.read(0, |at, word| seen[at] = word) {
            assert_eq!(seen[0], seen[1], "parts of two copies");
            assert!(seen[0] >= last, "a copy goes back");
            last = seen[0];
        }
    }
    writer.join().expect("it replaces");
}
