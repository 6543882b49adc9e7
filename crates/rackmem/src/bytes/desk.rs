//! What this node shares with the kernel of its host, where that invalidates copies of its cache
//! and gives them to readers: in which epoch, for whom, what was executed already, and what came of
//! it ([`rackmem_proto::flowcc::desk`] says where each lies).
//!
//! The kernel is one more thread of the cache agent. What keeps an agent's thread in its epoch, the
//! gate of [`crate::host::agents`], is the word of the epoch here, and the count of those who are
//! inside: who ends the epoch takes the word away and waits until nobody is.

use super::cache::{Control, Tags, wait_until};
use super::pages::Pages;
#[cfg(any(test, feature = "xdp"))]
use super::table::OfWords;
use super::table::Table;
use rackmem_fabric::shm::Lent;
use rackmem_proto::call::Executed;
use rackmem_proto::flowcc::desk;
#[cfg(any(test, feature = "xdp"))]
use rackmem_proto::wire::NodeId;
use rackmem_proto::wire::{MAX_NODES, RequesterId, Seq};
#[cfg(any(test, feature = "xdp"))]
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

// SAFETY: eight words.
#[cfg(any(test, feature = "xdp"))]
unsafe impl OfWords for Tags {}
// SAFETY: a line of words, halves of words, and padding.
#[cfg(any(test, feature = "xdp"))]
unsafe impl OfWords for Control {}

/// What the kernel has done with orders to a node's cache of one sort: to invalidate copies, or to
/// give them to readers.
///
/// ```
/// use rackmem::diagnostics::KernelCacheCounts;
///
/// let counts = KernelCacheCounts { answered: 7, written: 2, absent: 1, ..Default::default() };
/// assert_eq!(counts.passed(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelCacheCounts {
    /// Whether it answers in the node's epoch at this time.
    pub serves: bool,
    /// Copies that it has invalidated and acknowledged, or sent.
    pub answered: u64,
    /// Passed to the node's agent: of an epoch or a life of a node that is over or has not begun.
    pub not_of_now: u64,
    /// A home gathers the answers; or it is to be invalidated, and asks for data as well, or the
    /// switch has the entry.
    pub asks: u64,
    /// Where the requester's node is reached has not been heard yet; nor, of what was written here
    /// and is to be home, where its home is, or that is this node, or a group's.
    pub no_way: u64,
    /// The cache had no such copy: it is mapped as a page, has left, or the packet came twice.
    pub absent: u64,
    /// The entry was locked: a thread stored there, or the agent was at it.
    pub locked: u64,
    /// The copy is dirty, and no such order is for one.
    pub written: u64,
    /// It was executed before: a copy that is there is a later one, or the agent sends it again.
    pub again: u64,
    /// There was no memory to put an answer with a block together in.
    pub no_room: u64,
}

impl KernelCacheCounts {
    /// Orders that the agent got.
    pub fn passed(&self) -> u64 {
        let late = self.not_of_now + self.absent + self.again;
        late + self.asks + self.no_way + self.locked + self.written + self.no_room
    }
}

/// See the module.
pub(crate) struct Desk {
    words: Lent,
}

/// A desk, and the tables of a cache that the same program shares.
pub(crate) struct SharedCache {
    pub desk: Desk,
    pub tags: Table<Tags>,
    pub controls: Table<Control>,
    /// None: the cache's blocks are in memory of its own.
    pub blocks: Option<Pages>,
}

/// An address as it lies in a packet.
#[cfg(any(test, feature = "xdp"))]
pub(crate) fn as_it_comes(addr: Ipv4Addr) -> u64 {
    u32::from_ne_bytes(addr.octets()).into()
}

