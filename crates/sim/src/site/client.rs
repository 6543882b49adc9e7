//! The requester of a thread, and what it does about the thread's event, step by step: sends,
//! installs, evicts, unlocks, asks again. What a thread wants, and when it goes on,
//! is its driver's.

use super::{Deed, Form, Load, Site, Speaks, mutate};
use crate::invariants::LiveEvent;
use crate::world::Mutation;
use rackmem_proto::engine::{Access, Do, Plan, Purpose, Then};
use rackmem_proto::flowcc::{Accept, Interrupted, LocalStatus, Requester};
use rackmem_proto::wire::{Flags, Header, Kind, Record, Tag};
use rackmem_proto::{Data, Output};
use std::hash::{Hash, Hasher};

/// An event under way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// What is next about it.
    pub access: Access,
    /// Its block.
    pub tag: Tag,
    /// The slot that is reserved for it.
    pub entry: Option<usize>,
    /// The object that goes back to its home by it.
    pub object: Option<Record>,
}

/// What has been done about an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    /// Nothing: a packet or a timeout must come.
    Wait,
    /// Something that concerns nobody else.
    Went,
    /// The operation is to be carried out on the entry's bytes, before anything else happens.
    Use,
    /// The entry has this status from now on.
    Set(LocalStatus),
    /// The application has the lock, until it lets it go.
    Held,
    /// It is over; its entry is still reserved.
    Over(Event, Then),
}

/// What a thread finds that wants to read or change a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// A copy that is good for it, in this slot.
    Copy(usize),
    /// Another thread's event on the block, whose end is to be awaited.
    UnderWay,
    /// Events in all slots that it could go to, one of which has to end.
    NoRoom,
    /// Nothing: an event has begun, on this block.
    Began(Tag),
    /// Nothing, but the slot that this block was to leave, still reserved, is empty.
    Empty(usize, Tag),
}

/// See the module.
#[derive(Clone)]
pub struct Client {
    /// The shipped requester.
    pub engine: Requester,
    /// The event under way.
    pub event: Option<Event>,
    unlocking: Option<LiveEvent>,
}

impl Client {
    /// One that has done nothing.
    pub fn new(engine: Requester) -> Self {
        Client {
            engine,
            event: None,
            unlocking: None,
        }
    }

    /// Begins an event. `at`: its address and its offset, as they are sent.
    pub fn begin<B: Form, X: Speaks<B>>(
        &mut self,
        purpose: Purpose,
        at: (Tag, u32),
        (entry, object): (Option<usize>, Option<Record>),
        now: u64,
        site: &mut Site<B, X>,
    ) {
        let (access, output) = Access::begin(purpose, &mut self.engine, now, (at.0, at.1, 0));
        self.event = Some(Event {
            access,
            tag: at.0,
            entry,
            object,
        });
        self.send(&output, site);
    }

    /// Looks for a copy of a block. Where there is none that is good for it,
    /// begins what it takes to get one.
    pub fn look<B: Form, X: Speaks<B>>(
        &mut self,
        (tag, writes): (Tag, bool),
        now: u64,
        site: &mut Site<B, X>,
    ) -> Found {
        if let Some(at) = site.cache.hit(tag, writes) {
            site.cache.touch(at);
            return Found::Copy(at);
        }
        match site.cache.plan(tag, writes) {
            Plan::Hit(at) => Found::Copy(at),
            Plan::Wait => Found::UnderWay,
            Plan::WaitForRoom => Found::NoRoom,
            Plan::Begin(at, purpose) => {
                self.begin(purpose, (tag, 0), (Some(at), None), now, site);
                Found::Began(tag)
            }
            Plan::Evict(at, old) => self.evict(at, old, now, site),
        }
    }

    /// Begins to empty a reserved slot, if it is not empty.
    pub fn evict<B: Form, X: Speaks<B>>(
        &mut self,
        at: usize,
        tag: Tag,
        now: u64,
        site: &mut Site<B, X>,
    ) -> Found {
        mutate::eviction(at, tag, site);
        match Purpose::to_evict(site.cache.slot(at).status) {
            Some(purpose) => {
                self.begin(purpose, (tag, 0), (Some(at), None), now, site);
                Found::Began(tag)
            }
            None => Found::Empty(at, tag),
        }
    }

    /// A packet for it.
    pub fn receive<B: Form, X: Speaks<B>>(
        &mut self,
        now: u64,
        header: &Header,
        body: &B::Body,
        site: &mut Site<B, X>,
    ) {
        let header = mutate::late_answer(*header, self.engine.open(), site.mutation);
        let (accept, outputs) = self.engine.handle(now, &header, B::len(body));
        if accept == Accept::Store
            && let Some(event) = self.event
            && event.access.purpose().fetches()
            && let Some(at) = event.entry
        {
            site.cache.slot(at).words.put(header.offset, body);
        }
        for output in outputs.iter() {
            self.send(output, site);
        }
    }

