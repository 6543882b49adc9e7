//! The requester of a thread, and what a site does about the thread's event, step by step: sends,
//! installs, evicts, unlocks, asks again. What a thread wants, and when it goes on,
//! is its driver's.

use super::{Deed, Form, Load, Site, Speaks, mutate};
use crate::world::Mutation;
use rackmem_proto::engine::{self, Access, Do, Plan, Purpose, Stored, Then};
use rackmem_proto::flowcc::{Accept, Requester};
use rackmem_proto::wire::{Header, Kind, Tag};
use rackmem_proto::{Data, Output};
use std::hash::{Hash, Hasher};

/// What a thread wants of its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Want {
    /// A copy of this block, to read it or to change it.
    Copy(Tag, bool),
    /// That this block leaves the cache.
    Leave(Tag),
    /// An event without a copy: its address and offset.
    Ask(Purpose, (Tag, u32)),
    /// A block of a long range, to read or to write it whole: by its copy that is here, or at home.
    Long(Tag, bool),
    /// That something is done to a word of this block, by its copy that is here, or at home.
    Operate(Tag),
}

impl Want {
    /// Whether it changes the block that it is about.
    fn writes(self) -> bool {
        match self {
            Want::Copy(_, writes) | Want::Long(_, writes) => writes,
            Want::Operate(_) => true,
            Want::Leave(_) | Want::Ask(..) => false,
        }
    }
}

/// What a step has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    /// Nothing: another thread's event must end, on this block or any.
    Park(Option<Tag>),
    /// An event has begun.
    Began,
    /// The copy that is here is good for the operation.
    Hit,
    /// No block is to leave its slot any more.
    Emptied,
    /// A step of this event, which is carried out but for what the application does.
    Step(Access, Do),
}

/// See the module.
#[derive(Clone)]
pub struct Client<B> {
    /// The shipped requester.
    pub engine: Requester,
    /// The event under way.
    pub event: Option<Access>,
    /// What a call carries: a block to store, or the object that goes back; and what one brings.
    pub operand: Load<B>,
    /// What has become of the store that its operation began with.
    pub stored: Stored,
    /// The block that is still to leave, whose slot it keeps.
    pub leaving: Option<Tag>,
}

impl<B: Form, X: Speaks<B>> Site<B, X> {
    /// Looks whether a thread has what it wants. If not, begins what it takes to get it,
    /// which may be that another block leaves the cache: then the thread looks again.
    pub fn attempt(&mut self, client: &mut Client<B>, want: Want, now: u64) -> Did {
        let want = self.means(client.stored, want);
        let (purpose, at) = match want {
            Want::Ask(purpose, at) => (purpose, at),
            Want::Leave(tag) => {
                self.cache.reserve(tag);
                return self.evict(client, tag, now);
            }
            Want::Copy(tag, _) | Want::Long(tag, _) | Want::Operate(tag) => {
                match self.cache.plan(tag, want.writes()) {
                    Plan::Hit(_) => return Did::Hit,
                    Plan::Wait => return Did::Park(Some(tag)),
                    Plan::WaitForRoom => return Did::Park(None),
                    Plan::Evict(_, old) => return self.evict(client, old, now),
                    Plan::Begin(_, purpose) => (purpose, (tag, 0)),
                }
            }
        };
        self.start(client, purpose, at, now)
    }

    /// Has the next victim of a full set leave by this client's event, beside the one that is about
    /// to bring a block. Whether it does.
    pub fn make_room(
        &mut self,
        client: &mut Client<B>,
        (tag, purpose): (Tag, Purpose),
        now: u64,
    ) -> bool {
        let old = self.cache.next_out(tag, purpose);
        old.is_some_and(|old| self.evict(client, old, now) == Did::Began)
    }

    /// What a want comes to, of which a home may be asked.
    pub fn means(&self, stored: Stored, want: Want) -> Want {
        let stored = mutate::stored(stored, self.mutation);
        let cached = |tag| self.cache.copy(tag).is_some();
        let (tag, writes, asks) = match want {
            Want::Long(tag, writes) => (tag, writes, stored.asks(writes, cached(tag))),
            Want::Operate(tag) => (tag, true, stored.asks_once(Kind::Operate, cached(tag))),
            _ => return want,
        };
        match asks {
            Some((kind, offset)) => Want::Ask(Purpose::Call(kind), (tag, offset)),
            None => Want::Copy(tag, writes),
        }
    }

    /// Empties a block's slot, which is reserved.
    fn evict(&mut self, client: &mut Client<B>, tag: Tag, now: u64) -> Did {
        client.leaving = None;
        mutate::eviction(tag, self);
        match Purpose::to_evict(self.cache.status(tag)) {
            Some(purpose) => self.start(client, purpose, (tag, 0), now),
            None => {
                self.free(tag);
                Did::Emptied
            }
        }
    }

