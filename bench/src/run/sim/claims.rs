//! What the paper's text says of its figures, and what the model says to that.

use super::figures::{Figure, HEAVY, LIGHT, located};
use super::points::Points;
use super::{Outcome, Workload};
use crate::judged::{Judged, Range};
use rackmem_sim::model::System::{self, Delegate, Directory, HomeOnly, Switch};

struct Claim {
    figure: Figure,
    place: &'static str,
    says: &'static str,
    paper: Range,
    calibrated: bool,
    ours: fn(&Seen<'_>) -> Option<Vec<f64>>,
}

/// The points, by what a claim varies.
struct Seen<'a> {
    points: &'a Points,
    base: Workload,
}

impl Seen<'_> {
    fn at(&self, system: System, workload: Workload) -> Option<&Outcome> {
        self.points.get(system, &workload)
    }

    /// One value for each sharing.
    fn sharing(&self, list: &[u8], of: impl Fn(Workload) -> Option<f64>) -> Option<Vec<f64>> {
        let base = self.base;
        let list = list.iter();
        list.map(|&sharing| of(base.sharing(sharing))).collect()
    }

    /// One value for each read ratio.
    fn reads(
        &self,
        sharing: u8,
        list: &[u8],
        of: impl Fn(Workload) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        let base = self.base.sharing(sharing);
        let list = list.iter();
        list.map(|&reads| of(Workload { reads, ..base })).collect()
    }

    fn rate(&self, system: System, workload: Workload) -> Option<f64> {
        self.at(system, workload).map(Outcome::mops)
    }

    /// By how much one system is faster than another.
    fn gain(&self, system: System, over: System, workload: Workload) -> Option<f64> {
        Some(self.rate(system, workload)? / self.rate(over, workload)?)
    }

    /// By how much a system is faster with one sharing than with another.
    fn falls(&self, system: System, from: u8, to: u8) -> Option<Vec<f64>> {
        let rates = self.sharing(&[from, to], |w| self.rate(system, w))?;
        Some(vec![rates[0] / rates[1]])
    }

    fn home_packets(&self, system: System, workload: Workload) -> Option<f64> {
        let outcome = self.at(system, workload)?;
        Some(outcome.per_operation(outcome.home_packets))
    }

    fn located(&self, system: System, locality: u8) -> Option<f64> {
        self.rate(system, located(self.base, locality))
    }
}

const SHARING: [u8; 6] = [0, 20, 40, 60, 80, 100];
const SHARED: [u8; 5] = [20, 40, 60, 80, 100];
const LARGE: [u8; 4] = [40, 60, 80, 100];
const WRITING: [u8; 3] = [0, 25, 50];

/// The greatest of some values by the least.
fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    values.iter().copied().fold(0.0, f64::max) / least
}

