//! `rackmem bench`: the front end of the benches in `rackmem-bench`.

mod bulk;
mod dataplane;
mod failover;
mod hit;
mod kv;
mod lock;
mod lock_sim;
mod loss;
mod micro;
mod micro_hosts;
mod micro_sim;
mod miss;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use rackmem_bench::recorded::HistoryFile;
use rackmem_bench::report::{Report, number};
use rackmem_bench::run::failover::FailoverReport;
use rackmem_bench::run::lock::LockReport;
use rackmem_bench::run::sim::{self, SimReport};
use rackmem_bench::run::{BenchError, Progress};
use std::path::Path;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  rackmem bench hit                              a hit beside an atomic load and memcpy
  rackmem bench miss --fabric udp                misses beside plain datagrams over the same hops
  rackmem bench bulk --size 1G --fabric udp      a slice of 1 GiB, written at home, read remotely
  rackmem bench micro --nodes 4                  sharing 0 to 100% in every mode
  rackmem bench micro --hosts 4 --switch user    the same on a rack of network namespaces (root)
  rackmem bench lock                             every kind of lock: local, remote, hand-off, contended
  rackmem bench loss                             1% and 5% packet loss beside none
  rackmem bench micro --sim --figure 9           a model of the Concordia paper's cluster, beside the paper
  rackmem bench lock --sim --figure 9            a model of the Soul paper's rack, beside the paper
  rackmem bench failover --lease-ms 500          kill and restart the switch, then a node
  rackmem bench failover --sim --nodes 8         the same for the switch, in virtual time
  rackmem bench dataplane                        the switch in the kernel beside bare XDP programs
  rackmem bench kv --vs redis                    the store beside redis-server, same client, same keys
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
    /// Measure locks: local, remote, hand-off, contended; beside other locks, Redis and etcd
    Lock(lock::LockArgs),
    /// Measure under packet loss, duplication and reordering, and check every answer
    Loss(loss::LossArgs),
    /// Measure the outage when the switch and a node die (Concordia paper, Fig. 13)
    Failover(failover::FailoverArgs),
    /// Measure the switch program per packet, in Rust and in the kernel (XDP)
    Dataplane(dataplane::DataplaneArgs),
    /// Measure the store, embedded and over RESP, beside redis-server
    Kv(kv::KvArgs),
}

/// Runs one and prints its report.
pub fn run(args: &BenchArgs, json: bool) -> Result<Ended> {
    if let Bench::Dataplane(args) = &args.bench
        && args.plays()
    {
        dataplane::play(args).map_err(explain)?;
        return Ok(Ended::Done);
    }
    let bar = spinner();
    let mut tell = |what: &str| bar.set_message(what.to_owned());
    let report = match &args.bench {
        Bench::Hit(args) => hit::run(args, &mut tell),
        Bench::Miss(args) => miss::run(args, &mut tell),
        Bench::Bulk(args) => bulk::run(args, &mut tell),
        Bench::Lock(args) => {
            if let Some(options) = args.sim.options() {
                let told = sim::locks::run(&options, &mut tell);
                bar.finish_and_clear();
                print_simulation(&told.map_err(explain)?, json)?;
                return Ok(Ended::Done);
            }
            let told = lock::run(args, &mut tell);
            bar.finish_and_clear();
            return print_locks(told?, json);
        }
        Bench::Loss(args) => loss::run(args, &mut tell),
        Bench::Micro(args) if args.is_member() => {
            let part = args.member();
            bar.finish_and_clear();
            out::line(serde_json::to_string(&part?).map_err(defect)?);
            return Ok(Ended::Done);
        }
        Bench::Micro(args) => match args.simulation() {
            Some(options) => {
                let told = sim::run(&options, &mut tell);
                bar.finish_and_clear();
                print_simulation(&told.map_err(explain)?, json)?;
                return Ok(Ended::Done);
            }
            None => micro::run(args, &mut tell),
        },
        Bench::Failover(args) if args.sim => {
            let told = failover::simulate(args);
            bar.finish_and_clear();
            let (report, plot) = told.map_err(explain)?;
            print(&report, json)?;
            if !json {
                out::line(plot);
            }
            return Ok(Ended::Done);
        }
        Bench::Failover(args) => {
            let told = failover::run(args, &mut tell);
            bar.finish_and_clear();
            print_failover(&told.map_err(explain)?, json)?;
            return Ok(Ended::Done);
        }
        Bench::Dataplane(args) => dataplane::run(args, &mut tell),
        Bench::Kv(args) => kv::run(args, &mut tell),
    };
    bar.finish_and_clear();
    print(&report.map_err(explain)?, json)?;
    Ok(Ended::Done)
}

/// What a bench gives.
type Measured = std::result::Result<Report, BenchError>;

/// The file that histories go to, if one is wanted.
fn history_file(path: Option<&Path>) -> std::result::Result<Option<HistoryFile>, BenchError> {
    Ok(path.map(HistoryFile::create).transpose()?)
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
        BenchError::NotLinearizable(what) => {
            // The operations that contradict each other are a table; a failure is a line.
            eprintln!("{what}");
            Failure::new(
                "what clients were told is not linearizable",
                "this is a defect of the rack: please report it, with the file of --history",
            )
        }
        BenchError::Report(error) => Failure::new(
            error.to_string(),
            "this is a defect of the bench: please report it",
        ),
    }
}

fn print(report: &Report, json: bool) -> Result<()> {
    if !json {
        out::whole_table(&report.table());
        return Ok(());
    }
    out::line(report.to_json().map_err(defect)?);
    Ok(())
}

fn print_failover(told: &FailoverReport, json: bool) -> Result<()> {
    if json {
        out::line(serde_json::to_string(told).map_err(defect)?);
        return Ok(());
    }
    out::whole_table(&told.report.table());
    told.timelines
        .iter()
        .for_each(|line| out::line(line.plot()));
    Ok(())
}

fn print_locks(told: Option<LockReport>, json: bool) -> Result<Ended> {
    let Some(told) = told else {
        return Ok(Ended::Interrupted);
    };
    told.missing.iter().for_each(|why| eprintln!("{why}"));
    if json {
        print(&told.report, json)?;
        return Ok(Ended::Done);
    }
    told.tables().iter().for_each(out::whole_table);
    Ok(Ended::Done)
}

fn print_simulation(told: &SimReport, json: bool) -> Result<()> {
    if json {
        out::line(serde_json::to_string(told).map_err(defect)?);
        return Ok(());
    }
    for table in told.tables() {
        out::whole_table(&table);
    }
    let sim::Speed {
        runs,
        packets,
        occurrences,
        core_seconds,
        seconds,
    } = told.speed;
    let each_second = |count: u64| number(count as f64 / core_seconds);
    out::line(format!(
        "{runs} runs with seed {} in {seconds:.1} s: {} packets and {} events a second of a core.",
        told.seed,
        each_second(packets),
        each_second(occurrences)
    ));
    Ok(())
}

fn defect(error: serde_json::Error) -> Failure {
    Failure::new(
        error.to_string(),
        "this is a defect of the bench: please report it",
    )
}
