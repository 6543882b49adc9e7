//! What `rackmem check` prints.

use crate::out;
use crate::size::count;
use rackmem_bench::table::{Align, Table};
use rackmem_sim::explore::{Budget, Ended, Report, Scenario, Witness};
use rackmem_sim::world::Rack;
use serde_json::{Value, json};

/// The scenarios.
pub fn list(scenarios: &[Scenario], json: bool) {
    if json {
        for scenario in scenarios {
            out::line(about(scenario));
        }
        return;
    }
    let columns = [
        ("scenario", Align::Left),
        ("what it shows", Align::Left),
        ("nodes", Align::Right),
        ("blocks", Align::Right),
        ("threads", Align::Right),
        ("may go wrong", Align::Left),
    ];
    let mut table = Table::new("rackmem check", &columns);
    for scenario in scenarios {
        let counts = [
            scenario.nodes.to_string(),
            scenario.homes.len().to_string(),
            scenario.programs.len().to_string(),
        ];
        let budget = budget(&scenario.budget);
        table.row(&[
            scenario.name,
            scenario.shows,
            &counts[0],
            &counts[1],
            &counts[2],
            &budget,
        ]);
    }
    out::table(&table);
}

fn budget(budget: &Budget) -> String {
    let all = [
        (budget.losses, "lost"),
        (budget.duplicates, "doubled"),
        (budget.early, "early timeout"),
        (budget.retries, "early retry"),
        (budget.moves, "migration"),
        (budget.epochs, "new epoch"),
    ];
    let some = all.iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some.map(|(n, what)| format!("{n} {what}")).collect();
    some.join(", ")
}

fn about(scenario: &Scenario) -> Value {
    let Budget {
        losses,
        duplicates,
        early,
        retries,
        moves,
        epochs,
    } = scenario.budget;
    let rack = match scenario.rack {
        Rack::HomeOnly => json!("home-only"),
        Rack::Gather => json!("directory"),
        Rack::Delegate => json!("delegate"),
        Rack::Switch { ways, sets } => json!({"ways": ways, "sets": sets}),
    };
    json!({
        "scenario": scenario.name,
        "shows": scenario.shows,
        "rack": rack,
        "nodes": scenario.nodes,
        "blocks": scenario.homes.len(),
        "threads": scenario.programs.len(),
        "budget": {
            "losses": losses,
            "duplicates": duplicates,
            "early_timeouts": early,
            "early_retries": retries,
            "migrations": moves,
            "epochs": epochs,
        },
    })
}

/// One scenario's report.
pub fn object(scenario: &Scenario, report: &Report) -> Value {
    let names =
        |witnesses: &[Witness]| -> Vec<String> { witnesses.iter().map(|w| w.name()).collect() };
    let violation = report.violation().map(|violation| {
        json!({
            "promise": violation.invariant,
            "section": violation.section,
            "detail": violation.detail,
            "story": violation.story,
        })
    });
    let mut object = about(scenario);
    let found = json!({
        "ended": ended(report),
        "states": report.states,
        "expanded": report.expanded,
        "transitions": report.transitions,
        "depth": report.depth,
        "ends": report.ends,
        "part_states": report.parts,
        "packets": report.packets,
        "steps": report.steps,
        "bytes": report.bytes,
        "seconds": report.time.as_secs_f64(),
        "states_per_second": report.speed(),
        "seen": names(&report.seen),
        "missing": names(&report.missing),
        "violation": violation,
    });
    if let (Value::Object(object), Value::Object(found)) = (&mut object, found) {
        object.extend(found);
    }
    object
}

fn ended(report: &Report) -> &'static str {
    match report.ended {
        Ended::Whole if report.missing.is_empty() => "whole",
        Ended::Whole => "shows nothing",
        Ended::Limit => "limit",
        Ended::Stopped => "stopped",
        Ended::Broken(_) => "BROKEN",
    }
}

/// All reports, the stories of broken promises, and what the figures mean.
pub fn table(reports: &[(&Scenario, Report)]) {
    let columns = [
        ("scenario", Align::Left),
        ("states", Align::Right),
        ("transitions", Align::Right),
        ("depth", Align::Right),
        ("seen", Align::Right),
        ("states/s", Align::Right),
        ("bytes/state", Align::Right),
        ("visited", Align::Left),
    ];
    let mut table = Table::new("rackmem check", &columns);
    for (scenario, report) in reports {
        let wanted = scenario.sometimes.len();
        let seen = wanted - report.missing.len().min(wanted);
        let cells = [
            count(report.states as u64),
            count(report.transitions as u64),
            report.depth.to_string(),
            format!("{seen} of {wanted}"),
            count(report.speed() as u64),
            (report.bytes / report.states.max(1)).to_string(),
        ];
        let [states, transitions, depth, seen, speed, bytes] = &cells;
        table.row(&[
            scenario.name,
            states,
            transitions,
            depth,
            seen,
            speed,
            bytes,
            ended(report),
        ]);
    }
    out::whole_table(&table);
    for (scenario, report) in reports {
        if let Some(violation) = report.violation() {
            out::line(format!("\n{}: {violation}", scenario.name));
        }
        for witness in &report.missing {
            let name = witness.name();
            out::line(format!("{}: never came across {name}", scenario.name));
        }
    }
    out::line(summary(reports));
}

/// What was covered, and what bounds it.
fn summary(reports: &[(&Scenario, Report)]) -> String {
    let sum = |of: fn(&Report) -> usize| reports.iter().map(|row| of(&row.1)).sum::<usize>();
    let (states, transitions) = (sum(|r| r.states), sum(|r| r.transitions));
    let steps = sum(|r| r.steps);
    let whole = reports.iter().filter(|row| row.1.ended == Ended::Whole);
    let (whole, all) = (whole.count(), reports.len());
    let largest = reports.iter().map(|row| row.1.states).max().unwrap_or(0);
    let peak = reports.iter().map(|row| row.1.bytes).max().unwrap_or(0) >> 20;
    format!(
        "{whole} of {all} scenarios visited whole: {states} states, {transitions} transitions. Of those, {steps} were \
         carried out by roles,\nthe rest looked up: the time goes into copying and hashing states, on one processor. \
         The largest took {peak} MiB.\nOf a state 128 bits are kept; the odds that two of {largest} share theirs \
         are below 1 in 10^{}.",
        odds(largest)
    )
}

/// The exponent `e` with `n² / 2^129 < 10^-e`.
fn odds(states: usize) -> i32 {
    let states = states.max(1) as f64;
    (129.0 * 2_f64.log10() - 2.0 * states.log10()).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_those_of_a_birthday() {
        assert_eq!(odds(1), 38);
        assert_eq!(odds(10_000_000), 24);
    }

    #[test]
    fn a_budget_is_told_in_words() {
        let some = Budget {
            losses: 1,
            moves: 2,
            ..Budget::default()
        };
        assert_eq!(budget(&some), "1 lost, 2 migration");
    }
}
