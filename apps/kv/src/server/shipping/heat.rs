//! Whether a bucket's commands are sent to its home, by counts of what they have cost here.
//!
//! A command that had to wait for other nodes makes its bucket warmer, one that found everything
//! here makes it cooler. Where more than a quarter of them wait, a bucket grows hot after a while,
//! and its commands are sent. How long a wait was is of no interest: it would tell how busy the
//! machine is.
//!
//! | state | meaning | after a command that ran here |
//! |---|---|---|
//! | new | no command of this server has used the bucket | cool, 0: the first one has to fetch it |
//! | fresh | its home has said that it had better be here | cool, [`WARM`]: the same |
//! | cool | it has some heat | + [`WAITED`] if it waited, otherwise - 1 |
//! | hot | commands are sent | hot: there is no link just now |
//!
//! A bucket is hot from [`HOT`] on. Where three of ten of a worker's commands have to wait,
//! whatever their buckets, it is so from [`SOON`] on, and new ones are at once:
//! what most buckets do, the next one is likely to do as well, and most are used too seldom to wait
//! for proof.
//!
//! A hot bucket becomes fresh when its home says so (`uses.rs`). And in case what clients do has
//! changed in a way that its home cannot see, one of [`TRIES`] commands runs here. Both leave the
//! bucket so warm that two waits make it hot again, if that was wrong.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use crate::layout::superblock::MOST_DEPTH;

/// Heat from which on commands are sent.
const HOT: u8 = 24;
/// The same where many commands wait.
const SOON: u8 = 6;
/// Heat of a bucket that was hot: two waits more, and it is again.
const WARM: u8 = HOT - 2 * WAITED;
/// Heat of one wait. A command without one takes 1, so a bucket grows hot where more than a quarter
/// of its commands wait.
const WAITED: u8 = 3;
/// How often a command of a hot bucket runs here.
const TRIES: u32 = 1024;
/// Commands of a worker that are counted together.
const RECENT: u32 = 256;
/// As many of them are many that wait: 30 %.
const MANY: u32 = 77;
/// Buckets that are told apart: all that there can be.
pub(super) const BUCKETS: usize = 1 << MOST_DEPTH;

/// How warm a bucket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heat {
    New,
    Fresh,
    Cool(u8),
    Hot,
}

impl Heat {
    /// As a byte, of which 0 is new.
    fn packed(self) -> u8 {
        match self {
            Self::New => 0,
            Self::Fresh => 1,
            Self::Cool(heat) => 2 + heat.min(HOT - 1),
            Self::Hot => 2 + HOT,
        }
    }

    fn unpacked(byte: u8) -> Self {
        match byte {
            0 => Self::New,
            1 => Self::Fresh,
            byte => match byte - 2 {
                heat if heat >= HOT => Self::Hot,
                heat => Self::Cool(heat),
            },
        }
    }

    /// After a command that ran here. `hot`: from which heat on it is.
    fn after(self, waited: bool, hot: u8) -> Self {
        match self {
            Self::New => Self::Cool(0),
            Self::Fresh => Self::Cool(WARM),
            Self::Cool(heat) if waited && heat + WAITED >= hot => Self::Hot,
            Self::Cool(heat) if waited => Self::Cool(heat + WAITED),
            Self::Cool(heat) => Self::Cool(heat.saturating_sub(1)),
            Self::Hot => Self::Hot,
        }
    }
}

/// How warm all buckets are, as one server's commands have found them.
pub(super) struct Table {
    /// Threads that use a bucket at the same time may lose a step of one of them.
    heats: Box<[AtomicU8]>,
    hot: AtomicUsize,
}

impl Table {
    pub fn new() -> Self {
        Self {
            heats: (0..BUCKETS).map(|_| AtomicU8::new(0)).collect(),
            hot: AtomicUsize::new(0),
        }
    }

    fn get(&self, bucket: usize) -> Heat {
        Heat::unpacked(self.heats[bucket % BUCKETS].load(Relaxed))
    }

    fn set(&self, bucket: usize, heat: Heat) {
        let old = self.heats[bucket % BUCKETS].swap(heat.packed(), Relaxed);
        match (Heat::unpacked(old), heat) {
            (Heat::Hot, Heat::Hot) => {}
            (Heat::Hot, _) => _ = self.hot.fetch_sub(1, Relaxed),
            (_, Heat::Hot) => _ = self.hot.fetch_add(1, Relaxed),
            _ => {}
        }
    }

    /// Buckets whose commands are sent.
    pub fn hot(&self) -> usize {
        self.hot.load(Relaxed)
    }

    pub fn is_hot(&self, bucket: usize) -> bool {
        self.get(bucket) == Heat::Hot
    }

    pub fn is_new(&self, bucket: usize) -> bool {
        self.get(bucket) == Heat::New
    }

    /// Its commands are sent from now on.
    pub fn heat(&self, bucket: usize) {
        self.set(bucket, Heat::Hot);
    }

    /// A command of the bucket has run here. `many`: as [`Recent::many_wait`] says.
    pub fn ran(&self, bucket: usize, waited: bool, many: bool) {
        let heat = self.get(bucket);
        let after = heat.after(waited, if many { SOON } else { HOT });
        if after != heat {
            self.set(bucket, after);
        }
    }

