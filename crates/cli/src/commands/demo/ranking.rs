//! The most needed packages: PageRank by all nodes, compared with a plain one,
//! and kept in the store.

use super::meter::Meter;
use super::scene::Scene;
use super::summary::{Phase, Ranked, Ranking, Story};
use crate::commands::graph::input;
use crate::halt::{Halt, Played, wrong};
use crate::stop::Stop;
use rackmem_bench::packages::Graph;
use rackmem_bench::pagerank::{Settings, pagerank as plain};
use rackmem_graph::{Cut, CutBy, Engine, GraphError, Job, Limits, PageRank, Plan, Watch};
use std::ops::Range;
use std::time::Instant;

/// How far a rank may be from the plain one: sums are made in another order.
const TOLERANCE: f64 = 1e-12;
/// Packages shown.
const TOP: usize = 10;

/// Looks for Ctrl-C.
struct Stoppable<'a>(&'a Stop);

impl Watch for Stoppable<'_> {
    fn stop(&self) -> bool {
        self.0.requested()
    }
}

fn halt(error: GraphError) -> Halt {
    match error {
        GraphError::Stopped => Halt::Stopped,
        error => Halt::Failed(input::failure(error)),
    }
}

/// The ranks by all nodes, in coherent memory, and how many steps they took.
fn compute(
    scene: &Scene<'_>,
    graph: &Graph,
    settings: Settings,
) -> Result<(Vec<f64>, u32), GraphError> {
    let graph = input::from_packages(graph)?;
    let cut = Cut::new(&graph, scene.nodes(), CutBy::Greedy)?;
    let program = PageRank {
        damping: settings.damping,
        tolerance: settings.tolerance,
        ..PageRank::of(&graph)
    };
    let plan = Plan {
        graph: &graph,
        cut: &cut,
    };
    let job = Job {
        limits: Limits {
            steps: settings.max_rounds,
        },
        watch: &Stoppable(scene.stop),
        ..Job::new("demo", plan, Engine::Coherent)
    };
    let found = rackmem_graph::run(scene.rack.nodes(), &program, &job)?;
    Ok((found.values, found.worked.steps.len() as u32))
}

/// The packages of which a thread stores the ranks.
fn share(packages: usize, thread: usize, threads: usize) -> Range<usize> {
    packages * thread / threads..packages * (thread + 1) / threads
}

pub fn run(scene: &Scene<'_>, graph: &Graph, story: &mut Story) -> Played<()> {
    let settings = Settings::default();
    let bar = scene.show.bar("PageRank on all nodes", 1);
    let mut found = (Vec::new(), 0);
    let mut phase = scene.measure("pagerank", || {
        found = compute(scene, graph, settings).map_err(halt)?;
        Ok(Vec::new())
    })?;
    bar.finish_and_clear();
    let (ranks, rounds) = found;
    // An operation here is one edge followed.
    phase.operations = u64::from(rounds) * graph.edges() as u64;

    let (error, plain_seconds) = compare(graph, settings, &ranks)?;
    scene.show.done(&format!(
        "{} agreed on PageRank after {rounds} rounds in {:.2} s, within {error:.0e} of a plain one",
        if scene.nodes() == 1 {
            "one node".into()
        } else {
            format!("{} nodes", scene.nodes())
        },
        phase.seconds
    ));
    let stored = keep(scene, graph, &ranks)?;
    story.phases.extend([phase, stored]);
    story.ranking = Some(Ranking {
        top: top(scene, graph, &ranks)?,
        rounds,
        error,
        plain_seconds,
    });
    Ok(())
}

/// The largest difference from the plain computation, which is refused when it is one,
/// and what that took.
fn compare(graph: &Graph, settings: Settings, ranks: &[f64]) -> Played<(f64, f64)> {
    let start = Instant::now();
    let reference = plain(graph.adjacency(), settings);
    let seconds = start.elapsed().as_secs_f64();
    let error = largest_difference(ranks, &reference.ranks);
    if ranks.len() != reference.ranks.len() || error > TOLERANCE {
        return Err(wrong(format!(
            "a rank is {error:e} off the plain computation"
        )));
    }
    Ok((error, seconds))
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f64::max)
}

/// Stores `rank:NAME`: every node what it computed.
fn keep(scene: &Scene<'_>, graph: &Graph, ranks: &[f64]) -> Played<Phase> {
    let bar = scene
        .show
        .bar("store ranks on all nodes", ranks.len() as u64);
    let threads = scene.nodes();
    let phase = scene.measure("store ranks", || {
        scene.on_nodes(0..threads, |node, store| {
            let (mut meter, mut pace) = (Meter::default(), scene.pace(&bar));
            for package in share(ranks.len(), node, threads) {
                let key = rank_key(&graph.names()[package]);
                let value = format!("{:.12}", ranks[package]);
                meter.time(|| store.set(key.as_bytes(), value.as_bytes()))?;
                pace.step()?;
            }
            Ok(meter)
        })
    });
    bar.finish_and_clear();
    phase
}

fn rank_key(name: &str) -> String {
    format!("rank:{name}")
}

/// The packages of the highest rank, as the last node reads them from the store.
fn top(scene: &Scene<'_>, graph: &Graph, ranks: &[f64]) -> Played<Vec<Ranked>> {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by(|&a, &b| ranks[b].total_cmp(&ranks[a]));
    let store = &scene.stores[scene.nodes() - 1];
    let mut value = Vec::new();
    let read = |&package: &usize| {
        let name = graph.names()[package].clone();
        store.get(rank_key(&name).as_bytes(), &mut value)?;
        let rank = String::from_utf8_lossy(&value).parse().unwrap_or(f64::NAN);
        if (rank - ranks[package]).abs() > 1e-11 || rank.is_nan() {
            return Err(wrong(format!(
                "the store holds {rank} as the rank of {name}"
            )));
        }
        Ok(Ranked { name, rank })
    };
    order.iter().take(TOP).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_everything_once() {
        let all: Vec<usize> = (0..3).flat_map(|thread| share(10, thread, 3)).collect();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
}
