//! `rackmem bench`: the front end of the benches in `rackmem-bench`.

mod bounded;
pub mod bounded_sim;
mod bulk;
mod copies;
mod dataplane;
mod dbm;
mod dropin;
mod evict;
mod failover;
mod graph;
mod hit;
mod kv;
mod lock;
mod lock_sim;
mod loss;
mod mapped;
mod micro;
mod micro_hosts;
mod micro_sim;
mod miss;
mod objects;
mod objects_sim;
mod often;
mod python;
mod words;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use rackmem_bench::recorded::HistoryFile;
use rackmem_bench::report::{Report, number};
use rackmem_bench::run::dbm::DbmReport;
use rackmem_bench::run::failover::FailoverReport;
use rackmem_bench::run::lock::LockReport;
use rackmem_bench::run::sim::{self, SimReport};
use rackmem_bench::run::{BenchError, Once, Progress, repeated};
use rackmem_bench::table::Table;
use rackmem_bench::timeline::Timeline;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  rackmem bench hit                              a hit beside an atomic load and memcpy
  rackmem bench miss --fabric udp                misses beside plain datagrams over the same hops
  rackmem bench bulk --size 1G --fabric udp      a slice of 1 GiB, written at home, read remotely
  rackmem bench micro --nodes 4                  sharing 0 to 100% in every mode
  rackmem bench micro --hosts 4 --switch user    the same on a rack of network namespaces (root)
  rackmem bench words --fabric udp               a word that several nodes add to, with and without its block
  rackmem bench evict --fabric shm               a working set of twice the cache, evicted ahead or when needed
  rackmem bench lock                             every kind of lock: local, remote, hand-off, contended
  rackmem bench dbm                              a database under one lock, of every kind, beside pthread's
  rackmem bench objects                          reads of whole objects beside a copy and beside versions, CRC, locks
  rackmem bench mapped                           plain loads and stores on the rack's memory, beside calls
  rackmem bench dropin                           unmodified LMDB on the rack's memory, beside LMDB on this host's
  rackmem bench python                           arrays of the Python package beside NumPy, shared memory and pipes
  rackmem bench bounded                          clwb, clflushopt, clflush; reads that are old by a bounded time
  rackmem bench bounded --sim                    PageRank on the paper's machine, by a model
  rackmem bench graph                            PageRank by every engine, beside networkx, igraph, networkit
  rackmem bench loss                             1% and 5% packet loss beside none
  rackmem bench micro --sim --figure 9           a model of the Concordia paper's cluster, beside the paper
  rackmem bench lock --sim --figure 9            a model of the Soul paper's rack, beside the paper
  rackmem bench objects --sim --figure 8         a model of the SABRes paper's chips, beside the paper
  rackmem bench copies                           regions with copies beside memory without, and etcd
  rackmem bench failover --lease-ms 500          kill and restart the switch, then a node
  rackmem bench failover --sim --nodes 8         the same for the switch, in virtual time
  rackmem bench dataplane                        the switch in the kernel beside bare XDP programs
  rackmem bench kv --vs redis                    the store beside redis-server, same client, same keys
  rackmem bench kv --processes 3                 a process a node over UDP, and what an operation costs
  rackmem --json bench hit > hit.json            one object; case names are stable

Close other programs first. The first case of every bench measures the latency between two cores.";

/// Options of `rackmem bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    bench: Bench,
}

