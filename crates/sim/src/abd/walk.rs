//! One seeded way through a larger rack, and its history judged by the checker of histories.

use super::scenario::Scenario;
use super::system::{Lines, Move};
use super::world::World;
use crate::driver::{self, Complaint, Guide};
use crate::linear::{self, Verdict};
use crate::world::Random;
use rackmem_proto::abd::Defect;

/// Moves after which a walk is given up.
const LONGEST: u64 = 200_000;

/// What a walk has broken, and how.
#[derive(Debug)]
pub struct Broken {
    /// The promise, where it is made, and what was seen.
    pub complaint: Complaint,
    /// What happened.
    pub story: Vec<String>,
}

/// Faults come seldom, or a budget is used up at the beginning.
struct Chance(Random);

impl Guide<Lines> for Chance {
    fn choose(&mut self, _: &World, moves: &[Move]) -> Option<Move> {
        let faults = self.0.below(24) == 0;
        let likely: Vec<Move> = moves
            .iter()
            .copied()
            .filter(|m| m.is_fault() == faults)
            .collect();
        let from = if likely.is_empty() {
            moves
        } else {
            &likely[..]
        };
        let nth = self.0.below(from.len() as u64);
        from.get(nth as usize).copied()
    }
}

/// Goes one way, and says how many moves it took.
pub fn walk(scenario: &Scenario, seed: u64, defect: Option<Defect>) -> Result<usize, Broken> {
    let mut lines = Lines::new(*scenario, defect, true);
    let (way, end, broken) = driver::walk(&mut lines, &mut Chance(Random::new(seed)), LONGEST);
    let verdict = linear::check(end.judge.history(), linear::Limits::default());
    let complaint = match (broken, verdict) {
        (Some(complaint), _) => complaint,
        (None, Verdict::Linearizable(_)) => return Ok(way.len()),
        (None, verdict) => (
            "histories are linearizable",
            "Herlihy, Wing",
            verdict.to_string(),
        ),
    };
    let story = driver::story(&mut lines, &way, 80);
    Err(Broken { complaint, story })
}
