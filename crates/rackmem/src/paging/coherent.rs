//! Coherent memory as memory of the process: plain loads, stores and atomics.

use crate::bytes::mapped::{Frames, OnLost};
use crate::bytes::node_cache::{MAPPINGS, Unmapped};
use crate::error::{AccessError, RackError, RegionError};
use crate::faulting::FaultMode;
use crate::faulting::signal::Bring;
use crate::faulting::system_page;
use crate::faulting::view::View;
use crate::host::ahead::Come;
use crate::node::Node;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};

/// A region of coherent memory, mapped: its bytes are at addresses of this process, and what
/// threads of any node load there is what threads of any node have stored.
/// [`Region::map`](crate::Region::map) makes one.
///
/// A block that this node has is a page of the process' memory: a load costs a load. Where it has
/// none, or only the right to read, the instruction is interrupted, the thread asks the rack as a
/// call of [`Region::read`](crate::Region::read) would, and the instruction goes on. So an aligned
/// word of up to eight bytes is read and written as one step, in one order for the whole rack, and
/// atomic instructions are atomic across machines: mapped memory is as strong as memory of one
/// machine. What is longer than a word others may see half written: use locks, or the calls that
/// take whole values, which see mapped memory at one moment.
///
/// **A block is a page or several** ([`Node::block_size`]). Nodes that store to different words of
/// one block take it from each other; who has got it keeps it for 10 µs.
///
/// **When a block cannot be had** (its home has died, the rack goes on without this process or is
/// closed) a load has nothing to return: the reason is printed, and the thread gets `SIGBUS`.
/// [`CoherentPages::touch`] says it as an error, [`CoherentPages::on_lost`] asks the program.
///
/// System calls fail with `EFAULT` on pages that are not there: [`CoherentPages::pin`] keeps them.
/// Some look at memory later than they return (`O_DIRECT`, io_uring, `vmsplice`): give them memory
/// of the process' own.
/// Calls of this library must not be given these addresses either.
/// A thread must not block `SIGBUS`. [`FaultMode`] has other ways.
/// A child by `fork` does not have the mapping: it ends by `SIGSEGV` where it touches it. Memory of
/// a removed region is not the region's any more, as everywhere.
///
/// Pages take as many bytes as the node's cache at most, beside that; which came first make room.
/// Dropping the last handle sends them home.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, RegionError, RegionSpec};
/// use std::sync::atomic::Ordering::SeqCst;
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("grid", 1 << 20);
/// let here = match rack.node(0).create_region(&spec)?.map() {
///     Err(RegionError::NoPaging { .. }) => return Ok(()), // the system does not allow it
///     pages => pages?,
/// };
/// let there = rack.node(1).open_region(&spec)?.map()?;
/// std::thread::scope(|scope| {
///     for pages in [&here, &there] {
///         scope.spawn(|| (0..1000).for_each(|_| drop(pages.words()[7].fetch_add(1, SeqCst))));
///     }
/// });
/// assert_eq!(here.words()[7].load(SeqCst), 2000);
/// # Ok(())
/// # }
/// ```
pub struct CoherentPages {
    node: Node,
    /// Which of the node's mappings it is on.
    mapping: usize,
    /// Where its first byte is in the mapping.
    skip: usize,
    len: usize,
    name: String,
    /// A child by `fork` has a copy of this handle, and nothing of what it names.
    process: u32,
}

/// What a mapping has done, with all its handles.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{FaultCounts, Rack, RegionError, RegionSpec};
/// use std::sync::atomic::Ordering::SeqCst;
///
/// let rack = Rack::local(1)?;
/// let region = rack.node(0).create_region(&RegionSpec::new("hot", 4096))?;
/// let pages = match region.map() {
///     Err(RegionError::NoPaging { .. }) => return Ok(()), // the system does not allow it
///     pages => pages?,
/// };
/// (0..100).for_each(|_| drop(pages.words()[0].fetch_add(1, SeqCst)));
/// let FaultCounts { faults, taken, .. } = pages.counts();
/// assert_eq!((faults, taken), (1, 0)); // the first one was interrupted
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCounts {
    /// Loads and stores that were interrupted.
    pub faults: u64,
    /// Of these: those whose block was here, and had to be shown again or for storing too.
    pub shown: u64,
    /// Pages that were taken away, or from then on read-only, for another node.
    pub taken: u64,
    /// Pages that made room for others.
    pub evicted: u64,
    /// Pages that came before a load or a store asked for them, since faults went from end to end
    /// of memory.
    pub ahead: u64,
    /// How often the process had as many mappings as the system allows (`vm.max_map_count`), and
    /// all pages were hidden, to come again: by [`FaultMode::Mprotect`] alone.
    pub crowded: u64,
}

