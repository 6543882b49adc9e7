//! What a thread wants committed, and how that is done: by locks at homes, by one call of a keeper,
//! or by both.

use super::super::operation::Ref;
use super::part::{Entry, NOT_WRITTEN, PartOf, Parts};
use alloc::vec::Vec;

/// What a thread wants committed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Plan {
    /// What is locked, in the order of homes: what is written, and with [`Plan::kept`] also what
    /// was only read. The bytes are the host's.
    pub parts: Vec<PartOf>,
    /// What was read and is not written, under these versions; [`super::MAX_OBJECTS`] at most. Such
    /// an object may have copies: a later keeper says the same of its version.
    pub reads: Vec<(Ref, u64)>,
    /// What a keeper decides: objects with copies that are written, and such ones that were read,
    /// of any regions. The lowest region that is written is asked. Its bytes are the last part's.
    pub kept: Option<PartOf>,
}

/// An object of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Used<'a> {
    /// The object.
    pub object: Ref,
    /// The version that it was read under.
    pub read: Option<u64>,
    /// Its new content.
    pub write: Option<&'a [u8]>,
}

impl Used<'_> {
    fn has_copies(&self) -> bool {
        !self.object.tag.home().is_own()
    }

    /// What is asked of its home, or of its keeper; nothing if it was neither read nor written.
    fn entry(&self) -> Option<(Entry, &[u8])> {
        let entry = |len| Entry {
            object: self.object,
            expected: self.read.unwrap_or(0),
            len,
        };
        match (self.write, self.read) {
            (Some(write), _) => Some((entry(write.len() as u32), write)),
            (None, Some(_)) => Some((entry(NOT_WRITTEN), &[])),
            (None, None) => None,
        }
    }
}

impl Plan {
    /// Of these objects, in the order of addresses, with the bytes of its parts.
    pub fn of(all: &[Used<'_>]) -> (Plan, Parts) {
        let with_copies = all.iter().filter(|used| used.has_copies());
        let plain = all.iter().filter(|used| !used.has_copies());
        let is_kept = with_copies.clone().any(|used| used.write.is_some());
        if !is_kept {
            let parts = Parts::new(
                plain
                    .filter(|used| used.write.is_some())
                    .filter_map(Used::entry),
                &[],
            );
            let only = all.iter().filter(|used| used.write.is_none());
            let plan = Plan {
                parts: parts.of.clone(),
                reads: only
                    .filter_map(|used| Some((used.object, used.read?)))
                    .collect(),
                kept: None,
            };
            return (plan, parts);
        }
        let kept = with_copies.filter_map(Used::entry);
        // One of each region that is written, the lowest one first.
        let mut deciders: Vec<Entry> = (kept.clone().filter(|(entry, _)| entry.is_written()))
            .map(|(Entry { object, .. }, _)| Entry {
                object,
                expected: 0,
                len: NOT_WRITTEN,
            })
            .collect();
        deciders.dedup_by_key(|entry| entry.object.tag.home());
        let mut parts = Parts::new(plain.filter_map(Used::entry), &deciders);
        let kept = parts.push_kept(kept);
        let plan = Plan {
            parts: parts.of.clone(),
            reads: Vec::new(),
            kept,
        };
        (plan, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;
    use crate::wire::{Contract, HomeId, Tag};

    fn used(home: HomeId, offset: u64, read: u64, write: Option<&[u8]>) -> Used<'_> {
        let tag = Tag(home.start().0 + offset).under(Contract::Object);
        let object = Ref { tag, generation: 3 };
        let read = (read != 0).then_some(read);
        Used {
            object,
            read,
            write,
        }
    }

    #[test]
    fn what_has_copies_goes_to_its_keeper_and_what_was_read_elsewhere_is_locked() {
        let (own, group) = (HomeId::of(1), HomeId::of_group(0));
        let all = [
            used(own, 64, 4, None),
            used(group, 0, 6, None),
            used(group, 64, 0, Some(b"new")),
            used(HomeId::of_group(1), 0, 8, None),
        ];
        let (plan, parts) = Plan::of(&all);
        assert_eq!((plan.parts.len(), plan.reads.len()), (1, 0));
        let lock = decode(&parts.bytes[0], 1).unwrap()[0].0;
        assert_eq!((lock.expected, lock.is_written()), (4, false));
        let kept = plan.kept.unwrap();
        assert_eq!((kept.first, kept.objects), (all[2].object.tag, 3));
        let all = decode(&parts.bytes[1], 3).unwrap();
        let written: Vec<bool> = all.iter().map(|(entry, _)| entry.is_written()).collect();
        assert_eq!(written, [false, true, false]);
    }

    #[test]
    fn what_has_copies_is_written_with_what_has_some_of_any_region() {
        let [own, one, two] = [HomeId::of(1), HomeId::of_group(0), HomeId::of_group(1)];
        let all = [
            used(one, 64, 0, Some(b"a")),
            used(two, 0, 4, None),
            used(two, 64, 0, Some(b"bc")),
        ];
        let (plan, parts) = Plan::of(&all);
        let kept = plan.kept.unwrap();
        assert_eq!((plan.parts.len(), plan.reads.len()), (0, 0));
        // The lowest region is asked, for all of it.
        assert_eq!((kept.first, kept.objects), (all[0].object.tag, 3));
        assert_eq!(&parts.bytes[0][3 * 24..], b"abc");
        // What has none is locked first, and who has it is told who decides:
        // an object of each region.
        let mixed = [&[used(own, 0, 0, Some(b"d"))], &all[..]].concat();
        let (plan, parts) = Plan::of(&mixed);
        assert_eq!((plan.parts.len(), plan.kept), (1, Some(kept)));
        let told = decode(&parts.bytes[0], 3).unwrap();
        let told: Vec<Tag> = told.iter().map(|(entry, _)| entry.object.tag).collect();
        let deciders = [all[0].object.tag, all[2].object.tag];
        assert_eq!(told, [mixed[0].object.tag, deciders[0], deciders[1]]);
        let plain = [used(own, 0, 0, Some(b"")), used(one, 0, 2, None)];
        let (plan, _) = Plan::of(&plain);
        assert_eq!(
            (plan.parts.len(), plan.reads.len(), plan.kept),
            (1, 1, None)
        );
    }
}
