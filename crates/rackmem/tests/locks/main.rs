//! Locks that are coherence, on real threads and real fabrics.

mod api;
mod array;
mod condvar;
mod crowd;
mod deaths;
mod exclusion;
#[path = "../support/executor.rs"]
mod executor;
mod forged;
mod freeing;
mod guards;
mod history;
mod late;
mod packets;
mod pressure;
mod resting;

use rackmem::diagnostics::Faults;
use rackmem::{Fabric, Mode, Rack};
use std::time::{Duration, Instant};

const NODES: usize = 3;

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Udp, Fabric::Shm];

/// Loses, doubles and delays packets.
const ROUGH: Faults = Faults::rough(0.02);

/// With the directory at the switch, and at homes.
const MODES: [Mode; 2] = [Mode::Switch, Mode::HomeOnly];

/// Whether the switch has served locks, if there is one, and kept the rules of its pipeline.
fn check_switch(rack: &Rack) {
    if let Some(switch) = rack.switch() {
        let counters = switch.lock_counters();
        assert!(counters.served > 0, "{counters:?}");
        assert_eq!(counters.violations, 0);
    }
}

fn rack(fabric: Fabric, mode: Mode, faults: Option<Faults>) -> Rack {
    let rack = Rack::builder(NODES)
        .fabric(fabric)
        .mode(mode)
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
fn until(mut what: impl FnMut() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never is");
        // Those who look all the time keep others from the processor, and from leases that have to
        // be renewed.
        std::thread::sleep(Duration::from_millis(1));
    }
}
