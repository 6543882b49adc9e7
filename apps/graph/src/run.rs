//! All nodes of a rack in one process: a thread for each.

use crate::error::{GraphError, Result};
use crate::program::Program;
use crate::work::{Job, Step, Watch, Worked, results, work};
use rackmem::{Node, RegionError};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The result of a computation.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<V> {
    /// By vertex.
    pub values: Vec<V>,
    /// What the steps were.
    pub worked: Worked,
}

/// Computes on these nodes, which are all of their rack, and removes from its memory what was made
/// for that. Of bounded memory a lock for each node's writers stays, by its name, for the next
/// computation of this name.
///
/// # Errors
/// The first [`GraphError`] of a node; the others are stopped.
pub fn run<P: Program>(nodes: &[Node], program: &P, job: &Job<'_>) -> Result<Found<P::Value>> {
    let watch = Together {
        watch: job.watch,
        has_failed: AtomicBool::new(false),
    };
    let shared = Job {
        watch: &watch,
        ..*job
    };
    let worked: Vec<Result<Worked>> = std::thread::scope(|scope| {
        let (watch, shared) = (&watch, &shared);
        let one = |node| {
            let worked = work(node, program, shared);
            if worked.is_err() {
                watch.has_failed.store(true, Relaxed);
            }
            worked
        };
        let threads: Vec<_> = (nodes.iter())
            .map(|node| scope.spawn(move || one(node)))
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(worked) => worked,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    });
    let worked = first(worked)?;
    let Some(node) = nodes.first() else {
        return Err(GraphError::OtherNodes {
            cut: job.plan.cut.nodes(),
            rack: 0,
        });
    };
    let values = results(node, job)?;
    let regions = (0..nodes.len()).map(|it| it.to_string());
    for region in regions.chain(["results".into(), "barrier".into()]) {
        match node.remove_region(&format!("{}/{region}", job.name)) {
            Ok(()) | Err(RegionError::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Found { values, worked })
}

/// What the nodes have agreed on, or why one has failed: those that were stopped by that do not
/// hide it.
fn first(all: Vec<Result<Worked>>) -> Result<Worked> {
    let mut worked = Ok(Worked {
        steps: Vec::new(),
        is_done: false,
    });
    for one in all.into_iter().rev() {
        match (&worked, one) {
            (Err(GraphError::Stopped) | Ok(_), Err(error)) => worked = Err(error),
            (Ok(_), Ok(one)) => worked = Ok(one),
            (Err(_), _) => {}
        }
    }
    worked
}

struct Together<'a> {
    watch: &'a dyn Watch,
    has_failed: AtomicBool,
}

impl Watch for Together<'_> {
    fn step(&self, step: &Step) {
        self.watch.step(step);
    }

    fn stop(&self) -> bool {
        self.has_failed.load(Relaxed) || self.watch.stop()
    }
}
