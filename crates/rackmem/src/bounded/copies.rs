//! A node's copies of a region, how old they may be, and the thread that asks what was modified.

use crate::bytes::value::Value;
use crate::error::{AccessError, RackError};
use crate::host::bounded::BoundedCounters;
use crate::node::Node;
use rackmem_fabric::Whole;
use rackmem_proto::bi::cached::{BiAsk, BiReply, Hearing, HeldItem};
use rackmem_proto::bi::{BiClock, Bound, Tick};
use rackmem_proto::wire::{Reason, Tag};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::{Duration, Instant};

/// Ticks without a section after which nobody asks: the next section does.
const IDLE: u64 = 50;
/// How long the thread rests where nobody reads.
const REST: Duration = Duration::from_millis(20);

/// See the module.
pub(super) struct Copies<T> {
    pub node: Node,
    pub region: Tag,
    /// Bytes of an item at its home.
    pub line: usize,
    pub bound: Bound,
    pub period: Duration,
    clock: BiClock,
    origin: Instant,
    items: Box<[RwLock<HeldItem<T>>]>,
    heard: AtomicU64,
    /// What was acknowledged before this tick is not stale here.
    quiesced: AtomicU64,
    /// When a section began last.
    used: AtomicU64,
    asking: Mutex<()>,
}

impl<T> std::fmt::Debug for Copies<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copies")
            .field("addr", &format_args!("{:#018x}", self.region.0))
            .field("items", &self.items.len())
            .field("heard", &self.heard)
            .field("quiesced", &self.quiesced)
            .finish()
    }
}

impl<T: Value> Copies<T> {
    pub fn new(
        (node, region): (&Node, Tag),
        (line, count): (usize, usize),
        (bound, period): (Bound, Duration),
    ) -> Result<Arc<Self>, AccessError> {
        let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let copies = Copies {
            node: node.clone(),
            region,
            line,
            bound,
            period,
            clock: BiClock::new(nanos),
            origin: Instant::now(),
            items: (0..count).map(|_| RwLock::default()).collect(),
            heard: AtomicU64::new(0),
            quiesced: AtomicU64::new(0),
            used: AtomicU64::new(0),
            asking: Mutex::new(()),
        };
        copies.quiesce(|_| false)?;
        let copies = Arc::new(copies);
        let weak = Arc::downgrade(&copies);
        let name = "rackmem-bounded".to_owned();
        let spawned = std::thread::Builder::new().name(name);
        // Without the thread each section asks for itself.
        let _ = spawned.spawn(move || ask_at_ticks(&weak, period));
        Ok(copies)
    }

    pub fn counters(&self) -> &BoundedCounters {
        &self.node.inner.access.agents.bounded.counters
    }

