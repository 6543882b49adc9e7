//! The thread that drives futures: what it has in hand, and what it does about that.

use super::asked::{Asked, Read, UnderWay};
use super::block::BlockOrder;
use super::driver::Seated;
use super::errand::{ErrandOrder, Question};
use super::order::{Order, Step};
use crate::bytes::pending::Reservation;
use crate::error::RackError;
use crate::host::access::Access;
use crate::host::bulk::{Lane, leave_behind};
use crate::host::flight::Flight;
use crate::host::inner::NodeInner;
use crate::host::locks::seat::{Called, wake};
use crate::host::objects::Asks as ObjectAsks;
use rackmem_fabric::{Nobody, Port, Whole};
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::sabre::MANY;
use std::collections::VecDeque;
use std::task::Waker;
use std::time::{Duration, Instant};

/// Events and questions that are under way at a time.
const WINDOW: usize = 16;
// Reads of objects that are under way together have one requester.
const _: () = assert!(WINDOW <= MANY);
/// How long the first one is waited for before the others, and what is new, are looked at.
const LOOK: Duration = Duration::from_micros(100);
/// How often it is looked whether what waits for a lock waits for something that was lost.
const TURN: Duration = Duration::from_millis(5);

/// What the thread has in hand.
struct Desk<'a> {
    node: &'a NodeInner,
    /// Events that may be under way at a time.
    window: usize,
    under_way: Vec<UnderWay<'a>>,
    /// Reads of objects, which are asked for together.
    reads: Vec<Read>,
    idle: Vec<Lane<'a>>,
    ready: VecDeque<Order>,
    later: Vec<Order>,
    seats: Vec<Seated>,
    sleepers: Vec<Waker>,
    /// When seats and sleepers are looked at next.
    turn: Instant,
    closed: bool,
}

