//! What a rack's nodes tell at one time, and what is new since another.

use crate::commands::inspect::{hot, locks};
use crate::failure::Result;
use rackmem::diagnostics::{
    HotBlock, MetricKind, ToldFigures, inspect, inspect_figures, inspect_hot, inspect_regions,
};
use rackmem::locked::LockStatus;
use rackmem::{Config, RegionInfo};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// What the nodes have told; nothing of those that did not answer.
pub struct Sample {
    pub at: Instant,
    pub nodes: Vec<Option<ToldFigures>>,
    pub locks: Vec<Option<Vec<LockStatus>>>,
    pub hot: Vec<Option<Vec<HotBlock>>>,
    pub regions: Vec<RegionInfo>,
}

impl Sample {
    /// Asks all nodes, one after the other.
    ///
    /// # Errors
    /// When nodes cannot be asked from here.
    pub fn take(config: &Config) -> Result<Sample> {
        Ok(Sample {
            nodes: inspect_figures(config)?,
            locks: inspect(config, false)?,
            hot: inspect_hot(config)?,
            regions: inspect_regions(config)?.unwrap_or_default(),
            at: Instant::now(),
        })
    }

    /// Whether no node has answered.
    pub fn is_silent(&self) -> bool {
        self.nodes.iter().all(Option::is_none)
    }

    /// For programs: each node's figures, rates of its counters since `before`, and locks in use.
    pub fn json(&self, before: &Sample) -> Value {
        let nodes: Vec<Value> = (0..self.nodes.len())
            .map(|node| self.node_json(node, before))
            .collect();
        let (told, silent) = locks::by_address(self.locks.clone());
        let locks: Vec<Value> = told
            .iter()
            .map(|(addr, told)| locks::object(*addr, told))
            .collect();
        let hot = self.hot(before);
        let hot: Vec<Value> = hot
            .iter()
            .map(|block| hot::object(block, &self.regions))
            .collect();
        json!({"nodes": nodes, "locks": locks, "hot": hot, "unanswered": silent})
    }

    /// Blocks that were missed since `before`, with rates a second.
    pub fn hot(&self, before: &Sample) -> Vec<hot::Hot> {
        hot::rates(&self.hot, &before.hot, self.seconds(before))
    }

    fn seconds(&self, before: &Sample) -> f64 {
        (self.at - before.at).as_secs_f64().max(1e-3)
    }

    fn node_json(&self, node: usize, before: &Sample) -> Value {
        let Some(told) = &self.nodes[node] else {
            return Value::Null;
        };
        let (mut figures, mut rates) = (Map::new(), Map::new());
        for (metric, label, figure) in told.all() {
            put(&mut figures, metric.name, label, json!(figure));
            if metric.kind == MetricKind::Counter {
                let rate = self.rate(before, node, |told| told.get(metric.name, label));
                put(&mut rates, metric.name, label, json!(rate));
            }
        }
        json!({"node": node, "figures": figures, "per_second": rates})
    }

    /// How much a figure of a node has risen a second; nothing if it did not answer both times. A
    /// process that is another one than before begins at zero.
    pub fn rate(
        &self,
        before: &Sample,
        node: usize,
        of: impl Fn(&ToldFigures) -> Option<u64>,
    ) -> Option<u64> {
        let now = of(self.nodes.get(node)?.as_ref()?)?;
        let old = of(before.nodes.get(node)?.as_ref()?)?;
        let seconds = self.seconds(before);
        let risen = now.checked_sub(old).unwrap_or(now);
        Some((risen as f64 / seconds).round() as u64)
    }
}

/// Figures with a label are in a map of their own.
fn put(map: &mut Map<String, Value>, name: &str, label: &str, value: Value) {
    match label {
        "" => drop(map.insert(name.into(), value)),
        label => map.entry(name).or_insert_with(|| json!({}))[label] = value,
    }
}
