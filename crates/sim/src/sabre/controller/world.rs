//! A chip at one time, and what was promised of it.

use super::scenario::{Fault, Scenario};
use crate::driver::{Complaint, Unpacked};
use crate::print::Print;
use rackmem_proto::sabre::controller::{
    Access, Action, Controller, Load, Mode, Reply, Request, SabreId, Transfer,
};
use std::hash::Hash;

const ONE_WRITE: &str = "a SABRe that succeeds is of one write";
const CURRENT: &str = "it was current during the SABRe";
const ONE_REPLY: &str = "each request has one reply";
const NOT_ALONE: &str = "only writers, and evictions in the window, abort a SABRe";
const GIVEN_BACK: &str = "readers give back the locks that they took";
const WHERE: &str = "SABRes §3.3, §4.2, §5.1";

/// Where the object begins.
const BASE: u64 = 100;
/// Where its blocks behind the consecutive pages are.
const ELSEWHERE: u64 = 900;

/// A SABRe under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Sabre {
    transfer: Transfer,
    /// Which write each block is of that has come.
    blocks: Vec<Option<u8>>,
    /// Writes that had ended when it began.
    since: u8,
    /// Its version is known.
    known: bool,
    /// There is a reason to abort it.
    disturbed: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Source {
    /// SABRes to do, but that under way.
    left: u8,
    sabre: Option<Sabre>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Writer {
    left: u8,
    /// Stores of this write that are visible.
    stored: u16,
    /// The controller has been told of the next one.
    told: bool,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct World {
    controller: Controller,
    sources: Vec<Source>,
    /// Requests in the queue that all sources share, with [`Fault::OneQueue`].
    queue: Vec<(usize, Request)>,
    /// Loads under way.
    pub loads: Vec<Load>,
    writers: Vec<Writer>,
    version: u64,
    readers: u8,
    /// Which write each block is of.
    blocks: Vec<u8>,
    /// Which of them the controller has, as the directory knows.
    shared: Vec<bool>,
    /// The block that waits for its store.
    stored_to: Option<u16>,
    evictions: u8,
}

/// What does not change.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub scenario: Scenario,
    pub fault: Option<Fault>,
}

fn complain<T>(promise: &'static str, what: String) -> Result<T, Complaint> {
    Err((promise, WHERE, what))
}

impl Setting {
    fn address(&self, block: u16) -> u64 {
        match block.checked_sub(self.scenario.piece) {
            None => BASE + u64::from(block),
            Some(behind) => ELSEWHERE + u64::from(behind),
        }
    }

    fn one_queue(&self) -> bool {
        self.fault == Some(Fault::OneQueue)
    }

    /// The block of a writer's next store. The first and the last one are of the version.
    fn block_of(&self, stored: u16) -> u16 {
        let last = self.scenario.blocks + 1;
        match self.order(stored) {
            0 => 0,
            nth if nth == last => 0,
            nth => nth - 1,
        }
    }

    fn order(&self, stored: u16) -> u16 {
        let last = self.scenario.blocks + 1;
        let swapped = self.fault == Some(Fault::StoresOutOfOrder) && stored + 1 >= last;
        if swapped {
            2 * last - 1 - stored
        } else {
            stored
        }
    }
}

impl World {
    /// In which nothing has happened.
    pub fn new(at: &Setting) -> Self {
        let scenario = &at.scenario;
        let rule = match at.fault {
            Some(Fault::Controller(rule)) => Some(rule),
            _ => None,
        };
        let blocks = usize::from(scenario.blocks);
        let source = |left: &u8| Source {
            left: *left,
            sabre: None,
        };
        let writer = |left: &u8| Writer {
            left: *left,
            stored: 0,
            told: false,
        };
        World {
            controller: Controller::new(scenario.design).with_defect(rule),
            sources: scenario.sources.iter().map(source).collect(),
            queue: Vec::new(),
            loads: Vec::new(),
            writers: scenario.writers.iter().map(writer).collect(),
            version: 0,
            readers: 0,
            blocks: vec![0; blocks],
            shared: vec![false; blocks],
            stored_to: None,
            evictions: scenario.evictions,
        }
    }

    fn ended(&self) -> u8 {
        (self.version / 2) as u8
    }

    /// Everything that was to be done has been done.
    pub fn is_over(&self) -> bool {
        let done = |source: &Source| source.left == 0 && source.sabre.is_none();
        let written = self.writers.iter().all(|writer| writer.left == 0);
        self.sources.iter().all(done) && written && self.controller.active() == 0
    }

    /// What a state breaks by itself.
    pub fn broken(&self) -> Option<Complaint> {
        let kept = self.is_over() && self.readers > 0;
        kept.then(|| (GIVEN_BACK, WHERE, format!("{} are left", self.readers)))
    }

    /// How many are under way, for a story.
    pub fn waiting(&self) -> String {
        let sabres = self.sources.iter().filter(|source| source.sabre.is_some());
        let writers = self.writers.iter().filter(|writer| writer.left > 0);
        format!(
            "{} SABRes and {} writers wait",
            sabres.count(),
            writers.count()
        )
    }

    fn next_request(&self, source: usize, at: &Setting) -> Option<Request> {
        let from = &self.sources[source];
        match &from.sabre {
            Some(sabre) => sabre.transfer.request(),
            None if from.left > 0 => Self::begin(source, from, at).request(),
            None => None,
        }
    }

    fn begin(source: usize, from: &Source, at: &Setting) -> Transfer {
        let id = SabreId {
            node: source as u16,
            pipeline: 0,
            transfer: from.left,
        };
        let Scenario { blocks, piece, .. } = at.scenario;
        Transfer::new(id, BASE, blocks, piece.min(blocks))
    }

    /// Sources whose next request can be sent: into their own queue, whose first one the
    /// controller takes, or into that of all.
    pub fn senders(&self, at: &Setting) -> Vec<usize> {
        let can = |source: &usize| {
            let request = self.next_request(*source, at);
            let takes = |request: &Request| self.controller.clone().accept(request).is_ok();
            match at.one_queue() {
                true => request.is_some(),
                false => request.as_ref().is_some_and(takes),
            }
        };
        (0..self.sources.len()).filter(can).collect()
    }

    /// A source sends its next request, or all of a SABRe's.
    pub fn send(&mut self, source: usize, at: &Setting) {
        loop {
            let Some(request) = self.next_request(source, at) else {
                return;
            };
            if !at.one_queue() && self.controller.accept(&request).is_err() {
                return;
            }
            let (since, in_write) = (self.ended(), self.version & 1 == 1);
            let from = &mut self.sources[source];
            let transfer = Self::begin(source, from, at);
            let from_left = &mut from.left;
            let sabre = from.sabre.get_or_insert_with(|| {
                *from_left -= 1;
                Sabre {
                    transfer,
                    blocks: vec![None; usize::from(at.scenario.blocks)],
                    since,
                    known: false,
                    disturbed: in_write,
                }
            });
            sabre.transfer.sent();
            if at.one_queue() {
                self.queue.push((source, request));
                return;
            }
            if !at.scenario.at_once {
                return;
            }
        }
    }

    /// Whether the first request of the queue of all is taken.
    pub fn takes(&self) -> bool {
        let first = self.queue.first();
        first.is_some_and(|(_, request)| self.controller.clone().accept(request).is_ok())
    }

    /// It is.
    pub fn take(&mut self) {
        let (_, request) = self.queue.remove(0);
        // It was seen to be taken.
        let _ = self.controller.accept(&request);
    }

    /// Whether a stage of the pipeline has something to do.
    pub fn can(&self, stage: fn(&mut Controller) -> Option<Action>) -> bool {
        stage(&mut self.controller.clone()).is_some()
    }

    /// It does it.
    pub fn act(&mut self, stage: fn(&mut Controller) -> Option<Action>) -> Result<(), Complaint> {
        match stage(&mut self.controller) {
            Some(Action::Load(load)) => {
                self.loads.push(load);
                self.loads.sort_unstable();
                Ok(())
            }
            Some(Action::ReleaseLock(_)) => {
                self.readers = self.readers.saturating_sub(1);
                Ok(())
            }
            Some(Action::Reply(reply)) => self.reply(&reply),
            None => Ok(()),
        }
    }

    /// Loads that can return: a block that waits for its store is nobody's.
    pub fn returning(&self) -> Vec<usize> {
        let free = |nth: &usize| self.stored_to != Some(self.loads[*nth].nth);
        (0..self.loads.len()).filter(free).collect()
    }

    /// A load returns.
    pub fn arrive(&mut self, nth: usize) -> Result<(), Complaint> {
        let load = self.loads.remove(nth);
        self.shared[usize::from(load.nth)] = true;
        if load.access == Access::TakeLock && self.version & 1 == 0 {
            self.readers += 1;
        }
        let id = self.controller.id_of(load.entry);
        let first = load.nth == 0 && load.access != Access::Compare;
        if let Some(sabre) = self.sabre(id).filter(|_| first) {
            sabre.known = true;
        }
        match self.controller.returned(&load, self.version) {
            Some(reply) => self.reply(&reply),
            None => Ok(()),
        }
    }

    fn sabre(&mut self, id: Option<SabreId>) -> Option<&mut Sabre> {
        let sabres = self
            .sources
            .iter_mut()
            .filter_map(|source| source.sabre.as_mut());
        let mut sabres = sabres.filter(|sabre| Some(sabre.transfer.id()) == id);
        sabres.next()
    }

    fn reply(&mut self, reply: &Reply) -> Result<(), Complaint> {
        let (ended, blocks) = (self.ended(), self.blocks.clone());
        let (Reply::Block { id, .. } | Reply::Verdict { id, .. }) = *reply;
        let Some(sabre) = self.sabre(Some(id)) else {
            return complain(ONE_REPLY, format!("{reply:?}, of none that is under way"));
        };
        if let Reply::Block { nth: Some(nth), .. } = *reply {
            let nth = usize::from(nth);
            sabre.blocks[nth] = Some(blocks[nth]);
        }
        let Ok(completed) = sabre.transfer.reply(reply) else {
            return complain(ONE_REPLY, format!("{reply:?}, and that was not asked for"));
        };
        let Some(completed) = completed else {
            return Ok(());
        };
        let (read, since, disturbed) = (sabre.blocks.clone(), sabre.since, sabre.disturbed);
        self.sources[usize::from(id.node)].sabre = None;
        match (completed, read[0]) {
            (Err(_), _) if disturbed => Ok(()),
            (Err(why), _) => complain(NOT_ALONE, format!("{why:?}")),
            (Ok(()), first) if first.is_none() || read.iter().any(|block| *block != first) => {
                complain(ONE_WRITE, format!("blocks of writes {read:?}"))
            }
            (Ok(()), Some(write)) if (since..=ended).contains(&write) => Ok(()),
            (Ok(()), write) => {
                let what = format!("it is of write {write:?}, not of {since} to {ended}");
                complain(CURRENT, what)
            }
        }
    }

    /// Writers whose next store can go on.
    pub fn storing(&self, at: &Setting) -> Vec<usize> {
        let locks = at.scenario.design.mode == Mode::ReaderLock;
        let free = self.version & 1 == 0 && !(locks && self.readers > 0);
        let can = |writer: &Writer| {
            let enters = writer.stored > 0 || free;
            let waits = self.stored_to.is_some() && !writer.told;
            writer.left > 0 && enters && !waits
        };
        let all = 0..self.writers.len();
        all.filter(|nth| can(&self.writers[*nth])).collect()
    }

    /// A writer's next store: the controller is told, if it has the block; then it is visible.
    pub fn store(&mut self, nth: usize, at: &Setting) {
        let stored = self.writers[nth].stored;
        let block = at.block_of(stored);
        for source in &mut self.sources {
            if let Some(sabre) = &mut source.sabre {
                sabre.disturbed = true;
            }
        }
        if std::mem::take(&mut self.shared[usize::from(block)]) {
            self.controller.invalidated(at.address(block));
            self.writers[nth].told = true;
            self.stored_to = Some(block);
            return;
        }
        let last = at.scenario.blocks + 1;
        match at.order(stored) {
            first if first == 0 || first == last => self.version += 1,
            // When the version is even already, the write is that which it says.
            _ => self.blocks[usize::from(block)] = self.version.div_ceil(2) as u8,
        }
        self.stored_to = None;
        let writer = &mut self.writers[nth];
        (writer.told, writer.stored) = (false, stored + 1);
        if stored == last {
            (writer.left, writer.stored) = (writer.left - 1, 0);
        }
    }

    /// Blocks that can be evicted.
    pub fn evictable(&self) -> Vec<u16> {
        let all = 0..self.shared.len() as u16;
        let can = |block: &u16| self.evictions > 0 && self.shared[usize::from(*block)];
        all.filter(can).collect()
    }

    /// One is.
    pub fn evict(&mut self, block: u16, at: &Setting) {
        self.evictions -= 1;
        self.shared[usize::from(block)] = false;
        for source in &mut self.sources {
            if let Some(sabre) = &mut source.sabre {
                sabre.disturbed |= !sabre.known && block > 0;
            }
        }
        self.controller.invalidated(at.address(block));
    }
}

impl Unpacked for World {
    fn fingerprint(&self) -> u128 {
        let mut print = Print::default();
        self.hash(&mut print);
        print.whole()
    }
}
