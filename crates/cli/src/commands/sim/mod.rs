//! `rackmem sim`: seeded worlds, in which packets, switches, nodes and networks fail.

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use clap::{Args, ValueEnum};
use rackmem_sim::world::{Config, Failures, Faults, Mix, Rack, Report, Violation, World};
use serde_json::json;
use std::time::Instant;

pub const EXAMPLES: &str = "\
Examples:
  rackmem sim                                        200 worlds with everything that can break
  rackmem sim --seeds 0..5000 --rack tiny-switch     more of them, with a switch that is too small
  rackmem sim --seeds 7..8 --failures node           one world: the same seed is the same run
  rackmem --json sim                                 the figures as one object

Ctrl-C ends it and shows the figures so far (exit code 130). The exit code is 1 when a promise is broken, with the
packets that led to it and the command that shows it again. docs/checking.md says what breaks and what is checked.";

/// Owners of directory entries.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RackKind {
    Switch,
    TinySwitch,
    HomeOnly,
    Gather,
    Delegate,
}

/// What the network does.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FaultKind {
    None,
    Loss,
    Duplication,
    Reordering,
    Deafness,
    All,
    Storm,
}

/// What breaks.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailureKind {
    None,
    Switch,
    Node,
    Shadow,
    Leave,
    Partition,
    Slow,
    All,
}

/// Options of `rackmem sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// Worlds to run, FROM..TO
    #[arg(long, value_name = "FROM..TO", default_value = "0..200", value_parser = seeds)]
    seeds: (u64, u64),
    /// Who owns directory entries
    #[arg(long, value_enum, default_value = "switch")]
    rack: RackKind,
    /// What the network does to packets
    #[arg(long, value_enum, default_value = "all")]
    faults: FaultKind,
    /// What breaks besides
    #[arg(long, value_enum, default_value = "all")]
    failures: FailureKind,
    /// Nodes of each rack
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(2..=32))]
    nodes: u16,
}

fn seeds(text: &str) -> std::result::Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").ok_or("write it as 0..200")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    match (number(from)?, number(to)?) {
        (from, to) if from < to => Ok((from, to)),
        _ => Err("the first seed must be below the last".to_owned()),
    }
}

fn config(args: &SimArgs) -> Config {
    Config {
        rack: match args.rack {
            RackKind::Switch => Rack::LARGE_SWITCH,
            RackKind::TinySwitch => Rack::TINY_SWITCH,
            RackKind::HomeOnly => Rack::HomeOnly,
            RackKind::Gather => Rack::Gather,
            RackKind::Delegate => Rack::Delegate,
        },
        faults: match args.faults {
            FaultKind::None => Faults::NONE,
            FaultKind::Loss => Faults::LOSS,
            FaultKind::Duplication => Faults::DUPLICATION,
            FaultKind::Reordering => Faults::REORDERING,
            FaultKind::Deafness => Faults::DEAFNESS,
            FaultKind::All => Faults::ALL,
            FaultKind::Storm => Faults::STORM,
        },
        failures: match args.failures {
            FailureKind::None => Failures::NONE,
            FailureKind::Switch => Failures::SWITCH,
            FailureKind::Node => Failures::NODE,
            FailureKind::Shadow => Failures::SHADOW,
            FailureKind::Leave => Failures::LEAVE,
            FailureKind::Partition => Failures::PARTITION,
            FailureKind::Slow => Failures::SLOW,
            FailureKind::All => Failures::ALL,
        },
        nodes: args.nodes,
        homes: args.nodes - 1,
        operations: 60,
        history: true,
        mix: Mix {
            hold: 1,
            ..Config::default().mix
        },
        ..Config::default()
    }
}

/// Figures of many worlds.
#[derive(Default)]
struct Sum {
    worlds: u64,
    operations: u64,
    packets: u64,
    lost_packets: u64,
    doubled: u64,
    reordered: u64,
    cut: u64,
    switches: u64,
    nodes: u64,
    partitions: u64,
    left: u64,
    rebuilds: u64,
    lost: u64,
    doubted: u64,
    worst: u64,
}

impl Sum {
    fn add(&mut self, report: &Report) {
        let (traffic, broken, seen) = (report.traffic, report.broken, report.seen);
        self.worlds += 1;
        self.operations += report.work.operations;
        self.packets += traffic.packets;
        self.lost_packets += traffic.lost;
        self.doubled += traffic.duplicated;
        self.reordered += traffic.reordered;
        self.cut += traffic.parted;
        self.switches += broken.switches;
        self.nodes += broken.nodes + broken.fenced;
        self.partitions += broken.partitions;
        self.left += broken.left;
        self.rebuilds += seen.rebuilds;
        self.lost += seen.lost;
        self.doubted += seen.doubted;
        self.worst = self.worst.max(seen.worst);
    }

    fn rows(&self) -> [(&'static str, u64); 15] {
        [
            ("worlds", self.worlds),
            ("operations", self.operations),
            ("packets", self.packets),
            ("packets_lost", self.lost_packets),
            ("packets_doubled", self.doubled),
            ("packets_overtaken", self.reordered),
            ("packets_cut_off", self.cut),
            ("switches_died", self.switches),
            ("nodes_died_or_fenced", self.nodes),
            ("partitions", self.partitions),
            ("nodes_left", self.left),
            ("rebuilds", self.rebuilds),
            ("blocks_lost", self.lost),
            ("blocks_doubted", self.doubted),
            ("most_retries", self.worst),
        ]
    }
}

/// Runs the worlds, and tells.
pub fn run(args: &SimArgs, json: bool) -> Result<Ended> {
    let config = config(args);
    let stop = Stop::on_signals()?;
    let (began, mut sum) = (Instant::now(), Sum::default());
    for seed in args.seeds.0..args.seeds.1 {
        if stop.requested() {
            break;
        }
        match World::run(seed, &config) {
            Ok(report) => sum.add(&report),
            Err(violation) => return Err(broken(args, &violation)),
        }
        if sum.worlds.is_multiple_of(1000) {
            eprintln!("sim: {} worlds", sum.worlds);
        }
    }
    let rate = sum.operations as f64 / began.elapsed().as_secs_f64();
    if json {
        let rows = sum
            .rows()
            .into_iter()
            .map(|(name, n)| (name.to_owned(), json!(n)));
        let mut object: serde_json::Map<_, _> = rows.collect();
        object.insert("operations_per_second".to_owned(), json!(rate));
        object.insert("violations".to_owned(), json!(0));
        out::line(serde_json::Value::Object(object));
    } else {
        for (name, number) in sum.rows() {
            out::line(format!("{:<22}{number:>14}", name.replace('_', " ")));
        }
        out::line(format!("{:<22}{rate:>14.0}", "operations a second"));
    }
    Ok(if stop.requested() {
        Ended::Interrupted
    } else {
        Ended::Done
    })
}

fn broken(args: &SimArgs, violation: &Violation) -> Failure {
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map_or(String::new(), |value| value.get_name().to_owned())
    };
    eprintln!("{violation}");
    let seed = violation.seed;
    let again = format!(
        "rackmem sim --seeds {seed}..{} --rack {} --faults {} --failures {} --nodes {}",
        seed + 1,
        name(args.rack.to_possible_value()),
        name(args.faults.to_possible_value()),
        name(args.failures.to_possible_value()),
        args.nodes
    );
    let cause = format!("{} ({}) is broken", violation.invariant, violation.section);
    Failure::new(cause, again)
}
