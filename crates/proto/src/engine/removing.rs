//! What a node does with its copies when regions of a home are removed that a group keeps
//! (`flowcc/removal.rs` says what an address is of).
//!
//! Two threads of a node may meet: one hears of a removal and drops what the node has ([`hear`]),
//! and the other one's event brings a block at that moment ([`install`]). The first says what is
//! gone and looks at the cache afterwards; the second puts the block there and looks afterwards
//! what is gone. So one of the two sees the other, whichever is first, and no block stays that
//! nobody would call back.

use super::Defect;
use crate::flowcc::{KeptBlocks, Whereabouts};
use crate::wire::Tag;
use alloc::vec::Vec;

/// A node's copies of blocks whose homes groups keep.
pub trait KeptCopies {
    /// The home that a group keeps has this from here on. Where it began before.
    fn lay_out(&mut self, group: u16, blocks: KeptBlocks) -> u64;
    /// Where an address is, as far as this node has heard.
    fn whereabouts(&self, tag: Tag) -> Whereabouts;
    /// The blocks of a home of which it has copies.
    fn of_home(&self, group: u16) -> Vec<Tag>;
    /// Its copy of a block, if there is one, is nobody's, clean or dirty.
    fn drop_copy(&mut self, tag: Tag);
    /// The rule that is broken on purpose.
    fn defect(&self) -> Option<Defect> {
        None
    }
}

/// A node hears what the home has that a group keeps. What it has of removed regions goes: nobody
/// asks for it, and nobody calls it back.
pub fn hear<C: KeptCopies>(copies: &mut C, group: u16, blocks: KeptBlocks) {
    let before = copies.lay_out(group, blocks);
    if before >= blocks.base || copies.defect() == Some(Defect::KeepRemoved) {
        return;
    }
    let all = copies.of_home(group).into_iter();
    let gone: Vec<Tag> = all.filter(|tag| is_gone(copies, *tag)).collect();
    gone.into_iter().for_each(|tag| copies.drop_copy(tag));
}

/// A block comes into the cache, or its entry says something else from here on: `put` does that. If
/// its region was removed meanwhile, it goes again.
#[inline]
pub fn install<C: KeptCopies>(copies: &mut C, tag: Tag, put: impl FnOnce(&mut C)) {
    put(copies);
    if is_gone(copies, tag) && copies.defect() != Some(Defect::KeepComing) {
        copies.drop_copy(tag);
    }
}

#[inline]
fn is_gone<C: KeptCopies>(copies: &C, tag: Tag) -> bool {
    !tag.home().is_own() && copies.whereabouts(tag) == Whereabouts::Gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::HomeId;
    use alloc::collections::BTreeSet;
    use core::cell::RefCell;

    const BLOCK: u64 = 4096;
    const GROUP: u16 = 2;
    const OLD: KeptBlocks = KeptBlocks::of_bytes(4 * BLOCK);
    const NEXT: KeptBlocks = KeptBlocks {
        first: 2,
        base: 1 << 16,
        bytes: 4 * BLOCK,
    };

    /// What two threads of a node share.
    struct Node {
        laid: KeptBlocks,
        cache: BTreeSet<Tag>,
        /// What the other thread does, before the nth thing that happens to either of these.
        other: Option<(u32, Act)>,
    }

    type Act = fn(&mut Thread<'_>);

    struct Thread<'a>(&'a RefCell<Node>);

    impl Thread<'_> {
        /// Something is about to happen: the other thread may be first.
        fn step(&self) {
            let other = {
                let mut node = self.0.borrow_mut();
                if let Some((left, _)) = &mut node.other
                    && *left > 0
                {
                    *left -= 1;
                    return;
                }
                node.other.take()
            };
            if let Some((_, act)) = other {
                act(&mut Thread(self.0));
            }
        }
    }

    impl KeptCopies for Thread<'_> {
        fn lay_out(&mut self, _: u16, blocks: KeptBlocks) -> u64 {
            self.step();
            core::mem::replace(&mut self.0.borrow_mut().laid, blocks).base
        }

        fn whereabouts(&self, tag: Tag) -> Whereabouts {
            self.step();
            self.0.borrow().laid.whereabouts(tag)
        }

        fn of_home(&self, group: u16) -> Vec<Tag> {
            self.step();
            let node = self.0.borrow();
            let tags = node.cache.iter().copied();
            tags.filter(|tag| tag.home().group() == Some(group))
                .collect()
        }

        fn drop_copy(&mut self, tag: Tag) {
            self.step();
            self.0.borrow_mut().cache.remove(&tag);
        }
    }

    fn block(of: KeptBlocks, nth: u64) -> Tag {
        of.tag(GROUP, nth * BLOCK)
    }

    fn hears(thread: &mut Thread<'_>) {
        hear(thread, GROUP, NEXT);
    }

    fn brings(thread: &mut Thread<'_>) {
        for tag in [block(OLD, 1), block(NEXT, 1), HomeId(3).start()] {
            install(thread, tag, |thread| {
                thread.step();
                thread.0.borrow_mut().cache.insert(tag);
            });
        }
    }

    /// One thread stops at any point of what it does, and the other one does all that it has to.
    fn left(first: Act, other: Act, before: u32) -> Vec<Tag> {
        let node = RefCell::new(Node {
            laid: OLD,
            cache: [block(OLD, 0), block(OLD, 3)].into(),
            other: Some((before, other)),
        });
        first(&mut Thread(&node));
        // It was not that long.
        let late = node.borrow_mut().other.take();
        late.into_iter()
            .for_each(|(_, act)| act(&mut Thread(&node)));
        let node = node.borrow();
        node.cache.iter().copied().collect()
    }

    #[test]
    fn nothing_of_a_removed_region_stays_whoever_is_first() {
        let stays = [HomeId(3).start(), block(NEXT, 1)];
        for before in 0..20 {
            assert_eq!(left(hears, brings, before), stays, "{before}");
            assert_eq!(left(brings, hears, before), stays, "{before}");
        }
    }

    #[test]
    fn a_region_that_stays_keeps_its_copies() {
        let node = RefCell::new(Node {
            laid: OLD,
            cache: [block(OLD, 0)].into(),
            other: None,
        });
        hear(&mut Thread(&node), GROUP, OLD);
        install(&mut Thread(&node), block(OLD, 0), |_| {});
        assert_eq!(node.borrow().cache.len(), 1);
    }
}
