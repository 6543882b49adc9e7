//! `maxmemory`: how many bytes the rack may keep of the store.
//!
//! The limit is the rack's, a record of the servers. Each node tells in a record of its own how
//! much it keeps, when that has changed by a part of the limit, and looks at what the others tell
//! as often. Between two looks it goes by what its clients have sent since. So the rack is over the
//! limit by about that part for each node at most, and by what one command adds.
//!
//! While there is no limit nobody tells anything, and a command costs the look at one word.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::error::Result;
use crate::memory::Memory;
use crate::store::Store;

/// The record of the limit: 8 bytes.
const RECORD: &[u8] = b"memory:limit";
/// The record of the policy: its number among the settings, 8 bytes.
const POLICY: &[u8] = b"memory:policy";
/// And of what a node keeps, which has this before its number: 8 bytes.
const KEPT: &str = "memory:kept:";
/// A look is taken when so small a part of the limit may have been added, and evictions leave so
/// much room.
const PART: u64 = 128;
/// A node tells what it keeps when that has changed by so small a part of the limit.
const TOLD: u64 = 1024;
/// Bytes that a new key takes besides what its client has sent, about.
const BESIDES: u64 = 64;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Limit {
    /// 0: none.
    bytes: AtomicU64,
    /// What the rack kept at the last look.
    kept: AtomicU64,
    /// What clients of this node have added since, at most.
    since: AtomicU64,
    looked: Mutex<Looked>,
}

/// What a node knows from its last look.
#[derive(Debug, Default)]
struct Looked {
    /// What it has told.
    told: Option<u64>,
    /// What the other nodes told together.
    others: u64,
    /// What evictions have freed at other nodes, which have not told of it yet.
    freed: u64,
    /// What this node kept itself.
    mine: u64,
}

impl Limit {
    /// The limit in bytes; 0: there is none.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Sets the rack's limit; 0: none.
    ///
    /// # Errors
    /// The store's.
    pub fn set<M: Memory>(&self, store: &Store<M>, bytes: u64) -> Result<()> {
        store.internal().set(RECORD, &bytes.to_le_bytes())?;
        self.refresh(store)
    }

    /// Learns the rack's limit, and how much the rack keeps if there is one.
    ///
    /// # Errors
    /// The store's; what was known stays in force.
    pub fn refresh<M: Memory>(&self, store: &Store<M>) -> Result<()> {
        let bytes = number(store, RECORD)?.unwrap_or(0);
        self.bytes.store(bytes, Relaxed);
        match bytes {
            0 => Ok(()),
            _ => self.look(store).map(|_| ()),
        }
    }

    /// By how many bytes the rack is over the limit, to which a command is about to add `adding`.
    ///
    /// # Errors
    /// The store's.
    #[inline]
    pub fn excess<M: Memory>(&self, store: &Store<M>, adding: usize) -> Result<u64> {
        match self.bytes() {
            0 => Ok(0),
            limit => self.measure(store, limit, adding as u64 + BESIDES),
        }
    }

    #[cold]
    fn measure<M: Memory>(&self, store: &Store<M>, limit: u64, adding: u64) -> Result<u64> {
        let since = self.since.fetch_add(adding, Relaxed).saturating_add(adding);
        let kept = self.kept.load(Relaxed);
        if since <= limit / PART && kept.saturating_add(since) <= limit {
            return Ok(0);
        }
        Ok(self.look(store)?.saturating_sub(limit))
    }

    /// How much is to go when something has to: the excess, and room for what comes next.
    pub fn goal(&self, excess: u64) -> u64 {
        excess.saturating_add(self.bytes() / PART)
    }

    /// Evictions have freed so many bytes, somewhere in the rack. What is over the limit still.
    ///
    /// # Errors
    /// The store's.
    pub fn freed<M: Memory>(&self, store: &Store<M>, bytes: u64) -> Result<u64> {
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            let here = looked.mine.saturating_sub(store.used_bytes() as u64);
            looked.freed = looked.freed.saturating_add(bytes.saturating_sub(here));
        }
        Ok(self.look(store)?.saturating_sub(self.bytes()))
    }

    /// Tells what this node keeps, and learns what the others do; the sum.
    fn look<M: Memory>(&self, store: &Store<M>) -> Result<u64> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = store.used_bytes() as u64;
        let step = self.bytes() / TOLD;
        if looked.told.is_none_or(|told| told.abs_diff(mine) > step) {
            let me = store.memory().id();
            // Where there is no room even for this, the others go by what they knew.
            let told = store.internal().set(&record(me), &mine.to_le_bytes());
            looked.told = told.is_ok().then_some(mine);
        }
        let others = others(store)?;
        if others != looked.others {
            (looked.others, looked.freed) = (others, 0);
        }
        looked.mine = mine;
        let kept = mine.saturating_add(others.saturating_sub(looked.freed));
        self.kept.store(kept, Relaxed);
        self.since.store(0, Relaxed);
        Ok(kept)
    }
}

/// Tells the rack which keys go: the policy's number.
///
/// # Errors
/// The store's.
pub(crate) fn tell_policy<M: Memory>(store: &Store<M>, policy: u64) -> Result<()> {
    store.internal().set(POLICY, &policy.to_le_bytes())
}

/// Which keys go in this rack; `None`: nobody has said so.
///
/// # Errors
/// The store's.
pub(crate) fn told_policy<M: Memory>(store: &Store<M>) -> Result<Option<u64>> {
    number(store, POLICY)
}

/// What the other members of the rack have told that they keep.
fn others<M: Memory>(store: &Store<M>) -> Result<u64> {
    let memory = store.memory();
    let nodes = (0..memory.nodes()).filter_map(|node| u16::try_from(node).ok());
    let others = nodes.filter(|node| *node != memory.id() && memory.is_member(*node));
    others
        .map(|node| Ok(number(store, &record(node))?.unwrap_or(0)))
        .sum()
}

fn record(node: u16) -> Vec<u8> {
    format!("{KEPT}{node}").into_bytes()
}

/// A record that is a number.
fn number<M: Memory>(store: &Store<M>, name: &[u8]) -> Result<Option<u64>> {
    let mut bytes = Vec::new();
    store.internal().get(name, &mut bytes)?;
    Ok(bytes.try_into().ok().map(u64::from_le_bytes))
}
