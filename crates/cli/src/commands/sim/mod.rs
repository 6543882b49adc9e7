//! `rackmem sim`: seeded worlds, in which packets, switches, nodes and networks fail.

mod bounded;
mod options;
mod sum;
mod watch;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::stop::Stop;
use clap::Args;
use options::WorldArgs;
use rackmem_sim::driver::Case;
use rackmem_sim::world::{Config, SCENARIOS, SUITE, Scenario, Violation, World, shrink};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sum::Sum;
use watch::{Block, Views};

pub const EXAMPLES: &str = "\
Examples:
  rackmem sim                                        200 racks with every kind of failure
  rackmem sim --seeds 0..5000 --rack tiny-switch     more, with a switch that is too small
  rackmem sim --rack replicated-home                 groups keep copies of blocks; the node that serves them dies, too
  rackmem sim --rack replicated-home --removals 4    regions with copies are removed while they are used
  rackmem sim --seed 7 --failures node --trace       trace one world; a seed always gives the same run
  rackmem sim --seed 7 --trace --block 3             what happened to block 3
  rackmem sim --seed 7 --pcap seed7.pcap             its packets, for tcpdump and Wireshark
  rackmem sim --list                                 scenarios that mix blocks and locks
  rackmem sim --scenario both-told                   the worlds of one scenario
  rackmem sim --defect skip-write-back               plant a defect, to see a counterexample
  rackmem sim --bounded --seeds 0..500               members of bounded memory that sleep, on a bad network
  rackmem --json sim                                 the figures as one object

Ctrl-C stops it and shows the figures so far (exit code 130). Exit code 1: an invariant is broken; a small world that
breaks it is printed with its trace and the command that reproduces it. docs/checking.md says what fails and what is
checked.";

/// Options of `rackmem sim`.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// Run the worlds of these seeds [0..200, or the scenario's own]
    #[arg(long, value_name = "FROM..TO", value_parser = seeds)]
    seeds: Option<(u64, u64)>,
    /// List the scenarios and exit
    #[arg(long)]
    list: bool,
    /// Run the world of seed N
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Print every event, one a line
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Trace only this block (a number, or an address such as 0x10000) and the rack's events
    #[arg(long, value_name = "BLOCK", requires = "trace", value_parser = Block::parse)]
    block: Option<Block>,
    /// Write packets to FILE for tcpdump and Wireshark; a word of a body stands for 1 KiB
    #[arg(long, value_name = "FILE", requires = "seed")]
    pcap: Option<PathBuf>,
    /// Run at most N worlds to shrink a failing one; 0: show it as it is
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    shrink: u64,
    /// Run 8 to 32 members of bounded memory instead, and arenas; judge the ages of what they read
    #[arg(long, conflicts_with_all = ["list", "trace", "pcap", "scenario", "rack", "faults", "failures", "nodes", "threads", "defect"])]
    bounded: bool,
    #[command(flatten)]
    world: WorldArgs,
}

/// Seeds on a command line.
pub fn seeds(text: &str) -> std::result::Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").ok_or("write it as 0..200")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    match (number(from)?, number(to)?) {
        (from, to) if from < to => Ok((from, to)),
        _ => Err("the first seed must be below the last".to_owned()),
    }
}

/// Runs the worlds, and tells.
pub fn run(args: &SimArgs, json: bool) -> Result<Ended> {
    if args.list {
        let case = |scenario: &Scenario| (SUITE.name, scenario.about(false));
        let scenarios: Vec<_> = SCENARIOS.iter().map(case).collect();
        super::check::list(&scenarios, json);
        return Ok(Ended::Done);
    }
    if args.bounded {
        let one = args.seed.map(|seed| (seed, seed + 1));
        return bounded::worlds(one.or(args.seeds).unwrap_or((0, 200)), json);
    }
    if args.world.removes_nothing() {
        return Err(Failure::new(
            "--removals is about regions with copies, and this rack has none",
            "add --rack replicated-home or --rack replicated-home-switch",
        ));
    }
    let config = args.world.config();
    let stop = Stop::on_signals()?;
    let mut sum = Sum::new();
    if let Some(seed) = args.seed {
        match show(args, seed, &config, json)? {
            Ok(report) => sum.add(&report),
            Err(violation) => return Err(broken(args, &config, &violation, &stop)),
        }
        sum.show(json, 0);
        return Ok(Ended::Done);
    }
    let (from, to) = args.seeds.unwrap_or((0, args.world.seeds().unwrap_or(200)));
    for seed in from..to {
        if stop.requested() {
            break;
        }
        match World::run(seed, &config) {
            Ok(report) => sum.add(&report),
            Err(violation) => {
                sum.show(json, 1);
                return Err(broken(args, &config, &violation, &stop));
            }
        }
        sum.tell(to - from);
    }
    sum.show(json, 0);
    if let Some(defect) = args.world.defect() {
        eprintln!("none of these worlds notices {defect}");
    }
    Ok(if stop.requested() {
        Ended::Interrupted
    } else {
        Ended::Done
    })
}

type Outcome = std::result::Result<rackmem_sim::world::Report, Box<Violation>>;

/// One world, and what was asked to be seen of it.
fn show(args: &SimArgs, seed: u64, config: &Config, json: bool) -> Result<Outcome> {
    let capture = match &args.pcap {
        Some(path) => Some(watch::capture(path, config.nodes)?),
        None => None,
    };
    let views = Views {
        story: args.trace,
        block: args.block,
        json,
        capture: capture.clone(),
    };
    let outcome = World::watch(seed, config, views.watcher());
    if let Some(capture) = capture {
        rackmem_fabric::Tap::flush(&*capture);
        let unwritten = capture.unwritten();
        if unwritten > 0 {
            let cause = format!("{unwritten} packets could not be written to the capture");
            return Err(Failure::new(cause, "see that there is room on the disk"));
        }
    }
    Ok(outcome)
}

/// Makes a broken world small, and tells its story.
fn broken(args: &SimArgs, config: &Config, violation: &Violation, stop: &Stop) -> Failure {
    eprintln!("{}", violation.headline());
    let cause = format!("{} ({}) is broken", violation.invariant, violation.section);
    let command = |config: &Config, violation: &Violation| {
        let options = args.world.again(config);
        let block = violation.block.map(|number| format!(" --block {number}"));
        let block = block.unwrap_or_default();
        let seed = violation.seed;
        format!("rackmem sim --seed {seed} {options} --trace{block}")
    };
    // The story has been told already.
    if args.trace {
        return Failure::new(cause, "read the story above it from its end");
    }
    let began = Instant::now();
    let mut told = began;
    let found = shrink(config, violation, args.shrink, &mut |operations| {
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            eprintln!("sim: looking for a smaller world, {operations} operations so far");
        }
        stop.requested()
    });
    eprintln!(
        "{} operations instead of {}, after {} worlds",
        found.config.total(),
        config.total(),
        found.runs
    );
    eprintln!("{}", found.violation.headline());
    for line in watch::end_of_story(&found.config, &found.violation) {
        eprintln!("{}", line.trim_end());
    }
    Failure::new(cause, command(&found.config, &found.violation))
}
