//! What a future wants, for the thread that drives it: what it waits for next, and since when.

use super::block::BlockOrder;
use super::errand::ErrandOrder;
use super::task::Job;
use crate::bytes::pending::Reservation;
use crate::error::AccessError;
use crate::host::inner::NodeInner;
use crate::host::objects::{Asks as ObjectAsks, Commits};
use crate::host::replicated::Asks as LineAsks;
use rackmem_proto::bi::cached::BiAsk;
use rackmem_proto::engine::Purpose;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first pause before an order is looked at again that others are in the way of, and how often
/// it doubles.
const PAUSE: Duration = Duration::from_micros(20);
const DOUBLED: u32 = 6;

/// See the module.
pub(crate) enum Order {
    /// Something with a block, which has to come.
    Block(BlockOrder),
    /// Something of an object's home.
    Object(ErrandOrder<ObjectAsks>),
    /// Objects of several homes, as one step.
    Transaction(ErrandOrder<Commits>),
    /// Something of those that have copies of a line.
    Line(ErrandOrder<LineAsks>),
    /// Something of the home of a region's items.
    Item(ErrandOrder<BiAsk>),
}

/// What is to be done about it.
pub(super) enum Step<'a> {
    /// An event.
    Begin(Purpose, Reservation<'a>),
    /// Its question is asked.
    Ask,
    /// It is looked at again after this time.
    Pause(Duration),
    /// Others are in the way; if they are so for too long, this is why.
    Later(AccessError),
    /// Look once more.
    Again,
    Over(Result<(), AccessError>),
}

/// Since when an order is tried, how often, and when it is looked at again.
pub(super) struct Pace {
    began: Instant,
    tries: u32,
    pub due: Instant,
}

impl Pace {
    pub fn new() -> Self {
        let now = Instant::now();
        Pace {
            began: now,
            tries: 0,
            due: now,
        }
    }

    /// Nobody is in the way any more.
    pub fn goes_on(&mut self) {
        self.tries = 0;
    }

    /// Others have been in the way: when it is looked at again. Otherwise it has taken too long.
    fn put_off(&mut self, patience: Duration, why: AccessError) -> Result<(), AccessError> {
        let now = Instant::now();
        if now.duration_since(self.began) >= patience {
            return Err(why);
        }
        let pause = PAUSE * (1 << self.tries.min(DOUBLED));
        self.tries += 1;
        self.due = now + pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        Ok(())
    }
}

impl From<BlockOrder> for Order {
    fn from(order: BlockOrder) -> Self {
        Order::Block(order)
    }
}

impl From<ErrandOrder<ObjectAsks>> for Order {
    fn from(order: ErrandOrder<ObjectAsks>) -> Self {
        Order::Object(order)
    }
}

impl From<ErrandOrder<Commits>> for Order {
    fn from(order: ErrandOrder<Commits>) -> Self {
        Order::Transaction(order)
    }
}

impl From<ErrandOrder<LineAsks>> for Order {
    fn from(order: ErrandOrder<LineAsks>) -> Self {
        Order::Line(order)
    }
}

impl From<ErrandOrder<BiAsk>> for Order {
    fn from(order: ErrandOrder<BiAsk>) -> Self {
        Order::Item(order)
    }
}

impl Order {
    /// Something with a block.
    pub fn block(job: Arc<dyn Job>) -> Self {
        Order::Block(BlockOrder::new(job))
    }

    fn pace(&mut self) -> &mut Pace {
        match self {
            Order::Block(order) => &mut order.pace,
            Order::Object(order) => &mut order.pace,
            Order::Transaction(order) => &mut order.pace,
            Order::Line(order) => &mut order.pace,
            Order::Item(order) => &mut order.pace,
        }
    }

    /// When it is looked at again.
    pub(super) fn due(&self) -> Instant {
        match self {
            Order::Block(order) => order.pace.due,
            Order::Object(order) => order.pace.due,
            Order::Transaction(order) => order.pace.due,
            Order::Line(order) => order.pace.due,
            Order::Item(order) => order.pace.due,
        }
    }

    /// It is looked at again at this time.
    pub(super) fn set_due(&mut self, at: Instant) {
        self.pace().due = at;
    }

    /// See [`Pace::put_off`].
    pub(super) fn put_off(
        &mut self,
        patience: Duration,
        why: AccessError,
    ) -> Result<(), AccessError> {
        self.pace().put_off(patience, why)
    }

    /// Whether nobody wants it any more.
    pub(super) fn is_dropped(&self) -> bool {
        match self {
            Order::Block(order) => order.job.is_dropped(),
            Order::Object(order) => order.is_dropped(),
            Order::Transaction(order) => order.is_dropped(),
            Order::Line(order) => order.is_dropped(),
            Order::Item(order) => order.is_dropped(),
        }
    }

    pub(super) fn step<'a>(&mut self, inner: &'a NodeInner) -> Step<'a> {
        match self {
            Order::Block(order) => order.step(inner),
            Order::Object(order) => order.step(inner),
            Order::Transaction(order) => order.step(inner),
            Order::Line(order) => order.step(inner),
            Order::Item(order) => order.step(inner),
        }
    }

    /// It is done, or is not going to be.
    pub(super) fn finish(&self, over: Result<(), AccessError>) {
        match self {
            Order::Block(order) => order.job.finish(over),
            Order::Object(order) => order.finish(over),
            Order::Transaction(order) => order.finish(over),
            Order::Line(order) => order.finish(over),
            Order::Item(order) => order.finish(over),
        }
    }
}
