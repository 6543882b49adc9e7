//! A member's copies, and how far it has heard.

use super::{BiNews, Defect};
use crate::bi::clock::Tick;

/// A member's place for an item.
///
/// `number` only rises: what a thread has read of an item is never followed by something older, and
/// what it has written itself is seen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HeldItem<V> {
    /// The region's number when the copy was read at its home, or written.
    number: u64,
    copy: Option<V>,
}

impl<V> Default for HeldItem<V> {
    fn default() -> Self {
        HeldItem {
            number: 0,
            copy: None,
        }
    }
}

impl<V> HeldItem<V> {
    /// The copy, if there is one.
    #[inline]
    pub fn get(&self) -> Option<&V> {
        self.copy.as_ref()
    }

    /// A value comes that its home has had, or has taken, at `number`. `heard`: how far the member
    /// has heard, read while this place cannot change. Whether it is kept.
    ///
    /// BiNews that the member has worked off may have named this item: an older value does not come
    /// in after it.
    pub fn put(&mut self, value: V, number: u64, heard: u64, broken: Option<Defect>) -> bool {
        if self.copy.is_some() && number <= self.number {
            return false;
        }
        if number < heard && broken != Some(Defect::InstallLateCopy) {
            // What is here is older still.
            self.copy = None;
            self.number = self.number.max(number);
            return false;
        }
        *self = HeldItem {
            number,
            copy: Some(value),
        };
        true
    }

    /// The item was modified at `upto` or before. Whether a copy was dropped.
    pub fn hear(&mut self, upto: u64) -> bool {
        let drops = self.number < upto && self.copy.is_some();
        if drops {
            self.copy = None;
        }
        drops
    }

    /// The same, and this is what it was at `now`. Whether it is newer than what is here.
    pub fn refresh(&mut self, value: V, now: u64, broken: Option<Defect>) -> bool {
        let newer = self.number < now || broken == Some(Defect::RefreshOwnNew);
        if newer {
            *self = HeldItem {
                number: now,
                copy: Some(value),
            };
        }
        newer
    }
}

/// How far a member has heard of its region's writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Hearing {
    /// All of them, up to this one.
    pub upto: u64,
}

/// A member asks what was modified: one question at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Question {
    /// What it has heard of.
    pub from: u64,
    /// Its clock, read before it asks.
    pub began: Tick,
}

impl Hearing {
    /// The member asks. `now`: its clock, read before.
    pub const fn ask(self, now: Tick) -> Question {
        let (from, began) = (self.upto, now);
        Question { from, began }
    }
}

impl Question {
    /// News have come: how far the member has heard when its copies are told so
    /// ([`HeldItem::hear`]), and of which moment its quiescence is *after that*; none if there is
    /// more to ask for. None at all: the answer is no home's. `now`: its clock.
    pub fn answered(
        self,
        news: &BiNews,
        now: Tick,
        broken: Option<Defect>,
    ) -> Option<(Hearing, Option<Tick>)> {
        let quiesced = match broken {
            Some(Defect::CountFromAnswer) => now,
            _ => self.began,
        };
        let upto = news.upto;
        // Where there is more, something was told.
        let goes_on = upto > self.from || upto == self.from && news.more == 0;
        let whole = news.more == 0 || broken == Some(Defect::EndWithPart);
        goes_on.then(|| (Hearing { upto }, whole.then_some(quiesced)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_stays_until_it_is_named_by_later_news() {
        let mut kept = HeldItem::default();
        assert!(kept.put('a', 4, 4, None));
        assert!(!kept.hear(4));
        assert_eq!(kept.get(), Some(&'a'));
        assert!(kept.hear(5));
        assert_eq!(kept.get(), None);
    }

    #[test]
    fn a_copy_that_was_read_before_news_does_not_come_in_after_it() {
        let mut kept = HeldItem::default();
        kept.hear(7);
        assert!(!kept.put('a', 6, 7, None));
        assert_eq!(kept.get(), None);
        assert!(kept.put('b', 7, 7, None));
        // Nor does it put a later one away.
        assert!(!kept.put('a', 6, 7, None));
        assert_eq!(kept.get(), Some(&'b'));
    }

    /// A write whose acknowledgement is late: what is here is older than it, and goes.
    #[test]
    fn what_is_older_than_an_own_write_goes() {
        let mut kept = HeldItem::default();
        kept.put('a', 3, 3, None);
        assert!(!kept.put('b', 5, 6, None));
        assert_eq!(kept.get(), None);
    }

    /// News that were on their way while this member wrote do not put its own write away.
    #[test]
    fn a_value_in_news_replaces_what_is_older() {
        let mut kept = HeldItem::default();
        assert!(kept.refresh('a', 3, None));
        assert!(kept.put('b', 5, 3, None));
        assert!(!kept.refresh('c', 4, None) && !kept.refresh('c', 5, None));
        assert_eq!(kept.get(), Some(&'b'));
        assert!(kept.refresh('d', 6, None));
        assert_eq!(kept.get(), Some(&'d'));
        // Nor does a copy that was read before come in after it.
        assert!(!kept.put('b', 5, 6, None));
        assert_eq!(kept.get(), Some(&'d'));
    }

    #[test]
    fn a_quiescence_is_of_the_moment_before_the_question() {
        let question = Hearing { upto: 5 }.ask(Tick(7));
        let heard = |upto, more| {
            let news = BiNews {
                upto,
                more,
                shape: (1, 1),
                items: None,
                values: alloc::vec::Vec::new(),
            };
            question.answered(&news, Tick(9), None)
        };
        let upto = |upto| Hearing { upto };
        assert_eq!(heard(8, 0), Some((upto(8), Some(Tick(7)))));
        assert_eq!(heard(5, 0), Some((upto(5), Some(Tick(7)))));
        assert_eq!(heard(8, 1), Some((upto(8), None)));
        assert_eq!((heard(4, 0), heard(4, 9), heard(5, 1)), (None, None, None));
    }
}
