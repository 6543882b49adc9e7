//! Options of `rackmem bench lock --sim`.

use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser};
use rackmem_bench::run::sim::locks::{Figure, Options};

/// Options of real racks, which a simulation has not.
const OF_RACKS: [&str; 10] = [
    "fabric", "mode", "kinds", "parts", "nodes", "reads", "duration", "think", "rounds", "runs",
];

/// The same question in the cost model.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// Simulate the Soul paper's rack: 8 blades, a switch, a memory blade; 100 Gb/s, and CXL
    #[arg(long, conflicts_with_all = OF_RACKS)]
    sim: bool,
    /// With --sim: reproduce only these figures of the paper
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "sim", value_parser = figure())]
    figure: Vec<Figure>,
    /// With --sim: seed the runs
    #[arg(long, value_name = "N", requires = "sim", default_value_t = 1)]
    seed: u64,
}

fn figure() -> impl TypedValueParser<Value = Figure> {
    PossibleValuesParser::new(["7", "8", "9", "10", "11"]).try_map(|text: String| {
        let number = text.parse().ok();
        number.and_then(Figure::of_paper).ok_or("no such figure")
    })
}

impl SimArgs {
    /// Whether to simulate, and what.
    pub fn options(&self) -> Option<Options> {
        self.sim.then(|| Options {
            figures: self.figure.clone(),
            seed: self.seed,
        })
    }
}
