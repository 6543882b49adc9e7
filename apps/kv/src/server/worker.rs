//! A worker: one poll, its share of the connections, and the threads that serve them. The first
//! worker also accepts.
//!
//! One thread of a worker is at its helm: it has the poll, and gives connections their turns. A
//! command may have to wait for other nodes: before its thread sleeps, it leaves the helm to
//! another thread of the worker. Later it goes on with the command, and brings the connection back.
//! So nobody waits for the rack but the connection that needs it. What that one has sent since
//! waits for its turn, and stays in order.
//!
//! While a connection has its turn the others can be reached: a script that runs for long has them
//! told so now and then, in the middle of it.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use mio::{Events, Poll};
use rackmem::waiting::{Awake, SPIN, before_sleep};

use super::buffer::Spare;
use super::seats::{Listener, Seats};
use super::shared::{Desk, Shared, Stats};
use super::tracking::{act_for, acting};
use crate::memory::Memory;
use crate::script::running::while_busy;
use crate::script::shelf::States;

/// Events taken at a time.
const EVENTS: usize = 256;
/// Times that connections which have mail leave mail for others, before others have their turn.
const WAVES: usize = 1024;
/// Bytes of a thread's stack: what scripts nest (JSON, 1,000 deep) is taken apart on it.
const STACK: usize = 8 << 20;
/// Threads of a worker at most: when commands of all others wait for the rack, the last one keeps
/// the helm while its command does.
pub(crate) const THREADS: usize = 32;

/// What one thread of a worker has at a time.
struct Helm {
    poll: Poll,
    events: Events,
}

/// Where the helm is when no thread has it.
#[derive(Default)]
struct Berth {
    helm: Option<Helm>,
    /// Threads that wait for it.
    idle: usize,
    started: usize,
    threads: Vec<JoinHandle<()>>,
}

/// See the module.
pub(crate) struct Worker<M: Memory> {
    shared: Arc<Shared<M>>,
    number: usize,
    seats: Mutex<Seats<M>>,
    berth: Mutex<Berth>,
    left: Condvar,
    /// What its scripts run in.
    states: Arc<States>,
}

/// One thread of a worker.
struct Hand<M: Memory> {
    worker: Arc<Worker<M>>,
    nth: usize,
    /// As long as it has it.
    helm: RefCell<Option<Helm>>,
    /// What the connection that has its turn reads and writes with.
    spare: RefCell<Spare>,
    /// Whether it has served a connection since it looked for events last.
    served: Cell<bool>,
}

impl<M: Memory> Worker<M> {
    /// Serves until the server stops.
    pub fn start(
        shared: Arc<Shared<M>>,
        number: usize,
        poll: Poll,
        listeners: Vec<Listener>,
    ) -> std::io::Result<Arc<Self>> {
        let seats = Seats::new(shared.clone(), number, poll.registry(), listeners)?;
        let worker = Arc::new(Self {
            shared,
            number,
            seats: Mutex::new(seats),
            berth: Mutex::default(),
            left: Condvar::new(),
            states: Arc::default(),
        });
        let mut berth = worker.berth();
        let events = Events::with_capacity(EVENTS);
        berth.helm = Some(Helm { poll, events });
        worker.start_one(&mut berth)?;
        drop(berth);
        Ok(worker)
    }

    /// Waits for its threads to end.
    pub fn join(&self) {
        while let Some(thread) = self.next_thread() {
            // One that panicked has ended too.
            let _ = thread.join();
        }
    }

    fn next_thread(&self) -> Option<JoinHandle<()>> {
        let mut berth = self.berth();
        self.left.notify_all();
        berth.threads.pop()
    }

    fn start_one(self: &Arc<Self>, berth: &mut Berth) -> std::io::Result<()> {
        let (nth, worker) = (berth.started, self.clone());
        let mut name = format!("kv-{}-{}", self.shared.addr.port(), self.number);
        if nth != 0 {
            name.push_str(&format!("-{nth}"));
        }
        let thread = Builder::new().name(name).stack_size(STACK);
        let thread = thread.spawn(move || Hand::run(worker, nth))?;
        berth.threads.push(thread);
        berth.started += 1;
        Ok(())
    }

