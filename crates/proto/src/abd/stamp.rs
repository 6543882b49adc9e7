//! Stamps: the timestamps of §II-B, made safe for requesters that restart.

use crate::wire::{MAX_NODES, MAX_REQUESTERS, RequesterId};

/// What orders the writes of a line: `round:37 | incarnation:16 | node:5 | slot:6`.
///
/// This is the paper's `t = pM + i`, with M = 2^27 and an *i* that names one life of a requester
/// (CNVMM §II-B). So no two writes have one stamp, even if a requester's memory of its own stamps
/// is gone: whoever restarts is another *i*.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Stamp(pub u64);

const WRITER_BITS: u32 = 27;
const NODE_AT: u32 = 6;
const INCARNATION_AT: u32 = 11;

impl Stamp {
    /// That of a line that nobody has written.
    pub const NONE: Stamp = Stamp(0);
    /// The highest round.
    pub const LAST_ROUND: u64 = (1 << (64 - WRITER_BITS)) - 1;

    /// The paper's *p*.
    #[inline]
    pub const fn round(self) -> u64 {
        self.0 >> WRITER_BITS
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

    /// Its stamp of this round. None: rounds are used up, which takes 2^37 writes of a line,
    /// or a packet that lies.
    pub const fn stamp(self, round: u64) -> Option<Stamp> {
        if round > Stamp::LAST_ROUND {
            return None;
        }
        Some(Stamp(round << WRITER_BITS | self.0 as u64))
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
    fn what_has_no_room_is_refused() {
        let last = Writer::new(WHO, Writer::LAST_INCARNATION).unwrap();
        assert!(last.stamp(Stamp::LAST_ROUND).is_some());
        assert_eq!(last.stamp(Stamp::LAST_ROUND + 1), None);
        assert_eq!(Writer::new(WHO, Writer::LAST_INCARNATION + 1), None);
        assert_eq!(Writer::new(RequesterId { node: 32, slot: 0 }, 1), None);
    }
}
