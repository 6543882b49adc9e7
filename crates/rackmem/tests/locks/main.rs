//! Locks that are coherence, on real threads and real fabrics.

mod api;
mod deaths;
mod exclusion;
mod history;
mod packets;

use rackmem::{Fabric, Faults, Rack};
use std::time::{Duration, Instant};

const NODES: usize = 3;

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Udp, Fabric::Shm];

/// Loses, doubles and delays packets.
const ROUGH: Faults = Faults {
    loss: 0.02,
    duplication: 0.02,
    delay: 0.02,
    delay_up_to: Duration::from_millis(1),
    ..Faults::NONE
};

fn rack(fabric: Fabric, faults: Option<Faults>) -> Rack {
    let rack = Rack::builder(NODES)
        .fabric(fabric)
        .mtu(1500)
        .cache(1 << 20)
        .memory(64 << 20);
    let rack = match faults {
        Some(faults) => rack.faults(faults),
        None => rack,
    };
    rack.build().expect("the rack starts")
}

/// Waits until something is so, which it will be.
fn until(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never is");
        std::thread::yield_now();
    }
}