    fn berth(&self) -> MutexGuard<'_, Berth> {
        self.berth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seats(&self) -> MutexGuard<'_, Seats<M>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn desk(&self) -> &Desk {
        &self.shared.desks[self.number]
    }

    fn stops(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    /// The helm, once no other thread has it; `None` when the server stops.
    fn take(&self) -> Option<Helm> {
        let mut berth = self.berth();
        berth.idle += 1;
        while berth.helm.is_none() && !self.stops() {
            let waited = self.left.wait(berth);
            berth = waited.unwrap_or_else(PoisonError::into_inner);
        }
        berth.idle -= 1;
        berth.helm.take()
    }

    /// Leaves the helm to another thread; it comes back where no other is left.
    fn leave(self: &Arc<Self>, helm: Helm) -> Option<Helm> {
        let mut berth = self.berth();
        let full = berth.started == THREADS;
        if berth.idle == 0 && (full || self.start_one(&mut berth).is_err()) {
            return Some(helm);
        }
        berth.helm = Some(helm);
        self.left.notify_one();
        None
    }
}

impl<M: Memory> Hand<M> {
    fn run(worker: Arc<Worker<M>>, nth: usize) {
        let hand = Rc::new(Hand {
            worker,
            nth,
            helm: RefCell::default(),
            spare: RefCell::default(),
            served: Cell::new(false),
        });
        States::share(hand.worker.states.clone());
        let (leaving, attending) = (hand.clone(), hand.clone());
        before_sleep(Some(Rc::new(move || leaving.leave())));
        while_busy(Some(Rc::new(move |busy| attending.attend(busy))));
        while !hand.worker.stops() {
            let Some(helm) = hand.worker.take() else {
                break;
            };
            hand.helm.replace(Some(helm));
            while hand.give_turns() && !hand.worker.stops() {
                if hand.await_events().is_err() {
                    break; // the poll itself is broken: nothing can be served any more
                }
            }
            if hand.has_helm() {
                break;
            }
        }
        while_busy(None);
        before_sleep(None);
    }

    /// This thread is about to sleep until others have answered.
    fn leave(&self) {
        // While it looks at the poll, nothing that it does waits.
        if let Ok(mut mine) = self.helm.try_borrow_mut() {
            *mine = mine.take().and_then(|helm| self.worker.leave(helm));
        }
    }

    fn has_helm(&self) -> bool {
        self.helm.borrow().is_some()
    }

    fn stats(&self) -> &Stats {
        &self.worker.desk().stats[1 + self.nth]
    }

    /// Waits for events, if nobody wants a turn, and takes note of them.
    fn await_events(&self) -> std::io::Result<()> {
        self.send_shipped();
        let rest = self.worker.seats().rest();
        self.note_events(rest)
    }

    /// Sends what commands have left for other nodes, all of a turn at once.
    fn send_shipped(&self) {
        if let Some(shipping) = &self.worker.shared.shipping {
            let memory = self.worker.shared.store.memory();
            let is_member = |node| memory.is_member(node);
            let calls = shipping.flush(self.worker.number, self.stats(), is_member);
            self.worker.seats().calls.extend(calls);
        }
    }

    /// Takes what has come from other nodes.
    fn take_shipped(&self, nodes: Vec<u16>) {
        if let Some(shipping) = &self.worker.shared.shipping {
            for node in nodes {
                let calls = shipping.event(self.worker.number, node, self.stats());
                self.worker.seats().calls.extend(calls);
            }
        }
    }

