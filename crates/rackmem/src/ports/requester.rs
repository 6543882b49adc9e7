//! A node's requesters: each drives one coherence event at a time through the fabric.

use crate::error::{Error, Result};
use crate::membership::standing::Standing;
use crate::ports::slots::{Held, Slots};
use rackmem_fabric::{Body, Net, Port, Receiver};
use rackmem_proto::flowcc::{
    Accept, Event, Grant, Interrupted, Open, Requester, RequesterConfig, Step,
};
use rackmem_proto::wire::{
    Contract, Header, Kind, MAX_REQUESTERS, NodeId, Reason, RequesterId, Tag,
};
use rackmem_proto::{Data, Output, Outputs};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One requester, its port and its figures.
pub(crate) struct Slot {
    engine: Requester,
    port: Box<dyn Port>,
    began: Instant,
    standing: Arc<Standing>,
    cut: Arc<Mutex<Cut>>,
    resumed: u32,
    /// The epoch that `cut` knows it to have begun an event in.
    told_epoch: u32,
    pub sent: [u64; 256],
}

/// What the ends of epochs have cut off, for those who make the directory anew.
#[derive(Default)]
pub(crate) struct Cut {
    interrupted: Vec<Interrupted>,
    /// By slot, the epoch in which it began its last event. Once that is the new one, nothing of the old is left with
    /// its thread, even if the thread has had the slot ever since and waits.
    began: BTreeMap<u16, u32>,
    /// Bare locks that applications hold, by slot: their threads do not come by to see that an epoch has ended.
    held: BTreeMap<u16, Open>,
}

/// Where the bytes of an event come from and go to.
#[derive(Clone, Copy)]
pub(crate) enum Bytes<'a> {
    /// A reserved cache entry.
    Block(&'a [AtomicU64]),
    /// A question; the answer's first word comes back in the cell.
    Operand(&'a [u8], &'a Cell<u64>),
    /// None.
    Nothing,
}

/// Why an event did not happen.
pub(crate) enum Failure {
    /// Refused, for this reason; trying again may help.
    Refused(Reason),
    /// Nobody answers.
    Lost,
    /// The rack goes on without this process: nobody will answer.
    Over,
}

/// Takes what comes for the engine, puts data where it belongs, keeps what is to be sent next.
struct Inbox<'a> {
    engine: &'a mut Requester,
    now: u64,
    bytes: Bytes<'a>,
    next: Option<Output>,
}

impl Receiver for Inbox<'_> {
    fn receive(&mut self, header: &Header, body: Body<'_>) {
        let (accept, outputs) = self.engine.handle(self.now, header, body.len() as u32);
        if accept == Accept::Store {
            match self.bytes {
                Bytes::Block(block) => body.copy_to(block, header.offset as usize),
                Bytes::Operand(_, result) => result.set(body.operands()[0]),
                Bytes::Nothing => {}
            }
        }
        if let Some(output) = outputs.iter().next() {
            self.next = Some(*output);
        }
    }
}

impl Slot {
    fn now(&self) -> u64 {
        if self.port.lossy() {
            self.began.elapsed().as_nanos() as u64
        } else {
            0
        }
    }

    fn transmit(&mut self, output: Output, bytes: Bytes<'_>) {
        let now = self.now();
        let mut next = Some(output);
        while let Some(output) = next.take() {
            self.sent[output.header.kind as usize] += 1;
            let Slot { engine, port, .. } = self;
            let body = match (output.data, bytes) {
                (Data::Cache, Bytes::Block(block)) => Body::Block(block),
                (Data::Operand, Bytes::Operand(operand, _)) => Body::Bytes(operand),
                _ => Body::None,
            };
            let mut inbox = Inbox {
                engine,
                now,
                bytes,
                next: None,
            };
            for (to, header) in output.copies() {
                port.send(to, &header, body, &mut inbox);
            }
            next = inbox.next;
        }
    }

