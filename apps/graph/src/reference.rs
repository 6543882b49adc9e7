//! The same computation by one thread without a rack: what all engines are compared with.

use crate::part::Plan;
use crate::program::{Program, Word};
use crate::run::Found;
use crate::work::{Limits, Step, Worked};
use std::time::Instant;

/// Computes step by step. Sums are made in the order in which engines make them: over the edges of
/// each node, then over nodes.
pub fn reference<P: Program>(plan: Plan<'_>, program: &P, limits: Limits) -> Found<P::Value> {
    let (graph, cut) = (plan.graph, plan.cut);
    let began = Instant::now();
    let by_master = |node: usize| (0..graph.vertices()).filter(move |it| cut.master(*it) == node);
    let leaks = |values: &[P::Value]| -> f64 {
        let leak = |vertex: u32| {
            let at = vertex as usize;
            program.leak(values[at], graph.out_degrees()[at])
        };
        let of_node = |node| by_master(node).map(leak).fold(0.0, |a, b| a + b);
        (0..cut.nodes()).map(of_node).fold(0.0, |a, b| a + b)
    };
    let mut values: Vec<P::Value> = (0..graph.vertices()).map(|it| program.start(it)).collect();
    let (mut steps, mut is_done) = (Vec::new(), false);
    while !is_done && (steps.len() as u32) < limits.steps {
        let sums = sums(plan, program, &values);
        let everywhere = leaks(&values);
        let apply = |(own, sum): (&P::Value, &P::Value)| program.apply(*own, *sum, everywhere);
        let new: Vec<P::Value> = values.iter().zip(&sums).map(apply).collect();
        let of_vertex = |vertex: u32| {
            let at = vertex as usize;
            program.change(values[at], new[at])
        };
        let of_node = |node| by_master(node).map(of_vertex).fold(0.0, |a, b| a + b);
        let change = (0..cut.nodes()).map(of_node).fold(0.0, |a, b| a + b);
        let pairs = values.iter().zip(&new);
        let changed = pairs.filter(|(old, new)| old.to_word() != new.to_word());
        steps.push(Step {
            number: steps.len() as u32 + 1,
            change,
            changed: changed.count() as u64,
            since: began.elapsed(),
        });
        is_done = change < program.tolerance();
        values = new;
    }
    let worked = Worked { steps, is_done };
    Found { values, worked }
}

fn sums<P: Program>(plan: Plan<'_>, program: &P, values: &[P::Value]) -> Vec<P::Value> {
    let (graph, cut) = (plan.graph, plan.cut);
    let mut totals = vec![program.nothing(); values.len()];
    for node in 0..cut.nodes() {
        let mut sums = vec![None; values.len()];
        for (edge, at) in graph.edges().iter().zip(cut.node_of()) {
            if usize::from(*at) != node {
                continue;
            }
            let (source, target) = (edge.source as usize, edge.target as usize);
            let given = program.give(values[source], graph.out_degrees()[source]);
            let arrives = program.along(given, edge.weight);
            let sum = sums[target].unwrap_or(program.nothing());
            sums[target] = Some(program.sum(sum, arrives));
        }
        for (total, sum) in totals.iter_mut().zip(sums) {
            if let Some(sum) = sum {
                *total = program.sum(*total, sum);
            }
        }
    }
    totals
}
