//! Commands that are sent to where their key is, instead of fetching the key.
//!
//! A bucket that goes round between nodes costs a fetch for almost every command, and each fetch
//! wakes several threads. Then it is cheaper to send the command to the server of the bucket's
//! *home*, the node whose memory its lock is: it runs it under the same locks as the commands of
//! its own clients, so what anybody sees of it is the same. The server here has checked that its
//! client may.
//!
//! - `heat.rs`: whether a bucket's commands are sent, by what they have cost here;
//! - `uses.rs`: at the home, whether one of those who send had better fetch the bucket;
//! - `links.rs`: the connections to other servers, one for each worker here and node there;
//! - `link.rs`: one of them;
//! - `door.rs`: where those come in, and how their commands run;
//! - `frame.rs`: what goes over them.
//!
//! Where each node's door is stands in the store, in the database that no client sees, with a word
//! that a link has to say: so only members of the rack come in.
//!
//! A connection sends one command at a time and waits for its reply, as for a lock; others go on.

pub(super) mod door;
mod frame;
mod heat;
mod link;
mod links;
mod uses;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mio::Registry;

use self::frame::{Flags, Hello};
use self::heat::{Manner, Recent, Table};
use self::links::Links;
use self::uses::Uses;
use super::session::{Session, Speech};
use super::shared::{Shared, Stats};
use crate::command::dispatch::{coded, keep_slow};
use crate::command::key_words::KeyWords;
use crate::command::{Command, Flags as Is};
use crate::error::Result;
use crate::memory::Memory;
use crate::resp::args::{Args, OwnedArgs};
use crate::resp::reply::Reply;
use crate::store::{Db, Store};

pub(crate) use self::link::{Answer, Calls};
pub(crate) use self::links::node_of;

/// Commands that run where their client is, whatever keys they have: one is about two databases,
/// the other sets what only this node knows of a key.
const STAY: [&str; 2] = ["move", "restore"];
/// Turns of a worker after which it looks at links over which nothing is under way.
const QUIET: u32 = 64;
/// What a client hears of a write of which nobody knows whether it has run.
const LOST: &str = "the server that ran the command was lost: it may have been done";

/// One worker's part.
struct Desk {
    /// Held for no longer than it takes to copy a command, or to write to a socket.
    links: Mutex<Links>,
    recent: Recent,
    /// Something waits to be sent.
    unsent: AtomicBool,
    /// A link is on its way, or has commands under way.
    awaits: AtomicBool,
    /// Turns of the worker without either.
    quiet: AtomicU32,
}

/// See the module.
pub(crate) struct Shipping {
    me: u16,
    store: u64,
    door: SocketAddr,
    /// What a link that comes in has to say.
    token: u128,
    heat: Table,
    uses: Uses,
    desks: Vec<Desk>,
    /// Links that have come in.
    inside: AtomicUsize,
    /// Commands that others have sent here, ever.
    served: AtomicU32,
}

/// A command that was sent, for its connection.
#[derive(Debug)]
pub(crate) struct Shipped {
    position: usize,
    args: OwnedArgs,
    bucket: usize,
    reads: bool,
    began: Instant,
}

/// A command that can run anywhere in the rack alike: what it tells of its worker and bucket.
pub(crate) struct Asked<'a> {
    shipping: &'a Shipping,
    worker: usize,
    writes: bool,
    /// Of its worker, before it.
    manner: Manner,
    /// Its bucket, once somebody had to know.
    bucket: Option<usize>,
}

/// What a connection is to do about the command that it has sent.
pub(crate) enum Took {
    Waits,
    Answered,
    /// It has not run, or has changed nothing: these are its words.
    Here(OwnedArgs),
}

/// Whether such a command can run anywhere in the rack alike, if it has one key: it is nothing of
/// the connection or the server.
fn runs_anywhere<M: Memory>(command: &Command<M>) -> bool {
    let others = Is::NOSCRIPT
        .and(Is::CONTROL)
        .and(Is::WHOLE)
        .and(Is::FLUSH)
        .and(Is::ADMIN)
        .and(Is::CONNECTION);
    matches!(command.keys, KeyWords::Fixed { first: 1, .. })
        && command.flags.has(Is::READ.and(Is::WRITE))
        && !command.flags.has(others)
        && !STAY.contains(&command.name)
}

