//! The graph that is computed on: packages, a random one, or a file.

use crate::failure::{Failure, Result};
use clap::Args;
use rackmem_bench::packages;
use rackmem_graph::{Edge, Graph, GraphError, MAX_SCALE, read_edges, rmat};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Which graph; the packages if nothing is said.
#[derive(Debug, Args)]
#[command(next_help_heading = "The graph")]
pub struct InputArgs {
    /// Take the dependencies between this machine's Debian packages (the default)
    #[arg(long, conflicts_with_all = ["rmat", "edges"])]
    packages: bool,
    /// Draw a random graph of 2^N vertices and 16 times as many edges (R-MAT), N up to 24
    #[arg(long, value_name = "N", conflicts_with = "edges")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_SCALE)))]
    rmat: Option<u32>,
    /// Draw another one for each N
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Read edges from FILE, one a line: SOURCE TARGET [WEIGHT]; # begins a comment
    #[arg(long, value_name = "FILE")]
    edges: Option<PathBuf>,
}

impl InputArgs {
    /// The graph, and where it is from.
    pub fn read(&self) -> Result<(Graph, String)> {
        match (self.rmat, &self.edges) {
            (Some(scale), _) => {
                let source = format!("R-MAT of scale {scale}, seed {}", self.seed);
                Ok((rmat(scale, self.seed).map_err(failure)?, source))
            }
            (None, Some(file)) => Ok((from_file(file)?, file.display().to_string())),
            (None, None) => of_packages(),
        }
    }
}

/// A computation that cannot be.
pub fn failure(error: GraphError) -> Failure {
    match error {
        GraphError::Rack(error) => error.into(),
        error => Failure::new(error.to_string(), error.next_step()),
    }
}

fn from_file(path: &Path) -> Result<Graph> {
    let file = File::open(path).map_err(|error| {
        let cause = format!("{}: {error}", path.display());
        Failure::new(cause, "give --edges a file that can be read")
    })?;
    read_edges(BufReader::new(file)).map_err(|error| {
        let cause = format!("{}, {error}", path.display());
        Failure::new(cause, error.next_step())
    })
}

/// The graph of this machine's packages, and where their list is from.
pub fn of_packages() -> Result<(Graph, String)> {
    let loaded = packages::load().map_err(|error| {
        Failure::new(
            format!("package lists: {error}"),
            "repair them with `apt-get update`, then try again",
        )
    })?;
    let graph = from_packages(&loaded.graph).map_err(failure)?;
    Ok((graph, loaded.source.to_string()))
}

/// The graph of packages: an edge leads from a package to one that it needs.
pub fn from_packages(packages: &packages::Graph) -> std::result::Result<Graph, GraphError> {
    let rows = (0..).zip(0..packages.nodes());
    let edges = rows.flat_map(|(source, node)| {
        let needs = packages.successors(node).iter();
        needs.map(move |target| Edge::new(source, *target))
    });
    Graph::named(packages.names().to_vec(), edges.collect())
}

/// The vertex of a name.
pub fn find(graph: &Graph, name: &str) -> Result<u32> {
    graph.find(name).ok_or_else(|| {
        let called = match graph.vertices() {
            0 => "it has none".to_owned(),
            count => format!(
                "they are called as `{}` and `{}`",
                graph.name(0),
                graph.name(count - 1)
            ),
        };
        let cause = format!("the graph has no vertex `{name}`");
        Failure::new(cause, format!("give --from one of its vertices; {called}"))
    })
}
