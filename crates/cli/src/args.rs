//! The command line.

use crate::commands::{
    bench, check, demo, doctor, graph, history, inspect, kv, members, node, repro, run, sim, soak,
    switch, top, txn,
};
use clap::{ArgMatches, CommandFactory, Parser, Subcommand};
use std::collections::BTreeMap;

const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("RACKMEM_COMMIT"),
    ")"
);

const LONG_ABOUT: &str = "\
One coherent memory for a rack of machines.

The nodes of a rack share one address space. What a node reads it keeps in its own cache and reads from
there, at the speed of memory, until another node writes it; every read sees the last write. A switch
in the network keeps the directory. A store on top of it serves the Redis protocol from every node.";

const FIRST_COMMANDS: &str = "\
First commands:
  rackmem demo                     run a rack on this machine, in some 20 seconds
  rackmem kv                       a 4-node store: redis-cli -p 7379, and -p 7380, 7381, 7382
  rackmem doctor                   check what this machine supports, and how to enable the rest

A rack of processes or machines, one terminal each, with the same rack.toml:
  rackmem switch --rack rack.toml
  rackmem kv --rack rack.toml --node 0 --listen 127.0.0.1:7379
  rackmem kv --rack rack.toml --node 1 --listen 127.0.0.1:7380

Ctrl-C stops any of them and removes what it created (exit code 130). Exit code 1: an error; 2: bad usage;
3: the rack has declared this process dead, and --rejoin=false.";

/// One coherent memory for a rack of machines
#[derive(Debug, Parser)]
#[command(name = "rackmem", version = VERSION, long_about = LONG_ABOUT, after_help = FIRST_COMMANDS)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Print JSON, one object a line, and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// Exit when standard input closes, that is when the parent process exits.
    #[arg(long, global = true, hide = true)]
    pub end_with_stdin: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a rack in this process and a rack of processes on real input, and print figures
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::DemoArgs),
    /// Serve a Redis-compatible store from every node of a rack
    #[command(after_help = kv::EXAMPLES)]
    Kv(Box<kv::KvArgs>),
    /// Compute on a graph with all nodes of a rack: ranks, shortest paths, components
    #[command(after_help = graph::EXAMPLES)]
    Graph(graph::GraphArgs),
    /// Run TPC-C's transactions on a database in the memory of a rack
    #[command(after_help = txn::EXAMPLES)]
    Txn(Box<txn::TxnArgs>),
    /// Start a program of yours in every node of a rack
    #[command(after_help = run::EXAMPLES)]
    Run(run::RunArgs),
    /// Run the switch of a rack of processes
    #[command(after_help = switch::EXAMPLES)]
    Switch(switch::SwitchArgs),
    /// Run one node of a rack of processes; it contributes memory
    #[command(after_help = node::EXAMPLES)]
    Node(node::NodeArgs),
    /// Show the members of a rack of processes, or remove one
    #[command(after_help = members::EXAMPLES)]
    Members(members::MembersArgs),
    /// Show the holders and waiters of a rack's locks, and its regions
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(inspect::InspectArgs),
    /// Watch a rack that works: what its nodes do a second, and its locks
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopArgs),
    /// Measure rackmem beside its baselines (memcpy, plain datagrams, Redis, etcd)
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::BenchArgs),
    /// Reproduce the figures of the five papers: by models, and on this machine
    #[command(after_help = repro::EXAMPLES)]
    Repro(repro::ReproArgs),
    /// Check that recorded histories are linearizable
    #[command(after_help = history::EXAMPLES)]
    History(history::HistoryArgs),
    /// Kill and restart members of a rack under load, and check every answer
    #[command(after_help = soak::EXAMPLES)]
    Soak(soak::SoakArgs),
    /// Explore every state of small racks, and check every invariant in each
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArgs),
    /// Simulate racks whose packets, switches and nodes fail, from seeds
    #[command(after_help = sim::EXAMPLES)]
    Sim(sim::SimArgs),
    /// Check what this machine supports, and how to enable the rest
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
}

/// The options of the subcommand that was asked for, with their values,
/// those that were left out and have a default as well.
pub fn options(matches: &ArgMatches) -> BTreeMap<String, String> {
    let (root, mut matches) = (Cli::command(), matches);
    let mut command = &root;
    while let Some((name, inner)) = matches.subcommand() {
        let Some(found) = command.find_subcommand(name) else {
            break;
        };
        (command, matches) = (found, inner);
    }
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let value = |arg: &clap::Arg| {
        let values = matches.try_get_raw(arg.get_id().as_str()).ok().flatten()?;
        let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
        let text = values.join(",");
        // A switch that is off says nothing.
        (text != "false").then(|| (arg.get_long().unwrap_or_default().to_owned(), text))
    };
    shown.filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_has_examples() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string);
            let call = format!("rackmem {}", command.get_name());
            assert!(help.is_some_and(|help| help.contains(&call)), "{call}");
        }
    }
}
