//! A worker's connections, and how they come and go.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};

use super::chores::Chores;
use super::connection::{Connection, Next};
use super::shared::{Arrival, Shared, Stats};
use super::shipping::node_of;
use super::tls::Socket;
use crate::memory::Memory;

/// The worker's own waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// The listener.
pub(crate) const LISTENER: Token = Token(usize::MAX - 1);
/// The listener that speaks TLS, if there is another.
pub(crate) const SECURE: Token = Token(usize::MAX - 2);
/// The listener for other servers' commands, if there is one.
pub(crate) const DOOR: Token = Token(usize::MAX - 3);
/// How often a worker looks up with nothing to do.
const TICK: Duration = Duration::from_millis(100);
/// How often connections are looked at that may have been quiet for too long.
const LOOK: Duration = Duration::from_secs(1);
/// How often a worker looks up while a sweep is under way, which then takes a tenth of its time,
/// a little at once.
const SWEEP_TICK: Duration = Duration::from_millis(10);

/// Where clients come in.
pub(crate) struct Listener {
    pub socket: TcpListener,
    /// They speak TLS.
    pub secure: bool,
    /// They are other servers.
    pub door: bool,
}

/// What happened to a connection that has its turn.
struct Missed {
    place: usize,
    readable: bool,
    ended: bool,
}

/// The connections of a worker. One that has its turn is lent out meanwhile.
pub(crate) struct Seats<M: Memory> {
    shared: Arc<Shared<M>>,
    number: usize,
    registry: Registry,
    listeners: Vec<Listener>,
    connections: Vec<Option<Box<Connection>>>,
    vacant: Vec<usize>,
    /// Connections of which events were noted, for a turn.
    pub ready: VecDeque<usize>,
    /// Connections that want another turn.
    pub turns: VecDeque<usize>,
    /// Connections that have mail, by place and number.
    pub calls: VecDeque<(usize, u64)>,
    /// Links of which events were noted, by the nodes that they go to.
    pub links: Vec<u16>,
    /// Connections that have ended: what they leave behind may have to wait for the rack.
    pub ended: Vec<Connection>,
    /// Connections that have their turn: one a thread, and one more in the middle of a script.
    lent: Vec<usize>,
    /// No more than one for each of them.
    missed: Vec<Missed>,
    /// Which worker gets the next connection.
    next: usize,
    /// `None` while a thread does them.
    chores: Option<Box<Chores>>,
    ticked: Instant,
    /// Connections whose next command waits for the end of a pause.
    paused: BTreeSet<usize>,
    looked: Instant,
    /// When connections are to have a turn in any case, and their places.
    due: BTreeSet<(Instant, usize)>,
    /// The same by place.
    scheduled: HashMap<usize, Instant>,
}

