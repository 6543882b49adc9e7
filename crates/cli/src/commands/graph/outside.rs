//! networkx on the same graph, as a guest: a process of Python.

use super::program::Told;
use crate::failure::{Failure, Result};
use rackmem_graph::Graph;
use serde::Deserialize;
use std::io::{BufWriter, Write};
use std::process::{Command, Stdio};

const SCRIPT: &str = include_str!("networkx.py");

/// What it found.
#[derive(Debug, Deserialize)]
pub struct Outside {
    /// With what it computes.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Without reading the graph.
    pub seconds: f64,
    /// By vertex; none where no path leads.
    values: Vec<Option<f64>>,
}

impl Outside {
    /// Runs it.
    pub fn run<P: Told>(graph: &Graph, program: &P) -> Result<Outside> {
        let lacks = |why: String| {
            Failure::new(
                format!("networkx does not run: {why}"),
                "install it for python3 (`pip install networkx`), or leave --vs out",
            )
        };
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT, P::NAME, &graph.vertices().to_string()])
            .args(program.for_networkx())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| lacks(format!("python3: {error}")))?;
        let input = child.stdin.take();
        // It may have ended already, and says why on its standard error.
        let _ = input.map(|input| write(graph, input));
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let last = said.lines().last().unwrap_or_default();
            return Err(lacks(last.to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| lacks(error.to_string()))
    }

    /// The largest difference of a value; one that only one side has is an infinite one.
    pub fn apart<P: Told>(&self, program: &P, values: &[P::Value]) -> f64 {
        if self.values.len() != values.len() {
            return f64::INFINITY;
        }
        let pairs = self.values.iter().zip(values);
        let apart = pairs.map(|(theirs, own)| match (theirs, program.number(*own)) {
            (Some(theirs), Some(own)) => (theirs - own).abs(),
            (None, None) => 0.0,
            _ => f64::INFINITY,
        });
        apart.fold(0.0, f64::max)
    }
}

fn write(graph: &Graph, input: impl Write) -> std::io::Result<()> {
    let mut input = BufWriter::new(input);
    for edge in graph.edges() {
        writeln!(input, "{} {} {}", edge.source, edge.target, edge.weight)?;
    }
    input.flush()
}
