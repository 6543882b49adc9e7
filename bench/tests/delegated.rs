//! Delegation on real nodes: every operation takes effect once, also where packets are lost,
//! doubled and late.

use rackmem::diagnostics::Faults;
use rackmem::guest::{Body, Guest, Header, Net, Receiver};
use rackmem::{AccessError, Fabric, Rack, RackError};
use rackmem_bench::delegated;
use std::sync::Arc;
use std::time::Duration;

const BYTES: usize = 4096;

/// All nodes add to one word; nothing is lost and nothing happens twice.
fn count(rack: &Rack, each: u64) {
    let addr = 1 << 48 | 64;
    std::thread::scope(|scope| {
        for node in rack.nodes() {
            scope.spawn(move || {
                for _ in 0..each {
                    delegated::fetch_add(node, addr, 1).unwrap();
                }
            });
        }
    });
    for node in rack.nodes() {
        assert_eq!(delegated::load(node, addr).unwrap(), 3 * each);
    }
    delegated::store(&rack.node(2), addr, 7).unwrap();
    assert_eq!(delegated::load(&rack.node(0), addr).unwrap(), 7);
    let asked: u64 = rack
        .metrics()
        .nodes
        .iter()
        .map(|node| node.events.asked)
        .sum();
    assert_eq!(asked, 3 * each + 5, "each question counts once");
}

#[test]
fn words_change_once_over_every_fabric() {
    for fabric in [Fabric::Inline, Fabric::Shm, Fabric::Udp] {
        let rack = Rack::builder(3).fabric(fabric);
        let rack = rack.guests(delegated::guests(BYTES)).build().unwrap();
        count(&rack, 300);
    }
}

#[test]
fn words_change_once_where_packets_are_lost_and_doubled() {
    let faults = Faults {
        loss: 0.1,
        duplication: 0.2,
        delay: 0.2,
        delay_up_to: Duration::from_millis(2),
        seed: 7,
    };
    let rack = Rack::builder(3).fabric(Fabric::Udp).faults(faults);
    let rack = rack.guests(delegated::guests(BYTES)).build().unwrap();
    count(&rack, 100);
}

#[test]
fn a_node_without_a_guest_and_a_word_that_is_not_there_do_not_answer() {
    let soon = Duration::from_millis(50);
    let rack = Rack::builder(2).fabric(Fabric::Udp).patience(soon);
    let with = rack.clone().guests(delegated::guests(64)).build().unwrap();
    // Patience is short here, and a busy machine's answer may be late.
    let answered = (0..200).any(|_| delegated::load(&with.node(0), 1 << 48).is_ok());
    assert!(answered);
    let beyond = delegated::load(&with.node(0), 1 << 48 | 64);
    assert!(
        matches!(
            beyond,
            Err(AccessError::Rack(RackError::Timeout { node: 1 }))
        ),
        "{beyond:?}"
    );
    let without = rack.build().unwrap();
    let nobody = delegated::load(&without.node(0), 1 << 48);
    assert!(
        matches!(
            nobody,
            Err(AccessError::Rack(RackError::Timeout { node: 1 }))
        ),
        "{nobody:?}"
    );
    let nowhere = delegated::load(&without.node(0), 2 << 48);
    assert!(
        matches!(nowhere, Err(AccessError::BadAddress { addr }) if addr == 2 << 48),
        "{nowhere:?}"
    );
}

/// A guest of another type than is asked for.
struct Other;

impl Guest for Other {
    fn packet(&self, _: &dyn Net, _: &Header, _: Body<'_>, _: &mut dyn Receiver) {}
}

#[test]
fn a_guest_is_found_by_its_type() {
    let rack = Rack::builder(1)
        .guests(|_| Arc::new(Other))
        .build()
        .unwrap();
    assert!(rack.node(0).guest::<Other>().is_some());
    assert!(Rack::local(1).unwrap().node(0).guest::<Other>().is_none());
    let lock = rackmem_bench::locks::LockKind::Mcs;
    let none = rackmem_bench::locks::AnyLock::create_as(&rack.node(0), lock, 8);
    assert!(matches!(none, Err(rackmem_bench::locks::Error::NoGuest)));
}
