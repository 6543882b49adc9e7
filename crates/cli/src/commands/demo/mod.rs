//! `rackmem demo`: a rack at work on real input, in about a minute.

mod barrier;
mod graph;
mod halt;
mod history;
mod meter;
mod pagerank;
mod ranking;
mod scene;
mod shared_vec;
mod stay;
mod summary;
mod workload;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::rack_args::RackArgs;
use crate::stop::Stop;
use clap::Args;
use halt::Halt;
use rackmem_bench::packages;
use scene::{Scene, Show};
use std::time::Duration;
use summary::Story;

pub const EXAMPLES: &str = "\
What it does, on the dependencies between this machine's Debian packages (or a graph that is built in):
  1. stores them through node 0, reads them back through the other nodes and compares
  2. computes PageRank in shared memory, with a thread on every node, and compares with a plain one
  3. runs YCSB A, B and C (Zipf 0.99) on all nodes
  4. records concurrent operations on few keys and checks that they are linearizable

Examples:
  rackmem demo                          4 nodes in this process
  rackmem demo --fabric udp             the same over UDP, with a switch in software
  rackmem demo --mode home-only         without a switch
  rackmem demo --stay                   then serve what was computed: redis-cli -p PORT get rank:libc6
  rackmem --json demo --seconds 1       one object for scripts";

/// Options of `rackmem demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    #[command(flatten)]
    rack: RackArgs,
    /// Seconds of each YCSB workload
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Keep the store afterwards, served from every node, until Ctrl-C
    #[arg(long)]
    stay: bool,
}

/// Runs all of it.
pub fn run(args: &DemoArgs, json: bool) -> Result<Ended> {
    let stop = Stop::on_signals()?;
    match play(args, json, &stop) {
        Ok(()) if stop.requested() => Ok(Ended::Interrupted),
        Ok(()) => Ok(Ended::Done),
        Err(Halt::Stopped) => Ok(Ended::Interrupted),
        Err(Halt::Failed(failure)) => Err(failure),
    }
}

fn play(args: &DemoArgs, json: bool, stop: &Stop) -> std::result::Result<(), Halt> {
    let show = Show { json };
    let loaded = packages::load().map_err(|error| {
        Failure::new(
            format!("package lists: {error}"),
            "mend them with `apt-get update`, then try again",
        )
    })?;
    let graph = &loaded.graph;
    show.title(&format!("rackmem demo: {}", args.rack.describe()));
    let rack = args.rack.build()?;
    let scene = Scene::open(rack, stop, show, graph, args.rack.block_size)?;
    let mut story = Story::new(&args.rack, &loaded);
    graph::run(&scene, graph, &mut story)?;
    ranking::run(&scene, graph, &mut story)?;
    workload::run(&scene, Duration::from_secs(args.seconds), &mut story)?;
    history::run(&scene, &mut story)?;
    story.print(&scene.rack.metrics(), json);
    if args.stay {
        stay::serve(&scene, json)?;
    } else {
        show.hint(
            "Try it yourself: `rackmem demo --stay` serves all this, `rackmem kv` an empty store.",
        );
    }
    Ok(())
}
