//! Where a thread waits to be let in.

use rackmem_proto::gcp::Access;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::thread::Thread;

/// What has become of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Called {
    /// Nothing yet.
    Waiting,
    /// The thread is inside, with this fencing token.
    Inside(u64),
    /// The lock is no more.
    Over,
}

const WAITING: u8 = 0;
const INSIDE: u8 = 1;
const OVER: u8 = 2;

/// One wait of one thread.
pub(super) struct Seat {
    pub access: Access,
    thread: Thread,
    state: AtomicU8,
    token: AtomicU64,
}

impl Seat {
    /// For this thread.
    pub fn new(access: Access) -> Self {
        Seat {
            access,
            thread: std::thread::current(),
            state: AtomicU8::new(WAITING),
            token: AtomicU64::new(0),
        }
    }

    pub fn called(&self) -> Called {
        match self.state.load(Acquire) {
            INSIDE => Called::Inside(self.token.load(Acquire)),
            OVER => Called::Over,
            _ => Called::Waiting,
        }
    }

    /// The thread is inside from now on; [`Seat::wake`] must follow.
    pub fn let_in(&self, token: u64) {
        self.token.store(token, Release);
        self.state.store(INSIDE, Release);
    }

    /// The thread waits in vain; [`Seat::wake`] must follow.
    pub fn send_away(&self) {
        self.state.store(OVER, Release);
    }

    pub fn wake(&self) {
        self.thread.unpark();
    }
}
