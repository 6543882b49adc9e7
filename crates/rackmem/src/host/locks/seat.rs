//! Where a thread waits to be let in.

use rackmem_fabric::Whole;
use rackmem_proto::gcp::Entered;
use rackmem_proto::wire::Reason;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::task::Waker;
use std::thread::Thread;

/// What a thread is told when it is let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pass {
    /// The fencing token.
    pub token: u64,
    pub content: Content,
}

/// What a lock protects, as whoever is let in finds it.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::locked::{Content, Mutex};
///
/// let rack = Rack::local(1)?;
/// let lock = Mutex::create(&rack.node(0), 7u64)?;
/// let mut held = lock.lock()?;
/// if held.content() != Content::Current {
///     held.set(0); // what a dead node had done is gone: begin anew
/// }
/// assert_eq!(held.get(), 7);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Content {
    /// What the last writer left.
    #[default]
    Current,
    /// A node died that had the lock: this is what there was when the lock was handed to it. A
    /// writer may have been inside, or several one after the other, and what they did is gone.
    OwnerDied,
    /// Whoever handed the lock to a node that died is dead as well: this is older.
    Lost,
}

impl From<Entered> for Pass {
    fn from(entered: Entered) -> Self {
        Pass {
            token: entered.token,
            content: match entered.reason {
                Reason::None => Content::Current,
                Reason::OwnerDied => Content::OwnerDied,
                _ => Content::Lost,
            },
        }
    }
}

/// What has become of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Called {
    /// Nothing yet.
    Waiting,
    /// The thread is inside.
    Inside(Pass),
    /// The lock is no more.
    Over,
}

const WAITING: u8 = 0;
const OVER: u8 = 1;
const INSIDE: u8 = 2;
const BEREFT: u8 = 3;
const LOST: u8 = 4;

/// Who waits.
enum Sleeper {
    Thread(Thread),
    Task(Mutex<Waker>),
}

/// One wait of one thread, or of one task.
pub(crate) struct Seat {
    sleeper: Sleeper,
    state: AtomicU8,
    token: AtomicU64,
}

impl Seat {
    /// For this thread.
    pub fn new() -> Self {
        Seat::of(Sleeper::Thread(std::thread::current()))
    }

    /// For the task that this wakes.
    pub fn of_task(waker: &Waker) -> Self {
        Seat::of(Sleeper::Task(Mutex::new(waker.clone())))
    }

    fn of(sleeper: Sleeper) -> Self {
        Seat {
            sleeper,
            state: AtomicU8::new(WAITING),
            token: AtomicU64::new(0),
        }
    }

    /// The task is woken by this one from now on; ask [`Seat::called`] afterwards.
    pub fn wake_by(&self, waker: &Waker) {
        if let Sleeper::Task(own) = &self.sleeper {
            own.lock().whole().clone_from(waker);
        }
    }

    pub fn called(&self) -> Called {
        match self.state.load(Acquire) {
            OVER => Called::Over,
            WAITING => Called::Waiting,
            inside => Called::Inside(Pass {
                token: self.token.load(Acquire),
                content: match inside {
                    INSIDE => Content::Current,
                    BEREFT => Content::OwnerDied,
                    _ => Content::Lost,
                },
            }),
        }
    }

    /// The thread is inside from now on; [`Seat::wake`] must follow.
    pub fn let_in(&self, entered: Entered) {
        let pass = Pass::from(entered);
        self.token.store(pass.token, Release);
        let inside = match pass.content {
            Content::Current => INSIDE,
            Content::OwnerDied => BEREFT,
            Content::Lost => LOST,
        };
        self.state.store(inside, Release);
    }

    /// The thread waits in vain; [`Seat::wake`] must follow.
    pub fn send_away(&self) {
        self.state.store(OVER, Release);
    }

    pub fn wake(&self) {
        match &self.sleeper {
            Sleeper::Thread(thread) => thread.unpark(),
            Sleeper::Task(waker) => {
                let waker = waker.lock().whole().clone();
                wake(waker);
            }
        }
    }
}

/// Wakes a task. A waker is the program's and may panic; the thread that calls it serves others,
/// too.
pub(crate) fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}
