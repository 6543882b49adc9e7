//! One lock at this node: what it protects, the ways into it, and the host of [`NodeLock`],
//! which decides.
//!
//! Packets and threads come in any order; [`State`] is what they take turns for.
//! What a turn causes for others is put into an [`Outbox`] and done when the turn is over, so
//! handlers that call each other never wait for each other.

use super::content::{Beside, Content as Bytes};
use super::fast::Word;
use super::outbox::{Outbox, Payload};
use super::seat::{Content, Pass, Seat};
use super::watch::Watchers;
use crate::host::here::bytes;
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, words};
use rackmem_proto::engine::{LockFx, NodeLock};
use rackmem_proto::gcp::{
    Access, BladeCounters, Body as Carries, Entered, Life, Lock, Right, used, with_used,
};
use rackmem_proto::wire::{Dest, Header, Record, Tag};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard};

/// A lock that this node knows. There may be a million of them: what is rare is kept elsewhere.
/// What a thread looks at that finds the lock here stands at the front.
#[repr(C)]
pub(crate) struct Cell {
    pub(crate) word: Word,
    /// The fencing token of whoever enters by the word.
    token: AtomicU64,
    /// What the lock protects. Where that is changes only while no thread is inside,
    /// but for the writer who needs room.
    pub(crate) content: Bytes,
    /// Bytes that it protects at most.
    len: u32,
    /// Bytes that it protects, as this node was told last, for people who look.
    pub(crate) told_len: AtomicU32,
    pub(crate) tag: Tag,
    /// At its home: what memory there is at its address, as a power of two.
    pub(crate) room: AtomicU8,
    /// No program makes it: its home does when it first hears of it,
    /// from whom it hears how long it is.
    pub(crate) implicit: bool,
    /// What it protects is with a majority whenever no thread is inside: who finds nothing here
    /// finds it there.
    pub(crate) recorded: AtomicBool,
    state: Mutex<State>,
}

/// What is looked at and changed by one thread at a time.
pub(crate) struct State {
    pub(crate) lock: NodeLock<Arc<Seat>>,
    /// Where the next content comes together.
    beside: Beside,
    /// Who is called when what the lock protects may have changed: as many as this process has
    /// threads.
    pub(crate) watchers: Watchers,
    /// Whether the table looks after what it waits for.
    pub kept: bool,
    /// Entries by the word, and how many of these the lock counts too.
    entries: u64,
    told: u64,
    /// Entries when the node looked last for locks that nobody uses: the lower bits.
    seen: u32,
}

/// Who waits for a lock, as far as a node knows.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Mutex, Waiting};
///
/// let rack = Rack::local(1)?;
/// let lock = Mutex::create(&rack.node(0), 7u64)?;
/// assert_eq!(lock.waiting(), Waiting { threads: 0, nodes: 0 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// Threads of this node.
    pub threads: usize,
    /// Other nodes, if this node has the lock and they have come to write, or while it writes.
    pub nodes: usize,
}

/// What a lock acts by in a turn.
pub(crate) struct Fx<'a> {
    cell: &'a Cell,
    beside: &'a mut Beside,
    out: &'a mut Outbox,
    /// Of the packet at hand.
    body: Body<'a>,
}

impl LockFx for Fx<'_> {
    type Seat = Arc<Seat>;

    fn store(&mut self, header: &Header) {
        let bytes = used(header, self.cell.len).unwrap_or(0);
        let (words, at) = ((bytes as usize).div_ceil(8), header.offset as usize);
        self.cell.content.store(self.beside, words, self.body, at);
    }

    fn install(&mut self, inside: bool) {
        self.cell.content.install(self.beside, inside);
    }

    fn clear(&mut self) {
        self.cell.content.clear();
        self.cell.content.forget(self.beside);
        self.out.dropped();
    }

    fn life(&self) -> Life {
        self.cell.life()
    }

    fn send(&mut self, to: Dest, header: &Header, body: &Carries) {
        let mut header = *header;
        let payload = match body {
            Carries::None => Payload::None,
            Carries::Regions => {
                let data = self.cell.data();
                header = with_used(header, data.len() as u32);
                Payload::Data(data)
            }
            Carries::Queue(queue) => {
                let records: Vec<Record> = queue.records().collect();
                Payload::Records(bytes(&records))
            }
        };
        self.out.packet(to, header, payload);
    }

    fn inside(&mut self, seat: Arc<Seat>, entered: Entered, _: bool) {
        seat.let_in(entered);
        self.out.wake(seat);
    }

    fn send_away(&mut self, seat: Arc<Seat>) {
        seat.send_away();
        self.out.wake(seat);
    }
}

