//! The developer commands of rackmem: `cargo xtask help` lists them.
//!
//! A command is a row of [`COMMANDS`], a check is a row of a table in [`gate`],
//! a house rule is a row of
//! [`tidy::RULES`], and a tool that the tests need is a row of `setup`.
#![allow(clippy::print_stdout)]

mod ahead;
mod c;
mod counting;
mod fuzz;
mod gate;
mod golden;
mod licences;
mod lines;
mod p4;
mod process;
mod programs;
mod python;
mod races;
mod rack;
mod setup;
mod step;
mod tally;
mod tidy;
mod workspace;
mod xdp;

use std::process::ExitCode;

use workspace::Workspace;

/// What a command says when it cannot go on; it is printed after `error:`.
type Failure = String;

struct Command {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&Workspace, &[String]) -> Result<bool, Failure>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "verify",
        usage: "verify",
        about: "The read-only gate: format, lints, house rules, licences, docs",
        run: gate::verify,
    },
    Command {
        name: "test",
        usage: "test [--quick]",
        about: "The gate, then every test: unit, races, end to end, real clients, fuzz",
        run: gate::test,
    },
    Command {
        name: "fix",
        usage: "fix",
        about: "Repair what a machine can: lints, format, comments that are too wide",
        run: gate::fix,
    },
    Command {
        name: "tidy",
        usage: "tidy",
        about: "Only the house rules, and what each is for",
        run: tidy::command,
    },
    Command {
        name: "wrap",
        usage: "wrap",
        about: "Wrap the comments that go beyond column 100",
        run: tidy::wrap,
    },
    Command {
        name: "fuzz",
        usage: "fuzz [--seconds N] [--target NAME] [--seed N] [--replay FILE] [--list]",
        about: "Random and mutated input to every parser and role",
        run: fuzz::command,
    },
    Command {
        name: "golden",
        usage: "golden [--check]",
        about: "Write golden packets and generated headers anew from the Rust program",
        run: golden::command,
    },
    Command {
        name: "races",
        usage: "races [TEST]",
        about: "Every order of steps of the code that threads share without locks, and its planted defects",
        run: races::command,
    },
    Command {
        name: "rack",
        usage: "rack [OPTIONS] [-- COMMAND...] | rack DEED... | rack --help",
        about: "A rack of hosts in network namespaces, to run things in, to look at and to break",
        run: rack::command,
    },
    Command {
        name: "lines",
        usage: "lines [--json]",
        about: "Lines of product, stand-ins, checkers and tests, by package, and what each protocol costs",
        run: lines::command,
    },
    Command {
        name: "p4",
        usage: "p4",
        about: "The switch program in P4 with the real compilers and BMv2, as far as they are on the PATH",
        run: p4::command,
    },
    Command {
        name: "python",
        usage: "python [demo|wheel]",
        about: "The Python package: its tests in fresh environments, its part of `make demo`, or the wheel for all Linux",
        run: python::command,
    },
    Command {
        name: "c",
        usage: "c [install PREFIX]",
        about: "The library for C and C++: its tests, or install it under PREFIX with its header and pkg-config",
        run: c::command,
    },
    Command {
        name: "setup",
        usage: "setup test|bench",
        about: "Install what the tests or the benches need and this machine lacks",
        run: setup::command,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        return help();
    };
    if ["help", "--help", "-h"].contains(&name.as_str()) {
        return help();
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("error: there is no command `{name}`");
        help();
        return ExitCode::from(2);
    };
    match Workspace::load().and_then(|workspace| (command.run)(&workspace, rest)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}

fn help() -> ExitCode {
    println!("Developer commands of rackmem\n");
    for command in COMMANDS {
        println!("  cargo xtask {}\n      {}", command.usage, command.about);
    }
    ExitCode::SUCCESS
}
