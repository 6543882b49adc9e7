//! Every type that the library exports is shown in use.

use super::Finding;
use super::rust_code::code_only;
use super::tree::{SourceFile, Tree};
use std::collections::{BTreeMap, BTreeSet};

const LIBRARY: &str = "crates/rackmem/src/";

/// Files whose `pub use` is what a program can name.
const DOORS: &[&str] = &[
    "lib.rs",
    "diagnostics.rs",
    "guest.rs",
    "locked/mod.rs",
    "membership/mod.rs",
    "bytes/window.rs",
];
/// Those of them that are modules of the API, with what they declare.
const MODULES: &[&str] = &["guest.rs", "bytes/window.rs"];

/// Types without an example, and why.
const EXEMPT: &[(&str, &str)] = &[
    ("Answering", "a baseline's; bench/baselines shows it"),
    ("Beat", "a row of the membership store"),
    ("Beats", "a row of the membership store"),
    ("Dest", "a guest's; bench/baselines shows it"),
    ("EventCounts", "a metrics row"),
    ("KernelMetrics", "a metrics row"),
    ("KernelPlace", "needs root and a kernel with XDP"),
    ("Links", "a row of the membership store"),
    ("LockCounters", "a metrics row"),
    ("MakeAnswering", "a baseline's; bench/baselines shows it"),
    ("Nobody", "a guest's; bench/baselines shows it"),
    ("PacketCounts", "a metrics row"),
    ("Places", "a row of the membership store"),
    ("Reason", "what a peer said that broke the protocol"),
    ("RebuildMetrics", "a metrics row"),
    ("ShadowMetrics", "a metrics row"),
];

pub fn check(tree: &Tree) -> Vec<Finding> {
    let library: Vec<(&str, &SourceFile)> = tree
        .rust()
        .filter_map(|file| Some((file.path.strip_prefix(LIBRARY)?, file)))
        .collect();
    let own = declared(&library);
    let shown: BTreeSet<&str> = library
        .iter()
        .flat_map(|(_, file)| examples(&file.text))
        .flat_map(words)
        .collect();
    let mut findings = Vec::new();
    for (door, file) in library.iter().filter(|(path, _)| DOORS.contains(path)) {
        let mut names = exported(&file.text);
        if MODULES.contains(door) {
            let here = own.iter().filter(|(_, place)| place.file == file.path);
            names.extend(here.map(|(name, _)| ((*name).to_owned(), true)));
        }
        for (name, ours) in names {
            let exempt = EXEMPT.iter().any(|(exempt, _)| *exempt == name);
            match own.get(&*name) {
                _ if exempt => {}
                Some(place) if !place.example => findings.push(Finding::error(
                    place.file,
                    place.line,
                    format!("`{name}` is exported and its docs have no example"),
                )),
                // What another package declares is shown where the library uses it.
                None if !ours && !shown.contains(&*name) => findings.push(Finding::error(
                    &file.path,
                    0,
                    format!("`{name}` is exported and no example of the library uses it"),
                )),
                _ => {}
            }
        }
    }
    findings
}

/// Where a type is declared, and whether its docs have an example.
struct Place<'a> {
    file: &'a str,
    line: usize,
    example: bool,
}

/// The public types of the library's files, by name. Where two files have one of a name, the one
/// without an example counts.
fn declared<'a>(library: &[(&str, &'a SourceFile)]) -> BTreeMap<&'a str, Place<'a>> {
    let mut found: BTreeMap<&str, Place<'_>> = BTreeMap::new();
    for (_, file) in library {
        let lines: Vec<&str> = file.text.lines().collect();
        for (nth, line) in lines.iter().enumerate() {
            let Some(name) = declares(line) else { continue };
            let docs = lines[..nth]
                .iter()
                .rev()
                .take_while(|line| line.starts_with("///") || !line.trim().is_empty());
            let example = docs.into_iter().any(|line| line.starts_with("/// ```"));
            let place = Place {
                file: &file.path,
                line: nth + 1,
                example,
            };
            match found.get(name) {
                Some(before) if !before.example => {}
                _ => drop(found.insert(name, place)),
            }
        }
    }
    found
}

/// The type that a line begins to declare.
fn declares(line: &str) -> Option<&str> {
    let rest = ["struct ", "enum ", "trait "]
        .iter()
        .find_map(|kind| line.strip_prefix("pub ")?.strip_prefix(kind))?;
    words(rest).next()
}

/// What a file exports by `pub use`: types' names, and whether they are the library's own.
fn exported(text: &str) -> Vec<(String, bool)> {
    let code = code_only(text);
    let statements = code.split("pub use ").skip(1);
    let mut names = Vec::new();
    for statement in statements.filter_map(|rest| rest.split(';').next()) {
        let ours = !statement.starts_with("rackmem_");
        let is_type = |word: &&str| word.starts_with(char::is_uppercase);
        names.extend(
            words(statement)
                .filter(is_type)
                .map(|word| (word.into(), ours)),
        );
    }
    names
}

/// The lines of a file's examples.
fn examples(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or(line.strip_prefix("//!"))?;
        let fence = doc.trim_start().starts_with("```");
        inside ^= fence;
        (inside && !fence).then_some(doc)
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let found = check(&Tree::of(files));
        found
            .iter()
            .map(|finding| finding.message.clone())
            .collect()
    }

    #[test]
    fn an_exported_type_has_an_example() {
        let door = "crates/rackmem/src/lib.rs";
        let room = "crates/rackmem/src/room.rs";
        let with = "/// A thing.\n///\n/// ```\n/// Thing;\n/// ```\n#[derive(Debug)]\npub struct Thing;\n";
        let without = "/// A thing.\n#[derive(Debug)]\npub struct Thing;\n";
        let export = "pub use room::{Other, Thing};\n";
        assert_eq!(messages(&[(door, export), (room, with)]), [""; 0]);
        let found = messages(&[(door, export), (room, without)]);
        assert_eq!(found, ["`Thing` is exported and its docs have no example"]);
        assert_eq!(messages(&[(door, ""), (room, without)]), [""; 0]);
    }

    #[test]
    fn an_example_of_the_type_before_is_not_its_own() {
        let door = "crates/rackmem/src/lib.rs";
        let room = "crates/rackmem/src/room.rs";
        let two = "/// ```\n/// One;\n/// ```\npub struct One;\n\n/// Two.\npub enum Two {}\n";
        let found = messages(&[(door, "pub use room::{One, Two};\n"), (room, two)]);
        assert_eq!(found, ["`Two` is exported and its docs have no example"]);
    }

    #[test]
    fn a_type_of_another_package_is_used_in_some_example() {
        let door = "crates/rackmem/src/lib.rs";
        let export = "pub use rackmem_fabric::Faults;\n";
        let found = messages(&[(door, export)]);
        let message = "`Faults` is exported and no example of the library uses it";
        assert_eq!(found, [message]);
        let shown = format!("//! ```\n//! let faults = Faults::default();\n//! ```\n{export}");
        assert_eq!(messages(&[(door, &shown)]), [""; 0]);
    }

    #[test]
    fn modules_export_what_they_declare() {
        let window = "crates/rackmem/src/bytes/window.rs";
        let found = messages(&[(window, "/// A window.\npub struct Window;\n")]);
        assert_eq!(found, ["`Window` is exported and its docs have no example"]);
    }
}
