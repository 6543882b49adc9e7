//! Words that several nodes change are changed at their home once they go round, and come to a
//! node that uses them alone: by counts, on every fabric, each change once.

use rackmem::diagnostics::{Faults, Kind};
use rackmem::{Fabric, Mode, Node, Rack, Shared};
use std::collections::BTreeSet;

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Udp, Fabric::Shm];
const MODES: [Mode; 2] = [Mode::Switch, Mode::HomeOnly];

fn rack(fabric: Fabric, mode: Mode) -> Rack {
    let rack = Rack::builder(3).fabric(fabric).mode(mode);
    rack.memory(64 << 20).build().expect("the rack starts")
}

fn sent(node: &Node, of: impl Fn(Kind) -> bool) -> u64 {
    let metrics = node.metrics();
    let sent = metrics.sent.0.iter();
    sent.filter(|(kind, _)| of(*kind))
        .map(|(_, count)| count)
        .sum()
}

fn operations(node: &Node) -> u64 {
    sent(node, |kind| kind == Kind::Operate)
}

/// A word of node 0, as all nodes have it.
fn word(rack: &Rack) -> Vec<Shared<u64>> {
    let first = rack.node(0).alloc_isolated(0u64).unwrap();
    let there = |n: usize| rack.node(n).attach(first.addr()).unwrap();
    (0..3).map(there).collect()
}

#[test]
fn a_word_that_goes_round_is_changed_at_its_home_and_comes_to_who_uses_it_alone() {
    for fabric in FABRICS {
        for mode in MODES {
            let what = format!("{fabric:?}, {mode:?}");
            let rack = rack(fabric, mode);
            let (word, node) = (word(&rack), rack.node(1));
            // Where the switch has its entry at first, or a thread is late, it takes a while.
            let mut step = 0;
            while operations(&node) <= 50 {
                assert!(step < 30_000, "{what}: {} of {step}", operations(&node));
                assert_eq!(
                    word[step as usize % 3].fetch_add(1).unwrap(),
                    step,
                    "{what}"
                );
                step += 1;
            }
            // From here on, one node changes it alone, and soon without a packet.
            let end = step + 30_000;
            loop {
                let before = sent(&node, |_| true);
                for _ in 0..100 {
                    assert_eq!(word[1].fetch_add(1).unwrap(), step, "{what}");
                    step += 1;
                }
                if sent(&node, |_| true) == before {
                    break;
                }
                assert!(step < end, "{what}");
            }
            assert_eq!(word[2].read().unwrap(), step);
        }
    }
}

#[test]
fn a_word_that_each_node_changes_often_at_a_time_goes_from_one_to_the_next() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly);
        let word = word(&rack);
        for step in 0..1500 {
            let who = &word[step as usize / 10 % 3];
            assert_eq!(who.fetch_add(1).unwrap(), step);
        }
        let asked = operations(&rack.node(1)) + operations(&rack.node(2));
        assert_eq!(asked, 0, "{fabric:?}");
    }
}

/// Between two changes it is read by each node, so copies are worth their way.
#[test]
fn a_word_that_is_read_has_copies() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly);
        let word = word(&rack);
        let mut reads = 0;
        for step in 0..200 {
            word[step as usize % 3].write(step).unwrap();
            let before = rack.node(2).metrics().events.read_miss;
            for _ in 0..20 {
                assert!(word.iter().all(|word| word.read().unwrap() == step));
            }
            reads += rack.node(2).metrics().events.read_miss - before;
        }
        let asked = operations(&rack.node(1)) + operations(&rack.node(2));
        assert!(asked <= 20, "{fabric:?}: {asked}");
        assert!(reads >= 100, "{fabric:?}: {reads}");
    }
}

/// What homes do to short values, beside a model of it.
macro_rules! every_operation {
    ($rack:expr, $rng:expr, $($int:ty),*) => {$({
        let bytes: Shared<[u8; 8]> = $rack.node(0).alloc_isolated([0x5a; 8]).unwrap();
        let there = |n: usize| $rack.node(n).attach::<$int>(bytes.addr()).unwrap();
        let nodes: Vec<Shared<$int>> = (0..3).map(there).collect();
        let mut model = nodes[0].read().unwrap();
        for step in 0..120 {
            let (who, n) = (&nodes[step % 3], $rng.u64(..) as $int);
            let old = model;
            let told = match $rng.u8(..8) {
                0 => { model = old.wrapping_add(n); who.fetch_add(n).unwrap() }
                1 => { model = old.wrapping_sub(n); who.fetch_sub(n).unwrap() }
                2 => { model = n; who.swap(n).unwrap() }
                3 => { model = old & n; who.fetch_and(n).unwrap() }
                4 => { model = old | n; who.fetch_or(n).unwrap() }
                5 => { model = old ^ n; who.fetch_xor(n).unwrap() }
                6 => { model = n; who.compare_exchange(old, n).unwrap().unwrap() }
                _ => who.compare_exchange(old ^ 1, n).unwrap().unwrap_err(),
            };
            assert_eq!(told, old, "step {step}");
        }
        let rest = &bytes.read().unwrap()[size_of::<$int>()..];
        assert!(rest.iter().all(|byte| *byte == 0x5a));
    })*};
}

#[test]
fn homes_do_what_copies_do_to_values_of_every_width() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly);
        let mut rng = fastrand::Rng::with_seed(7);
        every_operation!(
            rack, rng, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize
        );
        let asked = operations(&rack.node(1));
        assert!(asked > 0, "{fabric:?}: {asked} of 400");
    }
}

#[test]
fn every_change_happens_once_where_packets_are_lost_and_come_twice() {
    const EACH: u64 = 400;
    const TURNS: u64 = 3_000;
    for fabric in [Fabric::Udp, Fabric::Shm] {
        for mode in MODES {
            let rack = Rack::builder(3).fabric(fabric).mode(mode);
            let rack = rack.memory(64 << 20).faults(Faults::rough(0.05)).build();
            let rack = rack.unwrap();
            let word = word(&rack);
            // In turns first, so that it goes round however threads are run.
            for step in 0..TURNS {
                assert_eq!(word[step as usize % 3].fetch_add(1).unwrap(), step);
            }
            let told: Vec<Vec<u64>> = std::thread::scope(|scope| {
                let add = |word: &Shared<u64>| {
                    let word = word.clone();
                    scope.spawn(move || {
                        let add = |_| {
                            // So that others come between, and the word goes round.
                            std::thread::sleep(std::time::Duration::from_micros(20));
                            word.fetch_add(1).unwrap()
                        };
                        (0..EACH).map(add).collect()
                    })
                };
                let threads: Vec<_> = word.iter().map(add).collect();
                threads.into_iter().map(|t| t.join().unwrap()).collect()
            });
            let seen: BTreeSet<u64> = told.iter().flatten().copied().collect();
            assert!(
                seen.into_iter().eq(TURNS..TURNS + 3 * EACH),
                "{fabric:?}, {mode:?}"
            );
            assert!(told.iter().all(|told| told.is_sorted()));
            let asked = operations(&rack.node(1)) + operations(&rack.node(2));
            assert!(asked > 0, "{fabric:?}, {mode:?}");
        }
    }
}
