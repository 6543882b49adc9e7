//! Runs the fuzz targets without libFuzzer: seeded mutations of valid inputs,
//! with a guard on time and memory.
#![allow(clippy::print_stdout, reason = "a program that talks to a person")]

mod guard;
mod mutate;
mod options;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use options::Options;
use rackmem_fuzz::{TARGETS, Target};

#[global_allocator]
static ALLOCATOR: guard::Counting = guard::Counting;

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => act(&options),
        Err(message) => {
            eprintln!("error: {message}\n{}", options::USAGE);
            ExitCode::from(2)
        }
    }
}

fn act(options: &Options) -> ExitCode {
    let chosen: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| {
            options
                .target
                .as_deref()
                .is_none_or(|name| name == target.name)
        })
        .collect();
    if chosen.is_empty() {
        eprintln!("error: there is no such target; --list names them");
        return ExitCode::from(2);
    }
    if options.list {
        for target in &chosen {
            println!("{:<16} {}", target.name, target.about);
        }
        return ExitCode::SUCCESS;
    }
    if options.write_seeds {
        return write_seeds(&chosen);
    }
    if let Some(file) = &options.replay {
        return replay(&chosen, file);
    }
    run_all(&chosen, options)
}

fn run_all(targets: &[&Target], options: &Options) -> ExitCode {
    let failed = targets
        .iter()
        .filter(|target| !run::fuzz(target, options))
        .count();
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "fuzz result: {verdict}. {} passed; {failed} failed",
        targets.len() - failed
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Where a run keeps files of a target: `regressions`, `artifacts` or `corpus`.
fn folder(kind: &str, target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(kind)
        .join(target.name)
}

/// The first corpus of libFuzzer.
fn write_seeds(targets: &[&Target]) -> ExitCode {
    for target in targets {
        let folder = folder("corpus", target);
        let seeds = (target.seeds)().into_iter().enumerate();
        let written = std::fs::create_dir_all(&folder).and_then(|()| {
            seeds
                .into_iter()
                .try_for_each(|(n, seed)| std::fs::write(folder.join(format!("seed-{n}")), seed))
        });
        if let Err(error) = written {
            eprintln!("error: {}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn replay(targets: &[&Target], file: &Path) -> ExitCode {
    let [target] = targets else {
        eprintln!("error: --replay needs --target");
        return ExitCode::from(2);
    };
    match std::fs::read(file) {
        // A failure is the panic itself, with its backtrace.
        Ok(input) => {
            (target.run)(&input);
            println!("{}: {} passes", target.name, file.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
