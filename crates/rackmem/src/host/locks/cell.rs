//! One lock at this node: what it protects, the ways into it, and the host of the protocol's roles.
//!
//! Packets and threads come in any order; [`State`] is what they take turns for. What a step causes for others is put into
//! an [`Outbox`] and done when the turn is over, so handlers that call each other never wait for each other.

use super::content::{Beside, Content as Bytes};
use super::fast::Word;
use super::line::Line;
use super::outbox::{Outbox, Payload};
use super::pace::Pace;
use super::seat::{Content, Pass, Seat};
use super::watch::Watchers;
use crate::host::here::bytes;
use rackmem_fabric::{Body, words};
use rackmem_proto::Outputs;
use rackmem_proto::gcp::{
    Access, Blade, BladeCounters, Body as Carries, Entered, Event, Life, Lock, LockDirectory,
    LockPlace, Right, Steps, used, version, with_used,
};
use rackmem_proto::wire::{Dest, GlobalStatus, Header, Kind, NodeId, Reason, Record, Tag};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A lock that this node knows. There may be a million of them: what is rare is kept elsewhere. What a thread looks at that finds
/// the lock here stands at the front.
#[repr(C)]
pub(crate) struct Cell {
    pub(crate) word: Word,
    /// The fencing token of whoever enters by the word.
    token: AtomicU64,
    /// What the lock protects. Where that is changes only while no thread is inside, but for the writer who needs room.
    pub(crate) content: Bytes,
    /// Bytes that it protects at most.
    len: u32,
    /// Bytes that it protects, as this node was told last, for people who look.
    pub(crate) told_len: AtomicU32,
    pub(crate) tag: Tag,
    me: NodeId,
    /// At its home: what memory there is at its address, as a power of two.
    pub(crate) room: AtomicU8,
    /// Nobody makes it: its home does when it first hears of it, from whom it hears how long it is.
    pub(crate) implicit: bool,
    state: Mutex<State>,
}

/// What is looked at and changed by one thread at a time.
pub(crate) struct State {
    pub(crate) blade: Blade,
    /// Its directory, at its home.
    pub(crate) directory: Option<Box<LockDirectory>>,
    /// Where the next content comes together.
    beside: Beside,
    /// Who waits in the blade: one at a time.
    pub(crate) first: Option<Arc<Seat>>,
    /// Who waits for that.
    pub(crate) queue: Line,
    /// Who is called when what the lock protects may have changed: as many as this process has threads.
    pub(crate) watchers: Watchers,
    /// When to ask again for what has not come.
    pub pace: Pace,
    /// Entries by the word, and how many of these the blade counts too.
    entries: u64,
    told: u64,
    /// Its home is no more.
    pub over: bool,
    /// Its home has it, and this node, which leaves, is not needed for it.
    pub(crate) yielded: bool,
    /// Entries when the node looked last for locks that nobody uses: the lower bits.
    seen: u32,
}

/// Who waits for a lock, as far as a node knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waiting {
    /// Threads of this node.
    pub threads: usize,
    /// Other nodes, if this node has the lock and they have come to write, or while it writes.
    pub nodes: usize,
}

/// What came with a packet.
pub(crate) struct Came<'a> {
    pub header: &'a Header,
    pub body: Body<'a>,
}

/// Where a turn stands.
pub(crate) struct Turn<'a> {
    cell: &'a Cell,
    out: &'a mut Outbox,
    /// Packets to this very node.
    own: VecDeque<(Header, Payload)>,
}

impl<'a> Turn<'a> {
    fn new(cell: &'a Cell, out: &'a mut Outbox) -> Self {
        Turn {
            cell,
            out,
            own: VecDeque::new(),
        }
    }

    /// Puts a packet on its way, which for this very node is none.
    pub(crate) fn send(&mut self, to: Dest, header: Header, payload: Payload) {
        if to == Dest::Agent(self.cell.me) {
            return self.own.push_back((header, payload));
        }
        self.out.packet(to, header, payload);
    }

    /// What the lock protects, as it is now: of a page no more than there is.
    fn data(&self) -> Arc<[u8]> {
        let words = self.cell.words();
        let words = &words[..words.len().min(self.cell.len().div_ceil(8))];
        let mut bytes = vec![0; words.len() * 8];
        words::read(&mut bytes, words);
        bytes.into()
    }
}

