//! One form for the help of every command: what it does, its options, examples, notes, units, exit
//! codes. A command brings examples and notes; what follows is the same for all and is added here.

use crate::args::Cli;
use clap::{Command, CommandFactory};

/// How numbers are written that have a unit, by the name of the value.
const UNITS: [(&str, &str); 7] = [
    (
        "SIZE",
        "SIZE is bytes, or a number and K, M, G or T: powers of 1024",
    ),
    ("TIME", "TIME is a number and us, ms, s or m"),
    ("SECONDS", "SECONDS are whole seconds"),
    ("MS", "MS are milliseconds"),
    ("US", "US are microseconds"),
    ("SHARE", "SHARE is from 0 to 1"),
    ("PERCENT", "PERCENT is from 0 to 100"),
];

const EXIT: &str = "0 done, 1 failed, 2 bad usage, 130 ended by Ctrl-C";
/// Of a process that is a member of a rack.
const EXIT_OF_MEMBERS: &str = "0 done, 1 failed, 2 bad usage, 3 declared dead by its rack, \
                               130 ended by Ctrl-C";
const MEMBERS: [&str; 3] = ["rackmem kv", "rackmem node", "rackmem switch"];

/// The heading of examples.
const EXAMPLES: &str = "Examples:";

/// The command line, with help of the one form.
pub fn command() -> Command {
    let root = Cli::command();
    let names: Vec<String> = names(&root);
    names.into_iter().fold(root, |root, name| {
        root.mut_subcommand(&name, |inner| formed(inner, &format!("rackmem {name}"), ""))
    })
}

fn names(command: &Command) -> Vec<String> {
    let inner = command.get_subcommands();
    inner.map(|inner| inner.get_name().to_owned()).collect()
}

/// A command and those inside it. `others` are examples of the command around it.
fn formed(command: Command, path: &str, others: &str) -> Command {
    let own = command.get_after_help().map(ToString::to_string);
    let own = own.unwrap_or_default();
    let (examples, notes) = match own.contains(EXAMPLES) {
        true => (String::new(), own.clone()),
        false => (of_path(others, path), own.clone()),
    };
    let around = if own.contains(EXAMPLES) { &own } else { others };
    let command = names(&command).into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(&name, |inner| formed(inner, &path, around))
    });
    let units = units(&command);
    let exit = if MEMBERS.contains(&path) {
        EXIT_OF_MEMBERS
    } else {
        EXIT
    };
    let parts = [examples, notes, units, format!("Exit codes: {exit}.")];
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    command.after_help(parts.join("\n\n"))
}

/// The examples of one command among those of the command around it.
fn of_path(examples: &str, path: &str) -> String {
    // Options may stand between the words of a path.
    let is_of = |line: &&str| {
        let mut words = line.split_whitespace();
        line.trim_start().starts_with("rackmem ")
            && path.split(' ').all(|part| words.any(|word| word == part))
    };
    let lines: Vec<&str> = examples.lines().filter(is_of).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("{EXAMPLES}\n{}", lines.join("\n")),
    }
}

fn units(command: &Command) -> String {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let names: Vec<String> = shown
        .flat_map(|arg| arg.get_value_names().unwrap_or_default())
        .map(ToString::to_string)
        .collect();
    let told = UNITS
        .iter()
        .filter(|(name, _)| names.iter().any(|it| it == name));
    let told: Vec<String> = told.map(|(_, text)| format!("  {text}")).collect();
    match told.is_empty() {
        true => String::new(),
        false => format!("Units:\n{}", told.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of values that options may have; with a unit, if there is one.
    const VALUES: [&str; 26] = [
        "N", "FILE", "ADDR", "PORT", "NAME", "PROTOCOL", "BLOCK", "FROM..TO", "PART", "IFACE",
        "MODE", "BOOL", "WORD", "W", "B", "FABRIC", "SWITCH", "VS", "MEMBER", "PASSWORD", "PERIOD",
        "REGION", "OLD", "NEW", "PROGRAM", "FOLDER",
    ];

    fn walk(command: &Command, path: &str, see: &mut dyn FnMut(&str, &Command)) {
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name());
            see(&path, inner);
            walk(inner, &path, see);
        }
    }

    #[test]
    fn every_option_says_what_it_does_in_one_form() {
        let mut wrong = Vec::new();
        walk(&command(), "rackmem", &mut |path, command| {
            let about = command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            let one_line = !about.contains('\n') && about.chars().count() <= 100;
            if about.is_empty() || about.ends_with('.') || !one_line {
                wrong.push(format!("{path}: {about}"));
            }
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let begins = help.starts_with(|c: char| c.is_uppercase());
                if !begins || help.ends_with('.') {
                    wrong.push(format!("{path}: {}: {help}", arg.get_id()));
                }
                let values = arg.get_value_names().unwrap_or_default();
                let takes = arg.get_action().takes_values();
                let listed = !arg.get_possible_values().is_empty();
                for name in values.iter().filter(|_| takes && !listed) {
                    let unit = UNITS.iter().any(|row| row.0 == name.as_str());
                    if !unit && !VALUES.contains(&name.as_str()) {
                        wrong.push(format!("{path}: {}: what is {name}?", arg.get_id()));
                    }
                }
            }
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn examples_of_a_bench_are_those_of_benches_that_name_it() {
        let examples = "Examples:\n  rackmem bench a   one\n  rackmem bench ab  two\n  rackmem --json bench a > x";
        let found = of_path(examples, "rackmem bench a");
        assert_eq!(
            found,
            "Examples:\n  rackmem bench a   one\n  rackmem --json bench a > x"
        );
        assert_eq!(of_path(examples, "rackmem bench c"), "");
    }
}
