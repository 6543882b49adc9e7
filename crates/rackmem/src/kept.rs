//! What a node's agents keep because packets can be lost and members can die: which requests they have executed, and
//! blocks whose only current copy may be here although the cache no longer says so.

use crate::cache::Cache;
use rackmem_proto::flowcc::{Executed, LastExecuted, LocalStatus, Open};
use rackmem_proto::wire::{Copyset, Header, NodeId, RequesterId, Seq, Tag};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A block that has left the cache for an event that may not have received it.
struct Retained {
    seq: Seq,
    tag: Tag,
    block: Arc<[AtomicU64]>,
}

#[derive(Default)]
struct Inner {
    executed: LastExecuted,
    /// At most one block a requester.
    retained: HashMap<RequesterId, Retained>,
    /// Blocks that this cache has downgraded: home may not have them until the reader's event has ended.
    downgraded: HashSet<Tag>,
}

/// Nothing, where packets cannot be lost.
pub(crate) struct Kept(Option<Mutex<Inner>>);

fn words(block: &[AtomicU64]) -> Vec<u64> {
    block.iter().map(|word| word.load(Relaxed)).collect()
}

impl Kept {
    pub fn new(lossy: bool) -> Self {
        Kept(lossy.then(Mutex::default))
    }

    /// Whether packets can be lost.
    pub fn lossy(&self) -> bool {
        self.0.is_some()
    }

    fn lock(&self) -> Option<MutexGuard<'_, Inner>> {
        let inner = self.0.as_ref()?;
        Some(inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Enters a request into LAST-EXECUTED (§5.3.1).
    pub fn executed(&self, header: &Header) -> Executed {
        self.lock().map_or(Executed::New, |mut inner| {
            inner.executed.enter(header.requester, header.seq)
        })
    }

    /// A new epoch: requests of the last one do not come any more.
    pub fn enter(&self) {
        if let Some(mut inner) = self.lock() {
            inner.executed = LastExecuted::default();
        }
    }

    /// A block leaves the cache for this event.
    pub fn retain(&self, header: &Header, block: &[AtomicU64]) {
        if let Some(mut inner) = self.lock() {
            let copy = words(block).into_iter().map(AtomicU64::new).collect();
            let retained = Retained {
                seq: header.seq,
                tag: header.tag,
                block: copy,
            };
            inner.retained.insert(header.requester, retained);
        }
    }

    /// The block that has left the cache for this event.
    pub fn recall(&self, header: &Header) -> Option<Arc<[AtomicU64]>> {
        let inner = self.lock()?;
        let retained = inner.retained.get(&header.requester)?;
        (retained.seq == header.seq).then(|| retained.block.clone())
    }

    /// The cache has downgraded a block, and its write-back is on its way.
    pub fn downgraded(&self, tag: Tag) {
        if let Some(mut inner) = self.lock() {
            inner.downgraded.insert(tag);
        }
    }

    /// The cache has no copy of the block any more: whoever took it away knew that home has it.
    pub fn left(&self, tag: Tag) {
        if let Some(mut inner) = self.lock() {
            inner.downgraded.remove(&tag);
        }
    }

    /// Nodes that are no more: when one comes back it uses its requesters' numbers again.
    pub fn forget(&self, gone: Copyset) {
        if let Some(mut inner) = self.lock() {
            inner.retained.retain(|id, _| !gone.contains(id.node));
        }
    }

    /// The blocks that their homes may not have: given away to an event in `open` whose data did not come, downgraded,
    /// or in `read`, blocks that this node has read from a cache.
    pub fn to_rescue(
        &self,
        cache: &Cache,
        open: &[(NodeId, Open)],
        read: &[Tag],
    ) -> Vec<(Tag, Vec<u64>)> {
        let Some(inner) = self.lock() else {
            return Vec::new();
        };
        let given = open.iter().filter_map(|(node, open)| {
            let id = RequesterId {
                node: *node,
                slot: open.slot,
            };
            let retained = inner.retained.get(&id)?;
            let same = open.awaits_data && retained.seq == open.seq && retained.tag == open.tag;
            same.then(|| (open.tag, words(&retained.block)))
        });
        // A copy that may be written is written while this goes on: home would take old content for the last.
        let clean = |tag: &Tag| {
            let entry = cache.find(*tag);
            entry.is_some_and(|entry| cache.status(entry) == LocalStatus::Shared)
        };
        let cached = inner.downgraded.iter().chain(read).filter(|tag| clean(tag));
        let cached = cached.filter_map(|tag| Some((*tag, cache.read(*tag, words)?)));
        let found: BTreeMap<Tag, Vec<u64>> = given.chain(cached).collect();
        found.into_iter().collect()
    }

    /// Blocks that have left the cache for events that may not have received them yet.
    pub fn given(&self) -> Vec<Tag> {
        let inner = self.lock();
        let retained = inner.iter().flat_map(|inner| inner.retained.values());
        retained.map(|retained| retained.tag).collect()
    }

    /// Home has this block.
    pub fn rescued(&self, tag: Tag) {
        if let Some(mut inner) = self.lock() {
            inner.downgraded.remove(&tag);
            inner.retained.retain(|_, retained| retained.tag != tag);
        }
    }
}
