//! `rackmem demo`: a rack in this process at work on real input, and a rack of processes beside it.

mod graph;
mod history;
mod member;
mod meter;
mod processes;
mod ranking;
mod remote;
mod scene;
mod stay;
mod summary;
mod workload;

use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::halt::Halt;
use crate::rack_args::RackArgs;
use crate::stop::Stop;
use clap::Args;
use processes::Processes;
use rackmem_bench::packages;
use scene::{Scene, Show};
use std::path::PathBuf;
use std::time::Duration;
use summary::Story;

pub const EXAMPLES: &str = "\
Input: the dependencies between this machine's Debian packages, or a built-in graph. Steps:
  1. store the graph through node 0, read it back through the other nodes and compare
  2. compute PageRank in coherent memory, a thread per node, and compare with a plain computation
  3. run YCSB A, B and C (Zipf 0.99) on all nodes
  4. record concurrent operations on few keys and check that they are linearizable
  5. run YCSB A, B and C on a rack of processes over UDP, a process per node and one for the switch
Every step reports its remote transactions: block misses, evictions and lock grants.

Examples:
  rackmem demo                          4 nodes in this process, then 4 processes over UDP
  rackmem demo --fabric udp             the nodes in this process use UDP as well
  rackmem demo --mode home-only         without a switch
  rackmem demo --stay                   then serve the results: redis-cli -p PORT get rank:libc6
  rackmem --json demo --seconds 1       one object for scripts";

/// Options of `rackmem demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    #[command(flatten)]
    rack: RackArgs,
    /// Run each YCSB workload for SECONDS
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Take the built-in graph, a tenth of Debian's, and not this machine's packages
    #[arg(long)]
    built_in: bool,
    /// Serve the store of the first rack afterwards, from every node, until Ctrl-C
    #[arg(long)]
    stay: bool,
    /// Leave out the rack of processes
    #[arg(long)]
    no_processes: bool,
    /// Run as one node of the rack of processes that this file describes
    #[arg(long, hide = true, value_name = "FILE", requires = "node")]
    member: Option<PathBuf>,
    /// Run as this node
    #[arg(long, hide = true, value_name = "N", requires = "member")]
    node: Option<usize>,
}

/// Runs all of it.
pub fn run(args: &DemoArgs, json: bool) -> Result<Ended> {
    if let (Some(file), Some(node)) = (&args.member, args.node) {
        return member::run(file, node);
    }
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
    let load = match args.built_in {
        true => packages::built_in,
        false => packages::load,
    };
    let loaded = load().map_err(|error| {
        Failure::new(
            format!("package lists: {error}"),
            "repair them with `apt-get update`, then try again",
        )
    })?;
    let graph = &loaded.graph;
    show.title(&format!("rackmem demo: {}", args.rack.describe()));
    let rack = args.rack.build()?;
    let scene = Scene::open(rack, stop, show, graph, args.rack.block_size)?;
    let mut story = Story::new(&args.rack, &loaded);
    graph::run(&scene, graph, &mut story)?;
    ranking::run(&scene, graph, &mut story)?;
    let time = Duration::from_secs(args.seconds);
    workload::run(&scene, time, &mut story)?;
    history::run(&scene, &mut story)?;
    if !args.no_processes && args.rack.fits_processes() {
        let mut rack = Processes::start(&args.rack, stop)?;
        story.processes = workload::on_processes(&scene, &mut rack, time)?;
    }
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
