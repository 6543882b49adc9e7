//! A node's copies of a region, how old they may be, and how they hear what was modified.

use super::asking::Quiescing;
use super::counter::{self, Deadline, Moment};
use super::places::Places;
use crate::bytes::value::Value;
use crate::error::{AccessError, RackError};
use crate::host::askers::{Asks, REST};
use crate::host::bounded::BoundedCounters;
use crate::node::Node;
use rackmem_fabric::Whole;
use rackmem_proto::bi::cached::{BiReply, Hearing, HeldItem, Question, asks_again};
use rackmem_proto::bi::{BiClock, Bound, ReadSection, Tick};
use rackmem_proto::wire::{Reason, Tag};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Questions without a section between them after which nobody asks: the next section does.
const IDLE: u8 = 8;

/// See the module.
pub(super) struct Copies<T> {
    /// These copies, for futures, which live as long as they like.
    me: Weak<Self>,
    pub node: Node,
    pub region: Tag,
    /// Bytes of an item at its home.
    pub line: usize,
    pub bound: Bound,
    pub period: Duration,
    clock: BiClock,
    origin: Instant,
    items: Places,
    of: PhantomData<fn() -> T>,
    heard: AtomicU64,
    /// What was acknowledged before this tick is not stale here.
    quiesced: AtomicU64,
    /// Until when sections may count on that.
    pub deadline: Deadline,
    /// Questions since a section began.
    unused: AtomicU8,
    /// One thread asks for all that are in calls.
    pub asking: Mutex<()>,
    /// What was heard is worked off by one at a time.
    hearing: Mutex<()>,
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
        let copies = Arc::new_cyclic(|me| Copies {
            me: me.clone(),
            node: node.clone(),
            region,
            line,
            bound,
            period,
            clock: BiClock::new(nanos),
            origin: Instant::now(),
            items: Places::new(count, size_of::<T>().div_ceil(8)),
            of: PhantomData,
            heard: AtomicU64::new(0),
            quiesced: AtomicU64::new(0),
            deadline: Deadline::default(),
            unused: AtomicU8::new(IDLE),
            asking: Mutex::new(()),
            hearing: Mutex::new(()),
        });
        let patience = copies.patience();
        copies.quiesce(|_| false, patience)?;
        let asks: Arc<dyn Asks> = copies.clone();
        node.inner.access.agents.bounded.askers.add(&asks);
        Ok(copies)
    }

    /// See [`Copies`].
    pub fn shared(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }

    /// How long a thread waits for an answer.
    pub fn patience(&self) -> Duration {
        self.node.inner.access.patience
    }

    pub fn counters(&self) -> &BoundedCounters {
        &self.node.inner.access.agents.bounded.counters
    }

    pub fn now(&self) -> Tick {
        self.clock.tick(self.nanos())
    }

    fn nanos(&self) -> u64 {
        let since = self.origin.elapsed();
        since.as_secs() * 1_000_000_000 + u64::from(since.subsec_nanos())
    }

    pub fn quiesced(&self) -> Tick {
        Tick(self.quiesced.load(SeqCst))
    }

    /// Whether a quiescence is of a moment since now.
    pub fn since_now(&self) -> impl Fn(Tick) -> bool + Send + use<T> {
        let now = self.now();
        move |quiesced| quiesced > now
    }

    #[cfg(test)]
    pub fn set_quiesced(&self, tick: Tick) {
        self.quiesced.store(tick.0, SeqCst);
    }

    /// A section is to begin. Whether this node has asked all the time, as it does for what is
    /// read.
    #[inline]
    pub fn use_now(&self) -> bool {
        let unused = self.unused.load(Relaxed);
        if unused != 0 {
            self.unused.store(0, Relaxed);
        }
        unused < IDLE
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is such an item.
    pub fn check(&self, index: usize) -> Result<(), AccessError> {
        let of = self.items.len();
        let (at, len) = (index, 1);
        let outside = AccessError::OutOfBounds { at, len, of };
        (index < of).then_some(()).ok_or(outside)
    }

    /// The copy of an item, if there is one.
    #[inline]
    pub fn here(&self, index: usize) -> Option<T> {
        let mut value = T::new_zeroed();
        let bytes = value.as_mut_bytes();
        let here = self.items.read(index, |at, word| {
            let bytes = &mut bytes[at * 8..];
            let len = bytes.len().min(8);
            bytes[..len].copy_from_slice(&word.to_ne_bytes()[..len]);
        });
        here.then_some(value)
    }

    /// An item, from the copy if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Result<T, AccessError> {
        match self.here(index) {
            Some(value) => {
                self.counters().hits.add();
                Ok(value)
            }
            None => self.fetch(index),
        }
    }

    /// A section that does not look at the clock, and until which count it is good.
    #[inline(always)]
    pub fn enter_now(&self) -> Option<(ReadSection, u64)> {
        // Before the quiescence: a later one than the deadline's is better.
        let deadline = match self.use_now() {
            true => self.deadline.count(),
            false => 0,
        };
        let section = ReadSection::unseen(self.quiesced(), self.bound, None);
        (deadline != 0).then_some((section, deadline))
    }

    /// An item, in a section that need not look at the clock, if there is a copy.
    #[inline(always)]
    pub fn read_now(&self, index: usize) -> Option<T> {
        let (_, deadline) = self.enter_now()?;
        let value = self.here(index)?;
        counter::is_before(deadline).then(|| {
            self.counters().hits.add();
            value
        })
    }

    /// An item as its home has it.
    #[cold]
    pub fn fetch(&self, index: usize) -> Result<T, AccessError> {
        self.call(self.patience(), |came| self.fetch_on(index, came))
    }

    /// What the home has said that an item is.
    pub fn fetched(&self, index: usize, reply: BiReply) -> Result<T, AccessError> {
        let BiReply::Item(number, bytes) = reply else {
            return Err(self.no_answer());
        };
        let value = value_of(&bytes).ok_or(AccessError::OtherSize {
            addr: self.region.0,
            len: size_of::<T>(),
            is: bytes.len(),
        })?;
        self.put(index, value, number);
        Ok(value)
    }

    /// An item is this from now on.
    pub fn write(&self, index: usize, value: &T) -> Result<(), AccessError> {
        self.call(self.patience(), |came| self.write_on((index, value), came))
    }

    /// The home has taken it.
    pub fn written(&self, (index, value): (usize, &T), reply: BiReply) -> Result<(), AccessError> {
        let BiReply::Written(number) = reply else {
            return Err(self.no_answer());
        };
        self.put(index, *value, number);
        Ok(())
    }

    /// How far this node has heard is read while the item's place cannot change: who hears says so
    /// before it looks at places.
    fn put(&self, index: usize, value: T, number: u64) {
        self.change(index, value, |item| {
            let kept = item.put((), number, self.heard.load(SeqCst), None);
            (kept, kept)
        });
    }

    /// Changes what is held of an item; where that is new, it is this.
    fn change<R>(
        &self,
        index: usize,
        value: T,
        change: impl FnOnce(&mut HeldItem<()>) -> (R, bool),
    ) -> Option<R> {
        let bytes = value.as_bytes();
        self.items.change(index, change, |at| {
            let mut word = [0; 8];
            let bytes = &bytes[at * 8..];
            let len = bytes.len().min(8);
            word[..len].copy_from_slice(&bytes[..len]);
            u64::from_ne_bytes(word)
        })
    }

    fn no_answer(&self) -> AccessError {
        let reason = Reason::Refused;
        AccessError::Rack(RackError::Refused { reason })
    }

    /// What was to be read is older than was promised, by so many ticks.
    pub fn stale(&self, ticks: u64) -> AccessError {
        self.counters().stale.fetch_add(1, Relaxed);
        AccessError::Stale {
            addr: self.region.0,
            by: (self.period).saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)),
        }
    }

    /// Asks what was modified, and drops that, or puts what it is now in its place; not if others
    /// have done so meanwhile, and that is `enough`.
    pub fn quiesce(
        &self,
        enough: impl Fn(Tick) -> bool,
        patience: Duration,
    ) -> Result<(), AccessError> {
        let mut quiescing = Quiescing::default();
        self.call(patience, |came| quiescing.go_on(self, came, &enough))
    }

    /// The next question, and its moment: the clock is read before it is asked.
    pub fn question(&self) -> (Question, Moment) {
        let upto = self.heard.load(SeqCst);
        let moment = Moment::now(|| self.nanos());
        let question = Hearing { upto }.ask(self.clock.tick(moment.nanos));
        (question, moment)
    }

    /// The home has answered. False: there is more to ask for.
    pub fn hear(
        &self,
        (question, moment): (Question, Moment),
        reply: BiReply,
    ) -> Result<bool, AccessError> {
        let counters = self.counters();
        let BiReply::News(news) = reply else {
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
        let _one = self.hearing.lock().whole();
        // Futures ask beside threads, and a member has one question at a time: who comes second is
        // as one whose answer was lost.
        if self.heard.load(SeqCst) != question.from {
            return Ok(false);
        }
        let answered = question.answered(&news, self.now(), None);
        let (heard, quiesced) = answered.ok_or_else(|| self.no_answer())?;
        counters.news.fetch_add(1, Relaxed);
        self.heard.store(heard.upto, SeqCst);
        let drops = |index: usize| {
            let drops = |item: &mut HeldItem<()>| (item.hear(news.upto), false);
            let dropped = self.items.change(index, drops, |_| 0).unwrap_or(false);
            counters.dropped.fetch_add(dropped.into(), Relaxed);
        };
        match news.each() {
            Some(each) => {
                for (index, value) in each {
                    let Some(value) = value.and_then(packed_value_of) else {
                        drops(index as usize);
                        continue;
                    };
                    let refreshes = |item: &mut HeldItem<()>| {
                        let newer = item.refresh((), news.now(), None);
                        (newer, newer)
                    };
                    let newer = self.change(index as usize, value, refreshes);
                    let newer = newer.unwrap_or(false);
                    counters.refreshed.fetch_add(newer.into(), Relaxed);
                }
            }
            None => {
                counters.everything.fetch_add(1, Relaxed);
                (0..self.items.len()).for_each(drops);
            }
        }
        let Some(quiesced) = quiesced else {
            return Ok(false);
        };
        // Of two with nothing between them, the one that was asked first may be answered last.
        if quiesced >= self.quiesced() {
            self.quiesced.store(quiesced.0, SeqCst);
            self.deadline
                .set(moment, self.clock.nanos(self.bound.unseen()));
        }
        Ok(true)
    }
}

