//! The subcommands, one file or folder each.

pub mod bench;
pub mod check;
pub mod demo;
pub mod doctor;
pub mod graph;
pub mod history;
pub mod inspect;
pub mod kv;
pub mod members;
pub mod node;
pub mod repro;
mod resources;
pub mod run;
pub mod sim;
pub mod soak;
pub mod switch;
pub mod switch_live;
pub mod top;
pub mod txn;

use crate::args::{self, Cli, Command};
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use clap::ArgMatches;
use rackmem::Config;
use std::path::Path;

/// Runs the command that was asked for.
pub fn run(cli: &Cli, matches: &ArgMatches) -> Result<Ended> {
    if cli.end_with_stdin {
        crate::orphan::end_with_stdin()?;
    }
    match &cli.command {
        Command::Demo(args) => demo::run(args, cli.json),
        Command::Graph(args) => graph::run(args, cli.json),
        Command::Kv(args) => kv::run(args, cli.json),
        Command::Txn(args) => txn::run(args, cli.json),
        Command::Run(args) => run::run(args, cli.json),
        Command::Switch(args) => switch::run(args, cli.json),
        Command::Node(args) => node::run(args, cli.json),
        Command::Members(args) => members::run(args, cli.json),
        Command::Inspect(args) => inspect::run(args, cli.json),
        Command::Top(args) => top::run(args, cli.json),
        Command::Bench(args) => bench::run(args, cli.json, args::options(matches)),
        Command::Repro(args) => repro::run(args, cli.json),
        Command::History(args) => history::run(args, cli.json),
        Command::Soak(args) => soak::run(args, cli.json),
        Command::Check(args) => check::run(args, cli.json),
        Command::Sim(args) => sim::run(args, cli.json),
        Command::Doctor(args) => doctor::run(args, cli.json),
    }
}

/// Reads the file that describes a rack of processes.
fn load(path: &Path) -> Result<Config> {
    Config::load(path).map_err(|error| {
        Failure::new(
            error.what(),
            "correct the file, then try again; `rackmem switch --help` shows a whole one",
        )
    })
}