    /// Sends again what has not been answered by now.
    pub fn time_out<B: Form, X: Speaks<B>>(&mut self, now: u64, site: &mut Site<B, X>) {
        if self.engine.poll_timeout().is_some_and(|at| at <= now) {
            for output in self.engine.handle_timeout(now).iter() {
                self.send_again(output, site);
            }
        }
    }

    /// Sends this again.
    pub fn send_again<B: Form, X: Speaks<B>>(&mut self, output: &Output, site: &mut Site<B, X>) {
        let unlocks = output.header.kind == Kind::Unlock;
        if !(unlocks && site.mutation == Some(Mutation::UnlockOnce)) {
            self.send(output, site);
        }
    }

    fn send<B: Form, X: Speaks<B>>(&mut self, output: &Output, site: &mut Site<B, X>) {
        let mut output = *output;
        let Header { tag, flags, .. } = output.header;
        if output.header.kind == Kind::Unlock {
            let (node, shared) = (site.id, flags.has(Flags::READER));
            self.unlocking = Some(LiveEvent { node, tag, shared });
            output = mutate::unlock(output, node, site.mutation);
        }
        let load = match self.event {
            Some(event) if output.header.kind == Kind::Free => {
                Load::Records(event.object.into_iter().collect())
            }
            Some(Event {
                entry: Some(at), ..
            }) if output.data == Data::Cache => Load::Block(site.cache.slot(at).words.clone()),
            _ => Load::Nothing,
        };
        site.deeds.push(Deed::Sent(output, load));
    }

    /// The next step of its event.
    pub fn go_on<B: Form, X: Speaks<B>>(&mut self, now: u64, site: &mut Site<B, X>) -> Did {
        // What is acknowledged is over, whatever is next: an event whose unlock waits for home may
        // follow at once.
        if self.engine.can_unlock() {
            self.unlocking = None;
        }
        let Some(event) = &mut self.event else {
            return Did::Wait;
        };
        let defect = site.mutation.and_then(Mutation::in_engine);
        let todo = event.access.next(&mut self.engine, || now, defect);
        let event = *event;
        match todo {
            Do::Wait => return Did::Wait,
            Do::Send(output) => self.send(&output, site),
            Do::Use => return Did::Use,
            Do::Set(status) => {
                let purpose = event.access.purpose();
                if let Some(at) = event.entry {
                    site.cache.install(at, event.tag, status);
                    let text = match (purpose, status) {
                        (Purpose::EvictClean, _) => "evicted clean",
                        (_, LocalStatus::Invalid) => "evicted dirty",
                        (Purpose::EvictDirty, _) => "not evicted after all",
                        _ => "installed",
                    };
                    site.deeds.push(Deed::Copy(event.tag, text));
                }
                return Did::Set(status);
            }
            Do::Left => site.copies.left(event.tag),
            Do::Held => return Did::Held,
            Do::Over(then) => {
                self.event = None;
                return Did::Over(event, then);
            }
        }
        Did::Went
    }

    /// The rack is in another epoch: what is under way has not happened.
    pub fn enter(&mut self, epoch: u32, switch: bool) -> Interrupted {
        self.unlocking = None;
        self.engine.enter(epoch, switch)
    }

    /// The application lets the lock go that it holds.
    pub fn let_go(&mut self) {
        if let Some(event) = &mut self.event {
            event.access.let_go();
        }
    }

    /// The lock that the application holds, and whether as a reader.
    pub fn holding(&self) -> Option<(Tag, bool)> {
        let event = self.event.filter(|event| event.access.is_held())?;
        Some((event.tag, event.access.purpose().shares()))
    }

    /// The events that may hold a lock.
    pub fn live(&self) -> impl Iterator<Item = LiveEvent> {
        let node = self.engine.id().node;
        let event = self.event.filter(|event| event.access.purpose().locks());
        let event = event.map(|event| (event.tag, event.access.purpose().shares()));
        let tail = self.engine.tail().map(|tag| (tag, true));
        let live = event.into_iter().chain(tail);
        let live = live.map(move |(tag, shared)| LiveEvent { node, tag, shared });
        live.chain(self.unlocking.filter(|_| !self.engine.can_unlock()))
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.engine.fingerprint(into);
        (self.event, self.unlocking).hash(into);
    }
}
