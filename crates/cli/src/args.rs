//! The command line.

use crate::commands::{
    bench, check, demo, doctor, history, inspect, kv, members, node, sim, soak, switch,
};
use clap::{Parser, Subcommand};

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
#[command(name = "rackmem", version, long_about = LONG_ABOUT, after_help = FIRST_COMMANDS)]
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
    Kv(kv::KvArgs),
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
    /// Measure rackmem beside its baselines (memcpy, plain datagrams, Redis, etcd)
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::BenchArgs),
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
