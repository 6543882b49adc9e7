//! Models and measurements behind the figures.

use super::super::bench::bounded_sim;
use super::catalogue::{Figure, Here, Model};
use super::ranks;
use rackmem::Fabric;
use rackmem_bench::judged::{Judged, Range};
use rackmem_bench::report::{Case, Report};
use rackmem_bench::run::{self, BenchError, Progress, Result, sim};
use rackmem_graph::sockets::PAPER_AT_EIGHT;
use rackmem_sim::abd::figure as abd;
use serde::Serialize;
use std::time::Duration;

/// What decides the models' runs, and how long each case is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub seed: u64,
    /// Sizes of the Concordia paper are divided by this.
    pub scale: u32,
    pub duration: Duration,
}

/// What a model says.
#[derive(Debug, Serialize)]
pub struct Modelled {
    pub cases: Vec<Case>,
    pub claims: Vec<Judged>,
}

/// R-MAT graphs of 2^18 vertices, as `bench bounded --sim` has them.
const GRAPH_SCALE: u32 = 18;
/// Hand-overs, and acquisitions of a lock that is here.
const ROUNDS: usize = 500;
const LOCAL: usize = 200_000;
/// Page faults.
const FAULTS: usize = 500;
/// The death of a switch: the lease, and how long a rack works before, without it, and after.
const LEASE: Duration = Duration::from_millis(500);
const PHASES: [u64; 3] = [1000, 2000, 3000];
const SETS: [usize; 2] = [256 << 10, 64 << 20];
const SIZES: [usize; 3] = [128, 1024, 8192];

/// What a figure's model says.
pub fn model(figure: &Figure, effort: Effort, tell: Progress<'_>) -> Result<Option<Modelled>> {
    let Some(model) = figure.model else {
        return Ok(None);
    };
    let seed = effort.seed;
    let told = match model {
        Model::Micro(one) => {
            let options = sim::Options {
                figures: vec![one],
                seed,
                scale: effort.scale,
                ..sim::Options::default()
            };
            sim::run(&options, tell)?
        }
        Model::Store => {
            let scale = effort.scale;
            sim::store::run(sim::store::Options { seed, scale }, tell)?
        }
        Model::Transactions => {
            let scale = effort.scale;
            sim::transactions::run(sim::transactions::Options { seed, scale }, tell)?
        }
        Model::Locks(one) => sim::locks::run(
            &sim::locks::Options {
                figures: vec![one],
                seed,
            },
            tell,
        )?,
        Model::Objects(one) => sim::objects::run(
            &sim::objects::Options {
                figures: vec![one],
                seed,
            },
            tell,
        )?,
        Model::Failover => return failover(figure, seed, tell).map(Some),
        Model::Pages => return pages(figure, tell).map(Some),
        Model::Sockets => return sockets(figure, seed, tell).map(Some),
    };
    match told.report.partial {
        true => Err(BenchError::Stopped),
        false => Ok(Some(Modelled {
            cases: told.report.cases,
            claims: told.claims,
        })),
    }
}

/// The switch's death in virtual time.
fn failover(figure: &Figure, seed: u64, tell: Progress<'_>) -> Result<Modelled> {
    tell("the switch dies");
    let mut report = Report::new("repro");
    let options = run::failover_sim::Options { nodes: 8, seed };
    run::failover_sim::run(&options, &mut report)?;
    let claims = [
        (
            "rebuild",
            "ms until the directory is rebuilt, at most (network time only)",
            1900.0,
        ),
        (
            "hot-blocks-back",
            "ms until hot blocks are back, at most",
            1500.0,
        ),
    ]
    .into_iter()
    .filter_map(|(what, says, most)| {
        let case = report.case(&format!("sim/switch/{what}"))?;
        Judged::new(
            figure.place,
            says,
            Range::up_to(most),
            false,
            &[case.value / 1e3],
        )
    })
    .collect();
    Ok(Modelled {
        cases: report.cases,
        claims,
    })
}

/// A page that three memories keep, at the costs of the paper's boards.
fn pages(figure: &Figure, tell: Progress<'_>) -> Result<Modelled> {
    tell("pages are fetched");
    let rows = abd::rows();
    let mut report = Report::new("repro");
    for row in &rows {
        let case = format!("sim/pages/{}", row.name.replace(' ', "-"));
        report.add(&format!("{case}/p50"), row.taken.median as f64 / 1e3, "us")?;
        report.add(&format!("{case}/p99"), row.taken.p99 as f64 / 1e3, "us")?;
    }
    let mut claims = Vec::new();
    for row in &rows {
        let Some(paper) = row.paper else {
            continue;
        };
        let (paper, local) = (paper as f64, abd::PAPER_LOCAL as f64);
        let [median, p99] = [row.taken.median, row.taken.p99].map(|ns| ns as f64);
        let one = |says, paper, fitted, ours: f64| {
            Judged::new(figure.place, says, Range::one(paper), fitted, &[ours])
        };
        claims.extend([
            one(
                "a page by three memories, µs",
                paper / 1e3,
                true,
                median / 1e3,
            ),
            one(
                "the same by a line of local memory",
                paper / local,
                true,
                median / local,
            ),
            one(
                "\"pretty stable\": 99% by the median",
                1.0,
                false,
                p99 / median,
            ),
        ]);
    }
    Ok(Modelled {
        cases: report.cases,
        claims: claims.into_iter().flatten().collect(),
    })
}

