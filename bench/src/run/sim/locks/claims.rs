//! What the paper's text says of its figures, and what the model says to that.

use super::Outcome;
use super::figures::{BLADES, COMPARED, Figure, MOST, Point, WAREHOUSES, WRITTEN, is_alone};
use super::points::Points;
use crate::judged::{Judged, Range};
use rackmem_sim::model::Algorithm::{self, Central, Cohort, Mcs, PerNode, Service};
use rackmem_sim::model::{Platform, Scheme};

struct Claim {
    figure: Figure,
    place: &'static str,
    says: &'static str,
    paper: Range,
    calibrated: bool,
    ours: fn(&Points) -> Option<Vec<f64>>,
}

const GCP: Scheme = Scheme::Gcp;
const A: u8 = 50;
const B: u8 = 95;
const C: u8 = 100;

/// Blades between which a lock moves.
const SEVERAL: [u16; 3] = [2, 4, 8];

fn one(points: &Points, scheme: Scheme, blades: u16, reads: u8) -> Option<&Outcome> {
    points.get(&Point::contended(scheme, blades, reads))
}

fn store(points: &Points, scheme: Scheme, blades: u16, reads: u8) -> Option<f64> {
    let outcome = points.get(&Point::store(scheme, blades, reads))?;
    Some(outcome.mops())
}

/// By how much GCP's throughput in the store is above that of each of these.
fn store_gain(points: &Points, reads: u8, over: &[Algorithm]) -> Option<Vec<f64>> {
    let ours = store(points, GCP, MOST, reads)?;
    let over = over.iter().map(|&algorithm| Scheme::Compared(algorithm));
    over.map(|scheme| Some(ours / store(points, scheme, MOST, reads)?))
        .collect()
}

fn database(points: &Points, scheme: Scheme, blades: u16, warehouses: u8) -> Option<f64> {
    let point = Point::database(scheme, blades, warehouses);
    points.get(&point).map(Outcome::mops)
}

/// By how much GCP's throughput in the database is above that of each of these, at most blades.
fn database_gain(points: &Points, over: &[Algorithm]) -> Option<Vec<f64>> {
    let of = |&algorithm: &Algorithm| {
        WAREHOUSES.map(|warehouses| {
            let [ours, theirs] = [Scheme::Separate, Scheme::Compared(algorithm)]
                .map(|scheme| database(points, scheme, MOST, warehouses));
            Some(ours? / theirs?)
        })
    };
    over.iter().flat_map(of).collect()
}

/// Throughput of the database at two blades by that at one, of every lock.
fn database_falls(points: &Points) -> Option<Vec<f64>> {
    let schemes = Figure::Fig8.schemes().into_iter().map(|row| row.0);
    let of = |scheme| {
        WAREHOUSES.map(|warehouses| {
            let [one, two] = [1, 2].map(|blades| database(points, scheme, blades, warehouses));
            Some(two? / one?)
        })
    };
    schemes.flat_map(of).collect()
}

/// Transactions of a lock and its data at so many blades, by those at two.
fn grows(points: &Points, algorithm: Algorithm, reads: u8) -> Option<f64> {
    let each = |blades| {
        one(points, Scheme::Compared(algorithm), blades, reads).map(Outcome::transactions_each)
    };
    Some(each(MOST)? / each(2)?)
}

/// The shortest time from the wish to lock and data between blades, in nanoseconds,
/// of locks above coherent memory.
fn fastest(points: &Points, platform: Platform, reads: u8) -> Option<f64> {
    let mut least = f64::INFINITY;
    for (algorithm, _) in COMPARED {
        let outcome = on(points, platform, Scheme::Compared(algorithm), reads)?;
        if algorithm != Service && !is_alone(outcome) {
            least = least.min(outcome.remote_mean());
        }
    }
    Some(least)
}

fn on(points: &Points, platform: Platform, scheme: Scheme, reads: u8) -> Option<&Outcome> {
    points.get(&Point::contended(scheme, MOST, reads).on(platform))
}

/// By how much GCP is there before the fastest other lock above coherent memory.
fn ahead(points: &Points, platform: Platform) -> Option<Vec<f64>> {
    let by = |reads| {
        let ours = on(points, platform, GCP, reads)?.remote_mean();
        Some(fastest(points, platform, reads)? / ours)
    };
    WRITTEN.into_iter().map(by).collect()
}

