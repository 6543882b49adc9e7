//! The directory of a home agent: one entry a block of the memory it has handed out.

use super::lock::LockWord;
use crate::CHUNK;
use crate::wire::{Copyset, GlobalStatus, Tag};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// Who serves an entry's requests, and what was tried.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Owner {
    /// This home agent; the switch has not been asked.
    #[default]
    Home,
    /// This home agent; the switch had no room for it.
    Settled,
    /// This home agent until the switch answers an ADD-TO-SWITCH; the entry is locked meanwhile.
    Moving,
    /// The switch.
    Switch,
}

/// One block's lock and metadata, eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Entry {
    pub lock: LockWord,
    pub status: GlobalStatus,
    pub owner: Owner,
    pub copyset: Copyset,
}

const _: () = assert!(size_of::<Entry>() == 8);

/// Entries of the chunks that have been handed out, by chunk.
#[derive(Clone)]
pub struct Directory {
    block: u64,
    chunks: Vec<Box<[Entry]>>,
    limit: u32,
}

impl Directory {
    pub fn new(block: u32, limit: u32) -> Self {
        Directory {
            block: block as u64,
            chunks: Vec::new(),
            limit,
        }
    }

    /// Hands out `count` chunks that lie one behind the other; their first byte's offset.
    pub fn grow(&mut self, count: u32) -> Option<u64> {
        let have = self.chunks.len() as u32;
        if count == 0 || count > self.limit - have {
            return None;
        }
        let entries = (CHUNK / self.block) as usize;
        for _ in 0..count {
            self.chunks
                .push(alloc::vec![Entry::default(); entries].into_boxed_slice());
        }
        Some(have as u64 * CHUNK)
    }

    /// How many chunks are handed out.
    pub fn chunks(&self) -> u32 {
        self.chunks.len() as u32
    }

    /// Everything that decides what it will say.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        into.write_u32(self.chunks());
        let untouched = Entry::default();
        let entries = self.chunks.iter().flatten().enumerate();
        for (at, entry) in entries.filter(|(_, entry)| **entry != untouched) {
            into.write_usize(at + 1);
            entry.hash(into);
        }
        into.write_usize(0);
    }

    /// The entry of a block, if it is one of ours.
    #[inline]
    pub fn entry(&mut self, tag: Tag) -> Option<&mut Entry> {
        let offset = tag.offset();
        if !offset.is_multiple_of(self.block) {
            return None;
        }
        let chunk = self.chunks.get_mut((offset / CHUNK) as usize)?;
        chunk.get_mut((offset % CHUNK / self.block) as usize)
    }
}
