//! Options of `rackmem bench graph`.

use super::often::Often;
use crate::commands::graph::input;
use crate::failure::Result;
use clap::Args;
use rackmem_bench::run::graph;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct GraphArgs {
    /// Compute on N nodes, from 1 to 8; several: each number
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2,4", value_parser = nodes)]
    nodes: Vec<usize>,
    /// Compute with N processes, from 2 to 8, on both fabrics; several: each number
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "2,4", value_parser = processes)]
    processes: Vec<usize>,
    /// Draw a random graph of 2^N vertices beside that of packages, N from 10 to 22
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(10..=22))]
    rmat: u32,
    /// Run FILE, a Python with networkx and scipy, igraph or networkit
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    #[command(flatten)]
    pub often: Often<3, 1000>,
}

fn nodes(text: &str) -> std::result::Result<usize, String> {
    let nodes = text.parse().ok().filter(|nodes| (1..=8).contains(nodes));
    nodes.ok_or_else(|| "1 to 8 nodes compute together".to_owned())
}

fn processes(text: &str) -> std::result::Result<usize, String> {
    let nodes = text.parse().ok().filter(|nodes| (2..=8).contains(nodes));
    nodes.ok_or_else(|| "2 to 8 processes compute together".to_owned())
}

impl GraphArgs {
    /// With the graphs that it is about.
    pub fn options(&self) -> Result<graph::Options> {
        let (packages, _) = input::of_packages()?;
        let random = rackmem_graph::rmat(self.rmat, 1).map_err(input::failure)?;
        Ok(graph::Options {
            python: self.python.clone(),
            nodes: self.nodes.clone(),
            processes: self.processes.clone(),
            duration: self.often.time(),
            graphs: vec![
                graph::Input {
                    name: "packages".to_owned(),
                    graph: packages,
                    options: vec!["--packages".to_owned()],
                },
                graph::Input {
                    name: format!("rmat-{}", self.rmat),
                    graph: random,
                    options: vec!["--rmat".to_owned(), self.rmat.to_string()],
                },
            ],
        })
    }
}
