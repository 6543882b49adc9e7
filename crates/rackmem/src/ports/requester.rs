//! A node's requesters: each drives one coherence event at a time through the fabric.

use crate::error::{AccessError, RackError};
use crate::membership::current_view::CurrentView;
use crate::ports::slots::{Held, Slots};
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Net, Port, Receiver};
use rackmem_proto::engine::{Access, Defect, Do, Purpose, Then};
use rackmem_proto::flowcc::{Accept, Grant, Interrupted, Open, Requester, RequesterConfig, Step};
use rackmem_proto::wire::{
    Contract, Header, MAX_BODY, MAX_REQUESTERS, NodeId, Reason, RequesterId, Tag,
};
use rackmem_proto::{Data, Output, Outputs};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One requester, its port and its figures.
pub(crate) struct Slot {
    engine: Requester,
    port: Box<dyn Port>,
    /// Whether packets can be lost on the way to and from it.
    lossy: bool,
    began: Instant,
    standing: Arc<CurrentView>,
    cut: Arc<Mutex<Cut>>,
    resumed: u32,
    /// The epoch that `cut` knows it to have begun an event in.
    told_epoch: u32,
    pub sent: [u64; 256],
    /// The event by which the application holds a bare lock.
    held: Option<Access>,
}

/// What the ends of epochs have cut off, for those who make the directory anew.
#[derive(Default)]
pub(crate) struct Cut {
    interrupted: Vec<Interrupted>,
    /// By slot, the epoch in which it began its last event. Once that is the new one,
    /// nothing of the old is left with its thread, even if the thread has had the slot ever since
    /// and waits.
    began: BTreeMap<u16, u32>,
    /// Bare locks that applications hold, by slot: their threads do not come by to see that an
    /// epoch has ended.
    held: BTreeMap<u16, Open>,
}

/// Where the bytes of an event come from and go to.
#[derive(Clone, Copy)]
pub(crate) enum Bytes<'a> {
    /// A reserved cache entry, to be filled.
    Block(&'a [AtomicU64]),
    /// A cache entry that goes home, or stays as it is: nothing that comes is put there.
    Copy(&'a [AtomicU64]),
    /// Whole blocks come in one packet.
    Sink(&'a dyn Sink),
    /// A question; the answer's first word comes back in the cell.
    Operand(&'a [u8], &'a Cell<u64>),
    /// A question, and where its answer goes.
    Question(&'a [u8], &'a dyn Sink),
    /// None.
    Nothing,
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
        let (accept, output) = self.engine.handle(self.now, header, body.len() as u32);
        if accept == Accept::Store {
            match self.bytes {
                Bytes::Block(block) => body.copy_to(block, header.offset as usize),
                Bytes::Sink(sink) | Bytes::Question(_, sink) => sink.take(body),
                Bytes::Operand(_, result) => result.set(body.operands()[0]),
                Bytes::Copy(_) | Bytes::Nothing => {}
            }
        }
        if output.is_some() {
            self.next = output;
        }
    }
}

/// A requester whose thread waits for something else than an event.
struct Ears<'a, F> {
    inbox: Inbox<'a>,
    take: F,
}

