//! Which blocks a node misses most.

use super::agents::Agents;
use super::by_block::ByBlock;
use super::rows;
use rackmem_fabric::{Net, Receiver};
use rackmem_proto::wire::{Header, Kind, Tag};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// In an INSPECT's `offset`: hot blocks are asked for. Its tag is the place of the first.
pub(crate) const ASK_HOT: u32 = 6;
/// Bytes of one record: its place, the block, misses by reads and by writes, which parts of it are
/// stored to, and operations that its home did.
pub(crate) const RECORD: usize = 48;
/// Blocks that are counted at a time: one for each remainder of their addresses.
const PLACES: usize = 256;
/// Misses of others by which a block that is missed no more has lost its place.
const STRENGTH: u32 = 64;
/// Fewer misses than this are not told.
const FEW: u64 = 4;

/// Misses of a block, counted since it is among those that a node misses most.
///
/// A block that two nodes write goes back and forth, each time for a round trip or two, also when
/// they write different words of it: give each its own block
/// ([`Node::alloc_isolated`](crate::Node::alloc_isolated), or padding to
/// [`Node::block_size`](crate::Node::block_size)).
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::diagnostics::HotBlock;
///
/// let rack = Rack::local(2)?;
/// let word = rack.node(0).alloc(0u64)?;
/// let there = rack.node(1).attach::<u64>(word.addr())?;
/// for _ in 0..10 {
///     word.fetch_add(1)?; // each of them takes the block from the other, or asks its home
///     there.fetch_add(1)?;
/// }
/// let hot: Vec<HotBlock> = rack.node(1).hot_blocks();
/// let block = rack.node(1).block_size() as u64;
/// assert!(hot.iter().any(|hot| hot.addr == word.addr() / block * block && hot.events() >= 9));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotBlock {
    /// Where it begins.
    pub addr: u64,
    /// Reads that had to fetch it.
    pub reads: u64,
    /// Writes that had to fetch it, or the right to write it.
    pub writes: u64,
    /// Atomic operations on its words that its home did, in place of a miss.
    pub at_home: u64,
    /// Of sixty-four equal parts of it, those that this node has been seen to change by plain
    /// stores to mapped memory since that was mapped, as bits, the first part's lowest: of a
    /// sample, and 0 where there is none. Nodes of which no two have a bit in common share the
    /// block, and nothing in it.
    pub written: u64,
}

impl HotBlock {
    /// Times that it was waited for.
    pub fn events(&self) -> u64 {
        self.reads + self.writes + self.at_home
    }
}

/// What is counted of a block.
#[derive(Default)]
struct Misses {
    strength: AtomicU32,
    reads: AtomicU64,
    writes: AtomicU64,
    at_home: AtomicU64,
}

/// The blocks that a node misses most, as far as no two of them want one place.
pub(crate) struct HotBlocks(ByBlock<Misses>);

impl Default for HotBlocks {
    fn default() -> Self {
        HotBlocks(ByBlock::new(PLACES))
    }
}

impl HotBlocks {
    /// A miss is over.
    pub fn count(&self, tag: Tag, kind: Kind) {
        let place = self.0.place(tag);
        let misses = &place.known;
        let count = match kind {
            Kind::ReadMiss => &misses.reads,
            Kind::WriteMiss | Kind::WriteShared => &misses.writes,
            Kind::Operate => &misses.at_home,
            _ => return,
        };
        let strength = misses.strength.load(Relaxed);
        let mine = place.is_of(tag);
        if !mine && strength > 0 {
            return misses.strength.store(strength - 1, Relaxed);
        }
        if !mine {
            for count in [&misses.reads, &misses.writes, &misses.at_home] {
                count.store(0, Relaxed);
            }
            place.take(tag);
        }
        let strength = (strength + 1).min(STRENGTH);
        misses.strength.store(strength, Relaxed);
        count.fetch_add(1, Relaxed);
    }

