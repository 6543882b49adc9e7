//! When an operation on a word goes to the word's home, and when the word comes to the operation.
//!
//! A block whose words threads of several nodes change goes from one to the next, and each change
//! waits for it. Then it is shorter to send the change ([`Kind::Operate`](crate::wire::Kind)). But
//! a node that makes many changes between two of others' makes them at once with a copy, and one
//! that reads has the most of it. So a node counts how many changes it has made with the copy that
//! it had last whenever an atomic operation misses the block:
//!
//! | what happens | then |
//! |---|---|
//! | it misses, and one other change at most was made with the copy before | once hotter; from [`HOT`] on, changes and looks go to the home |
//! | it misses, and two others were | once colder |
//! | it misses, and more were | cold |
//! | it misses, and a copy is here, to be read | cold: it was read |
//! | the home has made a change | – |
//! | the home has, and says that nodes make several in a row | cold: the block comes here |
//! | [`LOOKS`] looks in a row go to the home, without a change | cold: the block comes here |
//! | the home refuses: a cache has the block | the change is made here, and then the block goes home |
//! | it has refused [`REFUSALS`] times in a row | cold, and so for [`REST`] misses: somebody keeps it |
//!
//! Nothing of the protocol rests on this: whatever it says, each change happens once.

/// Misses after one or two changes each, from which on changes go to the home: that is shorter
/// than a block's way for runs of three to five, by fabric.
pub const HOT: u8 = 4;
/// Looks in a row that go to the home.
pub const LOOKS: u8 = 3;
/// Refusals in a row, after which nothing is asked for a while.
pub const REFUSALS: u8 = 4;
/// Misses for which that is.
pub const REST: u8 = 200;

/// What a node knows of a block whose words its threads change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Contention {
    heat: u8,
    looks: u8,
    refused: u8,
    rest: u8,
}

impl Contention {
    /// Whether a change goes to the home, and a look.
    pub fn delegates(self) -> bool {
        self.heat >= HOT
    }

    /// A change has missed the block, and so many were made with the copy before, beside the one
    /// that it came for. `None`: there is a copy, to be read.
    #[must_use]
    pub fn missed(self, changes: Option<u64>) -> Self {
        let heat = match (self.rest, changes) {
            (0, Some(0..=1)) => (self.heat + 1).min(HOT),
            (0, Some(2)) => self.heat.saturating_sub(1),
            _ => 0,
        };
        Contention {
            heat,
            rest: self.rest.saturating_sub(1),
            ..Contention::default()
        }
    }

    /// The home has made a change; `alone`: it says that nodes make several in a row.
    #[must_use]
    pub fn changed(self, alone: bool) -> Self {
        match alone {
            true => Contention::default(),
            false => Contention {
                looks: 0,
                refused: 0,
                ..self
            },
        }
    }

    /// A look has gone to the home.
    #[must_use]
    pub fn looked(self, alone: bool) -> Self {
        match alone || self.looks + 1 >= LOOKS {
            true => Contention::default(),
            false => Contention {
                looks: self.looks + 1,
                ..self
            },
        }
    }

    /// The home has refused a change or a look.
    #[must_use]
    pub fn refused(self) -> Self {
        match self.refused + 1 {
            REFUSALS => Contention {
                rest: REST,
                ..Contention::default()
            },
            refused => Contention { refused, ..self },
        }
    }

    /// In a word, for hosts whose threads share it.
    pub fn to_bits(self) -> u32 {
        u32::from_be_bytes([self.heat, self.looks, self.refused, self.rest])
    }

    /// From one.
    pub fn from_bits(bits: u32) -> Self {
        let [heat, looks, refused, rest] = bits.to_be_bytes();
        Contention {
            heat: heat.min(HOT),
            looks: looks.min(LOOKS - 1),
            refused: refused.min(REFUSALS - 1),
            rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many misses later, with one change each.
    fn after(known: Contention, times: u8) -> Contention {
        (0..times).fold(known, |known, _| known.missed(Some(0)))
    }

    fn hot() -> Contention {
        after(Contention::default(), HOT)
    }

    #[test]
    fn a_block_that_goes_round_is_left_at_home_and_one_that_is_used_is_not() {
        assert!(hot().delegates());
        assert!(!hot().missed(None).delegates());
        let colder = hot().missed(Some(2));
        assert!(!colder.delegates() && colder.missed(Some(0)).delegates());
        let cold = hot().missed(Some(3));
        assert!((1..HOT).all(|times| !after(cold, times).delegates()));
        assert!(after(cold, HOT).delegates());
    }

    #[test]
    fn who_is_alone_has_it() {
        assert!(hot().changed(false).delegates());
        assert_eq!(hot().changed(true), Contention::default());
        assert_eq!(hot().looked(true), Contention::default());
    }

    #[test]
    fn who_only_looks_has_it_as_well() {
        let looks =
            |known: Contention, times| (0..times).fold(known, |known, _| known.looked(false));
        assert!(looks(hot(), LOOKS - 1).delegates());
        assert!(!looks(hot(), LOOKS).delegates());
        let between = looks(hot(), LOOKS - 1).changed(false);
        assert!(looks(between, LOOKS - 1).delegates());
    }

    #[test]
    fn who_is_refused_too_often_rests() {
        let mut known = hot();
        for _ in 1..REFUSALS {
            known = known.refused();
            assert!(known.delegates());
        }
        assert!(known.changed(false).refused().delegates());
        known = known.refused();
        for _ in 0..REST {
            assert!(!known.delegates());
            known = known.missed(Some(0));
        }
        assert!(after(known, HOT).delegates());
    }

    #[test]
    fn a_word_keeps_it_and_no_word_is_anything_else() {
        let rests = (0..REFUSALS).fold(hot(), |known, _| known.refused());
        for known in [
            Contention::default(),
            hot(),
            hot().refused(),
            hot().looked(false),
            rests,
        ] {
            assert_eq!(Contention::from_bits(known.to_bits()), known);
        }
        let any = Contention::from_bits(u32::MAX);
        let _ = any.missed(Some(0)).refused().looked(false).changed(false);
    }
}
