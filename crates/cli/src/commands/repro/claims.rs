//! What the papers' texts say that can be measured on one machine.

use super::ranks;
use rackmem_bench::judged::{Judged, Range};
use rackmem_bench::report::Report;
use rackmem_bench::system::System;
use rackmem_graph::Engine;

/// A sentence of a paper, and how its figure is had from a report.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    pub says: &'static str,
    pub paper: Range,
    pub ours: fn(&Report) -> Option<Vec<f64>>,
}

impl Statement {
    /// What came of it; nothing where the report has not what it needs.
    pub fn judge(&self, place: &'static str, report: &Report) -> Option<Judged> {
        Judged::new(place, self.says, self.paper, false, &(self.ours)(report)?)
    }
}

const SHARED: [u8; 3] = [20, 60, 100];
const LARGE: [u8; 2] = [60, 100];

fn value(report: &Report, case: &str) -> Option<f64> {
    report.case(case).map(|case| case.value)
}

fn by(report: &Report, case: &str, other: &str) -> Option<f64> {
    Some(value(report, case)? / value(report, other)?)
}

/// A case of `bench micro`.
fn micro(system: &str, sharing: u8, reads: u8, locality: u8) -> String {
    format!("inline/{system}/nodes-4/threads-1/sharing-{sharing}/reads-{reads}/locality-{locality}")
}

/// By how much a system is faster than another, at each sharing.
fn gains(report: &Report, of: [&str; 2], sharing: &[u8], reads: u8) -> Option<Vec<f64>> {
    let gain = |sharing: &u8| {
        let [one, other] = of.map(|system| micro(system, *sharing, reads, 0));
        by(report, &one, &other)
    };
    sharing.iter().map(gain).collect()
}

/// By how much a system is faster at a sharing than at another.
fn falls(report: &Report, system: &str, from: u8, to: u8) -> Option<Vec<f64>> {
    let [from, to] = [from, to].map(|sharing| micro(system, sharing, 50, 0));
    Some(vec![by(report, &from, &to)?])
}

/// By how many percent a case is above another.
fn above(report: &Report, case: &str, other: &str) -> Option<Vec<f64>> {
    Some(vec![100.0 * (by(report, case, other)? - 1.0)])
}

/// By how many percent a case is below another.
fn below(report: &Report, case: &str, other: &str) -> Option<Vec<f64>> {
    Some(vec![(100.0 * (1.0 - by(report, case, other)?)).max(0.0)])
}

#[rustfmt::skip]
pub const CONCORDIA_2: &[Statement] = &[
    Statement { says: "GAM at 20% sharing, by its throughput at 0%", paper: Range::one(0.25),
        ours: |r| Some(vec![1.0 / falls(r, "directory", 0, 20)?[0]]) },
];

#[rustfmt::skip]
pub const CONCORDIA_9: &[Statement] = &[
    Statement { says: "GAM falls from 0% to 100% sharing", paper: Range::one(17.0),
        ours: |r| falls(r, "directory", 0, 100) },
    Statement { says: "Concordia-base falls from 0% to 100% sharing", paper: Range::one(3.8),
        ours: |r| falls(r, "home-only", 0, 100) },
    Statement { says: "Concordia-base over GAM, sharing 20% to 100%", paper: Range::of(1.25, 3.5),
        ours: |r| gains(r, ["home-only", "directory"], &SHARED, 50) },
    Statement { says: "Concordia over Concordia-base, sharing above 20%", paper: Range::of(1.3, 1.48),
        ours: |r| gains(r, ["switch", "home-only"], &LARGE, 50) },
];

#[rustfmt::skip]
pub const CONCORDIA_10: &[Statement] = &[
    Statement { says: "fewer packets at home agents by the switch, at most", paper: Range::one(4.8),
        ours: |r| {
            let fewer = SHARED.iter().map(|&sharing| {
                let [base, switch] = ["home-only", "switch"]
                    .map(|system| format!("{}/home-agent-packets", micro(system, sharing, 50, 0)));
                by(r, &base, &switch)
            });
            let fewer: Option<Vec<f64>> = fewer.collect();
            Some(vec![fewer?.into_iter().fold(0.0, f64::max)])
        } },
];