impl Cell {
    pub fn new(
        tag: Tag,
        me: NodeId,
        (len, implicit): (usize, bool),
        blade: Blade,
        directory: Option<Box<LockDirectory>>,
        kept: Arc<AtomicUsize>,
    ) -> Self {
        kept.fetch_add(size_of::<Cell>(), Relaxed);
        Cell {
            tag,
            me,
            len: len as u32,
            told_len: AtomicU32::new(len as u32),
            room: AtomicU8::new(0),
            implicit,
            word: Word::default(),
            token: AtomicU64::new(0),
            content: Bytes::new(kept),
            state: Mutex::new(State {
                blade,
                directory,
                beside: Beside::default(),
                first: None,
                queue: Line::default(),
                watchers: Watchers::default(),
                pace: Pace::default(),
                entries: 0,
                told: 0,
                over: false,
                yielded: false,
                seen: 0,
            }),
        }
    }

    /// What it protects: to read for who is inside, to write for a writer. Of a page, what has been written; the rest is zeros.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.content.words()
    }

    /// Which lock of this place it is, as this node has it: of one that can be freed, and certain for who is inside.
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.close(self);
        state
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.content.forget(&mut state.beside);
        self.content.release(size_of::<Cell>());
    }
}

impl State {
    /// From here on threads come and go by turns; the blade hears of those that came by the word.
    fn close(&mut self, cell: &Cell) {
        let inside = cell.word.close();
        self.entries += u64::from(inside.entries);
        let readers = std::iter::repeat_n(Access::Read, usize::from(inside.readers));
        for access in readers.chain(inside.writer.then_some(Access::Write)) {
            let mut steps = Steps::new();
            let (entered, _) = self.blade.enter(cell.tag, access, &mut steps);
            debug_assert!(entered.is_some() && steps.is_empty());
            self.told += 1;
        }
    }

    /// The end of a turn: if the lock is here and nobody wants it, threads may come and go by the word.
    pub fn open(&mut self, cell: &Cell) {
        let unseen = self.watchers.is_empty() && !self.over;
        let alone = self.first.is_none() && self.queue.is_empty() && unseen;
        let Some(lock) = self.blade.lock(cell.tag).filter(|_| alone) else {
            return;
        };
        let idle = lock.inside() == (0, false) && !lock.contended() && lock.releasing().is_none();
        let right = lock.right();
        let quiet = !lock.unfinished() && lock.waits().is_none();
        if idle && quiet && right != Right::None && lock.reason() == Reason::None {
            cell.token.store(lock.token(), Relaxed);
            cell.word.open(right);
        }
    }

