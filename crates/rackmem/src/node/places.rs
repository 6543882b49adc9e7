//! Memory for locks.

use super::Node;
use crate::error::AllocError;
use rackmem_proto::wire::{Contract, Tag};

/// The address of a lock which is described in memory that has been allocated there.
pub(crate) fn lock_at(memory: u64) -> u64 {
    Tag(memory).under(Contract::Locked).0
}

/// Where a lock is described: in coherent memory, at the same offset as its address.
pub(crate) fn memory_of(lock: u64) -> u64 {
    Tag(lock).under(Contract::Coherent).0
}

/// Memory for a lock: where one was before, or new.
pub(crate) fn place(node: &Node, room: usize) -> Result<u64, AllocError> {
    match node.inner.access.agents.locks.places.take(room) {
        Some(addr) => Ok(addr),
        None => node.alloc_bytes(room).map(lock_at),
    }
}

/// No lock was made there.
pub(crate) fn give_place_back(node: &Node, room: usize, addr: u64) -> Result<(), AllocError> {
    let locks = &node.inner.access.agents.locks;
    match locks.find(Tag(addr)) {
        // It is somebody's.
        Some(cell) if cell.life().is_live() => locks.places.made(addr),
        // To other nodes it is a lock's for ever.
        Some(_) => locks.places.put_back(room, addr),
        None => node.free_bytes(memory_of(addr), room)?,
    }
    Ok(())
}
