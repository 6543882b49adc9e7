//! The core runs in four worlds, real and virtual, and must do the same in each: it may use nothing
//! whose answer the world does not give it.

use super::Finding;
use super::rust_code::{code_only, has_word, without_tests};
use super::tree::{SourceFile, Tree};

/// The folders of the pure packages.
const PURE: &[&str] = &["crates/wire/src/", "crates/proto/src/"];

/// What each root file must say.
const REQUIRED: &[&str] = &["#![no_std]", "#![forbid(unsafe_code)]"];

/// Words that must not occur, and why.
const BANNED: &[(&str, &str)] = &[
    ("std", "the core has no operating system"),
    ("Instant", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("rand", "a random draw is an argument"),
    ("fastrand", "a random draw is an argument"),
    ("getrandom", "a random draw is an argument"),
    ("thread_local", "a role is a value, not a thread"),
    (
        "UnsafeCell",
        "a role is a value: state is changed through &mut",
    ),
    (
        "HashMap",
        "its order changes from run to run: use BTreeMap or an array",
    ),
    (
        "HashSet",
        "its order changes from run to run: use BTreeSet or an array",
    ),
    ("RandomState", "its order changes from run to run"),
    ("hashbrown", "its order changes from run to run"),
    (
        "f32",
        "floating point differs between machines and no switch has it",
    ),
    (
        "f64",
        "floating point differs between machines and no switch has it",
    ),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let pure = tree
        .rust()
        .filter(|file| PURE.iter().any(|folder| file.path.starts_with(folder)));
    pure.flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.path.ends_with("src/lib.rs") {
        let missing = REQUIRED
            .iter()
            .filter(|line| !file.text.lines().any(|found| found == **line));
        findings
            .extend(missing.map(|line| Finding::error(&file.path, 0, format!("must say {line}"))));
    }
    if file.path.ends_with("/tests.rs") || file.path.contains("/tests/") {
        return findings;
    }
    let code = code_only(&file.text);
    for (number, line) in without_tests(&code).lines().enumerate() {
        let banned = BANNED.iter().filter(|(word, _)| has_word(line, word));
        findings.extend(
            banned.map(|(word, why)| {
                Finding::error(&file.path, number + 1, format!("`{word}`: {why}"))
            }),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<(usize, String)> {
        let findings = check(&Tree::of(&[(path, text)]));
        findings
            .into_iter()
            .map(|finding| (finding.line, finding.message))
            .collect()
    }

    #[test]
    fn clocks_and_hash_order_are_found_in_code() {
        let found = messages(
            "crates/proto/src/a.rs",
            "\nuse std::time::Instant;\nlet m: HashMap<u8, u8>;\n",
        );
        let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 2, 3]);
    }

    #[test]
    fn comments_strings_tests_and_other_packages_are_free() {
        let text = "// no std::time here\nlet s = \"HashMap\";\n#[cfg(test)]\nmod tests { use std::vec; }\n";
        assert!(messages("crates/wire/src/a.rs", text).is_empty());
        assert!(messages("crates/proto/src/flowcc/tests.rs", "use std::vec;").is_empty());
        assert!(messages("crates/fabric/src/a.rs", "use std::time::Instant;").is_empty());
    }

    #[test]
    fn the_root_must_promise() {
        let found = messages("crates/wire/src/lib.rs", "#![no_std]\n");
        assert_eq!(found, [(0, "must say #![forbid(unsafe_code)]".to_owned())]);
    }
}
