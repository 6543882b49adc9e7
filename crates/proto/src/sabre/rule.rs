//! The rule by which an object is read without a lock (SABRes §3.2, §4.2), for whoever reads: a
//! thread that has the memory, the home's agent, a program in the kernel.
//!
//! ```text
//! version, header      may_copy   may it be copied, and under which version?
//! bytes                           copied, word by word
//! version              unmoved    was it that version all the time?
//! ```
//!
//! The loads are in this order, and the host sees to it that no processor has them otherwise. A
//! writer makes the version odd before it touches the header or a byte, and even again after all of
//! it. So if both looks find one even version, every word is that version's: its content does not
//! change, and the version does not come back.
//!
//! The paper's controller looks at the version while its data is read already, and squashes that
//! when the header's line is invalidated (its window of vulnerability). In a processor the loads
//! that run ahead are squashed likewise, so nothing has to be done for that here.

use super::layout::Meta;
use crate::wire::Reason;

/// What a reader knows of the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Wanted {
    /// The generation: another one is another object.
    pub generation: u32,
    /// A version that it has already, or 0.
    pub known: u64,
}

/// Why there is nothing to read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// A writer is in.
    Locked,
    /// It has moved while it was copied.
    Torn,
    /// It has been freed.
    Gone,
    /// The reader has it already.
    NotModified,
}

impl Refusal {
    /// As a packet says it.
    pub const fn reason(self) -> Reason {
        match self {
            Refusal::Locked => Reason::Locked,
            Refusal::Torn => Reason::Torn,
            Refusal::Gone => Reason::Gone,
            Refusal::NotModified => Reason::NotModified,
        }
    }

    /// From a packet; none of a reason that is no answer to a read.
    pub const fn of(reason: Reason) -> Option<Self> {
        match reason {
            Reason::Locked => Some(Refusal::Locked),
            Reason::Torn => Some(Refusal::Torn),
            Reason::Gone => Some(Refusal::Gone),
            Reason::NotModified => Some(Refusal::NotModified),
            _ => None,
        }
    }
}

/// Whether a writer is in.
#[inline]
pub const fn is_odd(version: u64) -> bool {
    version & 1 == 1
}

/// The first look: under which version the object may be copied.
///
/// That it is gone is final, and so is said whatever the version is.
#[inline]
pub fn may_copy(version: u64, meta: Meta, wanted: Wanted) -> Result<u64, Refusal> {
    if !meta.live || meta.generation != wanted.generation {
        return Err(Refusal::Gone);
    }
    if is_odd(version) {
        return Err(Refusal::Locked);
    }
    if version == wanted.known {
        return Err(Refusal::NotModified);
    }
    Ok(version)
}

/// The first look of a reader that knows what the header's second word is while the object lives
/// and has the length that it wants: whether it may be copied. Where not, [`may_copy`] says why.
#[inline]
pub const fn is_as_known(version: u64, word: u64, known: (u64, u64)) -> bool {
    let (expected, version_had) = known;
    word == expected && !is_odd(version) && version != version_had
}

/// The second look, when all is copied.
#[inline]
pub fn unmoved(copied: u64, now: u64) -> Result<u64, Refusal> {
    match copied == now {
        true => Ok(copied),
        false => Err(Refusal::Torn),
    }
}

/// What a writer makes of an even version before it touches anything else: one that is odd.
#[inline]
pub const fn taken(version: u64) -> u64 {
    version + 1
}

/// The version of what it has written.
#[inline]
pub const fn next(version: u64) -> u64 {
    version + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: Meta = Meta {
        generation: 3,
        class: 1,
        live: true,
        len: 8,
    };
    const WANTED: Wanted = Wanted {
        generation: 3,
        known: 0,
    };

    #[test]
    fn an_object_is_copied_under_an_even_version_of_its_own_life() {
        assert_eq!(may_copy(4, LIVE, WANTED), Ok(4));
        assert_eq!(may_copy(5, LIVE, WANTED), Err(Refusal::Locked));
        let dead = Meta {
            live: false,
            ..LIVE
        };
        let later = Meta {
            generation: 4,
            ..LIVE
        };
        for version in [4, 5] {
            for meta in [dead, later] {
                assert_eq!(may_copy(version, meta, WANTED), Err(Refusal::Gone));
            }
        }
        // Memory that no object has been in.
        let first = Wanted::default();
        assert_eq!(may_copy(0, Meta::from_word(0), first), Err(Refusal::Gone));
    }

    #[test]
    fn what_the_reader_has_is_not_copied() {
        let wanted = Wanted { known: 4, ..WANTED };
        assert_eq!(may_copy(4, LIVE, wanted), Err(Refusal::NotModified));
        assert_eq!(may_copy(6, LIVE, wanted), Ok(6));
    }

    /// The short look says yes only where the long one does.
    #[test]
    fn what_is_as_known_may_be_copied() {
        let expected = LIVE.to_word();
        let dead = Meta {
            live: false,
            ..LIVE
        };
        let later = Meta {
            generation: 4,
            ..LIVE
        };
        let longer = Meta { len: 16, ..LIVE };
        for version in 2..8 {
            for known in [0, 2, 4] {
                let wanted = Wanted { known, ..WANTED };
                for meta in [LIVE, dead, later, longer] {
                    let short = is_as_known(version, meta.to_word(), (expected, known));
                    let long = may_copy(version, meta, wanted).is_ok();
                    assert_eq!(short, long && meta == LIVE, "{version} {meta:?} {known}");
                }
            }
        }
    }

    #[test]
    fn any_move_tears() {
        assert_eq!(unmoved(4, 4), Ok(4));
        for now in [taken(4), next(4), 0] {
            assert_eq!(unmoved(4, now), Err(Refusal::Torn));
        }
    }

    #[test]
    fn reasons_are_told_apart() {
        for refusal in [
            Refusal::Locked,
            Refusal::Torn,
            Refusal::Gone,
            Refusal::NotModified,
        ] {
            assert_eq!(Refusal::of(refusal.reason()), Some(refusal));
        }
        assert_eq!(Refusal::of(Reason::NoMemory), None);
    }
}
