//! What the paper's text says of its figures, and what the model says to that.

use super::Points;
use super::figures::{
    Figure, LIGHT, LONG, Outcome, Point, SERIAL, SIZES, Way, depth_of, entries_of,
};
use crate::judged::{Judged, Range};
use rackmem_sim::sabre::soc::{After, Layout};

struct Claim {
    figure: Figure,
    place: &'static str,
    says: &'static str,
    paper: Range,
    calibrated: bool,
    ours: fn(&Points) -> Option<Vec<f64>>,
}

fn of(points: &Points, point: Point, what: fn(&Outcome) -> f64) -> Option<f64> {
    points.get(&point).map(what)
}

/// Percent of a read with versions that is the check.
fn share(points: &Points, bytes: u32) -> Option<Vec<f64>> {
    let outcome = points.get(&Point::alone(Way::Versions, After::Store, bytes))?;
    Some(vec![100.0 * outcome.check / outcome.latency])
}

/// A transfer's time by that of another way.
fn transfers(points: &Points, way: Way, by: Way, sizes: &[u32]) -> Option<Vec<f64>> {
    let time = |way, size| {
        of(points, Point::alone(way, After::Nothing, size), |o| {
            o.transfer
        })
    };
    sizes
        .iter()
        .map(|&size| Some(time(way, size)? / time(by, size)?))
        .collect()
}

/// By how many percent SABRes are above versions beside so many writers.
fn above(points: &Points, bytes: u32, writers: u8) -> Option<Vec<f64>> {
    let rate = |way| of(points, Point::beside(way, bytes, writers), |o| o.rate);
    Some(vec![100.0 * (rate(LIGHT)? / rate(Way::Versions)? - 1.0)])
}

/// By how many percent SABRes shorten a read.
fn shorter(points: &Points, after: After, bytes: u32) -> Option<Vec<f64>> {
    let time = |way| of(points, Point::alone(way, after, bytes), |o| o.latency);
    Some(vec![100.0 * (1.0 - time(LIGHT)? / time(Way::Versions)?)])
}

/// By how many percent reads of clean objects are above those with versions.
fn local(points: &Points, bytes: u32) -> Option<Vec<f64>> {
    let rate = |layout| of(points, Point::Local(layout, bytes), |o| o.rate);
    Some(vec![
        100.0 * (rate(Layout::Clean)? / rate(Layout::Versions)? - 1.0),
    ])
}

/// The most that an R2P2 serves, in GB/s.
fn peak(points: &Points, way: Way) -> Option<Vec<f64>> {
    let all = SIZES.map(|size| of(points, Point::many(way, size), |o| o.gigabytes / 4.0));
    let all: Option<Vec<f64>> = all.into_iter().collect();
    Some(vec![all?.into_iter().fold(0.0, f64::max)])
}