    /// Its home says that it had better be here.
    pub fn bring(&self, bucket: usize) {
        self.set(bucket, Heat::Fresh);
    }

    /// Its home is here: there is nobody to send to.
    pub fn cool(&self, bucket: usize) {
        self.set(bucket, Heat::Cool(0));
    }

    /// One of its commands is tried here.
    fn warm(&self, bucket: usize) {
        self.set(bucket, Heat::Cool(WARM));
    }
}

/// What a worker's commands have cost lately.
#[derive(Default)]
pub(super) struct Recent {
    commands: AtomicU32,
    waits: AtomicU32,
    /// Whether many of the last [`RECENT`] have waited.
    many: AtomicU32,
    sent: AtomicU32,
}

impl Recent {
    /// A command has run here, or was sent: then it would have waited. Threads of a worker that
    /// count at the same time may lose one.
    pub fn count(&self, waited: bool) {
        let commands = self.commands.load(Relaxed) + 1;
        let waits = self.waits.load(Relaxed) + u32::from(waited);
        if commands >= RECENT {
            self.many.store(u32::from(waits >= MANY), Relaxed);
            self.commands.store(0, Relaxed);
            self.waits.store(0, Relaxed);
        } else {
            self.commands.store(commands, Relaxed);
            self.waits.store(waits, Relaxed);
        }
    }

    /// Whether commands have to wait often, whatever their buckets.
    pub fn many_wait(&self) -> bool {
        self.many.load(Relaxed) != 0
    }

    /// Whether this command of a hot bucket is to be tried here. Then the bucket is warm.
    pub fn tries(&self, table: &Table, bucket: usize) -> bool {
        let sent = self.sent.load(Relaxed).wrapping_add(1);
        self.sent.store(sent, Relaxed);
        let tries = sent.is_multiple_of(TRIES);
        if tries {
            table.warm(bucket);
        }
        tries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heat_is_a_byte_and_nothing_written_is_new() {
        let cool = (0..HOT).map(Heat::Cool);
        for heat in [Heat::New, Heat::Fresh, Heat::Hot].into_iter().chain(cool) {
            assert_eq!(Heat::unpacked(heat.packed()), heat);
        }
        assert_eq!(Heat::unpacked(0), Heat::New);
        assert_eq!(Heat::unpacked(255), Heat::Hot);
    }

    /// Commands until a bucket is hot, where one of `every` waits.
    fn until_hot(every: usize) -> Option<usize> {
        let table = Table::new();
        (1..10_000).find(|nth| {
            table.ran(7, nth % every == 0, false);
            table.is_hot(7)
        })
    }

    #[test]
    fn a_bucket_grows_hot_where_more_than_a_quarter_of_its_commands_wait() {
        // The first one fetches, and does not count.
        assert_eq!(until_hot(1), Some(9));
        assert_eq!(until_hot(2), Some(24));
        assert!(until_hot(3).is_some());
        assert_eq!(until_hot(4), None);
        assert_eq!(until_hot(20), None);
    }

    #[test]
    fn a_hot_bucket_stays_so_until_it_is_brought_or_tried() {
        let table = Table::new();
        table.heat(3);
        table.heat(3);
        (0..100).for_each(|_| table.ran(3, false, false));
        assert!(table.is_hot(3) && table.hot() == 1);
        table.bring(3);
        assert!(!table.is_hot(3) && !table.is_new(3) && table.hot() == 0);
        // The wait in which it comes is none of its own. If more follow, that was wrong.
        (0..2).for_each(|_| table.ran(3, true, false));
        assert!(!table.is_hot(3));
        table.ran(3, true, false);
        assert!(table.is_hot(3) && !table.is_hot(4));
        // And if none follow, it is as cool as any.
        table.bring(3);
        (0..40).for_each(|_| table.ran(3, false, false));
        (0..7).for_each(|_| table.ran(3, true, false));
        assert!(!table.is_hot(3) && !table.is_new(3));
        table.ran(3, true, false);

        let recent = Recent::default();
        let tried = (0..2 * TRIES).filter(|_| recent.tries(&table, 3)).count();
        assert_eq!((tried, table.hot()), (2, 0));
        table.ran(3, true, false);
        assert!(!table.is_hot(3));
        table.ran(3, true, false);
        assert!(table.is_hot(3) && table.hot() == 1);
    }

    #[test]
    fn two_waits_are_enough_where_many_commands_wait() {
        let table = Table::new();
        (0..2).for_each(|_| table.ran(5, true, true));
        assert!(!table.is_hot(5));
        table.ran(5, true, true);
        assert!(table.is_hot(5));
        (0..3).for_each(|nth| table.ran(6, nth != 1, true));
        assert!(!table.is_hot(6));
    }

    #[test]
    fn three_waits_of_ten_commands_are_many() {
        let recent = Recent::default();
        let run = |waits: u32| {
            (0..RECENT).for_each(|nth| recent.count(nth < waits));
            recent.many_wait()
        };
        assert!(!run(0) && !run(MANY - 1));
        assert!(run(MANY) && run(RECENT));
        assert!(!run(MANY - 1));
    }
}
