//! How a program uses a page that nodes take from each other, as far as faults tell.
//!
//! A load brings a page to be read, and a store after it takes it from everybody else a second
//! time: two events, and two shootdowns at who has had it. Where that is what a node does with a
//! page, its loads ask for stores at once.
//!
//! | a page came for | and then | loads from there on |
//! |---|---|---|
//! | a load | a store, [`TWICE`] | ask for stores |
//! | a load that asked for stores | it was taken without a store | ask for loads |
//! | a load that asked for stores | a store, or nobody looked | ask for stores |
//!
//! Nobody sees stores of a page that is open. So one in [`ROUNDS`] times a page that has come for
//! stores is shown for loads only: the store is a fault that asks nobody, and tells.

use super::Right;

/// How often a store must follow a load.
const TWICE: u8 = 2;
/// A page is shown for loads only when it has come so often.
const ROUNDS: u8 = 8;

/// See the module. Whatever it is, no right is more than the copy allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Habit {
    /// Below [`TWICE`]: how often a store has followed a load. From there on loads ask for stores,
    /// and it counts down to the time when one is shown for loads only.
    rounds: u8,
    /// The page has come for a load, and nobody has stored since, as far as is known.
    loaded: bool,
}

impl Habit {
    /// Bits of [`Habit::bits`].
    pub const BITS: u32 = 5;

    /// Of a page whose loads ask for stores, and where that is known for sure.
    pub const fn asking() -> Habit {
        Habit {
            rounds: TWICE + ROUNDS - 1,
            loaded: false,
        }
    }

    /// For a host that keeps it with other things.
    pub const fn bits(self) -> u64 {
        (self.rounds as u64) << 1 | self.loaded as u64
    }

    /// What [`Habit::bits`] has said; whatever the bits are, it is one.
    pub const fn of(bits: u64) -> Habit {
        Habit {
            rounds: (bits >> 1 & 0xf) as u8,
            loaded: bits & 1 != 0,
        }
    }

    /// Whether a fault asks home for the right to store.
    pub const fn asks(self, stores: bool) -> bool {
        stores || self.rounds >= TWICE
    }

    /// An event has brought the page, for a load or for a store, and with or without the right to
    /// store: the right that is shown.
    pub fn came(&mut self, stores: bool, granted: Right) -> Right {
        let shown = match (stores, granted) {
            (_, Right::Hidden | Right::Load) => granted,
            (true, Right::Store) => Right::Store,
            (false, Right::Store) if self.rounds <= TWICE => Right::Load,
            (false, Right::Store) => {
                self.rounds -= 1;
                Right::Store
            }
        };
        self.loaded = shown == Right::Load;
        shown
    }

    /// A store is about to have the right that a page lacked which was here.
    pub fn stored(&mut self) {
        if !core::mem::take(&mut self.loaded) {
            return;
        }
        self.rounds = match self.rounds + 1 < TWICE {
            true => self.rounds + 1,
            false => Habit::asking().rounds,
        };
    }

    /// Another node takes the page, or a part of the right.
    pub fn taken(&mut self) {
        if core::mem::take(&mut self.loaded) {
            self.rounds = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load, and a store after it, and then another node takes the page: how many events that
    /// was, and how many faults.
    fn turn(habit: &mut Habit, stores: bool) -> (u32, u32) {
        let asks = habit.asks(false);
        let granted = Right::wanted(asks);
        let shown = habit.came(false, granted);
        let mut cost = (1, 1);
        if stores && shown != Right::Store {
            habit.stored();
            cost = (cost.0 + u32::from(granted != Right::Store), cost.1 + 1);
        }
        habit.taken();
        cost
    }

    #[test]
    fn a_load_asks_for_stores_where_a_store_has_followed_twice() {
        let mut habit = Habit::default();
        assert_eq!(
            [turn(&mut habit, true), turn(&mut habit, true)],
            [(2, 2); 2]
        );
        // One time in eight it is looked at.
        for _ in 0..3 {
            for _ in 1..ROUNDS {
                assert_eq!(turn(&mut habit, true), (1, 1));
            }
            assert_eq!(turn(&mut habit, true), (1, 2));
        }
    }

    #[test]
    fn who_only_loads_asks_for_loads_again() {
        let mut habit = Habit::asking();
        let turns = (0..ROUNDS + 3).map(|_| {
            let asks = habit.asks(false);
            turn(&mut habit, false);
            asks
        });
        let turns: alloc::vec::Vec<bool> = turns.collect();
        assert_eq!(
            turns.iter().filter(|asks| **asks).count(),
            usize::from(ROUNDS)
        );
        assert!(turns.is_sorted_by_key(|asks| !asks));
    }

    #[test]
    fn a_store_alone_or_a_load_alone_is_no_habit() {
        let mut habit = Habit::default();
        for _ in 0..9 {
            assert_eq!(habit.came(true, Right::Store), Right::Store);
            habit.taken();
            turn(&mut habit, false);
            assert!(!habit.asks(false) && habit.asks(true));
        }
        // Who stores is read by another node, and stores again: it has not loaded in between.
        for _ in 0..9 {
            habit.came(true, Right::Store);
            habit.taken();
            habit.stored();
            assert!(!habit.asks(false));
        }
    }

    #[test]
    fn a_right_is_never_more_than_was_granted() {
        for bits in 0..1 << Habit::BITS {
            let kept = Habit::of(bits);
            assert_eq!(kept.bits(), bits);
            for (stores, granted) in [
                (false, Right::Load),
                (false, Right::Store),
                (true, Right::Store),
            ] {
                let mut habit = kept;
                let shown = habit.came(stores, granted);
                assert!(shown <= granted && shown >= Right::wanted(stores));
                habit.stored();
                habit.taken();
                assert!(habit.bits() < 1 << Habit::BITS);
            }
        }
    }
}
