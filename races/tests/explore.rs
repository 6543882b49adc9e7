//! The shipped files hold in every order; a planted defect is found by its scenario.

use rackmem_races::plants::PLANTS;
use rackmem_races::{PLANTED, SHIPPED, Scenario, explore, rings};
use std::collections::BTreeSet;

fn shipped(group: &str) {
    let (_, scenarios) = SHIPPED.iter().find(|(name, _)| *name == group).unwrap();
    for &scenario in *scenarios {
        let explored = explore(scenario);
        println!("{group}: {}: {} orders", scenario.0, explored.orders);
        if let Some(violation) = explored.violation {
            panic!("{}: {violation}", scenario.0);
        }
        // Threads that never meet have one order, and show nothing.
        assert!(
            explored.orders > 3,
            "{}: {} orders",
            scenario.0,
            explored.orders
        );
    }
}

#[test]
fn the_cache_holds() {
    shipped("cache");
}

#[test]
fn an_object_is_never_torn() {
    shipped("whole");
}

#[test]
fn the_way_into_a_lock_holds() {
    shipped("locked");
}

#[test]
fn shared_memory_loses_no_wake_up() {
    shipped("shm");
}

#[test]
fn requesters_follow_into_an_epoch() {
    shipped("slots");
}

#[test]
fn a_copy_of_an_item_is_never_torn() {
    shipped("places");
}

#[test]
fn memory_waits_for_open_sections() {
    shipped("sections");
}

#[test]
fn no_news_of_a_ring_are_missed() {
    let explored = explore(rings::HOLDS);
    println!("rings: {}: {} orders", rings::HOLDS.0, explored.orders);
    assert_eq!(explored.violation, None);
    assert!(explored.orders > 3);
    for defect in rings::PLANTED {
        let explored = explore(*defect);
        let violation = explored.violation.expect(defect.0);
        assert!(violation.contains(rings::SAYS), "{}: {violation}", defect.0);
    }
}

#[test]
fn every_planted_defect_is_found_by_its_scenario() {
    let mut missed = Vec::new();
    for (plant, scenarios) in PLANTS.iter().zip(PLANTED) {
        let is_its = |scenario: &&Scenario| scenario.0 == plant.scenario;
        let scenario = scenarios.iter().find(is_its).expect(plant.scenario);
        let explored = explore(*scenario);
        println!(
            "{}: order {}: {:?}",
            plant.name,
            explored.orders,
            explored.violation.as_deref().and_then(|v| v.lines().next())
        );
        match &explored.violation {
            Some(violation) if violation.contains(plant.says) => {}
            other => missed.push((plant.name, other.clone())),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

#[test]
fn no_two_defects_have_one_name() {
    let names: BTreeSet<&str> = PLANTS.iter().map(|plant| plant.name).collect();
    assert_eq!(names.len(), PLANTS.len());
}
