//! `rackmem`: one command to try, run and measure a coherent rack.

mod args;
mod commands;
mod crew;
mod ended;
mod failure;
mod fence;
mod figures;
mod halt;
mod help;
mod orphan;
mod out;
mod programs;
mod rack_args;
mod size;
mod stop;
mod store;
mod watch;
mod watching;
mod wire_args;

use args::Cli;
use clap::FromArgMatches;
use std::process::ExitCode;

fn main() -> ExitCode {
    rackmem_bench::machine::built_from(env!("RACKMEM_COMMIT"));
    let matches = help::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match commands::run(&cli, &matches) {
        Ok(ended) => ExitCode::from(ended.code()),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