    fn note_events(&self, rest: Duration) -> std::io::Result<()> {
        let mut mine = self.helm.borrow_mut();
        let Some(Helm { poll, events }) = mine.as_mut() else {
            return Ok(());
        };
        // Who has just been served may well ask for more.
        let mut look = self.served.take() && !rest.is_zero();
        let mut awake = Awake::begin(if look { SPIN } else { Duration::ZERO });
        loop {
            let rest = if look { Duration::ZERO } else { rest };
            if let Err(error) = poll.poll(events, Some(rest))
                && error.kind() != ErrorKind::Interrupted
            {
                return Err(error);
            }
            Stats::add(&self.stats().calls, 1);
            if !look || !events.is_empty() {
                break;
            }
            look = awake.look_again(awake.waited());
        }
        // All of them first: who keeps the worker for long must not keep the others' events.
        let mut seats = self.worker.seats();
        events.iter().for_each(|event| seats.note(event));
        let links = std::mem::take(&mut seats.links);
        drop(seats);
        self.take_shipped(links);
        Ok(())
    }

    /// Gives turns to those that want one. False: another thread has the helm now.
    fn give_turns(&self) -> bool {
        let ready = || self.worker.seats().ready.pop_front();
        let served = self.serve_all(ready) && self.deliver();
        let mut wanted = self.worker.seats().turns.len();
        let next = || {
            wanted = wanted.checked_sub(1)?;
            self.worker.seats().turns.pop_front()
        };
        served && self.serve_all(next) && self.tick()
    }

    /// Gives turns as long as there are some and this thread has the helm.
    fn serve_all(&self, mut next: impl FnMut() -> Option<usize>) -> bool {
        while self.has_helm() {
            match next() {
                Some(place) => self.turn(place),
                None => return true,
            }
        }
        false
    }

    /// Gives a turn to connections that have mail, and to those whose time has come.
    fn deliver(&self) -> bool {
        // Who has been served calls the next: all of them go on before others do.
        for _ in 0..WAVES {
            let calls = self.worker.desk().calls();
            self.worker.seats().calls.extend(calls);
            if self.worker.seats().calls.is_empty() {
                break;
            }
            if !self.serve_all(|| self.worker.seats().next_called()) {
                return false;
            }
        }
        let mut overdue = self.worker.seats().overdue().into_iter();
        self.serve_all(|| overdue.next())
    }

    fn turn(&self, place: usize) {
        self.served.set(true);
        let Some(mut connection) = self.worker.seats().lend(place) else {
            return;
        };
        let mut spare = self.spare.take();
        let next = connection.turn(&self.worker.shared, self.stats(), &mut spare);
        self.spare.replace(spare);
        let mut seats = self.worker.seats();
        let soon = seats.take_back(place, connection, next);
        let ended = std::mem::take(&mut seats.ended);
        drop(seats);
        let shipping = self.worker.shared.shipping.as_ref();
        let unsent = shipping.is_some_and(|all| all.is_behind(self.worker.number));
        if (soon || unsent) && !self.has_helm() {
            // If it fails, the worker finds the connection at its next tick.
            let _ = self.worker.desk().waker.wake();
        }
        drop(ended);
    }

    /// What is done now and then.
    fn tick(&self) -> bool {
        let mut seats = self.worker.seats();
        let (chores, ended) = (seats.tick(), std::mem::take(&mut seats.ended));
        drop(seats);
        drop(ended);
        if let Some(mut chores) = chores {
            chores.run(&self.worker.shared, self.stats());
            self.worker.seats().done(chores);
        }
        self.has_helm()
    }

    /// Serves the connections in the middle of a script, which are told that the worker is busy,
    /// unless another thread serves them. Nothing that touches keys is run.
    fn attend(&self, busy: &'static str) {
        // Where it fails, the worker finds out.
        if !self.has_helm() || self.note_events(Duration::ZERO).is_err() {
            return;
        }
        let mut seats = self.worker.seats();
        let mut places: Vec<usize> = seats.ready.drain(..).collect();
        places.extend(seats.turns.drain(..));
        drop(seats);
        let client = acting();
        for place in places {
            let lent = self.worker.seats().lend(place);
            if let Some(mut connection) = lent {
                let next = connection.turn_while_busy(&self.worker.shared, self.stats(), busy);
                self.worker.seats().take_back(place, connection, next);
            }
        }
        act_for(client);
    }
}
