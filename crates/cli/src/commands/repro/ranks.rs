//! PageRank on this machine, on coherent memory as each system keeps it and by messages
//! (Concordia's Fig. 16).

use rackmem_bench::report::Report;
use rackmem_bench::run::{BenchError, Progress, Result};
use rackmem_bench::stop;
use rackmem_bench::system::System;
use rackmem_graph::{
    Cut, CutBy, Engine, GraphError, Job, Limits, PageRank, Plan, Watch, rmat, run,
};
use std::time::{Duration, Instant};

/// An R-MAT graph of so many doublings of vertices, cut for so many nodes.
const SCALE: u32 = 12;
const SEED: u64 = 1;
const NODES: usize = 4;
/// Steps of a computation.
const STEPS: u32 = 20;
/// What is compared: memory as each system keeps it, and masters' and mirrors' messages.
const CASES: [(System, Engine); 4] = [
    (System::Switch, Engine::Messages),
    (System::Switch, Engine::Coherent),
    (System::HomeOnly, Engine::Coherent),
    (System::Directory, Engine::Coherent),
];

/// The name of a case.
pub fn name(system: System, engine: Engine) -> String {
    format!("inline/{}/pagerank/{engine}/nodes-{NODES}", system.name())
}

/// Ends when the user wants it.
struct Stopped;

impl Watch for Stopped {
    fn stop(&self) -> bool {
        stop::requested()
    }
}

fn broken(error: GraphError) -> BenchError {
    match error {
        GraphError::Stopped => BenchError::Stopped,
        error => BenchError::Broken(error.to_string()),
    }
}

/// Edges followed a second: each case computes again and again until its time is over.
pub fn measure(duration: Duration, report: &mut Report, tell: Progress<'_>) -> Result<()> {
    let graph = rmat(SCALE, SEED).map_err(broken)?;
    let cut = Cut::new(&graph, NODES, CutBy::Greedy).map_err(broken)?;
    let plan = Plan {
        graph: &graph,
        cut: &cut,
    };
    // No step is the last one before the limit.
    let program = PageRank {
        tolerance: 0.0,
        ..PageRank::of(&graph)
    };
    for (system, engine) in CASES {
        let case = name(system, engine);
        tell(&case);
        let rack = system.builder(NODES).build()?;
        let job = Job {
            limits: Limits { steps: STEPS },
            watch: &Stopped,
            ..Job::new("repro", plan, engine)
        };
        let (began, mut steps, mut seconds) = (Instant::now(), 0, 0.0);
        while steps == 0 || began.elapsed() < duration {
            let found = run(rack.nodes(), &program, &job).map_err(broken)?;
            // Loading is not what is compared.
            let last = found.worked.steps.last();
            seconds += last.map_or(0.0, |step| step.since.as_secs_f64());
            steps += found.worked.steps.len();
        }
        let followed = (steps * graph.edges().len()) as f64;
        report.add(&case, followed / seconds.max(f64::MIN_POSITIVE), "ops/s")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::repro::claims;

    #[test]
    fn every_statement_has_its_cases() {
        let mut report = Report::new("repro");
        measure(Duration::ZERO, &mut report, &mut |_| {}).unwrap();
        for statement in claims::CONCORDIA_16 {
            assert!(statement.judge("", &report).is_some(), "{}", statement.says);
        }
    }
}
