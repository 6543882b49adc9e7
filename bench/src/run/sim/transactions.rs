//! TPC-C under two-phase locking (Concordia §7.4, Fig. 15) in the cost model of `rackmem-sim`,
//! beside what the paper reports. `docs/simulation.md` says what is modelled,
//! and what does not agree.

use super::points::{Speed, all};
use super::tables::times;
use super::{Parameter, SimReport};
use crate::judged::{Judged, Range};
use crate::report::{Report, ReportError, number};
use crate::run::{Progress, Result};
use crate::stop;
use crate::table::{Align, Table};
use rackmem_sim::model::{
    Costs, Experiment, Platform, System, TransactionFigures, Transactions, Workload, simulate,
};
use std::time::Instant;

type Outcome = rackmem_sim::model::Outcome<TransactionFigures>;

/// The paper's rack: a warehouse for each thread.
const NODES: u16 = 8;
const THREADS: u16 = 4;
/// Percent that is of other warehouses: the paper's distribution ratio.
const REMOTE: [u8; 6] = [0, 20, 40, 60, 80, 100];
/// Those with sharing.
const SHARING: [u8; 5] = [20, 40, 60, 80, 100];
const PLACE: &str = "§7.4, Fig. 15";

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Decides every run.
    pub seed: u64,
    /// Every size is the paper's divided by this.
    pub scale: u32,
}

/// A line of the figure. The paper has those that do not wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    /// After GAM; a lock that is not to be had at once aborts.
    Gam,
    /// FlowCC with the switch, likewise.
    Concordia,
    /// Both with locks that are waited for, as `rackmem-txn` does it.
    PatientGam,
    /// See above.
    PatientConcordia,
    /// GAM, if a look at what is here took it no longer than Concordia: what the text says of no
    /// sharing would need that.
    EvenGam,
}

use Line::{Concordia, EvenGam, Gam, PatientConcordia, PatientGam};

impl Line {
    #[rustfmt::skip]
    const ALL: [(Line, System, u64, &'static str); 5] = [
        (Gam, System::Directory, 0, "directory"),
        (Concordia, System::Switch, 0, "switch"),
        (PatientGam, System::Directory, Transactions::PATIENT, "directory-waits"),
        (PatientConcordia, System::Switch, Transactions::PATIENT, "switch-waits"),
        (EvenGam, System::Directory, 0, "directory-even"),
    ];

    fn row(self) -> (Line, System, u64, &'static str) {
        Line::ALL[self as usize]
    }
}

/// A point of the figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Point {
    line: Line,
    remote: u8,
}

impl Point {
    /// All of them.
    fn all() -> impl Iterator<Item = Point> {
        let lines = |remote| Line::ALL.map(|(line, ..)| Point { line, remote });
        REMOTE.into_iter().flat_map(lines)
    }

    fn experiment(self, options: Options) -> Experiment<Transactions> {
        let (_, system, patience, _) = self.line.row();
        let workload = Workload {
            nodes: NODES,
            threads: THREADS,
            // What reads is for the mix to say.
            reads: 0,
            program: Transactions {
                remote: self.remote,
                patience,
                scale: options.scale.max(1),
            },
        };
        let mut experiment = Experiment::transactions(system, workload, options.seed);
        if self.line == EvenGam {
            let Costs { hit, cold, .. } = Platform::CONCORDIA.costs;
            let costs = &mut experiment.platform.costs;
            (costs.hit, costs.cold) = (hit, cold);
        }
        experiment
    }

    fn name(self) -> String {
        let (line, remote) = (self.line.row().3, self.remote);
        format!("sim/{line}/tpc-c/nodes-{NODES}/threads-{THREADS}/remote-{remote}")
    }
}

/// What came of the points.
struct Seen(Vec<(Point, Outcome)>);

impl Seen {
    fn at(&self, line: Line, remote: u8) -> Option<&Outcome> {
        let wanted = Point { line, remote };
        let found = self.0.iter().find(|row| row.0 == wanted);
        found.map(|row| &row.1)
    }

    /// One line by another, at each share.
    fn ratios(&self, of: [Line; 2], remote: &[u8], what: fn(&Outcome) -> f64) -> Option<Vec<f64>> {
        let ratio = |&remote: &u8| {
            let [one, other] = of.map(|line| Some(what(self.at(line, remote)?)));
            Some(one? / other?)
        };
        remote.iter().map(ratio).collect()
    }

    fn gains(&self, of: [Line; 2], remote: &[u8]) -> Option<Vec<f64>> {
        self.ratios(of, remote, Outcome::mops)
    }
}

struct Claim {
    says: &'static str,
    paper: Range,
    ours: fn(&Seen) -> Option<Vec<f64>>,
}

#[rustfmt::skip]
const CLAIMS: &[Claim] = &[
    Claim { says: "no sharing: Concordia by GAM", paper: Range::one(1.0),
        ours: |s| s.gains([Concordia, Gam], &[0]) },
    Claim { says: "20% to 100% of other warehouses: Concordia over GAM", paper: Range::of(1.55, 2.0),
        ours: |s| s.gains([Concordia, Gam], &SHARING) },
    Claim { says: "the same, where locks are waited for", paper: Range::of(1.55, 2.0),
        ours: |s| s.gains([PatientConcordia, PatientGam], &SHARING) },
    Claim { says: "the same, if what is here took both as long", paper: Range::of(1.55, 2.0),
        ours: |s| s.gains([Concordia, EvenGam], &SHARING) },
    Claim { says: "aborts of Concordia by GAM's, \"much lower\"", paper: Range::up_to(1.0),
        ours: |s| s.ratios([Concordia, Gam], &SHARING, Outcome::abort_ratio) },
    Claim { says: "aborts rise with sharing: 100% by 20%", paper: Range::from(1.0),
        ours: |s| [Gam, Concordia].map(|line| {
            let [least, most] = [20, 100].map(|remote| Some(s.at(line, remote)?.abort_ratio()));
            Some(most? / least?)
        }).into_iter().collect() },
];

