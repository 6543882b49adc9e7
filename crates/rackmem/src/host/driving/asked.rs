//! What is under way for orders, each with a requester: events of blocks, and questions.

use super::block::BlockOrder;
use super::errand::ErrandOrder;
use super::order::{Order, Step};
use crate::host::access::Access;
use crate::host::bounded::AskingHome;
use crate::host::bulk::Lane;
use crate::host::flight::Flight;
use crate::host::objects::{Asking, Asks as ObjectAsks, Commits, Questions, Transacting};
use crate::host::replicated::{Asks as LineAsks, Operating};
use rackmem_proto::bi::cached::BiAsk;
use rackmem_proto::sabre::{Known, Ref};
use std::ops::ControlFlow;
use std::time::Duration;

/// See the module.
pub(super) enum UnderWay<'a> {
    /// An event, of this epoch.
    Event(Flight<'a>, BlockOrder, u32),
    Asked(Asked<'a>),
}

/// Questions that are under way by one requester.
pub(super) struct Asked<'a> {
    lane: Lane<'a>,
    of: Of<'a>,
}

/// An object that an order reads, with what is known of it.
pub(super) type Read = ((Ref, Known), ErrandOrder<ObjectAsks>);

enum Of<'a> {
    /// Of objects' homes, with the orders that have no answer yet.
    Objects(Asking<'a>, Vec<Option<ErrandOrder<ObjectAsks>>>),
    Transaction(Transacting<'a>, Option<ErrandOrder<Commits>>),
    Line(Operating<'a>, Option<ErrandOrder<LineAsks>>),
    Item(AskingHome<'a>, Option<ErrandOrder<BiAsk>>),
}

impl<'a> UnderWay<'a> {
    pub fn lane(&mut self) -> &mut Lane<'a> {
        match self {
            UnderWay::Event(flight, ..) => &mut flight.lane,
            UnderWay::Asked(asked) => &mut asked.lane,
        }
    }

    /// Its requester, once it is over.
    pub fn into_lane(self) -> Lane<'a> {
        match self {
            UnderWay::Event(flight, ..) => flight.lane,
            UnderWay::Asked(asked) => asked.lane,
        }
    }

    pub fn is_event(&self) -> bool {
        matches!(self, UnderWay::Event(..))
    }

    /// By how many requests of its own it counts.
    pub fn count(&self) -> usize {
        match self {
            UnderWay::Event(..) => 1,
            UnderWay::Asked(asked) => match &asked.of {
                Of::Objects(_, orders) => orders.iter().flatten().count(),
                Of::Transaction(..) | Of::Line(..) | Of::Item(..) => 1,
            },
        }
    }

    pub fn has_own_lane(&self) -> bool {
        let lane = match self {
            UnderWay::Event(flight, ..) => &flight.lane,
            UnderWay::Asked(asked) => &asked.lane,
        };
        matches!(lane, Lane::Own(_))
    }
}

impl<'a> Asked<'a> {
    /// Asks for several objects at once.
    pub fn reads(access: &'a Access, lane: Lane<'a>, reads: Vec<Read>) -> Self {
        let (objects, orders) = reads.into_iter().unzip();
        let orders = Vec::into_iter(orders).map(|mut order: ErrandOrder<ObjectAsks>| {
            order.take_question();
            Some(order)
        });
        let of = Of::Objects(
            Asking::new(access, Questions::Reads(objects)),
            orders.collect(),
        );
        Asked { lane, of }
    }

    /// Asks an object's home for something else.
    pub fn object(
        access: &'a Access,
        lane: Lane<'a>,
        asks: ObjectAsks,
        order: ErrandOrder<ObjectAsks>,
    ) -> Self {
        let questions = Questions::One(asks.command, asks.value);
        let of = Of::Objects(Asking::new(access, questions), vec![Some(order)]);
        Asked { lane, of }
    }

    /// Asks homes to make a transaction one step.
    pub fn transaction(
        access: &'a Access,
        lane: Lane<'a>,
        commits: Commits,
        order: ErrandOrder<Commits>,
    ) -> Self {
        let of = Of::Transaction(Transacting::new(access, commits), Some(order));
        Asked { lane, of }
    }

    /// Asks those that have copies of a line.
    pub fn line(
        access: &'a Access,
        mut lane: Lane<'a>,
        asks: LineAsks,
        order: ErrandOrder<LineAsks>,
    ) -> Self {
        let operating = Operating::of_region(access, lane.slot(), asks);
        let of = Of::Line(operating, Some(order));
        Asked { lane, of }
    }

    /// Asks the home of a region's items.
    pub fn item(
        access: &'a Access,
        mut lane: Lane<'a>,
        asks: BiAsk,
        order: ErrandOrder<BiAsk>,
    ) -> Self {
        let asking = AskingHome::begin(access, lane.slot(), (asks, access.patience));
        let of = Of::Item(asking, Some(order));
        Asked { lane, of }
    }

    /// Waits no longer than this for the next packet. Says which orders have an answer, and what
    /// each of them wants next. True: all have.
    pub fn go_on(&mut self, at_most: Duration, came: &mut Vec<(Order, Step<'a>)>) -> bool {
        let before = came.len();
        let Some(least) = self.look(came) else {
            return true;
        };
        // Whoever has an answer does not wait for the others.
        if came.len() > before {
            return false;
        }
        self.wait(at_most.min(least));
        self.look(came).is_none()
    }

    /// How long packets may be waited for before the next look; `None`: all is over.
    fn look(&mut self, came: &mut Vec<(Order, Step<'a>)>) -> Option<Duration> {
        let slot = self.lane.slot();
        match &mut self.of {
            Of::Objects(asking, orders) => {
                let over = asking.look(slot, |nth, answer| {
                    if let Some(mut order) = orders.get_mut(nth).and_then(Option::take) {
                        let step = order.go_on(Some(answer));
                        came.push((Order::Object(order), step));
                    }
                });
                (!over).then_some(Duration::MAX)
            }
            Of::Transaction(transacting, order) => {
                let Some(answer) = transacting.look(slot) else {
                    return Some(Duration::MAX);
                };
                if let Some(mut order) = order.take() {
                    let step = order.go_on(Some(answer));
                    came.push((Order::Transaction(order), step));
                }
                None
            }
            Of::Line(operating, order) => match operating.look(slot) {
                ControlFlow::Continue(at_most) => Some(at_most),
                ControlFlow::Break(answer) => {
                    if let Some(mut order) = order.take() {
                        let step = order.go_on(Some(answer));
                        came.push((Order::Line(order), step));
                    }
                    None
                }
            },
            Of::Item(asking, order) => {
                let Some(answer) = asking.look(slot) else {
                    return Some(Duration::MAX);
                };
                if let Some(mut order) = order.take() {
                    let step = order.go_on(Some(answer));
                    came.push((Order::Item(order), step));
                }
                None
            }
        }
    }

    fn wait(&mut self, at_most: Duration) {
        let slot = self.lane.slot();
        match &mut self.of {
            Of::Objects(asking, _) => asking.wait(slot, at_most),
            Of::Transaction(transacting, _) => transacting.wait(slot, at_most),
            Of::Line(operating, _) => operating.wait(slot, at_most),
            Of::Item(asking, _) => asking.wait(slot, at_most),
        }
    }
}