impl std::fmt::Debug for CoherentPages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoherentPages")
            .field("region", &self.name)
            .field("bytes", &self.len)
            .field("at", &self.as_ptr())
            .finish()
    }
}

/// Brings what a fault of this range asks for. It knows the node as long as that lives.
fn bring(node: &Node, (first, block): (Tag, usize)) -> Bring {
    let node = Arc::downgrade(&node.inner);
    Box::new(move |at, stores| {
        let node = node.upgrade().ok_or(AccessError::Rack(RackError::Closed))?;
        let access = &node.access;
        let tag = Tag(first.0 + (at / block * block) as u64);
        let mut mappings = access.agents.cache.mappings();
        let frames = mappings.find(|frames| frames.nth(tag).is_some());
        // The program has kept an address for longer than the handle.
        let frames = frames.filter(|frames| frames.is_used());
        let frames = frames.ok_or(AccessError::BadAddress { addr: tag.0 })?;
        frames.counters.faults.fetch_add(1, Relaxed);
        while let Err(error) = access.page_in(tag, stores) {
            if frames.ask_about_lost(at, stores, &error) == OnLost::Signal {
                return Err(error);
            }
        }
        if !stores {
            frames.bring_ahead(at / block, |tags| {
                access.bring_ahead(tags, Come::pages(false))
            });
        }
        Ok(())
    })
}

