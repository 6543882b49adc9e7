//! What stands at a lock's offset in coherent memory, so that a node that is told nothing but the
//! address can attach.
//!
//! Words: what kind of lock this is, the bytes that it protects and of which type they are, how
//! many regions and a hash of its name, and its life; then an address and a length for each region.
//! The first four are written together, and last. A place in which another lock is made later is
//! described anew: who has read regions of one lock and the words of another has a handle of no
//! life.

use super::MAX_REGIONS;
use crate::backoff::Backoff;
use crate::error::{AccessError, BulkResult, LockError};
use crate::node::{Node, places};
use rackmem_proto::gcp::{Life, Region};
use rackmem_proto::wire::{Contract, Tag};

/// What a lock is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Mutex = 1,
    RwLock = 2,
    Ranges = 3,
    Condvar = 4,
}

impl Kind {
    const ALL: [Kind; 4] = [Kind::Mutex, Kind::RwLock, Kind::Ranges, Kind::Condvar];
}

/// "lock", and the version of this.
const MAGIC: u64 = 0x6c6f_636b_0003_0000;
const WORDS: usize = 4;

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Descriptor {
    pub kind: Kind,
    pub len: usize,
    /// Of which type the value is; 0 where there is no value.
    pub of: u32,
    pub regions: Vec<Region>,
}

/// A descriptor as it stands there.
pub(super) struct Found {
    pub what: Descriptor,
    pub life: Life,
    pub name: Name,
}

/// What tells locks with different names apart that were made in the same place: a hash;
/// 0 of a lock without a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Name(u64);

impl Name {
    pub const NONE: Name = Name(0);
    const SHIFT: u32 = 16;

    pub fn of(name: &str) -> Self {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Name((hash >> Self::SHIFT).max(1))
    }
}

/// Bytes of a descriptor with so many regions.
pub(super) const fn size(regions: usize) -> usize {
    (WORDS + 2 * regions) * 8
}

/// Bytes of a place for a lock with so many regions: locks that need as many use each other's
/// places.
pub(super) fn room(regions: usize) -> usize {
    size(regions).next_power_of_two()
}

fn words<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Descriptor {
    /// What a named region of such a lock is called to be.
    pub fn type_hash(&self) -> u64 {
        MAGIC ^ (self.kind as u64 | (self.len as u64) << 32 | u64::from(self.of) << 16)
    }

    /// Puts it where others can find it.
    pub fn write(&self, node: &Node, addr: u64, life: Life, name: Name) -> BulkResult<()> {
        let addr = places::memory_of(addr);
        for (nth, region) in self.regions.iter().enumerate() {
            let at = addr + size(nth) as u64;
            node.write(at, &words([region.addr, region.len.into()]))?;
        }
        node.write(addr, &self.head(life, name))
    }

    /// Its first words.
    pub fn head(&self, life: Life, name: Name) -> Vec<u8> {
        let count = self.regions.len() as u64 | name.0 << Name::SHIFT;
        let kind = MAGIC | self.kind as u64;
        let len = self.len as u64 | u64::from(self.of) << 32;
        words([kind, len, count, life.to_word()])
    }

    /// What somebody has put there, if it is a descriptor.
    pub fn read(node: &Node, addr: u64) -> Result<Found, LockError> {
        let no_lock = || LockError::NoLock { addr };
        if !addr.is_multiple_of(16) {
            return Err(no_lock());
        }
        if !Tag(addr).is_under(Contract::Locked) {
            return Err(AccessError::wrong_contract(Tag(addr), Contract::Locked).into());
        }
        let at = places::memory_of(addr);
        let mut head = [0; WORDS];
        words_at(node, at, &mut head)?;
        let [magic, len, count, life] = head;
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| MAGIC | *kind as u64 == magic);
        let kind = kind.ok_or_else(no_lock)?;
        let name = Name(count >> Name::SHIFT);
        let count = usize::from(count as u16);
        let mut regions = Vec::new();
        if count > MAX_REGIONS {
            return Err(no_lock());
        }
        for nth in 0..count {
            let mut pair = [0; 2];
            words_at(node, at + size(nth) as u64, &mut pair)?;
            regions.push(Region {
                addr: pair[0],
                len: u32::try_from(pair[1]).map_err(|_| no_lock())?,
            });
        }
        let (len, of) = (len as u32 as usize, (len >> 32) as u32);
        Ok(Found {
            what: Descriptor {
                kind,
                len,
                of,
                regions,
            },
            life: Life::from_word(life),
            name,
        })
    }

    /// The same, where somebody is about to put it.
    pub fn await_at(node: &Node, addr: u64) -> Result<Found, LockError> {
        let mut backoff = Backoff::new(node.inner.access.patience);
        loop {
            match Descriptor::read(node, addr) {
                Err(LockError::NoLock { .. }) if backoff.wait() => {}
                told => return told,
            }
        }
    }
}

fn words_at(node: &Node, addr: u64, out: &mut [u64]) -> Result<(), AccessError> {
    let mut bytes = vec![0; out.len() * 8];
    node.read(addr, &mut bytes)?;
    for (word, bytes) in out.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    Ok(())
}
