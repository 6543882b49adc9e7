//! `bench objects --sim`: SABRes at the parameters of their paper (Table 2) in the model of
//! `rackmem-sim`, beside what the paper reports. `docs/simulation.md` says what is modelled, what
//! is fitted, and what does not agree.

mod claims;
mod figures;
mod tables;

use super::points::{Speed, all};
use super::{Parameter, SimReport};
use crate::report::{Report, ReportError};
use crate::run::{Progress, Result};
use crate::stop;
use figures::{Outcome, Point};
use rackmem_sim::sabre::soc::{CHIP, CORES, Time};
use std::time::Instant;

pub use figures::Figure;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which figures; with none, all.
    pub figures: Vec<Figure>,
    /// Decides every run.
    pub seed: u64,
}

/// Points with what came of them.
struct Points(Vec<(Point, Outcome)>);

impl Points {
    fn get(&self, point: &Point) -> Option<&Outcome> {
        let found = self.0.iter().find(|row| row.0 == *point);
        found.map(|row| &row.1)
    }
}

/// Runs it.
pub fn run(options: &Options, progress: Progress<'_>) -> Result<SimReport> {
    let figures = match options.figures.as_slice() {
        [] => Figure::ALL.to_vec(),
        some => some.to_vec(),
    };
    let mut wanted: Vec<(Point, u64)> = Vec::new();
    for point in figures.iter().flat_map(|figure| figure.points()) {
        if wanted.iter().all(|row| row.0 != point) {
            wanted.push((point, options.seed));
        }
    }
    let began = Instant::now();
    let simulate = |(point, seed): &(Point, u64)| point.simulate(*seed);
    let (outcomes, core_seconds) = all(&wanted, simulate, |row| row.0.name(), progress);
    let rows = wanted.iter().zip(outcomes);
    let points = Points(
        rows.filter_map(|(row, outcome)| Some((row.0, outcome?)))
            .collect(),
    );
    let sum = |of: fn(&Outcome) -> u64| points.0.iter().map(|row| of(&row.1)).sum();
    Ok(SimReport {
        report: report(&points)?,
        seed: options.seed,
        parameters: parameters(),
        claims: claims::claims(&points, &figures),
        speed: Speed {
            runs: points.0.len(),
            packets: sum(|outcome| outcome.packets),
            occurrences: sum(|outcome| outcome.events),
            core_seconds,
            seconds: began.elapsed().as_secs_f64(),
        },
        tables: figures
            .iter()
            .map(|figure| tables::figure(*figure, &points))
            .collect(),
    })
}

fn report(points: &Points) -> std::result::Result<Report, ReportError> {
    let mut report = Report::new("objects-sim");
    // What was simulated is whole.
    report.take_late();
    report.partial = stop::requested();
    for (point, outcome) in &points.0 {
        let case = point.name();
        report.add(&case, outcome.rate * 1e6, "ops/s")?;
        for (what, value, unit) in [
            ("latency", outcome.latency, "ns"),
            ("transfer", outcome.transfer, "ns"),
            ("check", outcome.check, "ns"),
            ("conflicts", outcome.conflicts, "per op"),
        ] {
            // Reads of a core's own memory have a rate only.
            if outcome.latency > 0.0 {
                report.add(&format!("{case}/{what}"), value, unit)?;
            }
        }
    }
    Ok(report)
}

fn parameters() -> Vec<Parameter> {
    const TABLE: &str = "Table 2";
    const GUESS: &str = "assumed";
    const LOCAL: &str = "FITTED: 3 to 4 local accesses, §2.3";
    let ns = |time: Time| format!("{} ns", time as f64 / 1e3);
    let rows = [
        ("hop of the mesh", ns(CHIP.hop), TABLE),
        ("bank of the last-level cache", ns(CHIP.bank), TABLE),
        (
            "memory, beyond that",
            ns(CHIP.memory),
            "90 ns on average, §5.1",
        ),
        ("block, a channel of memory", ns(CHIP.channel), TABLE),
        ("block, a link of the mesh", ns(CHIP.link), TABLE),
        ("action of a pipeline", ns(CHIP.action), TABLE),
        ("block, an R2P2 of 20 GB/s", ns(CHIP.issue), "§5.1"),
        ("between the chips", ns(CHIP.wire), TABLE),
        (
            "packet, block on that wire",
            format!("{}, {}", ns(CHIP.packet), ns(CHIP.data)),
            "100 GB/s; headers assumed",
        ),
        ("stages of an R2P2", ns(CHIP.stages), GUESS),
        ("core to its pipeline", ns(CHIP.post), LOCAL),
        ("last reply to core", ns(CHIP.complete), LOCAL),
        ("modified block of a core", ns(CHIP.forward), TABLE),
        (
            "core: strips a line",
            ns(CORES.strip),
            "FITTED: Fig. 1, 8 KB",
        ),
        ("core: a chunk's first misses", ns(CORES.chunk), TABLE),
        ("core: a line in and out of L1", ns(CORES.fill), TABLE),
        (
            "core: store and application",
            ns(CORES.application),
            "FITTED: Fig. 1, 128 B",
        ),
        (
            "core: application, a block",
            ns(CORES.block),
            "FITTED: Fig. 9a, 8 KB",
        ),
        (
            "core: buffers, more instructions",
            ns(CORES.buffers),
            "FITTED: Fig. 9a, 128 B",
        ),
        ("core: a block beyond L1", ns(CORES.beyond), TABLE),
        ("core: blocks in flight", CORES.in_flight.to_string(), GUESS),
        ("writer: stores to a block", ns(CORES.store), TABLE),
        ("writer: its loop", ns(CORES.around), GUESS),
        (
            "writer: misses that overlap",
            CORES.overlap.to_string(),
            GUESS,
        ),
    ];
    rows.map(|(name, value, from)| Parameter {
        name: name.to_owned(),
        value,
        from,
    })
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_gives_a_report_of_the_documented_form() {
        let options = Options {
            figures: vec![Figure::Fig1, Figure::Fig10],
            seed: 1,
        };
        let told = run(&options, &mut |_| {}).unwrap();
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!(json["bench"], "objects-sim");
        let cases = json["cases"].as_array().unwrap();
        assert!(cases.iter().all(|case| case["value"].is_number()));
        for point in [
            "sim/versions/store/memory/readers-1/8192/check",
            "sim/local/clean/1024",
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
