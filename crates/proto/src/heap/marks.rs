//! A set of blocks, as runs that do not touch.

use alloc::collections::BTreeMap;
use core::ops::Range;

/// See the module. Positions count blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Marks {
    /// Ends by beginnings.
    runs: BTreeMap<u64, u64>,
}

impl Marks {
    /// These are in the set from now on. Says whether none of them was before.
    pub fn add(&mut self, run: Range<u64>) -> bool {
        if run.is_empty() {
            return true;
        }
        let (mut from, mut to, mut none) = (run.start, run.end, true);
        while let Some((&start, &end)) = self.runs.range(..=to).next_back()
            && end >= from
        {
            if start <= from && to <= end {
                return false;
            }
            none &= end <= run.start || run.end <= start;
            (from, to) = (from.min(start), to.max(end));
            self.runs.remove(&start);
        }
        self.runs.insert(from, to);
        none
    }

    /// These are not, from now on.
    pub fn remove(&mut self, run: Range<u64>) {
        if run.is_empty() {
            return;
        }
        while let Some((&start, &end)) = self.runs.range(..run.end).next_back()
            && end > run.start
        {
            self.runs.remove(&start);
            for (from, to) in [(start, run.start), (run.end, end)] {
                if from < to {
                    self.runs.insert(from, to);
                }
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|(start, end)| end - start).sum()
    }

    /// The first run of the set from a block on, as far as it is behind that.
    pub fn first_from(&self, from: u64) -> Option<Range<u64>> {
        let inside = self.runs.range(..=from).next_back();
        let inside = inside.filter(|(_, end)| **end > from);
        let (start, end) = inside.or_else(|| self.runs.range(from..).next())?;
        Some(from.max(*start)..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn marks_are_a_set() {
        const BLOCKS: u64 = 40;
        let (mut marks, mut plain) = (Marks::default(), [false; BLOCKS as usize]);
        let mut random = 1u64;
        for step in 0..20_000 {
            let [from, len] = [BLOCKS, 8].map(|below| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % below
            });
            let run = from..(from + len).min(BLOCKS);
            let bits = &mut plain[run.start as usize..run.end as usize];
            if step % 3 == 0 {
                let none = !bits.contains(&true);
                assert_eq!(marks.add(run.clone()), none);
                bits.fill(true);
            } else if step % 3 == 1 {
                marks.remove(run);
                bits.fill(false);
            }
            let first = (from..BLOCKS).find(|at| plain[*at as usize]);
            let found = marks.first_from(from);
            assert_eq!(found.as_ref().map(|run| run.start), first);
            if let Some(run) = found {
                assert!((run.clone()).all(|at| plain[at as usize]));
                assert!(run.end == BLOCKS || !plain[run.end as usize]);
            }
            let count = plain.iter().filter(|is| **is).count();
            assert_eq!(marks.count(), count as u64);
            let runs: Vec<_> = marks.runs.iter().collect();
            assert!(runs.windows(2).all(|two| two[0].1 < two[1].0));
        }
    }
}
