//! Locks that are words of coherent memory: every order of their operations.

use rackmem_baselines::locks::{Access, Algorithm, At, Machine, Op, Shape, Step, ThreadPlace};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// What is done wrong, for the tests of the tests.
#[derive(Clone, Copy)]
enum Defect {
    None,
    /// Waiters continue at once.
    NoWaiting,
    /// A compare-and-swap does not compare.
    NoComparing,
    /// When a thread leaves, what it does to this block and word has no effect.
    Forgets(At),
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Thread {
    machine: Machine,
    plan: VecDeque<Access>,
    access: Access,
    leaving: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct World {
    memory: BTreeMap<At, u64>,
    threads: Vec<Thread>,
    /// MCS: who has come to the tail and is not inside yet, in order.
    order: VecDeque<usize>,
}

struct Case {
    algorithm: Algorithm,
    shape: (u16, u16),
    /// Seat and what it wants, one after the other.
    threads: &'static [(u16, u16, &'static str)],
}

const CASES: [Case; 8] = [
    Case {
        algorithm: Algorithm::Mcs,
        shape: (3, 1),
        threads: &[(0, 0, "ww"), (1, 0, "ww"), (2, 0, "ww")],
    },
    Case {
        algorithm: Algorithm::Mcs,
        shape: (2, 2),
        threads: &[(0, 0, "www"), (1, 1, "rwr")],
    },
    Case {
        algorithm: Algorithm::Central,
        shape: (3, 1),
        threads: &[(0, 0, "ww"), (1, 0, "wr"), (2, 0, "rw")],
    },
    Case {
        algorithm: Algorithm::PerNode,
        shape: (2, 2),
        threads: &[(0, 0, "ww"), (1, 0, "rw"), (1, 1, "rr")],
    },
    Case {
        algorithm: Algorithm::PerNode,
        shape: (3, 1),
        threads: &[(0, 0, "w"), (1, 0, "w"), (2, 0, "r")],
    },
    Case {
        algorithm: Algorithm::Cohort,
        shape: (2, 2),
        threads: &[(0, 0, "w"), (0, 1, "w"), (1, 0, "w")],
    },
    Case {
        algorithm: Algorithm::Cohort,
        shape: (2, 2),
        threads: &[(0, 0, "ww"), (1, 0, "wr")],
    },
    Case {
        algorithm: Algorithm::Cohort,
        shape: (2, 2),
        threads: &[(0, 0, "w"), (0, 1, "r"), (1, 0, "r")],
    },
];

impl World {
    fn new(case: &Case) -> World {
        let shape = Shape::new(case.shape.0, case.shape.1).unwrap();
        let thread = |&(node, place, plan): &(u16, u16, &str)| Thread {
            machine: Machine::new(case.algorithm, shape, ThreadPlace { node, place }).unwrap(),
            plan: plan
                .chars()
                .map(|c| {
                    if c == 'r' {
                        Access::Read
                    } else {
                        Access::Write
                    }
                })
                .collect(),
            access: Access::Read,
            leaving: false,
        };
        World {
            memory: BTreeMap::new(),
            threads: case.threads.iter().map(thread).collect(),
            order: VecDeque::new(),
        }
    }

    fn word(&self, at: At) -> u64 {
        self.memory.get(&at).copied().unwrap_or(0)
    }

    /// The next move of a thread; nothing when it waits or is through.
    fn step(&self, nth: usize, defect: Defect, algorithm: Algorithm) -> Option<World> {
        let mut next = self.clone();
        let thread = &mut next.threads[nth];
        match thread.machine.said() {
            Step::Outside => {
                thread.access = thread.plan.pop_front()?;
                thread.leaving = false;
                thread.machine.enter(thread.access);
            }
            Step::Inside => {
                thread.leaving = true;
                thread.machine.leave();
            }
            Step::Do(op) => {
                let leaving = thread.leaving;
                let forgets = |at: At| leaving && matches!(defect, Defect::Forgets(a) if a == at);
                let write = |memory: &mut BTreeMap<At, u64>, at: At, word: u64| {
                    if !forgets(at) {
                        memory.insert(at, word);
                    }
                };
                let result = match op {
                    Op::Load(at) => self.word(at),
                    Op::Store(at, word) => {
                        write(&mut next.memory, at, word);
                        0
                    }
                    Op::Swap(at, word) => {
                        if algorithm == Algorithm::Mcs {
                            next.order.push_back(nth);
                        }
                        write(&mut next.memory, at, word);
                        self.word(at)
                    }
                    Op::CompareSwap { at, old, new } => {
                        let careless = matches!(defect, Defect::NoComparing);
                        if careless || self.word(at) == old {
                            write(&mut next.memory, at, new);
                        }
                        if careless { old } else { self.word(at) }
                    }
                    Op::Add(at, n) => {
                        write(&mut next.memory, at, self.word(at).wrapping_add(n));
                        self.word(at)
                    }
                    Op::Wait(at, until) => {
                        let waits = !until.met(self.word(at));
                        if waits && !matches!(defect, Defect::NoWaiting) {
                            return None;
                        }
                        self.word(at)
                    }
                    Op::Pause(_) => 0,
                    Op::Ask(_) | Op::Tell(_) => unreachable!("no lock of memory asks anybody"),
                };
                if next.threads[nth].machine.result(result) == Step::Inside
                    && algorithm == Algorithm::Mcs
                {
                    // First come, first served: the holder was the first in the queue.
                    let first = next.order.pop_front();
                    if first != Some(nth) {
                        next.order.push_front(usize::MAX);
                    }
                }
            }
        }
        Some(next)
    }

