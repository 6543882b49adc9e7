//! All engines find what one thread finds, on graphs of every kind.

mod plain;

use plain::{components, distances, ranks};
use rackmem::{Fabric, Rack};
use rackmem_graph::{
    Components, Cut, CutBy, Edge, Engine, Found, Graph, GraphError, Job, Limits, PageRank, Plan,
    Program, ShortestPaths, Step, Watch, Word, reference, rmat, run,
};
use std::time::Duration;

fn graph(vertices: u32, edges: &[(u32, u32)]) -> Graph {
    let edges = edges.iter().map(|(from, to)| Edge::new(*from, *to));
    Graph::numbered(vertices, edges.collect()).unwrap()
}

/// A vertex that every other one has an edge to and from: it is at all nodes.
fn star(vertices: u32) -> Graph {
    let edges: Vec<_> = (1..vertices).flat_map(|it| [(0, it), (it, 0)]).collect();
    graph(vertices, &edges)
}

fn ring(vertices: u32) -> Graph {
    let edges: Vec<_> = (0..vertices).map(|it| (it, (it + 1) % vertices)).collect();
    graph(vertices, &edges)
}

fn graphs() -> Vec<(&'static str, Graph)> {
    let weighted = |(source, target, weight)| Edge {
        source,
        target,
        weight,
    };
    let detour = [
        (0, 1, 10),
        (0, 2, 1),
        (2, 3, 1),
        (3, 1, 1),
        (1, 4, u32::MAX),
    ];
    vec![
        ("empty", graph(0, &[])),
        ("one vertex", graph(1, &[])),
        ("a self loop", graph(1, &[(0, 0)])),
        ("isolated vertices", graph(9, &[(2, 7), (7, 2), (8, 8)])),
        (
            "duplicates",
            graph(4, &[(0, 1), (0, 1), (1, 2), (1, 2), (2, 0), (3, 0)]),
        ),
        (
            "a detour",
            Graph::numbered(5, detour.map(weighted).to_vec()).unwrap(),
        ),
        ("a star", star(300)),
        ("a ring", ring(40)),
        ("R-MAT", rmat(9, 7).unwrap()),
    ]
}

const SYNCHRONOUS: [Engine; 3] = [Engine::Messages, Engine::OnDemand, Engine::Coherent];
const PERIODIC: Engine = Engine::Periodic(Duration::from_millis(10));

fn small_rack(nodes: usize) -> Rack {
    let rack = Rack::builder(nodes).block_size(1024).cache(1 << 20);
    rack.memory(64 << 20).build().unwrap()
}

/// What an engine finds for a program.
fn found<P: Program>(graph: &Graph, cut: &Cut, engine: Engine, program: &P) -> Found<P::Value> {
    let rack = small_rack(cut.nodes());
    let job = Job::new("test", Plan { graph, cut }, engine);
    run(rack.nodes(), program, &job).unwrap()
}

fn words<V: Word>(values: &[V]) -> Vec<u64> {
    values.iter().map(|value| value.to_word()).collect()
}

/// Engines that read nothing old find the reference's bits, in as many steps, with the same change
/// in each.
fn same_bits<P: Program>(what: &str, graph: &Graph, program: &P, nodes: usize) {
    for by in [CutBy::Greedy, CutBy::Random] {
        let cut = Cut::new(graph, nodes, by).unwrap();
        let plan = Plan { graph, cut: &cut };
        let expected = reference(plan, program, Limits::default());
        assert!(expected.worked.is_done);
        for engine in SYNCHRONOUS {
            let found = found(graph, &cut, engine, program);
            let where_is = format!("{what}, {engine}, {nodes} nodes, {by:?}");
            assert_eq!(words(&found.values), words(&expected.values), "{where_is}");
            let changes = |steps: &[Step]| -> Vec<(u64, u64)> {
                let change = |step: &Step| (step.change.to_bits(), step.changed);
                steps.iter().map(change).collect()
            };
            let (own, other) = (&found.worked.steps, &expected.worked.steps);
            assert_eq!(changes(own), changes(other), "{where_is}");
        }
    }
}

