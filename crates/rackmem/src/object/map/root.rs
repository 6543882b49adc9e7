//! A map's beginning and its end: the object by which it is found, and the lists of its buckets.

use super::super::{MAX_OBJECT, Object, ObjectRef};
use super::bucket::Part;
use super::{Map, Shape};
use crate::backoff::Backoff;
use crate::error::{AccessError, AllocError};
use crate::node::Node;
use rackmem_proto::sabre::{HEADER, room_of};
use rackmem_proto::wire::Tag;
use std::sync::Arc;

/// In front of a map's root.
const MAGIC: u64 = u64::from_le_bytes(*b"objmap\0\x01");
/// Bytes in front of the root's lists.
const FRONT: usize = 32;
/// Bytes of a reference.
const REF: usize = 12;
/// Buckets that one object lists.
const LISTED: usize = 5_000;
/// Regions of a map at most.
const MAX_REGIONS: usize = 64;
/// Buckets of a map at most.
const MAX_BUCKETS: usize = 1 << 22;
/// Bytes of a bucket that fit into an object of 1 KiB with its header.
const BUCKET: usize = 1024 - HEADER as usize;
/// Bytes of the shortest one.
const SHORTEST: usize = 64;
/// Buckets are filled so far, in percent, when all entries are there, so that few have a tail.
const FILLED: usize = 60;

/// How large a map is. It never grows: what does not fit into a bucket goes to its tail, which
/// makes lookups of those keys two reads.
///
/// ```
/// use rackmem::object::MapSpec;
///
/// // 10,000 entries whose key and value have 100 bytes together.
/// let spec = MapSpec::new(10_000, 100);
/// assert_eq!((spec.buckets(), spec.bucket_bytes()), (1_882, 1_008));
/// // Longer buckets: fewer, and more bytes to copy where a lookup is a packet.
/// assert_eq!(spec.bucket(4_080).buckets(), 460);
/// // In a region with copies a bucket is a line, whatever its bytes were to be.
/// assert_eq!(spec.bytes_in_lines(4_096), 696 * 4_096);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapSpec {
    entries: usize,
    bytes: usize,
    bucket: usize,
}

impl MapSpec {
    /// For about so many entries, each of so many bytes of key and value.
    pub fn new(entries: usize, bytes: usize) -> Self {
        MapSpec {
            entries: entries.max(1),
            bytes,
            bucket: BUCKET,
        }
    }

    /// With buckets of so many bytes, from 64 to [`MAX_OBJECT`]. Where one of the map's regions has
    /// copies, a bucket is as long as an object there can be.
    #[must_use]
    pub fn bucket(mut self, bytes: usize) -> Self {
        self.bucket = bytes.clamp(SHORTEST, MAX_OBJECT);
        self
    }

    /// Buckets that it gets.
    pub fn buckets(&self) -> usize {
        let each = self.bytes.saturating_add(15) & !7;
        let all = self.entries.saturating_mul(each).saturating_mul(100) / FILLED;
        all.div_ceil(self.bucket - 16).clamp(1, MAX_BUCKETS)
    }

    /// Bytes of one.
    pub fn bucket_bytes(&self) -> usize {
        self.bucket
    }

    /// Bytes of a region with copies for such a map, where its lines have so many
    /// ([`RegionSpec::line`](crate::RegionSpec::line)): the buckets, half as many objects of tails,
    /// and what says where they are.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::object::MapSpec;
    /// use rackmem::{Contract, Rack, RegionSpec};
    ///
    /// let rack = Rack::local(3)?;
    /// let wanted = MapSpec::new(100, 50);
    /// let spec = RegionSpec::new("users", wanted.bytes_in_lines(4096)).line(4096);
    /// let spec = spec.contract(Contract::Object).copies(3);
    /// let region = rack.node(0).create_region(&spec)?;
    /// let users = rack.node(0).create_map(&[region.addr()], wanted)?;
    /// users.insert(b"ada", b"1815")?;
    /// let same = rack.node(2).attach_map(users.at())?;
    /// assert_eq!(same.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes_in_lines(&self, line: u32) -> usize {
        let most = room_of(line) as usize;
        let buckets = self.where_objects_have(most).buckets();
        let lists = buckets.div_ceil(listed(most));
        let lines = buckets
            .saturating_add(buckets / 2)
            .saturating_add(lists + 1);
        lines.saturating_mul(line as usize)
    }

    /// The same where an object has so many bytes at most. A line with copies has one object,
    /// however short that is.
    fn where_objects_have(mut self, most: usize) -> Self {
        if most < MAX_OBJECT {
            self.bucket = most.max(SHORTEST);
        }
        self
    }
}

