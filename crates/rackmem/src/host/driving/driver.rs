//! The thread that drives futures.

use super::order::{Order, Step};
use super::task::Job;
use crate::error::RackError;
use crate::host::bulk::{Lane, leave_behind};
use crate::host::flight::Flight;
use crate::host::inner::NodeInner;
use crate::host::locks::cell::Cell;
use crate::host::locks::seat::{Called, Seat, wake};
use rackmem_fabric::{Nobody, Port, Whole};
use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Operations on blocks that a node's futures have under way, at most,
/// and tasks that wait at locks.
pub(crate) const ASKED: usize = 4096;
/// Events that are under way at a time.
const WINDOW: usize = 16;
/// How long the first one is waited for before the others, and what is new, are looked at.
const LOOK: Duration = Duration::from_micros(100);
/// How often it is looked whether what waits for a lock waits for something that was lost.
const TURN: Duration = Duration::from_millis(5);

/// See the module. The thread begins with the first order.
#[derive(Default)]
pub(crate) struct Driver {
    inbox: Mutex<Inbox>,
    news: Condvar,
    asked: AtomicUsize,
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Inbox {
    orders: Vec<Order>,
    /// Tasks that wait at locks.
    seats: Vec<Seated>,
    /// Tasks that look again a little later.
    sleepers: Vec<Waker>,
    thread: Option<JoinHandle<()>>,
    /// It sleeps until somebody wakes it.
    sleeps: bool,
    closed: bool,
}

/// A task that waits at a lock. It is there no more when nobody else has the seat.
struct Seated {
    seat: Weak<Seat>,
    cell: Arc<Cell>,
}

/// There are as many as there may be.
pub(crate) struct Full;

/// Room for a task that waits at a lock.
pub(crate) struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn one_more(count: &AtomicUsize) -> Result<(), Full> {
    let room = |count: usize| (count < ASKED).then_some(count + 1);
    let one = count.fetch_update(Relaxed, Relaxed, room);
    one.map(drop).map_err(|_| Full)
}

impl Driver {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().whole()
    }

    /// Has something done with a block.
    pub fn ask(node: &Arc<NodeInner>, job: Arc<dyn Job>) -> Result<(), Full> {
        one_more(&node.driver.asked)?;
        Driver::tell(node, true, |inbox| inbox.orders.push(Order::new(job)));
        Ok(())
    }

    /// Room for one more task that waits at a lock.
    pub fn place(&self) -> Result<Place<'_>, Full> {
        one_more(&self.waiting).map(|()| Place(&self.waiting))
    }

    /// Looks after a task's turn at a lock, as a thread that waits does itself.
    pub fn look_after(node: &Arc<NodeInner>, seat: &Arc<Seat>, cell: &Arc<Cell>) {
        let (seat, cell) = (Arc::downgrade(seat), cell.clone());
        Driver::tell(node, false, |inbox| inbox.seats.push(Seated { seat, cell }));
    }

    /// Has a task look again a little later.
    pub fn wake_later(node: &Arc<NodeInner>, waker: &Waker) {
        Driver::tell(node, false, |inbox| inbox.sleepers.push(waker.clone()));
    }

    /// `now`: otherwise it is time enough when the thread wakes up by itself, if it will.
    fn tell(node: &Arc<NodeInner>, now: bool, what: impl FnOnce(&mut Inbox)) {
        let mut inbox = node.driver.inbox();
        what(&mut inbox);
        if inbox.closed {
            drop(inbox);
            return node.driver.refuse(RackError::Closed);
        }
        if inbox.thread.is_none() {
            let driven = node.clone();
            let thread = std::thread::Builder::new().name("rackmem-futures".into());
            match thread.spawn(move || drive(&driven)) {
                Ok(thread) => inbox.thread = Some(thread),
                // The next one that asks tries again.
                Err(error) => {
                    drop(inbox);
                    return node.driver.refuse(RackError::no_socket(&error));
                }
            }
        }
        let wakes = now || inbox.sleeps;
        drop(inbox);
        if wakes {
            node.driver.news.notify_one();
        }
    }

    /// Nobody drives what is asked.
    fn refuse(&self, why: RackError) {
        let (orders, sleepers) = {
            let mut inbox = self.inbox();
            (
                std::mem::take(&mut inbox.orders),
                std::mem::take(&mut inbox.sleepers),
            )
        };
        for order in orders {
            self.finish(&order, Err(why.into()));
        }
        sleepers.into_iter().for_each(wake);
    }

    fn finish(&self, order: &Order, over: Result<(), crate::error::AccessError>) {
        self.asked.fetch_sub(1, Relaxed);
        order.job.finish(over);
    }

    /// The rack is closed: whatever waits ends.
    pub fn close(&self) {
        let thread = {
            let mut inbox = self.inbox();
            inbox.closed = true;
            inbox.thread.take()
        };
        self.news.notify_one();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // What a program's future panics with is the future's.
            let _ = thread.join();
        }
        self.refuse(RackError::Closed);
    }
}