#[test]
fn ranks_are_the_references_bit_by_bit() {
    for (what, graph) in graphs() {
        for nodes in [1, 2, 3, 8] {
            same_bits(what, &graph, &PageRank::of(&graph), nodes);
        }
    }
}

#[test]
fn distances_are_the_references_bit_by_bit() {
    for (what, graph) in graphs() {
        for nodes in [1, 3, 5] {
            same_bits(what, &graph, &ShortestPaths { from: 0 }, nodes);
        }
    }
}

#[test]
fn components_are_the_references_bit_by_bit() {
    for (what, graph) in graphs() {
        for nodes in [2, 4, 7] {
            same_bits(what, &graph.undirected(), &Components, nodes);
        }
    }
}

/// The reference itself, beside computations that know nothing of cuts.
#[test]
fn the_reference_is_right() {
    for (what, graph) in graphs() {
        let both_ways = graph.undirected();
        let cut = |graph: &Graph| Cut::new(graph, 3, CutBy::Greedy).unwrap();
        let (one, both) = (cut(&graph), cut(&both_ways));
        let plan = Plan {
            graph: &graph,
            cut: &one,
        };
        let limits = Limits::default();
        let found = reference(plan, &PageRank::of(&graph), limits).values;
        let close = |(a, b): (&f64, f64)| (a - b).abs() < 1e-9;
        assert!(found.iter().zip(ranks(&graph)).all(close), "{what}: ranks");
        let found = reference(plan, &ShortestPaths { from: 0 }, limits).values;
        assert_eq!(found, distances(&graph, 0), "{what}");
        let plan = Plan {
            graph: &both_ways,
            cut: &both,
        };
        let found = reference(plan, &Components, limits).values;
        assert_eq!(found, components(&graph), "{what}");
    }
}

#[test]
fn periodic_quiescence_finds_the_same_in_more_steps() {
    for (what, graph) in graphs() {
        for nodes in [1, 2, 4] {
            let cut = Cut::new(&graph, nodes, CutBy::Greedy).unwrap();
            let plan = Plan {
                graph: &graph,
                cut: &cut,
            };
            let program = PageRank::of(&graph);
            let expected = reference(plan, &program, Limits::default());
            let found = found(&graph, &cut, PERIODIC, &program);
            let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
            assert!(found.worked.is_done, "{what}");
            let mut pairs = found.values.iter().zip(&expected.values);
            assert!(pairs.all(close), "{what}, {nodes} nodes");
            // A quiet step proves nothing here: some follow.
            let steps = [&found, &expected].map(|it| it.worked.steps.len());
            assert!(steps[0] > steps[1], "{what}, {nodes} nodes: {steps:?}");
        }
    }
}

#[test]
fn periodic_quiescence_finds_exact_distances_and_components() {
    for (what, graph) in graphs() {
        let cut = Cut::new(&graph, 3, CutBy::Random).unwrap();
        let program = ShortestPaths { from: 0 };
        let values = found(&graph, &cut, PERIODIC, &program).values;
        assert_eq!(values, distances(&graph, 0), "{what}");
        let both_ways = graph.undirected();
        let cut = Cut::new(&both_ways, 4, CutBy::Random).unwrap();
        let values = found(&both_ways, &cut, PERIODIC, &Components).values;
        assert_eq!(values, components(&graph), "{what}");
    }
}

#[test]
fn a_cache_that_has_no_room_for_all_vertices_changes_nothing() {
    let graph = rmat(13, 2).unwrap();
    let cut = Cut::new(&graph, 2, CutBy::Random).unwrap();
    let plan = Plan {
        graph: &graph,
        cut: &cut,
    };
    let program = PageRank::of(&graph);
    let limits = Limits { steps: 5 };
    let expected = words(&reference(plan, &program, limits).values);
    for engine in SYNCHRONOUS {
        // 64 KiB of data, half of it at each node, and as much for sums.
        let rack = Rack::builder(2).block_size(256).cache(8 << 10);
        let rack = rack.memory(64 << 20).build().unwrap();
        let job = Job {
            limits,
            ..Job::new("test", plan, engine)
        };
        let found = run(rack.nodes(), &program, &job).unwrap();
        assert!(!found.worked.is_done);
        assert_eq!(words(&found.values), expected, "{engine}");
    }
}