    fn transmit_all(&mut self, outputs: Outputs, bytes: Bytes<'_>) {
        for output in outputs.iter() {
            self.transmit(*output, bytes);
        }
    }

    /// Follows the rack into a new epoch, and asks again at once when the rack goes on.
    fn catch_up(&mut self) {
        let epoch = self.standing.epoch();
        if self.engine.epoch() != epoch {
            let interrupted = self.engine.enter(epoch, self.standing.switch());
            locked(&self.cut).interrupted.push(interrupted);
        }
        let resumed = self.standing.resumed();
        if self.resumed != resumed {
            self.resumed = resumed;
            self.engine.poke();
        }
    }

    /// The application holds a bare lock by the current event, for as long as it likes.
    pub fn note_held(&mut self) {
        if let Some(open) = self.engine.held_lock() {
            locked(&self.cut).held.insert(open.slot, open);
        }
    }

    /// Ends a bare lock.
    pub fn release_held(&mut self) {
        let slot = self.engine.id().slot;
        let told = locked(&self.cut).held.remove(&slot);
        let epoch = self.standing.epoch();
        if told.is_some() && self.engine.epoch() != epoch {
            // It was told by what is in `held`, and must not be told again.
            self.engine.enter(epoch, self.standing.switch());
        }
        self.unlock(true);
    }

    /// Where to put packets that are no event's.
    pub fn net(&self) -> &dyn Net {
        &*self.port
    }

    /// Waits for one packet or the next timeout.
    fn pump(&mut self, bytes: Bytes<'_>) {
        self.pump_for(Duration::MAX, bytes);
    }

    /// The same, but no longer than this.
    fn pump_for(&mut self, at_most: Duration, bytes: Bytes<'_>) {
        self.catch_up();
        if self.engine.step() != Step::Waiting && self.engine.can_unlock() {
            return;
        }
        let deadline = self.engine.poll_timeout().unwrap_or(u64::MAX);
        let now = self.now();
        if now < deadline {
            let mut inbox = Inbox {
                engine: &mut self.engine,
                now,
                bytes,
                next: None,
            };
            let time = Duration::from_nanos(deadline - now);
            let time = time.min(at_most).min(LOOK_UP);
            self.port.wait(time, &mut inbox);
            if let Some(output) = inbox.next {
                self.transmit(output, bytes);
            }
        }
        let now = self.now();
        if now >= deadline {
            let outputs = self.engine.handle_timeout(now);
            self.transmit_all(outputs, bytes);
        }
    }

    fn settle(&mut self, bytes: Bytes<'_>) -> std::result::Result<Grant, Failure> {
        loop {
            match self.engine.step() {
                Step::Held(grant) => return Ok(grant),
                Step::Refused(reason) => {
                    // Granted, but its provider had nothing: the entry's lock must not stay behind. A refusal
                    // by the owner leaves nothing to unlock, and so nothing to wait for.
                    if self.engine.holds() {
                        self.unlock(true);
                    }
                    return Err(Failure::Refused(reason));
                }
                Step::Lost => return Err(Failure::Lost),
                Step::Waiting if self.standing.is_fenced() => return Err(Failure::Over),
                Step::Waiting if self.port.lossy() => self.pump(bytes),
                // Inline, an answer comes while sending or never.
                Step::Waiting => return Err(Failure::Lost),
            }
        }
    }

    /// Runs an event until it is held. Unless it fails, [`Slot::unlock`] must follow.
    pub fn acquire(
        &mut self,
        kind: Kind,
        tag: Tag,
        offset: u32,
        bytes: Bytes<'_>,
    ) -> std::result::Result<Grant, Failure> {
        let event = Event {
            kind,
            tag,
            offset,
            reply_port: self.port.reply_port(),
        };
        if self.standing.is_fenced() {
            // What was under way has been left as it was: this engine begins nothing any more.
            return Err(Failure::Over);
        }
        self.catch_up();
        if self.told_epoch != self.engine.epoch() {
            self.told_epoch = self.engine.epoch();
            let mut cut = locked(&self.cut);
            cut.began.insert(self.engine.id().slot, self.told_epoch);
        }
        let output = self.engine.begin(self.now(), event);
        self.transmit(output, bytes);
        self.settle(bytes)
    }