impl<M: Memory> Seats<M> {
    pub fn new(
        shared: Arc<Shared<M>>,
        number: usize,
        registry: &Registry,
        listeners: Vec<Listener>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            chores: Some(Box::new(Chores::new(!listeners.is_empty()))),
            shared,
            number,
            registry: registry.try_clone()?,
            listeners,
            connections: Vec::new(),
            vacant: Vec::new(),
            ready: VecDeque::new(),
            turns: VecDeque::new(),
            calls: VecDeque::new(),
            links: Vec::new(),
            ended: Vec::new(),
            lent: Vec::new(),
            missed: Vec::new(),
            next: 0,
            ticked: Instant::now(),
            paused: BTreeSet::new(),
            looked: Instant::now(),
            due: BTreeSet::new(),
            scheduled: HashMap::new(),
        })
    }

    /// Takes note of an event; its connection is to have a turn.
    pub fn note(&mut self, event: &Event) {
        let place = match event.token() {
            WAKER => return self.wake(),
            LISTENER | SECURE | DOOR => return self.accept(),
            token => match node_of(token) {
                Some(node) => return self.links.push(node),
                None => token.0,
            },
        };
        let readable = event.is_readable();
        let ended = event.is_read_closed() || event.is_error();
        match self.connections.get_mut(place) {
            Some(Some(connection)) => {
                connection.notice(readable, ended);
                self.ready.push_back(place);
            }
            _ => self.miss(place, readable, ended),
        }
    }

    /// How long the worker may sleep without a request.
    pub fn rest(&self) -> Duration {
        if !(self.turns.is_empty() && self.ready.is_empty() && self.calls.is_empty()) {
            return Duration::ZERO;
        }
        let rest = self.pace();
        let due = self
            .due
            .first()
            .map(|(at, _)| at.saturating_duration_since(Instant::now()));
        due.map_or(rest, |due| rest.min(due))
    }

    /// How often it looks up.
    fn pace(&self) -> Duration {
        match self.chores.as_ref().is_some_and(|chores| chores.go_on()) {
            true => SWEEP_TICK,
            false => TICK,
        }
    }

    fn stats(&self) -> &Stats {
        &self.shared.desks[self.number].stats[0]
    }

    /// If it has its turn, it is told when it is back.
    fn miss(&mut self, place: usize, readable: bool, ended: bool) {
        if !self.lent.contains(&place) {
            return; // its connection has ended
        }
        match self.missed.iter_mut().find(|missed| missed.place == place) {
            Some(missed) => {
                missed.readable |= readable;
                missed.ended |= ended;
            }
            None => self.missed.push(Missed {
                place,
                readable,
                ended,
            }),
        }
    }

    /// Whose time has come.
    pub fn overdue(&self) -> Vec<usize> {
        let now = Instant::now();
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        due.map(|(_, place)| *place).collect()
    }

    /// The next of those that have mail.
    pub fn next_called(&mut self) -> Option<usize> {
        loop {
            let (place, id) = self.calls.pop_front()?;
            if self.is_called(place, id) {
                return Some(place);
            }
        }
    }

    /// Whether a connection that has mail is to have a turn. One that is killed ends.
    fn is_called(&mut self, place: usize, id: u64) -> bool {
        let connection = self.connections.get(place).and_then(Option::as_ref);
        match connection.map(|connection| connection.client()) {
            Some(client) if client.id == id && client.killed() => self.close(place),
            Some(client) if client.id == id => return true,
            Some(_) => {}
            // If it has its turn, it has another one.
            None => self.miss(place, false, false),
        }
        false
    }

    /// Lends a connection out for its turn.
    pub fn lend(&mut self, place: usize) -> Option<Box<Connection>> {
        let connection = self.connections.get_mut(place)?.take()?;
        self.lent.push(place);
        let due = self.scheduled.remove(&place);
        due.map(|at| self.due.remove(&(at, place)));
        let held = connection.held() as u64;
        Stats::add(&self.stats().held, 0u64.wrapping_sub(held));
        Some(connection)
    }

    /// It has had its turn. Says whether something is to be done about it before long.
    pub fn take_back(
        &mut self,
        place: usize,
        mut connection: Box<Connection>,
        mut next: Next,
    ) -> bool {
        self.lent.retain(|lent| *lent != place);
        Stats::add(&self.stats().held, connection.held() as u64);
        if let Some(at) = self.missed.iter().position(|missed| missed.place == place) {
            let missed = self.missed.swap_remove(at);
            connection.notice(missed.readable, missed.ended);
            if next == Next::Event {
                next = Next::Turn;
            }
        }
        if connection.is_paused() {
            self.paused.insert(place);
        }
        let due = connection.due().map(|due| {
            let now = Instant::now();
            // One that is overdue has no room for its reply.
            if due <= now { now + SWEEP_TICK } else { due }
        });
        if connection.client().killed() {
            next = Next::Close;
        }
        self.connections[place] = Some(connection);
        if let Some(at) = due {
            self.scheduled.insert(place, at);
            self.due.insert((at, place));
        }
        match next {
            Next::Event => {}
            Next::Turn => self.want_turn(place),
            Next::Close => self.close(place),
        }
        next == Next::Turn || due.is_some()
    }

    fn want_turn(&mut self, place: usize) {
        if !self.turns.contains(&place) {
            self.turns.push_back(place);
        }
    }

    fn close(&mut self, place: usize) {
        if let Some(mut connection) = self.connections.get_mut(place).and_then(Option::take) {
            let due = self.scheduled.remove(&place);
            due.map(|at| self.due.remove(&(at, place)));
            // The connection may already be gone; then there is nothing to undo.
            let _ = self.registry.deregister(connection.socket().tcp());
            connection.socket().end();
            Stats::add(
                &self.stats().held,
                0u64.wrapping_sub(connection.held() as u64),
            );
            self.forget(connection.client().id, connection.is_link());
            self.vacant.push(place);
            self.ended.push(*connection);
        }
    }

    /// Another thread wants something: connections to take over, or to end.
    fn wake(&mut self) {
        let arrivals = {
            let desk = &self.shared.desks[self.number];
            std::mem::take(&mut *desk.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
        };
        for arrival in arrivals {
            self.welcome(arrival);
        }
        let killed = |c: &Option<Box<Connection>>| c.as_ref().is_some_and(|c| c.client().killed());
        let doomed: Vec<usize> = (0..self.connections.len())
            .filter(|i| killed(&self.connections[*i]))
            .collect();
        for place in doomed {
            self.close(place);
        }
    }

    /// Takes all connections that wait at the listener.
    fn accept(&mut self) {
        for i in 0..self.listeners.len() {
            let Listener { secure, door, .. } = self.listeners[i];
            loop {
                match self.listeners[i].socket.accept() {
                    Ok((stream, _)) if door => self.let_in(stream),
                    Ok((stream, _)) => self.assign(stream, secure),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // Nothing left, or no descriptors left: the tick tries again.
                    Err(_) => break,
                }
            }
        }
    }

    fn assign(&mut self, mut stream: TcpStream, secure: bool) {
        let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else {
            return; // gone already
        };
        let Some(client) =
            self.shared
                .registry
                .add(peer, local, self.shared.control.settings.max_clients())
        else {
            Stats::add(&self.stats().rejected, 1);
            // A courtesy: the connection ends either way.
            if !secure {
                let _ = stream.write(b"-ERR max number of clients reached\r\n");
            }
            return;
        };
        Stats::add(&self.stats().connections, 1);
        // Only costs latency when it fails.
        let _ = stream.set_nodelay(true);
        client
            .activity
            .fd
            .store(stream.as_raw_fd(), Ordering::Relaxed);
        let secure = secure.then(|| self.shared.tls.clone()).flatten();
        let Ok(socket) = Socket::new(stream, secure) else {
            self.shared.registry.remove(client.id);
            return;
        };
        self.hand_out(Arrival {
            socket,
            client,
            link: false,
        });
    }

    /// Another server wants to send commands.
    fn let_in(&mut self, stream: TcpStream) {
        let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else {
            return; // gone already
        };
        let Some(shipping) = self.shared.shipping.as_ref().filter(|all| all.admit()) else {
            return Stats::add(&self.stats().rejected, 1);
        };
        // Only costs latency when it fails.
        let _ = stream.set_nodelay(true);
        let client = self.shared.registry.unlisted(peer, local);
        let Ok(socket) = Socket::new(stream, None) else {
            return shipping.gone();
        };
        self.hand_out(Arrival {
            socket,
            client,
            link: true,
        });
    }

    /// The workers get connections in turns.
    fn hand_out(&mut self, arrival: Arrival) {
        let worker = self.next % self.shared.desks.len();
        self.next = worker + 1;
        if worker == self.number {
            return self.welcome(arrival);
        }
        let desk = &self.shared.desks[worker];
        desk.arrivals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(arrival);
        // If it fails, the worker finds the arrival at its next tick.
        let _ = desk.waker.wake();
    }

    fn welcome(&mut self, arrival: Arrival) {
        let Arrival {
            mut socket,
            client,
            link,
        } = arrival;
        let place = self.vacant.pop().unwrap_or(self.connections.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self
            .registry
            .register(socket.tcp(), Token(place), interest)
            .is_err()
        {
            self.forget(client.id, link);
            self.vacant.push(place);
            return;
        }
        let identity = self.shared.control.users.newcomer();
        // A client has one seat: it was none until now.
        let _ = client.seat.set((self.number, place));
        let new = match link {
            true => Connection::link,
            false => Connection::new,
        };
        let connection = Box::new(new(socket, client, identity));
        if place == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[place] = Some(connection);
        self.want_turn(place);
    }

    /// A connection is gone.
    fn forget(&self, id: u64, link: bool) {
        self.shared.registry.remove(id);
        if let Some(shipping) = self.shared.shipping.as_ref().filter(|_| link) {
            shipping.gone();
        }
    }

    /// Connections that a pause holds have a turn, in case it is over.
    fn resume(&mut self) {
        for place in std::mem::take(&mut self.paused) {
            self.want_turn(place);
        }
    }

    /// Ends connections that have sent nothing for too long.
    fn end_idle(&mut self) {
        let limit = Duration::from_secs(self.shared.control.settings.timeout());
        if limit.is_zero() && self.shared.shipping.is_none() {
            return;
        }
        let late = |connection: &Option<Box<Connection>>| {
            connection.as_ref().is_some_and(|connection| {
                if connection.is_link() || limit.is_zero() {
                    return connection.is_stranger();
                }
                let client = connection.client();
                let waits = client.activity.blocked.load(Ordering::Relaxed);
                client.idle() > limit && !waits && !client.activity.subscribes()
            })
        };
        let idle: Vec<usize> = (0..self.connections.len())
            .filter(|i| late(&self.connections[*i]))
            .collect();
        for place in idle {
            self.close(place);
        }
    }

    /// What is done now and then; what there is besides is for the caller to do, who brings it
    /// back.
    pub fn tick(&mut self) -> Option<Box<Chores>> {
        if self.ticked.elapsed() < self.pace() {
            return None;
        }
        self.ticked = Instant::now();
        self.wake();
        self.accept();
        self.resume();
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.end_idle();
        }
        self.chores.take()
    }

    /// They have been done.
    pub fn done(&mut self, chores: Box<Chores>) {
        self.chores = Some(chores);
    }
}

impl<M: Memory> Drop for Seats<M> {
    fn drop(&mut self) {
        for connection in self.connections.iter_mut().flatten() {
            connection.say_bye();
            self.shared.registry.remove(connection.client().id);
        }
    }
}
