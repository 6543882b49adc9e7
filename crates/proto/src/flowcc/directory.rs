//! The directory of a home agent: one entry a block, for chunks from the first to the last that
//! memory was given out of.
//!
//! The home keeps here what a chunk is: its contract and its backing. An address claims a contract,
//! and the entry of a block is found only where the chunk has the contract that the address claims.

use super::lock::LockWord;
use super::removal::KeptBlocks;
use super::shards::Shards;
use crate::CHUNK;
use crate::heap::Backing;
use crate::wire::{Contract, Copyset, GlobalStatus, HomeId, Reason, Tag};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// Who serves an entry's requests, and where it is going.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Owner {
    /// This home agent.
    #[default]
    Home,
    /// This home agent; the block is hot, and the entry moves as soon as its lock is free.
    Wanted,
    /// This home agent until the switch answers an ADD-TO-SWITCH; the entry is locked meanwhile.
    Moving,
    /// The switch.
    Switch,
    /// The switch until it answers a REMOVE-FROM-SWITCH.
    Returning,
    /// This home agent, which has nothing to serve: the block's last content died with a node.
    Lost,
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

impl Entry {
    /// Whether the switch decides about requests, or may.
    pub fn away(&self) -> bool {
        matches!(self.owner, Owner::Switch | Owner::Returning)
    }
}

/// What a chunk is, for as long as its home lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkKind {
    /// Under which contract its memory is shared.
    pub contract: Contract,
    /// Where its bytes are.
    pub backing: Backing,
}

impl ChunkKind {
    /// Coherent memory in the home's heap.
    pub const COHERENT: ChunkKind = ChunkKind {
        contract: Contract::Coherent,
        backing: Backing::Heap,
    };
}

#[derive(Clone)]
struct Chunk {
    kind: ChunkKind,
    /// None where the contract needs none.
    entries: Box<[Entry]>,
    /// Of a home that a group keeps.
    blocks: KeptBlocks,
}

impl Chunk {
    fn set_kind(&mut self, kind: ChunkKind) {
        self.kind = kind;
        if kind.contract != Contract::Coherent {
            self.entries = Box::default();
        }
    }
}

/// Entries of the chunks that have some, by chunk.
#[derive(Clone)]
pub struct Directory {
    home: HomeId,
    block: u64,
    /// The power of two that `block` is: requests find their entry without a division.
    log: u32,
    /// Number of the first chunk: those below were of earlier incarnations, and died with them.
    base: u64,
    chunks: Vec<Chunk>,
    limit: u32,
    /// Of a shard: which, and of how many, as a power of two.
    nth: u64,
    shift: u32,
    /// Of homes that groups keep: a chunk is all of such a home, by its group.
    kept: bool,
}

impl Directory {
    /// A directory of at most `limit` chunks of a home in its `incarnation`, 1 being the first.
    /// `block` is a power of two.
    pub fn new(home: HomeId, block: u32, limit: u32, incarnation: u32) -> Self {
        let base = u64::from(incarnation.saturating_sub(1)) * u64::from(limit);
        // A node that has restarted so often that its addresses are used up has no memory to give.
        let fits = (base + u64::from(limit)) * CHUNK <= Tag::SPACE;
        Directory {
            home,
            block: block as u64,
            log: block.ilog2(),
            base,
            chunks: Vec::new(),
            limit: if fits { limit } else { 0 },
            nth: 0,
            shift: 0,
            kept: false,
        }
    }

    /// A directory of homes that groups keep: it has none yet, and nothing is given out of them.
    pub fn of_groups(block: u32) -> Self {
        Directory {
            kept: true,
            ..Directory::new(HomeId::of_group(0), block, 0, 1)
        }
    }

    /// Makes entries of what the home that a group keeps has from here on, if it has not had it
    /// yet. Those of a region that had its number are gone.
    pub fn lay_out(&mut self, group: u16, blocks: KeptBlocks) {
        let at = usize::from(group);
        let empty = || Chunk {
            kind: ChunkKind::COHERENT,
            entries: Box::default(),
            blocks: KeptBlocks::default(),
        };
        if self.chunks.len() <= at {
            self.chunks.resize_with(at + 1, empty);
        }
        if self.chunks[at].blocks != blocks {
            let entries = blocks.bytes.div_ceil(self.block) as usize;
            let entries = alloc::vec![Entry::default(); entries].into_boxed_slice();
            (self.chunks[at].entries, self.chunks[at].blocks) = (entries, blocks);
        }
    }

    /// What the home that a group keeps has.
    pub fn blocks_of(&self, group: u16) -> Option<KeptBlocks> {
        let chunk = self.chunks.get(usize::from(group)).filter(|_| self.kept)?;
        Some(chunk.blocks)
    }