/// Buckets that one object of so many bytes lists.
fn listed(most: usize) -> usize {
    (most / REF).clamp(1, LISTED)
}

/// What is in the root.
struct Root {
    seed: u64,
    buckets: usize,
    room: usize,
    regions: Vec<u64>,
    directories: Vec<ObjectRef>,
}

fn put(bytes: &mut Vec<u8>, at: ObjectRef) {
    bytes.extend(at.addr().to_le_bytes());
    bytes.extend(at.generation().to_le_bytes());
}

fn refs(bytes: &[u8]) -> Vec<ObjectRef> {
    let (all, _) = bytes.as_chunks::<REF>();
    all.iter()
        .map(|each| {
            let [a, b, c, d, e, f, g, h, generation @ ..] = *each;
            let addr = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            ObjectRef::new(addr, u32::from_le_bytes(generation))
        })
        .collect()
}

impl Root {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(MAGIC.to_le_bytes());
        bytes.extend(self.seed.to_le_bytes());
        let (regions, directories) = (self.regions.len(), self.directories.len());
        for count in [self.buckets, self.room, regions, directories] {
            bytes.extend((count as u32).to_le_bytes());
        }
        self.regions
            .iter()
            .for_each(|addr| bytes.extend(addr.to_le_bytes()));
        self.directories.iter().for_each(|at| put(&mut bytes, *at));
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Root> {
        let (words, rest) = (bytes.get(..FRONT)?, bytes.get(FRONT..)?);
        let word = |nth: usize| u64::from_le_bytes(words.as_chunks::<8>().0[nth]);
        let pair = |nth: usize| {
            let word = word(nth);
            (word as u32 as usize, (word >> 32) as usize)
        };
        let ((buckets, room), (regions, directories)) = (pair(2), pair(3));
        let (listed, rest) = rest.split_at_checked(regions.checked_mul(8)?)?;
        let root = Root {
            seed: word(1),
            buckets,
            room,
            regions: listed
                .as_chunks::<8>()
                .0
                .iter()
                .map(|w| u64::from_le_bytes(*w))
                .collect(),
            directories: refs(rest.get(..directories.checked_mul(REF)?)?),
        };
        let sane = word(0) == MAGIC && (1..=MAX_BUCKETS).contains(&buckets);
        (sane && regions > 0 && room <= MAX_OBJECT).then_some(root)
    }
}

impl Node {
    /// A map whose buckets are in these regions of objects, one after the other in turn:
    /// [`Region::addr`](crate::Region::addr) of each, 64 at most. The first one has its root.
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where a region is under another contract,
    /// [`AccessError::BadAddress`] where there is none, [`AllocError::OutOfMemory`] when one is
    /// full, [`AllocError::TooLarge`] for more regions or buckets than a map has, or than its root
    /// names: in regions with copies 113,000 buckets of 4 KiB, and 6,400 of 1 KiB. What was made
    /// until then is freed.
    pub fn create_map(&self, regions: &[u64], spec: MapSpec) -> Result<Map, AllocError> {
        let (len, most) = (regions.len(), MAX_REGIONS);
        if len > most {
            return Err(AllocError::TooLarge { len, most });
        }
        let Some(&first) = regions.first() else {
            return Err(AccessError::BadAddress { addr: 0 }.into());
        };
        let mut made: Vec<Object<[u8]>> = Vec::new();
        let most = self.longest_in(regions)?;
        let root = self.make_map((first, regions), (spec, most), &mut made);
        match root {
            Ok((root, read)) => Ok(self.map(root, read, made)?),
            Err(error) => {
                // If a home is gone, so is what it had.
                for object in made {
                    let _ = object.free();
                }
                Err(error)
            }
        }
    }

    fn make_map(
        &self,
        (first, regions): (u64, &[u64]),
        (spec, most): (MapSpec, usize),
        made: &mut Vec<Object<[u8]>>,
    ) -> Result<(ObjectRef, Root), AllocError> {
        let spec = spec.where_objects_have(most);
        let (buckets, room) = (spec.buckets(), spec.bucket_bytes());
        let lists = buckets.div_ceil(listed(most));
        let len = FRONT + regions.len() * 8 + lists * REF;
        if len > most {
            return Err(AllocError::TooLarge { len, most });
        }
        // An empty bucket.
        let zeros = vec![0; room];
        for nth in 0..buckets {
            let region = regions[nth % regions.len()];
            made.push(self.new_object(region, &zeros, 0)?);
        }
        let mut directories = Vec::new();
        let lists: Vec<Vec<u8>> = (made.chunks(listed(most)))
            .map(|some| {
                let mut list = Vec::with_capacity(some.len() * REF);
                some.iter().for_each(|head| put(&mut list, head.at()));
                list
            })
            .collect();
        for list in lists {
            let directory: Object<[u8]> = self.new_object(first, &list, 0)?;
            directories.push(directory.at());
            made.push(directory);
        }
        let root = Root {
            seed: fastrand::u64(..),
            buckets,
            room,
            regions: regions.to_vec(),
            directories,
        };
        let object: Object<[u8]> = self.new_object(first, &root.bytes(), 0)?;
        made.truncate(buckets);
        Ok((object.at(), root))
    }

