//! What `rackmem check` prints.

use crate::out;
use crate::size::count;
use rackmem_bench::table::{Align, Table};
use rackmem_sim::driver::{About, Ended, Report};
use serde_json::{Map, Value, json};

/// The defects of a suite.
pub fn list_defects(suite: &str, defects: &[String], json: bool) {
    for defect in defects {
        match json {
            true => out::line(json!({"defect": defect, "of": suite})),
            false => out::line(defect),
        }
    }
}

/// The scenarios, each with the name of its suite.
pub fn list(scenarios: &[(&str, About)], json: bool) {
    if json {
        for (suite, about) in scenarios {
            out::line(object(suite, about));
        }
        return;
    }
    let columns = [
        ("scenario", Align::Left),
        ("of", Align::Left),
        ("what it shows", Align::Left),
        ("nodes", Align::Right),
        ("blocks", Align::Right),
        ("locks", Align::Right),
        ("threads", Align::Right),
        ("may go wrong", Align::Left),
    ];
    let mut table = Table::new("rackmem check", &columns);
    for (suite, about) in scenarios {
        let counts = [about.nodes, about.blocks, about.locks, about.threads];
        let [nodes, blocks, locks, threads] = counts.map(|count| count.to_string());
        table.row(&[
            about.name,
            suite,
            about.shows,
            &nodes,
            &blocks,
            &locks,
            &threads,
            &budget(about),
        ]);
    }
    out::table(&table);
}

fn budget(about: &About) -> String {
    let some = about.budget.iter().filter(|row| row.count > 0);
    let some: Vec<String> = some
        .map(|row| format!("{} {}", row.count, row.words))
        .collect();
    some.join(", ")
}

fn object(suite: &str, about: &About) -> Value {
    let budget = about.budget.iter();
    let budget: Map<String, Value> = budget
        .map(|row| (row.key.to_owned(), json!(row.count)))
        .collect();
    json!({
        "scenario": about.name,
        "of": suite,
        "shows": about.shows,
        "rack": about.rack,
        "nodes": about.nodes,
        "blocks": about.blocks,
        "locks": about.locks,
        "threads": about.threads,
        "budget": budget,
    })
}

/// One scenario's report.
pub fn report(suite: &str, about: &About, report: &Report) -> Value {
    let violation = report.violation().map(|violation| {
        json!({
            "promise": violation.invariant,
            "section": violation.section,
            "detail": violation.detail,
            "story": violation.story,
        })
    });
    let mut object = object(suite, about);
    let found = json!({
        "ended": ended(report),
        "states": report.states,
        "expanded": report.expanded,
        "transitions": report.transitions,
        "depth": report.depth,
        "ends": report.ends,
        "bytes": report.bytes,
        "seconds": report.time.as_secs_f64(),
        "states_per_second": report.speed(),
        "seen": report.seen,
        "missing": report.missing,
        "violation": violation,
    });
    if let (Value::Object(object), Value::Object(found)) = (&mut object, found) {
        object.extend(found);
        let own = report.figures.iter();
        object.extend(own.map(|(name, count)| ((*name).to_owned(), json!(count))));
    }
    object
}

fn ended(report: &Report) -> &'static str {
    match report.ended {
        Ended::Whole if report.missing.is_empty() => "whole",
        Ended::Seeds if report.missing.is_empty() => "by seeds",
        Ended::Whole | Ended::Seeds => "shows nothing",
        Ended::Limit => "limit",
        Ended::Stopped => "stopped",
        Ended::Broken(_) => "BROKEN",
    }
}

/// All reports, the stories of broken promises, and what the figures mean.
pub fn table(reports: &[(About, Report)]) {
    let columns = [
        ("scenario", Align::Left),
        ("states", Align::Right),
        ("transitions", Align::Right),
        ("depth", Align::Right),
        ("seen", Align::Right),
        ("states/s", Align::Right),
        ("visited", Align::Left),
    ];
    let mut table = Table::new("rackmem check", &columns);
    for (about, report) in reports {
        let wanted = about.sometimes;
        let seen = wanted - report.missing.len().min(wanted);
        table.row(&[
            about.name,
            &count(report.states as u64),
            &count(report.transitions as u64),
            &report.depth.to_string(),
            &format!("{seen} of {wanted}"),
            &count(report.speed() as u64),
            ended(report),
        ]);
    }
    out::whole_table(&table);
    for (about, report) in reports {
        if let Some(violation) = report.violation() {
            out::line(format!("\n{}: {violation}", about.name));
        }
        for witness in &report.missing {
            out::line(format!("{}: never came across {witness}", about.name));
        }
    }
    out::line(summary(reports));
}

/// What was covered, and what bounds it.
fn summary(reports: &[(About, Report)]) -> String {
    let ended = |how| reports.iter().filter(|row| row.1.ended == how).count();
    let (whole, by_seeds) = (ended(Ended::Whole), ended(Ended::Seeds));
    let explored = reports.len() - by_seeds;
    let seeds = match by_seeds {
        0 => String::new(),
        _ => format!(
            "{by_seeds} of {} scenarios played by seeds: what these did not come to was not checked.",
            reports.len()
        ),
    };
    if explored == 0 {
        return seeds;
    }
    let sum = |of: fn(&Report) -> usize| reports.iter().map(|row| of(&row.1)).sum::<usize>();
    let (states, transitions) = (sum(|r| r.states), sum(|r| r.transitions));
    let largest = reports.iter().map(|row| row.1.states).max().unwrap_or(0);
    let peak = reports.iter().map(|row| row.1.bytes).max().unwrap_or(0) >> 20;
    let visited = format!(
        "{whole} of {explored} scenarios visited whole: {states} states, {transitions} transitions. The time goes into copying \
         and\nhashing states, on one processor. Visited states and their graph took {peak} MiB at most.\nOf a state 128 \
         bits are kept; the odds that two of {largest} share theirs are below 1 in 10^{}.",
        odds(largest)
    );
    match by_seeds {
        0 => visited,
        _ => format!("{visited}\n{seeds}"),
    }
}

/// The exponent `e` with `n² / 2^129 < 10^-e`.
fn odds(states: usize) -> i32 {
    let states = states.max(1) as f64;
    (129.0 * 2_f64.log10() - 2.0 * states.log10()).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_sim::driver::Allowance;

    #[test]
    fn odds_are_those_of_a_birthday() {
        assert_eq!(odds(1), 38);
        assert_eq!(odds(10_000_000), 24);
    }

    #[test]
    fn a_budget_is_told_in_words() {
        let row = |words, count| Allowance {
            key: words,
            words,
            count,
        };
        let some = About {
            name: "",
            shows: "",
            rack: String::new(),
            nodes: 2,
            blocks: 1,
            locks: 0,
            threads: 1,
            budget: vec![row("lost", 1), row("doubled", 0), row("migration", 2)],
            sometimes: 0,
        };
        assert_eq!(budget(&some), "1 lost, 2 migration");
    }
}