    /// Knows nothing of any block any more.
    pub fn reset(&mut self) {
        let entries = self.chunks.iter_mut().flat_map(|chunk| &mut chunk.entries);
        entries.for_each(|entry| *entry = Entry::default());
    }

    /// The same with the entries of one shard only.
    pub fn of_shard(self, nth: usize, shards: Shards) -> Self {
        Directory {
            nth: nth as u64,
            shift: shards.count().ilog2(),
            ..self
        }
    }

    /// What chunks are, from the first.
    pub fn kinds(&self) -> Vec<ChunkKind> {
        self.chunks.iter().map(|chunk| chunk.kind).collect()
    }

    /// Has entries for the same chunks as another shard, and takes over what they are.
    pub fn adopt(&mut self, kinds: &[ChunkKind]) {
        let more = (kinds.len() as u32).saturating_sub(self.chunks());
        self.grow(more);
        for (chunk, kind) in self.chunks.iter_mut().zip(kinds) {
            chunk.set_kind(*kind);
        }
    }

    /// Chunks at most.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Makes entries of all blocks that begin before `end` bytes from the beginning of memory;
    /// where memory begins.
    pub fn reach(&mut self, end: u64) -> Option<u64> {
        let want = u32::try_from(end.div_ceil(CHUNK)).ok()?;
        match want.saturating_sub(self.chunks()) {
            0 => {}
            more => {
                self.grow(more)?;
            }
        }
        Some(self.base * CHUNK)
    }

    /// Makes entries of `count` chunks more; their first byte's offset.
    pub fn grow(&mut self, count: u32) -> Option<u64> {
        let have = self.chunks.len() as u32;
        if count == 0 || count > self.limit.saturating_sub(have) {
            return None;
        }
        let entries = ((CHUNK / self.block) >> self.shift) as usize;
        for _ in 0..count {
            self.chunks.push(Chunk {
                kind: ChunkKind::COHERENT,
                entries: alloc::vec![Entry::default(); entries].into_boxed_slice(),
                blocks: KeptBlocks::default(),
            });
        }
        Some((self.base + have as u64) * CHUNK)
    }

    /// From now on whole chunks, from the one `first` bytes behind the beginning of memory to
    /// `end`, are of this kind. No memory of them has been given out.
    pub fn set_kind(&mut self, first: u64, end: u64, kind: ChunkKind) -> Option<()> {
        self.reach(end)?;
        let chunks = (first / CHUNK) as usize..(end / CHUNK) as usize;
        for chunk in self.chunks.get_mut(chunks)? {
            chunk.set_kind(kind);
        }
        Some(())
    }

    /// What the chunk of an address is, if it is one of ours.
    pub fn kind(&self, tag: Tag) -> Option<ChunkKind> {
        if tag.home() != self.home {
            return None;
        }
        let chunk = (tag.offset() / CHUNK).checked_sub(self.base)?;
        Some(self.chunks.get(chunk as usize)?.kind)
    }

    /// How many chunks have entries.
    pub fn chunks(&self) -> u32 {
        self.chunks.len() as u32
    }

