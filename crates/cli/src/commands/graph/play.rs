//! The computation: by each engine that was asked for, and by one thread.

use super::program::Told;
use super::row::{Agreement, Row, StepRow};
use super::{CommonArgs, input, show};
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::stop::Stop;
use indicatif::{ProgressBar, ProgressStyle};
use rackmem::Rack;
use rackmem_graph::{
    Cut, Engine, Found, Graph, Job, Limits, Plan, Step, Watch, Word, reference, run,
};
use std::time::{Duration, Instant};

/// Between two movements of what shows that something is under way.
const TICK: Duration = Duration::from_millis(100);

/// What was asked for, with the graph.
pub struct Task<'a> {
    pub args: &'a CommonArgs,
    pub stop: &'a Stop,
    pub json: bool,
    pub graph: Graph,
    /// Where the graph is from.
    pub source: String,
}

impl<'a> Task<'a> {
    /// Reads the graph.
    pub fn new(args: &'a CommonArgs, stop: &'a Stop, json: bool) -> Result<Self> {
        let bar = spinner(json, "reading the graph");
        let (graph, source) = args.input.read()?;
        bar.finish_and_clear();
        Ok(Task {
            args,
            stop,
            json,
            graph,
            source,
        })
    }

    /// The same with edges that lead both ways.
    pub fn both_ways(mut self) -> Self {
        self.graph = self.graph.undirected();
        self
    }

    /// All of it.
    pub fn run<P: Told>(&self, program: &P) -> Result<Ended> {
        let bar = spinner(self.json, "dividing its edges");
        let cut = Cut::new(&self.graph, self.args.rack.nodes, self.args.cut.into());
        let cut = cut.map_err(input::failure)?;
        bar.finish_and_clear();
        let plan = Plan {
            graph: &self.graph,
            cut: &cut,
        };
        let plain = self.plain(plan, program);
        let mut rows = Vec::new();
        for engine in self.args.engines() {
            match self.here(plan, program, engine, plain.as_ref()) {
                Ok(row) => rows.push(row),
                Err(_) if self.stop.requested() => return Ok(Ended::Interrupted),
                Err(failure) => return Err(failure),
            }
        }
        show::print::<P>(self, &cut, &rows);
        Ok(Ended::Done)
    }

    /// By one thread; what that took, too.
    fn plain<P: Told>(&self, plan: Plan<'_>, program: &P) -> Option<Plain<P>> {
        if self.args.no_check {
            return None;
        }
        let bar = spinner(self.json, "computing with one thread");
        let start = Instant::now();
        let found = reference(plan, program, self.limits());
        bar.finish_and_clear();
        let seconds = start.elapsed().as_secs_f64();
        Some(Plain { found, seconds })
    }

    fn limits(&self) -> Limits {
        let steps = self.args.steps;
        Limits { steps }
    }

    /// By the nodes of a rack in this process.
    fn here<P: Told>(
        &self,
        plan: Plan<'_>,
        program: &P,
        engine: Engine,
        plain: Option<&Plain<P>>,
    ) -> Result<Row> {
        let rack = self.args.rack.build()?;
        let watch = Watcher {
            bar: spinner(self.json, engine.name()),
            stop: self.stop,
        };
        let job = Job {
            limits: self.limits(),
            watch: &watch,
            ..Job::new("graph", plan, engine)
        };
        let found = run(rack.nodes(), program, &job).map_err(input::failure)?;
        watch.bar.finish_and_clear();
        self.row(program, engine, found, (packets(&rack), plain))
    }

    /// What is told of it.
    fn row<P: Told>(
        &self,
        program: &P,
        engine: Engine,
        found: Found<P::Value>,
        (packets, plain): (u64, Option<&Plain<P>>),
    ) -> Result<Row> {
        let agreement = plain.map(|plain| plain.compare(program, &found));
        if engine.is_synchronous() && agreement.is_some_and(|it| !it.same_bits) {
            return Err(Failure::new(
                format!("{engine} has other values than one thread"),
                "this is a defect of rackmem: please report it with this text and the options",
            ));
        }
        let step = |step: &Step| StepRow {
            change: step.change,
            changed: step.changed,
            seconds: step.since.as_secs_f64(),
        };
        let steps: Vec<StepRow> = found.worked.steps.iter().map(step).collect();
        Ok(Row {
            engine: engine.name().to_owned(),
            seconds: steps.last().map_or(0.0, |step| step.seconds),
            is_done: found.worked.is_done,
            steps,
            packets,
            agreement,
            summary: program.summary(&found.values),
            top: program.top(&self.graph, &found.values, self.args.top),
        })
    }
}

/// What one thread found.
struct Plain<P: Told> {
    found: Found<P::Value>,
    seconds: f64,
}

impl<P: Told> Plain<P> {
    fn compare(&self, program: &P, found: &Found<P::Value>) -> Agreement {
        let pairs = || found.values.iter().zip(&self.found.values);
        let apart = pairs().map(|(one, other)| program.apart(*one, *other));
        let steps = |found: &Found<P::Value>| found.worked.steps.len() as i64;
        Agreement {
            same_bits: pairs().all(|(one, other)| one.to_word() == other.to_word()),
            largest_difference: apart.fold(0.0, f64::max),
            more_steps: steps(found) - steps(&self.found),
            plain_seconds: self.seconds,
        }
    }
}

/// Packets that agents of this process, and the switch if it is here, have received.
fn packets(rack: &Rack) -> u64 {
    let metrics = rack.metrics();
    let switch = metrics.switch.as_ref();
    metrics.agent_packets().total() + switch.map_or(0, |it| it.received.total())
}

/// Shows the steps, and looks for Ctrl-C.
struct Watcher<'a> {
    bar: ProgressBar,
    stop: &'a Stop,
}

impl Watch for Watcher<'_> {
    fn step(&self, step: &Step) {
        let text = format!("step {}, change {:.1e}", step.number, step.change);
        self.bar.set_prefix(text);
    }

    fn stop(&self) -> bool {
        self.stop.requested()
    }
}

/// Something is under way, on a terminal.
fn spinner(json: bool, what: &str) -> ProgressBar {
    if json {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("  {spinner} {msg:28} {prefix}") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(TICK);
    bar
}
