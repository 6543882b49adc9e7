//! A gather-apply-scatter engine on a vertex cut, in rackmem memory.
//!
//! The edges of a graph are divided among the nodes of a rack ([`Cut`]). A vertex is at every node
//! that has an edge of it: one of them is its master, which has its data, the others are replicas.
//! A [`Program`] says what travels along an edge, how such things are added, and what a vertex
//! makes of the sum. All nodes work in steps, and meet at a barrier after each phase:
//!
//! | phase | what a node does |
//! |---|---|
//! | gather | reads the data of its replicas, finds the targets of what has changed (scatter), sums over their edges here, puts the sums of its replicas where their masters find them |
//! | apply | reads what other nodes have summed for its masters, adds that in the order of nodes, computes the new data and puts it where replicas find it |
//!
//! How data and sums get from node to node is the [`Engine`]'s: by messages, in memory that is old
//! by a bounded time, or in coherent memory. All else is one source, and sums are made in one
//! order, so engines that read nothing old find the same bits ([`reference()`]).
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rackmem::Rack;
//! use rackmem_graph::{Cut, CutBy, Edge, Engine, Graph, Job, PageRank, Plan, run};
//!
//! let edges = [(0, 1), (0, 2), (1, 2), (2, 0)].map(|(source, target)| Edge::new(source, target));
//! let graph = Graph::numbered(3, edges.to_vec())?;
//! let cut = Cut::new(&graph, 2, CutBy::Greedy)?;
//! let plan = Plan { graph: &graph, cut: &cut };
//! let program = PageRank::of(&graph);
//! let job = Job::new("ranks", plan, Engine::OnDemand);
//! let found = run(Rack::local(2)?.nodes(), &program, &job)?;
//! assert!(found.values[2] > found.values[1]);
//! # Ok(())
//! # }
//! ```

mod barrier;
mod cut;
mod edges;
mod engine;
mod error;
mod exchange;
mod graph;
mod local;
mod part;
mod program;
mod reference;
mod rmat;
mod run;
mod settled;
pub mod sockets;
mod work;

pub use cut::{Cut, CutBy};
pub use edges::{InputError, InputFault, MAX_LINE_BYTES, read_edges};
pub use engine::{DEFAULT_BOUND, Engine};
pub use error::{GraphError, Result};
pub use graph::{Edge, Graph, MAX_EDGES, MAX_VERTICES};
pub use part::Plan;
pub use program::{Components, PageRank, Program, ShortestPaths, UNREACHED, Word};
pub use reference::reference;
pub use rmat::{EDGES_A_VERTEX, MAX_SCALE, rmat};
pub use run::{Found, run};
pub use work::{Job, Limits, Step, Unwatched, Watch, Worked, results, work};
