//! What the benches of arenas have in common: a file in memory, a change, a read.
//!
//! Arenas are emulated: each node has a cache of its own, which compares nothing in speed.

use super::super::Result;
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec};
use rackmem::locked::Lock;
use rackmem::{ArenaError, Rack};
use std::path::PathBuf;
use std::time::Duration;

/// A file in memory that goes with this value.
pub(super) struct ArenaFile(pub PathBuf);

impl ArenaFile {
    pub fn new(name: &str) -> Self {
        let shm = PathBuf::from("/dev/shm");
        let folder = if shm.is_dir() {
            shm
        } else {
            std::env::temp_dir()
        };
        let path = folder.join(format!("rackmem-bench-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        ArenaFile(path)
    }
}

impl Drop for ArenaFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An arena of two nodes of this process.
pub(super) struct Pair {
    pub here: Arena,
    pub there: Arena,
    pub slot: ArenaSlot<u64>,
    pub lock: Lock,
    _rack: Rack,
    _file: ArenaFile,
}

impl Pair {
    pub fn new(name: &str, bound: Duration) -> Result<Self> {
        let (rack, file) = (Rack::local(2)?, ArenaFile::new(name));
        let spec = ArenaSpec::new(&file.0, 16 << 20).bound(bound).emulated();
        let here = Arena::create(&rack.node(0), &spec)?;
        Ok(Pair {
            there: Arena::open(&rack.node(1), &spec)?,
            slot: here.slot(0)?,
            lock: Lock::create(&rack.node(0), ())?,
            here,
            _rack: rack,
            _file: file,
        })
    }
}

/// Puts a new object in place, and frees the one before.
pub(super) fn replace<T: rackmem::Value>(
    arena: &Arena,
    lock: &Lock,
    slot: ArenaSlot<T>,
    value: &T,
) -> std::result::Result<(), ArenaError> {
    let mut writer = arena.writer(lock)?;
    let new = writer.alloc(value)?;
    match writer.assign(slot, new)? {
        Some(old) => writer.free(old),
        None => Ok(()),
    }
}

/// What a section of its own reads; nothing where it was too late.
pub(super) fn read(arena: &Arena, slot: ArenaSlot<u64>) -> Result<Option<u64>> {
    let once = || {
        let section = arena.enter()?;
        let value = section.get(slot)?;
        section.finish()?;
        Ok(value)
    };
    match once() {
        Err(ArenaError::Late { .. }) => Ok(None),
        read => Ok(read?),
    }
}
