//! `bench micro --sim`: the paper's micro benchmarks (§7.2) in the cost model of `rackmem-sim`,
//! beside what the paper reports. `docs/simulation.md` says what is modelled, what was calibrated,
//! and what does not agree.

mod claims;
mod figures;
pub mod locks;
pub mod objects;
mod points;
pub mod store;
mod tables;
pub mod transactions;

use super::{Progress, Result};
use crate::judged::Judged;
use crate::report::{Report, ReportError};
use crate::stop;
use crate::table::Table;
use claims::claims;
use points::Points;
use rackmem_sim::model::{AccessFigures, Accesses, Agents, Network, Platform, System};
use serde::Serialize;

pub use figures::Figure;
pub use points::Speed;

type Workload = rackmem_sim::model::Workload<Accesses>;
type Outcome = rackmem_sim::model::Outcome<AccessFigures>;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which figures; with none, all.
    pub figures: Vec<Figure>,
    /// Nodes of the racks of [`Figure::Nodes`].
    pub nodes: Vec<u16>,
    /// Decides every run.
    pub seed: u64,
    /// Every size is the paper's divided by this.
    pub scale: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            figures: Vec::new(),
            nodes: vec![2, 4, 8, 16, 32],
            seed: 1,
            scale: Accesses::default().scale,
        }
    }
}

/// An assumption: its name, its value with its unit, and where it is from.
#[derive(Clone, Debug, Serialize)]
pub struct Parameter {
    /// What.
    pub name: String,
    /// How much.
    pub value: String,
    /// Says who.
    pub from: &'static str,
}

/// Everything that a simulation tells.
#[derive(Debug, Serialize)]
pub struct SimReport {
    /// Figures of every point, as any bench reports them.
    #[serde(flatten)]
    pub report: Report,
    /// The seed of every run.
    pub seed: u64,
    /// What was assumed.
    pub parameters: Vec<Parameter>,
    /// What the paper says, and what came out here.
    pub claims: Vec<Judged>,
    /// What the simulator itself did.
    pub speed: Speed,
    #[serde(skip)]
    tables: Vec<Table>,
}

impl SimReport {
    /// The report for people: a table a figure, the claims, the parameters.
    pub fn tables(&self) -> impl Iterator<Item = Table> {
        let figures = self.tables.iter().cloned();
        figures.chain([
            tables::claims(&self.claims),
            tables::parameters(&self.parameters),
        ])
    }
}

/// Runs it.
pub fn run(options: &Options, progress: Progress<'_>) -> Result<SimReport> {
    let figures = match options.figures.as_slice() {
        [] => Figure::ALL.to_vec(),
        some => some.to_vec(),
    };
    let base = Workload {
        program: Accesses {
            scale: options.scale.max(1),
            ..Accesses::default()
        },
        ..Workload::default()
    };
    let wanted = |figure: &Figure| figure.points(base, &options.nodes);
    let all = figures.iter().flat_map(wanted);
    let points = Points::simulate(all, options.seed, progress);
    Ok(SimReport {
        report: report(&points)?,
        seed: options.seed,
        parameters: parameters(base),
        claims: claims(&points, &figures, base),
        speed: points.speed(),
        tables: (figures.iter())
            .map(|figure| tables::figure(*figure, &wanted(figure), &points))
            .collect(),
    })
}

/// The name of a point's cases.
fn name(system: System, workload: &Workload) -> String {
    let Workload {
        nodes,
        threads,
        reads,
        program,
    } = workload;
    let Accesses {
        sharing,
        locality,
        halvings,
        cache_halvings,
        evicts_ahead,
        ..
    } = program;
    let system = system.name();
    let rack = format!("sim/{system}/nodes-{nodes}/threads-{threads}");
    let place = format!("sharing-{sharing}/reads-{reads}/locality-{locality}");
    let mut name = format!("{rack}/{place}");
    if *halvings > 0 {
        name += &format!("/switch-1-of-{}", 1u64 << halvings);
    }
    if *cache_halvings > 0 {
        name += &format!("/cache-1-of-{}", 1u64 << cache_halvings);
    }
    if *evicts_ahead {
        name += "/ahead";
    }
    name
}

/// What a point is compared with: home-only, or the same where blocks leave when their room is
/// needed.
fn baseline(system: System, workload: &Workload) -> (System, Workload) {
    let mut without = *workload;
    without.program.evicts_ahead = false;
    match workload.program.evicts_ahead {
        true => (system, without),
        false => (System::HomeOnly, without),
    }
}

