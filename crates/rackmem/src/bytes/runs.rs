//! Runs of faults of a mapping: a few at a time, whichever threads they are of.
//!
//! Threads may find and lose a run at the same moment. Then a page comes by a fault that could have
//! come before, or a page is asked for twice, of which the second finds it.

use rackmem_proto::pages::Run;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Runs at a time. Faults that go on with none take the place of the oldest one.
const RUNS: usize = 16;

/// See the module.
#[derive(Default)]
pub(super) struct Runs {
    words: [AtomicU64; RUNS],
    began: AtomicUsize,
}

impl Runs {
    /// The run that a fault goes on with, and its place. Otherwise it begins one.
    pub fn fault(&self, page: usize) -> Option<(usize, Run)> {
        let runs = self.words.iter().map(|word| Run::of(word.load(Relaxed)));
        let found = runs.enumerate().find(|(_, run)| run.has(page));
        if found.is_none() {
            let place = self.began.fetch_add(1, Relaxed) % RUNS;
            self.put(place, Run::begins(page));
        }
        found
    }

    pub fn put(&self, place: usize, run: Run) {
        self.words[place].store(run.bits(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_runs_of_their_own_and_one_that_jumps_takes_the_oldest() {
        let runs = Runs::default();
        for page in [100, 200, 300] {
            assert_eq!(runs.fault(page), None);
        }
        for (place, page) in [101, 201, 301].into_iter().enumerate() {
            let (found, run) = runs.fault(page).unwrap();
            assert_eq!(found, place);
            runs.put(place, run.came(page + 2));
        }
        for page in 0..RUNS - 1 {
            assert_eq!(runs.fault(1000 * page + 5), None);
        }
        // Two of the first three have given way.
        let left = [303, 203, 103].map(|page| runs.fault(page).is_some());
        assert_eq!(left, [true, false, false]);
    }
}
