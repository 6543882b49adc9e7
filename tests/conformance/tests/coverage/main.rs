//! The golden packets reach every row of the tables and every branch of the program.

mod branches;
mod observe;
mod of_locks;

use rackmem_conformance::{Case, Implementation, Reference, Step, golden, sequence};
use std::collections::BTreeSet;

/// The branches that a case takes, prefix included.
fn taken(case: &Case) -> BTreeSet<String> {
    let mut rust = Reference::new(&case.setup);
    let mut taken = BTreeSet::new();
    let mut play = |rust: &mut Reference, steps: &[Step]| {
        for step in steps {
            let before = rust.clone();
            let reply = rust.take(&step.packet);
            let seen = of_locks::branches(&before, rust, &step.packet, &reply);
            taken.extend(seen.unwrap_or_else(|| {
                observe::branches(&case.setup, before.program(), &step.packet, &reply)
            }));
        }
    };
    match &case.prefix {
        Some(prefix) => play(&mut rust, prefix),
        None => assert_eq!(rust.load(&case.before), Ok(())),
    }
    if case.frozen {
        rust.program_mut().freeze();
    }
    play(&mut rust, &case.steps);
    taken
}

fn compare(taken: &BTreeSet<String>) {
    let all = branches::all();
    let missed: Vec<_> = all.difference(taken).collect();
    let unheard_of: Vec<_> = taken.difference(&all).collect();
    assert!(
        missed.is_empty() && unheard_of.is_empty(),
        "not taken: {missed:#?}\nnot in the list: {unheard_of:#?}"
    );
}

#[test]
fn golden_packets_take_every_branch() {
    let mut all = BTreeSet::new();
    for case in golden() {
        all.extend(taken(&case));
    }
    compare(&all);
}

/// What is asked for here is that the generator finds its way into the corners by itself:
/// all but these.
const NOT_BY_CHANCE: &[&str] = &[
    "lock shared of full: not taken",
    "lock alone of full: not taken",
    "add: under way",
    "remove: under way",
    "request: frozen",
    "Unlock: frozen",
    "AddToSwitch: frozen",
    "RemoveFromSwitch: frozen",
];

#[test]
fn random_sequences_take_nearly_every_branch() {
    let mut all: BTreeSet<String> = NOT_BY_CHANCE.iter().map(|&s| s.into()).collect();
    for seed in 0..30 {
        all.extend(taken(&sequence(seed, 1_500)));
    }
    let wanted = branches::all();
    let missed: Vec<_> = wanted.difference(&all).collect();
    assert!(missed.is_empty(), "not taken: {missed:#?}");
}
