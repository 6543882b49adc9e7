//! Real threads on a real network that loses, doubles, delays and parts packets:
//! what they were told, all together, is what one memory could have told them.

use rackmem::diagnostics::{End, FaultControl, Faults};
use rackmem::{AccessError, Builder, Fabric, Mode, Node, OpenError, Rack, RackError};
use rackmem_baselines::gather;
use rackmem_sim::history::{Call, ClientLog, Operation, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const NODES: usize = 4;
/// Threads of each node.
const THREADS: usize = 2;
/// Operations of each thread.
const OPERATIONS: usize = 500;
/// Blocks that all work on: more than the cache of a node holds.
const BLOCKS: usize = 24;
const BLOCK: usize = 4096;

/// A rack whose blocks travel in four segments and are evicted all the time.
fn rack(fabric: Fabric, mode: Mode, faults: Faults) -> Rack {
    let rack = builder(fabric, mode, faults).build();
    rack.expect("the rack starts")
}

fn builder(fabric: Fabric, mode: Mode, faults: Faults) -> Builder {
    Rack::builder(NODES)
        .fabric(fabric)
        .mode(mode)
        .block_size(BLOCK)
        .mtu(1500)
        .cache(16 * BLOCK)
        .memory(64 << 20)
        .switch_entries(16)
        .faults(faults)
}

/// One operation on one word of a few, all at random. Zero is never stored: it stands for no value.
fn operate(node: &Node, base: u64, log: &mut ClientLog<'_>, rng: &mut fastrand::Rng, fresh: u64) {
    let addr = base + (rng.usize(..BLOCKS) * BLOCK + rng.usize(..2) * 2048) as u64;
    let known = |value: u64| match value {
        0 => None,
        value => Some(value.to_string()),
    };
    let text = |value: u64| known(value).map_or(Reply::Nil, Reply::Text);
    let key = addr.to_string();
    let value = fresh.to_string();
    let mut begin = |call| log.begin(&key, call).expect("room");
    let (ticket, told) = match rng.u8(..10) {
        0..4 => (begin(Call::Get), node.load(addr).map(text)),
        4..6 => {
            let ticket = begin(Call::Set { value });
            (ticket, node.store(addr, fresh).map(|()| Reply::Nil))
        }
        6..8 => {
            let ticket = begin(Call::Incr { by: 1 });
            let sum = |old: u64| Reply::Int(old as i64 + 1);
            (ticket, node.fetch_add(addr, 1).map(sum))
        }
        _ => {
            let seen = node.load(addr).unwrap_or(0);
            let expected = known(seen);
            let ticket = begin(Call::Cas { expected, value });
            let swapped = node.fetch_update(addr, |old| (old == seen).then_some(fresh));
            (ticket, swapped.map(|old| Reply::Bool(old == seen)))
        }
    };
    match told {
        Ok(reply) => log.ok(ticket, reply),
        // What came of it is not known, and the record says so.
        Err(AccessError::Rack(RackError::Timeout { .. }) | AccessError::Busy { .. }) => {
            drop(ticket)
        }
        Err(error) => panic!("{error}"),
    }
}

/// Lets all threads work, and `meddle` beside them, which sees how much is done.
fn record(rack: &Rack, meddle: impl FnOnce(&AtomicUsize)) -> Vec<Operation> {
    let recorder = Recorder::new(OPERATIONS);
    let base = rack.node(1).alloc_bytes(BLOCKS * BLOCK).unwrap();
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..NODES * THREADS {
            let node = rack.node(client % NODES);
            let (recorder, done) = (&recorder, &done);
            scope.spawn(move || {
                let mut log = recorder.client(client as u32);
                let mut rng = fastrand::Rng::with_seed(client as u64);
                for number in 1..=OPERATIONS {
                    let fresh = (client * 1_000_000 + number * 100) as u64 + 1_000_000_000;
                    operate(&node, base, &mut log, &mut rng, fresh);
                    done.fetch_add(1, Relaxed);
                }
            });
        }
        meddle(&done);
    });
    recorder.into_history()
}

/// Judges a history, and what a rack went through for it.
fn judge(rack: &Rack, history: &[Operation]) {
    let unknown = history.iter().filter(|o| o.returned().is_none()).count();
    let sent_again: u64 = rack
        .nodes()
        .iter()
        .map(|n| n.metrics().retransmissions)
        .sum();
    let counts = rack.faults().expect("faults").counts();
    eprintln!("{sent_again} sent again, {unknown} unknown, {counts:?}");
    assert_eq!(history.len(), NODES * THREADS * OPERATIONS);
    assert!(unknown < 20, "{unknown} operations have an unknown outcome");
    assert!(sent_again > 0);
    assert!(rack.metrics().events().evicted_ahead > 0);
    match check(history, Limits::default()) {
        Verdict::Linearizable(summary) => assert!(summary.keys > BLOCKS),
        verdict => panic!("{verdict}"),
    }
    if let Some(switch) = rack.metrics().switch {
        assert_eq!(switch.counters.violations, 0);
    }
}

fn under(fabric: Fabric, mode: Mode, faults: Faults) -> rackmem::diagnostics::FaultCounts {
    judged(&rack(fabric, mode, faults))
}

fn judged(rack: &Rack) -> rackmem::diagnostics::FaultCounts {
    let history = record(rack, |_| ());
    judge(rack, &history);
    rack.faults().expect("faults").counts()
}

const LOSS: Faults = Faults {
    loss: 0.05,
    ..Faults::NONE
};

