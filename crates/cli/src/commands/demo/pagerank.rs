//! PageRank in shared memory: every node's thread computes a part of the ranks from all of them.
//!
//! The graph's columns and two vectors of contributions lie in the rack's memory;
//! each thread's part of a vector is homed at its node. In a round a thread reads one vector (bulk
//! reads, of which its cache keeps what has not changed), writes its part of the other, and meets
//! the others at a barrier, which is a word in shared memory too. Everybody finds everything
//! through a named region, as programs without common code would.

use super::barrier::Barrier;
use super::halt::Played;
use super::shared_vec as vec;
use crate::stop::Stop;
use rackmem::Node;
use rackmem_bench::packages::Graph;
use rackmem_bench::pagerank::Settings;
use std::ops::Range;

/// The region that names the parts of a computation, and its type.
const REGION: &str = "demo/pagerank";
const REGION_TYPE: u64 = 0x7061_6765_7261_6e6b;
/// Words of the region: counts and addresses, then four addresses a thread.
const HEAD: usize = 6;
const PER_THREAD: usize = 4;

/// Where everything is: the content of the named region.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    nodes: usize,
    edges: usize,
    /// Where each node's sources begin: a column of the adjacency.
    offsets: u64,
    sources: u64,
    degrees: u64,
    barrier: u64,
    threads: Vec<Part>,
}

/// What one thread writes and all read, twice: for even rounds and for odd ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    contributions: [u64; 2],
    /// What nodes without successors hold, and how much the ranks changed.
    sums: [u64; 2],
}

/// The nodes that one of `threads` threads computes.
pub fn share(nodes: usize, thread: usize, threads: usize) -> Range<usize> {
    nodes * thread / threads..nodes * (thread + 1) / threads
}

/// Puts the graph into shared memory and publishes where, for a computation by all of `rack`.
pub fn publish(rack: &[Node], graph: &Graph) -> Played<()> {
    let node = &rack[0];
    let columns = Columns::of(graph);
    let (count, edges) = (graph.nodes(), columns.sources.len());
    let threads = rack
        .iter()
        .enumerate()
        .map(|(thread, owner)| Part::alloc(owner, share(count, thread, rack.len()).len()))
        .collect::<Played<_>>()?;
    let plan = Plan {
        nodes: count,
        edges,
        offsets: vec::alloc::<u32>(node, columns.offsets.len())?,
        sources: vec::alloc::<u32>(node, edges)?,
        degrees: vec::alloc::<u32>(node, count)?,
        barrier: node.alloc_isolated(0u64)?.addr(),
        threads,
    };
    vec::write(node, plan.offsets, &columns.offsets)?;
    vec::write(node, plan.sources, &columns.sources)?;
    vec::write(node, plan.degrees, &columns.degrees)?;
    let words = plan.words();
    let (addr, _) = node.region(REGION, words.len() * 8, REGION_TYPE)?;
    vec::write(node, addr, &words)
}

/// Who points at each node, and how many each points at.
struct Columns {
    offsets: Vec<u32>,
    sources: Vec<u32>,
    degrees: Vec<u32>,
}

impl Columns {
    fn of(graph: &Graph) -> Columns {
        let nodes = graph.nodes();
        let mut offsets = vec![0; nodes + 1];
        for &target in (0..nodes).flat_map(|node| graph.successors(node)) {
            offsets[target as usize + 1] += 1;
        }
        (0..nodes).for_each(|node| offsets[node + 1] += offsets[node]);
        let mut next = offsets.clone();
        let mut sources = vec![0; graph.edges()];
        for (source, node) in (0u32..).zip(0..nodes) {
            for &target in graph.successors(node) {
                let place = &mut next[target as usize];
                sources[*place as usize] = source;
                *place += 1;
            }
        }
        let degree = |node| graph.successors(node).len() as u32;
        Columns {
            offsets,
            sources,
            degrees: (0..nodes).map(degree).collect(),
        }
    }
}

impl Part {
    fn alloc(owner: &Node, nodes: usize) -> Played<Part> {
        let vector = || vec::alloc::<f64>(owner, nodes);
        let sums = || vec::alloc::<f64>(owner, 2);
        Ok(Part {
            contributions: [vector()?, vector()?],
            sums: [sums()?, sums()?],
        })
    }
}

impl Plan {
    fn words(&self) -> Vec<u64> {
        let (nodes, edges) = (self.nodes as u64, self.edges as u64);
        let mut words = vec![
            nodes,
            edges,
            self.offsets,
            self.sources,
            self.degrees,
            self.barrier,
        ];
        for part in &self.threads {
            words.extend(part.contributions);
            words.extend(part.sums);
        }
        words
    }

    fn find(node: &Node) -> Played<Plan> {
        let (addr, len) = node.find_region(REGION, REGION_TYPE)?;
        let words: Vec<u64> = vec::read(node, addr, len / 8)?;
        let (head, rest) = words.split_at(HEAD.min(words.len()));
        let mut fields = [0; HEAD];
        fields[..head.len()].copy_from_slice(head);
        let [nodes, edges, offsets, sources, degrees, barrier] = fields;
        let part = |w: &[u64]| Part {
            contributions: [w[0], w[1]],
            sums: [w[2], w[3]],
        };
        Ok(Plan {
            nodes: nodes as usize,
            edges: edges as usize,
            offsets,
            sources,
            degrees,
            barrier,
            threads: rest.chunks_exact(PER_THREAD).map(part).collect(),
        })
    }
}

/// What one thread found.
pub struct Found {
    /// The ranks of its share.
    pub ranks: Vec<f64>,
    /// Rounds it took.
    pub rounds: u32,
}