    /// In a held EVICT-MODIFIED, sends the block home.
    pub fn write_back(&mut self, block: &[AtomicU64]) -> std::result::Result<(), Failure> {
        let bytes = Bytes::Block(block);
        if let Some(output) = self.engine.write_back(self.now()) {
            self.transmit(output, bytes);
        }
        self.settle(bytes).map(|_| ())
    }

    /// Ends a held event. With `keep`, the entry's metadata stays as it is.
    pub fn unlock(&mut self, keep: bool) {
        self.catch_up();
        while !self.engine.can_unlock() && self.port.lossy() {
            if self.standing.is_fenced() {
                return;
            }
            self.pump(Bytes::Nothing);
        }
        if let Some(output) = self.engine.unlock(self.now(), keep) {
            self.transmit(output, Bytes::Nothing);
        }
    }

    /// Takes a packet that came to the node's agent.
    fn deliver(&mut self, header: &Header) {
        self.catch_up();
        let now = self.now();
        let mut inbox = Inbox {
            now,
            engine: &mut self.engine,
            bytes: Bytes::Nothing,
            next: None,
        };
        inbox.receive(header, Body::None);
        if let Some(output) = inbox.next {
            self.transmit(output, Bytes::Nothing);
        }
    }

    /// Sends again what an idle requester has not had acknowledged. Says whether anything is outstanding.
    fn idle(&mut self) -> bool {
        self.catch_up();
        if self.engine.can_unlock() || self.standing.is_fenced() {
            return false;
        }
        // Whoever keeps idle requesters has others to look after, and the thread may want this one back.
        self.pump_for(Duration::ZERO, Bytes::Nothing);
        true
    }

    pub fn retransmissions(&self) -> u64 {
        self.engine.retransmissions()
    }
}

/// How long a thread that waits for packets does not look whether the rack has gone on without them.
const LOOK_UP: Duration = Duration::from_millis(2);

/// How often somebody who waits for a requester's thread looks.
const LOOK: Duration = Duration::from_micros(200);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a port for a requester.
pub(crate) type OpenPort = Box<dyn Fn() -> Result<Box<dyn Port>> + Send + Sync>;

/// All requesters of a node; created as threads need them.
pub(crate) struct Requesters {
    slots: Slots<Slot>,
    open: OpenPort,
    config: RequesterConfig,
    standing: Arc<Standing>,
    cut: Arc<Mutex<Cut>>,
}

thread_local! {
    /// Which slot this thread tries first, in every node: its own, as long as threads are few.
    static HOME_SLOT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Numbers threads in the order in which they first miss.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// A requester that this thread has for itself.
pub(crate) struct Borrowed<'a>(Held<'a, Slot>);

impl std::ops::Deref for Borrowed<'_> {
    type Target = Slot;
    fn deref(&self) -> &Slot {
        self.0.as_ref().expect("`Requesters::borrow` fills it")
    }
}

impl std::ops::DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut Slot {
        self.0.as_mut().expect("`Requesters::borrow` fills it")
    }
}

impl Requesters {
    /// `config.id.slot` is filled in.
    pub fn new(config: RequesterConfig, open: OpenPort, standing: Arc<Standing>) -> Self {
        Requesters {
            slots: Slots::new(MAX_REQUESTERS),
            open,
            config,
            standing,
            cut: Arc::default(),
        }
    }

    /// Takes a packet for one of the requesters that reached the node's agent. False when the requester is in
    /// use: then its thread is listening, and the packet should go where it listens.
    pub fn deliver(&self, header: &Header) -> bool {
        let Some(mut held) = self.slots.try_at(header.requester.slot.into()) else {
            return false;
        };
        held.iter_mut().for_each(|slot| slot.deliver(header));
        true
    }

