//! The computation: by each engine that was asked for, and by one thread.

use super::outside::Outside;
use super::program::Told;
use super::row::{Agreement, Row, StepRow};
use super::{CommonArgs, VsArg, input, picture, processes, show};
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::rack_args::packets;
use crate::stop::Stop;
use indicatif::{ProgressBar, ProgressStyle};
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
        if let Some(member) = self.args.member() {
            return processes::member(self, &member, (plan, program));
        }
        // Processes compare for themselves: their values are not here.
        let here = !self.args.processes || self.args.vs.is_some();
        let plain = here.then(|| self.plain(plan, program)).flatten();
        let mut rows = Vec::new();
        for engine in self.args.engines() {
            let row = match self.args.processes {
                true => processes::run(self, engine),
                false => self.here(plan, program, engine, plain.as_ref()).map(Some),
            };
            match row {
                Ok(Some(row)) => rows.push(row),
                Ok(None) => return Ok(Ended::Interrupted),
                Err(_) if self.stop.requested() => return Ok(Ended::Interrupted),
                Err(failure) => return Err(failure),
            }
        }
        let outside = self.outside(program, plain.as_ref())?;
        show::print::<P>(self, &cut, (&rows, outside.as_ref()));
        if let Some(file) = &self.args.picture {
            let title = format!("{}: change of each step, {}", P::NAME, self.source);
            std::fs::write(file, picture::svg(&title, &rows)).map_err(|error| {
                let cause = format!("{}: {error}", file.display());
                Failure::new(cause, "give --picture a file that can be written")
            })?;
        }
        Ok(Ended::Done)
    }

    /// By another program; how far its values are from those of one thread.
    fn outside<P: Told>(
        &self,
        program: &P,
        plain: Option<&Plain<P>>,
    ) -> Result<Option<(Outside, f64)>> {
        let Some(VsArg::Networkx) = self.args.vs else {
            return Ok(None);
        };
        let bar = spinner(self.json, "networkx");
        let outside = Outside::run(&self.graph, program)?;
        bar.finish_and_clear();
        let apart = plain.map_or(f64::NAN, |plain| {
            outside.apart(program, &plain.found.values)
        });
        Ok(Some((outside, apart)))
    }

    /// What the nodes are to do.
    pub fn job<'b>(&self, plan: Plan<'b>, engine: Engine, watch: &'b dyn Watch) -> Job<'b> {
        Job {
            limits: self.limits(),
            watch,
            ..Job::new("graph", plan, engine)
        }
    }

    /// By one thread; what that took, too.
    pub fn plain<P: Told>(&self, plan: Plan<'_>, program: &P) -> Option<Plain<P>> {
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
        let watch = Watcher::new(self, engine.name());
        let job = self.job(plan, engine, &watch);
        let found = run(rack.nodes(), program, &job).map_err(input::failure)?;
        self.row(program, engine, found, (packets(&rack), plain))
    }

    /// What is told of it.
    pub fn row<P: Told>(
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
pub struct Plain<P: Told> {
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

/// Shows the steps, and looks for Ctrl-C.
pub struct Watcher<'a> {
    bar: ProgressBar,
    stop: &'a Stop,
}

impl<'a> Watcher<'a> {
    /// Of something that is called so.
    pub fn new(task: &Task<'a>, what: &str) -> Self {
        Watcher {
            bar: spinner(task.json, what),
            stop: task.stop,
        }
    }

    /// A step has ended.
    pub fn show(&self, step: u32, change: f64) {
        self.bar
            .set_prefix(format!("step {step}, change {change:.1e}"));
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Watcher<'_> {
    fn step(&self, step: &Step) {
        self.show(step.number, step.change);
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
