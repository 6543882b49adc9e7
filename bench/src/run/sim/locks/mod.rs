//! `bench lock --sim`: locks at the parameters of the Soul paper (§5, §6) in the model of
//! `rackmem-sim`, beside what the paper reports. `docs/simulation.md` says what is modelled,
//! and what does not agree.

mod claims;
mod figures;
mod points;
mod tables;

use super::{Parameter, SimReport};
use crate::report::{Report, ReportError};
use crate::run::{Progress, Result};
use crate::stop;
use figures::Point;
use points::Points;
use rackmem_sim::model::{Platform, Scheme, SectionFigures, Sections, System, Workload};

pub use figures::Figure;

type Outcome = rackmem_sim::model::Outcome<SectionFigures>;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which figures; with none, all.
    pub figures: Vec<Figure>,
    /// Decides every run.
    pub seed: u64,
}

/// Runs it.
pub fn run(options: &Options, progress: Progress<'_>) -> Result<SimReport> {
    let figures = match options.figures.as_slice() {
        [] => Figure::ALL.to_vec(),
        some => some.to_vec(),
    };
    let all = figures.iter().flat_map(|figure| figure.points());
    let points = Points::simulate(all, options.seed, progress);
    Ok(SimReport {
        report: report(&points)?,
        seed: options.seed,
        parameters: parameters(),
        claims: claims::claims(&points, &figures),
        speed: points.speed(),
        tables: (figures.iter())
            .flat_map(|figure| tables::figure(*figure, &points))
            .collect(),
    })
}

fn report(points: &Points) -> std::result::Result<Report, ReportError> {
    let mut report = Report::new("lock-sim");
    // What was simulated is whole.
    report.take_late();
    report.partial = stop::requested();
    for (point, outcome) in points.iter() {
        let case = point.name();
        let rate = outcome.mops() * 1e6;
        let ours = Point {
            scheme: Scheme::Gcp,
            ..*point
        };
        match report.case(&ours.name()).is_some() {
            true => report.add_against(&case, rate, "ops/s", &ours.name())?,
            false => report.add(&case, rate, "ops/s")?,
        }
        for (what, value, unit) in details(outcome) {
            report.add(&format!("{case}/{what}"), value, unit)?;
        }
    }
    Ok(report)
}

fn details(outcome: &Outcome) -> [(&'static str, f64, &'static str); 9] {
    let remote = outcome.per_operation(outcome.of.remote);
    let each = outcome.transactions_each();
    let percentile = |percent| outcome.percentile(percent) as f64;
    [
        ("remote", remote, "of 1"),
        ("transactions", each, "per remote acquisition"),
        ("wait/remote-mean", outcome.remote_mean(), "ns"),
        ("wait/mean", outcome.mean(), "ns"),
        ("wait/p50", percentile(50.0), "ns"),
        ("wait/p99", percentile(99.0), "ns"),
        (
            "refused",
            outcome.per_operation(outcome.of.refused),
            "per op",
        ),
        (
            "denied",
            outcome.denied as f64 / outcome.granted.max(1) as f64,
            "releases per grant",
        ),
        ("share", outcome.fairness, "least by most busy node"),
    ]
}

fn parameters() -> Vec<Parameter> {
    const PAPER: &str = "§5";
    const GUESS: &str = "assumed";
    const BEFORE: &str = "as for Concordia";
    let of =
        |platform: Platform,
         [directories, link, one_way, message, packet, trap, wake]: [&'static str; 7]| {
            let Platform { network, costs, .. } = platform;
            let ns = |value: u64| format!("{value} ns");
            let locks = if platform.locks_in_switch {
                "the switch"
            } else {
                "the memory blade"
            };
            let blocks = if platform.system == System::Switch {
                "the switch"
            } else {
                "the memory blade"
            };
            [
                ("directory of locks", locks.to_owned(), directories),
                ("directory of blocks", blocks.to_owned(), directories),
                ("link", format!("{} Gb/s", network.gigabits), link),
                ("one way", ns(2 * network.wire + network.switch), one_way),
                ("to take a message", ns(costs.handle), message),
                ("to send a packet", ns(costs.send), packet),
                ("into the kernel, a fault", ns(costs.trap), trap),
                ("back, when it is there", ns(costs.wake), wake),
                ("what is in memory here", ns(costs.hit), GUESS),
                ("to read or write 4 KiB", ns(costs.touch), GUESS),
            ]
            .map(|(name, value, from)| Parameter {
                name: format!("{}: {name}", platform.name),
                value,
                from,
            })
        };
    const RANGE: &str = "5–10 µs a transaction, §1";
    const HARD: &str = "in hardware";
    let on_wire =
        |directories, trap| [directories, PAPER, BEFORE, BEFORE, BEFORE, trap, "the same"];
    let cxl = [
        "§6",
        "PCIe 6.0, 16 lanes",
        "300 ns and back, §6",
        GUESS,
        HARD,
        HARD,
        HARD,
    ];
    let store = Workload::store(Scheme::Gcp, 1, 0);
    let workload = [
        ("threads", format!("{} a blade", store.threads), PAPER),
        ("locks", store.program.locks.to_string(), GUESS),
        (
            "keys",
            format!("{}, Zipf {}", store.program.keys, store.program.theta),
            GUESS,
        ),
        (
            "the rest of an operation",
            format!("{} ns", store.program.think),
            "Fig. 7, YCSB-C",
        ),
    ]
    .map(|(name, value, from)| Parameter {
        name: format!("store: {name}"),
        value,
        from,
    });
    let Sections { pages, work, .. } = Workload::database(Scheme::Separate, 1, 1).program;
    let database = [
        ("blocks that a transaction writes", pages.to_string()),
        ("the rest of it", format!("{work} ns")),
    ]
    .map(|(name, value)| Parameter {
        name: format!("database: {name}"),
        value,
        from: GUESS,
    });
    let platforms = [
        of(Platform::ETHERNET, on_wire("§4.1", RANGE)),
        of(
            Platform::GATHERED,
            on_wire("Fig. 1", "5.5 clean, 10 dirty, §1"),
        ),
        of(Platform::CXL, cxl),
    ];
    let of_programs = workload.into_iter().chain(database);
    platforms.into_iter().flatten().chain(of_programs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_gives_a_report_of_the_documented_form() {
        let options = Options {
            figures: vec![Figure::Fig10, Figure::Fig11],
            seed: 1,
        };
        let told = run(&options, &mut |_| {}).unwrap();
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!(json["bench"], "lock-sim");
        let cases = json["cases"].as_array().unwrap();
        assert!(cases.iter().all(|case| case["value"].is_number()));
        for point in [
            "sim/ethernet/one-lock/gcp-no-locality/nodes-8/reads-50",
            "sim/cxl/one-lock/gcp/nodes-8/reads-99/transactions",
        ] {
            assert!(cases.iter().any(|case| case["case"] == point), "{point}");
        }
        assert!(!json["claims"].as_array().unwrap().is_empty());
        assert_eq!(told.tables().count(), 4);
        // The same seed gives the same figures.
        assert_eq!(
            run(&options, &mut |_| {}).unwrap().report.cases,
            told.report.cases
        );
    }
}
