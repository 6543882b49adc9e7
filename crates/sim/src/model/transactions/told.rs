//! What transactions of the model lock, for a comparison with those that the model is of.

use super::database::{Database, What};
use super::mix::{Kind, Part, Terminal};
use crate::world::Random;
use std::collections::BTreeMap;

/// How often a lock of each sort is taken, and whether to write.
pub type Taken = BTreeMap<(What, bool), usize>;

/// Draws so many transactions of a kind, of a terminal of a warehouse that is alone, and tells what
/// each part of them locks.
pub fn taken(kind: Kind, scale: u32, (draws, seed): (usize, u64)) -> Vec<Vec<Taken>> {
    let base = Database::new(1, scale);
    let mut random = Random::new(seed);
    let mut terminal = Terminal::new(base, 0, (1, 0));
    let taken = |part: &Part| {
        let mut taken = Taken::new();
        for (lock, writes) in part.iter().filter_map(|need| need.lock()) {
            *taken.entry((base.what(lock), writes)).or_default() += 1;
        }
        taken
    };
    (0..draws)
        .map(|_| terminal.of(kind, &mut random).iter().map(taken).collect())
        .collect()
}
