//! What the benches of arenas have in common: a file in memory, a change, a read.
//!
//! Arenas are emulated: each node has a cache of its own, which compares nothing in speed.

use super::super::Result;
use rackmem::ArenaError;
use rackmem::bounded::{Arena, ArenaSlot};
use rackmem::locked::Lock;
use std::path::PathBuf;

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
