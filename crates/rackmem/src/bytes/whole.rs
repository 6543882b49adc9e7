//! The words of one object in memory that its readers look at while it is written: the rule of
//! `rackmem_proto::sabre::rule` in loads and stores.
//!
//! What keeps a reader's loads in order, and a writer's stores, is here and nowhere else.

use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, fence};
use rackmem_proto::sabre::Meta;
use rackmem_proto::sabre::rule::{Refusal, Wanted, is_as_known, is_odd, may_copy, taken, unmoved};

/// Words of a header.
pub(crate) const HEADER_WORDS: usize = 2;

/// Looks at an object, without a lock: what `copy` makes of its words is of one version, or is
/// thrown away. `copy` may see words of several.
#[inline]
pub(crate) fn read<R>(
    words: &[AtomicU64],
    wanted: Wanted,
    copy: impl FnOnce(&[AtomicU64], Meta) -> R,
) -> Result<(u64, R), Refusal> {
    let [first, second, bytes @ ..] = words else {
        return Err(Refusal::Gone);
    };
    let version = first.load(Acquire);
    let meta = Meta::from_word(second.load(Relaxed));
    let version = may_copy(version, meta, wanted)?;
    let copied = copy(bytes, meta);
    // No load of what was copied is after the second look.
    fence(Acquire);
    let version = unmoved(version, first.load(Relaxed))?;
    Ok((version, copied))
}

/// The same for a reader that knows the header's second word, and has this version already: the
/// version that was copied. Nothing: something is in the way, and [`read`] says what.
#[inline]
pub(crate) fn read_known(
    words: &[AtomicU64],
    known: (u64, u64),
    copy: impl FnOnce(&[AtomicU64]),
) -> Option<u64> {
    let [first, second, bytes @ ..] = words else {
        return None;
    };
    let version = first.load(Acquire);
    if !is_as_known(version, second.load(Relaxed), known) {
        return None;
    }
    copy(bytes);
    // No load of what was copied is after the second look.
    fence(Acquire);
    unmoved(version, first.load(Relaxed)).ok()
}

/// The version, before anything else is looked at.
#[inline]
pub(crate) fn version(words: &[AtomicU64]) -> u64 {
    words.first().map_or(0, |word| word.load(Acquire))
}

/// The version, after all that was copied.
#[inline]
pub(crate) fn version_now(words: &[AtomicU64]) -> u64 {
    fence(Acquire);
    words.first().map_or(0, |word| word.load(Relaxed))
}

/// The header's second word.
#[inline]
pub(crate) fn meta(words: &[AtomicU64]) -> Meta {
    Meta::from_word(words.get(1).map_or(0, |word| word.load(Relaxed)))
}

/// Keeps writers out, if the object still has this version, which is even. Stores that follow are
/// seen by nobody who has not seen the odd version.
#[inline]
pub(crate) fn take(words: &[AtomicU64], version: u64) -> bool {
    let Some(first) = words.first().filter(|_| !is_odd(version)) else {
        return false;
    };
    let odd = taken(version);
    let taken = first.compare_exchange(version, odd, Acquire, Relaxed);
    fence(Release);
    taken.is_ok()
}

/// Changes the header's second word. A writer is in.
#[inline]
pub(crate) fn set_meta(words: &[AtomicU64], meta: Meta) {
    if let Some(second) = words.get(1) {
        second.store(meta.to_word(), Relaxed);
    }
}

/// Lets writers in again. Who sees this version sees all stores before.
#[inline]
pub(crate) fn release(words: &[AtomicU64], version: u64) {
    if let Some(first) = words.first() {
        first.store(version, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: u64, meta: Meta) -> Vec<AtomicU64> {
        [version, meta.to_word(), 7, 8].map(AtomicU64::new).into()
    }

    const LIVE: Meta = Meta {
        generation: 1,
        class: 1,
        live: true,
        len: 16,
    };
    const WANTED: Wanted = Wanted {
        generation: 1,
        known: 0,
    };

    #[test]
    fn what_moves_while_it_is_copied_is_thrown_away() {
        let words = object(2, LIVE);
        let copy = |bytes: &[AtomicU64], _| bytes.iter().map(|w| w.load(Relaxed)).sum::<u64>();
        assert_eq!(read(&words, WANTED, copy), Ok((2, 15)));
        let known = (LIVE.to_word(), 0);
        let short = |known| read_known(&words, known, |bytes| assert_eq!(bytes.len(), 2));
        assert_eq!(
            (short(known), short((known.0, 2)), short((0, 0))),
            (Some(2), None, None)
        );
        let torn = read(&words, WANTED, |_, _| assert!(take(&words, 2)));
        assert_eq!(torn, Err(Refusal::Torn));
        assert_eq!(read(&words, WANTED, copy), Err(Refusal::Locked));
        assert_eq!(short(known), None);
        assert!(!take(&words, 2) && !take(&words, 3));
        release(&words, 4);
        assert_eq!(read(&words, WANTED, copy), Ok((4, 15)));
        let torn = read_known(&words, known, |_| {
            assert!(take(&words, 4));
            release(&words, 4);
        });
        assert_eq!(torn, Some(4));
        // A whole write between the looks.
        let torn = read(&words, WANTED, |_, _| {
            assert!(take(&words, 4));
            release(&words, 6);
        });
        assert_eq!(torn, Err(Refusal::Torn));
        // Writers were kept out, and nothing has changed.
        let same = read(&words, WANTED, |_, _| {
            assert!(take(&words, 6));
            release(&words, 6);
        });
        assert_eq!(same, Ok((6, ())));
        let torn = read_known(&words, known, |_| assert!(take(&words, 6)));
        assert_eq!(torn, None);
    }

    #[test]
    fn what_is_too_short_is_no_object() {
        assert_eq!(read(&[], WANTED, |_, _| ()), Err(Refusal::Gone));
        assert!(!take(&[], 0));
    }
}