/// The key of one that has one.
fn only_key<'a, M: Memory>(command: &Command<M>, args: Args<'a>) -> Option<&'a [u8]> {
    args.get(command.keys.only(args)?)
}

/// What others see of such a client's commands, they see where these run.
fn sends_nothing<M: Memory>(shared: &Shared<M>, session: &Session) -> bool {
    session.queue.is_some()
        || !session.watched.is_empty()
        || session.tracked.is_some()
        || session.monitor.is_some()
        || session.busy.is_some()
        || session.speech != Speech::On
        || shared.hub.monitors.any()
}

/// Where a node's door is said to be.
fn name(node: u16) -> Vec<u8> {
    format!("link:{node}").into_bytes()
}

impl Shipping {
    /// The server of this node has a door at `door`; `registries`: of its workers. The others are
    /// told if they can be: who is to know may be away now, and the tick tells them again.
    pub fn new<M: Memory>(store: &Store<M>, door: SocketAddr, registries: Vec<Registry>) -> Self {
        // Keys that the system draws for its maps: what nobody can guess.
        let word = || u128::from(RandomState::new().hash_one(door));
        let token = word() << 64 | word();
        let (me, nodes) = (store.memory().id(), store.memory().nodes());
        let desk = |registry| Desk {
            links: Mutex::new(Links::new(registry, nodes)),
            recent: Recent::default(),
            unsent: AtomicBool::new(false),
            awaits: AtomicBool::new(false),
            quiet: AtomicU32::new(0),
        };
        let shipping = Self {
            me,
            store: store.identity(),
            door,
            token,
            heat: Table::new(),
            uses: Uses::new(),
            desks: registries.into_iter().map(desk).collect(),
            inside: AtomicUsize::new(0),
            served: AtomicU32::new(0),
        };
        let _ = shipping.announce(store);
        shipping
    }

    /// Says where the door is, if that is not said: what was may have died with a node.
    ///
    /// # Errors
    /// The store's.
    pub fn announce<M: Memory>(&self, store: &Store<M>) -> Result<()> {
        let (mut known, name) = (Vec::new(), name(self.me));
        let said = format!("{} {:032x}", self.door, self.token);
        let there = store.internal().get(&name, &mut known)?;
        match there && known == said.as_bytes() {
            true => Ok(()),
            false => store.internal().set(&name, said.as_bytes()),
        }
    }

    /// Buckets whose commands are sent.
    pub fn buckets(&self) -> usize {
        self.heat.hot()
    }

    fn links(&self, worker: usize) -> MutexGuard<'_, Links> {
        let links = self.desks[worker].links.lock();
        links.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a thread that has not the helm is to wake the one that has.
    pub fn is_behind(&self, worker: usize) -> bool {
        self.desks[worker].unsent.load(Relaxed)
    }

    /// Sends what commands of a worker have left. Connections that are to have a turn.
    pub fn flush(&self, worker: usize, stats: &Stats, is_member: impl Fn(u16) -> bool) -> Calls {
        let (mut calls, desk) = (Calls::new(), &self.desks[worker]);
        // Most turns of most workers have nothing to do with links.
        let unsent = desk.unsent.load(Relaxed) && desk.unsent.swap(false, Relaxed);
        if !unsent && !desk.awaits.load(Relaxed) {
            let quiet = desk.quiet.load(Relaxed).wrapping_add(1);
            desk.quiet.store(quiet, Relaxed);
            if !quiet.is_multiple_of(QUIET) {
                return calls;
            }
        }
        let mut links = self.links(worker);
        links.flush(stats, is_member, &mut calls);
        desk.awaits.store(links.await_something(), Relaxed);
        calls
    }

    /// Something has happened to a worker's link. The same.
    pub fn event(&self, worker: usize, node: u16, stats: &Stats) -> Calls {
        let mut calls = Calls::new();
        self.links(worker).event(node, stats, &mut calls);
        calls
    }