#[test]
fn lost_packets_change_nothing_that_anybody_is_told() {
    for mode in [Mode::Switch, Mode::HomeOnly] {
        assert!(under(Fabric::Udp, mode, LOSS).lost > 100);
    }
    let gathers = builder(Fabric::Udp, Mode::HomeOnly, LOSS).answering(gather::answering);
    assert!(judged(&gathers.build().expect("the rack starts")).lost > 100);
}

#[test]
fn doubled_packets_change_nothing_that_anybody_is_told() {
    let faults = Faults {
        duplication: 0.05,
        // Something must be sent again, or `judge` takes it that nothing happened.
        loss: 0.001,
        ..Faults::NONE
    };
    for mode in [Mode::Switch, Mode::HomeOnly] {
        assert!(under(Fabric::Udp, mode, faults).doubled > 100);
    }
}

#[test]
fn everything_at_once_changes_nothing_that_anybody_is_told() {
    let faults = Faults {
        duplication: 0.05,
        delay: 0.2,
        delay_up_to: Duration::from_millis(3),
        ..LOSS
    };
    for (fabric, mode) in [
        (Fabric::Udp, Mode::Switch),
        (Fabric::Udp, Mode::HomeOnly),
        (Fabric::Shm, Mode::Switch),
        (Fabric::Shm, Mode::HomeOnly),
    ] {
        let counts = under(fabric, mode, faults);
        assert!(counts.lost > 100 && counts.doubled > 100, "{counts:?}");
        assert!(counts.held_back > 1000 && counts.no_room == 0, "{counts:?}");
    }
}

/// Lets a quarter of the work be done, keeps a node from the rest of the rack for a while,
/// and heals.
fn part_and_heal(faults: &FaultControl, done: &AtomicUsize, sides: (&[End], &[End])) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while done.load(Relaxed) < NODES * THREADS * OPERATIONS / 4 {
        assert!(Instant::now() < deadline, "no progress");
        std::thread::sleep(Duration::from_millis(1));
    }
    faults.part(sides.0, sides.1);
    let before = faults.counts().parted;
    while faults.counts().parted < before + 100 {
        assert!(Instant::now() < deadline, "nobody tries to cross");
        std::thread::sleep(Duration::from_millis(10));
    }
    faults.heal();
}

#[test]
fn a_node_that_was_cut_off_finds_its_way_back() {
    let (nodes, switch) = ([0, 1, 2, 3].map(End::Node), [End::Switch]);
    for (mode, sides) in [
        (
            Mode::Switch,
            (&nodes[3..], &[&nodes[..3], &switch].concat()[..]),
        ),
        (Mode::Switch, (&nodes[..], &switch[..])),
        (Mode::HomeOnly, (&nodes[..2], &nodes[2..])),
    ] {
        let rack = rack(Fabric::Udp, mode, LOSS);
        let faults = rack.faults().expect("faults");
        let history = record(&rack, |done| part_and_heal(faults, done, sides));
        judge(&rack, &history);
        assert!(faults.counts().parted >= 100);
    }
}

#[test]
fn a_storm_can_come_and_go() {
    for fabric in [Fabric::Shm, Fabric::Udp] {
        storm(&rack(fabric, Mode::Switch, Faults::NONE));
    }
}

fn storm(rack: &Rack) {
    let faults = rack.faults().expect("faults");
    let history = record(rack, |done| {
        for share in [0.15, 0.0, 0.15, 0.0] {
            let (start, loss) = (done.load(Relaxed), share);
            faults.set(Faults { loss, ..LOSS }).unwrap();
            while done.load(Relaxed) < (start + 300).min(NODES * THREADS * OPERATIONS) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    judge(rack, &history);
}

#[test]
fn faults_need_somebody_who_sends_again() {
    let refused = Rack::builder(2).faults(LOSS).build();
    assert!(matches!(refused, Err(OpenError::Config(_))));
    let loss = 7.0;
    let nonsense = Rack::builder(2)
        .fabric(Fabric::Udp)
        .faults(Faults { loss, ..LOSS });
    assert!(matches!(nonsense.build(), Err(OpenError::Config(_))));
    let perfect = Rack::builder(2).fabric(Fabric::Udp).build().unwrap();
    assert!(perfect.faults().is_none());
}

#[test]
fn packets_of_any_fabric_can_be_captured_and_traced() {
    for fabric in [Fabric::Inline, Fabric::Shm, Fabric::Udp] {
        let file = |kind: &str| {
            let name = format!("rackmem-{fabric:?}-{}.{kind}", std::process::id());
            std::env::temp_dir().join(name)
        };
        let (capture, trace) = (file("pcap"), file("trace"));
        let rack = Rack::builder(3).fabric(fabric);
        let rack = rack.capture(&capture).trace(&trace).build().unwrap();
        let addr = rack.node(2).alloc_bytes(64).unwrap();
        rack.node(0).store(addr, 5).unwrap();
        assert_eq!(rack.node(1).load(addr).unwrap(), 5);
        drop(rack);
        let text = std::fs::read_to_string(&trace).unwrap();
        assert!(
            text.contains("ReadMiss") && text.contains("Unlock"),
            "{text}"
        );
        let bytes = std::fs::read(&capture).unwrap();
        let packets = text.lines().count();
        assert!(packets > 10 && bytes.len() > 24 + packets * (16 + 28 + 48));
        std::fs::remove_file(&trace).unwrap();
        std::fs::remove_file(&capture).unwrap();
    }
    let nowhere = Rack::builder(1).capture("/nonexistent/rack.pcap").build();
    assert!(matches!(nowhere, Err(OpenError::Config(why)) if why.contains("rack.pcap")));
}
