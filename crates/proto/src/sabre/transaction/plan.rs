//! What a thread wants committed, and how that is done: by locks at homes, or by one call of a
//! keeper.

use super::super::operation::Ref;
use super::part::{Entry, NOT_WRITTEN, PartOf, Parts};
use alloc::vec::Vec;

/// What a thread wants committed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Plan {
    /// What is locked, in the order of homes: what is written, or with [`Plan::kept`] what was only
    /// read. The bytes are the host's.
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

    /// Whether one transaction can write this and that.
    pub fn can_be_with(&self, other: &Used<'_>) -> bool {
        self.has_copies() == other.has_copies()
    }

    fn entry(&self, len: u32) -> Entry {
        Entry {
            object: self.object,
            expected: self.read.unwrap_or(0),
            len,
        }
    }
}

impl Plan {
    /// Of these objects, in the order of addresses, with the bytes of its parts. None: it writes
    /// objects that cannot be written together ([`Used::can_be_with`]).
    pub fn of(all: &[Used<'_>]) -> Option<(Plan, Parts)> {
        let writes = all
            .iter()
            .filter_map(|used| used.write.map(|write| (used, write)));
        let first = writes.clone().next().map(|(used, _)| used);
        let can = |first: &Used<'_>| writes.clone().all(|(used, _)| first.can_be_with(used));
        if !first.is_none_or(can) {
            return None;
        }
        let written = writes.map(|(used, write)| (used.entry(write.len() as u32), write));
        let only = all
            .iter()
            .filter(|used| used.write.is_none() && used.read.is_some());
        if !first.is_some_and(Used::has_copies) {
            let parts = Parts::new(written);
            let plan = Plan {
                parts: parts.of.clone(),
                reads: only
                    .filter_map(|used| Some((used.object, used.read?)))
                    .collect(),
                kept: None,
            };
            return Some((plan, parts));
        }
        // Locked, and never written.
        let locks = only.clone().filter(|used| !used.has_copies());
        let mut parts = Parts::new(locks.map(|used| (used.entry(0), &[][..])));
        let kept = all.iter().filter(|used| used.has_copies());
        let kept = kept.filter_map(|used| match (used.write, used.read) {
            (Some(write), _) => Some((used.entry(write.len() as u32), write)),
            (None, Some(_)) => Some((used.entry(NOT_WRITTEN), &[][..])),
            (None, None) => None,
        });
        let kept = parts.push_kept(kept);
        let plan = Plan {
            parts: parts.of.clone(),
            reads: Vec::new(),
            kept,
        };
        Some((plan, parts))
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
        let (plan, parts) = Plan::of(&all).unwrap();
        assert_eq!((plan.parts.len(), plan.reads.len()), (1, 0));
        let lock = decode(&parts.bytes[0], 1).unwrap()[0].0;
        assert_eq!((lock.expected, lock.len), (4, 0));
        let kept = plan.kept.unwrap();
        assert_eq!((kept.first, kept.objects), (all[2].object.tag, 3));
        let all = decode(&parts.bytes[1], 3).unwrap();
        let written: Vec<bool> = all.iter().map(|(entry, _)| entry.is_written()).collect();
        assert_eq!(written, [false, true, false]);
    }

    #[test]
    fn what_has_copies_is_written_with_what_has_some_of_any_region() {
        let [own, one, two] = [HomeId::of(1), HomeId::of_group(0), HomeId::of_group(1)];
        let all = [used(own, 0, 0, Some(b"")), used(one, 0, 0, Some(b""))];
        assert!(Plan::of(&all).is_none());
        let all = [
            used(one, 64, 0, Some(b"a")),
            used(two, 0, 4, None),
            used(two, 64, 0, Some(b"bc")),
        ];
        let (plan, parts) = Plan::of(&all).unwrap();
        let kept = plan.kept.unwrap();
        assert_eq!((plan.parts.len(), plan.reads.len()), (0, 0));
        // The lowest region is asked, for all of it.
        assert_eq!((kept.first, kept.objects), (all[0].object.tag, 3));
        assert_eq!(&parts.bytes[0][3 * 24..], b"abc");
        let plain = [used(own, 0, 0, Some(b"")), used(one, 0, 2, None)];
        let (plan, _) = Plan::of(&plain).unwrap();
        assert_eq!(
            (plan.parts.len(), plan.reads.len(), plan.kept),
            (1, 1, None)
        );
    }
}
