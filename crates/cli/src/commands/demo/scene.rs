//! What every part of the demo plays on: the rack, a store at every node, and whoever watches.

use super::meter::Meter;
use super::remote;
use super::summary::Phase;
use super::workload;
use crate::halt::{self, Halt, Played};
use crate::out;
use crate::stop::Stop;
use crate::store::{self, NodeStore};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use rackmem::Rack;
use rackmem_bench::packages::Graph;
use std::time::Instant;

/// How often a loop looks up from its work: to show progress and to see whether it should stop.
const BATCH: u64 = 1024;
/// Bytes of a record on average, key and header included.
const RECORD: u64 = 120;
/// How much of the buckets is meant to stay empty: pages that overflow are slower.
const SLACK: u64 = 3;

/// The rack and what is needed on it.
pub struct Scene<'a> {
    /// The rack.
    pub rack: Rack,
    /// The store, by node.
    pub stores: Vec<NodeStore>,
    /// Whether to stop.
    pub stop: &'a Stop,
    /// Who watches.
    pub show: Show,
}

/// Who watches: a person, or a script that wants nothing but the result.
#[derive(Clone, Copy)]
pub struct Show {
    /// A script.
    pub json: bool,
}

impl Show {
    /// A headline.
    pub fn title(self, text: &str) {
        if !self.json {
            out::line(format!("{text}\n"));
        }
    }

    /// What to do next.
    pub fn hint(self, text: &str) {
        if !self.json {
            out::line(text);
        }
    }

    /// What a part has done.
    pub fn done(self, text: &str) {
        if !self.json {
            out::line(format!("✓ {text}"));
        }
    }

    /// A bar of so many steps, on a terminal.
    pub fn bar(self, what: &str, steps: u64) -> ProgressBar {
        if self.json {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(steps).with_finish(ProgressFinish::AndClear);
        if let Ok(style) = ProgressStyle::with_template("  {msg:24} {wide_bar} {percent:>3}%") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar
    }
}

/// A loop's view of whether to go on, and its way to show how far it is.
pub struct Pace<'a> {
    stop: &'a Stop,
    bar: &'a ProgressBar,
    steps: u64,
}

impl Pace<'_> {
    /// One step is done; an error when it is to be the last.
    #[inline]
    pub fn step(&mut self) -> Played<()> {
        self.steps += 1;
        if !self.steps.is_multiple_of(BATCH) {
            return Ok(());
        }
        self.bar.inc(BATCH);
        if self.stop.requested() {
            return Err(Halt::Stopped);
        }
        Ok(())
    }
}

impl<'a> Scene<'a> {
    /// Opens the store at every node, with room for what the demo will put there.
    pub fn open(
        rack: Rack,
        stop: &'a Stop,
        show: Show,
        graph: &Graph,
        block_size: u64,
    ) -> Played<Scene<'a>> {
        let records = 2 * graph.nodes() as u64 + workload::RECORDS.count;
        // A bucket's page is a block, but no longer than this.
        let pages = records * RECORD * SLACK / block_size.min(4096);
        let buckets = pages.next_power_of_two().clamp(1 << 10, 1 << 20) as usize;
        let nodes = rack.nodes().iter().cloned();
        let stores = nodes
            .map(|node| store::open(node, buckets))
            .collect::<Result<_, _>>()?;
        Ok(Scene {
            rack,
            stores,
            stop,
            show,
        })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.stores.len()
    }

    /// For a loop to keep in touch.
    pub fn pace<'b>(&'b self, bar: &'b ProgressBar) -> Pace<'b> {
        Pace {
            stop: self.stop,
            bar,
            steps: 0,
        }
    }

    /// Runs `work` on a thread for each of the nodes in `who`. If one fails the others are stopped.
    pub fn on_nodes<T: Send>(
        &self,
        who: impl Iterator<Item = usize>,
        work: impl Fn(usize, &NodeStore) -> Played<T> + Sync,
    ) -> Played<Vec<T>> {
        self.on_threads(who, |node| work(node, &self.stores[node]))
    }

    /// The same with several threads, numbered through, on every node.
    pub fn on_clients<T: Send>(
        &self,
        clients: usize,
        work: impl Fn(usize, &NodeStore) -> Played<T> + Sync,
    ) -> Played<Vec<T>> {
        let all = 0..self.nodes() * clients;
        self.on_threads(all, |client| work(client, &self.stores[client / clients]))
    }

    fn on_threads<T: Send>(
        &self,
        numbers: impl Iterator<Item = usize>,
        work: impl Fn(usize) -> Played<T> + Sync,
    ) -> Played<Vec<T>> {
        let work = |number: usize| {
            let result = work(number);
            if result.is_err() {
                self.stop.request();
            }
            result
        };
        let results = std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = numbers
                .map(|number| scope.spawn(move || work(number)))
                .collect();
            threads
                .into_iter()
                .map(|thread| match thread.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect()
        });
        halt::all(results)
    }

    /// Runs a part and tells what it took: time, and the coherence events of all nodes.
    pub fn measure(&self, name: &str, work: impl FnOnce() -> Played<Vec<Meter>>) -> Played<Phase> {
        let before = remote::transactions(&self.rack);
        let start = Instant::now();
        let meter = Meter::sum(work()?);
        let seconds = start.elapsed().as_secs_f64();
        let remote = remote::transactions(&self.rack) - before;
        Ok(Phase {
            name: name.to_owned(),
            seconds,
            operations: meter.operations,
            remote,
            latencies: meter.latencies,
        })
    }
}
