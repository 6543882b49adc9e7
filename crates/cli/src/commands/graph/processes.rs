//! A rack of processes that computes: this side starts them, each computes as one node, and the
//! first tells what was found.

use super::play::{Task, Watcher};
use super::program::Told;
use super::row::Row;
use crate::commands::load;
use crate::crew::{Crew, Start};
use crate::ended::Ended;
use crate::failure::Result;
use crate::halt::{Halt, Played, wrong};
use crate::out;
use crate::rack_args::packets;
use rackmem::Rack;
use rackmem_graph::{Engine, Found, Plan, Step, Watch, results, work};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// How long all processes may be silent: a step of a large graph takes long.
const PATIENCE: Duration = Duration::from_secs(600);
/// Lines of the rack's file beside those that all such racks have. A process reads the graph before
/// it serves its node.
const LINES: &str = "patience = \"5m\"\n";

/// Starts the processes, and waits for what they have found.
pub fn run(task: &Task<'_>, engine: Engine) -> Result<Option<Row>> {
    match play(task, engine) {
        Ok(row) => Ok(Some(row)),
        Err(Halt::Stopped) => Ok(None),
        Err(Halt::Failed(failure)) => Err(failure),
    }
}

fn play(task: &Task<'_>, engine: Engine) -> Played<Row> {
    let rack = &task.args.rack;
    let lines = format!("{LINES}{}", rack.fabric_of_processes()?);
    // What this process was asked for, as a node.
    let own: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--json")
        .collect();
    let member = |file: &Path, node: usize| {
        let (file, node) = (file.to_string_lossy(), node.to_string());
        let more = [
            "--member",
            &file,
            "--as-node",
            &node,
            "--as-engine",
            engine.name(),
        ];
        own.iter().cloned().chain(more.map(String::from)).collect()
    };
    let start = Start {
        rack,
        lines: &lines,
        member: &member,
        patience: PATIENCE,
        next: "see its message above; without --processes the nodes are threads",
    };
    let mut crew = Crew::start(&start, task.stop)?;
    let watcher = Watcher::new(task, &format!("{engine}, processes"));
    let mut row = loop {
        let said = crew.answer(0, task.stop)?;
        if let Some(step) = said["step"].as_u64() {
            watcher.show(step as u32, said["change"].as_f64().unwrap_or_default());
            continue;
        }
        let row: Row = serde_json::from_value(said["row"].clone())
            .map_err(|error| wrong(format!("node 0 says {said}: {error}")))?;
        break row;
    };
    for node in 1..rack.nodes {
        row.packets += crew.answer(node, task.stop)?["packets"]
            .as_u64()
            .unwrap_or_default();
    }
    Ok(row)
}

/// One node.
pub struct Member<'a> {
    pub file: &'a Path,
    pub node: usize,
    pub engine: Engine,
}

/// Tells each step.
struct Teller(bool);

impl Watch for Teller {
    fn step(&self, step: &Step) {
        if self.0 {
            out::line(json!({"step": step.number, "change": step.change}));
        }
    }
}

/// Computes as one node, and stays until the process that has started this one ends it.
pub fn member<P: Told>(
    task: &Task<'_>,
    member: &Member<'_>,
    (plan, program): (Plan<'_>, &P),
) -> Result<Ended> {
    crate::orphan::end_with_stdin()?;
    let rack = Rack::join(&load(member.file)?, member.node)?;
    let node = rack.node(member.node);
    let teller = Teller(member.node == 0);
    let job = task.job(plan, member.engine, &teller);
    let worked = work(&node, program, &job).map_err(super::input::failure)?;
    let told: Value = if member.node == 0 {
        let values = results(&node, &job).map_err(super::input::failure)?;
        let plain = task.plain(plan, program);
        let found = Found { values, worked };
        let row = task.row(
            program,
            member.engine,
            found,
            (packets(&rack), plain.as_ref()),
        )?;
        json!({"row": row})
    } else {
        json!({"packets": packets(&rack)})
    };
    out::line(told);
    task.stop.wait();
    Ok(Ended::Done)
}
