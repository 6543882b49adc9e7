//! Sequence numbers in the switch: a register has room for the low half of one,
//! beside what became of its event.
//!
//! A register's words have 32 bits, and its unit compares one of them with the packet's.
//! So "newer" is modulo 2^32 here: a number is older than the register's if it is less than
//! [`WINDOW`] behind. That is enough:
//!
//! - *No late copy is taken for a new event.* It would have to be late by 2^31 events of one
//!   requester, which has one at a time, each of a round trip: three minutes at 10 million events a
//!   second, in one epoch. A copy that waits at the switch itself waits in front of these events.
//! - *No new event is taken for a late copy*, however many calls that do not concern the switch its
//!   requester has made since it was here last: senders of numbers to the switch skip those
//!   that its register would take for old ([`newer`]).
//!
//! An epoch begins with empty registers, which hold zero. Homes keep whole numbers,
//! and compare them as they are.

use crate::flowcc::score::Row;
use crate::wire::Seq;
use core::cmp::Ordering;

/// How far behind a register's number an older one may be.
pub const WINDOW: u32 = 1 << 31;

/// How a packet's number stands to that of a register.
#[inline]
pub const fn order(seq: Seq, register: u32) -> Ordering {
    match register.wrapping_sub(seq.low()) {
        0 => Ordering::Equal,
        1..WINDOW => Ordering::Less,
        _ => Ordering::Greater,
    }
}

/// The first number from `seq` on, and of its parity, that a register which holds `shown`, an
/// earlier number, takes for newer.
pub const fn newer(seq: Seq, shown: Seq) -> Seq {
    let ahead = seq.0.wrapping_sub(shown.0);
    if ahead != 0 && ahead <= WINDOW as u64 {
        return seq;
    }
    let step = if seq.parity() == shown.parity() { 2 } else { 1 };
    let skip = shown.low().wrapping_add(step).wrapping_sub(seq.low());
    Seq(seq.0.wrapping_add(skip as u64))
}

/// What an empty register stands for, to a requester that has come to this number.
pub const fn empty(seq: Seq) -> Seq {
    Seq(seq.0 & !(u32::MAX as u64))
}

/// A score in a register: `seq << 32 | word`.
impl Row for u64 {
    #[inline]
    fn order(&self, seq: Seq) -> Ordering {
        order(seq, (*self >> 32) as u32)
    }

    #[inline]
    fn word(&self) -> u32 {
        *self as u32
    }

    #[inline]
    fn put(&mut self, seq: Seq, word: u32) {
        *self = u64::from(seq.low()) << 32 | u64::from(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_keep_their_order_across_the_wrap() {
        assert_eq!(order(Seq(1 << 32), u32::MAX), Ordering::Greater);
        assert_eq!(order(Seq(u32::MAX.into()), 0), Ordering::Less);
        assert_eq!(order(Seq(7 << 32 | 7), 7), Ordering::Equal);
        assert_eq!(order(Seq(0x8000_0000), 0), Ordering::Greater);
        assert_eq!(order(Seq(0x8000_0001), 0), Ordering::Less);
        assert_eq!(order(Seq(9), 9 + WINDOW), Ordering::Greater);
        assert_eq!(order(Seq(9), 8 + WINDOW), Ordering::Less);
    }

    #[test]
    fn what_is_shown_is_newer_than_what_was_shown_before() {
        let far = [
            0u64,
            1,
            2,
            3,
            0x7fff_ffff,
            0x8000_0000,
            0x8000_0001,
            0xffff_ffff,
            1 << 32,
            9 << 40,
        ];
        let starts = [0, 1, 2, 0x8000_0000, 0xffff_fffe, 0xffff_ffff, 5 << 32 | 77];
        for (shown, ahead) in starts.into_iter().flat_map(|s| far.map(|a| (Seq(s), a))) {
            let seq = Seq(shown.0 + ahead);
            let next = newer(seq, shown);
            assert_eq!(
                order(next, shown.low()),
                Ordering::Greater,
                "{shown:?} {seq:?}"
            );
            assert_eq!(next.parity(), seq.parity());
            assert!(next >= seq && next.0 - seq.0 < 1 << 32);
            assert_eq!(next == seq, order(seq, shown.low()) == Ordering::Greater);
        }
    }

    #[test]
    fn an_empty_register_takes_whatever_is_shown_first() {
        for seq in [1, 0x8000_0000, 0x8000_0001, 0xffff_ffff, 1 << 32, 3 << 33] {
            let next = newer(Seq(seq), empty(Seq(seq)));
            assert_eq!(order(next, 0), Ordering::Greater, "{seq:#x}");
        }
    }
}
