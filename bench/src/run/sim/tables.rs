//! The simulation's report for people.

use super::Parameter;
use super::figures::Figure;
use super::points::Points;
use super::{Outcome, Workload, baseline};
use crate::judged::Judged;
use crate::report::number;
use crate::table::{Align, Table};
use rackmem_sim::model::{Accesses, System};

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

/// The points of a figure.
pub fn figure(figure: Figure, wanted: &[(System, Workload)], points: &Points) -> Table {
    match figure {
        Figure::Fig10 => at_home(wanted, points),
        other => all(other, wanted, points),
    }
}

/// Packets at home agents, side by side.
fn at_home(wanted: &[(System, Workload)], points: &Points) -> Table {
    let figure = Figure::Fig10;
    let mut columns = vec![("packets an operation", LEFT)];
    columns.extend(System::ALL.map(|(_, name)| (name, RIGHT)));
    columns.push(("home-only by switch", RIGHT));
    let mut table = Table::new(&figure.to_string(), &columns);
    let first = wanted.first().map(|one| one.0);
    let workloads = wanted.iter().filter(|one| Some(one.0) == first);
    for (_, workload) in workloads {
        let packets = |system| {
            let outcome = points.get(system, workload)?;
            Some(outcome.per_operation(outcome.home_packets))
        };
        let fewer = packets(System::HomeOnly).zip(packets(System::Switch));
        let mut row = vec![place(figure, workload)];
        row.extend(System::ALL.map(|(system, _)| packets(system).map_or(String::new(), number)));
        row.push(fewer.map_or(String::new(), |(base, switch)| times(base / switch)));
        let row: Vec<&str> = row.iter().map(String::as_str).collect();
        table.row(&row);
    }
    table
}

fn all(figure: Figure, wanted: &[(System, Workload)], points: &Points) -> Table {
    let compared = match figure {
        Figure::Ahead => "by without",
        _ => "of home-only",
    };
    let columns = [
        ("point", LEFT),
        ("system", LEFT),
        ("Mops", RIGHT),
        (compared, RIGHT),
        ("hits", RIGHT),
        ("packets/op", RIGHT),
        ("at home/op", RIGHT),
        ("mean wait", RIGHT),
        ("longest", RIGHT),
        ("fairness", RIGHT),
        ("bound by", LEFT),
    ];
    let mut table = Table::new(&figure.to_string(), &columns);
    let mut last = None;
    for (system, workload) in wanted {
        let Some(outcome) = points.get(*system, workload) else {
            continue;
        };
        let first = last != Some(workload);
        if first && last.is_some() {
            table.rule();
        }
        last = Some(workload);
        let (base, without) = baseline(*system, workload);
        let base = points.get(base, &without);
        let cells = row(outcome, base);
        let place = if first {
            place(figure, workload)
        } else {
            String::new()
        };
        let mut row = vec![place.as_str(), system.name()];
        row.extend(cells.iter().map(String::as_str));
        table.row(&row);
    }
    table
}

fn place(figure: Figure, workload: &Workload) -> String {
    let Workload {
        nodes,
        reads,
        program,
        ..
    } = workload;
    let Accesses {
        sharing,
        locality,
        halvings,
        evicts_ahead,
        ..
    } = program;
    match figure {
        Figure::Fig2 | Figure::Fig9 | Figure::Fig10 => format!("sharing {sharing}%"),
        Figure::Fig11 => format!("sharing {sharing}%, reads {reads}%"),
        Figure::Fig12 => format!("locality {locality}%"),
        Figure::Nodes => format!("sharing {sharing}%, {nodes} nodes"),
        Figure::Ahead => {
            let set = f64::from(program.private()) / f64::from(program.cache());
            let when = if *evicts_ahead {
                "ahead"
            } else {
                "when needed"
            };
            format!("{set:.1} times the cache, reads {reads}%, {when}")
        }
        Figure::Places => {
            let places = (program.switch_sets() * 8) as f64 / f64::from(program.shared());
            let times = if *halvings == 0 { ", as built" } else { "" };
            format!("{places:.2} for each shared block{times}")
        }
    }
}

fn row(outcome: &Outcome, base: Option<&Outcome>) -> [String; 9] {
    let each = |count| number(outcome.per_operation(count));
    let gain = base.map(|base| outcome.mops() / base.mops());
    [
        number(outcome.mops()),
        gain.map_or(String::new(), times),
        format!("{:.1}%", 100.0 * outcome.hit_rate()),
        each(outcome.packets),
        each(outcome.home_packets),
        format!("{:.1} µs", outcome.of.mean_wait / 1e3),
        format!("{:.0} µs", outcome.of.longest_wait as f64 / 1e3),
        format!("{:.2}", outcome.fairness),
        outcome.used.bound().to_owned(),
    ]
}

pub(super) fn times(ratio: f64) -> String {
    format!("{ratio:.2}×")
}

/// What the paper says and what came out.
pub fn claims(claims: &[Judged]) -> Table {
    let columns = [
        ("where", LEFT),
        ("the paper's text", LEFT),
        ("paper", RIGHT),
        ("ours", RIGHT),
        ("ours/paper", RIGHT),
        ("verdict", LEFT),
    ];
    let mut table = Table::new(
        "What the paper reports (ranges: from the least to the most)",
        &columns,
    );
    for claim in claims {
        table.row(&[
            claim.place,
            claim.says,
            &claim.paper.to_string(),
            &claim.ours.to_string(),
            &claim
                .ratio
                .map_or(String::new(), |ratio| format!("{ratio:.2}")),
            claim.word(),
        ]);
    }
    table
}

/// What was assumed.
pub fn parameters(parameters: &[Parameter]) -> Table {
    let columns = [("parameter", LEFT), ("value", RIGHT), ("from", LEFT)];
    let mut table = Table::new("Parameters, the same for every figure", &columns);
    for Parameter { name, value, from } in parameters {
        table.row(&[name, value, from]);
    }
    table
}
