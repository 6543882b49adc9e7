//! Every dependency has a licence that `deny.toml` allows.
//!
//! cargo-deny checks the same file, and more; this check needs nothing installed.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::step::Verdict;
use crate::tally::Tally;
use crate::workspace::{Package, Workspace};

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

/// The step of the gate.
pub fn verdict(workspace: &Workspace) -> Verdict {
    let findings = match check(workspace) {
        Ok(findings) => findings,
        Err(failure) => return Verdict::Failed(failure),
    };
    if findings.is_empty() {
        return Verdict::Counted(Tally::PASS);
    }
    for finding in &findings {
        println!("{finding}");
    }
    Verdict::Failed(format!(
        "{} packages under licences that deny.toml does not allow",
        findings.len()
    ))
}

fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let path = workspace.root.join("deny.toml");
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let deny: Deny =
        toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let packages = workspace.all_packages()?;
    Ok(packages
        .iter()
        .filter_map(|package| refuse(package, &deny.licenses.allow))
        .collect())
}

fn refuse(package: &Package, allow: &BTreeSet<String>) -> Option<String> {
    let Package { name, version, .. } = package;
    match &package.license {
        None => Some(format!("{name} {version} states no licence")),
        Some(expression) if allows(expression, allow) => None,
        Some(expression) => Some(format!("{name} {version}: {expression}")),
    }
}

/// Whether the terms of an SPDX expression can be met with allowed licences alone.
fn allows(expression: &str, allow: &BTreeSet<String>) -> bool {
    // Old packages write `MIT/Apache-2.0` for a choice.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser {
        words: &words,
        allow,
    };
    parser.choice() == Some(true) && parser.words.is_empty()
}

/// `choice = all {OR all}`, `all = term {AND term}`, `term = (choice) | name [WITH exception]`.
/// A malformed expression has no value. The words get fewer with each call, so the recursion ends.
struct Parser<'a> {
    words: &'a [&'a str],
    allow: &'a BTreeSet<String>,
}

impl<'a> Parser<'a> {
    fn choice(&mut self) -> Option<bool> {
        let mut value = self.all()?;
        while self.take("OR") {
            value |= self.all()?;
        }
        Some(value)
    }

    fn all(&mut self) -> Option<bool> {
        let mut value = self.term()?;
        while self.take("AND") {
            value &= self.term()?;
        }
        Some(value)
    }

    fn term(&mut self) -> Option<bool> {
        if self.take("(") {
            let value = self.choice()?;
            return self.take(")").then_some(value);
        }
        let name = self.next()?;
        if self.take("WITH") {
            // An exception only adds permissions.
            self.next()?;
        }
        Some(self.allow.contains(name))
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }

    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(expression: &str) -> bool {
        let allow = ["MIT", "Apache-2.0", "Unicode-3.0"].map(String::from);
        allows(expression, &BTreeSet::from(allow))
    }

    #[test]
    fn a_choice_needs_one_allowed_side_and_a_sum_needs_both() {
        assert!(allowed("MIT"));
        assert!(allowed("GPL-3.0 OR MIT"));
        assert!(!allowed("GPL-3.0 AND MIT"));
        assert!(allowed("(MIT OR GPL-3.0) AND Unicode-3.0"));
        assert!(!allowed("(MIT OR Apache-2.0) AND MPL-2.0"));
        assert!(!allowed("GPL-3.0"));
    }

    #[test]
    fn exceptions_and_the_old_notation_are_read() {
        assert!(allowed("Apache-2.0 WITH LLVM-exception"));
        assert!(allowed("MIT/Apache-2.0"));
        assert!(!allowed("MPL-2.0/GPL-2.0"));
    }

    #[test]
    fn nonsense_is_refused() {
        for expression in [
            "",
            "MIT MIT",
            "(MIT",
            "MIT)",
            "OR",
            "MIT OR",
            "Apache-2.0 WITH",
            "()",
        ] {
            assert!(!allowed(expression), "{expression:?}");
        }
    }
}
