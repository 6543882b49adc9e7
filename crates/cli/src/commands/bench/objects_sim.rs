//! Options of `rackmem bench objects --sim`.

use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser};
use rackmem_bench::run::sim::objects::{Figure, Options};

/// Options of real racks, which a simulation has not.
const OF_RACKS: [&str; 3] = ["size", "duration", "runs"];

/// The same question in the cost model.
#[derive(Debug, Args)]
pub struct SimArgs {
    /// Simulate the SABRes paper's two chips of 16 cores
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
    PossibleValuesParser::new(Figure::NAMES)
        .try_map(|text: String| Figure::named(&text).ok_or("no such figure"))
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
