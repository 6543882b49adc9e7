//! Why a computation has no result.

use std::fmt;

/// Why a computation has no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum GraphError {
    /// The rack failed.
    Rack(rackmem::Error),
    /// Whoever watches the computation wanted its end.
    Stopped,
    /// Another node did not come to the barrier in time.
    Late {
        /// Seconds that were waited.
        seconds: u64,
    },
    /// A node has another graph, has cut it otherwise, or has another engine.
    OtherPlan {
        /// Which one.
        node: usize,
    },
    /// The graph was cut for another number of nodes.
    OtherNodes {
        /// Of the cut.
        cut: usize,
        /// Of the rack.
        rack: usize,
    },
    /// A graph has more than this library numbers.
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        most: u64,
    },
    /// An edge leads from or to a vertex that is not there.
    NoSuchVertex {
        /// Its number.
        vertex: u32,
        /// How many there are.
        vertices: u32,
    },
}

/// The result of a computation and its parts.
pub type Result<T> = std::result::Result<T, GraphError>;

impl GraphError {
    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            GraphError::Rack(error) => error.next_step(),
            GraphError::Stopped => "run it again",
            GraphError::Late { .. } => "see what the other nodes report, then run it again",
            GraphError::OtherPlan { .. } => "give all nodes the same graph and the same options",
            GraphError::OtherNodes { .. } => "cut the graph for as many nodes as compute",
            GraphError::TooLarge { .. } => "take a smaller graph",
            GraphError::NoSuchVertex { .. } => "number vertices from 0, below their count",
        }
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::Rack(error) => write!(f, "{}", error.what()),
            GraphError::Stopped => f.write_str("the computation was stopped"),
            GraphError::Late { seconds } => {
                write!(f, "a node did not come to the barrier for {seconds} s")
            }
            GraphError::OtherPlan { node } => {
                write!(
                    f,
                    "node {node} has another graph, another cut of it or another engine"
                )
            }
            GraphError::OtherNodes { cut, rack } => {
                write!(f, "the graph is cut for {cut} nodes, and {rack} compute")
            }
            GraphError::TooLarge { what, most } => {
                write!(f, "a graph has at most {most} {what}")
            }
            GraphError::NoSuchVertex { vertex, vertices } => {
                write!(f, "an edge names vertex {vertex}, and there are {vertices}")
            }
        }
    }
}

impl std::error::Error for GraphError {}

impl From<rackmem::Error> for GraphError {
    fn from(error: rackmem::Error) -> Self {
        GraphError::Rack(error)
    }
}

rackmem::from_families!(GraphError);