    /// A requester of this node: the thread's own, or the next free one, or the thread's own once it is free.
    pub fn borrow(&self) -> Result<Borrowed<'_>> {
        let home = HOME_SLOT.with(|slot| match slot.get() {
            Some(slot) => slot,
            None => {
                let fresh = THREADS.fetch_add(1, Relaxed) % MAX_REQUESTERS;
                slot.set(Some(fresh));
                fresh
            }
        });
        let (slot, held) = self.slots.take(home);
        self.fill(slot, held)
    }

    fn fill<'a>(&self, slot: usize, mut held: Held<'a, Slot>) -> Result<Borrowed<'a>> {
        if held.is_none() {
            let id = RequesterId {
                slot: slot as u16,
                ..self.config.id
            };
            let engine = Requester::new(RequesterConfig {
                id,
                epoch: self.standing.epoch(),
                switch: self.standing.switch(),
                ..self.config
            });
            *held = Some(Slot {
                engine,
                port: (self.open)()?,
                began: Instant::now(),
                resumed: self.standing.resumed(),
                told_epoch: 0,
                standing: self.standing.clone(),
                cut: self.cut.clone(),
                sent: [0; 256],
            });
        }
        Ok(Borrowed(held))
    }

    /// Makes every requester follow the rack into its new epoch, and tells what that has cut off. Returns when all have.
    pub fn cut_off(&self) -> Vec<Interrupted> {
        let epoch = self.standing.epoch();
        let mut bare = Vec::new();
        let is_past = |number: usize| {
            let (cut, number) = (locked(&self.cut), number as u16);
            let held = cut.held.get(&number);
            bare.extend(held);
            held.is_some() || cut.began.get(&number) == Some(&epoch)
        };
        // A thread that has a slot waits for packets, and looks up every few milliseconds.
        let pause = || std::thread::sleep(LOOK);
        self.slots.visit(Slot::catch_up, is_past, pause);
        let mut all = std::mem::take(&mut locked(&self.cut).interrupted);
        all.extend(bare.into_iter().map(|open| Interrupted {
            open: [Some(open), None, None],
            ..Interrupted::default()
        }));
        all
    }

    /// Waits until nothing is outstanding.
    pub fn drain(&self) {
        while self.tick() {
            std::thread::sleep(LOOK);
        }
    }

    /// Whose they are.
    pub fn node(&self) -> NodeId {
        self.config.id.node
    }

    /// A port of the fabric, for whoever speaks for the node and is no requester.
    pub fn open_port(&self) -> Result<Box<dyn Port>> {
        (self.open)()
    }

    /// Looks after requesters that no thread is using. Says whether any of them waits for something.
    pub fn tick(&self) -> bool {
        let mut busy = false;
        self.slots.each_idle(|slot| busy |= slot.idle());
        busy
    }

    /// Visits every requester that exists.
    pub fn each(&self, f: impl FnMut(&Slot)) {
        self.slots.each(f);
    }
}

/// Turns a failure that no retry can mend into an error.
pub(crate) fn fatal(failure: Failure, tag: Tag) -> Error {
    match failure {
        Failure::Lost => Error::Timeout { node: tag.home() },
        Failure::Over => Error::Fenced,
        Failure::Refused(Reason::NoMemory) => Error::BadAddress { addr: tag.0 },
        Failure::Refused(Reason::Full) => Error::OutOfMemory { node: tag.home() },
        Failure::Refused(Reason::Locked) => Error::Busy { addr: tag.0 },
        Failure::Refused(Reason::Lost) => Error::Lost { addr: tag.0 },
        Failure::Refused(Reason::Fenced) => Error::Interrupted { addr: tag.0 },
        Failure::Refused(Reason::Refused) if !tag.is_under(Contract::Coherent) => {
            Error::wrong_contract(tag, Contract::Coherent)
        }
        Failure::Refused(reason) => Error::Protocol(reason),
    }
}