/// Computes the share of one thread, together with those on all other nodes.
pub fn compute(node: &Node, thread: usize, settings: Settings, stop: &Stop) -> Played<Found> {
    let plan = Plan::find(node)?;
    let mut worker = Worker::new(node, &plan, thread)?;
    let mut barrier = Barrier::attach(node, plan.barrier, plan.threads.len(), stop)?;
    worker.publish(0, f64::INFINITY)?;
    barrier.wait()?;
    let mut rounds = 0;
    loop {
        let side = rounds as usize % 2;
        let [dangling, change] = worker.sums(side)?;
        // All threads see the same sums, so they all stop in the same round.
        if rounds >= settings.max_rounds || change < settings.tolerance {
            break;
        }
        let change = worker.round(side, dangling, settings.damping)?;
        worker.publish(1 - side, change)?;
        barrier.wait()?;
        rounds += 1;
    }
    Ok(Found {
        ranks: worker.ranks,
        rounds,
    })
}

struct Worker<'a> {
    node: &'a Node,
    plan: &'a Plan,
    own: Part,
    offsets: Vec<u32>,
    sources: Vec<u32>,
    degrees: Vec<u32>,
    ranks: Vec<f64>,
    all: Vec<f64>,
}

impl<'a> Worker<'a> {
    fn new(node: &'a Node, plan: &'a Plan, thread: usize) -> Played<Self> {
        let share = share(plan.nodes, thread, plan.threads.len());
        let at = |base: u64, index: usize| base + 4 * index as u64;
        let offsets: Vec<u32> = vec::read(node, at(plan.offsets, share.start), share.len() + 1)?;
        let first = offsets[0] as usize;
        let edges = offsets[share.len()] as usize - first;
        Ok(Worker {
            own: plan.threads[thread],
            sources: vec::read(node, at(plan.sources, first), edges)?,
            degrees: vec::read(node, at(plan.degrees, share.start), share.len())?,
            ranks: vec![1.0 / plan.nodes as f64; share.len()],
            all: Vec::with_capacity(plan.nodes),
            offsets,
            node,
            plan,
        })
    }

    /// The sums of all threads, added in the same order by each.
    fn sums(&self, side: usize) -> Played<[f64; 2]> {
        let mut sums = [0.0; 2];
        for part in &self.plan.threads {
            let own: Vec<f64> = vec::read(self.node, part.sums[side], 2)?;
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        Ok(sums)
    }

    /// Computes the next ranks of the share from everybody's contributions; how much they changed.
    fn round(&mut self, side: usize, dangling: f64, damping: f64) -> Played<f64> {
        let (nodes, threads) = (self.plan.nodes, self.plan.threads.len());
        self.all.clear();
        for (thread, part) in self.plan.threads.iter().enumerate() {
            let count = share(nodes, thread, threads).len();
            vec::read_into(self.node, part.contributions[side], count, &mut self.all)?;
        }
        let base = (1.0 - damping + damping * dangling) / nodes as f64;
        let first = self.offsets[0];
        let mut change = 0.0;
        for (rank, ends) in self.ranks.iter_mut().zip(self.offsets.windows(2)) {
            let sources = &self.sources[(ends[0] - first) as usize..(ends[1] - first) as usize];
            let sum: f64 = sources
                .iter()
                .map(|&source| self.all[source as usize])
                .sum();
            let next = base + damping * sum;
            change += (next - *rank).abs();
            *rank = next;
        }
        Ok(change)
    }

    /// Writes what the share contributes to the next round.
    fn publish(&self, side: usize, change: f64) -> Played<()> {
        let mut dangling = 0.0;
        let contribution = |(&rank, &degree): (&f64, &u32)| {
            if degree == 0 {
                dangling += rank;
                return 0.0;
            }
            rank / f64::from(degree)
        };
        let contributions: Vec<f64> = self
            .ranks
            .iter()
            .zip(&self.degrees)
            .map(contribution)
            .collect();
        vec::write(self.node, self.own.contributions[side], &contributions)?;
        vec::write(self.node, self.own.sums[side], &[dangling, change])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::Rack;
    use rackmem_bench::packages::Package;
    use rackmem_bench::pagerank;

    /// A ring of 500 packages in which every third also needs the first,
    /// and the last needs nothing.
    fn sample() -> Graph {
        let name = |number: usize| format!("p{number:03}");
        let package = |number: usize| {
            let next = (number < 499).then(|| vec![name(number + 1)]);
            let first = (number % 3 == 2).then(|| vec![name(0)]);
            Package {
                name: name(number),
                needs: next.into_iter().chain(first).collect(),
                ..Package::default()
            }
        };
        Graph::build((0..500).map(package).collect())
    }

    #[test]
    fn shares_cover_everything_once() {
        let all: Vec<usize> = (0..3).flat_map(|thread| share(10, thread, 3)).collect();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn the_ranks_are_those_of_the_plain_computation() {
        let graph = sample();
        let rack = Rack::builder(3).block_size(256).build().unwrap();
        assert!(publish(rack.nodes(), &graph).is_ok());
        let (settings, stop) = (Settings::default(), Stop::default());
        let found: Vec<Found> = std::thread::scope(|scope| {
            let compute = |thread| compute(&rack.nodes()[thread], thread, settings, &stop);
            let threads: Vec<_> = (0..3).map(|t| scope.spawn(move || compute(t))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, Played<Found>>| {
                thread.join().ok().and_then(Result::ok).expect("a share")
            };
            threads.into_iter().map(join).collect()
        });
        let plain = pagerank::pagerank(graph.adjacency(), settings);
        assert!(found.iter().all(|share| share.rounds == plain.rounds));
        let ranks = found.iter().flat_map(|share| &share.ranks);
        assert_eq!(ranks.clone().count(), plain.ranks.len());
        assert!(ranks.zip(&plain.ranks).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}
