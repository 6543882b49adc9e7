//! `bench graph`: PageRank of one graph by each way of the data from node to node, beside one
//! thread, and beside libraries that many use, each in a process of Python of its own. Nodes are
//! threads of one process, and processes of `rackmem graph`.

use super::{BenchError, Progress, Result, missing, stopped};
use crate::report::Report;
use crate::stop;
use rackmem::{ErrorKind, Rack};
use rackmem_graph::{Cut, CutBy, Engine, Graph, GraphError, Job, Limits, PageRank, Plan, Watch};
use serde::Deserialize;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PEERS: &str = include_str!("graph_peers.py");
/// Libraries, and what brings them.
const LIBRARIES: [(&str, &str); 3] = [
    ("networkx", "pip install networkx scipy"),
    ("igraph", "pip install igraph"),
    ("networkit", "pip install networkit"),
];
/// Between processes.
const FABRICS: [&str; 2] = ["udp", "shm"];
/// What ranks of two programs may differ by: each ends when all together change by little.
const APART: f64 = 1e-7;

/// What to measure.
#[derive(Debug)]
pub struct Options {
    /// Which Python has the libraries.
    pub python: PathBuf,
    /// Nodes that compute together, each a thread.
    pub nodes: Vec<usize>,
    /// Processes that compute together.
    pub processes: Vec<usize>,
    /// How long each case is computed again and again, once at least;
    /// the median of its times counts.
    pub duration: Duration,
    /// Graphs.
    pub graphs: Vec<Input>,
}

/// A graph, what it is called, and the options by which `rackmem graph` reads it.
#[derive(Debug)]
pub struct Input {
    /// Its name in a report.
    pub name: String,
    /// It.
    pub graph: Graph,
    /// Of the command line.
    pub options: Vec<String>,
}

/// What `rackmem graph` tells of one engine.
#[derive(Deserialize)]
struct Told {
    engines: [ToldEngine; 1],
}

#[derive(Deserialize)]
struct ToldEngine {
    agreement: Agreement,
    packets: u64,
    seconds: f64,
    steps: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Agreement {
    largest_difference: f64,
}

/// What a library has found.
#[derive(Deserialize)]
struct Found {
    version: String,
    seconds: f64,
    values: Vec<f64>,
}

/// Ends a computation when the user wants no more of it.
struct Stopping;

impl Watch for Stopping {
    fn stop(&self) -> bool {
        stop::requested()
    }
}

/// Runs it. What was left out, and why.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<Vec<String>> {
    let mut left_out = Vec::new();
    for input in &options.graphs {
        let (name, graph) = (&input.name, &input.graph);
        let program = PageRank::of(graph);
        progress(&format!("{name}, one thread"));
        let one = format!("{name}/one-thread");
        let cut = Cut::new(graph, 1, CutBy::Greedy).map_err(failure)?;
        let (seconds, ranks) = again(options.duration, || {
            let began = Instant::now();
            let plan = Plan { graph, cut: &cut };
            let ranks = rackmem_graph::reference(plan, &program, Limits::default()).values;
            Ok((began.elapsed().as_secs_f64(), ranks))
        })?;
        report.add(&one, ms(seconds), "ms")?;
        for nodes in &options.nodes {
            let cut = Cut::new(graph, *nodes, CutBy::Greedy).map_err(failure)?;
            let plan = Plan { graph, cut: &cut };
            for engine in Engine::ALL {
                progress(&format!("{name}, {nodes} nodes, {engine}"));
                let case = format!("{name}/nodes-{nodes}/{engine}");
                let job = Job {
                    watch: &Stopping,
                    ..Job::new("bench", plan, engine)
                };
                let (seconds, told) = again(options.duration, || ours((&program, &job), *nodes))?;
                close(&case, &told.values, &ranks)?;
                report.add_against(&case, ms(seconds), "ms", &one)?;
                report.add(&format!("{case}/steps"), told.steps, "steps")?;
                report.add(&format!("{case}/packets"), told.packets, "per step")?;
            }
        }
        for (nodes, fabric) in options
            .processes
            .iter()
            .flat_map(|nodes| FABRICS.map(|fabric| (*nodes, fabric)))
        {
            for engine in Engine::ALL {
                progress(&format!("{name}, {nodes} processes, {fabric}, {engine}"));
                stopped()?;
                let case = format!("{name}/processes-{nodes}/{fabric}/{engine}");
                let told = of_processes(input, (nodes, fabric), engine)?;
                within(&case, told.agreement.largest_difference)?;
                let steps = told.steps.len().max(1) as f64;
                report.add_against(&case, ms(told.seconds), "ms", &one)?;
                report.add(&format!("{case}/steps"), steps, "steps")?;
                let packets = told.packets as f64 / steps;
                report.add(&format!("{case}/packets"), packets, "per step")?;
            }
        }
        for (library, get) in LIBRARIES {
            progress(&format!("{name}, {library}"));
            match peer(options, library, (graph, &program)) {
                Ok(found) => {
                    let case = format!("{name}/{library}-{}", found.version);
                    close(&case, &found.values, &ranks)?;
                    report.add_against(&case, ms(found.seconds), "ms", &one)?;
                }
                Err(why) => left_out.push(format!("skipped: {name}/{library}: {why} ({get})")),
            }
        }
    }
    left_out.sort_unstable();
    left_out.dedup();
    Ok(left_out)
}

