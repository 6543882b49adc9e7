//! Faults of a network: loss, duplication, delay (and with it reordering), partitions.
//!
//! What befalls a packet is drawn from a seed. Which packet gets which draw depends on how threads
//! take turns, so a seed repeats the amount of trouble and not the run; the simulator repeats runs.

use crate::End;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How bad a network is. Shares are of all packets, from 0 to 1, and independent of one another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Faults {
    /// Share of packets that are lost.
    pub loss: f64,
    /// Share of packets that arrive twice.
    pub duplication: f64,
    /// Share of packets that are held back, while later ones overtake them.
    pub delay: f64,
    /// For how long at most: any time up to this is as likely.
    pub delay_up_to: Duration,
    /// Where the draws begin.
    pub seed: u64,
}

impl Faults {
    /// A network without faults, which can be given some while it is used.
    pub const NONE: Faults = Faults {
        loss: 0.0,
        duplication: 0.0,
        delay: 0.0,
        delay_up_to: Duration::from_millis(2),
        seed: 1,
    };
    /// The longest time for which packets can be held back.
    pub const LONGEST_DELAY: Duration = Duration::from_secs(10);

    /// Loses, doubles and delays this share of packets each, for a millisecond at most.
    pub const fn rough(share: f64) -> Faults {
        Faults {
            loss: share,
            duplication: share,
            delay: share,
            delay_up_to: Duration::from_millis(1),
            ..Faults::NONE
        }
    }

    /// Whether these are shares and times that there can be.
    pub fn check(&self) -> Result<(), BadFaults> {
        let shares = [
            ("loss", self.loss),
            ("duplication", self.duplication),
            ("delay", self.delay),
        ];
        if let Some(&(name, share)) = shares.iter().find(|row| !(0.0..=1.0).contains(&row.1)) {
            return Err(BadFaults::Share { name, share });
        }
        if self.delay_up_to > Self::LONGEST_DELAY {
            return Err(BadFaults::Delay(self.delay_up_to));
        }
        Ok(())
    }
}

impl Default for Faults {
    fn default() -> Self {
        Faults::NONE
    }
}

/// Faults that there cannot be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BadFaults {
    /// A share that is not between 0 and 1.
    Share {
        /// Of what.
        name: &'static str,
        /// The share.
        share: f64,
    },
    /// Longer than [`Faults::LONGEST_DELAY`].
    Delay(Duration),
}

impl fmt::Display for BadFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadFaults::Share { name, share } => {
                write!(
                    f,
                    "{name} is a share from 0 to 1, such as 0.01, not {share}"
                )
            }
            BadFaults::Delay(time) => {
                let longest = Faults::LONGEST_DELAY;
                write!(
                    f,
                    "packets are delayed by {longest:?} at most, not {time:?}"
                )
            }
        }
    }
}

impl std::error::Error for BadFaults {}

/// How often each fault has struck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounts {
    /// Packets that were to be sent.
    pub packets: u64,
    /// Lost.
    pub lost: u64,
    /// Lost between ends that are parted.
    pub parted: u64,
    /// Sent twice.
    pub doubled: u64,
    /// Held back, duplicates counted by themselves.
    pub held_back: u64,
    /// Of these, sent at once because too many were held back already.
    pub no_room: u64,
}

/// Ends of a rack: its nodes and the switch.
const ENDS: usize = rackmem_wire::MAX_NODES + 1;

/// The faults of a running network, readable and adjustable from any thread.
pub struct FaultControl {
    /// Shares as parts of 2^32.
    loss: AtomicU64,
    duplication: AtomicU64,
    delay: AtomicU64,
    /// In nanoseconds.
    delay_up_to: AtomicU64,
    draws: AtomicU64,
    /// By sender: a bit for each end that it does not reach.
    parted: [AtomicU64; ENDS],
    counts: [AtomicU64; 6],
}

/// Places in `FaultControl::counts`.
#[derive(Clone, Copy)]
enum Count {
    Packets,
    Lost,
    Parted,
    Doubled,
    HeldBack,
    NoRoom,
}

/// What becomes of a packet, apart from its delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Delivered,
    Doubled,
    Lost,
    Parted,
}

impl FaultControl {
    /// A network with these faults.
    pub fn new(faults: Faults) -> Result<Self, BadFaults> {
        let control = FaultControl {
            loss: AtomicU64::new(0),
            duplication: AtomicU64::new(0),
            delay: AtomicU64::new(0),
            delay_up_to: AtomicU64::new(0),
            draws: AtomicU64::new(0),
            parted: [const { AtomicU64::new(0) }; ENDS],
            counts: [const { AtomicU64::new(0) }; 6],
        };
        control.set(faults)?;
        Ok(control)
    }

    /// Another weather from now on. Partitions stay.
    pub fn set(&self, faults: Faults) -> Result<(), BadFaults> {
        faults.check()?;
        let parts = |share: f64| (share * (1u64 << 32) as f64) as u64;
        self.loss.store(parts(faults.loss), Relaxed);
        self.duplication.store(parts(faults.duplication), Relaxed);
        self.delay.store(parts(faults.delay), Relaxed);
        let longest = u64::try_from(faults.delay_up_to.as_nanos()).unwrap_or(u64::MAX);
        self.delay_up_to.store(longest, Relaxed);
        self.draws.store(splitmix(faults.seed), Relaxed);
        Ok(())
    }