#[rustfmt::skip]
pub const CONCORDIA_11: &[Statement] = &[
    Statement { says: "20% sharing, 50% reads: Concordia over base", paper: Range::one(1.22),
        ours: |r| gains(r, ["switch", "home-only"], &[20], 50) },
    Statement { says: "60% sharing, 50% reads: Concordia over GAM", paper: Range::of(4.5, 5.1),
        ours: |r| gains(r, ["switch", "directory"], &[60], 50) },
    Statement { says: "60% sharing, 100% reads: Concordia over GAM (60 and 16 Mops)", paper: Range::one(3.75),
        ours: |r| gains(r, ["switch", "directory"], &[60], 100) },
];

#[rustfmt::skip]
pub const CONCORDIA_12: &[Statement] = &[
    Statement { says: "locality 100%: Concordia over GAM (133 and 23 Mops)", paper: Range::one(5.8),
        ours: |r| Some(vec![by(r, &micro("switch", 20, 50, 100), &micro("directory", 20, 50, 100))?]) },
    Statement { says: "Grappa at locality 100%, by its throughput at 0%", paper: Range::one(1.0),
        ours: |r| Some(vec![by(r, &micro("delegate", 20, 50, 100), &micro("delegate", 20, 50, 0))?]) },
];

#[rustfmt::skip]
pub const CONCORDIA_13: &[Statement] = &[
    Statement { says: "ms from the failure's detection until the directory is rebuilt, at most", paper: Range::up_to(1900.0),
        ours: |r| Some(vec![value(r, "switch/rebuild")?]) },
    Statement { says: "ms until hot blocks are in the switch again, at most", paper: Range::up_to(1500.0),
        ours: |r| Some(vec![value(r, "switch/hot-blocks-back")?]) },
];

/// By how much the store under Zipf's law is faster on FlowCC than on another system.
fn store_gain(report: &Report, over: &str, reads: u8) -> Option<Vec<f64>> {
    let [ours, other] = ["switch", over]
        .map(|system| format!("inline/{system}/zipf/nodes-4/threads-1/reads-{reads}"));
    Some(vec![by(report, &ours, &other)?])
}

#[rustfmt::skip]
pub const CONCORDIA_14: &[Statement] = &[
    Statement { says: "95% GET: Concordia over GAM", paper: Range::of(1.2, 2.5),
        ours: |r| store_gain(r, "directory", 95) },
    Statement { says: "95% GET: Concordia over Grappa", paper: Range::of(3.9, 5.0),
        ours: |r| store_gain(r, "delegate", 95) },
    Statement { says: "50% GET: Concordia over GAM", paper: Range::of(1.2, 4.2),
        ours: |r| store_gain(r, "directory", 50) },
    Statement { says: "50% GET: Concordia over Grappa", paper: Range::of(2.3, 2.6),
        ours: |r| store_gain(r, "delegate", 50) },
];

/// By how much TPC-C is faster on FlowCC than on a classic directory.
fn flowcc_gain(report: &Report, remote: u8) -> Option<Vec<f64>> {
    let [ours, gam] = ["switch", "directory"]
        .map(|system| format!("inline/{system}/tpc-c/locks/remote-{remote}"));
    Some(vec![by(report, &ours, &gam)?])
}

#[rustfmt::skip]
pub const CONCORDIA_15: &[Statement] = &[
    Statement { says: "no sharing: Concordia by GAM", paper: Range::one(1.0),
        ours: |r| flowcc_gain(r, 0) },
    Statement { says: "all of other warehouses: Concordia over GAM", paper: Range::of(1.55, 2.0),
        ours: |r| flowcc_gain(r, 100) },
];

/// By how much PageRank is faster on coherent memory with the switch than another way.
fn ranks_gain(report: &Report, system: System, engine: Engine) -> Option<Vec<f64>> {
    let ours = ranks::name(System::Switch, Engine::Coherent);
    Some(vec![by(report, &ours, &ranks::name(system, engine))?])
}