/// The benches. To add one: a variant here, a row in `run`, a file with its options.
#[derive(Debug, Subcommand)]
enum Bench {
    /// Measure a cache hit, beside an atomic load and memcpy
    Hit(hit::HitArgs),
    /// Measure each kind of miss, beside plain messages over the same hops
    Miss(miss::MissArgs),
    /// Measure bulk transfers: create, write at home, read remotely, beside memcpy
    Bulk(bulk::BulkArgs),
    /// Measure throughput by sharing ratio, in every mode (Concordia paper, §7.2)
    Micro(micro::MicroArgs),
    /// Measure one word that several nodes add to: the block comes, or the home adds
    Words(words::WordsArgs),
    /// Measure a working set larger than the cache: blocks leave when room is needed, or before
    Evict(evict::EvictArgs),
    /// Measure locks: local, remote, hand-off, contended; beside other locks, Redis and etcd
    Lock(lock::LockArgs),
    /// Measure a hash and a tree database under one lock, of every kind (Soul paper, Fig. 8)
    Dbm(dbm::DbmArgs),
    /// Measure reads of whole objects, beside a plain copy and other ways to tell a torn one
    Objects(objects::ObjectsArgs),
    /// Measure plain loads and stores on the rack's memory, beside plain memory and calls
    Mapped(mapped::MappedArgs),
    /// Measure the Python package: elements, slices, and 4 KiB and 1 MiB from process to process
    Python(python::PythonArgs),
    /// Measure unmodified LMDB on the rack's memory, by LD_PRELOAD, beside LMDB on this host's
    Dropin(dropin::DropInArgs),
    /// Measure memory that is old by a bounded time, and the instructions that it takes (BI paper)
    Bounded(bounded::BoundedArgs),
    /// Measure PageRank by every engine of `rackmem graph`, beside one thread and libraries
    Graph(graph::GraphArgs),
    /// Measure regions with copies: beside memory without, durable, when a replica dies; etcd
    Copies(copies::CopiesArgs),
    /// Measure under packet loss, duplication and reordering, and check every answer
    Loss(loss::LossArgs),
    /// Measure the outage when the switch and a node die (Concordia paper, Fig. 13)
    Failover(failover::FailoverArgs),
    /// Measure the switch program per packet, in Rust and in the kernel (XDP)
    Dataplane(dataplane::DataplaneArgs),
    /// Measure the store, embedded and over RESP, beside redis-server
    Kv(kv::KvArgs),
}

/// What a bench gives, beside what it adds to its report.
type BenchResult = std::result::Result<(), BenchError>;

/// Runs one and prints its report, with the options that it has.
pub fn run(args: &BenchArgs, json: bool, options: BTreeMap<String, String>) -> Result<Ended> {
    match &args.bench {
        Bench::Dataplane(args) if args.plays() => {
            dataplane::play(args).map_err(explain)?;
            return Ok(Ended::Done);
        }
        Bench::Objects(args) => {
            if let Some((file, size)) = args.home() {
                rackmem_bench::run::objects_home::play(file, size).map_err(explain)?;
                return Ok(Ended::Done);
            }
        }
        Bench::Bounded(args) => {
            if let Some(file) = args.member() {
                rackmem_bench::run::bounded::stopped::play(file).map_err(explain)?;
                return Ok(Ended::Done);
            }
        }
        Bench::Micro(args) if args.is_member() => {
            out::line(serde_json::to_string(&args.member()?).map_err(defect)?);
            return Ok(Ended::Done);
        }
        _ => {}
    }
    // Benches look at the flag that signals set.
    Stop::on_signals()?;
    let bench = Running {
        bar: spinner(),
        json,
        options,
    };
    match &args.bench {
        Bench::Hit(args) => bench.plain("hit", args.often.runs, &mut |_, report, tell| {
            hit::run(args, report, tell)
        }),
        Bench::Miss(args) => bench.plain("miss", args.often.runs, &mut |_, report, tell| {
            miss::run(args, report, tell)
        }),
        Bench::Words(args) => bench.plain("words", args.often.runs, &mut |_, report, tell| {
            words::run(args, report, tell)
        }),
        Bench::Evict(args) => bench.plain("evict", args.often.runs, &mut |_, report, tell| {
            evict::run(args, report, tell)
        }),
        Bench::Bulk(args) => bench.plain("bulk", args.often.runs, &mut |_, report, tell| {
            bulk::run(args, report, tell)
        }),
        Bench::Objects(args) => match args.sim.options() {
            Some(options) => bench.simulated(|tell| sim::objects::run(&options, tell)),
            None => bench.plain("objects", args.often.runs, &mut |_, report, tell| {
                objects::run(args, report, tell)
            }),
        },
        Bench::Mapped(args) => bench.plain("mapped", args.often.runs, &mut |_, report, tell| {
            mapped::run(args, report, tell)
        }),
        Bench::Python(args) => bench.plain("python", args.often.runs, &mut |_, report, tell| {
            python::run(args, report, tell)
        }),
        Bench::Dropin(args) => bench.plain("dropin", args.often.runs, &mut |_, report, tell| {
            dropin::run(args, report, tell)
        }),
        Bench::Bounded(args) if args.sim => bench.bounded_sim(args.scale),
        Bench::Bounded(args) => bench.plain("bounded", args.often.runs, &mut |_, report, tell| {
            bounded::run(args, report, tell)
        }),
        Bench::Graph(args) => bench.graph(args),
        Bench::Copies(args) => bench.copies(args),
        Bench::Dataplane(args) => {
            bench.plain("dataplane", args.often.runs, &mut |_, report, tell| {
                dataplane::run(args, report, tell)
            })
        }
        Bench::Loss(args) => {
            let mut file = history_file(args.history.as_deref())?;
            bench.plain("loss", args.often.runs, &mut |round, report, tell| {
                loss::run(args, round, file.as_mut(), report, tell)
            })
        }
        Bench::Kv(args) => {
            let mut file = one_history(args.history.as_deref(), args.often.runs)?;
            bench.plain("kv", args.often.runs, &mut |round, report, tell| {
                kv::run(args, round, file.as_mut(), report, tell)
            })
        }
        Bench::Micro(args) => {
            if let Some(options) = args.simulation() {
                return bench.simulated(|tell| sim::run(&options, tell));
            }
            let mut file = one_history(args.history.as_deref(), args.often.runs)?;
            bench.plain("micro", args.often.runs, &mut |_, report, tell| {
                micro::run(args, file.as_mut(), report, tell)
            })
        }
        Bench::Lock(args) => match args.sim.options() {
            Some(options) => bench.simulated(|tell| sim::locks::run(&options, tell)),
            None => bench.locks(args),
        },
        Bench::Dbm(args) => bench.databases(args),
        Bench::Failover(args) => bench.failover(args),
    }
}

