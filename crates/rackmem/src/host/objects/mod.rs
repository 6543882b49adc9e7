//! Objects at this node: the memory of its home, and the operations of its threads on others.
//!
//! What a packet means is `rackmem_proto::sabre`'s; here are a lock around that value, the words of
//! objects, and the way of its packets. A thread of this process that has an object's memory
//! ([`Objects::place`]) reads it without any of this.

mod asking;
mod fx;
mod operating;
pub(crate) mod telling;
mod transacting;

pub(crate) use self::asking::{Answered, Asks};
pub(in crate::host) use self::asking::{Asking, Questions};
pub(crate) use self::fx::Fx;
pub(crate) use self::operating::{not_done, unlike};
pub(crate) use self::transacting::Commits;
pub(in crate::host) use self::transacting::Transacting;

use self::fx::HomeWords;
use crate::bytes::objects::{ObjectMemory, Place};
use crate::data_plane::kernel::reads::ReadsInKernel;
use crate::host::here::Here;
use crate::host::metrics::ObjectCounts;
use crate::host::replicated::post;
use rackmem_fabric::shm::Member;
use rackmem_fabric::{Body, Nobody, Whole};
use rackmem_proto::CHUNK;
use rackmem_proto::abd::{GROUPS, Layout};
use rackmem_proto::engine::{self, ObjectHost};
use rackmem_proto::membership::View;
use rackmem_proto::sabre::{
    Answer, Book, HEADER, Home, Laid, SLAB, Sabre, Section, Sender, Spot, Values, class_of, span_of,
};
use rackmem_proto::wire::{Contract, Dest, Header, HomeId, MAX_NODES, NodeId, Own, Reason, Tag};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// What is behind one lock.
struct Part {
    sabre: Sabre,
    values: Values,
    /// By group, that of homes which groups keep.
    kept: Kept,
}

type Kept = [Option<ObjectMemory>; GROUPS];

/// Memory for objects that this process can reach.
#[derive(Clone)]
pub(crate) struct Reachable {
    /// By home, that of its own homes.
    own: Arc<[OnceLock<Arc<ObjectMemory>>; MAX_NODES]>,
    /// Where processes of the host share memory.
    host: Option<Arc<Member>>,
    /// Where the kernel answers reads of this process' home.
    kernel: Option<Arc<ReadsInKernel>>,
}

impl Reachable {
    /// Of a process that shares memory with others by this member's place, or with nobody.
    pub fn new(host: Option<Arc<Member>>) -> Self {
        let own = Arc::new([const { OnceLock::new() }; MAX_NODES]);
        Reachable {
            own,
            host,
            kernel: None,
        }
    }

    /// The same of a process whose home's memory is there.
    pub fn in_kernel(self, kernel: Option<Arc<ReadsInKernel>>) -> Self {
        Reachable { kernel, ..self }
    }

    /// The program that reads it, if there is one.
    pub fn kernel(&self) -> Option<&Arc<ReadsInKernel>> {
        self.kernel.as_ref()
    }
}

/// Memory of another process of the host.
#[derive(Default)]
struct Mapped {
    memory: Option<Arc<ObjectMemory>>,
    /// When it was looked for and not found.
    missed: Option<Instant>,
}

/// How long memory that was not there is not looked for again.
const ABSENT: Duration = Duration::from_millis(10);

/// What became of handles, and of reads and writes that are not counted otherwise.
#[derive(Default)]
pub(crate) struct ObjectCounters {
    pub here: AtomicU64,
    pub mapped: AtomicU64,
    pub elsewhere: AtomicU64,
    pub asked: AtomicU64,
    pub rounds: AtomicU64,
    pub fallbacks: AtomicU64,
    pub torn: AtomicU64,
    pub locked: AtomicU64,
    pub exclusive: AtomicU64,
    pub not_modified: AtomicU64,
    pub conflicts: AtomicU64,
}

/// See the module.
pub(crate) struct Objects {
    me: NodeId,
    base: u64,
    /// Bytes of addresses that each life of a home has.
    span: u64,
    slabs: u32,
    /// Bytes of a packet's body.
    room: usize,
    reachable: Reachable,
    /// Memory of other processes of the host, by home.
    mapped: [Mutex<Mapped>; MAX_NODES],
    part: Mutex<Part>,
    /// An operation has ended: for threads that no packet wakes.
    ended: Condvar,
    pub counters: ObjectCounters,
}