impl Desk {
    /// Of a node whose agent listens there, in a rack of nodes with these addresses. `words`:
    /// [`desk::WORDS`] of them at least.
    #[cfg(any(test, feature = "xdp"))]
    pub fn new(
        words: Lent,
        (node, agent): (NodeId, SocketAddrV4),
        nodes: impl Iterator<Item = SocketAddrV4>,
        sets: usize,
    ) -> Self {
        let desk = Desk { words };
        desk.word(desk::NODE).store(node.into(), Relaxed);
        let port = |at: SocketAddrV4| u64::from(u16::from_ne_bytes(at.port().to_be_bytes()));
        let is = as_it_comes(*agent.ip()) | port(agent) << 32;
        desk.word(desk::AGENT).store(is, Relaxed);
        let mask = sets.saturating_sub(1) as u64;
        desk.word(desk::SET_MASK).store(mask, Relaxed);
        for (nth, addr) in nodes.take(MAX_NODES).enumerate() {
            let word = desk.word(desk::ADDRESSES + nth);
            word.store(as_it_comes(*addr.ip()), Relaxed);
            desk.word(desk::PORTS + nth).store(port(addr), Relaxed);
        }
        desk
    }

    /// The kernel gives blocks of so many bytes from here on, in packets with so many of them.
    #[cfg(any(test, feature = "xdp"))]
    pub fn give(&self, block: usize, segment: u32) {
        self.word(desk::SEGMENT).store(segment.into(), Relaxed);
        self.word(desk::BLOCK).store(block as u64, SeqCst);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.words.words()[at]
    }

    /// The kernel answers in this epoch, in which nodes live these lives.
    pub fn open(&self, epoch: u32, incarnations: &[u32]) {
        for (nth, life) in incarnations.iter().take(MAX_NODES).enumerate() {
            let word = self.word(desk::INCARNATIONS + nth);
            word.store((*life).into(), Relaxed);
        }
        self.word(desk::EPOCH).swap(epoch.into(), SeqCst);
    }

    /// It answers no more when this returns, and what it has answered is done. A run of the program
    /// takes less than a microsecond, and longer where the machine does not run its processor.
    pub fn close(&self) {
        self.word(desk::EPOCH).swap(0, SeqCst);
        wait_until(|| self.word(desk::INSIDE).load(SeqCst) == 0);
    }

    /// Requests of the last epoch do not come any more. The kernel must not answer meanwhile.
    pub fn forget(&self) {
        let rows = &self.words.words()[desk::ROWS..desk::WORDS];
        rows.iter().for_each(|row| row.store(0, Relaxed));
    }

    /// Enters a request that the agent executes, and says how it relates to earlier ones.
    pub fn execute(&self, requester: RequesterId, seq: Seq) -> Executed {
        let row = self.word(desk::row(requester, seq));
        Executed::of(seq, Seq(row.fetch_max(seq.0, SeqCst)))
    }

    /// What the kernel has counted of orders to invalidate copies.
    pub fn invalidated(&self) -> KernelCacheCounts {
        self.counted(desk::COUNTS, 0)
    }

    /// What it has counted of readers' misses, if it gives blocks.
    pub fn given(&self) -> Option<KernelCacheCounts> {
        let gives = self.word(desk::BLOCK).load(Relaxed) != 0;
        let no_room = self.word(desk::GIVEN + desk::COUNTED).load(Relaxed);
        gives.then(|| self.counted(desk::GIVEN, no_room))
    }

    fn counted(&self, first: usize, no_room: u64) -> KernelCacheCounts {
        let count = |nth| self.word(first + nth).load(Relaxed);
        KernelCacheCounts {
            serves: self.word(desk::EPOCH).load(Relaxed) != 0,
            answered: count(0),
            not_of_now: count(1),
            asks: count(2),
            no_way: count(3),
            absent: count(4),
            locked: count(5),
            written: count(6),
            again: count(7),
            no_room,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::cache::{Cache, WAYS};
    use rackmem_proto::flowcc::LocalStatus;
    use rackmem_proto::wire::Tag;
    use std::sync::atomic::AtomicBool;

    fn zeros(words: usize) -> Lent {
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/zero")
            .expect("it is there");
        Lent::map(file, words).expect("memory")
    }

    fn desk() -> Desk {
        let agent = "10.0.0.3:7400".parse().expect("an address");
        let nodes = [1, 2, 3].map(|nth| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, nth), 7400));
        Desk::new(zeros(desk::WORDS), (2, agent), nodes.into_iter(), 4)
    }