/// A bench that runs.
struct Running {
    bar: ProgressBar,
    json: bool,
    options: BTreeMap<String, String>,
}

impl Running {
    fn measure(&self, name: &str, runs: usize, once: Once<'_>) -> Result<Report> {
        let mut blank = Report::new(name);
        blank.options.clone_from(&self.options);
        let mut tell = |what: &str| self.bar.set_message(what.to_owned());
        let told = repeated(blank, runs, &mut tell, once);
        self.bar.finish_and_clear();
        told.map_err(explain)
    }

    /// Prints what was measured, and says how it ended.
    fn print(&self, report: &Report, data: &impl Serialize, tables: &[Table]) -> Result<Ended> {
        if self.json {
            out::line(serde_json::to_string(data).map_err(defect)?);
        } else {
            report.header().iter().for_each(out::line);
            tables.iter().for_each(out::whole_table);
        }
        Ok(match report.partial {
            true => Ended::Interrupted,
            false => Ended::Done,
        })
    }

    fn plain(&self, name: &str, runs: usize, once: Once<'_>) -> Result<Ended> {
        let report = self.measure(name, runs, once)?;
        self.print(&report, &report, &[report.table()])
    }

    fn locks(&self, args: &lock::LockArgs) -> Result<Ended> {
        let options = args.options();
        let mut missing = Vec::new();
        let report = self.measure("lock", args.often.runs, &mut |_, report, tell| {
            missing = rackmem_bench::run::lock::run(&options, report, tell)?;
            Ok(())
        })?;
        missing.iter().for_each(|why| eprintln!("{why}"));
        let told = LockReport::new(&options, report, missing);
        self.print(&told.report, &told.report, &told.tables())
    }

    fn databases(&self, args: &dbm::DbmArgs) -> Result<Ended> {
        let options = args.options()?;
        let report = self.measure("dbm", args.often.runs, &mut |_, report, tell| {
            rackmem_bench::run::dbm::run(&options, report, tell)
        })?;
        let told = DbmReport::new(&options, report);
        self.print(&told.report, &told.report, &told.tables())
    }

    fn graph(&self, args: &graph::GraphArgs) -> Result<Ended> {
        let options = args.options()?;
        let mut missing = Vec::new();
        let report = self.measure("graph", args.often.runs, &mut |_, report, tell| {
            missing = rackmem_bench::run::graph::run(&options, report, tell)?;
            Ok(())
        })?;
        missing.iter().for_each(|why| eprintln!("{why}"));
        self.print(&report, &report, &[report.table()])
    }

    fn copies(&self, args: &copies::CopiesArgs) -> Result<Ended> {
        let mut missing = Vec::new();
        let report = self.measure("copies", args.often.runs, &mut |_, report, tell| {
            missing = copies::run(args, report, tell)?;
            Ok(())
        })?;
        missing.iter().for_each(|why| eprintln!("{why}"));
        self.print(&report, &report, &[report.table()])
    }

