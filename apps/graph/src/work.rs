//! The steps of one node, together with all others: bulk-synchronous, with a barrier a phase.

use crate::barrier::{Barrier, Told};
use crate::engine::Engine;
use crate::error::{GraphError, Result};
use crate::exchange::{self, Exchange, Place};
use crate::local::{Applied, Local};
use crate::part::{Column, Part, Plan};
use crate::program::{Program, Word};
use crate::settled::Settled;
use rackmem::{Node, SharedSlice};
use std::time::{Duration, Instant};

/// When to end without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps, at most.
    pub steps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 100_000 }
    }
}

/// A step, as the first node saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Its number, from 1 on.
    pub number: u32,
    /// How much all vertices together have changed ([`Program::change`]).
    pub change: f64,
    /// Vertices that have another value than before.
    pub changed: u64,
    /// Since the computation began.
    pub since: Duration,
}

/// Who watches a computation, and may end it.
pub trait Watch: Sync {
    /// A step has ended. The first node tells.
    fn step(&self, step: &Step) {
        let _ = step;
    }

    /// Whether the computation is to end without a result. All nodes ask, often.
    fn stop(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// What is computed on, and how.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Names the computation in the rack: the regions that it makes begin with it.
    pub name: &'a str,
    /// The graph and its cut.
    pub plan: Plan<'a>,
    /// How data and sums get from node to node.
    pub engine: Engine,
    /// When to end without a result.
    pub limits: Limits,
    /// Who watches.
    pub watch: &'a dyn Watch,
}

impl std::fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name)
            .field("engine", &self.engine)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<'a> Job<'a> {
    /// With the usual limits, and nobody who watches.
    pub fn new(name: &'a str, plan: Plan<'a>, engine: Engine) -> Job<'a> {
        Job {
            name,
            plan,
            engine,
            limits: Limits::default(),
            watch: &Unwatched,
        }
    }

    fn results(&self, node: &Node) -> Result<SharedSlice<u64>> {
        let len = (self.plan.graph.vertices() as usize).max(1);
        Ok(node.named_slice(&format!("{}/results", self.name), len)?)
    }
}

/// What a node knows when all are through.
#[derive(Clone, Debug, PartialEq)]
pub struct Worked {
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether it ended because nothing changed any more, and not at a limit.
    pub is_done: bool,
}

/// Computes, together with threads or processes that call this for all other nodes of the rack.
/// When it returns, the values are in the rack's memory: see [`results`].
///
/// # Errors
/// [`GraphError`]. Other nodes learn of it by [`Watch::stop`], or when they have waited too long.
pub fn work<P: Program>(node: &Node, program: &P, job: &Job<'_>) -> Result<Worked> {
    let (me, nodes) = (usize::from(node.id()), node.nodes());
    if job.plan.cut.nodes() != nodes {
        let (cut, rack) = (job.plan.cut.nodes(), nodes);
        return Err(GraphError::OtherNodes { cut, rack });
    }
    let stop = || job.watch.stop();
    let name = format!("{}/barrier", job.name);
    let mut barrier = Barrier::open(node, &name, (me, nodes), &stop)?;
    let part = Part::of(job.plan, me);
    let plan = job.plan.fingerprint() ^ job.engine.fingerprint();
    let all = barrier.tell([plan, 0, 0, 0])?;
    if let Some(node) = all.iter().position(|told| told[0] != plan) {
        return Err(GraphError::OtherPlan { node });
    }
    let place = Place {
        node,
        name: job.name,
        part: &part,
    };
    let exchange = exchange::open(job.engine, place, || barrier.wait())?;
    let began = Instant::now();
    let mut worker = Worker {
        local: Local::new(program, &part),
        part: &part,
        exchange,
        barrier,
        words: Vec::new(),
        settled: Settled::new(exchange::staleness(job.engine), began),
    };
    let worked = worker.steps(program, job, (me, began))?;
    worker.publish(&job.results(node)?)?;
    Ok(worked)
}

