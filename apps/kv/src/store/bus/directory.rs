//! Who in the rack has subscribed to what.
//!
//! Every node keeps a log of its own clients' subscriptions in coherent memory, and a copy of the
//! others': who publishes looks at every log's length, which costs no packet while nobody
//! subscribes, and reads what is new. A log that is full is written anew, without what is over.
//!
//! ```text
//! block     0 generation: u64       of the log; another one: it begins again
//!           8 addr: u64             of the log
//!          16 capacity: u64
//!          24 len: u64
//!
//! entry     0 size: u32 | kind: u8           size: the whole, a multiple of 8
//!           8 count: u32 | name_len: u32     clients that have subscribed, from now on
//!          16 name, padded to 8
//! ```

use std::collections::BTreeMap;
use std::sync::Mutex;

use rackmem::window::{Window, WindowMut};

use crate::error::Result;
use crate::lock::lock;
use crate::memory::{Memory, MemoryError};
use crate::store::core::Core;

/// What one subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    Shard,
}

const KINDS: [Kind; 3] = [Kind::Channel, Kind::Pattern, Kind::Shard];
/// Bytes of a block in use.
const BLOCK: usize = 32;
/// Bytes of an entry before its name.
const ENTRY: usize = 16;
/// Bytes of the smallest log.
const SMALLEST: usize = 4096;
/// Attempts to read a log that is written anew meanwhile, and to write one.
const ATTEMPTS: usize = 16;

/// How many clients of a node have subscribed to what.
pub(super) type Names = BTreeMap<Kind, BTreeMap<Vec<u8>, u32>>;

/// What a node's block says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    generation: u64,
    pub addr: u64,
    pub capacity: usize,
    len: usize,
}

impl Head {
    fn load(view: &Window<'_>) -> Self {
        Head {
            generation: view.u64(0),
            addr: view.u64(8),
            capacity: view.u64(16) as usize,
            len: view.u64(24) as usize,
        }
    }

    fn store(&self, view: &mut WindowMut<'_>) {
        let words = [
            self.generation,
            self.addr,
            self.capacity as u64,
            self.len as u64,
        ];
        for (at, word) in words.into_iter().enumerate() {
            view.set_u64(8 * at, word);
        }
    }
}

/// A log as far as it was read, or written.
#[derive(Default)]
pub(super) struct Log {
    pub head: Head,
    pub names: Names,
    /// Of one's own: which nodes there were when it was written anew ([`Memory::lives`]).
    lives: u64,
}

/// See the module.
#[derive(Default)]
pub(super) struct Directory {
    pub mine: Mutex<Log>,
    /// By node; this node's own is empty.
    others: Mutex<Vec<Log>>,
}

fn append(log: &mut Vec<u8>, kind: Kind, name: &[u8], count: u32) {
    let size = ENTRY + name.len().next_multiple_of(8);
    log.extend_from_slice(&(size as u64 | (kind as u64) << 32).to_le_bytes());
    let lens = u64::from(count) | (name.len() as u64) << 32;
    log.extend_from_slice(&lens.to_le_bytes());
    log.extend_from_slice(name);
    log.resize(log.len().next_multiple_of(8), 0);
}

fn note(names: &mut Names, kind: Kind, name: &[u8], count: u32) {
    let names = names.entry(kind).or_default();
    match count {
        0 => drop(names.remove(name)),
        count => drop(names.insert(name.to_vec(), count)),
    }
}

/// Goes on with what a log says; `None` when it makes no sense.
fn replay(mut bytes: &[u8], names: &mut Names) -> Option<()> {
    while !bytes.is_empty() {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let (head, lens) = (word(0)?, word(8)?);
        let kind = *KINDS.get((head >> 32) as usize)?;
        let name = bytes.get(ENTRY..ENTRY + (lens >> 32) as usize)?;
        note(names, kind, name, lens as u32);
        bytes = bytes.get((head as u32 as usize).max(ENTRY)..)?;
    }
    Some(())
}

impl<M: Memory> Core<M> {
    /// So many more clients of this node have subscribed, or fewer. All who publish after this has
    /// returned know. Where it fails nothing has changed.
    pub fn subscribe(&self, kind: Kind, name: &[u8], more: i32) -> Result<()> {
        let mut mine = lock(&self.bus.directory.mine);
        let known = mine.names.get(&kind).and_then(|names| names.get(name));
        let before = known.copied().unwrap_or(0);
        let count = before.saturating_add_signed(more);
        note(&mut mine.names, kind, name, count);
        let told = self.tell_subscribers(&mut mine, (kind, name, count));
        if told.is_err() {
            note(&mut mine.names, kind, name, before);
            // What it may say now is written over before any of it is shown.
            mine.head.len = mine.head.capacity;
        }
        told
    }

    /// Puts an entry into the log. After a death a part of that may be gone, even one that was
    /// written long ago: then all of it is written anew.
    fn tell_subscribers(
        &self,
        mine: &mut Log,
        (kind, name, count): (Kind, &[u8], u32),
    ) -> Result<()> {
        let mut entry = Vec::new();
        append(&mut entry, kind, name, count);
        let head = mine.head;
        let lives = self.memory.lives();
        if mine.lives == lives && head.len + entry.len() <= head.capacity {
            self.memory.write(head.addr + head.len as u64, &entry)?;
            mine.head.len += entry.len();
            return self.show(&mine.head);
        }
        self.rewrite(mine)?;
        mine.lives = lives;
        Ok(())
    }