#[rustfmt::skip]
const CLAIMS: &[Claim] = &[
    Claim { figure: Figure::Fig2, place: "§3.1, Fig. 2a", calibrated: false,
        says: "GAM at 20% sharing, by its throughput at 0%", paper: Range::one(0.25),
        ours: |s| Some(vec![1.0 / s.falls(Directory, 0, 20)?[0]]) },
    Claim { figure: Figure::Fig2, place: "§3.1, Fig. 2b", calibrated: false,
        says: "GAM's packets at 20% sharing, by those at 0%", paper: Range::one(18.0),
        ours: |s| {
            let packets = s.sharing(&[0, 20], |w| s.at(Directory, w).map(|o| o.per_operation(o.packets)))?;
            Some(vec![packets[1] / packets[0]])
        } },
    Claim { figure: Figure::Fig9, place: "§7.2.1, Fig. 9", calibrated: true,
        says: "GAM falls from 0% to 100% sharing", paper: Range::one(17.0),
        ours: |s| s.falls(Directory, 0, 100) },
    Claim { figure: Figure::Fig9, place: "§7.2.1, Fig. 9", calibrated: true,
        says: "Concordia-base falls from 0% to 100% sharing", paper: Range::one(3.8),
        ours: |s| s.falls(HomeOnly, 0, 100) },
    Claim { figure: Figure::Fig9, place: "§7.2.1, Fig. 9", calibrated: false,
        says: "GAM over Concordia at 0% sharing", paper: Range::from(1.0),
        ours: |s| s.sharing(&[0], |w| s.gain(Directory, Switch, w)) },
    Claim { figure: Figure::Fig9, place: "§7.2.1, Fig. 9", calibrated: false,
        says: "Concordia-base over GAM, sharing 20% to 100%", paper: Range::of(1.25, 3.5),
        ours: |s| s.sharing(&SHARED, |w| s.gain(HomeOnly, Directory, w)) },
    Claim { figure: Figure::Fig9, place: "§7.2.1, Fig. 9", calibrated: false,
        says: "Concordia over Concordia-base, sharing above 20%", paper: Range::of(1.3, 1.48),
        ours: |s| s.sharing(&LARGE, |w| s.gain(Switch, HomeOnly, w)) },
    Claim { figure: Figure::Fig9, place: "§7.2.1, Fig. 9", calibrated: false,
        says: "the slowest of the others over Grappa", paper: Range::from(1.0),
        ours: |s| s.sharing(&SHARING, |w| s.gain(Directory, Delegate, w)) },
    Claim { figure: Figure::Fig10, place: "§7.2.1", calibrated: false,
        says: "hits at 100% sharing", paper: Range::one(0.39),
        ours: |s| s.sharing(&[100], |w| s.at(Switch, w).map(Outcome::hit_rate)) },
    Claim { figure: Figure::Fig10, place: "§7.2.1, Fig. 10", calibrated: false,
        says: "home agents' packets with the switch, most by least", paper: Range::one(1.0),
        ours: |s| Some(vec![spread(&s.sharing(&SHARING, |w| s.home_packets(Switch, w))?)]) },
    Claim { figure: Figure::Fig10, place: "§7.2.1, Fig. 10", calibrated: false,
        says: "fewer packets at home agents by the switch, at most", paper: Range::one(4.8),
        ours: |s| {
            let fewer = s.sharing(&SHARING, |w| Some(s.home_packets(HomeOnly, w)? / s.home_packets(Switch, w)?))?;
            Some(vec![fewer.into_iter().fold(0.0, f64::max)])
        } },
    Claim { figure: Figure::Fig11, place: "§7.2.2, Fig. 11", calibrated: false,
        says: "20% sharing, reads to 50%: Concordia over base", paper: Range::one(1.22),
        ours: |s| s.reads(LIGHT, &WRITING, |w| s.gain(Switch, HomeOnly, w)) },
    Claim { figure: Figure::Fig11, place: "§7.2.2, Fig. 11", calibrated: false,
        says: "20% sharing, reads to 50%: Concordia over GAM", paper: Range::of(3.5, 3.9),
        ours: |s| s.reads(LIGHT, &WRITING, |w| s.gain(Switch, Directory, w)) },
    Claim { figure: Figure::Fig11, place: "§7.2.2, Fig. 11", calibrated: false,
        says: "60% sharing, reads to 50%: Concordia over base", paper: Range::of(1.48, 1.5),
        ours: |s| s.reads(HEAVY, &WRITING, |w| s.gain(Switch, HomeOnly, w)) },
    Claim { figure: Figure::Fig11, place: "§7.2.2, Fig. 11", calibrated: false,
        says: "60% sharing, reads to 50%: Concordia over GAM", paper: Range::of(4.5, 5.1),
        ours: |s| s.reads(HEAVY, &WRITING, |w| s.gain(Switch, Directory, w)) },
    Claim { figure: Figure::Fig11, place: "§7.2.2, Fig. 11", calibrated: false,
        says: "stable for reads to 50%: most by least, all but Grappa", paper: Range::one(1.0),
        ours: |s| {
            let of = |sharing, system| s.reads(sharing, &WRITING, |w| s.rate(system, w)).map(|rates| spread(&rates));
            [LIGHT, HEAVY].into_iter().flat_map(|sharing| [Switch, HomeOnly, Directory].map(|one| of(sharing, one))).collect()
        } },
    Claim { figure: Figure::Fig11, place: "§7.2.2, Fig. 11", calibrated: false,
        says: "20% sharing, reads 100%: GAM over Concordia", paper: Range::from(1.0),
        ours: |s| s.reads(LIGHT, &[100], |w| s.gain(Directory, Switch, w)) },
    Claim { figure: Figure::Fig11, place: "§7.2.2", calibrated: true,
        says: "60% sharing, reads 100%: Concordia, Mops", paper: Range::one(60.0),
        ours: |s| s.reads(HEAVY, &[100], |w| s.rate(Switch, w)) },
    Claim { figure: Figure::Fig11, place: "§7.2.2", calibrated: true,
        says: "60% sharing, reads 100%: GAM, Mops", paper: Range::one(16.0),
        ours: |s| s.reads(HEAVY, &[100], |w| s.rate(Directory, w)) },
    Claim { figure: Figure::Fig12, place: "§7.2.3", calibrated: true,
        says: "locality 100%: Concordia, Mops", paper: Range::one(133.0),
        ours: |s| Some(vec![s.located(Switch, 100)?]) },
    Claim { figure: Figure::Fig12, place: "§7.2.3", calibrated: true,
        says: "locality 100%: GAM, Mops", paper: Range::one(23.0),
        ours: |s| Some(vec![s.located(Directory, 100)?]) },
    Claim { figure: Figure::Fig12, place: "§7.2.3, Fig. 12", calibrated: false,
        says: "Grappa at locality 100%, by its throughput at 0%", paper: Range::one(1.0),
        ours: |s| Some(vec![s.located(Delegate, 100)? / s.located(Delegate, 0)?]) },
];

/// What can be said of the figures that were simulated.
pub fn claims(points: &Points, figures: &[Figure], base: Workload) -> Vec<Judged> {
    let seen = Seen { points, base };
    let wanted = CLAIMS
        .iter()
        .filter(|claim| figures.contains(&claim.figure));
    wanted.filter_map(|claim| judge(claim, &seen)).collect()
}

fn judge(claim: &Claim, seen: &Seen<'_>) -> Option<Judged> {
    let Claim {
        place,
        says,
        paper,
        calibrated,
        ..
    } = *claim;
    Judged::new(place, says, paper, calibrated, &(claim.ours)(seen)?)
}