/// All values by vertex, when [`work`] has returned. Any node reads them.
///
/// # Errors
/// Those of the rack.
pub fn results<V: Word>(node: &Node, job: &Job<'_>) -> Result<Vec<V>> {
    let cut = job.plan.cut;
    let words = job.results(node)?;
    let mut values = vec![V::of_word(0); job.plan.graph.vertices() as usize];
    // As they are written: node after node.
    let mut vertices: Vec<u32> = (0..job.plan.graph.vertices()).collect();
    vertices.sort_by_key(|vertex| cut.master(*vertex));
    let mut vertices = vertices.into_iter();
    words.for_each_part(|_, part| {
        for (vertex, word) in vertices.by_ref().take(part.len()).zip(part) {
            values[vertex as usize] = V::of_word(*word);
        }
    })?;
    Ok(values)
}

struct Worker<'a, P: Program> {
    local: Local<'a, P>,
    part: &'a Part,
    exchange: Box<dyn Exchange + 'a>,
    barrier: Barrier<'a>,
    words: Vec<u64>,
    settled: Settled,
}

impl<P: Program> Worker<'_, P> {
    fn steps(
        &mut self,
        program: &P,
        job: &Job<'_>,
        (me, began): (usize, Instant),
    ) -> Result<Worked> {
        let start = Applied {
            leak: self.local.leak(),
            ..Applied::default()
        };
        let mut all = self.share(start)?;
        let mut steps = Vec::new();
        let mut is_done = false;
        while !is_done && (steps.len() as u32) < job.limits.steps {
            if job.watch.stop() {
                return Err(GraphError::Stopped);
            }
            self.gather()?;
            let applied = self.apply(all.applied.leak)?;
            all = self.share(applied)?;
            let is_quiet = all.applied.change < program.tolerance();
            is_done = is_quiet && all.settled;
            self.settled.step(is_quiet, Instant::now());
            let step = Step {
                number: steps.len() as u32 + 1,
                change: all.applied.change,
                changed: all.applied.changed,
                since: began.elapsed(),
            };
            if me == 0 {
                job.watch.step(&step);
            }
            steps.push(step);
        }
        Ok(Worked { steps, is_done })
    }

    /// Sums over the edges here are where masters find them.
    fn gather(&mut self) -> Result<()> {
        for from in self.part.others() {
            self.exchange.get(Column::Data, from, &mut self.words)?;
            self.local
                .mirror(self.local.wants(Column::Data, from), &self.words);
        }
        self.local.gather();
        self.local.sums(&mut self.words);
        self.exchange.put(Column::Sums, &self.words)?;
        self.barrier.wait()?;
        self.exchange.turn()
    }

    /// Masters have new data.
    fn apply(&mut self, everywhere: f64) -> Result<Applied> {
        self.local.begin_totals();
        for from in 0..self.part.nodes {
            if from == self.part.me {
                self.local.add_own();
                continue;
            }
            self.exchange.get(Column::Sums, from, &mut self.words)?;
            self.local
                .add(self.local.wants(Column::Sums, from), &self.words);
        }
        Ok(self.local.apply(everywhere))
    }

    /// The data of masters is where replicas find it, and all know what has happened.
    fn share(&mut self, applied: Applied) -> Result<Everywhere> {
        self.local.data(&mut self.words);
        self.exchange.put(Column::Data, &self.words)?;
        let settled = u64::from(self.settled.holds());
        let (leak, change) = (applied.leak.to_bits(), applied.change.to_bits());
        let all = self
            .barrier
            .tell([leak, change, applied.changed, settled])?;
        self.exchange.turn()?;
        Ok(Everywhere::of(&all))
    }

    /// The values of masters, behind those of the nodes before this one.
    fn publish(&mut self, results: &SharedSlice<u64>) -> Result<()> {
        let first = self.part.mastered[..self.part.me].iter().sum();
        self.local.results(&mut self.words);
        results.write_from(first, &self.words)?;
        self.barrier.wait()
    }
}

/// What all nodes have told, added in their order.
struct Everywhere {
    applied: Applied,
    settled: bool,
}

impl Everywhere {
    fn of(all: &[Told]) -> Everywhere {
        let mut applied = Applied::default();
        for [leak, change, changed, _] in all {
            applied.leak += f64::from_bits(*leak);
            applied.change += f64::from_bits(*change);
            applied.changed = applied.changed.saturating_add(*changed);
        }
        let settled = all.iter().all(|told| told[3] == 1);
        Everywhere { applied, settled }
    }
}
