//! The lock service's messages: managers at the homes of their locks,
//! and the posts where answers come to.
//!
//! A message is a packet of the rack, from agent to agent: what is asked for is its status, who
//! asks its requester (a node and one of its places), and which of its turns its sequence number.
//! To a manager at the same node it is a call.

use super::error::{Error, Result};
use super::kind::LockKind;
use super::layout::Layout;
use super::local::Local;
use super::pace::Pace;
use rackmem::Node;
use rackmem::guest::wire::{
    Copyset, GlobalStatus, Header, Kind, NodeId, OWN_LEN, RequesterId, Seq, Tag,
};
use rackmem::guest::{Body, Dest, Guest, Net, Nobody, Receiver, host};
use rackmem::{AccessError, LockError, RackError};
use rackmem_baselines::locks::{Access, Manager, Reply, Request, ThreadPlace};
use rackmem_fabric::Whole;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, RwLock};
use std::thread::Thread;
use std::time::Duration;

/// What a guest's packet has of its own: messages say all in their header.
const NOTHING: [u8; OWN_LEN] = [0; OWN_LEN];
/// Locks that a node knows at most.
const MAX_LOCKS: usize = 1 << 21;
/// How often a thread that waits looks whether it has to ask again.
pub(super) const RETRY: Duration = Duration::from_millis(5);

/// Where the manager's answers to a seat come to.
#[derive(Default)]
pub(super) struct Post {
    /// The last turn that the manager has let in.
    inside: AtomicU64,
    state: Mutex<PostState>,
}

#[derive(Default)]
struct PostState {
    pace: Pace,
    /// Who waits for the answer.
    thread: Option<Thread>,
    /// The end of a turn that the manager has not acknowledged.
    untold: Option<Request>,
}

impl Post {
    /// An answer is awaited, by this thread.
    pub fn expect(&self) {
        let mut state = self.state.lock().whole();
        // The new turn tells the manager as well that the last one is over.
        state.untold = None;
        state.pace = Pace::begin();
        state.thread = Some(std::thread::current());
    }

    /// Whether it is time to ask again.
    pub fn due(&self) -> bool {
        self.state.lock().whole().pace.due()
    }

    /// Whether this turn has been let in.
    pub fn inside(&self, turn: u64) -> bool {
        self.inside.load(Acquire) == turn
    }

    /// The end of a turn, which is told again until it is acknowledged.
    pub fn tell(&self, request: Request) {
        let mut state = self.state.lock().whole();
        state.untold = Some(request);
        state.thread = None;
        state.pace = Pace::begin();
    }

    fn answer(&self, reply: &Reply) {
        let mut state = self.state.lock().whole();
        if !reply.inside {
            state.untold = state.untold.filter(|told| told.turn != reply.turn);
            return;
        }
        // A late answer to an earlier turn is no turn that is waited for,
        // and must not hide one that is.
        if reply.turn > self.inside.load(Acquire) {
            self.inside.store(reply.turn, Release);
        }
        if let Some(thread) = state.thread.take() {
            thread.unpark();
        }
    }

    /// What has to be told again.
    fn again(&self) -> Option<Request> {
        let mut state = self.state.lock().whole();
        let untold = state.untold?;
        state.pace.due().then_some(untold)
    }
}

/// A node's part in compared locks: its guest.
pub struct Compared {
    me: NodeId,
    /// The default kind of locks.
    pub(super) kind: LockKind,
    /// Locks that this node's threads use.
    locals: RwLock<HashMap<u64, Arc<Local>>>,
    /// Managers of locks whose home this is.
    managers: RwLock<HashMap<u64, Arc<Mutex<Manager>>>>,
}

/// Finds or makes a row of a table that has a bound.
fn row<K: Hash + Eq, V: Clone>(
    table: &RwLock<HashMap<K, V>>,
    key: K,
    make: impl FnOnce() -> Result<V>,
) -> Result<V> {
    let mut table = table.write().whole();
    if let Some(known) = table.get(&key) {
        return Ok(known.clone());
    }
    if table.len() >= MAX_LOCKS {
        return Err(LockError::TooManyLocks { most: MAX_LOCKS }.into());
    }
    let made = make()?;
    table.insert(key, made.clone());
    Ok(made)
}

fn find<V: Clone>(table: &RwLock<HashMap<u64, V>>, addr: u64) -> Option<V> {
    let table = table.read().whole();
    table.get(&addr).cloned()
}

impl Compared {
    /// That of a node, where locks are of this kind unless told otherwise.
    pub fn new(me: NodeId, kind: LockKind) -> Self {
        Compared {
            me,
            kind,
            locals: RwLock::default(),
            managers: RwLock::default(),
        }
    }

    /// That of a node.
    pub(super) fn of(node: &Node) -> Result<&Compared> {
        node.guest().ok_or(Error::NoGuest)
    }