impl<F: FnMut(&Header, Body<'_>)> Receiver for Ears<'_, F> {
    fn receive(&mut self, header: &Header, body: Body<'_>) {
        match header.kind.is_of_no_event() {
            true => (self.take)(header, body),
            false => self.inbox.receive(header, body),
        }
    }
}

/// Takes what has come for a requester.
pub(crate) trait Sink {
    /// The body of the answer.
    fn take(&self, body: Body<'_>);
}

/// The time of a requester. Where nothing is lost, nothing is sent again.
#[inline]
fn clock(lossy: bool, began: &Instant) -> u64 {
    match lossy {
        true => began.elapsed().as_nanos() as u64,
        false => 0,
    }
}

#[cfg(test)]
std::thread_local! {
    /// A rule that this thread's events break.
    pub(crate) static DEFECT: Cell<Option<Defect>> = const { Cell::new(None) };
}

#[inline]
fn defect() -> Option<Defect> {
    #[cfg(test)]
    return DEFECT.get();
    #[cfg(not(test))]
    None
}

impl Slot {
    fn now(&self) -> u64 {
        clock(self.lossy, &self.began)
    }

    fn transmit(&mut self, output: Output, bytes: Bytes<'_>) {
        let now = self.now();
        let mut next = Some(output);
        while let Some(output) = next.take() {
            self.sent[output.header.kind as usize] += 1;
            let Slot {
                engine,
                port,
                standing,
                ..
            } = self;
            let body = match (output.data, bytes) {
                (Data::Cache, Bytes::Copy(block)) => Body::Block(block),
                (Data::Operand, Bytes::Operand(bytes, _) | Bytes::Question(bytes, _)) => {
                    Body::Bytes(bytes)
                }
                _ => Body::None,
            };
            let mut inbox = Inbox {
                engine,
                now,
                bytes,
                next: None,
            };
            for (to, header) in output.copies(|home| standing.host(home)) {
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
            self.cut.lock().whole().interrupted.push(interrupted);
        }
        let resumed = self.standing.resumed();
        if self.resumed != resumed {
            self.resumed = resumed;
            self.engine.poke();
        }
    }

    /// Goes into the rack's epoch with nothing of the last one left: a thread that has several
    /// requesters waits for one while the others rest, and a rebuild waits for those that are
    /// behind.
    pub fn follow(&mut self) {
        self.catch_up();
        if self.told_epoch != self.engine.epoch() {
            self.told_epoch = self.engine.epoch();
            let mut cut = self.cut.lock().whole();
            cut.began.insert(self.engine.id().slot, self.told_epoch);
        }
    }

    /// The epoch that it has followed the rack into.
    pub fn epoch(&self) -> u32 {
        self.engine.epoch()
    }

    /// Begins an event; [`Slot::next`] says what is to be done about it. `None`:
    /// the rack goes on without this process, or is closed here.
    #[inline]
    pub fn begin(
        &mut self,
        purpose: Purpose,
        tag: Tag,
        offset: u32,
        bytes: Bytes<'_>,
    ) -> Option<Access> {
        if self.standing.is_over() {
            // What was under way has been left as it was: this engine begins nothing any more.
            return None;
        }
        self.follow();
        if purpose != Purpose::Probe {
            self.standing.uses(tag.home());
        }
        let (now, what) = (self.now(), (tag, offset, self.port.reply_port()));
        // Looked at in the epoch that the event is of. A copy whose home has died in it is still in
        // the cache until this node has begun to make its part of the directory anew.
        if self.standing.is_lost(tag.home()) {
            return Some(Access::begin_unheard(purpose, &mut self.engine, now, what));
        }
        let (access, output) = Access::begin(purpose, &mut self.engine, now, what);
        self.transmit(output, bytes);
        Some(access)
    }

    /// What is to be done about an event, once all is here and sent that is needed for it:
    /// [`Do::Use`], [`Do::Set`], [`Do::Held`] or [`Do::Over`].
    #[inline]
    pub fn next(&mut self, access: &mut Access, bytes: Bytes<'_>) -> Do {
        loop {
            if let Some(todo) = self.next_within(Duration::MAX, access, bytes) {
                return todo;
            }
        }
    }

    /// The same, if it is so once one packet or timeout has been waited for, and no longer than
    /// this.
    #[inline]
    pub fn next_within(
        &mut self,
        at_most: Duration,
        access: &mut Access,
        bytes: Bytes<'_>,
    ) -> Option<Do> {
        let mut waited = false;
        loop {
            // While it waits, `pump` does.
            if access.is_ending() {
                self.catch_up();
            }
            let (lossy, began) = (self.lossy, &self.began);
            let now = || clock(lossy, began);
            match access.next(&mut self.engine, now, defect()) {
                Do::Send(output) => self.transmit(output, bytes),
                Do::Wait if lossy && !self.is_hopeless(access) => {
                    if std::mem::replace(&mut waited, true) {
                        return None;
                    }
                    self.pump_for(at_most, bytes);
                }
                // Inline, an answer comes while sending or never.
                Do::Wait => match access.abandon(&mut self.engine, now()) {
                    Do::Send(output) => self.transmit(output, bytes),
                    todo => return Some(todo),
                },
                todo => return Some(todo),
            }
        }
    }

    /// Nobody answers whom the rack has gone on without, or who has closed it; and who only looks
    /// whether something has come need not know that of a home that has gone.
    fn is_hopeless(&self, access: &Access) -> bool {
        let probes = access.purpose() == Purpose::Probe;
        self.standing.is_over() || probes && self.standing.has_gone(access.tag().home())
    }

    /// Runs an event that needs no entry of the cache until it is over,
    /// or the application has its lock:
    /// [`Slot::release_held`] must follow then.
    pub fn ask(&mut self, purpose: Purpose, tag: Tag, offset: u32, bytes: Bytes<'_>) -> Then {
        let Some(mut access) = self.begin(purpose, tag, offset, bytes) else {
            return Then::Lost;
        };
        loop {
            match self.next(&mut access, bytes) {
                Do::Over(then) => return then,
                Do::Held => {
                    if let Some(open) = self.engine.held_lock() {
                        self.cut.lock().whole().held.insert(open.slot, open);
                    }
                    self.held = Some(access);
                    return Then::Done;
                }
                _ => {}
            }
        }
    }

    /// What the last event was granted, if it needed no lock.
    pub fn granted(&self) -> Option<Grant> {
        match self.engine.step() {
            Step::Held(grant) => Some(grant),
            _ => None,
        }
    }

    /// The application lets go of the lock that it has held for as long as it liked.
    pub fn release_held(&mut self) {
        let slot = self.engine.id().slot;
        let told = self.cut.lock().whole().held.remove(&slot);
        let epoch = self.standing.epoch();
        if told.is_some() && self.engine.epoch() != epoch {
            // It was told by what is in `held`, and must not be told again.
            self.engine.enter(epoch, self.standing.switch());
        }
        if let Some(mut access) = self.held.take() {
            access.let_go();
            while !matches!(self.next(&mut access, Bytes::Nothing), Do::Over(_)) {}
        }
    }

    /// Bytes of whole blocks of so many that one packet carries here.
    pub fn fetches(&self, block: usize) -> usize {
        self.port.segment(MAX_BODY) / block * block
    }

    /// Whether one thread gains by having several of these at work.
    pub fn overlaps(&self) -> bool {
        self.lossy
    }

    /// Which of its node's requesters it is.
    pub fn number(&self) -> u8 {
        self.engine.id().slot as u8
    }

    /// Where it listens; zero where nothing is needed.
    pub fn reply_port(&self) -> u16 {
        self.port.reply_port()
    }

    /// Waits for one packet, and gives it away if it is no event's.
    pub fn listen(&mut self, at_most: Duration, mut take: impl FnMut(&Header, Body<'_>)) {
        let now = self.now();
        let inbox = Inbox {
            engine: &mut self.engine,
            now,
            bytes: Bytes::Nothing,
            next: None,
        };
        let mut ears = Ears {
            inbox,
            take: &mut take,
        };
        self.port.wait(at_most, &mut ears);
        if let Some(output) = ears.inbox.next {
            self.transmit(output, Bytes::Nothing);
        }
        // What the last event has left to be acknowledged.
        let now = self.now();
        if self.engine.poll_timeout().is_some_and(|due| now >= due) {
            let outputs = self.engine.handle_timeout(now);
            self.transmit_all(outputs, Bytes::Nothing);
        }
    }

    /// Where to put packets that are no event's.
    pub fn net(&self) -> &dyn Net {
        &*self.port
    }

    /// Waits for one packet or the next timeout, but no longer than this.
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

    /// Sends again what an idle requester has not had acknowledged.
    /// Says whether anything is outstanding.
    fn idle(&mut self) -> bool {
        self.catch_up();
        if self.engine.can_unlock() || self.standing.is_over() {
            return false;
        }
        // Whoever keeps idle requesters has others to look after, and the thread may want this one
        // back.
        self.pump_for(Duration::ZERO, Bytes::Nothing);
        true
    }

    pub fn retransmissions(&self) -> u64 {
        self.engine.retransmissions()
    }
}

/// How long a thread that waits for packets does not look whether the rack has gone on without
/// them.
const LOOK_UP: Duration = Duration::from_millis(2);

/// How often somebody who waits for a requester's thread looks.
const LOOK: Duration = Duration::from_micros(200);

/// Makes a port for a requester.
pub(crate) type OpenPort = Box<dyn Fn() -> std::io::Result<Box<dyn Port>> + Send + Sync>;

/// All requesters of a node; created as threads need them.
pub(crate) struct Requesters {
    slots: Slots<Slot>,
    open: OpenPort,
    config: RequesterConfig,
    standing: Arc<CurrentView>,
    cut: Arc<Mutex<Cut>>,
    /// Those that threads have beside their own.
    lent: AtomicUsize,
    /// By slot, what each had sent when it was looked at last.
    seen: Mutex<Vec<Sent>>,
}

thread_local! {
    /// Which slot this thread tries first, in every node: its own, as long as threads are few.
    static HOME_SLOT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Numbers threads in the order in which they first miss.
static THREADS: AtomicUsize = AtomicUsize::new(0);

fn home_slot() -> usize {
    HOME_SLOT.with(|slot| match slot.get() {
        Some(slot) => slot,
        None => {
            let fresh = THREADS.fetch_add(1, Relaxed) % MAX_REQUESTERS;
            slot.set(Some(fresh));
            fresh
        }
    })
}

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

/// Requesters that threads of a node have beside their own at most, all together.
const EXTRA: usize = MAX_REQUESTERS / 4;

/// How long figures wait, in all, for threads that are between two packets.
const FOR_FIGURES: Duration = Duration::from_millis(20);
const BETWEEN: Duration = Duration::from_micros(50);

/// One of [`EXTRA`].
struct Lent<'a>(&'a AtomicUsize);

impl<'a> Lent<'a> {
    fn one_of(lent: &'a AtomicUsize) -> Option<Self> {
        let more = |now: usize| (now < EXTRA).then_some(now + 1);
        lent.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Lent(lent))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A requester that a thread has beside its own.
pub(crate) struct Extra<'a> {
    pub slot: Borrowed<'a>,
    _lent: Lent<'a>,
}

impl Requesters {
    /// `config.id.slot` is filled in.
    pub fn new(config: RequesterConfig, open: OpenPort, standing: Arc<CurrentView>) -> Self {
        Requesters {
            slots: Slots::new(MAX_REQUESTERS),
            open,
            config,
            standing,
            cut: Arc::default(),
            lent: AtomicUsize::new(0),
            seen: Mutex::default(),
        }
    }

    /// Takes a packet for one of the requesters that reached the node's agent.
    /// False when the requester is in use: then its thread is listening,
    /// and the packet should go where it listens.
    pub fn deliver(&self, header: &Header) -> bool {
        let Some(mut held) = self.slots.try_at(header.requester.slot.into()) else {
            return false;
        };
        held.iter_mut().for_each(|slot| slot.deliver(header));
        true
    }

    /// A requester of this node: the thread's own, or the next free one,
    /// or the thread's own once it is free.
    pub fn borrow(&self) -> Result<Borrowed<'_>, RackError> {
        let (slot, held) = self.slots.take(home_slot());
        self.fill(slot, held)
    }

    /// The thread's own, or another one, if one is free.
    pub fn borrow_free(&self) -> Option<Result<Borrowed<'_>, RackError>> {
        let home = home_slot();
        let from_home = (0..MAX_REQUESTERS).map(|step| (home + step) % MAX_REQUESTERS);
        let mut free = from_home.filter_map(|at| Some((at, self.slots.try_at(at)?)));
        let (slot, held) = free.next()?;
        Some(self.fill(slot, held))
    }

    /// Another one beside that of [`Requesters::borrow`], if one is free and threads have not taken
    /// too many this way.
    pub fn borrow_more(&self) -> Option<Extra<'_>> {
        let lent = Lent::one_of(&self.lent)?;
        let home = HOME_SLOT.with(Cell::get).unwrap_or(0);
        let from_home = (1..MAX_REQUESTERS).map(|step| (home + step) % MAX_REQUESTERS);
        let mut free = from_home.filter_map(|at| Some((at, self.slots.try_at(at)?)));
        let (slot, held) = free.next()?;
        let slot = self.fill(slot, held).ok()?;
        Some(Extra { slot, _lent: lent })
    }

    fn fill<'a>(&self, slot: usize, mut held: Held<'a, Slot>) -> Result<Borrowed<'a>, RackError> {
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
            let port = (self.open)().map_err(|error| RackError::no_socket(&error))?;
            *held = Some(Slot {
                engine,
                lossy: port.lossy(),
                port,
                began: Instant::now(),
                resumed: self.standing.resumed(),
                told_epoch: 0,
                standing: self.standing.clone(),
                cut: self.cut.clone(),
                sent: [0; 256],
                held: None,
            });
        }
        Ok(Borrowed(held))
    }

    /// Makes every requester follow the rack into its new epoch, and tells what that has cut off.
    /// Returns when all have.
    pub fn cut_off(&self) -> Vec<Interrupted> {
        let epoch = self.standing.epoch();
        let mut bare = Vec::new();
        let is_past = |number: usize| {
            let (cut, number) = (self.cut.lock().whole(), number as u16);
            let held = cut.held.get(&number);
            bare.extend(held);
            held.is_some() || cut.began.get(&number) == Some(&epoch)
        };
        // A thread that has a slot waits for packets, and looks up every few milliseconds.
        let pause = || std::thread::sleep(LOOK);
        self.slots.visit(Slot::catch_up, is_past, pause);
        let mut all = std::mem::take(&mut self.cut.lock().whole().interrupted);
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
    pub fn open_port(&self) -> std::io::Result<Box<dyn Port>> {
        (self.open)()
    }

    /// Looks after requesters that no thread is using. Says whether any of them waits for
    /// something.
    pub fn tick(&self) -> bool {
        let mut busy = false;
        self.slots.each_idle(|slot| busy |= slot.idle());
        busy
    }

    /// What all of them have sent. One whose thread waits for an answer counts as it was when it
    /// was looked at last: an answer that does not come keeps nobody waiting who asks for figures.
    pub fn sent(&self) -> Sent {
        let began = Instant::now();
        let pause = || {
            std::thread::sleep(BETWEEN);
            began.elapsed() < FOR_FIGURES
        };
        let mut seen = self.seen.lock().whole();
        self.slots.look(pause, |at, slot| {
            if seen.len() <= at {
                seen.resize(at + 1, Sent::default());
            }
            seen[at] = Sent {
                kinds: slot.sent,
                again: slot.retransmissions(),
            };
        });
        seen.iter()
            .fold(Sent::default(), |sum, sent| sum.plus(sent))
    }
}

/// Packets sent.
#[derive(Clone)]
pub(crate) struct Sent {
    /// By kind.
    pub kinds: [u64; 256],
    /// More than once.
    pub again: u64,
}

impl Default for Sent {
    fn default() -> Self {
        Sent {
            kinds: [0; 256],
            again: 0,
        }
    }
}

impl Sent {
    fn plus(mut self, more: &Sent) -> Sent {
        let kinds = self.kinds.iter_mut().zip(&more.kinds);
        kinds.for_each(|(sum, n)| *sum += n);
        self.again += more.again;
        self
    }
}

pub(crate) fn refused(reason: Reason, tag: Tag) -> AccessError {
    match reason {
        Reason::NoMemory => AccessError::BadAddress { addr: tag.0 },
        Reason::Locked => AccessError::Busy { addr: tag.0 },
        Reason::Lost => AccessError::Lost { addr: tag.0 },
        Reason::Fenced => AccessError::Interrupted { addr: tag.0 },
        Reason::Refused if !tag.is_under(Contract::Coherent) => {
            AccessError::wrong_contract(tag, Contract::Coherent)
        }
        reason => AccessError::Rack(RackError::Refused { reason }),
    }
}