    #[test]
    fn what_was_executed_is_known_until_the_epoch_ends() {
        let desk = desk();
        let who = RequesterId { node: 1, slot: 9 };
        assert_eq!(desk.execute(who, Seq(7)), Executed::New);
        assert_eq!(desk.execute(who, Seq(8)), Executed::New);
        assert_eq!(desk.execute(who, Seq(7)), Executed::Again);
        assert_eq!(desk.execute(who, Seq(5)), Executed::Old);
        // As the kernel does.
        desk.word(desk::row(who, Seq(9))).store(9, Relaxed);
        assert_eq!(desk.execute(who, Seq(9)), Executed::Again);
        desk.forget();
        assert_eq!(desk.execute(who, Seq(5)), Executed::New);
    }

    #[test]
    fn who_ends_an_epoch_waits_for_who_is_inside() {
        let desk = desk();
        desk.open(7, &[1, 2, 3]);
        assert!(desk.invalidated().serves);
        desk.word(desk::INSIDE).store(1, SeqCst);
        let closed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                desk.close();
                closed.store(true, SeqCst);
            });
            wait_until(|| desk.word(desk::EPOCH).load(SeqCst) == 0);
            assert!(!closed.load(SeqCst));
            desk.word(desk::INSIDE).store(0, SeqCst);
        });
        assert!(closed.load(SeqCst) && !desk.invalidated().serves);
    }

    #[test]
    fn what_it_gives_is_counted_where_it_gives() {
        let desk = desk();
        assert_eq!(desk.given(), None);
        desk.give(4096, 1344);
        desk.word(desk::GIVEN).store(5, Relaxed);
        desk.word(desk::GIVEN + 8).store(3, Relaxed);
        let given = desk.given().expect("it gives");
        assert_eq!((given.answered, given.no_room, given.passed()), (5, 3, 3));
    }

    /// The words that the program in C takes for an entry's are the cache's.
    #[test]
    fn a_shared_cache_lies_as_the_kernel_sees_it() {
        const BLOCK: usize = 256;
        let sets = 4;
        let (tags, controls) = (zeros(sets * 8), zeros(sets * WAYS * 8));
        let seen = [&tags, &controls].map(|lent| lent.words().as_ptr());
        let cache = Cache::shared(
            (sets * WAYS * BLOCK, BLOCK),
            (Table::lent(tags), Table::lent(controls)),
            None,
        );
        assert_eq!(cache.capacity(), sets * WAYS);
        let tag = Tag(0x7300);
        let entry = cache.free(cache.set_of(tag).0, |_| true).expect("room");
        cache.lock(entry).install(tag, LocalStatus::Modified);
        // SAFETY: words of mappings that the cache has.
        let word = |map: usize, at: usize| unsafe { &*seen[map].add(at) }.load(SeqCst);
        assert_eq!(word(0, entry), tag.0 | 1);
        assert_eq!(
            (word(1, entry * 8) & 7, word(1, entry * 8 + 1)),
            (4, tag.0 | 1)
        );
        let written = |cache: &Cache| (word(1, entry * 8 + 2) >> 32, cache.status(entry));
        assert_eq!(written(&cache), (0, LocalStatus::Modified));
        cache.lock(entry).set(LocalStatus::Shared);
        assert_eq!(written(&cache), (1, LocalStatus::Shared));
        cache.lock(entry).set(LocalStatus::Invalid);
        assert_eq!(written(&cache), (0, LocalStatus::Invalid));
        assert_eq!((word(0, entry), word(1, entry * 8 + 1)), (0, 0));
        cache.lock(entry).install(tag, LocalStatus::Shared);
        assert_eq!(written(&cache), (0, LocalStatus::Shared));
    }
}
