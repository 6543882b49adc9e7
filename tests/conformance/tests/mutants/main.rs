//! A form of the program with one rule broken is caught: by the golden packets always, by random
//! sequences nearly always.

mod planted;
mod plants;

use planted::Planted;
use plants::plants;
use rackmem_conformance::{Case, Difference};
use rackmem_conformance::{golden, replay, replay_loaded, sequence, shrink, text};

fn caught(subject: &mut Planted, cases: &[Case]) -> Option<Difference> {
    cases.iter().find_map(|case| replay(subject, case).err())
}

#[test]
fn golden_packets_catch_every_planted_difference() {
    let cases = golden();
    let escaped: Vec<_> = plants()
        .into_iter()
        .map(Planted::new)
        .filter_map(|mut subject| match caught(&mut subject, &cases) {
            Some(_) => None,
            None => Some(subject.plant().name.clone()),
        })
        .collect();
    assert!(escaped.is_empty(), "not caught: {escaped:#?}");
}

#[test]
fn loaded_registers_catch_them_as_well() {
    let cases = golden();
    let escaped: Vec<_> = plants()
        .into_iter()
        .map(Planted::new)
        .filter(|subject| {
            let mut subject = subject.clone();
            cases
                .iter()
                .all(|case| replay_loaded(&mut subject, case).is_ok())
        })
        .map(|subject| subject.plant().name.clone())
        .collect();
    assert!(escaped.is_empty(), "not caught: {escaped:#?}");
}

/// Differences in corners that only loaded registers, the control plane or all nodes at once reach.
const NOT_BY_CHANCE: &[&str] = &[
    "a frozen switch goes on",
    "the count of readers runs over",
    "a multicast has 31 copies at most",
];

#[test]
fn random_sequences_catch_all_that_packets_reach() {
    let cases: Vec<Case> = (0..24).map(|seed| sequence(seed, 1_500)).collect();
    let escaped: Vec<_> = plants()
        .into_iter()
        .map(Planted::new)
        .filter_map(|mut subject| match caught(&mut subject, &cases) {
            Some(_) => None,
            None => Some(subject.plant().name.clone()),
        })
        .collect();
    assert_eq!(escaped, NOT_BY_CHANCE);
}

#[test]
fn what_is_left_of_a_long_sequence_is_short_and_a_case() {
    let plant = plants()
        .into_iter()
        .find(|plant| plant.name == "a refusal is not final");
    let mut subject = Planted::new(plant.unwrap());
    let case = sequence(3, 2_000);
    let difference = replay(&mut subject, &case).unwrap_err();
    let (least, shown) = shrink(&mut subject, &case, difference);
    assert!(least.steps.len() <= 6, "{} packets", least.steps.len());
    assert_eq!(replay(&mut subject, &least), Err(shown.clone()));
    let kept = text::read(&text::write("kept", std::slice::from_ref(&least))).unwrap();
    assert_eq!(kept, [least]);
    assert_eq!(replay(&mut subject, &kept[0]), Err(shown));
}

#[test]
fn a_difference_names_the_case_the_packet_and_the_field() {
    let cases = golden();
    let told = |name: &str| {
        let plant = plants().into_iter().find(|plant| plant.name == name);
        caught(&mut Planted::new(plant.unwrap()), &cases)
            .unwrap()
            .to_string()
    };
    let text = told("sender is not the switch");
    assert!(text.contains("sender: expected ffff, found 000"), "{text}");
    assert!(text.contains("case kinds/kind-01"), "{text}");
    let text = told("a writer's unlock adds to the copyset");
    assert!(text.contains("  expected COPYSET way 0 at"), "{text}");
    let text = told("the shadow is not told");
    assert!(text.contains("expected agent 3: AddAck"), "{text}");
}
