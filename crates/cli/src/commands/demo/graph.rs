//! The package graph in the store: written through node 0, read through all others.

use super::meter::Meter;
use super::scene::Scene;
use super::summary::Story;
use crate::halt::{Played, wrong};
use crate::size::count;
use crate::store::NodeStore;
use indicatif::ProgressBar;
use rackmem_bench::packages::Graph;

/// `pkg:NAME` holds the names of what a package depends on, with spaces between.
struct Record {
    key: String,
    value: String,
}

pub fn run(scene: &Scene<'_>, graph: &Graph, story: &mut Story) -> Played<()> {
    let records: Vec<Record> = (0..graph.nodes()).map(|node| record(graph, node)).collect();
    let total = records.len() as u64;
    let bar = scene.show.bar("store through node 0", total);
    let stored = scene.measure("store packages", || {
        Ok(vec![store(scene, &scene.stores[0], &records, &bar)?])
    })?;
    bar.finish_and_clear();
    scene.show.done(&format!(
        "node 0 stored {} packages with {} dependencies in {:.2} s",
        count(total),
        count(graph.edges() as u64),
        stored.seconds
    ));
    story.phases.push(stored);

    let readers = scene.nodes().min(2) - 1..scene.nodes();
    let bar = scene
        .show
        .bar("read on other nodes", total * readers.len() as u64);
    let read = scene.measure("read packages", || {
        scene.on_nodes(readers, |_, store| compare(scene, store, &records, &bar))
    })?;
    bar.finish_and_clear();
    scene.show.done(&format!(
        "{} read {} values, all as they were written, in {:.2} s",
        if scene.nodes() == 1 {
            "it"
        } else {
            "the other nodes"
        },
        count(read.operations),
        read.seconds
    ));
    story.phases.push(read);
    Ok(())
}

fn record(graph: &Graph, node: usize) -> Record {
    let names = graph.names();
    let needs: Vec<&str> = graph
        .successors(node)
        .iter()
        .map(|&target| names[target as usize].as_str())
        .collect();
    Record {
        key: format!("pkg:{}", names[node]),
        value: needs.join(" "),
    }
}

fn store(
    scene: &Scene<'_>,
    store: &NodeStore,
    records: &[Record],
    bar: &ProgressBar,
) -> Played<Meter> {
    let (mut meter, mut pace) = (Meter::default(), scene.pace(bar));
    for record in records {
        meter.time(|| store.set(record.key.as_bytes(), record.value.as_bytes()))?;
        pace.step()?;
    }
    Ok(meter)
}

fn compare(
    scene: &Scene<'_>,
    store: &NodeStore,
    records: &[Record],
    bar: &ProgressBar,
) -> Played<Meter> {
    let (mut meter, mut pace) = (Meter::default(), scene.pace(bar));
    let mut value = Vec::new();
    for record in records {
        let found = meter.time(|| store.get(record.key.as_bytes(), &mut value))?;
        if !found || value != record.value.as_bytes() {
            let node = store.memory().id();
            let text = String::from_utf8_lossy(&value);
            let (key, want) = (&record.key, &record.value);
            return Err(wrong(format!(
                "node {node} reads {key} as {text:?}, not {want:?}"
            )));
        }
        pace.step()?;
    }
    Ok(meter)
}