    /// A handle on a map. Reads the lists of its buckets.
    ///
    /// # Errors
    /// [`AccessError::BadAddress`] when no map is there; those of [`Object::read`].
    pub fn attach_map(&self, at: ObjectRef) -> Result<Map, AccessError> {
        let none = || AccessError::BadAddress { addr: at.addr() };
        let bytes = self.attach_object::<[u8]>(at)?.read()?;
        let root = Root::of(&bytes).ok_or_else(none)?;
        let lists: Vec<Object<[u8]>> = (root.directories.iter())
            .map(|list| self.attach_object(*list))
            .collect::<Result<_, _>>()?;
        let lists = self.read_many(&lists.iter().collect::<Vec<_>>());
        let mut heads = Vec::with_capacity(root.buckets);
        for list in lists {
            for head in refs(&list?.1) {
                heads.push(self.attach_object(head)?);
            }
        }
        match heads.len() == root.buckets {
            true => self.map(at, root, heads),
            false => Err(none()),
        }
    }

    /// Bytes of an object at most, in all of these regions.
    fn longest_in(&self, regions: &[u64]) -> Result<usize, AccessError> {
        let mut most = MAX_OBJECT;
        for addr in regions.iter().copied() {
            if let Some(group) = Tag(addr).home().group() {
                let line = self.inner.access.groups.line_of(group);
                most = most.min(room_of(line.ok_or(AccessError::BadAddress { addr })?) as usize);
            }
        }
        Ok(most)
    }

    fn map(&self, at: ObjectRef, root: Root, heads: Vec<Object<[u8]>>) -> Result<Map, AccessError> {
        let most = self.longest_in(&root.regions)?;
        let shape = Shape {
            node: self.clone(),
            root: at,
            seed: root.seed,
            room: root.room,
            most,
            regions: root.regions,
            directories: root.directories,
            heads,
        };
        let shape = Arc::new(shape);
        Ok(Map { shape })
    }
}

impl Map {
    /// Its memory goes back to its regions. Operations of all handles on it say
    /// [`AccessError::Gone`] from then on.
    ///
    /// # Errors
    /// [`AccessError::Gone`] when it has been freed before; those of [`Object::write`] and
    /// [`Object::free`], after which part of it may be there.
    pub fn free(self) -> Result<(), AccessError> {
        let shape = &*self.shape;
        // One who frees it wins.
        shape.node.attach_object::<[u8]>(shape.root)?.free()?;
        let mut backoff = Backoff::new(shape.node.inner.access.patience);
        for head in &shape.heads {
            let tail = loop {
                let (version, bytes) = head.read_versioned()?;
                // Changes that come now are refused, and take their own tails along.
                if head.write_if(version, &Part::freed().bytes())?.is_ok() {
                    break Part::of(&bytes).tail;
                }
                if !backoff.wait() {
                    let addr = head.addr();
                    return Err(AccessError::Busy { addr });
                }
            };
            // Nobody else frees it, or has.
            if let Some(tail) = self.read_tail(tail)? {
                self.free_tail(&tail.at)?;
            }
            head.clone().free()?;
        }
        for directory in &shape.directories {
            shape.node.attach_object::<[u8]>(*directory)?.free()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_read_as_it_was_written() {
        let root = Root {
            seed: 7,
            buckets: 3,
            room: 1008,
            regions: vec![1, u64::MAX],
            directories: vec![ObjectRef::new(5, 6), ObjectRef::new(1 << 63, u32::MAX)],
        };
        let bytes = root.bytes();
        let same = Root::of(&bytes).unwrap();
        assert_eq!((same.seed, same.buckets, same.room), (7, 3, 1008));
        assert_eq!(
            (same.regions, same.directories),
            (root.regions, root.directories)
        );
        for len in 0..bytes.len() {
            assert!(Root::of(&bytes[..len]).is_none(), "{len}");
        }
        let mut other = bytes.clone();
        other[0] ^= 1;
        assert!(Root::of(&other).is_none());
        let mut forged = bytes;
        forged[24..32].fill(0xff);
        assert!(Root::of(&forged).is_none());
    }
}