    /// Connects a worker to a node, if nobody does.
    #[cold]
    fn connect<M: Memory>(&self, store: &Store<M>, worker: usize, node: u16) {
        if !self.links(worker).wants(node) {
            return;
        }
        let mut said = Vec::new();
        // Where it cannot be read now, commands run here, and somebody looks again.
        let known = matches!(store.internal().get(&name(node), &mut said), Ok(true));
        let told = || {
            let (door, token) = std::str::from_utf8(&said).ok()?.split_once(' ')?;
            let token = u128::from_str_radix(token, 16).ok()?;
            Some((door.parse::<SocketAddr>().ok()?, token))
        };
        let told = known.then(told).flatten();
        let hello = Hello {
            store: self.store,
            from: self.me,
            to: node,
            token: told.map_or(0, |(_, token)| token),
        };
        let door = told.map(|(door, _)| door);
        let mut links = self.links(worker);
        links.connect(node, door, &hello);
        self.desks[worker].awaits.store(true, Relaxed);
    }
}

/// A command that may be sent, or else is to be counted; `None`: it can only run here.
#[inline]
pub(crate) fn asked<'a, M: Memory>(
    shared: &'a Shared<M>,
    session: &Session,
    command: &Command<M>,
) -> Option<Asked<'a>> {
    let shipping = shared.shipping.as_ref()?;
    let (worker, _) = *session.client.seat.get()?;
    let asked = || Asked {
        shipping,
        worker,
        writes: command.flags.has(Is::WRITE),
        manner: shipping.desks[worker].recent.manner(),
        bucket: None,
    };
    runs_anywhere(command).then(asked)
}

impl Asked<'_> {
    /// Whether it is a read of a worker that hardly writes: such a one is never sent.
    fn stays(&self) -> bool {
        !self.writes && self.manner.is(Manner::HARDLY_WRITES)
    }

    /// Whether new buckets are sent to at once.
    fn sends_new(&self) -> bool {
        self.manner.is(Manner::MANY_WAIT) && !self.manner.is(Manner::HARDLY_WRITES)
    }

    /// Sends the command to its bucket's home if that is better. Whether it has.
    #[inline]
    pub fn send<M: Memory>(
        &mut self,
        shared: &Shared<M>,
        session: &mut Session,
        db: Db<'_, M>,
        position: usize,
        args: Args<'_>,
    ) -> bool {
        let heat = &self.shipping.heat;
        // Where nothing can come of it, nothing is looked up.
        if self.stays() || heat.hot() == 0 && !self.sends_new() {
            return false;
        }
        let key = only_key(shared.commands.at(position), args);
        self.bucket = key.and_then(|key| db.bucket_of(key));
        let Some(bucket) = self.bucket else {
            return false;
        };
        let new = self.sends_new() && heat.is_new(bucket);
        let may = (new || heat.is_hot(bucket)) && frame::has_room(args);
        may && !sends_nothing(shared, session)
            && self.send_to_home(shared, session, (bucket, new), position, args)
    }

    fn send_to_home<M: Memory>(
        &self,
        shared: &Shared<M>,
        session: &mut Session,
        (bucket, new): (usize, bool),
        position: usize,
        args: Args<'_>,
    ) -> bool {
        let (heat, desk) = (&self.shipping.heat, &self.shipping.desks[self.worker]);
        let Some(home) = shared.store.home_of(bucket) else {
            return false;
        };
        if home == self.shipping.me {
            heat.cool(bucket);
            return false;
        }
        let mut links = self.shipping.links(self.worker);
        if !links.takes(home) {
            drop(links);
            self.shipping.connect(&shared.store, self.worker, home);
            return false;
        }
        if new {
            heat.heat(bucket);
        } else if desk.recent.tries(heat, bucket) {
            return false;
        }
        let how = (session.db, session.protocol);
        links.send(home, &session.client, how, args);
        desk.unsent.store(true, Relaxed);
        drop(links);
        desk.recent.count(true, self.writes, &self.shipping.served);
        session.shipped = Some(Box::new(Shipped {
            position,
            args: args.into(),
            bucket,
            reads: !self.writes,
            began: Instant::now(),
        }));
        true
    }

    /// It has run here, and has waited for other nodes or not.
    #[inline]
    pub fn ran<M: Memory>(self, command: &Command<M>, db: Db<'_, M>, args: Args<'_>, waited: bool) {
        let shipping = self.shipping;
        let recent = &shipping.desks[self.worker].recent;
        recent.count(waited, self.writes, &shipping.served);
        let serves = recent.serves(&shipping.served);
        if self.stays() && !waited && !serves {
            return;
        }
        let look_up = || db.bucket_of(only_key(command, args)?);
        let Some(bucket) = self.bucket.or_else(look_up) else {
            return;
        };
        match self.stays() {
            true if waited => shipping.heat.fetched(bucket),
            true => {}
            false => {
                let many = self.manner.is(Manner::MANY_WAIT);
                shipping.heat.ran(bucket, waited, many);
            }
        }
        if serves {
            shipping.uses.note(bucket, shipping.me, !self.writes);
        }
    }
}