    /// Everything that decides what it will say.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        into.write_u32(self.chunks());
        let kinds = self.chunks.iter().map(|chunk| chunk.kind).enumerate();
        for other in kinds.filter(|(_, kind)| *kind != ChunkKind::COHERENT) {
            other.hash(into);
        }
        if self.kept {
            let blocks = self.chunks.iter().map(|chunk| chunk.blocks);
            blocks.for_each(|blocks| blocks.hash(into));
        }
        let untouched = Entry::default();
        let entries = self.chunks.iter().flat_map(|chunk| &chunk.entries);
        let entries = entries.enumerate();
        for (at, entry) in entries.filter(|(_, entry)| **entry != untouched) {
            into.write_usize(at + 1);
            entry.hash(into);
        }
        into.write_usize(0);
    }

    /// The entry of a block, if it is one of ours: memory under other contracts has none.
    #[inline]
    pub fn entry(&mut self, tag: Tag) -> Option<&mut Entry> {
        let (chunk, at) = self.place(tag)?;
        self.chunks.get_mut(chunk)?.entries.get_mut(at)
    }

    /// The same, as it is.
    #[inline]
    pub fn look(&self, tag: Tag) -> Option<Entry> {
        let (chunk, at) = self.place(tag)?;
        self.chunks.get(chunk)?.entries.get(at).copied()
    }

    /// Which chunk, and which entry of it.
    #[inline(always)]
    fn place(&self, tag: Tag) -> Option<(usize, usize)> {
        let offset = tag.offset();
        // Of this home and coherent: the rest is offset.
        let ours = tag.0 - offset == self.home.start().0 && offset & (self.block - 1) == 0;
        if !ours || self.kept {
            return self.place_of_group(tag);
        }
        let chunk = (offset / CHUNK).checked_sub(self.base)?;
        let at = (offset % CHUNK) >> self.log;
        let ours = at & ((1 << self.shift) - 1) == self.nth;
        ours.then_some((chunk as usize, (at >> self.shift) as usize))
    }

    /// The same of a home that a group keeps.
    fn place_of_group(&self, tag: Tag) -> Option<(usize, usize)> {
        let group = tag.home().group().filter(|_| self.kept)?;
        let whole = tag.is_under(Contract::Coherent) && tag.offset() & (self.block - 1) == 0;
        let at = self.blocks_of(group)?.at(tag).filter(|_| whole)?;
        Some((usize::from(group), (at >> self.log) as usize))
    }

    /// Why there is no entry of a block.
    pub fn absence(&self, tag: Tag) -> Reason {
        if !tag.is_under(Contract::Coherent) {
            Reason::Refused
        } else if tag.home() == self.home && tag.offset() / CHUNK < self.base {
            Reason::Lost
        } else {
            Reason::NoMemory
        }
    }

    /// Every entry with its block.
    pub fn each(&mut self) -> impl Iterator<Item = (Tag, &mut Entry)> {
        let first = self.home.start().0 + self.base * CHUNK;
        let (block, shift, nth) = (self.block, self.shift, self.nth);
        let apart = match self.kept {
            true => HomeId(1).start().0,
            false => CHUNK,
        };
        self.chunks
            .iter_mut()
            .enumerate()
            .flat_map(move |(c, chunk)| {
                let start = first + c as u64 * apart + chunk.blocks.base;
                chunk.entries.iter_mut().enumerate().map(move |(i, entry)| {
                    (Tag(start + (((i as u64) << shift) | nth) * block), entry)
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_another_incarnation_has_other_addresses() {
        let mut first = Directory::new(HomeId::of(3), 4096, 4, 1);
        let mut second = Directory::new(HomeId::of(3), 4096, 4, 2);
        assert_eq!(first.grow(4), Some(0));
        assert_eq!(first.grow(1), None);
        assert_eq!(second.grow(1), Some(4 * CHUNK));
        let old = Tag(3 << 48 | 4096);
        assert!(first.entry(old).is_some());
        assert!(second.entry(old).is_none());
        assert_eq!(second.absence(old), Reason::Lost);
        assert_eq!(second.absence(Tag((3 << 48) + 6 * CHUNK)), Reason::NoMemory);
        let (tag, _) = second.each().nth(1).unwrap();
        assert_eq!(tag, Tag((3 << 48) + 4 * CHUNK + 4096));
    }

    #[test]
    fn another_homes_memory_at_the_same_offset_is_another() {
        let mut directory = Directory::new(HomeId::of(3), 4096, 4, 2);
        directory.grow(1);
        let offset = 4 * CHUNK + 4096;
        for home in [0, 2, 4, 31, 32, 35, u16::MAX] {
            let tag = Tag(HomeId(home).start().0 | offset);
            assert!(directory.entry(tag).is_none() && directory.kind(tag).is_none());
            assert_eq!(directory.absence(tag), Reason::NoMemory);
            assert_eq!(directory.absence(HomeId(home).start()), Reason::NoMemory);
        }
        let ours = Tag(HomeId::of(3).start().0 | offset);
        assert!(directory.entry(ours).is_some() && directory.kind(ours).is_some());
    }

    #[test]
    fn shards_share_the_blocks_of_a_chunk_among_them() {
        let shards = Shards::new(4, 4096);
        let mut parts: Vec<Directory> = (shards.all())
            .map(|nth| Directory::new(HomeId::of(3), 4096, 4, 1).of_shard(nth, shards))
            .collect();
        parts[0].grow(2);
        let kinds = parts[0].kinds();
        parts.iter_mut().for_each(|part| part.adopt(&kinds));
        let mut seen = 0;
        for (nth, part) in parts.iter_mut().enumerate() {
            for (tag, _) in part.each() {
                assert_eq!(shards.of(tag), nth);
                seen += 1;
            }
            for block in 0..8 {
                let tag = Tag((3 << 48) | (block * 4096));
                assert_eq!(part.entry(tag).is_some(), shards.of(tag) == nth);
            }
        }
        assert_eq!(seen, 2 * CHUNK / 4096);
    }

    #[test]
    fn used_up_addresses_are_no_memory() {
        let mut last = Directory::new(HomeId::of(0), 4096, 128, u32::MAX);
        assert_eq!(last.grow(1), None);
    }
}