/// An item, of the bytes that its home has.
fn value_of<T: Value>(bytes: &[u8]) -> Option<T> {
    let value = bytes.get(..size_of::<T>());
    value.and_then(|bytes| T::read_from_bytes(bytes).ok())
}

/// An item, of these bytes and zeros.
fn packed_value_of<T: Value>(bytes: &[u8]) -> Option<T> {
    let mut value = T::new_zeroed();
    let part = value.as_mut_bytes().get_mut(..bytes.len())?;
    part.copy_from_slice(bytes);
    Some(value)
}

impl<T: Value> Asks for Copies<T> {
    /// Asks before the next section would have to. What cannot be learnt, the section asks for, and
    /// says why not.
    fn ask_if_due(&self) -> Option<Duration> {
        let (quiesced, bound) = (self.quiesced(), self.bound);
        let due = |now, quiesced| asks_again(now, quiesced, bound);
        if self.unused.load(Relaxed) >= IDLE {
            return Some(REST);
        }
        if due(self.now(), quiesced) {
            self.unused.fetch_add(1, Relaxed);
            // A home that does not answer keeps questions to others waiting no longer than that.
            let patience = self.period * bound.lag as u32;
            let heard = self.quiesce(|quiesced| !due(self.now(), quiesced), patience);
            if let Err(AccessError::Rack(RackError::Closed | RackError::Fenced)) = heard {
                return None;
            }
        }
        let (now, quiesced) = (self.now(), self.quiesced());
        let left = (1..=bound.lag).find(|ticks| due(now.plus(*ticks), quiesced));
        Some(self.period * left.unwrap_or(1) as u32)
    }
}