    pub fn now(&self) -> Tick {
        let nanos = self.origin.elapsed().as_nanos();
        self.clock.tick(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    pub fn quiesced(&self) -> Tick {
        Tick(self.quiesced.load(SeqCst))
    }

    /// A section is to begin.
    pub fn use_now(&self, now: Tick) {
        self.used.store(now.0, Relaxed);
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    fn item(&self, index: usize) -> Result<&RwLock<HeldItem<T>>, AccessError> {
        let of = self.items.len();
        let (at, len) = (index, 1);
        let item = self.items.get(index);
        item.ok_or(AccessError::OutOfBounds { at, len, of })
    }

    /// An item, from the copy if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Result<T, AccessError> {
        let copy = self.item(index)?.read().whole().get().copied();
        match copy {
            Some(value) => {
                self.counters().hits.fetch_add(1, Relaxed);
                Ok(value)
            }
            None => self.fetch(index),
        }
    }

    /// An item as its home has it.
    #[cold]
    pub fn fetch(&self, index: usize) -> Result<T, AccessError> {
        let item = self.item(index)?;
        self.counters().misses.fetch_add(1, Relaxed);
        let ask = BiAsk::Read(self.region, index as u32);
        let BiReply::Item(number, bytes) = self.ask(ask)? else {
            return Err(self.no_answer());
        };
        let value = bytes.get(..size_of::<T>());
        let value = value.and_then(|bytes| T::read_from_bytes(bytes).ok());
        let value = value.ok_or(AccessError::OtherSize {
            addr: self.region.0,
            len: size_of::<T>(),
            is: bytes.len(),
        })?;
        self.put(item, value, number);
        Ok(value)
    }

    /// An item is this from now on.
    pub fn write(&self, index: usize, value: &T) -> Result<(), AccessError> {
        let item = self.item(index)?;
        let mut bytes = value.as_bytes().to_vec();
        bytes.resize(self.line, 0);
        self.counters().writes.fetch_add(1, Relaxed);
        let ask = BiAsk::Write(self.region, index as u32, bytes);
        let BiReply::Written(number) = self.ask(ask)? else {
            return Err(self.no_answer());
        };
        self.put(item, *value, number);
        Ok(())
    }

    /// How far this node has heard is read while the item's place cannot change: who hears says so
    /// before it looks at places.
    fn put(&self, item: &RwLock<HeldItem<T>>, value: T, number: u64) {
        let mut item = item.write().whole();
        item.put(value, number, self.heard.load(SeqCst), None);
    }

    fn ask(&self, ask: BiAsk) -> Result<BiReply, AccessError> {
        self.node.inner.access.ask_bounded(ask)
    }

    fn no_answer(&self) -> AccessError {
        let reason = Reason::Refused;
        AccessError::Rack(RackError::Refused { reason })
    }

    /// Asks what was modified, and drops that; not if another thread has done so meanwhile, and
    /// that is `enough`.
    pub fn quiesce(&self, enough: impl FnOnce(Tick) -> bool) -> Result<(), AccessError> {
        let _one = self.asking.lock().whole();
        if enough(self.quiesced()) {
            return Ok(());
        }
        let counters = self.counters();
        let upto = self.heard.load(SeqCst);
        let question = Hearing { upto }.ask(self.now());
        let BiReply::News(news) = self.ask(BiAsk::News(self.region, question.from))? else {
            return Err(self.no_answer());
        };
        let shape = (news.shape.0 as usize, news.shape.1 as usize);
        if shape != (self.line, self.items.len()) {
            return Err(AccessError::OtherSize {
                addr: self.region.0,
                len: self.line * self.items.len(),
                is: shape.0 * shape.1,
            });
        }
        let answered = question.answered(news.upto, self.now(), None);
        let (heard, quiesced) = answered.ok_or_else(|| self.no_answer())?;
        counters.news.fetch_add(1, Relaxed);
        self.heard.store(heard.upto, SeqCst);
        let drop = |item: &RwLock<HeldItem<T>>| u64::from(item.write().whole().hear(news.upto));
        let dropped: u64 = match &news.items {
            Some(items) => {
                let named = items
                    .iter()
                    .filter_map(|item| self.items.get(*item as usize));
                named.map(drop).sum()
            }
            None => {
                counters.everything.fetch_add(1, Relaxed);
                self.items.iter().map(drop).sum()
            }
        };
        counters.dropped.fetch_add(dropped, Relaxed);
        self.quiesced.store(quiesced.0, SeqCst);
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.now().since(Tick(self.used.load(Relaxed))) > IDLE
    }
}

/// Asks once a tick while sections begin, until the last handle is gone or the rack is closed. What
/// it cannot learn, the next section asks for, and says why not.
fn ask_at_ticks<T: Value>(copies: &Weak<Copies<T>>, period: Duration) {
    let mut rest = period;
    loop {
        std::thread::sleep(rest);
        let Some(copies) = copies.upgrade() else {
            return;
        };
        if copies.is_idle() {
            rest = period.max(REST);
            continue;
        }
        rest = period;
        let now = copies.now();
        let heard = copies.quiesce(|quiesced| quiesced >= now);
        if let Err(AccessError::Rack(RackError::Closed | RackError::Fenced)) = heard {
            return;
        }
    }
}
