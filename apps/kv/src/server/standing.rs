//! Commands that stand aside until a key changes: what BLPOP does while its list is empty.
//!
//! A handler that finds nothing to do answers [`crate::command::Failure::Block`]. Its connection
//! then takes a place in the queue of every key that it names, lets the node watch their buckets,
//! and runs the command again, so that a change in between is not missed; and again whenever one of
//! the keys has changed, until the command answers something or its time is over. Other connections
//! go on meanwhile; what follows on its own waits.
//!
//! A change calls the first in the key's queue, who passes it on when it has looked. So the clients
//! of a node are served in the order in which they came.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::hub::{Attention, Hub};
use super::mail::{self, Name, Wakes};
use super::registry::Client;
use super::session::Session;
use super::shared::{Desk, Shared, Stats};
use crate::command::dispatch::{again, write_failure};
use crate::command::{Failure, Wait};
use crate::memory::Memory;
use crate::resp::args::{Args, OwnedArgs};
use crate::store::Db;

/// How often a command that stands aside is run in any case: a node that has died may have taken
/// along that its bucket is watched.
const LOOK: Duration = Duration::from_secs(1);

/// Who waits for a key, in the order in which they came.
#[derive(Clone)]
struct Waiter {
    client: Arc<Client>,
    /// See [`Wait::takes`], and by which command.
    takes: Option<Arc<[u8]>>,
}

/// The queues of a node.
#[derive(Default)]
pub(crate) struct Queues(Mutex<HashMap<Name, VecDeque<Waiter>>>);

impl Queues {
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, VecDeque<Waiter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A key has changed. Whether somebody waits for that.
    pub fn changed(&self, desks: &[Desk], name: &Name) -> bool {
        let queues = self.lock();
        let first = queues.get(name).and_then(VecDeque::front);
        first.inspect(|first| call(desks, first, name)).is_some()
    }

    /// Keys of this database may have changed; `None`: of any.
    pub fn all(&self, desks: &[Desk], db: Option<u8>) {
        let queues = self.lock();
        let queues = queues
            .iter()
            .filter(|((number, _), _)| db.is_none_or(|db| *number == db));
        let clients: Vec<_> = queues
            .flat_map(|(_, queue)| queue.iter().cloned())
            .collect();
        for waiter in clients {
            mail::wake(desks, &waiter.client, |wakes| wakes.look = true);
        }
    }

    /// Whether somebody waits for one of the keys that `is_one` names.
    pub fn any(&self, is_one: impl Fn(&Name) -> bool) -> bool {
        self.lock().keys().any(is_one)
    }

    /// A client has looked at a key that has changed: now the next may.
    fn pass(&self, desks: &[Desk], client: &Client, name: &Name, served: bool) {
        if let Some(queue) = self.lock().get(name) {
            pass_in(queue, desks, client, name, served);
        }
    }

    fn join(&self, name: Name, waiter: Waiter) {
        self.lock().entry(name).or_default().push_back(waiter);
    }

    /// What it was called for and has not looked at is for the next.
    fn leave(&self, desks: &[Desk], client: &Client, name: &Name) {
        let mut queues = self.lock();
        if let Some(queue) = queues.get_mut(name) {
            // Nobody calls it any more: who does has this lock.
            if client.mail.take_baton(name) {
                pass_in(queue, desks, client, name, true);
            }
            queue.retain(|waiter| waiter.client.id != client.id);
            if queue.is_empty() {
                queues.remove(name);
            }
        }
    }
}

fn pass_in(queue: &VecDeque<Waiter>, desks: &[Desk], client: &Client, name: &Name, served: bool) {
    let Some(at) = queue
        .iter()
        .position(|waiter| waiter.client.id == client.id)
    else {
        return;
    };
    let in_vain = queue[at].takes.as_ref().filter(|_| !served);
    let may = |waiter: &&Waiter| in_vain.is_none() || waiter.takes.as_ref() != in_vain;
    let next = queue.iter().skip(at + 1).find(may);
    next.inspect(|next| call(desks, next, name));
}

fn call(desks: &[Desk], waiter: &Waiter, name: &Name) {
    mail::wake(desks, &waiter.client, |wakes| {
        if !wakes.batons.contains(name) {
            wakes.batons.push(name.clone());
        }
    });
}