    fn bounded_sim(&self, scale: u32) -> Result<Ended> {
        self.told("bounded-sim", &mut |report| {
            bounded_sim::simulate(scale, report)
        })
    }

    /// A report, and a text behind it.
    fn told(
        &self,
        name: &str,
        run: &mut dyn FnMut(&mut Report) -> std::result::Result<String, BenchError>,
    ) -> Result<Ended> {
        let mut text = String::new();
        let report = self.measure(name, 1, &mut |_, report, _| {
            text = run(report)?;
            Ok(())
        })?;
        let ended = self.print(&report, &report, &[report.table()])?;
        if !self.json {
            out::line(text);
        }
        Ok(ended)
    }

    fn failover(&self, args: &failover::FailoverArgs) -> Result<Ended> {
        if args.sim {
            return self.told("failover-sim", &mut |report| {
                failover::simulate(args, report)
            });
        }
        let mut timelines = Vec::new();
        let report = self.measure("failover", args.often.runs, &mut |_, report, tell| {
            // Those of the last run are shown.
            timelines.clear();
            failover::run(args, report, &mut timelines, tell)
        })?;
        let told = FailoverReport { report, timelines };
        let ended = self.print(&told.report, &told, &[told.report.table()])?;
        if !self.json {
            let plots = told.timelines.iter().map(Timeline::plot);
            plots.for_each(out::line);
        }
        Ok(ended)
    }

    fn simulated(
        &self,
        simulate: impl FnOnce(Progress<'_>) -> std::result::Result<SimReport, BenchError>,
    ) -> Result<Ended> {
        let told = simulate(&mut |what: &str| self.bar.set_message(what.to_owned()));
        self.bar.finish_and_clear();
        let mut told = told.map_err(explain)?;
        told.report.options.clone_from(&self.options);
        let tables: Vec<Table> = told.tables().collect();
        let ended = self.print(&told.report, &told, &tables)?;
        if !self.json {
            out::line(speed(&told));
        }
        Ok(ended)
    }
}

/// The file that histories go to, if one is wanted.
fn history_file(path: Option<&Path>) -> Result<Option<HistoryFile>> {
    let create = |path: &Path| {
        HistoryFile::create(path).map_err(|error| {
            let cause = format!("{}: {error}", path.display());
            Failure::new(cause, "give --history a file that can be written")
        })
    };
    path.map(create).transpose()
}

/// The same where the clients of two runs could not be told apart.
fn one_history(path: Option<&Path>, runs: usize) -> Result<Option<HistoryFile>> {
    if path.is_some() && runs > 1 {
        let cause = format!("--history records one run, not {runs}");
        return Err(Failure::new(cause, "leave --runs out, or --history"));
    }
    history_file(path)
}

/// A line that moves while something is measured; nothing where nobody looks.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn explain(error: BenchError) -> Failure {
    match error {
        BenchError::Rack(error) => error.into(),
        BenchError::Io(error) => error.into(),
        BenchError::Missing(what) => {
            Failure::new(what, "run `rackmem doctor`, which says how to get it")
        }
        BenchError::Stopped => Failure::new("stopped", "run it again"),
        BenchError::Broken(what) => Failure::new(
            what,
            "this is a defect of rackmem: please report it with the options",
        ),
        BenchError::NotLinearizable(what) => {
            // The operations that contradict each other are a table; a failure is a line.
            eprintln!("{what}");
            Failure::new(
                "the recorded answers are not linearizable",
                "this is a defect of the rack: please report it, with the file of --history",
            )
        }
        BenchError::Report(error) => Failure::new(
            error.to_string(),
            "this is a defect of the bench: please report it",
        ),
    }
}

/// What a simulation itself took.
fn speed(told: &SimReport) -> String {
    let sim::Speed {
        runs,
        packets,
        occurrences,
        core_seconds,
        seconds,
    } = told.speed;
    let each_second = |count: u64| number(count as f64 / core_seconds);
    format!(
        "{runs} runs with seed {} in {seconds:.1} s: {} packets and {} events a second of a core.",
        told.seed,
        each_second(packets),
        each_second(occurrences)
    )
}

fn defect(error: serde_json::Error) -> Failure {
    Failure::new(
        error.to_string(),
        "this is a defect of the bench: please report it",
    )
}
