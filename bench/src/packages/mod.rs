//! A real graph: which Debian package depends on which.
//!
//! A node is a package, an edge goes from a package to one that it needs (`Depends` and
//! `Pre-Depends`). Where alternatives are offered, `a | b`, the first that exists is taken;
//! a virtual package is stood for by the first real one, by name, that provides it.
//! Versions and architectures asked for are not looked at.
//!
//! [`load`] reads the package lists that `apt` keeps on a Debian or Ubuntu machine. Where there are
//! none, it takes a part of Debian's graph that is built into the program.

mod control;
mod graph;
mod lists;
mod shipped;
mod version;

use std::fmt;
use std::path::{Path, PathBuf};

pub use control::{ControlError, MAX_LINE_BYTES, MAX_PACKAGES, Package};
pub use graph::Graph;
pub use shipped::ORIGIN;

/// Where `apt` keeps its lists.
pub const LISTS: &str = "/var/lib/apt/lists";

/// A graph and where it is from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The graph.
    pub graph: Graph,
    /// Where it is from.
    pub source: Source,
    /// Lists that could not be used.
    pub skipped: Vec<Skipped>,
}

/// Where a graph is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// These lists of this machine.
    Lists(Vec<PathBuf>),
    /// The part of Debian's graph in this program.
    Shipped,
}

/// A list that was not used, and why.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// The list.
    pub path: PathBuf,
    /// What is wrong, in words.
    pub why: String,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Lists(paths) => {
                let plural = if paths.len() == 1 { "list" } else { "lists" };
                write!(f, "{} package {plural} of this machine", paths.len())
            }
            Source::Shipped => f.write_str(ORIGIN),
        }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

/// The graph of this machine's package lists, or else the one in this program.
pub fn load() -> Result<Loaded, ControlError> {
    load_from(Path::new(LISTS))
}

/// The graph of the package lists in a folder, or else the one in this program.
pub fn load_from(folder: &Path) -> Result<Loaded, ControlError> {
    let found = lists::read_all(folder);
    if found.packages.is_empty() {
        let skipped = found.skipped;
        return Ok(Loaded {
            skipped,
            ..built_in()?
        });
    }
    Ok(Loaded {
        graph: Graph::build(found.packages),
        source: Source::Lists(found.used),
        skipped: found.skipped,
    })
}

/// The graph in this program, which is a tenth of all of Debian's.
pub fn built_in() -> Result<Loaded, ControlError> {
    Ok(Loaded {
        graph: Graph::build(shipped::read()?),
        source: Source::Shipped,
        skipped: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pagerank::{Settings, pagerank};

    #[test]
    fn without_lists_the_shipped_graph_is_taken() {
        let loaded = load_from(Path::new("/nonexistent/lists")).unwrap();
        assert_eq!(loaded.source, Source::Shipped);
        let graph = &loaded.graph;
        assert!(graph.nodes() > 4000, "{}", graph.nodes());
        assert!(graph.edges() > 3 * graph.nodes(), "{}", graph.edges());
        let libc = graph.find("libc6").expect("what everything needs");
        let needs_libc = (0..graph.nodes()).filter(|&node| graph.successors(node).contains(&libc));
        assert!(needs_libc.count() > graph.nodes() / 10);
    }

    #[test]
    fn what_most_packages_rest_on_ranks_highest() {
        let graph = load_from(Path::new("/nonexistent/lists")).unwrap().graph;
        let found = pagerank(graph.adjacency(), Settings::default());
        assert!(found.change < 1e-9, "{} rounds", found.rounds);
        let mut order: Vec<usize> = (0..graph.nodes()).collect();
        order.sort_by(|&a, &b| found.ranks[b].total_cmp(&found.ranks[a]));
        let top: Vec<&str> = order
            .iter()
            .take(5)
            .map(|&node| graph.names()[node].as_str())
            .collect();
        assert!(top.contains(&"libc6"), "{top:?}");
    }

    #[test]
    fn lists_of_this_machine_load_if_there_are_any() {
        let loaded = load().unwrap();
        let graph = &loaded.graph;
        assert!(graph.nodes() > 0 && graph.edges() > 0);
        assert_eq!(graph.adjacency().nodes(), graph.nodes());
        if let Source::Lists(paths) = &loaded.source {
            assert!(!paths.is_empty());
        }
    }
}
