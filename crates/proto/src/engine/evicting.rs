//! Which blocks leave a full set of a cache before their room is needed.
//!
//! A thread whose miss finds its set full has a block leave first, and waits for that, before its
//! own event begins. So whose event fills the last free entry of a set has the next victim leave
//! beside it ([`next_out`]), and the next miss finds room. But then a set has one entry less: one
//! whose blocks just fit would lose one for nothing, again and again, and of few blocks that are
//! used at random more would miss. So each set has credit, by what comes after what has left:
//!
//! | what happens | credit |
//! |---|---|
//! | a block has left, for need or ahead of it, and another one comes | once more, [`MOST`] at most |
//! | a block has left, and is the next to come: it might have stayed | [`REGRET`] less |
//!
//! From [`ENOUGH`] on, blocks of the set leave ahead of need. Where nothing is evicted there is no
//! credit. A scan of more than fits has all of it; of blocks that are used at random the one that
//! has left comes next as seldom as it takes where there are more than twice as many as fit, and
//! one entry less makes no more misses than are made up for.
//!
//! Nothing of the protocol rests on this: a block may leave at any time.

use super::access::{Entries, Purpose};
use crate::wire::Tag;

/// Credit from which on blocks leave ahead of need.
pub const ENOUGH: u8 = 8;
/// The most that a set has.
pub const MOST: u8 = 16;
/// What a block costs that might have stayed.
pub const REGRET: u8 = 8;

/// What is known of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pressure {
    credit: u8,
    /// The block that has left last, until another one comes.
    left: Option<Tag>,
    /// The one that has come last: it may be asked for several times until it is here.
    came: Option<Tag>,
}

impl Pressure {
    /// Whether the next victim leaves ahead of need.
    pub fn evicts_ahead(self) -> bool {
        self.credit >= ENOUGH
    }

    /// An event brings this block, or first has another one leave for it.
    pub fn comes(&mut self, block: Tag) {
        if self.came.replace(block) == Some(block) {
            return;
        }
        self.credit = match self.left.take() {
            None => self.credit,
            Some(left) if left == block => self.credit.saturating_sub(REGRET),
            Some(_) => MOST.min(self.credit + 1),
        };
    }

    /// This block leaves, so that others have room.
    pub fn leaves(&mut self, block: Tag) {
        self.left = Some(block);
    }
}

/// The block that leaves beside an event of this purpose which is about to bring a block: the same
/// that would have to leave next, unless there is still room, or another one leaves already.
pub fn next_out<C: Entries>(
    cache: &C,
    block: C::Block,
    purpose: Purpose,
) -> Option<(C::Entry, C::Block)> {
    if !purpose.fetches() || cache.makes_room(block) {
        return None;
    }
    let (entry, old) = cache.room(block)?;
    Some((entry, old?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A set that has been scanned.
    fn pressed() -> Pressure {
        let mut set = Pressure::default();
        for block in 0..=u64::from(MOST) {
            set.comes(Tag(block + 100));
            set.leaves(Tag(block));
        }
        set
    }

    #[test]
    fn a_set_that_never_had_to_evict_does_not_begin() {
        let mut set = Pressure::default();
        (0..100).for_each(|block| set.comes(Tag(block)));
        assert_eq!(set.credit, 0);
        for block in 0..=u64::from(ENOUGH) {
            assert!(!set.evicts_ahead());
            set.comes(Tag(block + 100));
            // Asked for again.
            set.comes(Tag(block + 100));
            set.leaves(Tag(block));
        }
        assert!(set.evicts_ahead());
    }

    #[test]
    fn a_set_whose_blocks_fit_loses_few_for_nothing() {
        let (mut set, mut lost) = (pressed(), 0);
        set.comes(Tag(6));
        while set.evicts_ahead() {
            set.leaves(Tag(6 + lost % 2));
            set.comes(Tag(6 + lost % 2));
            lost += 1;
        }
        assert!(lost <= 3, "{lost}");
        (0..100).for_each(|block| set.comes(Tag(block)));
        assert!(!set.evicts_ahead());
    }

    /// Blocks of a set of eight that are used in an order: how many misses, and for how many of
    /// them a block had to leave first.
    fn used(order: impl Iterator<Item = u64>, ahead: bool) -> (u32, u32) {
        let (mut set, mut here) = (Pressure::default(), Vec::new());
        let (mut misses, mut waits) = (0, 0);
        for block in order.map(Tag) {
            if let Some(at) = here.iter().position(|tag| *tag == block) {
                here.remove(at);
                here.push(block);
                continue;
            }
            misses += 1;
            set.comes(block);
            if here.len() == 8 {
                waits += 1;
                set.leaves(here.remove(0));
            }
            here.push(block);
            if ahead && here.len() == 8 && set.evicts_ahead() {
                set.leaves(here.remove(0));
            }
        }
        (misses, waits)
    }

    /// What they cost by what they did before: a miss one, and so much more if a block has to leave
    /// first.
    fn cost(order: impl Iterator<Item = u64> + Clone, waiting: f64) -> f64 {
        let cost = |ahead| {
            let (misses, waits) = used(order.clone(), ahead);
            f64::from(misses) + waiting * f64::from(waits)
        };
        cost(true) / cost(false)
    }

    #[test]
    fn a_scan_of_more_than_fits_finds_room() {
        for (blocks, most) in [(8, 1.0), (9, 1.0), (10, 0.51), (16, 0.51), (100, 0.51)] {
            let cost = cost((0..10_000).map(|nth| nth % blocks), 1.0);
            assert!(cost <= most, "{blocks} blocks: {cost}");
        }
    }

    #[test]
    fn blocks_that_are_used_at_random_cost_no_more_than_before() {
        let random = |blocks: u64| {
            let step = move |state: &mut u64| {
                *state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                Some((*state >> 33) % blocks)
            };
            core::iter::repeat_n((), 20_000).scan(1u64, move |state, ()| step(state))
        };
        for (blocks, most) in [
            (8, 1.0),
            (9, 1.01),
            (12, 1.01),
            (16, 1.0),
            (32, 0.7),
            (64, 0.6),
        ] {
            let cost = cost(random(blocks), 1.0);
            assert!(cost <= most, "{blocks} blocks: {cost}");
        }
        // Where there is little to wait for, there is little to lose.
        for blocks in [8, 9, 10, 12, 16, 24, 32] {
            let cost = cost(random(blocks), 0.25);
            assert!(cost <= 1.02, "{blocks} blocks: {cost}");
        }
    }
}