    /// What is wrong with this state.
    fn wrong(&self, algorithm: Algorithm) -> Option<&'static str> {
        let inside = |of: Option<Access>| {
            let here = |t: &&Thread| {
                t.machine.said() == Step::Inside && of.is_none_or(|access| access == t.access)
            };
            self.threads.iter().filter(here).count()
        };
        let (all, writers) = (inside(None), inside(Some(Access::Write)));
        let alone = writers > 0 || !algorithm.shares();
        if alone && all > 1 {
            return Some("not alone");
        }
        let overtaken = self.order.contains(&usize::MAX);
        overtaken.then_some("overtaken in the queue")
    }
}

/// Looks at every state; how many there are, how often readers were inside together,
/// or what is wrong.
fn explore(case: &Case, defect: Defect) -> Result<(usize, usize), &'static str> {
    let mut seen = HashSet::new();
    let mut open = VecDeque::from([World::new(case)]);
    let mut together = 0;
    while let Some(world) = open.pop_front() {
        if !seen.insert(world.clone()) {
            continue;
        }
        assert!(seen.len() < 2_000_000, "too large a case");
        if let Some(wrong) = world.wrong(case.algorithm) {
            return Err(wrong);
        }
        let inside = world
            .threads
            .iter()
            .filter(|t| t.machine.said() == Step::Inside);
        together += usize::from(inside.count() > 1);
        let threads = 0..world.threads.len();
        let next = threads.filter_map(|nth| world.step(nth, defect, case.algorithm));
        let before = open.len();
        open.extend(next);
        let through = |t: &Thread| t.machine.said() == Step::Outside && t.plan.is_empty();
        if open.len() == before && !world.threads.iter().all(through) {
            return Err("stuck");
        }
    }
    Ok((seen.len(), together))
}

#[test]
fn every_order_of_operations_excludes_and_leaves_nobody_waiting() {
    for case in &CASES {
        let name = case.algorithm.name();
        let (states, together) = explore(case, Defect::None).unwrap_or_else(|wrong| {
            panic!("{name} {:?}: {wrong}", case.threads);
        });
        assert!(states > 100, "{name}: {states}");
        let readers = case.threads.iter().filter(|t| t.2.contains('r')).count();
        assert_eq!(
            together > 0,
            readers > 1 && case.algorithm.shares(),
            "{name} {:?}: readers together",
            case.threads
        );
    }
}

#[test]
fn a_lock_that_does_not_wait_is_noticed() {
    for case in &CASES {
        let found = explore(case, Defect::NoWaiting);
        assert!(
            found.is_err(),
            "{} {:?}",
            case.algorithm.name(),
            case.threads
        );
    }
}

#[test]
fn a_compare_and_swap_that_does_not_compare_is_noticed() {
    for case in CASES.iter().filter(|c| c.algorithm != Algorithm::Cohort) {
        let found = explore(case, Defect::NoComparing);
        assert!(
            found.is_err(),
            "{} {:?}",
            case.algorithm.name(),
            case.threads
        );
    }
}

#[test]
fn whatever_is_forgotten_while_leaving_is_noticed() {
    let at = |block, word| At { block, word };
    // MCS: letting the next one in. Two words: a writer. Three nodes: the last of them.
    // Cohort of two nodes: the nodes' tickets, that a node has the lock, the ticket inside a node,
    // the writers.
    let forgotten = [
        (0, at(1, 1)),
        (0, at(0, 0)),
        (2, at(0, 0)),
        (3, at(1, 0)),
        (4, at(2, 0)),
        (5, at(2, 0)),
        (5, at(5, 2)),
        (5, at(5, 1)),
        (7, at(0, 0)),
        (7, at(3, 0)),
    ];
    for (case, at) in forgotten {
        let case = &CASES[case];
        let found = explore(case, Defect::Forgets(at));
        assert!(
            found.is_err(),
            "{} {:?} {at:?}",
            case.algorithm.name(),
            case.threads
        );
    }
}
