//! A worker: one thread, one poll, its share of the connections. The first one also accepts.
//!
//! While a connection has its turn the others can be reached: a script that runs for long has them
//! told so now and then, in the middle of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mio::{Events, Poll};

use super::buffer::Spare;
use super::seats::{Listener, Seats};
use super::shared::Shared;
use super::tracking::{act_for, acting};
use crate::memory::Memory;
use crate::script::running::while_busy;

/// Events taken at a time.
const EVENTS: usize = 256;
/// Times that connections which have mail leave mail for others, before others have their turn.
const WAVES: usize = 1024;

/// See the module.
pub(crate) struct Worker<M: Memory> {
    shared: Arc<Shared<M>>,
    number: usize,
    seats: Rc<RefCell<Seats<M>>>,
    /// What the connection that has its turn reads and writes with.
    spare: Cell<Spare>,
}

impl<M: Memory> Worker<M> {
    pub fn new(
        shared: Arc<Shared<M>>,
        number: usize,
        poll: Poll,
        listeners: Vec<Listener>,
    ) -> Self {
        let seats = Seats::new(shared.clone(), number, poll, listeners);
        Self {
            shared,
            number,
            seats: Rc::new(RefCell::new(seats)),
            spare: Cell::default(),
        }
    }

    /// Serves until the server stops.
    pub fn run(self) {
        let (shared, number, seats) = (self.shared.clone(), self.number, self.seats.clone());
        while_busy(Some(Rc::new(move |busy| {
            attend(&shared, number, &seats, busy)
        })));
        let mut events = Events::with_capacity(EVENTS);
        while !self.shared.stopping.load(Ordering::Relaxed) {
            if self
                .seats
                .borrow_mut()
                .await_events(&mut events, true)
                .is_err()
            {
                break; // the poll itself is broken: nothing can be served any more
            }
            // All of them first: who keeps the worker for long must not keep the others' events.
            let mut seats = self.seats.borrow_mut();
            events.iter().for_each(|event| seats.note(event));
            drop(seats);
            while let Some(place) = self.next_ready() {
                self.turn(place);
            }
            self.deliver();
            let wanted = self.seats.borrow().turns.len();
            for _ in 0..wanted {
                let place = self.seats.borrow_mut().turns.pop_front();
                place.into_iter().for_each(|place| self.turn(place));
            }
            self.seats.borrow_mut().tick();
        }
        while_busy(None);
    }

    fn next_ready(&self) -> Option<usize> {
        self.seats.borrow_mut().ready.pop_front()
    }

    /// Gives a turn to connections that have mail, and to those whose time has come.
    fn deliver(&self) {
        // Who has been served calls the next: all of them go on before others do.
        for _ in 0..WAVES {
            let calls = self.shared.desks[self.number].calls();
            if calls.is_empty() {
                break;
            }
            for (place, id) in calls {
                let called = self.seats.borrow_mut().is_called(place, id);
                if called {
                    self.turn(place);
                }
            }
        }
        let overdue = self.seats.borrow().overdue();
        overdue.into_iter().for_each(|place| self.turn(place));
    }

    fn turn(&self, place: usize) {
        let lent = self.seats.borrow_mut().lend(place);
        let Some(mut connection) = lent else {
            return;
        };
        let mut spare = self.spare.take();
        let stats = &self.shared.desks[self.number].stats;
        let next = connection.turn(&self.shared, stats, &mut spare);
        self.spare.set(spare);
        self.seats.borrow_mut().take_back(place, connection, next);
    }
}

/// Serves the connections in the middle of a script, which are told that the worker is busy.
fn attend<M: Memory>(
    shared: &Shared<M>,
    number: usize,
    seats: &RefCell<Seats<M>>,
    busy: &'static str,
) {
    // It is called within a turn only, when nobody has them.
    let Ok(mut seats) = seats.try_borrow_mut() else {
        return;
    };
    let mut events = Events::with_capacity(EVENTS);
    if seats.await_events(&mut events, false).is_err() {
        return; // the worker finds out
    }
    events.iter().for_each(|event| seats.note(event));
    let mut places: Vec<usize> = seats.ready.drain(..).collect();
    places.extend(seats.turns.drain(..));
    let client = acting();
    for place in places {
        if let Some(mut connection) = seats.lend(place) {
            let stats = &shared.desks[number].stats;
            let next = connection.turn_while_busy(shared, stats, busy);
            seats.take_back(place, connection, next);
        }
    }
    act_for(client);
}
