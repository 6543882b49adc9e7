//! Concordia's key-value store (§7.3, Fig. 14) in the cost model of `rackmem-sim`, beside what the
//! paper reports. `docs/simulation.md` says what is modelled, and what does not agree.

use super::points::{Speed, all};
use super::tables::times;
use super::{Outcome, Parameter, SimReport};
use crate::judged::{Judged, Range};
use crate::report::{Report, ReportError, number};
use crate::run::{Progress, Result};
use crate::stop;
use crate::table::{Align, Table};
use rackmem_sim::model::{Experiment, Keys, Platform, System, Workload, simulate};
use std::time::Instant;

/// Nodes of the figure's racks, and those of more than two.
const NODES: [u16; 4] = [2, 4, 6, 8];
const MANY: [u16; 3] = [4, 6, 8];
/// Threads of a node.
const THREADS: u16 = 4;
/// Percent of operations that get, in the two workloads.
const READING: u8 = 95;
const WRITING: u8 = 50;
const PLACE: &str = "§7.3, Fig. 14";

/// What to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Decides every run.
    pub seed: u64,
    /// Every size is the paper's divided by this.
    pub scale: u32,
}

/// A line of the figure. The paper has three: Grappa is here twice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    /// After GAM.
    Gam,
    /// FlowCC with the switch.
    Concordia,
    /// After Grappa, as in the micro benchmark: a thread has one operation under way.
    Grappa,
    /// After Grappa, with so many tasks that its cores never wait.
    Tasks,
}

use Line::{Concordia, Gam, Grappa, Tasks};

impl Line {
    const ALL: [(Line, System, &'static str); 4] = [
        (Gam, System::Directory, "directory"),
        (Concordia, System::Switch, "switch"),
        (Grappa, System::Delegate, "delegate"),
        (Tasks, System::Delegate, "delegate-tasks"),
    ];
}

/// A point of the figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Point {
    line: Line,
    nodes: u16,
    reads: u8,
}

impl Point {
    /// All of them.
    fn all() -> impl Iterator<Item = Point> {
        let lines = |nodes, reads| Line::ALL.map(|(line, ..)| Point { line, nodes, reads });
        let nodes = move |reads| NODES.into_iter().flat_map(move |n| lines(n, reads));
        [READING, WRITING].into_iter().flat_map(nodes)
    }

    fn row(self) -> (Line, System, &'static str) {
        Line::ALL[self.line as usize]
    }

    fn experiment(self, options: Options) -> Experiment<Keys> {
        let workload = Workload {
            nodes: self.nodes,
            threads: THREADS,
            reads: self.reads,
            program: Keys {
                scale: options.scale.max(1),
            },
        };
        let experiment = Experiment::store(self.row().1, workload, options.seed);
        match self.line {
            Tasks => experiment.with_tasks(),
            Gam | Concordia | Grappa => experiment,
        }
    }

    fn name(self) -> String {
        let Point { nodes, reads, .. } = self;
        let system = self.row().2;
        format!("sim/{system}/store/nodes-{nodes}/threads-{THREADS}/reads-{reads}")
    }
}

/// What came of the points.
struct Seen(Vec<(Point, Outcome)>);

impl Seen {
    fn at(&self, line: Line, nodes: u16, reads: u8) -> Option<&Outcome> {
        let wanted = Point { line, nodes, reads };
        let found = self.0.iter().find(|row| row.0 == wanted);
        found.map(|row| &row.1)
    }

    /// By how much one system is faster than another, on racks of these sizes.
    fn gains(&self, of: [Line; 2], nodes: &[u16], reads: u8) -> Option<Vec<f64>> {
        let gain = |&nodes: &u16| {
            let [one, other] = of.map(|line| Some(self.at(line, nodes, reads)?.mops()));
            Some(one? / other?)
        };
        nodes.iter().map(gain).collect()
    }

    /// How fast GAM is on a rack of one size, by its speed on one of another.
    fn grows(&self, from: u16, to: u16, reads: u8) -> Option<Vec<f64>> {
        let [from, to] = [from, to].map(|n| Some(self.at(Gam, n, reads)?.mops()));
        Some(vec![to? / from?])
    }
}

struct Claim {
    says: &'static str,
    paper: Range,
    ours: fn(&Seen) -> Option<Vec<f64>>,
}

