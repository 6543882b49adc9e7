//! A network on which every packet is late: what a datacentre across a town has,
//! or a machine whose processors are busy.

use crate::{MODES, NODES};
use rackmem::diagnostics::Faults;
use rackmem::locked::Mutex;
use rackmem::{Fabric, Rack};
use std::time::Duration;

/// Every packet is held back, by 25 ms in the mean: a hand-over is some of these.
const LATE: Faults = Faults {
    delay: 1.0,
    delay_up_to: Duration::from_millis(50),
    ..Faults::NONE
};
const EACH: u64 = 10;

#[test]
fn locks_and_blocks_change_hands_where_every_packet_is_late() {
    for mode in MODES {
        let rack = Rack::builder(NODES).fabric(Fabric::Udp).mode(mode);
        let rack = rack.patience(Duration::from_secs(60)).faults(LATE);
        let rack = rack.build().unwrap();
        let made: Mutex<u64> = Mutex::create(&rack.node(1), 0).unwrap();
        let words = rack.node(1).alloc_bytes_on(1, 64).unwrap();
        std::thread::scope(|scope| {
            for id in 0..NODES {
                let (node, addr) = (rack.node(id), made.addr());
                scope.spawn(move || {
                    let mutex: Mutex<u64> = Mutex::attach(&node, addr).unwrap();
                    for _ in 0..EACH {
                        let mut held = mutex.lock_within(Duration::from_secs(60)).unwrap();
                        let held = held.as_mut().expect("a lock that others leave at once");
                        held.update(|n| n + 1);
                        node.fetch_add(words, 1).unwrap();
                    }
                });
            }
        });
        let sum = EACH * NODES as u64;
        assert_eq!(made.lock().unwrap().get(), sum);
        assert_eq!(rack.node(0).load(words).unwrap(), sum);
    }
}
