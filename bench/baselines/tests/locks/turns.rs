//! Whose turn it is, and what a hand-over costs in operations.

use rackmem_baselines::locks::{
    Access, Algorithm, At, BATCH, Home, Machine, Op, Shape, Step, ThreadPlace,
};
use std::collections::{BTreeMap, HashSet};

/// Executes one operation, if it need not wait.
fn go(machine: &mut Machine, memory: &mut BTreeMap<At, u64>) -> bool {
    let Step::Do(op) = machine.said() else {
        return false;
    };
    let word = |at: &At| memory.get(at).copied().unwrap_or(0);
    let (result, write) = match op {
        Op::Load(at) => (word(&at), None),
        Op::Wait(at, until) if until.met(word(&at)) => (word(&at), None),
        Op::Wait(..) => return false,
        Op::Store(at, new) | Op::Swap(at, new) => (word(&at), Some((at, new))),
        Op::Add(at, n) => (word(&at), Some((at, word(&at).wrapping_add(n)))),
        Op::CompareSwap { at, old, new } => {
            let seen = word(&at);
            (seen, (seen == old).then_some((at, new)))
        }
        Op::Pause(_) | Op::Ask(_) | Op::Tell(_) => (0, None),
    };
    if let Some((at, new)) = write {
        memory.insert(at, new);
    }
    machine.result(result);
    true
}

fn run(machine: &mut Machine, memory: &mut BTreeMap<At, u64>) {
    while go(machine, memory) {}
}

#[test]
fn a_cohort_keeps_the_lock_no_longer_than_it_may_while_another_node_waits() {
    let shape = Shape::new(2, 2).unwrap();
    let seat = |node, place| ThreadPlace { node, place };
    let of = |seat| Machine::new(Algorithm::Cohort, shape, seat).unwrap();
    let (mut one, mut two, mut far) = (of(seat(0, 0)), of(seat(0, 1)), of(seat(1, 0)));
    let mut memory = BTreeMap::new();
    for machine in [&mut one, &mut two, &mut far] {
        machine.enter(Access::Write);
        run(machine, &mut memory);
    }
    let mut entered = 0;
    while far.said() != Step::Inside {
        let (here, next) = match one.said() {
            Step::Inside => (&mut one, &mut two),
            _ => (&mut two, &mut one),
        };
        assert_eq!(here.said(), Step::Inside);
        entered += 1;
        assert!(entered <= BATCH + 1, "the other node waits for ever");
        here.leave();
        run(here, &mut memory);
        run(next, &mut memory);
        here.enter(Access::Write);
        run(here, &mut memory);
        run(&mut far, &mut memory);
    }
    assert_eq!(entered, BATCH + 1);
}

#[test]
fn a_seat_outside_the_shape_has_no_machine() {
    let shape = Shape::new(2, 3).unwrap();
    for algorithm in Algorithm::ALL.map(|row| row.0) {
        let of = |node, place| Machine::new(algorithm, shape, ThreadPlace { node, place });
        assert!(of(1, 2).is_some());
        assert!(of(2, 0).is_none() && of(0, 3).is_none());
    }
    for (nodes, places) in [(0, 1), (1, 0), (33, 1), (1, 65)] {
        assert!(Shape::new(nodes, places).is_none());
    }
}

#[test]
fn machines_stay_within_their_blocks_and_wait_where_they_are_at_home() {
    let shape = Shape::new(3, 2).unwrap();
    for (algorithm, name) in Algorithm::ALL {
        let blocks = algorithm.blocks(shape);
        let mut used = HashSet::new();
        let mut waited = HashSet::new();
        let seats = (0..3).flat_map(|node| (0..2).map(move |place| ThreadPlace { node, place }));
        let mut machines: Vec<(ThreadPlace, Machine)> = seats
            .map(|seat| (seat, Machine::new(algorithm, shape, seat).unwrap()))
            .collect();
        let mut memory = BTreeMap::new();
        let accesses = [Access::Write, Access::Read].into_iter().cycle();
        for round in accesses.take(400) {
            for (seat, machine) in &mut machines {
                if machine.said() == Step::Outside {
                    machine.enter(round);
                } else if machine.said() == Step::Inside {
                    machine.leave();
                }
                match machine.said() {
                    Step::Do(Op::Wait(at, _)) => {
                        used.insert(at.block);
                        waited.insert((at.block, seat.node));
                    }
                    Step::Do(
                        Op::Load(at)
                        | Op::Store(at, _)
                        | Op::Swap(at, _)
                        | Op::Add(at, _)
                        | Op::CompareSwap { at, .. },
                    ) => {
                        used.insert(at.block);
                    }
                    _ => {}
                }
                go(machine, &mut memory);
            }
        }
        assert!(used.iter().all(|block| *block < blocks), "{name}");
        assert_eq!(
            used.len(),
            usize::from(blocks),
            "{name}: blocks that nobody needs"
        );
        if algorithm == Algorithm::Mcs {
            let at_home =
                |(block, node): &(u16, u16)| algorithm.home(shape, *block) == Home::Node(*node);
            assert!(!waited.is_empty() && waited.iter().all(at_home));
        }
    }
}
