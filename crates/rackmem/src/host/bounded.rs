//! Bounded memory at this node: the items of its home, and what its threads ask of homes.
//!
//! What a packet means is `rackmem_proto::bi::cached`'s; here are a lock around that value and the
//! way of its packets. A program's copies are in its `bounded::Domain`.

use crate::bytes::shelf::LentShelf;
use crate::data_plane::kernel::reads::{KernelItemCounts, ReadsInKernel};
use crate::error::{AccessError, AllocError, RackError};
use crate::host::access::Access;
use crate::host::arenas::Arenas;
use crate::host::askers::Askers;
use crate::host::driving::errand::{Came, Question};
use crate::host::here::Here;
use crate::host::metrics::BoundedCounts;
use crate::host::objects::not_done;
use crate::host::replicated::{LOOK_UP, post};
use crate::membership::current_view::Looked;
use crate::ports::requester::Slot;
use crate::threads::{self, PLACES};
use rackmem_fabric::{Body, Nobody, Whole};
use rackmem_proto::bi::cached::{Bi, BiAsk, BiOut, BiReply, Stock};
use rackmem_proto::call::Parcel;
use rackmem_proto::engine::{self, Bounded, BoundedHost, Protocol as _};
use rackmem_proto::wire::{Contract, Dest, HomeId, NodeId, Own, Reason, Tag};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Hits, which threads count by plain stores.
pub(crate) struct Hits([OwnCount; PLACES + 1]);

#[derive(Default)]
#[repr(align(64))]
struct OwnCount(AtomicU64);

impl Default for Hits {
    fn default() -> Self {
        Hits(std::array::from_fn(|_| OwnCount::default()))
    }
}

impl Hits {
    /// One more.
    #[inline]
    pub fn add(&self) {
        match threads::place() {
            PLACES => {
                self.0[PLACES].0.fetch_add(1, Relaxed);
            }
            place => {
                let count = &self.0[place].0;
                count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
            }
        }
    }

    fn sum(&self) -> u64 {
        self.0.iter().map(|count| count.0.load(Relaxed)).sum()
    }
}

/// What became of reads and quiescences.
#[derive(Default)]
pub(crate) struct BoundedCounters {
    pub hits: Hits,
    pub misses: AtomicU64,
    pub writes: AtomicU64,
    pub news: AtomicU64,
    pub dropped: AtomicU64,
    pub refreshed: AtomicU64,
    pub everything: AtomicU64,
    pub waited: AtomicU64,
    pub stale: AtomicU64,
}

/// See the module.
pub(crate) struct BoundedItems {
    part: Mutex<Bi>,
    /// Where the kernel reads the home's items: who has `part` writes there.
    shelf: Option<Mutex<LentShelf>>,
    kernel: Option<Arc<ReadsInKernel>>,
    /// A question was answered: for threads that no packet wakes.
    ended: Condvar,
    pub counters: BoundedCounters,
    /// Domains that ask homes.
    pub askers: Askers,
    /// Mapped memory of the same contract.
    pub arenas: Arenas,
}

impl BoundedItems {
    /// Of a node whose lives have so many bytes of addresses each, and whose items a program in the
    /// kernel reads, if there is one.
    pub fn new(
        (me, incarnation): (NodeId, u32),
        span: u64,
        kernel: Option<Arc<ReadsInKernel>>,
    ) -> Self {
        let base = u64::from(incarnation.saturating_sub(1)) * span;
        let mut stock = Stock::new(HomeId::of(me), base, span);
        let shelf = kernel.as_ref().and_then(|kernel| kernel.take_shelf());
        stock.in_kernel = shelf.is_some();
        BoundedItems {
            part: Mutex::new(Bi::new((me, incarnation), stock)),
            shelf: shelf.map(Mutex::new),
            kernel,
            ended: Condvar::new(),
            counters: BoundedCounters::default(),
            askers: Askers::default(),
            arenas: Arenas::default(),
        }
    }

    /// Waits until some question of this node was answered, but not for long.
    fn wait(&self, at_most: Duration) {
        let part = self.part.lock().whole();
        let _ = self.ended.wait_timeout(part, at_most).whole();
    }

    /// Its figures.
    pub fn metrics(&self) -> BoundedCounts {
        let (regions, answerers) = {
            let part = self.part.lock().whole();
            (part.stock.regions() as u64, part.answerers)
        };
        let in_kernel = self.kernel.as_ref().zip(self.shelf.as_ref());
        let in_kernel = in_kernel.map(|(kernel, shelf)| KernelItemCounts {
            regions: shelf.lock().whole().regions() as u64,
            ..kernel.item_counts()
        });
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let counters = &self.counters;
        BoundedCounts {
            regions,
            hits: counters.hits.sum(),
            misses: load(&counters.misses),
            writes: load(&counters.writes),
            news: load(&counters.news),
            dropped: load(&counters.dropped),
            refreshed: load(&counters.refreshed),
            everything: load(&counters.everything),
            waited: load(&counters.waited),
            stale: load(&counters.stale),
            by_kernel: answerers.kernel,
            by_agent: answerers.agent,
            in_kernel,
        }
    }
}

impl Here<'_> {
    /// Sends what a section wants sent.
    fn leave(&mut self, sent: Vec<Parcel>) {
        let (agents, net) = (self.agents, self.net);
        let mut nobody = Nobody;
        post(agents.node, sent, |from, parcel| {
            let (header, body) = (&parcel.header, Body::Bytes(&parcel.bytes));
            let Some(to) = parcel.to.hosted(|home| agents.standing.host(home)) else {
                return;
            };
            if to == Dest::Agent(agents.node) && from == agents.node {
                // This node's own home, or its answer: by a call.
                let mut here = Here::new(agents, net, body, &mut nobody);
                engine::packet(&mut here, header);
            } else {
                net.send(to, header, body, &mut nobody);
            }
        });
    }
}

