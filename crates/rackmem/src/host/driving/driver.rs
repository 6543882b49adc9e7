//! What a node's futures ask the thread that drives them for: its inbox, and its bounds.

use super::desk::drive;
use super::order::Order;
use crate::error::{AccessError, RackError};
use crate::host::inner::NodeInner;
use crate::host::locks::cell::Cell;
use crate::host::locks::seat::{Seat, wake};
use rackmem_fabric::Whole;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::thread::JoinHandle;

/// Operations that a node's futures have under way, at most,
/// and tasks that wait at locks.
pub(crate) const ASKED: usize = 4096;

/// See the module. The thread begins with the first order.
#[derive(Default)]
pub(crate) struct Driver {
    inbox: Mutex<Inbox>,
    pub(super) news: Condvar,
    asked: AtomicUsize,
    waiting: AtomicUsize,
}

#[derive(Default)]
pub(super) struct Inbox {
    pub orders: Vec<Order>,
    /// Tasks that wait at locks.
    pub seats: Vec<Seated>,
    /// Tasks that look again a little later.
    pub sleepers: Vec<Waker>,
    thread: Option<JoinHandle<()>>,
    /// It sleeps until somebody wakes it.
    pub sleeps: bool,
    pub closed: bool,
}

/// A task that waits at a lock. It is there no more when nobody else has the seat.
pub(super) struct Seated {
    pub seat: Weak<Seat>,
    pub cell: Arc<Cell>,
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
    pub(super) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().whole()
    }

    /// Has something done.
    pub fn ask(node: &Arc<NodeInner>, order: Order) -> Result<(), Full> {
        one_more(&node.driver.asked)?;
        Driver::tell(node, true, |inbox| inbox.orders.push(order));
        Ok(())
    }

    /// The same of what gives something back, for which there is always room.
    pub fn owe(node: &Arc<NodeInner>, order: Order) {
        node.driver.asked.fetch_add(1, Relaxed);
        Driver::tell(node, true, |inbox| inbox.orders.push(order));
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

    pub(super) fn finish(&self, order: &Order, over: Result<(), AccessError>) {
        self.asked.fetch_sub(1, Relaxed);
        order.finish(over);
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

impl Inbox {
    pub fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.seats.is_empty() && self.sleepers.is_empty()
    }
}
