//! `rackmem graph`: PageRank, shortest paths and components on the nodes of a rack.

pub mod input;
mod outside;
mod picture;
mod play;
mod processes;
mod program;
mod row;
mod show;

use crate::ended::Ended;
use crate::failure::Result;
use crate::rack_args::{RackArgs, node};
use crate::stop::Stop;
use clap::{Args, Subcommand, ValueEnum};
use input::InputArgs;
use processes::Member;
use rackmem::Time;
use rackmem_graph::{Components, CutBy, Engine, Limits, PageRank, ShortestPaths};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
The edges of a graph are divided among the nodes; a vertex with edges at several nodes has a master at one of
them. Engines differ in how its data and sums travel: in messages, in bounded memory (copies are old for a
bounded time, or dropped at each barrier), in coherent memory. Input: the dependencies between this machine's
Debian packages, a random R-MAT graph, or a file of lines SOURCE TARGET [WEIGHT].

Examples:
  rackmem graph pagerank --compare                          all engines on the packages, one table
  rackmem graph pagerank --engine bi-on-demand --nodes 4 --packages
  rackmem graph pagerank --rmat 16 --picture change.svg     how fast it converges
  rackmem graph sssp --from bash --engine messages          how far packages are from bash
  rackmem graph sssp --from 17 --edges roads.txt --fabric udp
  rackmem graph pagerank --compare --processes --nodes 2    a process for each node
  rackmem graph pagerank --compare --vs networkx            beside networkx
  rackmem graph components --rmat 14 --cut random           how many there are, and the largest
  rackmem --json graph components --edges roads.txt         one object for scripts";

/// Options of `rackmem graph`.
#[derive(Debug, Args)]
pub struct GraphArgs {
    #[command(subcommand)]
    program: ProgramArgs,
}

#[derive(Debug, Subcommand)]
enum ProgramArgs {
    /// Rank vertices by how often a random walk along edges is there
    Pagerank(RankArgs),
    /// Find how far vertices are from one, along edges by their weights
    Sssp(PathArgs),
    /// Find which vertices hang together, whichever way edges lead
    Components(ComponentArgs),
}

#[derive(Debug, Args)]
struct RankArgs {
    /// Follow an edge with this chance, rather than jump anywhere
    #[arg(long, value_name = "SHARE", default_value_t = 0.85, value_parser = share)]
    damping: f64,
    /// End when all ranks together change by less than SHARE in a step
    #[arg(long, value_name = "SHARE", default_value_t = 1e-10, value_parser = share)]
    tolerance: f64,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct PathArgs {
    /// Begin at the vertex NAME, such as a package or a number
    #[arg(long, value_name = "NAME")]
    from: String,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct ComponentArgs {
    #[command(flatten)]
    common: CommonArgs,
}

/// How data and sums get from node to node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EngineArg {
    /// Batches that are stored in memory of the node that reads them
    Messages,
    /// Bounded memory: copies are old by --bound at most, also at barriers
    BiPeriodic,
    /// Bounded memory: copies of what was modified are dropped at barriers
    BiOnDemand,
    /// Coherent memory
    Coherent,
}

/// How edges are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CutArg {
    /// By a hash of both ends
    Random,
    /// Where their ends are already, and evenly
    Greedy,
}

impl From<CutArg> for CutBy {
    fn from(cut: CutArg) -> CutBy {
        match cut {
            CutArg::Random => CutBy::Random,
            CutArg::Greedy => CutBy::Greedy,
        }
    }
}

#[derive(Debug, Args)]
struct CommonArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Choose how data and sums travel between nodes
    #[arg(long, value_enum, default_value = "bi-on-demand")]
    engine: EngineArg,
    /// Run all engines on the same graph and cut, and print one table
    #[arg(long, conflicts_with = "engine")]
    compare: bool,
    /// Let bi-periodic read copies that are old by TIME at most, 5ms or more
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    bound: Time,
    /// Choose how edges are divided among nodes
    #[arg(long, value_enum, default_value = "greedy")]
    cut: CutArg,
    /// End after N steps in any case
    #[arg(long, value_name = "N", default_value_t = Limits::default().steps)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,
    /// Show N vertices
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Leave out the computation by one thread that results are compared with
    #[arg(long)]
    no_check: bool,
    /// Draw how the change of each step falls, as SVG, to FILE
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Compute with another program on the same graph, too
    #[arg(long, value_enum)]
    vs: Option<VsArg>,
    /// Run each node in a process of its own, over UDP or --fabric shm
    #[arg(long)]
    processes: bool,
    #[command(flatten)]
    rack: RackArgs,
    #[command(flatten)]
    member: MemberArgs,
}

/// This process as a node of a rack that another one has started.
#[derive(Debug, Args)]
struct MemberArgs {
    /// Run as one node of the rack of processes that this file describes
    #[arg(long, hide = true, value_name = "FILE", requires_all = ["as_node", "as_engine"])]
    member: Option<PathBuf>,
    /// Run as this node
    #[arg(long, hide = true, value_name = "N", requires = "member", value_parser = node)]
    as_node: Option<usize>,
    /// Compute with this engine
    #[arg(long, hide = true, value_enum, requires = "member")]
    as_engine: Option<EngineArg>,
}

/// What a rack is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VsArg {
    /// networkx, in a process of python3
    Networkx,
}

impl CommonArgs {
    fn engine(&self, engine: EngineArg) -> Engine {
        match engine {
            EngineArg::Messages => Engine::Messages,
            EngineArg::BiPeriodic => Engine::Periodic(self.bound.0),
            EngineArg::BiOnDemand => Engine::OnDemand,
            EngineArg::Coherent => Engine::Coherent,
        }
    }

    fn engines(&self) -> Vec<Engine> {
        let own = [self.engine];
        let engines: &[EngineArg] = match self.compare {
            true => EngineArg::value_variants(),
            false => &own,
        };
        engines.iter().map(|it| self.engine(*it)).collect()
    }

    /// The node that this process is, if another one has started it as one.
    fn member(&self) -> Option<Member<'_>> {
        let of = &self.member;
        Some(Member {
            file: of.member.as_deref()?,
            node: of.as_node?,
            engine: self.engine(of.as_engine?),
        })
    }
}

/// A number from 0 to 1; for clap.
fn share(text: &str) -> std::result::Result<f64, String> {
    let share = text.parse().ok().filter(|it| (0.0..=1.0).contains(it));
    share.ok_or_else(|| "give a number from 0 to 1".into())
}

/// Reads the graph, computes, and tells.
pub fn run(args: &GraphArgs, json: bool) -> Result<Ended> {
    let stop = Stop::on_signals()?;
    match &args.program {
        ProgramArgs::Pagerank(args) => {
            let task = play::Task::new(&args.common, &stop, json)?;
            let program = PageRank {
                damping: args.damping,
                tolerance: args.tolerance,
                ..PageRank::of(&task.graph)
            };
            task.run(&program)
        }
        ProgramArgs::Sssp(args) => {
            let task = play::Task::new(&args.common, &stop, json)?;
            let from = input::find(&task.graph, &args.from)?;
            task.run(&ShortestPaths { from })
        }
        ProgramArgs::Components(args) => {
            let task = play::Task::new(&args.common, &stop, json)?;
            task.both_ways().run(&Components)
        }
    }
}
