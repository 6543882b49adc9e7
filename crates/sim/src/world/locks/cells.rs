//! A node's locks in a world: the engine's, with small vectors in place of bytes and news in place of threads that wake up.

use crate::gcp::Mutation as LockDefect;
use crate::world::block;
use crate::world::mutation::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::{Defect, LockFx, LockPart, NodeLock, Told};
use rackmem_proto::gcp::{Body, Entered, LockPlace, Region, Regions, Right, SEGMENT};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Contract, Dest, Header, Kind, NodeId, Reason, Tag};
use std::collections::BTreeMap;

/// Words of what a lock protects: a writer adds one to the first when it enters, and to the last when it leaves.
pub const WORDS: usize = 4;
/// Words that go into a packet, so that they can be torn.
const PART: usize = 2;
/// Entries of a node's threads while another node waits.
const COHORT: u8 = 2;

/// What has happened to a lock at a node, for the threads that are played and for the judge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// The thread of this slot is inside, and finds the first and the last word of the data to be these.
    Inside(u16, Entered, [u64; 2]),
    /// The lock is gone with its home: the thread of this slot waits in vain.
    Gone(u16),
    /// The node may write, and did not before: the last word of its data.
    Gained(u64),
    /// Its home has made its entry anew.
    Settled,
}

/// One lock at a node, and what it protects.
struct Cell {
    lock: NodeLock<u16>,
    data: [u64; WORDS],
    beside: [u64; WORDS],
}

/// The locks of a node.
pub struct Cells {
    me: NodeId,
    cells: BTreeMap<Tag, Cell>,
    /// What is told of them while an epoch begins.
    pub told: Told,
    /// What has happened since this was looked at last.
    pub news: Vec<(Tag, News)>,
    /// The node leaves the rack: homes are to take what it has.
    pub leaving: bool,
    defect: Option<LockDefect>,
}

/// Packets, with the words of their bodies.
pub type Sent = Vec<(Output, Vec<u64>)>;

/// What a turn at a lock acts by, and what it has caused.
pub struct Fx<'a> {
    me: NodeId,
    body: &'a [u64],
    data: &'a mut [u64; WORDS],
    beside: &'a mut [u64; WORDS],
    defect: Option<LockDefect>,
    broken: Option<Defect>,
    sent: Sent,
    news: Vec<News>,
}

/// The tag of a world's lock in its home's incarnation.
pub fn tag(number: u32, homes: u16, incarnation: u32) -> Tag {
    block::tag(number, homes, incarnation).under(Contract::Locked)
}

impl LockFx for Fx<'_> {
    type Seat = u16;

    fn store(&mut self, header: &Header) {
        let at = (header.offset / SEGMENT) as usize;
        if let Some(part) = self.beside.get_mut(at..at + self.body.len()) {
            part.copy_from_slice(self.body);
        }
    }

    fn install(&mut self, _: bool) {
        if self.defect != Some(LockDefect::SkipInstall) {
            *self.data = *self.beside;
        }
    }

    fn clear(&mut self) {
        *self.data = [u64::MAX; WORDS];
    }

    fn send(&mut self, to: Dest, header: &Header, body: &Body) {
        match body {
            Body::None => self.sent.push((Output::new(to, *header), Vec::new())),
            Body::Queue(queue) => {
                let words = queue.records().flat_map(|r| [r.tag.0, r.word]);
                self.sent.push((Output::new(to, *header), words.collect()));
            }
            Body::Regions => {
                for (nth, words) in self.data.chunks(PART).enumerate() {
                    let offset = (nth * PART) as u32 * SEGMENT;
                    let header = Header { offset, ..*header };
                    self.sent.push((Output::new(to, header), words.to_vec()));
                }
            }
        }
    }

    fn inside(&mut self, slot: u16, mut entered: Entered, _: bool) {
        match self.defect {
            Some(LockDefect::ForgetDeath) => entered.reason = Reason::None,
            Some(LockDefect::TokenRestarts) => entered.token &= (1 << 41) - 1,
            _ => {}
        }
        let found = [self.data[0], self.data[WORDS - 1]];
        self.news.push(News::Inside(slot, entered, found));
    }

    fn send_away(&mut self, slot: u16) {
        self.news.push(News::Gone(slot));
    }

    fn defect(&self) -> Option<Defect> {
        self.broken
    }
}

