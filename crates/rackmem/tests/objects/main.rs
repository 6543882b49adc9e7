//! Objects: what programs see of them, on every fabric, with and without a switch.

#[path = "../support/child.rs"]
mod child;
mod contracts;
#[path = "../support/executor.rs"]
mod executor;
mod futures;
mod handles;
mod making_futures;
mod many;
mod map;
mod map_futures;
mod mapped;
mod mixed;
mod processes;
mod removal;
mod removers;
mod tears;
mod together;
mod transaction_futures;
mod transactions;

use rackmem::{Contract, Fabric, Mode, Rack, Region, RegionSpec};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Shm, Fabric::Udp];
/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

fn rack(fabric: Fabric, mode: Mode, nodes: usize) -> Rack {
    let rack = Rack::builder(nodes).fabric(fabric).mode(mode);
    let rack = rack.memory(64 << 20).cache(1 << 20).patience(LONG);
    rack.build().unwrap()
}

/// A region of objects at this node.
fn region(rack: &Rack, node: usize, name: &str) -> Region {
    let spec = RegionSpec::new(name, 4 << 20).contract(Contract::Object);
    rack.node(node).create_region(&spec).unwrap()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
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
