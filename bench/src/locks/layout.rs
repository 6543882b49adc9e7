//! A lock's memory: what stands at its address, so that an address is enough to attach,
//! and where its blocks are.
//!
//! Words: what kind of lock this is, the bytes that it protects, where those are, nodes and places,
//! and then where the blocks begin that are at its home, and at each node. The kind is written
//! last. Of a GCP lock, the blocks "at its home" are that lock.

use super::LockKind;
use rackmem::Node;
use rackmem::guest::wire::MAX_NODES;
use rackmem::locked::RangesLock;
use rackmem::{AllocError, LockError, RackError, Result};
use rackmem_baselines::locks::{Home, Shape};

/// Threads of a node that may want a lock at one time; more wait until one of these has left.
const PLACES: u16 = 8;
/// "any ", and the version of this; the low byte is the kind.
const MAGIC: u64 = 0x616e_7920_0001_0000;
const WORDS: usize = 5;
/// Bytes of a block that a lock uses.
const USED: usize = 32;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub kind: LockKind,
    /// Where it is, and its manager knows it by.
    pub addr: u64,
    /// Bytes that it protects, and where.
    pub len: usize,
    pub data: u64,
    pub shape: Shape,
    /// At its home; of a GCP lock, that lock.
    pub base: u64,
    /// Of each block, its address.
    pub blocks: Box<[u64]>,
}

impl Layout {
    /// Makes a lock, whose home is this node.
    pub fn create(node: &Node, kind: LockKind, len: usize) -> Result<Layout> {
        let block = node.block_size();
        let nodes = u16::try_from(node.nodes()).unwrap_or(u16::MAX);
        let shape =
            Shape::new(nodes, PLACES).ok_or(RackError::NoSuchNode { node: node.nodes() })?;
        let mut layout = Layout {
            kind,
            addr: node.alloc_bytes(((WORDS + MAX_NODES) * 8).max(block))?,
            len,
            data: node.alloc_bytes(len.max(block))?,
            shape,
            base: 0,
            blocks: Box::default(),
        };
        node.write(layout.data, &vec![0; len])?;
        let mut bases = Vec::new();
        if kind == LockKind::Gcp {
            layout.base = RangesLock::create(node, &[(layout.data, len)])?.addr();
        } else {
            bases = layout.allocate(node)?;
            layout.blocks = layout.places(&bases, block);
            for &addr in &layout.blocks {
                node.write(addr, &[0; USED])?;
                node.evict(addr)?;
            }
        }
        layout.publish(node, &bases)?;
        Ok(layout)
    }

    /// How many blocks are at its home, and at each node.
    fn counts(&self) -> (usize, Vec<usize>) {
        let (mut at_home, mut at_nodes) = (0, vec![0; usize::from(self.shape.nodes)]);
        for home in self.homes() {
            match home {
                Home::Lock => at_home += 1,
                Home::Node(node) => at_nodes[usize::from(node)] += 1,
            }
        }
        (at_home, at_nodes)
    }

    fn homes(&self) -> impl Iterator<Item = Home> {
        let (algorithm, shape) = (self.kind.algorithm(), self.shape);
        let blocks = move |a: rackmem_baselines::locks::Algorithm| {
            (0..a.blocks(shape)).map(move |block| a.home(shape, block))
        };
        algorithm.into_iter().flat_map(blocks)
    }

    /// Memory for its blocks: near those who wait on them, if those give memory.
    fn allocate(&mut self, node: &Node) -> Result<Vec<u64>, AllocError> {
        let block = node.block_size();
        let (at_home, at_nodes) = self.counts();
        if at_home > 0 {
            self.base = node.alloc_bytes(at_home * block)?;
        }
        let near = |(home, count): (u16, usize)| match count {
            0 => Ok(0),
            _ => match node.alloc_bytes_on(home, count * block) {
                Err(
                    AllocError::Rack(RackError::NodeLost { .. }) | AllocError::OutOfMemory { .. },
                ) => node.alloc_bytes(count * block),
                told => told,
            },
        };
        (0..self.shape.nodes).zip(at_nodes).map(near).collect()
    }

    fn places(&self, bases: &[u64], block: usize) -> Box<[u64]> {
        let mut next: Vec<u64> = bases.to_vec();
        let mut at_home = self.base;
        let place = |home| {
            let next = match home {
                Home::Lock => &mut at_home,
                Home::Node(node) => &mut next[usize::from(node)],
            };
            let addr = *next;
            *next += block as u64;
            addr
        };
        self.homes().map(place).collect()
    }

    fn publish(&self, node: &Node, bases: &[u64]) -> Result<()> {
        let shape = u64::from(self.shape.nodes) << 16 | u64::from(self.shape.places);
        let mut rest = vec![self.len as u64, self.data, shape, self.base];
        rest.extend(bases);
        let bytes: Vec<u8> = rest.iter().flat_map(|word| word.to_le_bytes()).collect();
        node.write(self.addr + 8, &bytes)?;
        Ok(node.write(self.addr, &(MAGIC | self.kind as u64).to_le_bytes())?)
    }

    /// That of a lock which some node has made.
    pub fn read(node: &Node, addr: u64) -> Result<Layout> {
        let no_lock = || LockError::NoLock { addr };
        let block = node.block_size();
        if !addr.is_multiple_of(block as u64) {
            return Err(no_lock().into());
        }
        let mut bytes = [0; (WORDS + MAX_NODES) * 8];
        node.read(addr, &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        let word = |nth: usize| u64::from_le_bytes(words[nth]);
        let kinds = LockKind::ALL.map(|row| row.0).into_iter();
        let kind = kinds
            .into_iter()
            .find(|kind| MAGIC | *kind as u64 == word(0));
        let shape = Shape::new((word(3) >> 16) as u16, word(3) as u16);
        let shape = shape.filter(|shape| usize::from(shape.nodes) == node.nodes());
        let mut layout = Layout {
            kind: kind.ok_or_else(no_lock)?,
            addr,
            len: usize::try_from(word(1)).map_err(|_| no_lock())?,
            data: word(2),
            shape: shape.ok_or_else(no_lock)?,
            base: word(4),
            blocks: Box::default(),
        };
        let bases = (0..node.nodes()).map(|nth| word(WORDS + nth));
        layout.blocks = layout.places(&bases.collect::<Vec<_>>(), block);
        Ok(layout)
    }
}