impl Objects {
    /// Of a node that has room for so many chunks of objects, whose packets have room for so many
    /// bytes.
    pub fn new(
        (me, incarnation): (NodeId, u32),
        chunks: u32,
        room: usize,
        reachable: Reachable,
    ) -> Self {
        let span = u64::from(chunks) * CHUNK;
        let base = u64::from(incarnation.saturating_sub(1)) * span;
        let slabs = u32::try_from(span / SLAB).unwrap_or(u32::MAX);
        let kernel = reachable.kernel.as_ref();
        let slabs = kernel.map_or(slabs, |kernel| slabs.min(kernel.slabs));
        let book = Book::new(HomeId::of(me), base, slabs);
        let mut sabre = Sabre::new((me, incarnation), book);
        sabre.home.kernel_reads = kernel.is_some();
        if let Some(kernel) = kernel {
            kernel.begin(base);
        }
        Objects {
            me,
            base,
            span,
            slabs,
            room,
            reachable,
            mapped: std::array::from_fn(|_| Mutex::default()),
            part: Mutex::new(Part {
                sabre,
                values: Values::default(),
                kept: [const { None }; GROUPS],
            }),
            ended: Condvar::new(),
            counters: ObjectCounters::default(),
        }
    }

    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().whole()
    }

    /// The memory of this node's home.
    fn memory(&self) -> &Arc<ObjectMemory> {
        let own = &self.reachable.own[usize::from(self.me) % MAX_NODES];
        let (home, host) = (HomeId::of(self.me), self.reachable.host.as_ref());
        let new = || match &self.reachable.kernel {
            Some(kernel) => ObjectMemory::lent(home, self.base, self.slabs, kernel.memory.clone()),
            None => ObjectMemory::new(home, self.base, self.slabs, host),
        };
        own.get_or_init(|| Arc::new(new()))
    }

    /// The home that this group keeps has these objects from here on. Memory of a region that had
    /// the number before is free.
    pub fn lay_out(&self, group: u16, laid: Laid) {
        let Part { sabre, kept, .. } = &mut *self.part();
        let Some(memory) = kept.get_mut(usize::from(group)) else {
            return;
        };
        if sabre.kept.lay_out(group, laid) {
            *memory = laid
                .layout
                .map(|lines| kept_memory(group, lines, laid.base));
        }
    }

    /// Whether an address is of a removed region of objects with copies, or of one that this node
    /// has not heard of.
    fn is_removed(&self, object: Tag) -> Option<bool> {
        self.part().sabre.kept.is_removed(object)
    }

    /// Whether a packet for the keeper of a home needs nothing that takes a majority.
    pub fn answers_at_once(&self, header: &Header) -> bool {
        self.part().sabre.kept.answers_at_once(header)
    }

    /// Where an object is, if this process has the memory that it is in.
    pub fn place(&self, tag: Tag) -> Option<Place> {
        let home = usize::from(tag.home().0);
        let own = self.reachable.own.get(home).and_then(OnceLock::get);
        let (way, place) = match own {
            Some(memory) => (&self.counters.here, Place::of(memory, tag)),
            None => {
                let memory = self.map(home, tag);
                let place = memory.and_then(|memory| Place::of(&memory, tag));
                (&self.counters.mapped, place)
            }
        };
        count(match place {
            Some(_) => way,
            None => &self.counters.elsewhere,
        });
        place
    }

    /// The memory that an address is in, if another process of the host has it.
    fn map(&self, home: usize, tag: Tag) -> Option<Arc<ObjectMemory>> {
        let host = self.reachable.host.as_ref()?;
        let mut mapped = self.mapped.get(home)?.lock().whole();
        let has = |memory: &Arc<ObjectMemory>| {
            let span = self.span;
            let within = tag.offset().checked_sub(memory.base());
            !memory.is_closed() && within.is_some_and(|offset| offset < span)
        };
        if let Some(memory) = mapped.memory.as_ref().filter(|memory| has(memory)) {
            return Some(memory.clone());
        }
        if mapped
            .missed
            .is_some_and(|missed| missed.elapsed() < ABSENT)
        {
            return None;
        }
        let found = ObjectMemory::of_other(tag.home(), host).map(Arc::new);
        let Some(found) = found.filter(has) else {
            mapped.missed = Some(Instant::now());
            return None;
        };
        if let Some(before) = mapped.memory.replace(found.clone()) {
            // Another life of the home is there.
            before.end();
        }
        Some(found)
    }

    /// Memory of homes that this view does not have is used no more.
    pub fn follow(&self, view: &View) {
        for (home, mapped) in self.mapped.iter().enumerate() {
            let mut mapped = mapped.lock().whole();
            let life = view.incarnations.get(home).copied().unwrap_or(0);
            let base = u64::from(life.saturating_sub(1)) * self.span;
            let lives = view.live.contains(home as NodeId);
            let over = |memory: &Arc<ObjectMemory>| memory.base() < base || !lives;
            if mapped.memory.as_ref().is_some_and(over)
                && let Some(memory) = mapped.memory.take()
            {
                memory.end();
            }
        }
    }

    /// The kernel answers reads of this home in this epoch, or in none.
    pub fn answer_in(&self, epoch: Option<u32>) {
        if let Some(kernel) = &self.reachable.kernel {
            kernel.live_in(epoch);
        }
    }

    /// This process may serve, or may not.
    pub fn serve(&self, open: bool) {
        if let Some(kernel) = &self.reachable.kernel {
            kernel.open(open);
        }
    }

    /// The program in the kernel that answers reads of this home.
    pub fn kernel(&self) -> Option<&ReadsInKernel> {
        self.reachable.kernel.as_deref()
    }

    /// The rack is closed: other processes find this home's memory no more, and the kernel reads it
    /// no more.
    pub fn withdraw(&self) {
        if let Some(kernel) = &self.reachable.kernel {
            kernel.end();
        }
        if let Some(memory) = self.reachable.own[usize::from(self.me) % MAX_NODES].get() {
            memory.withdraw();
        }
    }

    /// Its figures.
    pub fn metrics(&self) -> ObjectCounts {
        let (live, slabs, reads) = {
            let Part { sabre, .. } = &*self.part();
            let book = &sabre.home.book;
            (book.live(), book.slabs(), sabre.reads)
        };
        let counters = &self.counters;
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        ObjectCounts {
            live,
            slabs,
            here: load(&counters.here),
            mapped: load(&counters.mapped),
            elsewhere: load(&counters.elsewhere),
            asked: load(&counters.asked),
            rounds: load(&counters.rounds),
            fallbacks: load(&counters.fallbacks),
            torn: load(&counters.torn),
            locked: load(&counters.locked),
            exclusive: load(&counters.exclusive),
            not_modified: load(&counters.not_modified),
            conflicts: load(&counters.conflicts),
            by_kernel: reads.kernel,
            by_agent: reads.agent,
            in_kernel: self.kernel().map(ReadsInKernel::counts),
        }
    }
}