fn report(points: &Points) -> std::result::Result<Report, ReportError> {
    let mut report = Report::new("micro-sim");
    // What was simulated is whole.
    report.take_late();
    report.partial = stop::requested();
    for (system, workload, outcome) in points.iter() {
        let case = name(system, workload);
        let rate = outcome.mops() * 1e6;
        let (system, workload) = baseline(system, workload);
        let baseline = name(system, &workload);
        match report.case(&baseline).is_some() {
            true => report.add_against(&case, rate, "ops/s", &baseline)?,
            false => report.add(&case, rate, "ops/s")?,
        }
        for (what, value, unit) in details(outcome) {
            report.add(&format!("{case}/{what}"), value, unit)?;
        }
    }
    Ok(report)
}

fn details(outcome: &Outcome) -> [(&'static str, f64, &'static str); 8] {
    let each = |count| outcome.per_operation(count);
    [
        ("hit-rate", outcome.hit_rate(), "of 1"),
        ("packets", each(outcome.packets), "per op"),
        ("home-agent-packets", each(outcome.home_packets), "per op"),
        ("refused", each(outcome.of.refused), "per op"),
        ("wait/mean", outcome.of.mean_wait, "ns"),
        ("wait/longest", outcome.of.longest_wait as f64, "ns"),
        ("fairness", outcome.fairness, "least by most busy thread"),
        ("home-agent-use", outcome.used.home_agent, "of 1"),
    ]
}

fn parameters(base: Workload) -> Vec<Parameter> {
    const GUESS: &str = "assumed";
    const PAPER: &str = "§7, §7.2";
    let network = Network::ETHERNET;
    let sizes = base.program;
    let mut rows = vec![
        ("link", format!("{} Gb/s", network.gigabits), PAPER),
        ("node to switch", format!("{} ns", network.wire), GUESS),
        ("switch", format!("{} ns", network.switch), GUESS),
        ("within a node", format!("{} ns", network.local), GUESS),
        ("scale", format!("1/{}", sizes.scale), "chosen for speed"),
        ("private blocks a node", sizes.private().to_string(), PAPER),
        ("shared blocks", sizes.shared().to_string(), PAPER),
        ("cached blocks a node", sizes.cache().to_string(), PAPER),
        (
            "blocks in the switch",
            (sizes.switch_sets() * 8).to_string(),
            "as built, scaled",
        ),
    ]
    .into_iter()
    .map(|(name, value, from)| Parameter {
        name: name.to_owned(),
        value,
        from,
    })
    .collect::<Vec<_>>();
    for (system, platform, text) in [
        ("switch, home-only", Platform::CONCORDIA, true),
        ("directory", Platform::GAM, true),
        ("delegate", Platform::GRAPPA, false),
    ] {
        rows.extend(of_system(system, &platform, text));
    }
    rows
}

fn of_system(system: &str, platform: &Platform, told: bool) -> Vec<Parameter> {
    let from = |from: &'static str| if told { from } else { "assumed" };
    let agents = match platform.agents {
        Agents::HomeAndCache => "home agent 1, cache agent 1".to_owned(),
        Agents::Pool(threads) => format!("{threads} for both agents"),
        Agents::Owners(threads) => format!("{threads}, each of a part"),
    };
    let misses = if platform.through_agents {
        "through the agents"
    } else {
        "directly"
    };
    let ways = if platform.fully_associative {
        "all"
    } else {
        "8"
    };
    let costs = platform.costs;
    let times = [
        (
            "hit, same block as before",
            costs.hit,
            "Fig. 12, locality 100%",
        ),
        (
            "hit, another block",
            costs.cold,
            "Fig. 11, reads 100%, sharing 60%",
        ),
        ("to take a message", costs.handle, "Fig. 9, 0% and 100%"),
        ("to send a packet", costs.send, "half of that"),
        ("to wait for packets to go with", costs.aggregate, "assumed"),
    ];
    let texts = [
        ("agents' threads", agents, "§6, §7.1"),
        ("misses", misses.to_owned(), "assumed"),
        ("entries of a set", ways.to_owned(), "§6, §7.2.1"),
    ];
    let times = times.map(|(name, ns, source)| (name, format!("{ns} ns"), source));
    (times.into_iter().chain(texts))
        .map(|(name, value, source)| Parameter {
            name: format!("{system}: {name}"),
            value,
            from: from(source),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_gives_a_report_of_the_documented_form() {
        let options = Options {
            figures: vec![Figure::Fig2],
            scale: 512,
            ..Options::default()
        };
        let told = run(&options, &mut |_| {}).unwrap();
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!(json["bench"], "micro-sim");
        let cases = json["cases"].as_array().unwrap();
        assert!(cases.iter().all(|case| case["value"].is_number()));
        let point = "sim/directory/nodes-8/threads-4/sharing-20/reads-50/locality-0";
        assert!(cases.iter().any(|case| case["case"] == point));
        assert!(!json["claims"].as_array().unwrap().is_empty());
        assert_eq!(told.tables().count(), 3);
        // The same seed gives the same figures.
        assert_eq!(
            run(&options, &mut |_| {}).unwrap().report.cases,
            told.report.cases
        );
    }
}
