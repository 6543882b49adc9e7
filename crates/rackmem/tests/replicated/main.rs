//! Regions with copies: what programs see of them, on every fabric, with and without a switch, and
//! while members die.

mod contracts;
mod durable;
mod durable_homes;
mod embedded;
#[path = "../support/executor.rs"]
mod executor;
mod futures;
mod growing;
mod history;
mod homes;
mod homes_left;
mod homes_removed;
mod locks;
mod maps;
mod members;
mod names;
mod objects;
mod objects_removed;
mod pages;
mod paging;
mod removing;
mod rounds;

use rackmem::{Fabric, Mode, Rack};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Shm, Fabric::Udp];
const MODES: [Mode; 2] = [Mode::HomeOnly, Mode::Switch];
/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

fn rack(fabric: Fabric, mode: Mode, nodes: usize) -> Rack {
    let rack = Rack::builder(nodes).fabric(fabric).mode(mode);
    let rack = rack.memory(64 << 20).cache(1 << 20).patience(LONG);
    rack.build().unwrap()
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Threads stop when this goes, also by a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