/// A place in the queues of keys, until it is dropped.
struct Place {
    hub: Arc<Hub>,
    client: Arc<Client>,
    names: Vec<Name>,
}

impl Place {
    fn new(
        hub: &Arc<Hub>,
        client: &Arc<Client>,
        names: Vec<Name>,
        takes: Option<Arc<[u8]>>,
    ) -> Self {
        client.activity.blocked.store(true, Relaxed);
        for name in &names {
            let waiter = Waiter {
                client: client.clone(),
                takes: takes.clone(),
            };
            hub.queues.join(name.clone(), waiter);
        }
        Place {
            hub: hub.clone(),
            client: client.clone(),
            names,
        }
    }

    fn pass(&self, wakes: &Wakes, served: bool) {
        for name in &wakes.batons {
            self.hub
                .queues
                .pass(&self.hub.desks, &self.client, name, served);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for name in &self.names {
            self.hub.queues.leave(&self.hub.desks, &self.client, name);
        }
        drop(self.client.mail.wakes());
        self.client.activity.blocked.store(false, Relaxed);
    }
}

/// A command that stands aside.
pub(crate) struct Standing {
    args: OwnedArgs,
    db: u8,
    until: Option<Instant>,
    look: Instant,
    wait: Wait,
    place: Place,
    _attention: Attention,
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing")
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

impl Standing {
    /// When it is to be run again, if nothing happens before.
    pub fn due(&self) -> Instant {
        self.until.map_or(self.look, |until| until.min(self.look))
    }
}

/// Lets a command stand aside that has found nothing to do.
pub(crate) fn stand<M: Memory>(
    shared: &Shared<M>,
    session: &mut Session,
    args: Args<'_>,
    wait: Wait,
) -> Result<(), Failure> {
    let Some(db) = shared.store.db(session.db) else {
        return Err("ERR DB index is out of range".into());
    };
    let names: Vec<Name> = wait
        .keys
        .iter()
        .map(|key| (session.db, key.clone()))
        .collect();
    let takes = wait.takes.then(|| args.at(0).to_ascii_lowercase().into());
    let attention = shared.hub.attend()?;
    let place = Place::new(&shared.hub, &session.client, names, takes);
    watch(db, &wait)?;
    let now = Instant::now();
    let standing = Standing {
        args: OwnedArgs::with(args, &wait.words),
        db: session.db,
        until: wait.timeout.and_then(|timeout| now.checked_add(timeout)),
        // At once: the key may have changed before it was watched.
        look: now,
        wait,
        place,
        _attention: attention,
    };
    session.standing = Some(Box::new(standing));
    Ok(())
}

fn watch<M: Memory>(db: Db<'_, M>, wait: &Wait) -> Result<(), Failure> {
    for key in &wait.keys {
        db.watch_changes(key, false)?;
    }
    Ok(())
}

/// How a look at a command that stands aside ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// It goes on to wait.
    Waits,
    Answered,
}

/// Runs the command that stands aside again, if there is a reason.
pub(crate) fn resume<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    out: &mut Vec<u8>,
) -> Resumed {
    let Some(mut standing) = session.standing.take() else {
        return Resumed::Answered;
    };
    let (wakes, now) = (session.client.mail.wakes(), Instant::now());
    if let Some(error) = wakes.unblock {
        standing.place.pass(&wakes, true);
        let failure = match error {
            true => "UNBLOCKED client unblocked via CLIENT UNBLOCK".into(),
            false => Failure::Block(standing.wait.clone()),
        };
        write_failure(&failure, session, stats, out);
        return Resumed::Answered;
    }
    if wakes.batons.is_empty() && !wakes.look && now < standing.due() {
        session.standing = Some(standing);
        return Resumed::Waits;
    }
    let answered = again(shared, stats, session, standing.args.args(), out);
    standing.place.pass(&wakes, answered);
    if answered {
        return Resumed::Answered;
    }
    if standing.until.is_some_and(|until| now >= until) {
        write_failure(&Failure::Block(standing.wait.clone()), session, stats, out);
        return Resumed::Answered;
    }
    if now >= standing.look {
        standing.look = now + LOOK;
        // Where it fails, the next look finds out.
        let _ = shared
            .store
            .db(standing.db)
            .map(|db| watch(db, &standing.wait));
    }
    session.standing = Some(standing);
    Resumed::Waits
}
