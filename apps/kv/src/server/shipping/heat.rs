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
//!
//! **A worker that hardly writes sends no reads.** What is read by all and written by few is cheap
//! where it is read, and what was learned while it was written says nothing of that: after a load
//! by all nodes every bucket is hot. So its reads run here, they make no bucket warmer, and one
//! that has to wait takes the heat from its bucket. A command that finds everything here then
//! costs no look at any table.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

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
const RECENT: u64 = 256;
/// As many of them are many that wait: 30 %.
const MANY: u64 = 77;
/// A worker hardly writes once fewer of them have written than this, 1 of 16,
const HARDLY: u64 = RECENT / 16;
/// and does write from this on, 1 of 8: a worker in between is what it was.
const WRITES: u64 = RECENT / 8;
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

    /// A read of a worker that hardly writes has fetched it: what made it hot is over.
    pub fn fetched(&self, bucket: usize) {
        if self.is_hot(bucket) {
            self.warm(bucket);
        }
    }

    /// Two waits, and it is hot again.
    fn warm(&self, bucket: usize) {
        self.set(bucket, Heat::Cool(WARM));
    }
}

/// What a worker's commands are like lately: as the last [`RECENT`] were that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manner(u8);

impl Manner {
    /// They have to wait often, whatever their buckets.
    pub const MANY_WAIT: Self = Self(1);
    /// They hardly write.
    pub const HARDLY_WRITES: Self = Self(2);
    /// Meanwhile others have sent commands to this server.
    const SERVES: Self = Self(4);

    pub fn is(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn with(self, other: Self, on: bool) -> Self {
        Self(self.0 & !other.0 | if on { other.0 } else { 0 })
    }
}

/// What of a count is commands, waits and writes: numbers of 16 bits.
const A_COMMAND: u64 = 1;
const A_WAIT: u64 = 1 << 16;
const A_WRITE: u64 = 1 << 32;
const NUMBER: u64 = 0xffff;

/// What a worker's commands have cost lately.
#[derive(Default)]
pub(super) struct Recent {
    /// Those of the next look.
    counts: AtomicU64,
    manner: AtomicU8,
    sent: AtomicU32,
    /// What the server had done for others at the last look.
    served: AtomicU32,
}

impl Recent {
    /// A command has run here, or was sent: then it would have waited. Threads of a worker that
    /// count at the same time may lose one. `served`: commands that others have sent here, ever.
    pub fn count(&self, waited: bool, writes: bool, served: &AtomicU32) {
        let (wait, write) = (u64::from(waited) * A_WAIT, u64::from(writes) * A_WRITE);
        let counts = self.counts.load(Relaxed) + A_COMMAND + wait + write;
        if counts & NUMBER < RECENT {
            self.counts.store(counts, Relaxed);
        } else {
            self.counts.store(0, Relaxed);
            self.look(counts, served.load(Relaxed));
        }
    }

    #[cold]
    fn look(&self, counts: u64, served: u32) {
        let [waits, writes] = [A_WAIT, A_WRITE].map(|one| (counts / one) & NUMBER);
        let before = self.manner();
        let hardly = writes < HARDLY || writes < WRITES && before.is(Manner::HARDLY_WRITES);
        let serves = self.served.swap(served, Relaxed) != served;
        let manner = Manner::default()
            .with(Manner::MANY_WAIT, waits >= MANY)
            .with(Manner::HARDLY_WRITES, hardly)
            .with(Manner::SERVES, serves);
        self.manner.store(manner.0, Relaxed);
    }

    pub fn manner(&self) -> Manner {
        Manner(self.manner.load(Relaxed))
    }

    /// Whether others have sent commands to this server since the look before the last.
    pub fn serves(&self, served: &AtomicU32) -> bool {
        let since = self.served.load(Relaxed) != served.load(Relaxed);
        since || self.manner().is(Manner::SERVES)
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

    /// A worker's manner after so many more commands, of which these wait and write.
    fn manner(recent: &Recent, waits: u64, writes: u64, served: u32) -> Manner {
        let served = AtomicU32::new(served);
        (0..RECENT).for_each(|nth| recent.count(nth < waits, nth < writes, &served));
        recent.manner()
    }

    #[test]
    fn three_waits_of_ten_commands_are_many() {
        let recent = Recent::default();
        let many = |waits| manner(&recent, waits, RECENT, 0).is(Manner::MANY_WAIT);
        assert!(!many(0) && !many(MANY - 1));
        assert!(many(MANY) && many(RECENT));
        assert!(!many(MANY - 1));
    }

    #[test]
    fn a_worker_hardly_writes_below_one_of_sixteen_and_until_one_of_eight() {
        let recent = Recent::default();
        assert!(!recent.manner().is(Manner::HARDLY_WRITES), "nobody knows");
        let hardly = |writes| manner(&recent, 0, writes, 0).is(Manner::HARDLY_WRITES);
        assert!(!hardly(RECENT) && !hardly(HARDLY));
        assert!(hardly(HARDLY - 1) && hardly(HARDLY) && hardly(WRITES - 1));
        assert!(!hardly(WRITES) && !hardly(WRITES - 1));
        assert!(hardly(0));
    }

    #[test]
    fn who_is_sent_something_serves_until_a_while_after_the_last() {
        let recent = Recent::default();
        let told = [0, 1, 1, 5, 5].map(|n| manner(&recent, 0, 0, n).is(Manner::SERVES));
        assert_eq!(told, [false, true, false, true, false]);
        let serves = |served| recent.serves(&AtomicU32::new(served));
        assert!(!serves(5) && serves(6));
    }

    #[test]
    fn a_read_that_fetches_a_hot_bucket_leaves_it_warm_and_others_as_they_are() {
        let table = Table::new();
        table.heat(3);
        (3..5).for_each(|bucket| table.fetched(bucket));
        assert!(table.hot() == 0 && table.is_new(4));
        (0..2).for_each(|_| table.ran(3, true, false));
        assert!(table.is_hot(3));
    }
}
