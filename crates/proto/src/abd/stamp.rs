//! Stamps: the timestamps of §II-B, made safe for requesters that restart.

use crate::wire::{MAX_NODES, MAX_REQUESTERS, RequesterId};

/// What orders the writes of a line: `round:36 | chosen:1 | incarnation:16 | node:5 | slot:6`.
///
/// This is the paper's `t = pM + i`, with M = 2^28 and an *i* that names one life of a requester
/// (CNVMM §II-B). So no two writes have one stamp, even if a requester's memory of its own stamps
/// is gone: a requester that restarts is another *i*. `chosen` says that a switch has chosen the
/// round: a requester whose write of one round was cut off does not know its stamp, and must not
/// choose the same one for its next write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Stamp(pub u64);

const WRITER_BITS: u32 = 28;
const CHOSEN: u64 = 1 << 27;
const NODE_AT: u32 = 6;
const INCARNATION_AT: u32 = 11;

impl Stamp {
    /// That of a line that nobody has written.
    pub const NONE: Stamp = Stamp(0);
    /// The highest round.
    pub const LAST_ROUND: u64 = (1 << (64 - WRITER_BITS)) - 1;

    /// The highest count of an epoch ([`Stamp::of_epoch`]).
    pub const LAST_COUNT: u32 = (1 << 31) - 1;

    /// One of a group that epochs fence, which has one writer in each epoch: the epoch first, so
    /// that whatever is written in a later one is higher than all that was begun before, wherever
    /// that may have come. The bits in which other stamps name their requester are a number here.
    pub const fn of_epoch(epoch: u32, count: u32) -> Option<Stamp> {
        if count > Stamp::LAST_COUNT {
            return None;
        }
        let (high, low) = ((count >> 27) as u64, count as u64 & (CHOSEN - 1));
        Some(Stamp((epoch as u64) << 32 | high << WRITER_BITS | low))
    }

    /// The epoch and the count of one that [`Stamp::of_epoch`] has made.
    pub const fn epoch_and_count(self) -> (u32, u32) {
        let high = (self.0 >> WRITER_BITS & 0xf) as u32;
        (
            (self.0 >> 32) as u32,
            high << 27 | (self.0 & (CHOSEN - 1)) as u32,
        )
    }

    /// The paper's *p*.
    #[inline]
    pub const fn round(self) -> u64 {
        self.0 >> WRITER_BITS
    }

    /// Whether a switch has chosen it.
    #[inline]
    pub const fn is_chosen(self) -> bool {
        self.0 & CHOSEN != 0
    }
}

/// One life of a requester: the paper's *i*.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Writer(u32);

impl Writer {
    /// The highest incarnation of a node that can write: there is no room for more in a stamp.
    pub const LAST_INCARNATION: u32 = u16::MAX as u32;

    /// None: the node has started too often, or it is none of a rack.
    pub const fn new(requester: RequesterId, incarnation: u32) -> Option<Self> {
        let in_rack =
            (requester.node as usize) < MAX_NODES && (requester.slot as usize) < MAX_REQUESTERS;
        if !in_rack || incarnation > Self::LAST_INCARNATION {
            return None;
        }
        let who = (requester.node as u32) << NODE_AT | requester.slot as u32;
        Some(Writer(incarnation << INCARNATION_AT | who))
    }

    /// Its stamp of this round. None: rounds are used up, which takes 2^36 writes of a line,
    /// or a packet that lies.
    pub const fn stamp(self, round: u64) -> Option<Stamp> {
        if round > Stamp::LAST_ROUND {
            return None;
        }
        Some(Stamp(round << WRITER_BITS | self.0 as u64))
    }

    /// The same, as a switch chooses it.
    pub const fn chosen(self, round: u64) -> Option<Stamp> {
        match self.stamp(round) {
            Some(stamp) => Some(Stamp(stamp.0 | CHOSEN)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: RequesterId = RequesterId { node: 31, slot: 63 };

    #[test]
    fn a_higher_round_is_a_higher_stamp_whoever_writes() {
        let low = Writer::new(RequesterId { node: 0, slot: 0 }, 1).unwrap();
        let high = Writer::new(WHO, Writer::LAST_INCARNATION).unwrap();
        assert!(high.stamp(1) < low.stamp(2));
        assert!(low.stamp(1) < high.stamp(1));
        assert_eq!(high.stamp(7).unwrap().round(), 7);
        assert!(low.stamp(1).unwrap() > Stamp::NONE);
    }

    #[test]
    fn lives_of_a_requester_share_no_stamp() {
        let lives = [1, 2].map(|incarnation| Writer::new(WHO, incarnation).unwrap());
        assert_ne!(lives[0].stamp(5), lives[1].stamp(5));
        let other = RequesterId { node: 31, slot: 62 };
        assert_ne!(lives[0].stamp(5), Writer::new(other, 1).unwrap().stamp(5));
    }

    #[test]
    fn what_a_switch_chooses_a_requester_does_not() {
        let writer = Writer::new(WHO, Writer::LAST_INCARNATION).unwrap();
        let (own, chosen) = (writer.stamp(5).unwrap(), writer.chosen(5).unwrap());
        assert_ne!(own, chosen);
        assert!(chosen.is_chosen() && !own.is_chosen());
        assert_eq!((chosen.round(), own.round()), (5, 5));
        assert!(chosen < writer.stamp(6).unwrap());
    }

    #[test]
    fn what_a_later_epoch_writes_is_higher() {
        let mut last = Stamp::NONE;
        for epoch in [1, 2, 3, 1 << 20, u32::MAX] {
            for count in [1, 2, (1 << 27) - 1, 1 << 27, Stamp::LAST_COUNT] {
                let stamp = Stamp::of_epoch(epoch, count).unwrap();
                assert!(stamp > last && !stamp.is_chosen());
                assert_eq!(stamp.epoch_and_count(), (epoch, count));
                last = stamp;
            }
        }
        assert_eq!(Stamp::of_epoch(7, Stamp::LAST_COUNT + 1), None);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let last = Writer::new(WHO, Writer::LAST_INCARNATION).unwrap();
        assert!(last.stamp(Stamp::LAST_ROUND).is_some());
        assert_eq!(last.stamp(Stamp::LAST_ROUND + 1), None);
        assert_eq!(Writer::new(WHO, Writer::LAST_INCARNATION + 1), None);
        assert_eq!(Writer::new(RequesterId { node: 32, slot: 0 }, 1), None);
    }
}
