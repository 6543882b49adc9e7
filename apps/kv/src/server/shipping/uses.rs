//! Who uses a bucket, as its home sees: whether one of those who send commands had better fetch it.
//!
//! A bucket is worth fetching where one node uses it many times in a row, or where nobody writes to
//! it: then all who read have it at the same time. Both are runs that the home counts, of the
//! commands that are sent to it and of those of its own clients.

use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use super::heat::BUCKETS;

/// A run of so many uses by one node makes a bucket worth fetching, and so does one of so many
/// reads. Where half of the commands write, one use in 256 ends such a run by chance.
const RUN: u16 = 8;

/// The last uses of one bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Last {
    /// Who used it last. At first node 0, which has not used it once.
    node: u16,
    /// How often in a row.
    same: u16,
    /// And how many reads there were in a row, of anybody.
    reads: u16,
}

impl Last {
    /// 5 bits for the node (`rackmem_wire` has 32 of them), 4 for each run.
    fn packed(self) -> u16 {
        self.node & 31 | self.same.min(RUN) << 5 | self.reads.min(RUN) << 9
    }

    fn unpacked(bits: u16) -> Self {
        Self {
            node: bits & 31,
            same: bits >> 5 & 15,
            reads: bits >> 9 & 15,
        }
    }

    fn after(self, node: u16, reads: bool) -> Self {
        let same = if self.node == node { self.same } else { 0 };
        Self {
            node,
            same: (same + 1).min(RUN),
            reads: if reads { (self.reads + 1).min(RUN) } else { 0 },
        }
    }

    fn is_worth_fetching(self) -> bool {
        self.same >= RUN || self.reads >= RUN
    }
}

/// The last uses of all buckets.
pub(super) struct Uses(Box<[AtomicU16]>);

impl Uses {
    pub fn new() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU16::new(0)).collect())
    }

    /// A node uses a bucket. Whether it had better have it. Of two at the same time one may be
    /// lost: runs are counted to save work, not to be right.
    pub fn note(&self, bucket: usize, node: u16, reads: bool) -> bool {
        let place = &self.0[bucket % BUCKETS];
        let before = place.load(Relaxed);
        let last = Last::unpacked(before).after(node, reads);
        let now = last.packed();
        if now != before {
            place.store(now, Relaxed);
        }
        last.is_worth_fetching()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_a_word() {
        for node in [0, 1, 31] {
            for (same, reads) in [(0, 0), (RUN, 3), (1, RUN)] {
                let last = Last { node, same, reads };
                assert_eq!(Last::unpacked(last.packed()), last);
            }
        }
    }

    /// How many of these uses it takes until the last one's node is to fetch the bucket.
    fn until_worth(uses: impl IntoIterator<Item = (u16, bool)>) -> Option<usize> {
        let table = Uses::new();
        let mut uses = uses.into_iter();
        uses.position(|(node, reads)| table.note(9, node, reads))
            .map(|at| at + 1)
    }

    #[test]
    fn a_bucket_that_one_node_uses_is_worth_fetching_and_one_that_nobody_writes() {
        assert_eq!(until_worth([(2, false); 20]), Some(8));
        assert_eq!(until_worth([(0, false); 20]), Some(8));
        // Another one's use begins a run of its own.
        let mut broken = vec![(2, false); 7];
        broken.push((1, false));
        broken.extend([(2, false); 8]);
        assert_eq!(until_worth(broken), Some(16));
        let turns = |reads| (0..100u16).map(move |nth| (nth % 3, reads));
        assert_eq!(until_worth(turns(true)), Some(8));
        assert_eq!(until_worth(turns(false)), None);
        // A write in eight, and all nodes.
        assert_eq!(until_worth((0..100).map(|n| (n % 3, n % 8 != 0))), None);
    }

    #[test]
    fn buckets_are_apart() {
        let table = Uses::new();
        assert!((0..100).all(|bucket| !table.note(bucket, 1, true)));
    }
}