    /// Those that have been missed more than a few times, with their places.
    fn told(&self) -> impl Iterator<Item = (u64, HotBlock)> {
        let told = self.0.places().iter().zip(0..).map(|(place, at)| {
            let misses = &place.known;
            let hot = HotBlock {
                addr: place.tag().0,
                reads: misses.reads.load(Relaxed),
                writes: misses.writes.load(Relaxed),
                at_home: misses.at_home.load(Relaxed),
                written: 0,
            };
            (at, hot)
        });
        told.filter(|(_, hot)| hot.events() >= FEW)
    }

    /// Those, the most missed first; `written` tells which parts of a block are stored to.
    pub fn all(&self, written: impl Fn(Tag) -> u64) -> Vec<HotBlock> {
        let told = self.told().map(|(_, hot)| HotBlock {
            written: written(Tag(hot.addr)),
            ..hot
        });
        let mut all: Vec<HotBlock> = told.collect();
        all.sort_by_key(|hot| std::cmp::Reverse(hot.events()));
        all
    }
}

/// Answers with the node's hot blocks, from a place on.
pub(crate) fn inspect(
    agents: &Agents,
    room: usize,
    net: &dyn Net,
    header: &Header,
    reply: &mut dyn Receiver,
) {
    let told = agents.hot.told();
    let records = told.filter(|(at, _)| *at >= header.tag.0).map(|(at, hot)| {
        let written = agents.cache.written(Tag(hot.addr));
        [at, hot.addr, hot.reads, hot.writes, written, hot.at_home]
            .map(u64::to_be_bytes)
            .concat()
    });
    rows::answer(agents.node, records, room, net, header, reply);
}

/// From a record: the place, and what is there.
pub(crate) fn decode(record: &[u8]) -> Option<(u64, HotBlock)> {
    let [at, addr, reads, writes, written, at_home] = rows::words(record)?;
    let hot = HotBlock {
        addr,
        reads,
        writes,
        at_home,
        written,
    };
    Some((at, hot))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;

    #[test]
    fn blocks_that_are_missed_often_stay_and_others_pass() {
        let hot = HotBlocks::default();
        for round in 0..1000 {
            hot.count(Tag(7 * BLOCK), Kind::WriteMiss);
            hot.count(Tag(7 * BLOCK), Kind::WriteShared);
            hot.count(Tag(9 * BLOCK), Kind::ReadMiss);
            // A scan over very many.
            hot.count(Tag((100 + round) * BLOCK), Kind::ReadMiss);
            hot.count(Tag(7 * BLOCK), Kind::EvictModified);
        }
        (0..3).for_each(|_| hot.count(Tag(7 * BLOCK), Kind::Operate));
        let all = hot.all(|_| 5);
        let first = HotBlock {
            addr: 7 * BLOCK,
            reads: 0,
            writes: 2000,
            at_home: 3,
            written: 5,
        };
        assert_eq!(all[0], first);
        assert_eq!((all[1].addr, all[1].reads), (9 * BLOCK, 1000));
        // What is missed no more makes room for what is.
        let place = |n: u64| std::ptr::from_ref(hot.0.place(Tag(n * BLOCK)));
        let other = (10..).find(|n| place(*n) == place(7));
        let other = Tag(other.unwrap() * BLOCK);
        (0..=STRENGTH).for_each(|_| hot.count(other, Kind::ReadMiss));
        assert!(hot.all(|_| 0).iter().all(|hot| hot.addr != 7 * BLOCK));
    }

    #[test]
    fn the_block_at_address_zero_is_one_too() {
        let hot = HotBlocks::default();
        assert_eq!(hot.all(|_| 0), []);
        (0..FEW).for_each(|_| hot.count(Tag(0), Kind::ReadMiss));
        assert_eq!(hot.all(|_| 0)[0].addr, 0);
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let words = [3u64, 0x1000, 5, u64::MAX, 9, 7];
        let record = words.map(u64::to_be_bytes).concat();
        let hot = HotBlock {
            addr: 0x1000,
            reads: 5,
            writes: u64::MAX,
            at_home: 7,
            written: 9,
        };
        assert_eq!(decode(&record), Some((3, hot)));
        assert_eq!(decode(&record[1..]), None);
    }
}
