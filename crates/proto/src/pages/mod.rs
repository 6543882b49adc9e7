//! Pages of a program's mapping whose bytes are a copy of a block: which right the mapping has, and
//! what is done to it, in which order.
//!
//! The processor asks nobody before it loads or stores. So a right of the mapping is a part of the
//! protocol: it is taken away *before* the copy's bytes are looked at or its status changes, and it
//! is given *after* the bytes are in place and nobody else has them. The host does what an [`Act`]
//! says, by whatever its system has for it; an act that takes away returns when the last processor
//! has heard of it, and what processors had stored by then is in memory.
//!
//! | the copy | the mapping may be |
//! |---|---|
//! | Invalid | hidden |
//! | Shared | hidden, or for loads |
//! | Modified | hidden, for loads, or for stores too |

mod defect;
mod habit;
mod run;

pub use defect::Defect;
pub use habit::Habit;
pub use run::Run;

use crate::flowcc::LocalStatus;

/// What a program's mapping of a page allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Right {
    /// Nothing.
    #[default]
    Hidden = 0,
    /// Loads.
    Load = 1,
    /// Loads and stores.
    Store = 2,
}

/// What of a program's must have ended when the entry of a page is locked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stop {
    /// Whoever locks the entry changes neither its bytes nor who may have them, or gives a right.
    Nothing,
    /// Nobody stores, so that the bytes can be copied.
    Stores,
    /// Nobody loads either, so that others may change them.
    All,
}

/// What is done to a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// The page comes into the mapping, for loads, or for `stores` too. Where it is there already
    /// it stays as it is.
    Place {
        /// For these, too.
        stores: bool,
    },
    /// Stores are allowed from here on, if the page is there.
    Open,
    /// Stores end.
    Protect,
    /// Loads and stores end.
    Hide,
}

impl Right {
    /// What a copy allows at most.
    pub const fn of(status: LocalStatus) -> Right {
        match status {
            LocalStatus::Invalid => Right::Hidden,
            LocalStatus::Shared => Right::Load,
            LocalStatus::Modified => Right::Store,
        }
    }

    /// What a fault of a load or of a store lacks.
    pub const fn wanted(stores: bool) -> Right {
        match stores {
            true => Right::Store,
            false => Right::Load,
        }
    }

    /// Whether a copy is enough for a fault: it is shown, and nobody is asked.
    pub fn is_enough(status: LocalStatus, stores: bool) -> bool {
        Right::of(status) >= Right::wanted(stores)
    }
}

impl Stop {
    /// Before a copy goes to another node: one that reads, or that will store.
    pub const fn to_give(reads: bool) -> Stop {
        match reads {
            // What is read may still be loaded.
            true => Stop::Stores,
            false => Stop::All,
        }
    }

    /// Before an event of this node has its effect: what leaves is not loaded any more before home
    /// has it, and what comes is not there yet.
    pub const fn to_end(leaves: bool) -> Stop {
        match leaves {
            true => Stop::All,
            false => Stop::Nothing,
        }
    }

    /// Before a copy has this status.
    pub const fn before(status: LocalStatus) -> Stop {
        match status {
            LocalStatus::Invalid => Stop::All,
            LocalStatus::Shared => Stop::Stores,
            LocalStatus::Modified => Stop::Nothing,
        }
    }

    /// What is to be done for it to a mapping with a right, and the right that is left. Where
    /// protecting fails, hiding does as well.
    pub const fn act(self, right: Right) -> Option<(Act, Right)> {
        match (self, right) {
            (Stop::Stores, Right::Store) => Some((Act::Protect, Right::Load)),
            (Stop::All, Right::Load | Right::Store) => Some((Act::Hide, Right::Hidden)),
            _ => None,
        }
    }
}