impl BoundedHost for Here<'_> {
    fn bounded<R>(&mut self, section: impl FnOnce(&mut Bi, &mut BiOut) -> R) -> R {
        let items = &self.agents.bounded;
        let mut out = BiOut::new(self.agents.node, self.agents.standing.epoch());
        let result = {
            let mut part = items.part.lock().whole();
            let result = section(&mut part, &mut out);
            // Before anybody is told: who was told finds it in the kernel.
            if let (Some(changed), Some(shelf)) = (out.changed, &items.shelf) {
                shelf.lock().whole().follow(&part.stock, changed);
            }
            result
        };
        if out.ended {
            items.ended.notify_all();
        }
        self.leave(out.sent);
        result
    }

    fn bounded_packet(&mut self, section: impl FnOnce(&mut Bi, (&Own, &[u8]), &mut BiOut)) {
        let (own, body) = match self.body {
            Body::Bytes(bytes) => Own::split(bytes).unwrap_or_default(),
            _ => Default::default(),
        };
        self.bounded(|bi, out| section(bi, (&own, body), out));
    }
}

impl Question for BiAsk {
    type Answer = BiReply;

    fn has_answerer(
        &self,
        access: &Access,
        seen: &mut Option<Looked>,
    ) -> Option<Result<(), AccessError>> {
        access.alive_now(self.tag(), seen)
    }

    fn unanswered(&self, access: &Access) -> AccessError {
        silence(access, self.tag())
    }
}

/// A region's home has not answered.
fn silence(access: &Access, tag: Tag) -> AccessError {
    AccessError::silent(tag, access.standing.host(tag.home()))
}

/// What a region's home is asked in a requester's slot, for the thread that waits for the answer or
/// has several questions under way.
pub(in crate::host) struct AskingHome<'a> {
    access: &'a Access,
    tag: Tag,
    patience: Duration,
    began: Instant,
    seen: Option<Looked>,
}

impl<'a> AskingHome<'a> {
    /// Asks this, and is told within this time.
    pub fn begin(access: &'a Access, slot: &Slot, (ask, patience): (BiAsk, Duration)) -> Self {
        let tag = ask.tag();
        let mut nobody = Nobody;
        let mut here = Here::new(&access.agents, slot.net(), Body::None, &mut nobody);
        Bounded::command(&mut here, slot.number(), (ask, slot.reply_port()));
        AskingHome {
            access,
            tag,
            patience,
            began: Instant::now(),
            seen: None,
        }
    }

    /// What it is told, once it is, or why it will not be. A refusal is an error.
    pub fn look(&mut self, slot: &Slot) -> Option<Came<BiAsk>> {
        let (access, nth) = (self.access, slot.number());
        let items = &access.agents.bounded;
        let told = items.part.lock().whole().take(nth);
        match told {
            Some(BiReply::Refused(reason)) => return Some(Err(refusal(reason, self.tag))),
            Some(told) => return Some(Ok(told)),
            None => {}
        }
        let given_up = if access.closed.load(Relaxed) {
            Some(AccessError::Rack(RackError::Closed))
        } else if self.began.elapsed() >= self.patience {
            Some(silence(access, self.tag))
        } else {
            // Its home may have died, and this process may have been given up.
            let alive = access.alive_now(self.tag, &mut self.seen);
            alive.and_then(Result::err)
        };
        given_up.map(|error| {
            items.part.lock().whole().abandon(nth);
            Err(error)
        })
    }

    /// Waits for packets, no longer than this, and takes those that come.
    pub fn wait(&self, slot: &mut Slot, at_most: Duration) {
        let items = &self.access.agents.bounded;
        self.access
            .listen_for(slot, at_most, |time| items.wait(time));
    }
}

impl Access {
    /// Asks a region's home. A refusal is an error.
    pub fn ask_bounded(&self, ask: BiAsk, patience: Duration) -> Came<BiAsk> {
        self.alive(ask.tag())?;
        let mut slot = self.requesters.borrow()?;
        let mut asking = AskingHome::begin(self, &slot, (ask, patience));
        loop {
            match asking.look(&slot) {
                Some(came) => return came,
                None => asking.wait(&mut slot, LOOK_UP),
            }
        }
    }
}

impl Access {
    /// A region of items in the memory of this home, which this node serves.
    pub fn reserve_items(
        &self,
        (home, node): (Tag, NodeId),
        (bytes, items): (u32, u32),
    ) -> Result<u64, AllocError> {
        match self.ask_bounded(BiAsk::Reserve(home, bytes, items), self.patience) {
            Ok(BiReply::Region(tag)) => Ok(tag.0),
            Ok(_) => Err(refusal(Reason::Refused, home).into()),
            Err(AccessError::Rack(RackError::Refused {
                reason: Reason::Full,
            })) => Err(AllocError::OutOfMemory { node }),
            Err(error) => Err(error.into()),
        }
    }

    /// A region is no more, nor are its items.
    pub fn remove_items(&self, region: Tag) -> Result<(), AccessError> {
        let removed = self.ask_bounded(BiAsk::Remove(region), self.patience);
        removed.map(drop)
    }
}

/// Why something was not done with a region.
fn refusal(reason: Reason, tag: Tag) -> AccessError {
    match reason {
        Reason::Refused if !tag.is_under(Contract::Bounded) => {
            AccessError::wrong_contract(tag, Contract::Bounded)
        }
        Reason::Refused => AccessError::Rack(RackError::Refused { reason }),
        reason => not_done(reason, tag),
    }
}