#[test]
fn a_rack_computes_again_and_again_under_one_name() {
    let rack = small_rack(3);
    let graph = ring(10);
    let cut = Cut::new(&graph, 3, CutBy::Greedy).unwrap();
    let plan = Plan {
        graph: &graph,
        cut: &cut,
    };
    for engine in Engine::ALL.into_iter().chain(Engine::ALL) {
        let job = Job::new("again", plan, engine);
        let found = run(rack.nodes(), &ShortestPaths { from: 4 }, &job).unwrap();
        assert_eq!(found.values, distances(&graph, 4), "{engine}");
    }
    // A region of bounded memory has a lock for its writers, which stays for the next of its name.
    let left = rack.node(0).regions().unwrap();
    let left: Vec<_> = left.iter().map(|region| region.spec.name()).collect();
    assert_eq!(
        left,
        ["again/0/writer", "again/1/writer", "again/2/writer"].as_slice()
    );
}

#[test]
fn packets_over_sockets_and_shared_memory_change_nothing() {
    let graph = rmat(8, 4).unwrap();
    let cut = Cut::new(&graph, 3, CutBy::Greedy).unwrap();
    let plan = Plan {
        graph: &graph,
        cut: &cut,
    };
    let program = PageRank::of(&graph);
    let expected = words(&reference(plan, &program, Limits::default()).values);
    for fabric in [Fabric::Udp, Fabric::Shm] {
        for engine in SYNCHRONOUS {
            let rack = Rack::builder(3).fabric(fabric);
            let rack = rack.patience(Duration::from_secs(60)).build().unwrap();
            let job = Job::new("test", plan, engine);
            let found = run(rack.nodes(), &program, &job).unwrap();
            assert_eq!(words(&found.values), expected, "{engine}");
        }
    }
}

/// Wants the end after a step.
struct Impatient(std::sync::atomic::AtomicBool);

impl Watch for Impatient {
    fn step(&self, _: &Step) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }

    fn stop(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[test]
fn a_computation_is_stopped_by_who_watches() {
    let rack = small_rack(3);
    let graph = ring(100);
    let cut = Cut::new(&graph, 3, CutBy::Greedy).unwrap();
    let plan = Plan {
        graph: &graph,
        cut: &cut,
    };
    let watch = &Impatient(false.into());
    let job = Job {
        watch,
        ..Job::new("test", plan, Engine::Coherent)
    };
    let stopped = run(rack.nodes(), &ShortestPaths { from: 0 }, &job);
    assert!(matches!(stopped, Err(GraphError::Stopped)), "{stopped:?}");
}

#[test]
fn another_cut_is_refused() {
    let graph = ring(100);
    let cut = Cut::new(&graph, 2, CutBy::Greedy).unwrap();
    let plan = Plan {
        graph: &graph,
        cut: &cut,
    };
    let job = Job::new("test", plan, Engine::Coherent);
    let refused = run(small_rack(3).nodes(), &ShortestPaths { from: 0 }, &job);
    let is = |error| matches!(error, GraphError::OtherNodes { cut: 2, rack: 3 });
    assert!(refused.is_err_and(is));
}

#[test]
fn nodes_with_different_graphs_do_not_compute_together() {
    let rack = small_rack(2);
    std::thread::scope(|scope| {
        for (node, vertices) in rack.nodes().iter().zip([10, 11]) {
            scope.spawn(move || {
                let graph = ring(vertices);
                let cut = Cut::new(&graph, 2, CutBy::Greedy).unwrap();
                let plan = Plan {
                    graph: &graph,
                    cut: &cut,
                };
                let job = Job::new("test", plan, Engine::Messages);
                let refused = rackmem_graph::work(node, &ShortestPaths { from: 0 }, &job);
                let is = |error| matches!(error, GraphError::OtherPlan { .. });
                assert!(refused.is_err_and(is));
            });
        }
    });
}