/// Runs it.
pub fn run(options: Options, progress: Progress<'_>) -> Result<SimReport> {
    let with = |point: Point| (point, point.experiment(options));
    let experiments: Vec<(Point, Experiment<Transactions>)> = Point::all().map(with).collect();
    let began = Instant::now();
    let (outcomes, core_seconds) = all(&experiments, |e| simulate(&e.1), |e| e.0.name(), progress);
    let rows = Point::all().zip(outcomes);
    let seen = Seen(rows.filter_map(|(p, o)| Some((p, o?))).collect());
    let judged = |claim: &Claim| {
        let Claim { says, paper, ours } = *claim;
        Judged::new(PLACE, says, paper, false, &ours(&seen)?)
    };
    Ok(SimReport {
        report: report(&seen)?,
        seed: options.seed,
        parameters: parameters(options),
        claims: CLAIMS.iter().filter_map(judged).collect(),
        speed: Speed::of(seen.0.iter().map(|row| &row.1), core_seconds, began),
        tables: vec![table(&seen)],
    })
}

fn report(seen: &Seen) -> std::result::Result<Report, ReportError> {
    let mut report = Report::new("tpcc-sim");
    // What was simulated is whole.
    report.take_late();
    report.partial = stop::requested();
    for (point, outcome) in &seen.0 {
        let (case, rate) = (point.name(), outcome.mops() * 1e6);
        let baseline = Point {
            line: Gam,
            ..*point
        };
        match report.case(&baseline.name()).is_some() {
            true => report.add_against(&case, rate, "ops/s", &baseline.name())?,
            false => report.add(&case, rate, "ops/s")?,
        }
        let each = |count| outcome.per_operation(count);
        let of = &outcome.of;
        for (what, value, unit) in [
            ("aborts", 100.0 * outcome.abort_ratio(), "percent"),
            ("locks", each(of.locks), "per op"),
            ("misses", each(of.misses), "per op"),
            ("refused", each(of.of.refused), "per op"),
            ("packets", each(outcome.packets), "per op"),
            ("time/mean", of.of.mean_wait, "ns"),
            ("time/longest", of.of.longest_wait as f64, "ns"),
            ("fairness", outcome.fairness, "least by most busy thread"),
        ] {
            report.add(&format!("{case}/{what}"), value, unit)?;
        }
    }
    Ok(report)
}

fn table(seen: &Seen) -> Table {
    let mut columns = vec![
        ("of other warehouses", Align::Left),
        ("system", Align::Left),
    ];
    let numbers = [
        "thousand/s",
        "of directory",
        "aborts",
        "misses",
        "packets",
        "mean time",
    ];
    columns.extend(numbers.map(|name| (name, Align::Right)));
    columns.push(("bound by", Align::Left));
    let mut table = Table::new("Fig. 15: TPC-C under two-phase locking (§7.4)", &columns);
    for (Point { line, remote }, outcome) in &seen.0 {
        let gain = seen.at(Gam, *remote);
        let gain = gain.map(|base| times(outcome.mops() / base.mops()));
        table.row(&[
            &format!("{remote}%"),
            line.row().3,
            &number(outcome.mops() * 1e3),
            &gain.unwrap_or_default(),
            &format!("{:.1}%", 100.0 * outcome.abort_ratio()),
            &number(outcome.per_operation(outcome.of.misses)),
            &number(outcome.per_operation(outcome.packets)),
            &format!("{:.0} µs", outcome.of.of.mean_wait / 1e3),
            outcome.used.bound(),
        ]);
    }
    table
}

fn parameters(options: Options) -> Vec<Parameter> {
    const PAPER: &str = "§7.4";
    let point = Point {
        line: Concordia,
        remote: 0,
    };
    let workload = point.experiment(options).workload;
    let program = workload.program;
    let (blocks, cache) = (workload.blocks(), program.cache());
    let (work, waits) = (Transactions::WORK, Transactions::PATIENT / 1_000_000);
    let sizes = [
        ("scale", format!("1/{}", program.scale), "chosen for speed"),
        ("warehouses", (NODES * THREADS).to_string(), PAPER),
        (
            "blocks",
            blocks.to_string(),
            "TPC-C's rows, as apps/txn has them",
        ),
        ("cached blocks a node", cache.to_string(), PAPER),
        ("work on a row", format!("{work} ns"), "assumed"),
        (
            "waits: first patience",
            format!("{waits} ms"),
            "as apps/txn",
        ),
    ];
    let sizes = sizes.map(|(name, value, from)| Parameter {
        name: name.to_owned(),
        value,
        from,
    });
    let systems = [
        super::of_system("switch", &Platform::CONCORDIA, true),
        super::of_system("directory", &Platform::GAM, true),
    ];
    sizes
        .into_iter()
        .chain(systems.into_iter().flatten())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_every_point_and_every_claim() {
        let options = Options {
            seed: 1,
            scale: 1024,
        };
        let told = run(options, &mut |_| {}).unwrap();
        assert_eq!(told.claims.len(), CLAIMS.len());
        let case = "sim/switch/tpc-c/nodes-8/threads-4/remote-100";
        assert!(told.report.case(case).unwrap().value > 0.0);
        assert_eq!(told.tables().count(), 3);
    }
}