    fn lock<'a>(&'a self, cell: &Cell) -> Option<&'a Lock> {
        self.blade.lock(cell.tag)
    }

    /// Whether something is under way that may have to be asked for again.
    pub fn busy(&self, cell: &Cell) -> bool {
        !self.over && (self.placing(cell) || self.lock(cell).is_some_and(Lock::unfinished))
    }

    /// Acquisitions and packets so far.
    pub fn counters(&self) -> BladeCounters {
        let counters = self.blade.counters();
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
        self.first.is_some() || !self.queue.is_empty() || !self.watchers.is_empty()
    }

    /// Who is known here to wait.
    pub fn waiting(&self, cell: &Cell) -> Waiting {
        Waiting {
            threads: usize::from(self.first.is_some()) + self.queue.len(),
            nodes: self.lock(cell).map_or(0, |lock| lock.queue().len()),
        }
    }

    /// Whether a thread may wait in the blade: writers are sent there when nobody of this node is inside.
    fn may_go(&self, cell: &Cell, access: Access, leaves: Option<Access>) -> bool {
        let Some((mut readers, mut writer)) = self.lock(cell).map(Lock::inside) else {
            return false;
        };
        match leaves {
            Some(Access::Read) => readers = readers.saturating_sub(1),
            Some(Access::Write) => writer = false,
            None => {}
        }
        self.first.is_none() && !writer && (access == Access::Read || readers == 0)
    }

    /// A thread wants to enter: it is let in at once, or in its turn.
    pub fn enter(&mut self, cell: &Cell, seat: Arc<Seat>, out: &mut Outbox) {
        self.queue.push_back(seat);
        let mut turn = Turn::new(cell, out);
        self.settle_here(&mut turn);
    }

    /// Enters if nobody is in the way and no packet is needed.
    pub fn try_enter(&mut self, cell: &Cell, access: Access) -> Option<Entered> {
        let right = self.lock(cell).is_some_and(|l| l.right().allows(access));
        let free = self.queue.is_empty() && self.may_go(cell, access, None);
        if !right || !free || self.lock(cell).is_none_or(Lock::contended) {
            return None;
        }
        let mut steps = Steps::new();
        let (entered, _) = self.blade.enter(cell.tag, access, &mut steps);
        if entered.is_none() {
            // Its release is under way. Nothing was asked for: a writer's right was enough.
            self.blade.cancel(cell.tag);
        }
        entered
    }

    /// The end of a turn, for those who watch.
    pub(crate) fn call_watchers(&mut self, cell: &Cell, out: &mut Outbox) {
        let has = self
            .lock(cell)
            .map_or((0, Right::None), |lock| (lock.since(), lock.right()));
        self.watchers.look(has, out);
    }

    /// A thread leaves; whoever is next here enters with it, as often as the bound of a cohort allows.
    pub fn leave(&mut self, cell: &Cell, access: Access, out: &mut Outbox) {
        let front = self.queue.front().map(|seat| seat.access);
        let next = front.filter(|next| self.may_go(cell, *next, Some(access)));
        if next.is_some() {
            self.first = self.queue.pop_front();
        }
        if access == Access::Write {
            self.watchers.changed();
        }
        let mut steps = Steps::new();
        let entered = self.blade.leave(cell.tag, access, next, &mut steps);
        let mut turn = Turn::new(cell, out);
        if let Some(entered) = entered {
            self.let_in(entered, &mut turn);
        }
        self.run(steps, None, &mut turn);
        self.settle_here(&mut turn);
    }

    /// A thread that was let in is not to go on: it leaves, and has seen nothing.
    pub fn decline(&mut self, cell: &Cell, access: Access, out: &mut Outbox) {
        let mut steps = Steps::new();
        self.blade.decline(cell.tag, access, &mut steps);
        self.follow(cell, steps, out);
    }

    /// A thread waits no longer. `false`: it has been let in meanwhile, or sent away.
    pub fn give_up(&mut self, cell: &Cell, seat: &Arc<Seat>, out: &mut Outbox) -> bool {
        if self.first.as_ref().is_some_and(|f| Arc::ptr_eq(f, seat)) {
            self.first = None;
            self.blade.cancel(cell.tag);
        } else if !self.queue.remove(seat) {
            return false;
        }
        self.settle_here(&mut Turn::new(cell, out));
        true
    }

    /// A packet has come.
    pub fn packet(&mut self, cell: &Cell, came: &Came<'_>, out: &mut Outbox) {
        let mut turn = Turn::new(cell, out);
        self.pace.hurry();
        self.take(came, &mut turn);
        self.settle_here(&mut turn);
    }

    /// Whether the switch has been asked to serve the lock, and has not answered.
    fn placing(&self, cell: &Cell) -> bool {
        let place = self.directory.as_ref().and_then(|d| d.entry(cell.tag));
        place.is_some_and(|(_, place)| place == LockPlace::Placing)
    }

    /// Asks the switch once more to serve the lock.
    fn place(&mut self, cell: &Cell, out: &mut Outbox) {
        let mut outputs = Outputs::default();
        if let Some(directory) = &mut self.directory {
            directory.place(cell.tag, &mut outputs);
        }
        for (to, header) in outputs.iter().flat_map(|output| output.copies()) {
            out.packet(to, header, Payload::None);
        }
    }

    /// Asks again for what has not come.
    pub fn retry(&mut self, cell: &Cell, out: &mut Outbox) {
        if self.placing(cell) {
            self.place(cell, out);
        }
        let mut steps = Steps::new();
        self.blade.retry(cell.tag, &mut steps);
        let mut turn = Turn::new(cell, out);
        self.run(steps, None, &mut turn);
        self.settle_here(&mut turn);
    }

    /// Does what the protocol has decided elsewhere.
    pub fn follow(&mut self, cell: &Cell, steps: Steps, out: &mut Outbox) {
        let mut turn = Turn::new(cell, out);
        self.run(steps, None, &mut turn);
        self.settle_here(&mut turn);
    }

    fn take(&mut self, came: &Came<'_>, turn: &mut Turn<'_>) {
        let header = came.header;
        match header.kind {
            Kind::Yield => return self.come_home(turn.cell, header, turn),
            Kind::YieldAck if header.status != GlobalStatus::Shared => {
                let since = self.lock(turn.cell).map_or(0, Lock::since);
                self.yielded |= version(header) >= since;
            }
            _ => {}
        }
        if header.kind.asks_directory() {
            let switch = self.blade.has_switch();
            let outputs = self.directory.as_mut().map(|home| match switch {
                true => home.handle_or_place(header),
                false => home.handle(header),
            });
            for (to, header) in outputs
                .iter()
                .flat_map(|o| o.iter().flat_map(|o| o.copies()))
            {
                turn.send(to, header, Payload::None);
            }
            return;
        }
        let records: Vec<Record> = match came.body {
            Body::Bytes(bytes) if header.kind == Kind::Queue => Record::all(bytes).collect(),
            _ => Vec::new(),
        };
        let mut steps = Steps::new();
        let len = came.body.len() as u32;
        self.blade.handle(header, len, &records, &mut steps);
        self.run(steps, Some(came), turn);
    }

    /// Everything that follows here, until nothing does.
    pub(crate) fn settle_here(&mut self, turn: &mut Turn<'_>) {
        loop {
            if let Some((header, payload)) = turn.own.pop_front() {
                let body = match &payload {
                    Payload::None => Body::None,
                    Payload::Data(bytes) => Body::Bytes(bytes),
                    Payload::Records(bytes) => Body::Bytes(bytes),
                };
                let header = &header;
                self.take(&Came { header, body }, turn);
            } else if !self.send_next(turn) {
                return;
            }
        }
    }

    /// The first of the queue goes to wait in the blade, or is inside.
    fn send_next(&mut self, turn: &mut Turn<'_>) -> bool {
        let front = self.queue.front().map(|seat| seat.access);
        let Some(access) = front.filter(|access| self.may_go(turn.cell, *access, None)) else {
            return false;
        };
        self.first = self.queue.pop_front();
        let mut steps = Steps::new();
        let (entered, _) = self.blade.enter(turn.cell.tag, access, &mut steps);
        if let Some(entered) = entered {
            self.let_in(entered, turn);
        }
        self.run(steps, None, turn);
        true
    }

    /// Who waits in the blade is inside. If it has given up meanwhile, it leaves.
    fn let_in(&mut self, entered: Entered, turn: &mut Turn<'_>) {
        self.pace.rest();
        if let Some(seat) = self.first.take().filter(|seat| !seat.is_empty()) {
            seat.let_in(entered);
            return turn.out.wake(seat);
        }
        let mut steps = Steps::new();
        self.blade
            .decline(turn.cell.tag, entered.access, &mut steps);
        self.run(steps, None, turn);
    }

    /// Whether threads are inside that these steps do not let in.
    fn inside_before(&self, cell: &Cell, steps: &Steps) -> bool {
        let enter = |step: &&Event| matches!(step, Event::Enter(_));
        let new = steps.iter().filter(enter).count();
        let (readers, writer) = self.lock(cell).map_or((0, false), Lock::inside);
        usize::from(readers) + usize::from(writer) > new
    }

    /// Does what the protocol has decided, in order.
    fn run(&mut self, steps: Steps, came: Option<&Came<'_>>, turn: &mut Turn<'_>) {
        let cell = turn.cell;
        let inside = self.inside_before(cell, &steps);
        for step in steps {
            match step {
                Event::Store => {
                    if let Some(Came { header, body }) = came {
                        let bytes = used(header, cell.len).unwrap_or(0);
                        let (words, at) = ((bytes as usize).div_ceil(8), header.offset as usize);
                        cell.content.store(&mut self.beside, words, *body, at);
                    }
                }
                Event::Drop => {
                    cell.content.clear();
                    cell.content.forget(&mut self.beside);
                    turn.out.dropped();
                }
                Event::Install => {
                    cell.content.install(&mut self.beside, inside);
                }
                Event::Enter(entered) => self.let_in(entered, turn),
                Event::Send(send) => {
                    let mut header = send.header;
                    let payload = match send.body {
                        Carries::None => Payload::None,
                        Carries::Regions => {
                            let data = turn.data();
                            header = with_used(header, data.len() as u32);
                            Payload::Data(data)
                        }
                        Carries::Queue(queue) => {
                            let records: Vec<Record> = queue.records().collect();
                            Payload::Records(bytes(&records))
                        }
                    };
                    if cell.implicit && header.kind == Kind::Acquire {
                        header.offset = cell.len;
                    }
                    turn.send(send.to, header, payload);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node may know a million locks: what each takes without a thread that waits, or a packet under way, is pinned.
    #[test]
    fn a_lock_takes_little_memory() {
        assert!(size_of::<Cell>() <= 432, "{}", size_of::<Cell>());
    }
}