#[rustfmt::skip]
const CLAIMS: &[Claim] = &[
    Claim { figure: Figure::Fig1, place: "§2.3, Fig. 1", calibrated: true,
        says: "128 B: percent that is the check", paper: Range::one(10.0),
        ours: |p| share(p, 128) },
    Claim { figure: Figure::Fig1, place: "§2.3, Fig. 1", calibrated: true,
        says: "8 KB: percent that is the check", paper: Range::one(50.0),
        ours: |p| share(p, 8192) },
    Claim { figure: Figure::Fig7, place: "§7.1, Fig. 7a", calibrated: false,
        says: "a block: LightSABRes, without speculation too, by remote reads", paper: Range::one(1.0),
        ours: |p| Some([transfers(p, LIGHT, Way::Plain, &[64])?, transfers(p, SERIAL, Way::Plain, &[64])?].concat()) },
    Claim { figure: Figure::Fig7, place: "§7.1, Fig. 7a", calibrated: false,
        says: "128 B to 2 KB: LightSABRes by remote reads", paper: Range::one(1.0),
        ours: |p| transfers(p, LIGHT, Way::Plain, &SIZES[..5]) },
    Claim { figure: Figure::Fig7, place: "§7.1, Fig. 7a", calibrated: false,
        says: "4 and 8 KB: the same, slower", paper: Range::from(1.0),
        ours: |p| transfers(p, LIGHT, Way::Plain, &SIZES[5..]) },
    Claim { figure: Figure::Fig7, place: "§3.2, §7.1", calibrated: false,
        says: "two blocks: without speculation by LightSABRes", paper: Range::one(1.4),
        ours: |p| transfers(p, SERIAL, LIGHT, &[128]) },
    Claim { figure: Figure::Fig7, place: "§7.1, Fig. 7b", calibrated: false,
        says: "remote reads: GB/s of an R2P2 at the most", paper: Range::one(20.0),
        ours: |p| peak(p, Way::Plain) },
    Claim { figure: Figure::Fig7, place: "§7.1, Fig. 7b", calibrated: false,
        says: "LightSABRes: the same", paper: Range::one(20.0),
        ours: |p| peak(p, LIGHT) },
    Claim { figure: Figure::Fig7, place: "§7.1, Fig. 7b", calibrated: false,
        says: "without speculation: the same", paper: Range::one(20.0),
        ours: |p| peak(p, SERIAL) },
    Claim { figure: Figure::Fig8, place: "§7.2, Fig. 8", calibrated: false,
        says: "128 B, no writers: percent above versions", paper: Range::one(15.0),
        ours: |p| above(p, 128, 0) },
    Claim { figure: Figure::Fig8, place: "§7.2, Fig. 8", calibrated: false,
        says: "128 B, 16 writers", paper: Range::one(3.0),
        ours: |p| above(p, 128, 16) },
    Claim { figure: Figure::Fig8, place: "§7.2, Fig. 8", calibrated: false,
        says: "1 KB, no writers", paper: Range::one(30.0),
        ours: |p| above(p, 1024, 0) },
    Claim { figure: Figure::Fig8, place: "§7.2, Fig. 8", calibrated: false,
        says: "1 KB, 16 writers", paper: Range::one(41.0),
        ours: |p| above(p, 1024, 16) },
    Claim { figure: Figure::Fig8, place: "§7.2, Fig. 8", calibrated: false,
        says: "8 KB, no writers", paper: Range::one(87.0),
        ours: |p| above(p, 8192, 0) },
    Claim { figure: Figure::Fig8, place: "§7.2, Fig. 8", calibrated: false,
        says: "8 KB, 16 writers", paper: Range::one(97.0),
        ours: |p| above(p, 8192, 16) },
    Claim { figure: Figure::Fig9, place: "§7.3, Fig. 9a", calibrated: true,
        says: "128 B: percent that SABRes are shorter", paper: Range::one(35.0),
        ours: |p| shorter(p, After::Store, 128) },
    Claim { figure: Figure::Fig9, place: "§7.3, Fig. 9a", calibrated: true,
        says: "8 KB: percent that SABRes are shorter", paper: Range::one(52.0),
        ours: |p| shorter(p, After::Store, 8192) },
    Claim { figure: Figure::Fig9, place: "§7.3", calibrated: false,
        says: "8 KB with a perfect prefetcher", paper: Range::of(30.0, 35.0),
        ours: |p| shorter(p, After::Prefetched, 8192) },
    Claim { figure: Figure::Fig9, place: "§7.3, Fig. 9b", calibrated: false,
        says: "15 readers: percent above versions", paper: Range::of(30.0, 60.0),
        ours: |p| SIZES.into_iter().map(|size| {
            let rate = |way| of(p, Point::store(way, size), |o| o.rate);
            Some(100.0 * (rate(LIGHT)? / rate(Way::Versions)? - 1.0))
        }).collect() },
    Claim { figure: Figure::Fig10, place: "§7.3, Fig. 10", calibrated: false,
        says: "own memory, 128 B: percent above versions", paper: Range::one(20.0),
        ours: |p| local(p, 128) },
    Claim { figure: Figure::Fig10, place: "§7.3, Fig. 10", calibrated: false,
        says: "1 KB", paper: Range::one(53.0),
        ours: |p| local(p, 1024) },
    Claim { figure: Figure::Fig10, place: "§7.3, Fig. 10", calibrated: false,
        says: "8 KB", paper: Range::one(110.0),
        ours: |p| local(p, 8192) },
    Claim { figure: Figure::Sizing, place: "§5.1", calibrated: false,
        says: "128 B: throughput of 16 entries by that of 64", paper: Range::one(1.0),
        ours: |p| {
            let rate = |entries| of(p, Point::many(entries_of(entries), 128), |o| o.rate);
            Some(vec![rate(16)? / rate(64)?])
        } },
    Claim { figure: Figure::Sizing, place: "§5.1", calibrated: false,
        says: "4 KB: a transfer's time at depth 32 by that at 64", paper: Range::one(1.0),
        ours: |p| {
            let time = |depth| of(p, Point::alone(depth_of(depth), After::Nothing, LONG), |o| o.transfer);
            Some(vec![time(32)? / time(64)?])
        } },
];

/// What can be said of the figures that were simulated.
pub(super) fn claims(points: &Points, figures: &[Figure]) -> Vec<Judged> {
    let wanted = CLAIMS
        .iter()
        .filter(|claim| figures.contains(&claim.figure));
    let judge = |claim: &Claim| {
        let values = (claim.ours)(points)?;
        let Claim {
            place,
            says,
            paper,
            calibrated,
            ..
        } = *claim;
        Judged::new(place, says, paper, calibrated, &values)
    };
    wanted.filter_map(judge).collect()
}