/// What is done, one after the other, to a mapping with a right, so that an instruction that has
/// faulted goes on; and the right from then on.
///
/// The page is placed again also where there is the right: the system or the program may have taken
/// it out of the mapping, which nobody is told. A page that was for loads is only opened. Where it
/// has been taken out it is still not there, and the instruction faults once more.
pub fn showing(right: Right, stores: bool) -> (impl Iterator<Item = Act> + Clone, Right) {
    let opens = right == Right::Load && stores;
    let right = right.max(Right::wanted(stores));
    let stores = right == Right::Store;
    let place = (!opens).then_some(Act::Place { stores });
    let acts = [place, stores.then_some(Act::Open)];
    (acts.into_iter().flatten(), right)
}

/// Until when a page stays that was shown `since`, if that is not over `now`: never for longer than
/// `hold` from now, whatever the host remembers.
pub const fn rest(since: u64, now: u64, hold: u64) -> Option<u64> {
    let until = since.saturating_add(hold);
    match until > now && until <= now.saturating_add(hold) {
        true => Some(until),
        false => None,
    }
}

/// Whether a page stays for now though another node wants it: the program has pinned a right that
/// stopping would take.
pub fn stays(pinned: Right, right: Right, stop: Stop) -> bool {
    stop.act(right).is_some_and(|(_, left)| left < pinned)
}

/// Whether who closes a mapping has to look at a page: it has a right, or another thread has locked
/// its entry and may be giving it one.
pub fn may_have_right(right: Right, locked: bool) -> bool {
    locked || right != Right::Hidden
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const ALL: [Right; 3] = [Right::Hidden, Right::Load, Right::Store];

    #[test]
    fn what_is_stopped_has_no_right_to_it_left() {
        for right in ALL {
            for (stop, most) in [
                (Stop::Nothing, Right::Store),
                (Stop::Stores, Right::Load),
                (Stop::All, Right::Hidden),
            ] {
                let left = stop.act(right).map_or(right, |(_, left)| left);
                assert_eq!(left, right.min(most), "{stop:?} {right:?}");
            }
        }
    }

    #[test]
    fn a_status_allows_what_is_not_stopped_before_it() {
        for status in [
            LocalStatus::Invalid,
            LocalStatus::Shared,
            LocalStatus::Modified,
        ] {
            let stop = Stop::before(status);
            let left = stop
                .act(Right::Store)
                .map_or(Right::Store, |(_, left)| left);
            assert_eq!(left, Right::of(status));
        }
    }

    #[test]
    fn what_is_shown_for_stores_is_opened_last() {
        let acts = |right, stores| {
            let (acts, right) = showing(right, stores);
            (acts.collect::<Vec<_>>(), right)
        };
        let place = |stores| Act::Place { stores };
        let open = [place(true), Act::Open].to_vec();
        assert_eq!(
            acts(Right::Hidden, false),
            ([place(false)].to_vec(), Right::Load)
        );
        assert_eq!(
            acts(Right::Load, false),
            ([place(false)].to_vec(), Right::Load)
        );
        assert_eq!(
            acts(Right::Load, true),
            ([Act::Open].to_vec(), Right::Store)
        );
        assert_eq!(acts(Right::Hidden, true), (open.clone(), Right::Store));
        assert_eq!(acts(Right::Store, false), (open, Right::Store));
    }

    #[test]
    fn what_is_pinned_to_load_is_still_given_to_who_reads() {
        let stays = |pinned, stop| stays(pinned, Right::Store, stop);
        assert!(!stays(Right::Hidden, Stop::All));
        assert!(!stays(Right::Load, Stop::Stores));
        assert!(stays(Right::Load, Stop::All));
        assert!(stays(Right::Store, Stop::Stores));
        // A right that is not there any more keeps nobody waiting.
        assert!(!super::stays(Right::Store, Right::Hidden, Stop::All));
    }

    #[test]
    fn nobody_waits_for_longer_than_the_hold() {
        assert_eq!(rest(100, 105, 10), Some(110));
        assert_eq!(rest(100, 110, 10), None);
        assert_eq!(rest(100, 300, 10), None);
        // A clock that has gone back.
        assert_eq!(rest(1_000, 100, 10), None);
        assert_eq!(rest(u64::MAX, 100, 10), None);
    }
}