/// PageRank by sockets.
fn sockets(figure: &Figure, seed: u64, tell: Progress<'_>) -> Result<Modelled> {
    tell("graphs are cut for 2, 4 and 8 sockets");
    let mut report = Report::new("repro");
    let gains = bounded_sim::model(GRAPH_SCALE, seed, &mut report)?;
    let says = [
        "8 sockets: messages by on-demand",
        "8 sockets: messages by periodic",
    ];
    let rows = says.into_iter().zip(PAPER_AT_EIGHT).enumerate();
    let claims = rows.filter_map(|(engine, (says, paper))| {
        let gains: Vec<f64> = gains.iter().map(|gains| gains[engine]).collect();
        Judged::new(figure.place, says, Range::one(paper), false, &gains)
    });
    Ok(Modelled {
        claims: claims.collect(),
        cases: report.cases,
    })
}

/// What is measured on this machine.
pub fn measure(here: Here, effort: Effort, tell: Progress<'_>) -> Result<Report> {
    let mut report = Report::new("repro");
    match here {
        Here::Micro => micro(effort, &mut report, tell)?,
        Here::Keys => {
            let options = run::keys::Options {
                duration: effort.duration,
                ..run::keys::Options::default()
            };
            run::keys::run(&options, &mut report, tell)?;
        }
        Here::Locks => {
            use run::lock::{Options, Part};
            let options = Options {
                parts: vec![Part::Cached, Part::Counted, Part::HandOver],
                fabrics: vec![Fabric::Inline],
                rounds: ROUNDS,
                local: LOCAL,
                ..Options::default()
            };
            run::lock::run(&options, &mut report, tell)?;
        }
        Here::Buckets => {
            use run::lock::{Options, Part};
            let options = Options {
                parts: vec![Part::Store],
                fabrics: vec![Fabric::Inline],
                nodes: vec![4],
                duration: effort.duration,
                ..Options::default()
            };
            run::lock::run(&options, &mut report, tell)?;
        }
        Here::Transactions => {
            let options = run::tpcc::Options {
                remote: vec![0, 100],
                duration: effort.duration,
                ..run::tpcc::Options::default()
            };
            run::tpcc::run(&options, &mut report, tell)?;
        }
        Here::Ranks => ranks::measure(effort.duration, &mut report, tell)?,
        Here::OneLock => {
            let options = run::dbm::Options {
                kinds: Vec::new(),
                nodes: vec![1, 2, 4],
                threads: 2,
                warehouses: vec![1, 10],
                duration: effort.duration,
                ..run::dbm::Options::default()
            };
            run::dbm::run(&options, &mut report, tell)?;
        }
        Here::Objects => {
            let options = run::objects::Options {
                sizes: SIZES.into(),
                duration: effort.duration,
            };
            run::objects::run(&options, &mut report, tell)?;
        }
        Here::Failover => {
            let options = run::failover::Options {
                lease: LEASE,
                phases: PHASES.map(Duration::from_millis),
                ..run::failover::Options::default()
            };
            run::failover::run(&options, &mut report, &mut Vec::new(), tell)?;
        }
        Here::Faults => {
            let options = run::copies::Options {
                fabrics: vec![Fabric::Udp],
                operations: FAULTS,
                only_paging: true,
                ..run::copies::Options::default()
            };
            let missing = run::copies::run(&options, &mut report, tell)?;
            if let Some(why) = missing.first() {
                return Err(BenchError::Missing(why.clone()));
            }
        }
        Here::Flushes => {
            let options = run::bounded::Options {
                sets: SETS.into(),
                nodes: Vec::new(),
                bounds: Vec::new(),
                duration: effort.duration,
            };
            run::bounded::run(&options, &mut report, tell)?;
        }
    }
    Ok(report)
}

/// Sharing, then reads, then locality.
fn micro(effort: Effort, report: &mut Report, tell: Progress<'_>) -> Result<()> {
    let base = run::micro::Options {
        duration: effort.duration,
        ..run::micro::Options::default()
    };
    run::micro::run(&base, None, report, tell)?;
    let reads = run::micro::Options {
        sharing: vec![20, 60],
        reads: 100,
        ..base.clone()
    };
    run::micro::run(&reads, None, report, tell)?;
    let located = run::micro::Options {
        sharing: vec![20],
        locality: 100,
        ..base
    };
    run::micro::run(&located, None, report, tell)
}
