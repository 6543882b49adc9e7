//! Blocks of long ranges, which a thread of another node reads and writes at their home and keeps
//! no copy of: when a home is asked, and what the end of a store means.
//!
//! | a block to write is | then |
//! |---|---|
//! | in no copy here, and not asked for | its home is asked to put it in place (`Store`) |
//! | asked for when its epoch ended, and not answered | its home is asked again, *as for the same one*: a block is written once |
//! | refused by its home, because caches have it | it is written by way of the cache, which takes it away from them |
//! | in a copy here | likewise; and one to read is read there, else its home is asked (`Fetch`) |
//!
//! An operation on a word that its home does (`Operate`) is asked for, and ends, as a store of one
//! block.

use super::Then;
use crate::flowcc::{STORE_AGAIN, Step};
use crate::wire::Kind;

/// What has become of a block that is written at its home, or of an operation there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Stored {
    /// Nothing that counts.
    #[default]
    Open,
    /// The epoch has ended before there was an answer.
    CutOff,
    /// Home has not taken it.
    Refused,
}

impl Stored {
    /// The `offset` of the call that asks for it.
    pub fn offset(self) -> u32 {
        match self {
            Stored::CutOff => STORE_AGAIN,
            Stored::Open | Stored::Refused => 0,
        }
    }

    /// What a home is asked for that is to read one block, or to write it. `None`: nothing,
    /// it goes by way of the cache. `cached`: a copy is here.
    pub fn asks(self, writes: bool, cached: bool) -> Option<(Kind, u32)> {
        match writes {
            true => self.asks_once(Kind::Store, cached),
            false if cached => None,
            false => Some((Kind::Fetch, 1)),
        }
    }

    /// What a home is asked for that is to do something once. `None`: nothing, it is done by way of
    /// the cache.
    pub fn asks_once(self, kind: Kind, cached: bool) -> Option<(Kind, u32)> {
        match self {
            Stored::Refused => None,
            Stored::Open if cached => None,
            Stored::CutOff | Stored::Open => Some((kind, self.offset())),
        }
    }

    /// What follows the end of a store or an operation: whether it is done, or what it is now.
    pub fn after(kind: Kind, then: Then, step: Step) -> (Stored, Then) {
        let taken = match (kind, step) {
            (Kind::Operate, Step::Held(grant)) => grant.operated().is_some(),
            (_, Step::Held(grant)) => grant.stored() > 0,
            _ => false,
        };
        match then {
            Then::Done if taken => (Stored::Open, then),
            Then::Done => (Stored::Refused, Then::Again),
            // Final for this number: it is asked for under another one.
            Then::BackOff => (Stored::Open, then),
            then => (Stored::CutOff, then),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Reason;

    #[test]
    fn a_block_is_asked_for_where_no_copy_is_and_again_as_the_same_one() {
        let (store, again) = ((Kind::Store, 0), (Kind::Store, STORE_AGAIN));
        assert_eq!(Stored::Open.asks(true, false), Some(store));
        assert_eq!(Stored::Open.asks(true, true), None);
        // Whether it is written, its home alone knows, whatever is here by now.
        assert_eq!(Stored::CutOff.asks(true, true), Some(again));
        assert_eq!(Stored::Refused.asks(true, false), None);
        assert_eq!(Stored::Open.asks(false, false), Some((Kind::Fetch, 1)));
        assert_eq!(Stored::Open.asks(false, true), None);
    }

    #[test]
    fn what_home_has_not_taken_is_a_write_and_what_is_cut_off_stays_the_same_store() {
        let fenced = Step::Refused(Reason::Fenced);
        let cut_off = Stored::after(Kind::Store, Then::Again, fenced);
        assert_eq!(cut_off, (Stored::CutOff, Then::Again));
        let refused = Stored::after(Kind::Operate, Then::Done, fenced);
        assert_eq!(refused, (Stored::Refused, Then::Again));
    }
}
