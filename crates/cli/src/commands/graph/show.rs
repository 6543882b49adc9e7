//! The results for a person, and for a script.

use super::outside::Outside;
use super::play::Task;
use super::program::Told;
use super::row::Row;
use crate::out;
use crate::size::count;
use rackmem_bench::table::{Align, Table};
use rackmem_graph::Cut;
use serde_json::json;

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

/// Prints all of it.
pub fn print<P: Told>(
    task: &Task<'_>,
    cut: &Cut,
    (rows, outside): (&[Row], Option<&(Outside, f64)>),
) {
    let Some(first) = rows.first() else {
        return;
    };
    let processes = match task.args.processes {
        true => ", a process for each",
        false => "",
    };
    if task.json {
        out::line(object::<P>(task, cut, (rows, outside)));
        return;
    }
    out::line(format!(
        "{} vertices, {} edges: {}",
        count(task.graph.vertices().into()),
        count(task.graph.edges().len() as u64),
        task.source,
    ));
    out::line(format!(
        "{}{processes}; a vertex is at {:.2} nodes on average\n",
        task.args.rack.describe(),
        cut.replication()
    ));
    if !first.top.is_empty() {
        out::table(&top::<P>(first));
    }
    out::line(format!("{}.\n", first.summary));
    out::table(&engines::<P>(rows));
    let receivers = match task.args.processes {
        true => "agents have received (not the switch, a process of its own)",
        false => "agents and the switch have received",
    };
    out::line(format!(
        "Packets: what {receivers}, with making the memory."
    ));
    if let Some(agreement) = first.agreement {
        let seconds = time(agreement.plain_seconds);
        out::line(format!("One thread without a rack takes {seconds}."));
    }
    if let Some((outside, apart)) = outside {
        let (name, version) = (&outside.name, &outside.version);
        let seconds = time(outside.seconds);
        out::line(format!(
            "{name} {version} takes {seconds} without reading the graph; values are within {apart:.0e}."
        ));
    }
}

fn top<P: Told>(row: &Row) -> Table {
    let columns = [("", RIGHT), ("vertex", LEFT), (P::VALUE, RIGHT)];
    let mut table = Table::new(&format!("{}: {}", P::NAME, P::TOP), &columns);
    for (place, one) in (1..).zip(&row.top) {
        let value = match one.value.fract() == 0.0 {
            true => count(one.value as u64),
            false => format!("{:.8}", one.value),
        };
        table.row(&[&format!("{place}"), &one.vertex, &value]);
    }
    table
}

fn engines<P: Told>(rows: &[Row]) -> Table {
    let columns = [
        ("engine", LEFT),
        ("steps", RIGHT),
        ("time", RIGHT),
        ("a step", RIGHT),
        ("packets", RIGHT),
        ("a step", RIGHT),
        ("beside one thread", LEFT),
    ];
    let mut table = Table::new(P::NAME, &columns);
    for row in rows {
        let steps = row.steps.len().max(1) as f64;
        let at_limit = if row.is_done { "" } else { " (limit)" };
        table.row(&[
            &row.engine,
            &format!("{}{at_limit}", row.steps.len()),
            &time(row.seconds),
            &time(row.seconds / steps),
            &count(row.packets),
            &count((row.packets as f64 / steps).round() as u64),
            &beside(row),
        ]);
    }
    table
}

fn beside(row: &Row) -> String {
    let Some(agreement) = row.agreement else {
        return "not compared".into();
    };
    let steps = match agreement.more_steps {
        0 => "as many steps".to_owned(),
        more => format!("{more:+} steps"),
    };
    match agreement.same_bits {
        true => format!("the same bits, {steps}"),
        false => format!("within {:.0e}, {steps}", agreement.largest_difference),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        it if it < 1e-3 => format!("{:.0} µs", it * 1e6),
        it if it < 1.0 => format!("{:.1} ms", it * 1e3),
        it => format!("{it:.2} s"),
    }
}

fn object<P: Told>(
    task: &Task<'_>,
    cut: &Cut,
    (rows, outside): (&[Row], Option<&(Outside, f64)>),
) -> serde_json::Value {
    let outside = outside.map(|(outside, apart)| {
        json!({
            "name": outside.name,
            "version": outside.version,
            "seconds": outside.seconds,
            "largest_difference": apart,
        })
    });
    json!({
        "program": P::NAME,
        "graph": {
            "source": task.source,
            "vertices": task.graph.vertices(),
            "edges": task.graph.edges().len(),
        },
        "rack": task.args.rack.describe(),
        "cut": {
            "nodes": cut.nodes(),
            "replication": cut.replication(),
            "edges": cut.edges_at(),
        },
        "processes": task.args.processes,
        "engines": rows,
        "outside": outside,
    })
}