/// Does it until the time is over, once at least: the median of the times that it tells,
/// and what it has told last.
fn again<T>(duration: Duration, mut once: impl FnMut() -> Result<(f64, T)>) -> Result<(f64, T)> {
    let began = Instant::now();
    let mut times = Vec::new();
    loop {
        let (seconds, told) = once()?;
        times.push(seconds);
        if began.elapsed() >= duration || stop::requested() {
            times.sort_by(f64::total_cmp);
            return Ok((times[times.len() / 2], told));
        }
    }
}

/// What an engine has found.
struct Ours {
    values: Vec<f64>,
    steps: f64,
    /// That agents have received in a step.
    packets: f64,
}

/// One engine in a rack of its own, and how long it has computed.
fn ours((program, job): (&PageRank, &Job<'_>), nodes: usize) -> Result<(f64, Ours)> {
    let rack = Rack::local(nodes)?;
    let packets = || -> u64 {
        let metrics = rack.metrics();
        metrics.nodes.iter().map(|node| node.received.total()).sum()
    };
    let (before, began) = (packets(), Instant::now());
    let found = rackmem_graph::run(rack.nodes(), program, job).map_err(failure)?;
    let seconds = began.elapsed().as_secs_f64();
    let steps = found.worked.steps.len().max(1) as f64;
    let told = Ours {
        values: found.values,
        steps,
        packets: (packets() - before) as f64 / steps,
    };
    Ok((seconds, told))
}

/// One engine of a rack of processes, which compares its ranks with those of one thread.
fn of_processes(
    input: &Input,
    (nodes, fabric): (usize, &str),
    engine: Engine,
) -> Result<ToldEngine> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--json", "graph", "pagerank", "--processes", "--top", "1"]);
    command.args(["--engine", &engine.to_string(), "--fabric", fabric]);
    command.args(["--nodes", &nodes.to_string()]);
    let output = command.args(&input.options).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(match stop::requested() {
            true => BenchError::Stopped,
            false => missing(said.trim()),
        });
    }
    let told: Told = serde_json::from_slice(&output.stdout).map_err(missing)?;
    let [told] = told.engines;
    Ok(told)
}

fn ms(seconds: f64) -> f64 {
    seconds * 1e3
}

fn failure(error: GraphError) -> BenchError {
    match error {
        GraphError::Rack(error) if error.kind() == ErrorKind::Closed => BenchError::Stopped,
        GraphError::Rack(error) => error.into(),
        GraphError::Stopped => BenchError::Stopped,
        error => BenchError::Missing(error.to_string()),
    }
}

/// Two programs have found the same.
fn close(case: &str, found: &[f64], ranks: &[f64]) -> Result<()> {
    let pairs = found.iter().zip(ranks);
    let apart = pairs.map(|(one, other)| (one - other).abs());
    let apart = apart.fold(0.0, f64::max);
    match found.len() == ranks.len() {
        true => within(case, apart),
        false => within(case, f64::INFINITY),
    }
}

/// Whether ranks are as near to those of one thread as two programs' may be.
fn within(case: &str, apart: f64) -> Result<()> {
    if apart <= APART {
        return Ok(());
    }
    let what = format!("{case}: a rank is {apart} from that of one thread");
    Err(BenchError::Broken(what))
}

/// A library on the same graph, or why not.
fn peer(
    options: &Options,
    library: &str,
    (graph, program): (&Graph, &PageRank),
) -> std::result::Result<Found, String> {
    let python = &options.python;
    let duration = options.duration.as_secs_f64().to_string();
    let numbers = [program.damping, program.tolerance].map(|number| number.to_string());
    let mut child = Command::new(python)
        .args(["-c", PEERS, library, &graph.vertices().to_string()])
        .args(numbers)
        .arg(duration)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", python.display()))?;
    // It may have ended already, and says why on its standard error.
    let _ = child.stdin.take().map(|input| write(graph, input));
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().last().unwrap_or_default().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn write(graph: &Graph, input: impl Write) -> std::io::Result<()> {
    let mut input = BufWriter::new(input);
    for edge in graph.edges() {
        writeln!(input, "{} {}", edge.source, edge.target)?;
    }
    input.flush()
}