fn on_cxl(points: &Points, blades: u16, reads: u8) -> Option<f64> {
    let point = Point::contended(GCP, blades, reads).on(Platform::CXL);
    points.get(&point).map(Outcome::mops)
}

fn cxl_gain(points: &Points, reads: &[u8]) -> Option<Vec<f64>> {
    let gain = |&reads| Some(on_cxl(points, MOST, reads)? / one(points, GCP, MOST, reads)?.mops());
    reads.iter().map(gain).collect()
}

#[rustfmt::skip]
const CLAIMS: &[Claim] = &[
    Claim { figure: Figure::Fig7, place: "§5.1, Fig. 7", calibrated: true,
        says: "YCSB-C, 8 blades: Mops", paper: Range::one(37.1),
        ours: |p| Some(vec![store(p, GCP, MOST, C)?]) },
    Claim { figure: Figure::Fig7, place: "§5.1, Fig. 7", calibrated: false,
        says: "YCSB-C is linear: 8 blades by 1", paper: Range::one(8.0),
        ours: |p| Some(vec![store(p, GCP, MOST, C)? / store(p, GCP, 1, C)?]) },
    Claim { figure: Figure::Fig7, place: "§5.1, Fig. 7", calibrated: false,
        says: "YCSB-C, 8 blades: GCP over Pthread, MCS and Lock-Service", paper: Range::of(100.0, 1000.0),
        ours: |p| store_gain(p, C, &[Central, Mcs, Service]) },
    Claim { figure: Figure::Fig7, place: "§5.1, Fig. 7", calibrated: false,
        says: "YCSB-C, 8 blades: GCP over Cohort", paper: Range::of(100.0, 1000.0),
        ours: |p| store_gain(p, C, &[Cohort]) },
    Claim { figure: Figure::Fig7, place: "§5.1, Fig. 7", calibrated: false,
        says: "YCSB-C, 8 blades: GCP over Percpu", paper: Range::one(1.0),
        ours: |p| store_gain(p, C, &[PerNode]) },
    Claim { figure: Figure::Fig7, place: "§5.1, Fig. 7", calibrated: false,
        says: "YCSB-B, 8 blades: GCP over Percpu", paper: Range::from(1.0),
        ours: |p| store_gain(p, B, &[PerNode]) },
    Claim { figure: Figure::Fig7, place: "§1, §5.1", calibrated: false,
        says: "YCSB-A and -B, 8 blades: GCP over the others", paper: Range::of(10.0, 100.0),
        ours: |p| {
            let all = COMPARED.map(|row| row.0);
            let of = |reads| store_gain(p, reads, &all);
            Some([of(A)?, of(B)?].concat())
        } },
    Claim { figure: Figure::Fig7, place: "§5.1, Fig. 7", calibrated: false,
        says: "1 blade: the slowest other lock over Lock-Service", paper: Range::from(1.0),
        ours: |p| {
            let at = |algorithm| store(p, Scheme::Compared(algorithm), 1, B);
            let slowest = [at(Mcs)?, at(Central)?, at(PerNode)?, at(Cohort)?].into_iter().fold(f64::INFINITY, f64::min);
            Some(vec![slowest / at(Service)?])
        } },
    Claim { figure: Figure::Fig8, place: "§5.1, Fig. 8", calibrated: false,
        says: "8 blades: GCP by Cohort, the best of the others", paper: Range::one(1.0),
        ours: |p| database_gain(p, &[Cohort]) },
    Claim { figure: Figure::Fig8, place: "§5.1, Fig. 8", calibrated: false,
        says: "8 blades: GCP over MCS and Lock-Service", paper: Range::from(1.0),
        ours: |p| database_gain(p, &[Mcs, Service]) },
    Claim { figure: Figure::Fig8, place: "§5.1, Fig. 8", calibrated: false,
        says: "8 blades: GCP over Pthread and Percpu, which one blade has alone", paper: Range::from(1.0),
        ours: |p| database_gain(p, &[Central, PerNode]) },
    Claim { figure: Figure::Fig8, place: "§5.1, Fig. 8", calibrated: false,
        says: "all fall beyond one blade: 2 blades by 1, at most", paper: Range::up_to(1.0),
        ours: database_falls },
    Claim { figure: Figure::Fig9, place: "§5.2, Fig. 9", calibrated: false,
        says: "GCP: transactions per lock and data", paper: Range::one(1.0),
        ours: |p| {
            let of = |reads| SEVERAL.map(|blades| Some(one(p, GCP, blades, reads)?.transactions_each()));
            WRITTEN.into_iter().flat_map(of).collect()
        } },
    Claim { figure: Figure::Fig9, place: "§2.2", calibrated: false,
        says: "MCS: transactions per hand-over, without the data's", paper: Range::one(5.0),
        ours: |p| SEVERAL.map(|blades| Some(one(p, Scheme::Compared(Mcs), blades, 0)?.transactions_each() - 1.0)).into_iter().collect() },
    Claim { figure: Figure::Fig9, place: "§5.2, Fig. 9", calibrated: false,
        says: "Pthread's and Percpu's grow as the blades: at 8 by at 2", paper: Range::one(4.0),
        ours: |p| [grows(p, Central, A), grows(p, Central, B), grows(p, PerNode, A), grows(p, PerNode, B)].into_iter().collect() },
    Claim { figure: Figure::Fig9, place: "§5.2, Fig. 9", calibrated: false,
        says: "GCP, 8 blades: µs to lock and data between blades", paper: Range::of(100.0, 200.0),
        ours: |p| WRITTEN.into_iter().map(|reads| Some(one(p, GCP, MOST, reads)?.remote_mean() / 1e3)).collect() },
    Claim { figure: Figure::Fig9, place: "§5.2, Fig. 9", calibrated: false,
        says: "the fastest other lock's, by GCP's", paper: Range::one(10.0),
        ours: |p| ahead(p, Platform::ETHERNET) },
    Claim { figure: Figure::Fig9, place: "§5.2, Fig. 9", calibrated: false,
        says: "the same where what is dirty goes by way of its directory", paper: Range::one(10.0),
        ours: |p| ahead(p, Platform::GATHERED) },
    Claim { figure: Figure::Fig9, place: "§5.2, Fig. 9", calibrated: false,
        says: "Lock-Service's, by the fastest other lock's", paper: Range::one(1.0),
        ours: |p| WRITTEN.into_iter().map(|reads| Some(one(p, Scheme::Compared(Service), MOST, reads)?.remote_mean() / fastest(p, Platform::ETHERNET, reads)?)).collect() },
    Claim { figure: Figure::Fig10, place: "§5.3, Fig. 10", calibrated: false,
        says: "95% reads, median: w/o locality by GCP; tens of µs and under 1", paper: Range::from(10.0),
        ours: |p| {
            let median = |scheme| one(p, scheme, MOST, B).map(|outcome| outcome.percentile(50.0) as f64);
            Some(vec![median(Scheme::Evicted)? / median(GCP)?])
        } },
    Claim { figure: Figure::Fig10, place: "§5.3, Fig. 10", calibrated: false,
        says: "transactions w/o combined data, by GCP's", paper: Range::one(2.0),
        ours: |p| {
            let each = |scheme, reads| one(p, scheme, MOST, reads).map(Outcome::transactions_each);
            WRITTEN.into_iter().map(|reads| Some(each(Scheme::Separate, reads)? / each(GCP, reads)?)).collect()
        } },
    Claim { figure: Figure::Fig11, place: "§6, Fig. 11", calibrated: false,
        says: "8 blades, reads to 50%: throughput on CXL by that on Ethernet", paper: Range::one(10.0),
        ours: |p| cxl_gain(p, &WRITTEN[..2]) },
    Claim { figure: Figure::Fig11, place: "§6, Fig. 11", calibrated: false,
        says: "the same, reads from 95%", paper: Range::one(10.0),
        ours: |p| cxl_gain(p, &WRITTEN[2..]) },
    Claim { figure: Figure::Fig11, place: "§6, Fig. 11", calibrated: false,
        says: "99% reads on CXL, near-linear: 8 blades by 1", paper: Range::one(8.0),
        ours: |p| Some(vec![on_cxl(p, MOST, 99)? / on_cxl(p, BLADES[0], 99)?]) },
];

/// What can be said of the figures that were simulated.
pub fn claims(points: &Points, figures: &[Figure]) -> Vec<Judged> {
    let wanted = CLAIMS
        .iter()
        .filter(|claim| figures.contains(&claim.figure));
    let judge = |claim: &Claim| {
        let values = (claim.ours)(points)?;
        Judged::new(
            claim.place,
            claim.says,
            claim.paper,
            claim.calibrated,
            &values,
        )
    };
    wanted.filter_map(judge).collect()
}