impl CoherentPages {
    pub(crate) fn new(
        node: &Node,
        name: &str,
        (addr, len): (u64, usize),
        mode: FaultMode,
    ) -> Result<CoherentPages, RegionError> {
        let not = |why| RegionError::NotMappable {
            name: name.into(),
            why,
        };
        let cache = &node.inner.access.agents.cache;
        let block = cache.block_bytes();
        if !block.is_multiple_of(system_page()) {
            return Err(not("its blocks are no whole pages of this system"));
        }
        let first = cache.tag_of(addr);
        let skip = (addr - first.0) as usize;
        let blocks = (first, (skip + len).div_ceil(block));
        let frames = cache.mapping(blocks, || {
            let view = View::new(blocks.1 * block, mode)?;
            let view = view.served_by(bring(node, (first, block)))?;
            let view = view.ok_or(RegionError::TooManyMappings { most: MAPPINGS })?;
            Ok(Frames::new(first, (blocks.1, block), view, cache.bytes()))
        });
        let (mapping, frames) = frames.map_err(|unmapped| match unmapped {
            Unmapped::Overlaps => not("it shares a block with a mapped region"),
            Unmapped::Full => RegionError::TooManyMappings { most: MAPPINGS },
            Unmapped::Refused(why) => why,
        })?;
        if frames.view().mode() != mode {
            return Err(not("this node has mapped it with other faults"));
        }
        frames.held(true);
        Ok(CoherentPages {
            node: node.clone(),
            mapping,
            skip,
            len,
            name: name.into(),
            process: std::process::id(),
        })
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    pub(super) fn skip(&self) -> usize {
        self.skip
    }

    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    pub(super) fn frames(&self) -> &Frames {
        let cache = &self.node.inner.access.agents.cache;
        // It is there as long as the node is.
        cache.frames(self.mapping).expect("the mapping of a handle")
    }

    /// Its bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where its first byte is. What is done through the pointer its user answers for: not behind
    /// [`CoherentPages::len`] bytes, not after the handle is dropped, and no references to what
    /// another thread or node may change.
    pub fn as_ptr(&self) -> *mut u8 {
        let first = self.frames().view().user().as_ptr();
        first.wrapping_add(self.skip)
    }

    /// Its bytes as words that all nodes share, whole words only. Ask once:
    /// what it gives is memory.
    pub fn words(&self) -> &[AtomicU64] {
        let words = self.frames().view().user().words();
        let from = self.skip / 8;
        &words[from..from + self.len / 8]
    }

    /// Its bytes, which all nodes share.
    pub fn bytes(&self) -> &[AtomicU8] {
        let words = self.frames().view().user().words();
        let bytes =
            std::ptr::slice_from_raw_parts(words.as_ptr().cast::<AtomicU8>(), words.len() * 8);
        // SAFETY: the same bytes, as atomics of one byte each; whoever else has them has them as
        // atomics.
        let bytes = unsafe { &*bytes };
        &bytes[self.skip..self.skip + self.len]
    }

    /// How its faults come to the library.
    pub fn mode(&self) -> FaultMode {
        self.frames().view().mode()
    }

    /// What it has done.
    pub fn counts(&self) -> FaultCounts {
        let counters = &self.frames().counters;
        FaultCounts {
            faults: counters.faults.load(Relaxed),
            shown: counters.shown.load(Relaxed),
            taken: counters.taken.load(Relaxed),
            evicted: counters.evicted.load(Relaxed),
            ahead: counters.ahead.load(Relaxed),
            crowded: self.frames().view().crowded(),
        }
    }

    /// Brings the pages of these bytes, for loads or for stores too,
    /// so that instructions and system calls that follow find them,
    /// unless another node takes them first.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`]; those of [`Region::write`](crate::Region::write).
    pub fn touch(&self, bytes: Range<usize>, stores: bool) -> Result<(), RegionError> {
        let (frames, access) = (self.frames(), &self.node.inner.access);
        let tags: Vec<Tag> = self.blocks(bytes)?.map(|nth| frames.tag(nth)).collect();
        access.bring_ahead(&tags, Come::pages(stores));
        // One by one: those that are here cost a look.
        Ok(tags
            .into_iter()
            .try_for_each(|tag| access.page_in(tag, stores))?)
    }

    /// The blocks of the mapping that some bytes lie in.
    pub(super) fn blocks(&self, bytes: Range<usize>) -> Result<Range<usize>, RegionError> {
        if bytes.start > bytes.end || bytes.end > self.len {
            return Err(RegionError::OutOfBounds {
                name: self.name.clone(),
                at: bytes.start,
                len: bytes.len(),
            });
        }
        let block = self.node.block_size();
        let (from, to) = (self.skip + bytes.start, self.skip + bytes.end);
        Ok(from / block..to.div_ceil(block))
    }
}

impl CoherentPages {
    /// Sends home what this node has changed, so that it outlives this node. The node has none of
    /// these pages afterwards, and a page that is changed meanwhile may stay.
    ///
    /// # Errors
    /// Those of [`Node::evict`]: some are home, some are not.
    pub fn bring_home(&self) -> Result<(), AccessError> {
        self.bring_home_where(|_| true)
    }

    /// The same of the pages that some of its bytes lie in.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`]; those of [`Node::evict`]: some are home, some are not.
    pub fn bring_home_of(&self, bytes: Range<usize>) -> Result<(), RegionError> {
        let blocks = self.blocks(bytes)?;
        if blocks.is_empty() {
            return Ok(());
        }
        let first = self.frames().tag(blocks.start).0;
        let len = (blocks.len() * self.node.block_size()) as u64;
        Ok(self.bring_home_where(|tag| tag.0.wrapping_sub(first) < len)?)
    }