#[rustfmt::skip]
const CLAIMS: &[Claim] = &[
    Claim { says: "95% GET, 4 to 8 nodes: Concordia over GAM", paper: Range::of(1.2, 2.5),
        ours: |s| s.gains([Concordia, Gam], &MANY, READING) },
    Claim { says: "95% GET, 4 to 8 nodes: Concordia over Grappa", paper: Range::of(3.9, 5.0),
        ours: |s| s.gains([Concordia, Grappa], &MANY, READING) },
    Claim { says: "95% GET, 4 to 8 nodes: the same, Grappa with tasks", paper: Range::of(3.9, 5.0),
        ours: |s| s.gains([Concordia, Tasks], &MANY, READING) },
    Claim { says: "95% GET, GAM \"plateaus\": 8 nodes by 4", paper: Range::one(1.0),
        ours: |s| s.grows(4, 8, READING) },
    Claim { says: "50% GET: Concordia over GAM", paper: Range::of(1.2, 4.2),
        ours: |s| s.gains([Concordia, Gam], &NODES, WRITING) },
    Claim { says: "50% GET: Concordia over Grappa", paper: Range::of(2.3, 2.6),
        ours: |s| s.gains([Concordia, Grappa], &NODES, WRITING) },
    Claim { says: "50% GET: the same, Grappa with tasks", paper: Range::of(2.3, 2.6),
        ours: |s| s.gains([Concordia, Tasks], &NODES, WRITING) },
    Claim { says: "50% GET, GAM \"drops\": 8 nodes by 2", paper: Range::up_to(1.0),
        ours: |s| s.grows(2, 8, WRITING) },
    Claim { says: "50% GET, 8 nodes: GAM by Grappa, below", paper: Range::up_to(1.0),
        ours: |s| s.gains([Gam, Grappa], &[8], WRITING) },
];

/// Runs it.
pub fn run(options: Options, progress: Progress<'_>) -> Result<SimReport> {
    let with = |point: Point| (point, point.experiment(options));
    let experiments: Vec<(Point, Experiment<Keys>)> = Point::all().map(with).collect();
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
    let mut report = Report::new("store-sim");
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
        for (what, value, unit) in super::details(outcome) {
            report.add(&format!("{case}/{what}"), value, unit)?;
        }
    }
    Ok(report)
}

fn table(seen: &Seen) -> Table {
    let mut columns = vec![("point", Align::Left), ("system", Align::Left)];
    let numbers = ["Mops", "of directory", "hits", "packets/op", "mean wait"];
    columns.extend(numbers.map(|name| (name, Align::Right)));
    columns.push(("bound by", Align::Left));
    let mut table = Table::new("Fig. 14: a key-value store (§7.3)", &columns);
    for (point, outcome) in &seen.0 {
        let Point { nodes, reads, .. } = *point;
        let gain = seen.at(Gam, nodes, reads);
        let gain = gain.map(|base| times(outcome.mops() / base.mops()));
        table.row(&[
            &format!("{reads}% GET, {nodes} nodes"),
            point.row().2,
            &number(outcome.mops()),
            &gain.unwrap_or_default(),
            &format!("{:.1}%", 100.0 * outcome.hit_rate()),
            &number(outcome.per_operation(outcome.packets)),
            &format!("{:.1} µs", outcome.of.mean_wait / 1e3),
            outcome.used.bound(),
        ]);
    }
    table
}

fn parameters(options: Options) -> Vec<Parameter> {
    const PAPER: &str = "§7.3";
    let keys = Keys {
        scale: options.scale.max(1),
    };
    let point = Point {
        line: Tasks,
        nodes: 1,
        reads: READING,
    };
    let grappa = point.experiment(options);
    let tasks = grappa.workload.threads / THREADS;
    let sizes = [
        ("scale", format!("1/{}", keys.scale), "chosen for speed"),
        ("keys", keys.keys().to_string(), PAPER),
        (
            "blocks",
            keys.blocks().to_string(),
            "8 and 128 bytes a pair",
        ),
        ("cached blocks a node", keys.cache().to_string(), PAPER),
        (
            "delegate-tasks: operations under way a core",
            tasks.to_string(),
            "assumed",
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
        super::of_system("delegate", &Platform::GRAPPA, false),
        super::of_system("delegate-tasks", &grappa.platform, false),
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
        let case = "sim/switch/store/nodes-8/threads-4/reads-95";
        assert!(told.report.case(case).unwrap().value > 0.0);
        assert_eq!(told.tables().count(), 3);
    }
}