    /// From now on nothing gets from any of `one` to any of `other`, nor back.
    pub fn part(&self, one: &[End], other: &[End]) {
        for &from in one {
            for &to in other {
                self.cut(from, to);
                self.cut(to, from);
            }
        }
    }

    /// From now on nothing gets `from` one end `to` another; the way back stays open.
    pub fn cut(&self, from: End, to: End) {
        self.parted[place(from)].fetch_or(1 << place(to), Relaxed);
    }

    /// Ends all partitions.
    pub fn heal(&self) {
        self.parted.iter().for_each(|row| row.store(0, Relaxed));
    }

    /// What has happened so far.
    pub fn counts(&self) -> FaultCounts {
        let count = |which: Count| self.counts[which as usize].load(Relaxed);
        FaultCounts {
            packets: count(Count::Packets),
            lost: count(Count::Lost),
            parted: count(Count::Parted),
            doubled: count(Count::Doubled),
            held_back: count(Count::HeldBack),
            no_room: count(Count::NoRoom),
        }
    }

    pub(crate) fn judge(&self, from: End, to: Option<End>) -> Verdict {
        self.count(Count::Packets);
        let parted = self.parted[place(from)].load(Relaxed);
        if to.is_some_and(|to| parted >> place(to) & 1 == 1) {
            self.count(Count::Parted);
            return Verdict::Parted;
        }
        if self.strikes(&self.loss) {
            self.count(Count::Lost);
            return Verdict::Lost;
        }
        if self.strikes(&self.duplication) {
            self.count(Count::Doubled);
            return Verdict::Doubled;
        }
        Verdict::Delivered
    }

    /// For how long a packet is held back, if it is.
    pub(crate) fn hold_back(&self) -> Option<Duration> {
        if !self.strikes(&self.delay) {
            return None;
        }
        self.count(Count::HeldBack);
        let longest = self.delay_up_to.load(Relaxed);
        // At most ten seconds: the product of a 32-bit fraction and 34 bits does not overflow in
        // 128.
        let part = (u128::from(self.draw() >> 32) * u128::from(longest)) >> 32;
        Some(Duration::from_nanos(part as u64))
    }

    pub(crate) fn no_room(&self) {
        self.count(Count::NoRoom);
    }

    fn count(&self, which: Count) {
        self.counts[which as usize].fetch_add(1, Relaxed);
    }

    fn strikes(&self, share: &AtomicU64) -> bool {
        let share = share.load(Relaxed);
        share > 0 && self.draw() >> 32 < share
    }

    fn draw(&self) -> u64 {
        splitmix(self.draws.fetch_add(1, Relaxed))
    }
}

fn place(end: End) -> usize {
    match end {
        End::Node(node) => usize::from(node).min(ENDS - 2),
        End::Switch => ENDS - 1,
    }
}

/// The output function of the SplitMix64 generator: a bijection that scatters.
fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_kept_and_repeat_with_the_seed() {
        let faults = Faults {
            loss: 0.05,
            duplication: 0.02,
            ..Faults::NONE
        };
        let fates = |seed| {
            let control = FaultControl::new(Faults { seed, ..faults }).unwrap();
            let all: Vec<_> = (0..100_000)
                .map(|_| control.judge(End::Switch, Some(End::Node(1))))
                .collect();
            (all, control.counts())
        };
        let (first, counts) = fates(7);
        assert_eq!(first, fates(7).0);
        assert_ne!(first, fates(8).0);
        assert_eq!(counts.packets, 100_000);
        assert!((4_700..5_300).contains(&counts.lost), "{counts:?}");
        assert!((1_700..2_100).contains(&counts.doubled), "{counts:?}");
        assert_eq!(counts.parted, 0);
    }

    #[test]
    fn never_and_always_are_meant() {
        let control = FaultControl::new(Faults::NONE).unwrap();
        let fate = || control.judge(End::Node(0), Some(End::Node(1)));
        assert!((0..1000).all(|_| fate() == Verdict::Delivered));
        assert!((0..1000).all(|_| control.hold_back().is_none()));
        let loss = 1.0;
        control
            .set(Faults {
                loss,
                ..Faults::NONE
            })
            .unwrap();
        assert!((0..1000).all(|_| fate() == Verdict::Lost));
    }

    #[test]
    fn a_partition_separates_two_sides_and_heals() {
        let control = FaultControl::new(Faults::NONE).unwrap();
        let (a, b, c) = (End::Node(0), End::Node(31), End::Switch);
        let open = |from, to| control.judge(from, Some(to)) == Verdict::Delivered;
        control.part(&[a], &[b, c]);
        assert!(!open(a, b) && !open(b, a) && !open(a, c) && !open(c, a));
        assert!(open(b, c) && open(c, b) && open(a, a));
        control.heal();
        control.cut(a, b);
        assert!(!open(a, b) && open(b, a));
        control.heal();
        assert!(open(a, b));
        assert_eq!(control.counts().parted, 5);
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for loss in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let faults = Faults {
                loss,
                ..Faults::NONE
            };
            let error = faults.check().unwrap_err().to_string();
            assert!(error.contains("loss is a share"), "{error}");
        }
        let delay_up_to = Duration::from_secs(11);
        let error = Faults {
            delay_up_to,
            ..Faults::NONE
        }
        .check()
        .unwrap_err();
        assert_eq!(error, BadFaults::Delay(delay_up_to));
    }
}
