//! The house rules, as code. A rule is a row of [`RULES`]; `cargo xtask tidy` prints what each is
//! for.

mod comments;
mod direction;
mod examples;
mod links;
mod purity;
mod rooms;
mod rust_code;
mod size;
mod tree;
mod unsafe_code;
mod words;

use std::fmt;

use crate::Failure;
use crate::step::Verdict;
use crate::tally::Tally;
use crate::workspace::Workspace;
pub use rust_code::without_tests;
pub use tree::Tree;

/// A house rule.
struct Rule {
    name: &'static str,
    about: &'static str,
    check: fn(&Workspace, &Tree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "direction",
        about: "packages depend on each other in one direction only",
        check: direction::check,
    },
    Rule {
        name: "purity",
        about: "wire and proto are no_std and know no clock, thread, random number, I/O or hash order",
        check: |_, tree| purity::check(tree),
    },
    Rule {
        name: "rooms",
        about: "no file of the library names a room above its own",
        check: rooms::check,
    },
    Rule {
        name: "examples",
        about: "every type that the library exports is shown in use",
        check: |_, tree| examples::check(tree),
    },
    Rule {
        name: "size",
        about: "a source file has one purpose and fits in a reader's head",
        check: |_, tree| size::check(tree),
    },
    Rule {
        name: "comments",
        about: "comments end at column 100",
        check: |_, tree| comments::check(tree),
    },
    Rule {
        name: "words",
        about: "no unfinished work, no paths of somebody's machine",
        check: |_, tree| words::check(tree),
    },
    Rule {
        name: "unsafe",
        about: "unsafe code stays in the few packages that need it",
        check: |_, tree| unsafe_code::check(tree),
    },
    Rule {
        name: "links",
        about: "relative links in documents lead to files that exist",
        check: |workspace, tree| links::check(&workspace.root, tree),
    },
];

/// Something a rule objects to.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from 1; 0 is the file as a whole.
    line: usize,
    message: String,
    severity: Severity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    /// Fails the gate.
    Error,
    /// Is printed.
    Warning,
}

impl Finding {
    fn error(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            path: path.into(),
            line,
            message: message.into(),
            severity: Severity::Error,
        }
    }

    fn warning(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Warning,
            ..Finding::error(path, line, message)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let Finding {
            path,
            line,
            message,
            ..
        } = self;
        match line {
            0 => write!(f, "{severity}: {path}: {message}"),
            line => write!(f, "{severity}: {path}:{line}: {message}"),
        }
    }
}

/// `cargo xtask tidy`.
pub fn command(workspace: &Workspace, _: &[String]) -> Result<bool, Failure> {
    let tree = Tree::read(&workspace.root)?;
    let mut good = true;
    for rule in RULES {
        let errors = report(rule, workspace, &tree);
        good &= errors == 0;
        let mark = if errors == 0 { "ok  " } else { "FAIL" };
        println!("{mark}  {:<10} {}", rule.name, rule.about);
    }
    Ok(good)
}

/// `cargo xtask wrap`: wraps the comments that are too wide.
pub fn wrap(workspace: &Workspace, _: &[String]) -> Result<bool, Failure> {
    let tree = Tree::read(&workspace.root)?;
    for file in tree.rust() {
        let wrapped = comments::wrapped(&file.text);
        if wrapped != file.text {
            std::fs::write(workspace.root.join(&file.path), wrapped)
                .map_err(|error| format!("{}: {error}", file.path))?;
            println!("wrapped {}", file.path);
        }
    }
    Ok(true)
}

/// The step of the gate: a rule counts one.
pub fn verdict(workspace: &Workspace) -> Verdict {
    let tree = match Tree::read(&workspace.root) {
        Ok(tree) => tree,
        Err(failure) => return Verdict::Failed(failure),
    };
    let mut tally = Tally::default();
    for rule in RULES {
        tally += if report(rule, workspace, &tree) == 0 {
            Tally::PASS
        } else {
            Tally::FAIL
        };
    }
    Verdict::Counted(tally)
}

/// Prints what a rule found, and returns the number of errors.
fn report(rule: &Rule, workspace: &Workspace, tree: &Tree) -> usize {
    let findings = (rule.check)(workspace, tree);
    for finding in &findings {
        println!("{finding} [{}]", rule.name);
    }
    findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count()
}
