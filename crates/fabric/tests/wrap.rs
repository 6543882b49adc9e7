//! What faults do to packets, and what taps see of it.

mod support;

use rackmem_fabric::{Body, End, Fate, FaultControl, Faults, Nobody, Packet, Port, Tap, Wrapping};
use rackmem_wire::Dest;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Keeper, KeeperPort, header};

/// Keeps fates.
#[derive(Default)]
struct Fates(Mutex<Vec<(u64, Fate)>>);

impl Tap for Fates {
    fn packet(&self, packet: &Packet<'_>, fate: Fate) {
        assert_eq!((packet.from, packet.from_requester), (End::Node(1), true));
        self.0.lock().unwrap().push((packet.header.seq.0, fate));
    }
}

impl Fates {
    fn count(&self, fate: Fate) -> u64 {
        let fates = self.0.lock().unwrap();
        fates.iter().filter(|row| row.1 == fate).count() as u64
    }
}

struct Bench {
    keeper: Arc<Keeper>,
    fates: Arc<Fates>,
    control: Arc<FaultControl>,
    port: Box<dyn Port>,
}

/// A requester's port of node 1 on a network with these faults.
fn bench(faults: Faults) -> Bench {
    let keeper = Arc::new(Keeper::default());
    let fates = Arc::new(Fates::default());
    let control = Arc::new(FaultControl::new(faults).unwrap());
    let wrapping =
        Wrapping::new(Some(control.clone()), keeper.clone(), vec![fates.clone()]).unwrap();
    let port = wrapping.port(1, Box::new(KeeperPort(keeper.clone())));
    Bench {
        keeper,
        fates,
        control,
        port,
    }
}

impl Bench {
    fn send(&self, to: Dest, numbers: std::ops::Range<u64>) {
        for number in numbers {
            self.port.send(to, &header(number), Body::None, &mut Nobody);
        }
    }
}

#[test]
fn what_is_counted_as_lost_or_doubled_is() {
    let bench = bench(Faults {
        loss: 0.1,
        duplication: 0.1,
        ..Faults::NONE
    });
    bench.send(Dest::Switch, 0..10_000);
    let counts = bench.control.counts();
    assert!(counts.lost > 800 && counts.doubled > 700, "{counts:?}");
    let arrived = 10_000 - counts.lost + counts.doubled;
    assert_eq!(bench.keeper.got().len() as u64, arrived);
    assert_eq!(bench.fates.count(Fate::Lost), counts.lost);
    assert_eq!(bench.fates.count(Fate::Doubled), counts.doubled);
    assert_eq!(bench.fates.count(Fate::Sent), 10_000 - counts.lost);
}

#[test]
fn one_segment_of_a_block_can_be_lost() {
    let bench = bench(Faults {
        loss: 0.25,
        ..Faults::NONE
    });
    let block: Vec<AtomicU64> = (0..512).map(AtomicU64::new).collect();
    for number in 0..100 {
        let body = Body::Block(&block);
        bench
            .port
            .send(Dest::Agent(0), &header(number), body, &mut Nobody);
    }
    let got = bench.keeper.got();
    let of = |number: u64| got.iter().filter(|got| got.header.seq.0 == number).count();
    assert!((0..100).any(|number| (1..4).contains(&of(number))));
    for got in &got {
        let first = u64::from(got.header.offset) / 8;
        let word = u64::from_ne_bytes(got.body[..8].try_into().unwrap());
        assert_eq!((got.body.len(), word), (1024, first), "{got:?}");
    }
}

#[test]
fn what_is_held_back_comes_later_and_out_of_order() {
    let bench = bench(Faults {
        delay: 0.5,
        delay_up_to: Duration::from_millis(20),
        ..Faults::NONE
    });
    bench.send(Dest::Agent(2), 0..200);
    let got = bench.keeper.wait_for(200);
    let mut numbers: Vec<u64> = got.iter().map(|got| got.header.seq.0).collect();
    assert!(!numbers.is_sorted());
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..200), "each comes once");
    let counts = bench.control.counts();
    assert_eq!(bench.fates.count(Fate::Late), counts.held_back);
    assert_eq!(counts.no_room, 0);
}

#[test]
fn what_there_is_no_room_for_goes_at_once() {
    let bench = bench(Faults {
        delay: 1.0,
        delay_up_to: Faults::LONGEST_DELAY,
        ..Faults::NONE
    });
    bench.send(Dest::Agent(2), 0..3000);
    let counts = bench.control.counts();
    assert_eq!(counts.held_back, 3000);
    assert!(counts.no_room >= 1500, "{counts:?}");
    assert!(bench.keeper.got().len() as u64 >= counts.no_room);
}

#[test]
fn nothing_crosses_a_partition_until_it_heals() {
    let bench = bench(Faults::NONE);
    bench.control.part(&[End::Node(1)], &[End::Switch]);
    bench.send(Dest::Switch, 0..10);
    bench.send(Dest::Agent(0), 10..20);
    bench.control.heal();
    bench.send(Dest::Switch, 20..30);
    let got = bench.keeper.got();
    assert!(got.iter().map(|got| got.header.seq.0).eq(10..30));
    assert_eq!(bench.fates.count(Fate::Parted), 10);
}