/// What the thread has in hand.
struct Desk<'a> {
    node: &'a NodeInner,
    window: usize,
    under_way: Vec<(Flight<'a>, Order, u32)>,
    idle: Vec<Lane<'a>>,
    ready: VecDeque<Order>,
    later: Vec<Order>,
    seats: Vec<Seated>,
    sleepers: Vec<Waker>,
    /// When seats and sleepers are looked at next.
    turn: Instant,
    closed: bool,
}

fn drive(node: &NodeInner) {
    let mut desk = Desk {
        node,
        window: WINDOW,
        under_way: Vec::new(),
        idle: Vec::new(),
        ready: VecDeque::new(),
        later: Vec::new(),
        seats: Vec::new(),
        sleepers: Vec::new(),
        turn: Instant::now(),
        closed: false,
    };
    // Packets about locks go by a port of its own: its requesters may all be waiting.
    let port = node.access.requesters.open_port();
    loop {
        desk.take_news();
        desk.take_due();
        desk.begin();
        desk.go_on();
        desk.look(port.as_deref().ok());
        if desk.closed && desk.is_idle() {
            return;
        }
    }
}

impl<'a> Desk<'a> {
    /// Nothing is under way or waiting.
    fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.ready.is_empty() && self.later.is_empty()
    }

    /// When there is something to do, if nothing new comes. `None`: never.
    fn next(&self) -> Option<Instant> {
        let waits = !self.seats.is_empty() || !self.sleepers.is_empty();
        let later = self.later.iter().map(|order| order.due);
        later.chain(waits.then_some(self.turn)).min()
    }

    /// Takes what is new; sleeps if there is nothing to do.
    fn take_news(&mut self) {
        let driver = &self.node.driver;
        let rests = self.under_way.is_empty() && self.ready.is_empty() && !self.closed;
        if rests {
            // Others may want them.
            self.idle.clear();
        }
        let mut inbox = driver.inbox();
        while rests && !inbox.closed && inbox.is_empty() {
            inbox = match self
                .next()
                .map(|at| at.saturating_duration_since(Instant::now()))
            {
                Some(Duration::ZERO) => break,
                Some(pause) => driver.news.wait_timeout(inbox, pause).whole().0,
                None => {
                    inbox.sleeps = true;
                    driver.news.wait(inbox).whole()
                }
            };
        }
        inbox.sleeps = false;
        self.closed = inbox.closed;
        self.ready.extend(inbox.orders.drain(..));
        self.seats.append(&mut inbox.seats);
        self.sleepers.append(&mut inbox.sleepers);
    }

    /// What has been put off and is due.
    fn take_due(&mut self) {
        let now = Instant::now();
        let closed = self.closed;
        let due = |order: &mut Order| closed || order.due <= now;
        self.ready.extend(self.later.extract_if(.., due));
    }

    /// Begins as many events as may be under way.
    fn begin(&mut self) {
        while self.under_way.len() < self.window
            && let Some(order) = self.ready.pop_front()
        {
            if !self.try_order(order) {
                return;
            }
        }
    }

    /// False: there is no requester for its event.
    fn try_order(&mut self, mut order: Order) -> bool {
        loop {
            if order.job.is_dropped() {
                self.node.driver.finish(&order, Ok(()));
                return true;
            }
            let (purpose, reserved) = match order.step(self.node) {
                Step::Begin(purpose, reserved) => (purpose, reserved),
                Step::Again => continue,
                step => {
                    self.settle(order, step);
                    return true;
                }
            };
            let epoch = self.node.access.standing.epoch();
            let mut lane = match self.lane() {
                Ok(Some(lane)) => lane,
                Ok(None) => {
                    drop(reserved);
                    self.ready.push_front(order);
                    return false;
                }
                Err(error) => {
                    self.node.driver.finish(&order, Err(error.into()));
                    return true;
                }
            };
            if !lane.slot().overlaps() {
                self.window = 1;
            }
            match Flight::begin(&self.node.access, lane, (purpose, reserved), 0) {
                Some(flight) => self.under_way.push((flight, order, epoch)),
                None => {
                    let closed = self.node.access.standing.is_fenced();
                    let error = if closed {
                        RackError::Fenced
                    } else {
                        RackError::Closed
                    };
                    self.node.driver.finish(&order, Err(error.into()));
                }
            }
            return true;
        }
    }

    /// What follows for an order that has no event.
    fn settle(&mut self, mut order: Order, step: Step<'_>) {
        let over = match step {
            Step::Over(over) => over,
            Step::Later(why) => match order.put_off(self.node.access.patience, why) {
                Ok(()) => return self.later.push(order),
                Err(error) => Err(error),
            },
            Step::Again | Step::Begin(..) => return self.ready.push_front(order),
        };
        self.node.driver.finish(&order, over);
    }

    /// A requester: this thread's own, and others beside it, if one is free.
    fn lane(&mut self) -> Result<Option<Lane<'a>>, RackError> {
        let requesters = &self.node.access.requesters;
        let own = |lane: &Lane<'_>| matches!(lane, Lane::Own(_));
        let used = self.under_way.iter().any(|(flight, ..)| own(&flight.lane));
        Ok(match (self.idle.pop(), used) {
            (Some(lane), _) => Some(lane),
            (None, false) => Some(Lane::Own(requesters.borrow()?)),
            (None, true) => requesters.borrow_more().map(Lane::More),
        })
    }

    /// Waits for the first that is under way, for a while, and looks at the others.
    fn go_on(&mut self) {
        let (mut nth, mut at_most) = (0, LOOK);
        while let Some((flight, order, epoch)) = self.under_way.get_mut(nth) {
            if nth == 0 {
                leave_behind(&mut self.idle, &mut flight.lane);
            }
            let (purpose, epoch) = (flight.purpose(), *epoch);
            let then = flight.go_on(at_most, |words| order.use_block(purpose, words));
            at_most = Duration::ZERO;
            let Some(then) = then else {
                nth += 1;
                continue;
            };
            let (flight, mut order, _) = self.under_way.remove(nth);
            let tag = flight.reserved.tag;
            let own = tag == order.job.tag();
            self.idle.push(flight.lane);
            drop(flight.reserved);
            let step = order.ended(&self.node.access, (purpose, own, epoch), then);
            self.settle(order, step);
            // Others that want the block have waited for this.
            let now = Instant::now();
            let same = self.later.iter_mut().filter(|order| order.job.tag() == tag);
            same.for_each(|order| order.due = now);
        }
    }

    /// Looks after tasks that wait at locks, once in a while, as threads that wait do.
    fn look(&mut self, port: Option<&dyn Port>) {
        let now = Instant::now();
        if now < self.turn && !self.closed {
            return;
        }
        self.turn = now + TURN;
        let access = &self.node.access;
        let ended = self.closed || access.standing.is_fenced();
        self.seats.retain(|seated| {
            let Some(seat) = seated.seat.upgrade() else {
                return false;
            };
            let waits = seat.called() == Called::Waiting;
            if waits && !ended {
                let locks = &access.agents.locks;
                let out = locks.again(&seated.cell);
                match port {
                    Some(port) if out.has_packets() => locks.send(out, port, &mut Nobody),
                    _ => out.finish(),
                }
            } else if waits {
                seat.wake();
            }
            waits && !ended
        });
        self.sleepers.drain(..).for_each(wake);
    }
}

impl Inbox {
    fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.seats.is_empty() && self.sleepers.is_empty()
    }
}