/// Takes what has become of the command that a connection has sent.
pub(crate) fn take<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    out: &mut Vec<u8>,
) -> Took {
    let Some(shipped) = session.shipped.take() else {
        return Took::Answered;
    };
    match session.client.mail.take_answer() {
        None => {
            session.shipped = Some(shipped);
            return Took::Waits;
        }
        Some(Answer::NotRun) => {
            // Nor would the next ones.
            if let Some(shipping) = shared.shipping.as_ref() {
                shipping.heat.bring(shipped.bucket);
            }
            return Took::Here(shipped.args);
        }
        Some(Answer::Unknown) if shipped.reads => return Took::Here(shipped.args),
        Some(Answer::Unknown) => {
            Stats::add(&stats.shipped_unknown, 1);
            count(shared, stats, session, &shipped, true);
            Stats::add(&stats.errors, 1);
            stats.counts.error(b"NODELOST");
            let protocol = session.protocol;
            Reply { out, protocol }.error("NODELOST", LOST);
        }
        Some(Answer::Said(flags, reply)) => {
            let failed = flags.has(Flags::FAILED);
            Stats::add(&stats.shipped, 1);
            Stats::add(&stats.hits, u64::from(flags.has(Flags::HIT)));
            Stats::add(&stats.misses, u64::from(flags.has(Flags::MISS)));
            count(shared, stats, session, &shipped, failed);
            if failed {
                Stats::add(&stats.errors, 1);
                stats.counts.error(coded(reply.get(1..).unwrap_or(&[])).0);
            }
            if let Some(shipping) = shared.shipping.as_ref()
                && flags.has(Flags::BRING)
            {
                shipping.heat.bring(shipped.bucket);
            }
            out.extend_from_slice(&reply);
        }
    }
    Took::Answered
}

/// Counts a command that another server has run as one that has run here.
fn count<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &Session,
    shipped: &Shipped,
    failed: bool,
) {
    let args = shipped.args.args();
    let catalog = shared.control.users.catalog();
    let unit = catalog.unit(shipped.position, args);
    session.client.activity.unit.store(unit as u32, Relaxed);
    let took = shipped.began.elapsed();
    stats.counts.ran(unit, catalog.units.len(), 1, took, failed);
    let command = shared.commands.at(shipped.position);
    keep_slow(shared, session, command, args, took);
}

#[cfg(test)]
mod tests {
    use super::name;
    use crate::memory::HeapMemory;
    use crate::{Options, Server, ServerConfig, Store};
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::{Duration, Instant};

    #[test]
    fn where_a_door_is_is_said_again_when_that_is_lost() {
        let options = Options {
            buckets: 4,
            ..Options::default()
        };
        let store = Store::open(HeapMemory::new(256, 1 << 20, 2), options).unwrap();
        let config = ServerConfig {
            addr: (Ipv4Addr::LOCALHOST, 0).into(),
            links: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ..ServerConfig::default()
        };
        let _server = Server::bind(store.clone(), config).unwrap();
        let said = || {
            let mut said = Vec::new();
            let there = store.internal().get(&name(0), &mut said).unwrap();
            there.then_some(said)
        };
        let first = said();
        assert!(first.is_some());
        assert!(store.internal().remove(&name(0)).unwrap());
        let began = Instant::now();
        while said() != first {
            assert!(began.elapsed() < Duration::from_secs(60), "it is not said");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