#[rustfmt::skip]
pub const CONCORDIA_16: &[Statement] = &[
    Statement { says: "Concordia over PowerGraph; here over messages of masters and mirrors", paper: Range::of(1.8, 4.4),
        ours: |r| ranks_gain(r, System::Switch, Engine::Messages) },
];

/// By how much the table with a lock a bucket is faster under GCP than under each of these.
fn bucket_gains(report: &Report, reads: u8, over: &[&str]) -> Option<Vec<f64>> {
    let case = |lock: &str| format!("inline/switch/store/{lock}/nodes-4/reads-{reads}");
    let gain = |lock: &&str| by(report, &case("gcp"), &case(lock));
    over.iter().map(gain).collect()
}

#[rustfmt::skip]
pub const SOUL_7: &[Statement] = &[
    Statement { says: "YCSB-C: GCP over Pthread, MCS and Lock-Service", paper: Range::of(100.0, 1000.0),
        ours: |r| bucket_gains(r, 100, &["central", "mcs", "service"]) },
    Statement { says: "YCSB-C: GCP over Percpu", paper: Range::one(1.0),
        ours: |r| bucket_gains(r, 100, &["per-node"]) },
    Statement { says: "YCSB-B: GCP over Percpu", paper: Range::from(1.0),
        ours: |r| bucket_gains(r, 95, &["per-node"]) },
    Statement { says: "YCSB-A: GCP over the others", paper: Range::of(10.0, 100.0),
        ours: |r| bucket_gains(r, 50, &["mcs", "central", "per-node", "cohort", "service"]) },
];

/// TPC-C under a lock.
fn tpcc(report: &Report, lock: &str, warehouses: u8, nodes: u8) -> Option<f64> {
    let name = format!("inline/switch/tpc-c/{lock}/warehouses-{warehouses}");
    value(report, &format!("{name}/nodes-{nodes}/threads-2"))
}

/// By how much TPC-C is faster under GCP at four nodes than under each of these.
fn tpcc_gains(report: &Report, over: &[&str]) -> Option<Vec<f64>> {
    let of = |lock: &&str| {
        let gain = |warehouses| {
            let [ours, theirs] = ["gcp", lock].map(|lock| tpcc(report, lock, warehouses, 4));
            Some(ours? / theirs?)
        };
        [gain(1), gain(10)]
    };
    over.iter().flat_map(of).collect()
}

/// TPC-C at two nodes by that at one.
fn tpcc_falls(report: &Report, locks: &[&str]) -> Option<Vec<f64>> {
    let of = |lock: &&str| {
        let fall = |warehouses| {
            let [one, two] = [1, 2].map(|nodes| tpcc(report, lock, warehouses, nodes));
            Some(two? / one?)
        };
        [fall(1), fall(10)]
    };
    locks.iter().flat_map(of).collect()
}

#[rustfmt::skip]
pub const SOUL_8: &[Statement] = &[
    Statement { says: "4 nodes: GCP by Cohort, the best of the others", paper: Range::one(1.0),
        ours: |r| tpcc_gains(r, &["cohort"]) },
    Statement { says: "4 nodes: GCP over MCS and Lock-Service", paper: Range::from(1.0),
        ours: |r| tpcc_gains(r, &["mcs", "service"]) },
    Statement { says: "4 nodes: GCP over Pthread and Percpu", paper: Range::from(1.0),
        ours: |r| tpcc_gains(r, &["central", "per-node"]) },
    Statement { says: "all fall beyond one node: 2 nodes by 1, at most", paper: Range::up_to(1.0),
        ours: |r| tpcc_falls(r, &["gcp", "mcs", "central", "per-node", "cohort", "service"]) },
];

/// How often an access of a kind of lock goes through the directory, of a hand-over.
fn counted(report: &Report, kind: &str, what: &str) -> Option<Vec<f64>> {
    Some(vec![value(
        report,
        &format!("counted/switch/{kind}/{what}"),
    )?])
}

