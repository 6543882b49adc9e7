//! The rooms of the library: which folder of `crates/rackmem/src` may name which other.

use super::Finding;
use super::rust_code::{code_only, without_tests};
use super::tree::Tree;
use crate::workspace::Workspace;

const LIBRARY: &str = "crates/rackmem/src/";

/// Folders, or files beside them, each of which names only those before it and itself.
const ROOMS: &[&str] = &[
    "fences",
    "sync",
    "threads",
    "backoff",
    "wait",
    "error",
    "membership",
    "guest",
    "faulting",
    "bytes",
    "config",
    "data_plane",
    "ports",
    "host",
    "node",
    "replicated",
    "paging",
    "object",
    "region",
    "coherent",
    "locked",
    "bounded",
    "futures",
    "rack",
    "diagnostics",
];

pub fn check(_: &Workspace, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let Some(inside) = file.path.strip_prefix(LIBRARY) else {
            continue;
        };
        if inside == "lib.rs" {
            continue;
        }
        let code = code_only(&file.text);
        for (line, text) in without_tests(&code).lines().enumerate() {
            let found = names(text).filter_map(|name| refuse(inside, name));
            findings.extend(found.map(|message| Finding::error(&file.path, line + 1, message)));
        }
    }
    findings
}

/// What follows `crate::` in a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

fn refuse(inside: &str, name: &str) -> Option<String> {
    let room = inside.split(['/', '.']).next().unwrap_or_default();
    let floor = |room: &str| ROOMS.iter().position(|known| *known == room);
    let Some(own) = floor(room) else {
        return Some(format!("the room {room} has no place in xtask's list"));
    };
    match floor(name) {
        None => Some(format!(
            "names `crate::{name}`: name the room that it is in"
        )),
        Some(other) if other <= own => None,
        Some(_) => Some(format!("{room} must not name the higher room {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_names_those_below_it() {
        assert_eq!(refuse("host/access.rs", "ports"), None);
        assert_eq!(refuse("host/locks/cell.rs", "host"), None);
        assert!(refuse("ports/place.rs", "host").is_some());
        assert!(refuse("error.rs", "locked").is_some());
        assert!(
            refuse("host/here.rs", "Node").is_some(),
            "the root is above all"
        );
        assert!(refuse("attic/old.rs", "error").is_some());
    }

    #[test]
    fn comments_and_unit_tests_may_name_anything() {
        let file = "//! See [`crate::rack`].\nuse crate::rack::Rack;\n#[cfg(test)]\nmod tests { use crate::rack::Rack; }\n";
        let tree = Tree::of(&[("crates/rackmem/src/bytes/a.rs", file)]);
        let workspace = Workspace {
            root: std::path::PathBuf::new(),
            target: std::path::PathBuf::new(),
            packages: Vec::new(),
        };
        let lines: Vec<_> = check(&workspace, &tree).iter().map(|f| f.line).collect();
        assert_eq!(lines, [2]);
    }
}