/// The memory of a home that a group keeps, for while this node serves it.
fn kept_memory(group: u16, Layout { line, bytes }: Layout, base: u64) -> ObjectMemory {
    let slabs = u32::try_from(span_of(bytes, line) / SLAB).unwrap_or(u32::MAX);
    let home = HomeId::of_group(group);
    let memory = ObjectMemory::new(home, base, slabs, None);
    let class = class_of(line - HEADER).unwrap_or(0);
    for slab in 0..u64::from(slabs) {
        let tag = Tag(home.start().0 + base + slab * SLAB).under(Contract::Object);
        memory.open_slab(Spot { tag, class });
    }
    memory
}

/// Counts something.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Here<'_> {
    /// A thread of this home wants something of its own home.
    pub(super) fn at_home(
        &mut self,
        act: impl FnOnce(&mut Home, &mut Fx<'_>) -> Result<Answer, Reason>,
    ) -> Result<Answer, Reason> {
        self.objects(|sabre, fx| act(&mut sabre.home, fx))
    }
}

impl ObjectHost for Here<'_> {
    type Fx<'f> = Fx<'f>;

    fn objects<R>(&mut self, section: impl FnOnce(&mut Sabre, &mut Fx<'_>) -> R) -> R {
        let (agents, net) = (self.agents, self.net);
        let objects = &agents.objects;
        let segment = match self.body {
            Body::Bytes(bytes) => Own::split(bytes).map_or(&[][..], |(_, rest)| rest),
            _ => &[],
        };
        let mut part = objects.part();
        let Part {
            sabre,
            values,
            kept,
        } = &mut *part;
        let sender = Sender {
            node: objects.me,
            epoch: agents.standing.epoch(),
            room: objects.room,
            broken: None,
        };
        let mut fx = Section::new(
            HomeWords(objects, kept),
            values,
            (self.offset, segment),
            sender,
        );
        let result = section(sabre, &mut fx);
        let (sent, ended) = (fx.sent, fx.ended);
        drop(part);
        if ended {
            objects.ended.notify_all();
        }
        let mut nobody = Nobody;
        post(objects.me, sent, |from, parcel| {
            let (header, body) = (&parcel.header, Body::Bytes(&parcel.bytes));
            let Some(to) = parcel.to.hosted(|home| agents.standing.host(home)) else {
                return;
            };
            if to == Dest::Agent(objects.me) && from == objects.me {
                // This node's own home, or its answer: by a call.
                if agents.kept.takes(agents, net, header, body, &mut nobody) {
                    return;
                }
                let mut here = Here::new(agents, net, body, &mut nobody).at(header.offset);
                engine::packet(&mut here, header);
            } else {
                net.send(to, header, body, &mut nobody);
            }
        });
        result
    }

    fn own(&self) -> Own {
        match self.body {
            Body::Bytes(bytes) => Own::split(bytes).map_or_else(Own::default, |(own, _)| own),
            _ => Own::default(),
        }
    }
}