    fn bring_home_where(&self, wanted: impl Fn(Tag) -> bool) -> Result<(), AccessError> {
        let tags: Vec<Tag> = self
            .frames()
            .copies()
            .filter(|copy| copy.1 == LocalStatus::Modified && wanted(copy.0))
            .map(|copy| copy.0)
            .collect();
        self.node.inner.access.bring_ahead(&tags, Come::Home);
        // One by one: those that are home cost a look.
        tags.into_iter()
            .try_for_each(|tag| self.node.evict(tag.0).map(drop))
    }
}

impl Drop for CoherentPages {
    fn drop(&mut self) {
        let frames = self.frames();
        if !self.is_of_this_process() || frames.held(false) > 0 {
            return;
        }
        // Another node that wants one takes it; what cannot be sent home now leaves like any copy.
        let copies: Vec<Tag> = frames.copies().map(|copy| copy.0).collect();
        for tag in copies {
            let _ = self.node.evict(tag.0);
        }
        (0..frames.range().1).for_each(|nth| frames.discard(nth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::mapped::{Shown, Stop};
    use crate::{Rack, RegionSpec};
    use rackmem_proto::flowcc::LocalStatus;
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::Duration;

    /// Longer than an instruction takes that nobody stops. What is shown does not depend on it:
    /// where a machine is so slow that a thread has not begun by then, less is.
    const A_WHILE: Duration = Duration::from_millis(200);

    /// A page of a node that may store there, and has stored 1.
    fn page() -> (Rack, CoherentPages, Tag) {
        let rack = Rack::local(2).unwrap();
        let region = rack.node(0).create_region(&RegionSpec::new("page", 4096));
        let pages = region.unwrap().map().unwrap();
        pages.words()[0].store(1, SeqCst);
        let tag = pages.frames().tag(0);
        (rack, pages, tag)
    }

    fn cache(rack: &Rack) -> &crate::bytes::node_cache::NodeCache {
        &rack.nodes()[0].inner.access.agents.cache
    }

    #[test]
    fn nobody_loads_what_is_being_taken_away() {
        let (rack, pages, tag) = page();
        let cache = cache(&rack);
        let held = cache.lock_tag(tag, Stop::All).unwrap();
        std::thread::scope(|scope| {
            let loaded = scope.spawn(|| pages.words()[0].load(SeqCst));
            std::thread::sleep(A_WHILE);
            // As if another node had had it meanwhile.
            cache.block(held.entry())[0].store(2, SeqCst);
            held.set(LocalStatus::Modified);
            assert_eq!(loaded.join().unwrap(), 2);
        });
    }

    #[test]
    fn nobody_stores_to_what_is_being_read_and_loads_go_on() {
        let (rack, pages, tag) = page();
        let cache = cache(&rack);
        let held = cache.lock_tag(tag, Stop::Stores).unwrap();
        std::thread::scope(|scope| {
            let stored = scope.spawn(|| pages.words()[0].store(2, SeqCst));
            assert_eq!(pages.words()[0].load(SeqCst), 1);
            std::thread::sleep(A_WHILE);
            assert_eq!(cache.block(held.entry())[0].load(SeqCst), 1);
            held.set(LocalStatus::Modified);
            stored.join().unwrap();
            assert_eq!(pages.words()[0].load(SeqCst), 2);
        });
    }

    #[test]
    fn a_copy_that_others_share_is_not_stored_to() {
        let (rack, pages, tag) = page();
        let cache = cache(&rack);
        let held = cache.lock_tag(tag, Stop::Nothing).unwrap();
        let entry = held.entry();
        held.set(LocalStatus::Shared);
        let again = cache.lock(entry, Stop::Nothing);
        std::thread::scope(|scope| {
            let stored = scope.spawn(|| pages.words()[0].store(2, SeqCst));
            std::thread::sleep(A_WHILE);
            assert_eq!(cache.block(entry)[0].load(SeqCst), 1);
            again.set(LocalStatus::Modified);
            stored.join().unwrap();
        });
    }

    #[test]
    fn what_this_node_has_no_copy_of_is_not_loaded() {
        let (rack, pages, tag) = page();
        let cache = cache(&rack);
        let held = cache.lock_tag(tag, Stop::Nothing).unwrap();
        let entry = held.entry();
        held.set(LocalStatus::Invalid);
        let again = cache.lock(entry, Stop::Nothing);
        std::thread::scope(|scope| {
            let loaded = scope.spawn(|| pages.words()[0].load(SeqCst));
            std::thread::sleep(A_WHILE);
            cache.block(entry)[0].store(2, SeqCst);
            again.set(LocalStatus::Modified);
            assert_eq!(loaded.join().unwrap(), 2);
        });
    }

    #[test]
    fn who_cannot_show_that_it_is_alive_loads_nothing() {
        let (rack, pages, tag) = page();
        let cache = cache(&rack);
        let entry = cache.find(tag).unwrap();
        cache.close();
        assert_eq!(cache.show(tag, false), Shown::No);
        cache.block(entry)[0].store(2, SeqCst);
        std::thread::scope(|scope| {
            let loaded = scope.spawn(|| pages.words()[0].load(SeqCst));
            std::thread::sleep(A_WHILE);
            cache.block(entry)[0].store(3, SeqCst);
            cache.open();
            assert_eq!(loaded.join().unwrap(), 3);
        });
    }
}
