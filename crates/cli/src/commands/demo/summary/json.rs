//! The demo's result as one object.

use super::{Phase, Story};
use crate::figures;
use rackmem::diagnostics::RackMetrics;
use rackmem_bench::machine;
use serde_json::{Value, json};

pub fn story(story: &Story, metrics: &RackMetrics, seconds: f64) -> Value {
    let ranking = story.ranking.as_ref().map(|ranking| {
        let row = |ranked: &super::Ranked| json!({"package": ranked.name, "rank": ranked.rank});
        json!({
            "rounds": ranking.rounds,
            "largest_difference": ranking.error,
            "plain_seconds": ranking.plain_seconds,
            "top": ranking.top.iter().map(row).collect::<Vec<_>>(),
        })
    });
    let history = story.judged.as_ref().map(|judged| {
        json!({
            "linearizable": true,
            "operations": judged.operations,
            "keys": judged.keys,
            "overlapping": judged.overlapping,
            "check_seconds": judged.seconds,
        })
    });
    json!({
        "demo": story.rack,
        "commit": machine::commit(),
        "machine": machine::machine(),
        "seconds": seconds,
        "graph": {
            "source": story.source,
            "packages": story.packages,
            "dependencies": story.dependencies,
        },
        "phases": story.phases.iter().map(phase).collect::<Vec<_>>(),
        "processes": story.processes.iter().map(phase).collect::<Vec<_>>(),
        "pagerank": ranking,
        "history": history,
        "figures": figures::rack(metrics),
    })
}

fn phase(phase: &Phase) -> Value {
    let timed = phase.latencies.count() > 0;
    let percentile = |percent| timed.then(|| phase.latencies.percentile(percent));
    json!({
        "phase": phase.name,
        "seconds": phase.seconds,
        "operations": phase.operations,
        "per_second": phase.per_second(),
        "remote": phase.remote,
        "remote_per_operation": phase.remote_per_operation(),
        "p50_ns": percentile(50.0),
        "p99_ns": percentile(99.0),
    })
}