impl Cell {
    pub fn new(
        lock: NodeLock<Arc<Seat>>,
        (len, implicit): (usize, bool),
        kept: Arc<AtomicUsize>,
    ) -> Self {
        kept.fetch_add(size_of::<Cell>(), Relaxed);
        Cell {
            tag: lock.tag(),
            len: len as u32,
            told_len: AtomicU32::new(len as u32),
            room: AtomicU8::new(0),
            implicit,
            recorded: AtomicBool::new(false),
            word: Word::default(),
            token: AtomicU64::new(0),
            content: Bytes::new(kept),
            state: Mutex::new(State {
                lock,
                beside: Beside::default(),
                watchers: Watchers::default(),
                kept: false,
                entries: 0,
                told: 0,
                seen: 0,
            }),
        }
    }

    /// What it protects: to read for who is inside, to write for a writer. Of a page, what has been
    /// written; the rest is zeros.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.content.words()
    }

    /// What it protects, as it is now: of a page no more than there is.
    fn data(&self) -> Arc<[u8]> {
        let words = self.words();
        let words = &words[..words.len().min(self.len().div_ceil(8))];
        let mut bytes = vec![0; words.len() * 8];
        words::read(&mut bytes, words);
        bytes.into()
    }

    /// Which lock of this place it is, as this node has it: of one that can be freed,
    /// and certain for who is inside.
    #[inline]
    pub fn life(&self) -> Life {
        let word = self.content.words().first();
        word.map_or(Life::NONE, |word| Life::from_word(word.load(Relaxed)))
    }

    /// Bytes that it protects at most.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// What whoever has entered by the word is told.
    #[inline]
    pub(crate) fn pass(&self) -> Pass {
        Pass {
            token: self.token.load(Relaxed),
            content: Content::Current,
        }
    }

    /// A turn at its state. Nothing in a turn panics between its steps, so a poisoned one is whole.
    pub(crate) fn turn(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().whole();
        state.close(self);
        state
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let state = self.state.get_mut().whole();
        self.content.forget(&mut state.beside);
        self.content.release(size_of::<Cell>());
    }
}

impl State {
    /// From here on threads come and go by turns; the lock hears of those that came by the word.
    fn close(&mut self, cell: &Cell) {
        let inside = cell.word.close();
        self.entries += u64::from(inside.entries);
        let readers = std::iter::repeat_n(Access::Read, usize::from(inside.readers));
        for access in readers.chain(inside.writer.then_some(Access::Write)) {
            self.lock.came(access);
            self.told += 1;
        }
    }

    /// The end of a turn: if the lock is here and nobody wants it, threads may come and go by the
    /// word.
    pub fn open(&mut self, cell: &Cell) {
        let right = self.lock.free();
        if right != Right::None && self.watchers.is_empty() {
            cell.token
                .store(self.lock.lock().map_or(0, Lock::token), Relaxed);
            cell.word.open(right);
        }
    }

    /// Has the lock do something; `body` is of the packet at hand.
    pub fn act<R>(
        &mut self,
        cell: &Cell,
        body: Body<'_>,
        out: &mut Outbox,
        act: impl FnOnce(&mut NodeLock<Arc<Seat>>, &mut Fx<'_>) -> R,
    ) -> R {
        let mut fx = Fx {
            cell,
            beside: &mut self.beside,
            out,
            body,
        };
        act(&mut self.lock, &mut fx)
    }

    /// Acquisitions and packets so far.
    pub fn counters(&self) -> BladeCounters {
        let counters = self.lock.counters();
        BladeCounters {
            local: counters.local - self.told + self.entries,
            ..counters
        }
    }

    /// Whether a thread has entered since this was asked last.
    pub(crate) fn entered_since(&mut self) -> bool {
        let counters = self.counters();
        let entries = counters.local.wrapping_add(counters.granted) as u32;
        std::mem::replace(&mut self.seen, entries) != entries
    }

    /// Whether threads wait for it, or for news of it.
    pub(crate) fn awaited(&self) -> bool {
        self.lock.waiting() > 0 || !self.watchers.is_empty()
    }

    /// Who is known here to wait.
    pub fn waiting(&self) -> Waiting {
        Waiting {
            threads: self.lock.waiting(),
            nodes: self.lock.lock().map_or(0, |lock| lock.queue().len()),
        }
    }

    /// The end of a turn, for those who watch.
    pub(crate) fn call_watchers(&mut self, out: &mut Outbox) {
        if self.lock.is_over() {
            return self.watchers.call(out);
        }
        let lock = self.lock.lock();
        let has = lock.map_or((0, Right::None), |lock| (lock.since(), lock.right()));
        self.watchers.look(has, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node may know a million locks: what each takes without a thread that waits,
    /// or a packet under way, is pinned.
    #[test]
    fn a_lock_takes_little_memory() {
        assert!(size_of::<Cell>() <= 432, "{}", size_of::<Cell>());
    }
}