#[rustfmt::skip]
pub const SOUL_9: &[Statement] = &[
    Statement { says: "GCP: transactions for lock and data", paper: Range::one(1.0),
        ours: |r| counted(r, "gcp", "lock-and-data/in-all") },
    Statement { says: "MCS: transactions of a hand-over", paper: Range::one(5.0),
        ours: |r| counted(r, "mcs", "lock/in-all") },
    Statement { says: "MCS: of these on the critical path", paper: Range::one(3.0),
        ours: |r| counted(r, "mcs", "lock/critical") },
    Statement { says: "MCS's hand-over with data, by GCP's time", paper: Range::from(1.0),
        ours: |r| Some(vec![by(r, "inline/switch/hand-over/mcs/data", "inline/switch/hand-over/gcp/data")?]) },
];

#[rustfmt::skip]
pub const SOUL_10: &[Statement] = &[
    Statement { says: "a lock that is here is taken again in so many µs at most", paper: Range::up_to(1.0),
        ours: |r| Some(vec![value(r, "cached/gcp/write")? / 1e3]) },
];

fn local(report: &Report, bytes: u32) -> Option<Vec<f64>> {
    above(
        report,
        &format!("local/{bytes}/versions"),
        &format!("local/{bytes}/ours"),
    )
}

fn beside(report: &Report, writers: u8, bytes: u32) -> Option<Vec<f64>> {
    above(
        report,
        &format!("crew-{writers}/{bytes}/ours"),
        &format!("crew-{writers}/{bytes}/versions"),
    )
}

fn check(report: &Report, bytes: u32) -> Option<Vec<f64>> {
    below(
        report,
        &format!("local/{bytes}/plain"),
        &format!("local/{bytes}/versions"),
    )
}

#[rustfmt::skip]
pub const SABRES_1: &[Statement] = &[
    Statement { says: "128 B: percent that is the check", paper: Range::one(10.0), ours: |r| check(r, 128) },
    Statement { says: "8 KB: percent that is the check", paper: Range::one(50.0), ours: |r| check(r, 8192) },
];

#[rustfmt::skip]
pub const SABRES_8: &[Statement] = &[
    Statement { says: "128 B, no writers: percent above versions", paper: Range::one(15.0), ours: |r| beside(r, 0, 128) },
    Statement { says: "1 KB, no writers", paper: Range::one(30.0), ours: |r| beside(r, 0, 1024) },
    Statement { says: "8 KB, no writers", paper: Range::one(87.0), ours: |r| beside(r, 0, 8192) },
];

#[rustfmt::skip]
pub const SABRES_10: &[Statement] = &[
    Statement { says: "own memory, 128 B: percent above versions", paper: Range::one(20.0), ours: |r| local(r, 128) },
    Statement { says: "1 KB", paper: Range::one(53.0), ours: |r| local(r, 1024) },
    Statement { says: "8 KB", paper: Range::one(110.0), ours: |r| local(r, 8192) },
];

#[rustfmt::skip]
pub const ABD_FAULTS: &[Statement] = &[
    Statement { says: "a page fault by three replicas, by a read of the same line (18 µs by 3 µs of local memory)", paper: Range::one(6.0),
        ours: |r| Some(vec![by(r, "udp/pages/load/4096", "udp/pages/line/read/4096")?]) },
];

fn lost(report: &Report, way: &str, set: &str) -> Option<Vec<f64>> {
    below(
        report,
        &format!("periodic/{way}/{set}"),
        &format!("periodic/noflush/{set}"),
    )
}

#[rustfmt::skip]
pub const BI_8: &[Statement] = &[
    Statement { says: "a set that fits L2, every 100 ms: percent lost, at most", paper: Range::up_to(2.0),
        ours: |r| lost(r, "same-core/100ms", "256k") },
    Statement { says: "64 MB, every 10 ms, same core: percent lost, at most", paper: Range::up_to(20.0),
        ours: |r| lost(r, "same-core/10ms", "64m") },
    Statement { says: "64 MB, every 10 ms, another core: percent lost, at most", paper: Range::up_to(10.0),
        ours: |r| lost(r, "other-core/10ms", "64m") },
];