/// What the thread does as long as the rack is open.
pub(super) fn drive(node: &NodeInner) {
    let mut desk = Desk {
        node,
        window: WINDOW,
        under_way: Vec::new(),
        reads: Vec::new(),
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
        let later = self.later.iter().map(Order::due);
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
        let due = |order: &mut Order| closed || order.due() <= now;
        self.ready.extend(self.later.extract_if(.., due));
    }

    /// Begins as many as may be under way.
    fn begin(&mut self) {
        let under_way = |desk: &Self| desk.under_way.iter().map(UnderWay::count).sum::<usize>();
        while under_way(self) + self.reads.len() < WINDOW
            && let Some(order) = self.ready.pop_front()
            && self.try_order(order)
        {}
        self.read_together();
    }

    /// False: there is no requester for it.
    fn try_order(&mut self, mut order: Order) -> bool {
        loop {
            if order.is_dropped() {
                self.node.driver.finish(&order, Ok(()));
                return true;
            }
            match (order.step(self.node), order) {
                (Step::Again, same) => order = same,
                (Step::Begin(purpose, reserved), Order::Block(block)) => {
                    return self.begin_event(block, (purpose, reserved));
                }
                (Step::Ask, Order::Object(errand)) => return self.ask_home(errand),
                (Step::Ask, Order::Transaction(errand)) => {
                    return self.ask(errand, Asked::transaction);
                }
                (Step::Ask, Order::Line(errand)) => return self.ask(errand, Asked::line),
                (Step::Ask, Order::Item(errand)) => return self.ask(errand, Asked::item),
                (step, order) => {
                    self.settle(order, step);
                    return true;
                }
            }
        }
    }

    fn begin_event(&mut self, order: BlockOrder, wanted: (Purpose, Reservation<'a>)) -> bool {
        let access = &self.node.access;
        let events = self.under_way.iter().filter(|one| one.is_event());
        if events.count() >= self.window {
            drop(wanted);
            self.ready.push_front(order.into());
            return false;
        }
        let epoch = access.standing.epoch();
        let (mut lane, order) = match self.lane_for(order) {
            Ok(with_lane) => with_lane,
            Err(goes_on) => return goes_on,
        };
        if !lane.slot().overlaps() {
            self.window = 1;
        }
        match Flight::begin(access, lane, wanted, 0) {
            Some(flight) => self.under_way.push(UnderWay::Event(flight, order, epoch)),
            None => {
                let error = match access.standing.is_fenced() {
                    true => RackError::Fenced,
                    false => RackError::Closed,
                };
                self.node.driver.finish(&order.into(), Err(error.into()));
            }
        }
        true
    }

    /// An object's home is asked: for reads when there are no more of them.
    fn ask_home(&mut self, order: ErrandOrder<ObjectAsks>) -> bool {
        if let Some(read) = order.asks().and_then(ObjectAsks::read) {
            self.reads.push((read, order));
            return true;
        }
        self.ask(order, Asked::object)
    }

    fn ask<Q: Question>(
        &mut self,
        order: ErrandOrder<Q>,
        asked: impl FnOnce(&'a Access, Lane<'a>, Q, ErrandOrder<Q>) -> Asked<'a>,
    ) -> bool
    where
        ErrandOrder<Q>: Into<Order>,
    {
        let (lane, mut order) = match self.lane_for(order) {
            Ok(with_lane) => with_lane,
            Err(goes_on) => return goes_on,
        };
        match order.take_question() {
            Some(question) => {
                let asked = asked(&self.node.access, lane, question, order);
                self.under_way.push(UnderWay::Asked(asked));
            }
            None => self.settle(order.into(), Step::Again),
        }
        true
    }

    /// Asks for objects whose turn has come, by one requester.
    fn read_together(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let reads = std::mem::take(&mut self.reads);
        let orders = |reads: Vec<Read>| reads.into_iter().map(|(_, order)| Order::Object(order));
        match self.lane() {
            Ok(Some(lane)) => {
                let asked = Asked::reads(&self.node.access, lane, reads);
                self.under_way.push(UnderWay::Asked(asked));
            }
            Ok(None) => orders(reads)
                .rev()
                .for_each(|order| self.ready.push_front(order)),
            Err(error) => {
                orders(reads).for_each(|order| self.node.driver.finish(&order, Err(error.into())));
            }
        }
    }

    /// A requester for an order. Otherwise it waits for one, or ends; `Err`: whether the next one
    /// may be tried.
    fn lane_for<O: Into<Order>>(&mut self, order: O) -> Result<(Lane<'a>, O), bool> {
        match self.lane() {
            Ok(Some(lane)) => Ok((lane, order)),
            Ok(None) => {
                self.ready.push_front(order.into());
                Err(false)
            }
            Err(error) => {
                self.node.driver.finish(&order.into(), Err(error.into()));
                Err(true)
            }
        }
    }

    /// What follows for an order that has nothing under way.
    fn settle(&mut self, mut order: Order, step: Step<'_>) {
        let over = match step {
            Step::Over(over) => over,
            Step::Later(why) => match order.put_off(self.node.access.patience, why) {
                Ok(()) => return self.later.push(order),
                Err(error) => Err(error),
            },
            Step::Pause(pause) => {
                order.set_due(Instant::now() + pause);
                return self.later.push(order);
            }
            Step::Again | Step::Ask | Step::Begin(..) => return self.ready.push_front(order),
        };
        self.node.driver.finish(&order, over);
    }

    /// A requester: this thread's own, and others beside it, if one is free.
    fn lane(&mut self) -> Result<Option<Lane<'a>>, RackError> {
        let requesters = &self.node.access.requesters;
        let used = self.under_way.iter().any(UnderWay::has_own_lane);
        Ok(match (self.idle.pop(), used) {
            (Some(lane), _) => Some(lane),
            (None, false) => Some(Lane::Own(requesters.borrow()?)),
            (None, true) => requesters.borrow_more().map(Lane::More),
        })
    }

    /// Waits for the first that is under way, for a while, and looks at the others.
    fn go_on(&mut self) {
        let (mut nth, mut at_most, mut came) = (0, LOOK, Vec::new());
        while let Some(one) = self.under_way.get_mut(nth) {
            if nth == 0 {
                leave_behind(&mut self.idle, one.lane());
            }
            let over = match one {
                UnderWay::Event(flight, order, _) => {
                    let purpose = flight.purpose();
                    let then = flight.go_on(at_most, |words| order.use_block(purpose, words));
                    then.map(Some)
                }
                UnderWay::Asked(asked) => asked.go_on(at_most, &mut came).then_some(None),
            };
            at_most = Duration::ZERO;
            for (order, step) in came.drain(..) {
                self.settle(order, step);
            }
            let Some(then) = over else {
                nth += 1;
                continue;
            };
            match (self.under_way.remove(nth), then) {
                (UnderWay::Event(flight, order, epoch), Some(then)) => {
                    self.event_ended(flight, (order, epoch), then);
                }
                (one, _) => self.idle.push(one.into_lane()),
            }
        }
    }

    fn event_ended(
        &mut self,
        flight: Flight<'a>,
        (mut order, epoch): (BlockOrder, u32),
        then: Then,
    ) {
        let (purpose, tag) = (flight.purpose(), flight.reserved.tag);
        let own = tag == order.job.tag();
        self.idle.push(flight.lane);
        drop(flight.reserved);
        let step = order.ended(&self.node.access, (purpose, own, epoch), then);
        self.settle(order.into(), step);
        // Others that want the block have waited for this.
        let now = Instant::now();
        for order in &mut self.later {
            if matches!(order, Order::Block(other) if other.job.tag() == tag) {
                order.set_due(now);
            }
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
