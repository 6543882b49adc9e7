//! Options of `rackmem bench micro --sim`.

use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser};
use rackmem_bench::run::sim::{self, Figure};

/// Options of real racks, which a simulation has not.
const OF_RACKS: [&str; 9] = [
    "fabric", "modes", "threads", "sharing", "reads", "locality", "duration", "history", "runs",
];

/// The same benchmark in the cost model.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// Simulate the Concordia paper's cluster: 8 nodes, 100 Gb/s, a programmable switch
    #[arg(long, conflicts_with_all = OF_RACKS)]
    sim: bool,
    /// With --sim: reproduce only these figures of the paper
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "sim", value_parser = figure())]
    figure: Vec<Figure>,
    /// With --sim: seed the runs
    #[arg(long, value_name = "N", requires = "sim", default_value_t = 1)]
    seed: u64,
    /// With --sim: divide the paper's sizes by N [32]
    #[arg(long, value_name = "N", requires = "sim")]
    #[arg(value_parser = clap::value_parser!(u32).range(8..=1024))]
    scale: Option<u32>,
}

fn figure() -> impl TypedValueParser<Value = Figure> {
    PossibleValuesParser::new(["2", "9", "10", "11", "12"]).try_map(|text: String| {
        let number = text.parse().ok();
        number.and_then(Figure::of_paper).ok_or("no such figure")
    })
}

impl SimArgs {
    /// Whether to simulate, and what: nodes that are told make a figure of their own.
    pub fn options(&self, nodes: &[u16]) -> Option<sim::Options> {
        let mut options = sim::Options {
            figures: self.figure.clone(),
            seed: self.seed,
            ..sim::Options::default()
        };
        options.scale = self.scale.unwrap_or(options.scale);
        if !nodes.is_empty() {
            options.nodes = nodes.to_vec();
            options.figures.push(Figure::Nodes);
        }
        self.sim.then_some(options)
    }
}
