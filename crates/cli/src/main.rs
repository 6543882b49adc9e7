//! `rackmem`: one command to try, run and measure a coherent rack.

mod args;
mod commands;
mod ended;
mod failure;
mod fence;
mod figures;
mod orphan;
mod out;
mod programs;
mod rack_args;
mod size;
mod stop;
mod store;
mod watch;
mod wire_args;

use args::Cli;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match commands::run(&cli) {
        Ok(ended) => ExitCode::from(ended.code()),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