impl Fx<'_> {
    /// A defect: a sharer acknowledges at once, with a reader inside.
    pub fn acknowledge(&mut self, header: &Header) {
        let concerned = header.requester.node != self.me;
        if self.defect == Some(LockDefect::AckInside)
            && header.kind == Kind::Invalidate
            && concerned
        {
            let mut ack = header.answer(Kind::InvAck, self.me);
            ack.flags = Default::default();
            self.send(Dest::Agent(header.requester.node), &ack, &Body::None);
        }
    }
}

impl Cell {
    fn new(tag: Tag, me: NodeId, view: &View) -> Self {
        let region = Region {
            addr: tag.0,
            len: WORDS as u32 * SEGMENT,
        };
        let part = LockPart {
            node: me,
            epoch: view.epoch,
            switch: view.switch.is_some(),
            cohort: COHORT,
            implicit: false,
        };
        let regions = Regions::new(&[region]).unwrap_or_default();
        Cell {
            lock: NodeLock::new(tag, regions, part, None),
            data: [0; WORDS],
            beside: [0; WORDS],
        }
    }

    fn owned(&self) -> bool {
        let right = self.lock.lock().map(|lock| lock.right());
        right == Some(Right::Modified)
    }
}

impl Cells {
    /// A node that begins with a view, and makes these locks of its own.
    pub fn new(me: NodeId, view: View, own: &[Tag], mutation: Option<Mutation>) -> Self {
        let cells = own.iter().map(|tag| (*tag, Cell::new(*tag, me, &view)));
        Cells {
            me,
            cells: cells.collect(),
            told: Told::default(),
            news: Vec::new(),
            leaving: false,
            defect: match mutation {
                Some(Mutation::Lock(defect)) => Some(defect),
                _ => None,
            },
        }
    }

    /// A lock of another home becomes known here. `false`: it is not there.
    pub fn open(&mut self, tag: Tag, view: &View) -> bool {
        let me = self.me;
        if tag.home() != me && view.incarnation(tag.home()) == Some(block::incarnation(tag)) {
            self.cells
                .entry(tag)
                .or_insert_with(|| Cell::new(tag, me, view));
        }
        self.cells.contains_key(&tag)
    }

    /// A turn at a lock, with the body of the packet at hand. What it sends comes back.
    pub fn turn<R>(
        &mut self,
        tag: Tag,
        body: &[u64],
        broken: Option<Defect>,
        section: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>) -> R,
    ) -> Option<(R, Sent)> {
        let cell = self.cells.get_mut(&tag)?;
        let (owned, epoch) = (cell.owned(), cell.lock.entry().map(|entry| entry.2));
        let mut fx = Fx {
            me: self.me,
            body,
            data: &mut cell.data,
            beside: &mut cell.beside,
            defect: self.defect,
            broken,
            sent: Vec::new(),
            news: Vec::new(),
        };
        let result = section(&mut cell.lock, &mut fx);
        let (sent, news) = (fx.sent, fx.news);
        if !owned && cell.owned() {
            self.news.push((tag, News::Gained(cell.data[WORDS - 1])));
        }
        if epoch != cell.lock.entry().map(|entry| entry.2) {
            self.news.push((tag, News::Settled));
        }
        self.news.extend(news.into_iter().map(|news| (tag, news)));
        Some((result, sent))
    }

    /// What a lock protects, for a thread that is inside.
    pub fn data(&mut self, tag: Tag) -> Option<&mut [u64; WORDS]> {
        self.cells.get_mut(&tag).map(|cell| &mut cell.data)
    }

    /// The locks that the node knows.
    pub fn tags(&self) -> Vec<Tag> {
        self.cells.keys().copied().collect()
    }

    /// Whether nodes ask again for what has not come.
    pub fn asks_again(&self) -> bool {
        self.defect != Some(LockDefect::NeverRetry)
    }

    /// A lock has ended.
    pub fn remove(&mut self, tag: Tag) {
        self.cells.remove(&tag);
    }

    /// Whether this node is not needed for any lock of another home.
    pub fn are_home(&self) -> bool {
        let cells = self.cells.values();
        let mut abroad = cells.filter(|cell| !cell.lock.is_home());
        abroad.all(|cell| cell.lock.forgettable(false).is_some())
    }

    /// The locks that this node may write.
    pub fn owned(&self) -> impl Iterator<Item = Tag> {
        let owned = self.cells.iter().filter(|(_, cell)| cell.owned());
        owned.map(|(tag, _)| *tag)
    }

    /// Whether a lock of this home waits for the switch to take it.
    pub fn placing(&self) -> bool {
        let mut entries = self.cells.values().filter_map(|cell| cell.lock.entry());
        entries.any(|(_, place, _)| place == LockPlace::Placing)
    }
}
