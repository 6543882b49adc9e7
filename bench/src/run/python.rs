//! `bench python`: arrays of the Python package beside NumPy, the standard library's shared memory
//! and pipes. What is measured is in `python_cases.py`, which runs as two nodes of a rack.

use super::{BenchError, Progress, Result};
use crate::report::Report;
use rackmem::Fabric;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CASES: &str = include_str!("python_cases.py");

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which Python, with NumPy and the package.
    pub python: PathBuf,
    /// Over which fabrics processes share.
    pub fabrics: Vec<Fabric>,
    /// The time of a case.
    pub duration: Duration,
}

/// A line that the program prints.
#[derive(Deserialize)]
struct Line {
    case: String,
    value: f64,
    unit: String,
    baseline: Option<String>,
}

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let asks = Command::new(&options.python)
        .args(["-c", "import numpy, rackmem"])
        .output();
    let has = asks.is_ok_and(|output| output.status.success());
    if !has {
        let python = options.python.display();
        let what = format!("{python} has no NumPy or no rackmem: `pip install ./python numpy`");
        return Err(BenchError::Missing(what));
    }
    let files = Files::new()?;
    for (nth, fabric) in options.fabrics.iter().enumerate() {
        let first = if nth == 0 { "first" } else { "next" };
        progress(&format!("{} and its baselines", fabric.name()));
        for line in files.play(options, *fabric, first)? {
            match &line.baseline {
                Some(of) => report.add_against(&line.case, line.value, &line.unit, of)?,
                None => report.add(&line.case, line.value, &line.unit)?,
            }
        }
    }
    Ok(())
}

/// The program and the rack's description. Removed with the value.
struct Files {
    program: PathBuf,
    rack: PathBuf,
}

impl Files {
    fn new() -> Result<Files> {
        let name = format!("rackmem-bench-python-{}", std::process::id());
        let at = |kind: &str| std::env::temp_dir().join(format!("{name}.{kind}"));
        let files = Files {
            program: at("py"),
            rack: at("toml"),
        };
        std::fs::write(&files.program, CASES)?;
        Ok(files)
    }

    /// Two processes, of which the first tells what it has measured.
    fn play(&self, options: &Options, fabric: Fabric, first: &str) -> Result<Vec<Line>> {
        let nodes = rackmem_hosts::addresses(2);
        let name = fabric.name();
        let text = format!(
            "fabric = \"{name}\"\nnodes = [\"{}\", \"{}\"]\npatience = \"60s\"\n",
            nodes[0], nodes[1]
        );
        std::fs::write(&self.rack, text)?;
        let start = |node: usize, out: Stdio| -> std::io::Result<Ending> {
            let child = Command::new(&options.python)
                .arg(&self.program)
                .arg(options.duration.as_secs_f64().to_string())
                .args([name, first])
                .env("RACKMEM_CONFIG", &self.rack)
                .env("RACKMEM_NODE", node.to_string())
                .stdin(Stdio::null())
                .stdout(out)
                .spawn();
            child.map(|child| Ending(Some(child)))
        };
        let mut other = start(1, Stdio::null())?;
        let told = start(0, Stdio::piped())?.output()?;
        let other = other.output()?;
        if !told.status.success() || !other.status.success() {
            let what = "the Python program failed: its message is above".to_owned();
            return Err(BenchError::Missing(what));
        }
        let text = String::from_utf8_lossy(&told.stdout);
        let lines = text.lines().map(serde_json::from_str);
        let lines: serde_json::Result<Vec<Line>> = lines.collect();
        lines.map_err(|error| BenchError::Missing(format!("a line of the program: {error}")))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in [&self.program, &self.rack] {
            remove(file);
        }
    }
}

fn remove(file: &Path) {
    // What cannot be removed is in the system's folder for such things.
    let _ = std::fs::remove_file(file);
}

/// A process of ours; killed when dropped.
struct Ending(Option<Child>);

impl Ending {
    fn output(&mut self) -> std::io::Result<std::process::Output> {
        let child = self.0.take();
        let child = child.ok_or(std::io::ErrorKind::NotFound)?;
        child.wait_with_output()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Gone already is as good as killed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
