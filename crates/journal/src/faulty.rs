//! A disk in memory that fails as disks do, for tests.
//!
//! | fault | what the store sees | what is left |
//! |---|---|---|
//! | [`Faults::power_at`] | from that step on nothing works | after [`FaultyDisk::restart`]: what was synced; of the rest of each file any sectors; of new names any first ones |
//! | [`Faults::sync_fails_at`] | one sync fails, later ones of the file succeed | that file's content is durable as far as before, whatever is said later |
//! | [`Faults::sync_lies_at`] | one sync succeeds | nothing of it is durable until the next one |
//! | [`Faults::room`] | writes beyond so many bytes fail as on a full disk | what fitted |
//! | [`Faults::short`] | a write takes a part | that part |

use crate::Disk;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SECTOR: usize = 512;

/// What goes wrong. Steps are counted from the last restart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// At this step the power fails.
    pub power_at: Option<u64>,
    /// This sync of a file fails.
    pub sync_fails_at: Option<u64>,
    /// This sync of a file does nothing, and says that it did.
    pub sync_lies_at: Option<u64>,
    /// Bytes that fit.
    pub room: Option<usize>,
    /// Writes take parts of what they are given.
    pub short: bool,
}

#[derive(Clone, Debug, Default)]
struct File {
    bytes: Vec<u8>,
    /// So many of them are durable.
    synced: usize,
    /// A sync has failed: no later one does anything.
    dropped: bool,
}

#[derive(Debug, Default)]
struct Inner {
    files: Vec<File>,
    names: BTreeMap<String, usize>,
    /// Names that are durable, and those of after every later step.
    durable: BTreeMap<String, usize>,
    since: Vec<BTreeMap<String, usize>>,
    faults: Faults,
    steps: u64,
    syncs: u64,
    dice: u64,
}

/// See the module. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk(Arc<Mutex<Inner>>);

impl Inner {
    fn below(&mut self, bound: usize) -> usize {
        self.dice = self.dice.wrapping_mul(0x5851_f42d_4c95_7f2d);
        self.dice = self.dice.wrapping_add(0x1405_7b7e_f767_814f);
        (self.dice >> 33) as usize % bound.max(1)
    }

    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        match self.faults.power_at {
            Some(at) if self.steps > at => Err(io::Error::other("the power has failed")),
            _ => Ok(()),
        }
    }

    fn id(&self, name: &str) -> io::Result<usize> {
        let id = self.names.get(name).copied();
        id.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn named(&mut self) {
        self.since.push(self.names.clone());
    }
}

impl FaultyDisk {
    /// An empty one, whose faults are drawn from this seed.
    pub fn new(seed: u64) -> Self {
        let disk = FaultyDisk::default();
        disk.inner().dice = seed;
        disk
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What goes wrong from here on.
    pub fn set(&self, faults: Faults) {
        let mut inner = self.inner();
        (inner.faults, inner.steps, inner.syncs) = (faults, 0, 0);
    }

    /// Steps since then, and syncs of files.
    pub fn steps(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.steps, inner.syncs)
    }

    /// The power was gone, and is back: see the module. No fault is left.
    pub fn restart(&self) {
        let mut inner = self.inner();
        let kept = inner.since.len() + 1;
        let kept = inner.below(kept);
        if kept > 0 {
            inner.durable = inner.since[kept - 1].clone();
        }
        inner.names = inner.durable.clone();
        inner.since.clear();
        for nth in 0..inner.files.len() {
            let mut file = inner.files[nth].clone();
            let unsynced = file.bytes.len() - file.synced;
            let len = file.synced + inner.below(unsynced + 1);
            file.bytes.truncate(len);
            let mut at = file.synced;
            while at < len {
                let end = (at / SECTOR + 1) * SECTOR;
                if inner.below(2) == 0 {
                    file.bytes[at..end.min(len)].fill(0);
                }
                at = end;
            }
            (file.synced, file.dropped) = (len, false);
            inner.files[nth] = file;
        }
        (inner.faults, inner.steps, inner.syncs) = (Faults::default(), 0, 0);
    }

    /// Files, and how long they are.
    pub fn files(&self) -> Vec<(String, usize)> {
        let inner = self.inner();
        let row = |(name, id): (&String, &usize)| (name.clone(), inner.files[*id].bytes.len());
        inner.names.iter().map(row).collect()
    }

    /// Changes a file as no program does.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut inner = self.inner();
        if let Ok(id) = inner.id(name) {
            let file = &mut inner.files[id];
            change(&mut file.bytes);
            file.synced = file.bytes.len();
        }
    }
}

impl Disk for FaultyDisk {
    fn place(&self) -> String {
        "faulty".into()
    }

    fn names(&mut self) -> io::Result<Vec<String>> {
        Ok(self.inner().names.keys().cloned().collect())
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let inner = self.inner();
        let id = inner.id(name)?;
        Ok(inner.files[id].bytes.clone())
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        inner.files.push(File::default());
        let id = inner.files.len() - 1;
        inner.names.insert(name.into(), id);
        inner.named();
        Ok(())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.inner();
        inner.step()?;
        let id = inner.id(name)?;
        let mut len = bytes.len();
        if inner.faults.short && len > 1 {
            len = 1 + inner.below(len);
        }
        if let Some(room) = inner.faults.room {
            let used = inner.names.values().map(|id| inner.files[*id].bytes.len());
            len = len.min(room.saturating_sub(used.sum()));
            if len == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        inner.files[id].bytes.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        inner.syncs += 1;
        let id = inner.id(name)?;
        let (nth, faults) = (inner.syncs, inner.faults);
        let file = &mut inner.files[id];
        if faults.sync_fails_at == Some(nth) {
            file.dropped = true;
            return Err(io::Error::other("an input or output error"));
        }
        if faults.sync_lies_at != Some(nth) && !file.dropped {
            file.synced = file.bytes.len();
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        let id = inner.id(from)?;
        inner.names.remove(from);
        inner.names.insert(to.into(), id);
        inner.named();
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        inner.id(name)?;
        inner.names.remove(name);
        inner.named();
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        inner.durable = inner.names.clone();
        inner.since.clear();
        Ok(())
    }
}