    pub(super) fn show(&self, head: &Head) -> Result<()> {
        let at = self.map.directory(self.base, usize::from(self.memory.id()));
        let show = || self.memory.update(at, BLOCK, |view| head.store(view));
        Ok(show().or_else(|_| {
            self.memory.accept(at)?;
            show()
        })?)
    }

    fn rewrite(&self, mine: &mut Log) -> Result<()> {
        let mut bytes = Vec::new();
        for (kind, names) in &mine.names {
            names
                .iter()
                .for_each(|(name, count)| append(&mut bytes, *kind, name, *count));
        }
        let capacity = (2 * bytes.len()).max(SMALLEST).next_power_of_two();
        let head = Head {
            generation: fastrand::u64(1..),
            addr: self.log_with(&bytes, capacity)?,
            capacity,
            len: bytes.len(),
        };
        let old = std::mem::replace(&mut mine.head, head);
        self.show(&mine.head)?;
        if old.capacity != 0 {
            // All know the new one. What cannot be given back stays taken.
            let _ = self.memory.free(old.addr, old.capacity);
        }
        Ok(())
    }

    /// Memory of so many bytes that begins with these. What is given out may be a part of a block
    /// that died while others were using it: such memory is left alone.
    fn log_with(&self, bytes: &[u8], capacity: usize) -> Result<u64> {
        let mut last = MemoryError::OutOfMemory;
        for _ in 0..ATTEMPTS {
            let addr = self.alloc(capacity)?;
            match self.memory.write(addr, bytes) {
                Ok(()) => return Ok(addr),
                Err(error @ MemoryError::Lost(_)) => last = error,
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.into())
    }

    /// Shows `f` the subscriptions of every node that is there.
    pub(super) fn subscriptions<R>(&self, mut f: impl FnMut(usize, &Names) -> R) -> Result<Vec<R>> {
        let me = usize::from(self.memory.id());
        let mut others = lock(&self.bus.directory.others);
        others.resize_with(self.map.nodes, Log::default);
        let mut all = Vec::new();
        for (node, log) in others.iter_mut().enumerate() {
            if node == me {
                all.push(f(node, &lock(&self.bus.directory.mine).names));
            } else if self.memory.is_member(node as u16) && self.catch_up_with(node, log) {
                all.push(f(node, &log.names));
            }
        }
        Ok(all)
    }

    /// Reads what is new in a node's log; `false` when its memory is gone.
    fn catch_up_with(&self, node: usize, log: &mut Log) -> bool {
        let at = self.map.directory(self.base, node);
        let look = || -> std::result::Result<Head, MemoryError> {
            self.memory.snapshot(at, BLOCK, Head::load)
        };
        for _ in 0..ATTEMPTS {
            let Ok(head) = look() else {
                // It died with its node.
                let _ = self.memory.accept(at);
                *log = Log::default();
                return false;
            };
            if head == log.head {
                return true;
            }
            if head.generation != log.head.generation || head.len < log.head.len {
                *log = Log::default();
            }
            let mut news = vec![0; head.len.min(head.capacity).saturating_sub(log.head.len)];
            let read = self.memory.read(head.addr + log.head.len as u64, &mut news);
            // Of a log that is written anew the old memory may hold anything by now.
            if look().is_ok_and(|now| now.generation == head.generation)
                && read.is_ok()
                && replay(&news, &mut log.names).is_some()
            {
                log.head = head;
                return true;
            }
            *log = Log::default();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HeapMemory;
    use crate::{Options, Store};

    fn count(store: &Store<HeapMemory>, name: &[u8]) -> u32 {
        let of = |_, names: &Names| {
            names
                .get(&Kind::Channel)
                .and_then(|all| all.get(name))
                .copied()
        };
        let all = store.core.subscriptions(of).unwrap();
        all.into_iter().flatten().sum()
    }

    #[test]
    fn every_node_knows_at_once_however_often_a_log_is_written_anew() {
        let memory = HeapMemory::new(256, 8 << 20, 2);
        let open = |id| {
            Store::open(
                memory.node(id),
                Options {
                    buckets: 4,
                    ..Options::default()
                },
            )
        };
        let (one, other) = (open(0).unwrap(), open(1).unwrap());
        assert_eq!(count(&other, b"a"), 0);
        let mut random = fastrand::Rng::with_seed(1);
        let mut counts = [0i32; 300];
        for _ in 0..5000 {
            let i = random.usize(..counts.len());
            let more = if counts[i] > 0 && random.bool() {
                -1
            } else {
                1
            };
            counts[i] += more;
            let name = format!("channel {i}").into_bytes();
            one.core.subscribe(Kind::Channel, &name, more).unwrap();
            if random.u8(..16) == 0 {
                assert_eq!(count(&other, &name), counts[i] as u32, "{i}");
            }
        }
        for (i, expected) in counts.iter().enumerate() {
            assert_eq!(
                count(&other, format!("channel {i}").as_bytes()),
                *expected as u32
            );
        }
        drop((one, other));
    }
}
