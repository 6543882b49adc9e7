//! The command line.

use crate::commands::{
    bench, check, demo, doctor, history, inspect, kv, members, node, sim, soak, switch,
};
use clap::{Parser, Subcommand};

const LONG_ABOUT: &str = "\
One coherent memory for a rack of machines.

The nodes of a rack share one address space. What a node reads it keeps in its own cache and reads from
there, at the speed of memory, until another node writes it; every read sees the last write. A switch
in the network keeps the directory. On top of it runs a store that speaks Redis' protocol on every node.";

const FIRST_COMMANDS: &str = "\
First commands:
  rackmem demo                     see it all on this machine, in about a minute
  rackmem kv                       a 4-node store: redis-cli -p 7379, and -p 7380, 7381, 7382
  rackmem doctor                   what this machine can do, and how to enable the rest

A rack of processes or machines, one terminal each, with the same rack.toml:
  rackmem switch --rack rack.toml
  rackmem kv --rack rack.toml --node 0 --listen 127.0.0.1:7379
  rackmem kv --rack rack.toml --node 1 --listen 127.0.0.1:7380

Ctrl-C ends any of them and leaves nothing behind (exit code 130). Errors exit with 1, bad usage with 2,
a process that its rack has declared dead and that does not rejoin with 3.";

/// One coherent memory for a rack of machines
#[derive(Debug, Parser)]
#[command(name = "rackmem", version, long_about = LONG_ABOUT, after_help = FIRST_COMMANDS)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Write data as JSON, one object a line, and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// End when standard input does, which is when the process that has started this one ends.
    #[arg(long, global = true, hide = true)]
    pub end_with_stdin: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what a rack does, on real input, in about a minute
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::DemoArgs),
    /// Serve a Redis-compatible store from every node of a rack
    #[command(after_help = kv::EXAMPLES)]
    Kv(kv::KvArgs),
    /// Run the switch of a rack of processes
    #[command(after_help = switch::EXAMPLES)]
    Switch(switch::SwitchArgs),
    /// Run one node of a rack of processes, which gives it memory
    #[command(after_help = node::EXAMPLES)]
    Node(node::NodeArgs),
    /// Show who is in a rack of processes, or take somebody out of it
    #[command(after_help = members::EXAMPLES)]
    Members(members::MembersArgs),
    /// Show who holds the locks of a rack of processes, and who waits for them
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(inspect::InspectArgs),
    /// Measure rackmem beside its baselines
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::BenchArgs),
    /// Judge recorded histories: could one memory have told clients what they were told?
    #[command(after_help = history::EXAMPLES)]
    History(history::HistoryArgs),
    /// Kill and restart the members of a rack under clients, and judge what they were told
    #[command(after_help = soak::EXAMPLES)]
    Soak(soak::SoakArgs),
    /// Visit every state that small racks can get into, and check every promise in each
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArgs),
    /// Run racks in seeded worlds, where packets, switches and nodes fail
    #[command(after_help = sim::EXAMPLES)]
    Sim(sim::SimArgs),
    /// Say what this machine can do, and how to enable the rest
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