    /// A lock as this node has it.
    pub(super) fn open(&self, node: &Node, layout: Layout) -> Result<Arc<Local>> {
        let addr = layout.addr;
        row(&self.locals, addr, || {
            Ok(Arc::new(Local::new(node, layout)?))
        })
    }

    /// From now on this node manages a lock.
    pub(super) fn manage(&self, addr: u64) -> Result<()> {
        row(&self.managers, addr, || Ok(Arc::default())).map(|_| ())
    }

    fn answer(&self, addr: u64, reply: &Reply) {
        let local = find(&self.locals, addr);
        let post = local
            .as_ref()
            .and_then(|l| l.posts.get(usize::from(reply.seat.place)));
        if let Some(post) = post {
            post.answer(reply);
        }
    }

    /// Asks the manager, which is here.
    fn ask(
        &self,
        net: &dyn Net,
        tag: Tag,
        epoch: u32,
        request: &Request,
        reply: &mut dyn Receiver,
    ) {
        let Some(manager) = find(&self.managers, tag.0) else {
            return;
        };
        let told = manager.lock().whole().handle(request);
        for told in told {
            if told.seat.node == self.me {
                self.answer(tag.0, &told);
                continue;
            }
            let mut header = header(Kind::GuestTell, tag, epoch, told.seat, told.turn, self.me);
            if told.inside {
                header.status = GlobalStatus::Shared;
            }
            net.send(
                Dest::Agent(told.seat.node),
                &header,
                Body::Bytes(&NOTHING),
                reply,
            );
        }
    }

    /// Says a request to the lock's manager, wherever that is.
    fn say(&self, net: &dyn Net, tag: Tag, epoch: u32, request: &Request) {
        let manager = host(tag.home());
        if manager == Some(self.me) {
            return self.ask(net, tag, epoch, request, &mut Nobody);
        }
        let mut header = header(
            Kind::GuestAsk,
            tag,
            epoch,
            request.seat,
            request.turn,
            self.me,
        );
        header.status = request.want.map_or(GlobalStatus::Unshared, Access::status);
        if let Some(manager) = manager {
            let to = Dest::Agent(manager);
            net.send(to, &header, Body::Bytes(&NOTHING), &mut Nobody);
        }
    }
}

impl Guest for Compared {
    /// A thread admitted by that asks again, and gets the answer.
    fn gone(&self, gone: Copyset) {
        let managers = self.managers.read();
        let managers = managers.whole();
        for manager in managers.values() {
            manager.lock().whole().gone(gone);
        }
    }

    /// A message has come. Of a lock that is not known here it is dropped: who asked asks again.
    fn packet(&self, net: &dyn Net, header: &Header, _: Body<'_>, reply: &mut dyn Receiver) {
        let seat = ThreadPlace {
            node: header.requester.node,
            place: header.requester.slot,
        };
        let turn = header.seq.0;
        if header.kind == Kind::GuestTell {
            let inside = header.status != GlobalStatus::Unshared;
            return self.answer(header.tag.0, &Reply { seat, turn, inside });
        }
        let want = Access::from_status(header.status);
        let request = Request { seat, turn, want };
        self.ask(net, header.tag, header.epoch, &request, reply);
    }

    /// Tells again what was not acknowledged in time.
    fn tick(&self, net: &dyn Net, epoch: u32) {
        let locals: Vec<Arc<Local>> = {
            let locals = self.locals.read().whole();
            locals
                .values()
                .filter(|local| local.is_service())
                .cloned()
                .collect()
        };
        for local in locals {
            for untold in local.posts.iter().filter_map(Post::again) {
                self.say(net, Tag(local.layout.addr), epoch, &untold);
            }
        }
    }
}

fn header(
    kind: Kind,
    tag: Tag,
    epoch: u32,
    seat: ThreadPlace,
    turn: u64,
    sender: NodeId,
) -> Header {
    let requester = RequesterId {
        node: seat.node,
        slot: seat.place,
    };
    let header = Header::request(kind, epoch, tag, requester, Seq(turn));
    Header { sender, ..header }
}

impl Local {
    fn is_service(&self) -> bool {
        self.layout.kind == super::LockKind::Service
    }

    /// A thread of this node has something to say to the manager.
    pub(super) fn say(&self, node: &Node, request: &Request) -> Result<()> {
        let (tag, compared) = (Tag(self.layout.addr), Compared::of(node)?);
        let addr = tag.0;
        let home = node.host_of(addr).ok_or(AccessError::BadAddress { addr })?;
        if !node.is_member(home) {
            return Err(RackError::NodeLost { node: home }.into());
        }
        node.as_guest(|net, epoch| compared.say(net, tag, epoch, request))?;
        Ok(())
    }
}

/// Gives each node of a rack its part in compared locks, which are of this kind unless told
/// otherwise: for
/// [`rackmem::Builder::guests`].
pub fn guests(kind: LockKind) -> impl Fn(u16) -> Arc<dyn Guest> + Send + Sync + 'static {
    move |node| Arc::new(Compared::new(node, kind))
}