    /// Begins an event at an address, with an offset.
    fn start(&mut self, client: &mut Client<B>, to: Purpose, at: (Tag, u32), now: u64) -> Did {
        let (event, output) = Access::begin(to, &mut client.engine, now, (at.0, at.1, 0));
        client.event = Some(event);
        self.ask(client, &output);
        Did::Began
    }

    /// The next step of a thread's event, or of what is still to leave the cache for it.
    pub fn go_on(&mut self, client: &mut Client<B>, now: u64) -> Did {
        let Some(event) = &mut client.event else {
            let left = client.leaving.map(|tag| self.evict(client, tag, now));
            return left.unwrap_or(Did::Emptied);
        };
        let defect = self.mutation.and_then(Mutation::in_engine);
        let mut todo = event.next(&mut client.engine, || now, defect);
        let (event, tag) = (*event, event.tag());
        match &mut todo {
            Do::Send(output) => self.ask(client, output),
            Do::Set(status) => engine::install(self, tag, |site| {
                site.cache.install(tag, *status);
                let copy = Deed::Copy(tag, *status, Some(event.purpose()));
                site.deeds.push(copy);
            }),
            Do::Wait | Do::Use | Do::Held => {}
            Do::Over(then) => {
                if let Purpose::Call(kind @ (Kind::Store | Kind::Operate)) = event.purpose() {
                    (client.stored, *then) = Stored::after(kind, *then, client.engine.step());
                }
                client.event = None;
                match (*then, event.purpose().leaves()) {
                    (Then::Relook, _) => client.leaving = Some(tag),
                    (_, Some(_)) => self.free(tag),
                    (_, None) => {}
                }
            }
        }
        Did::Step(event, todo)
    }

    /// A packet for a thread's requester.
    pub fn answer(&mut self, client: &mut Client<B>, now: u64, header: &Header, body: &B::Body) {
        let header = mutate::late_answer(*header, client.engine.open(), self.mutation);
        let (accept, outputs) = client.engine.handle(now, &header, B::len(body));
        if accept == Accept::Store
            && let Some(event) = client.event
        {
            if event.purpose().fetches() {
                self.cache.words(event.tag()).put(header.offset, body);
            } else if event.purpose() == Purpose::Call(Kind::Fetch) {
                let mut block = B::zeroes();
                block.put(0, body);
                client.operand = Load::Block(block);
            }
        }
        outputs.iter().for_each(|output| self.ask(client, output));
    }

    /// Sends again what has not been answered by now.
    pub fn time_out(&mut self, client: &mut Client<B>, now: u64) {
        if client.engine.poll_timeout().is_some_and(|at| at <= now) {
            for output in client.engine.handle_timeout(now).iter() {
                self.ask_again(client, output);
            }
        }
    }

    /// Sends this again.
    pub fn ask_again(&mut self, client: &Client<B>, output: &Output) {
        let unlocks = output.header.kind == Kind::Unlock;
        if !(unlocks && self.mutation == Some(Mutation::UnlockOnce)) {
            self.ask(client, output);
        }
    }

    fn ask(&mut self, client: &Client<B>, output: &Output) {
        let output = mutate::unlock(*output, self.id, self.mutation);
        let load = match (output.data, client.event) {
            (Data::Operand, _) => client.operand.clone(),
            (Data::Cache, Some(event)) => Load::Block(self.cache.words(event.tag()).clone()),
            _ => Load::Nothing,
        };
        self.deeds.push(Deed::Sent(output, load));
    }

    fn free(&mut self, tag: Tag) {
        self.cache.release(tag);
        self.deeds.push(Deed::Free(tag));
    }
}

impl<B> Client<B> {
    /// One that has done nothing.
    pub fn new(engine: Requester) -> Self {
        Client {
            engine,
            event: None,
            operand: Load::Nothing,
            stored: Stored::Open,
            leaving: None,
        }
    }

    /// Whether its event, or what is to leave the cache for it, is to go on.
    pub fn is_busy(&self) -> bool {
        self.event.is_some() || self.leaving.is_some()
    }

    /// Whether only a packet or a timeout can make its event go on.
    pub fn waits(&self) -> bool {
        self.event.is_some_and(|event| event.waits(&self.engine))
    }

    /// The application lets the lock go that it holds.
    pub fn let_go(&mut self) {
        self.event.iter_mut().for_each(Access::let_go);
    }

    /// The lock that the application holds, and whether as a reader.
    pub fn holding(&self) -> Option<(Tag, bool)> {
        self.event.filter(Access::is_held)?.lock()
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.engine.fingerprint(into);
        (self.event, self.stored, self.leaving).hash(into);
    }
}
