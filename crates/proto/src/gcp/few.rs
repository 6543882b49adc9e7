//! A map by tag that usually has one entry, which lies in the map itself.
//!
//! A host with a blade and a directory for each lock would pay for a node of a tree for each:
//! eleven times the entry.

use crate::wire::Tag;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;

/// See the module. In the order in which it iterates the first entry comes first,
/// the others by their tags.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Few<V> {
    one: Option<(Tag, V)>,
    #[expect(
        clippy::box_collection,
        reason = "a map that is not there is one word, not three"
    )]
    more: Option<Box<BTreeMap<Tag, V>>>,
}

impl<V> Few<V> {
    pub const fn new() -> Self {
        Few {
            one: None,
            more: None,
        }
    }

    pub fn get(&self, tag: Tag) -> Option<&V> {
        match &self.one {
            Some((first, value)) if *first == tag => Some(value),
            _ => self.more.as_ref()?.get(&tag),
        }
    }

    pub fn get_mut(&mut self, tag: Tag) -> Option<&mut V> {
        match &mut self.one {
            Some((first, value)) if *first == tag => Some(value),
            _ => self.more.as_mut()?.get_mut(&tag),
        }
    }

    pub fn contains(&self, tag: Tag) -> bool {
        self.get(tag).is_some()
    }

    pub fn len(&self) -> usize {
        usize::from(self.one.is_some()) + self.more.as_ref().map_or(0, |more| more.len())
    }

    /// Adds an entry that is not there.
    pub fn insert(&mut self, tag: Tag, value: V) {
        debug_assert!(!self.contains(tag));
        if self.one.is_none() {
            self.one = Some((tag, value));
        } else {
            self.more.get_or_insert_default().insert(tag, value);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Tag, &V)> {
        let more = self.more.iter().flat_map(|more| more.iter());
        let one = self.one.iter().map(|(tag, value)| (*tag, value));
        one.chain(more.map(|(tag, value)| (*tag, value)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Tag, &mut V)> {
        let more = self.more.iter_mut().flat_map(|more| more.iter_mut());
        let one = self.one.iter_mut().map(|(tag, value)| (*tag, value));
        one.chain(more.map(|(tag, value)| (*tag, value)))
    }

    pub fn retain(&mut self, keep: impl Fn(Tag) -> bool) {
        if self.one.as_ref().is_some_and(|(tag, _)| !keep(*tag)) {
            self.one = None;
        }
        if let Some(more) = &mut self.more {
            more.retain(|tag, _| keep(*tag));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn one_entry_or_several_are_found_changed_and_forgotten() {
        let mut few = Few::new();
        for tag in [5, 9, 7] {
            few.insert(Tag(tag), tag);
        }
        assert_eq!(few.len(), 3);
        few.iter_mut().for_each(|(_, value)| *value += 1);
        *few.get_mut(Tag(9)).unwrap() += 1;
        let all: Vec<_> = few.iter().map(|(tag, value)| (tag.0, *value)).collect();
        assert_eq!(all, [(5, 6), (7, 8), (9, 11)]);
        few.retain(|tag| tag != Tag(5));
        assert!(!few.contains(Tag(5)) && few.contains(Tag(7)));
        few.insert(Tag(3), 3);
        assert_eq!((few.len(), few.get(Tag(3))), (3, Some(&3)));
    }
}
