//! The baseline of a miss through shared memory: the barest messages between threads.
//!
//! A message is copied into the next hop's slot, and a word says that it is there.
//! A hop that waits for the word asks again and again, or sleeps on a futex. There is one message
//! under way, so a slot is all the ring there is.

use super::{MAX_MESSAGE_BYTES, PATIENCE, PlainError, Wait, compute};
use crate::histogram::Histogram;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a sleeping hop takes to notice that the measurement is over.
const NAP: Duration = Duration::from_millis(20);

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// How often a message is handed on: 2 is there and back, 3 is through a forwarder.
    pub hops: usize,
    /// Bytes of a message, on all hops but the last.
    pub request: usize,
    /// Bytes of the last one.
    pub answer: usize,
    /// How hops wait.
    pub wait: Wait,
    /// Messages that are measured.
    pub rounds: u32,
    /// Messages before these.
    pub warm_up: u32,
    /// How long the client computes between one answer and the next request.
    pub pause: Duration,
}

/// What a slot's word says.
const EMPTY: u32 = 0;
const FULL: u32 = 1;

/// Where one hop finds its messages.
#[repr(align(128))]
struct Slot {
    state: AtomicU32,
    message: UnsafeCell<Box<[u8]>>,
}

// SAFETY: the message belongs to the one sender while the state is EMPTY,
// and to the one receiver while it is FULL.
unsafe impl Sync for Slot {}

impl Slot {
    fn new() -> Slot {
        Slot {
            state: AtomicU32::new(EMPTY),
            message: UnsafeCell::new(vec![0; MAX_MESSAGE_BYTES].into()),
        }
    }

    fn send(&self, message: &[u8], wait: Wait) {
        debug_assert_eq!(self.state.load(Ordering::Relaxed), EMPTY);
        // SAFETY: there is one message under way, and it is with the caller:
        // the slot is EMPTY and its receiver waits.
        let slot = unsafe { &mut *self.message.get() };
        slot[..message.len()].copy_from_slice(message);
        self.state.store(FULL, Ordering::Release);
        if wait == Wait::Block {
            futex(&self.state, libc::FUTEX_WAKE, 1);
        }
    }

    /// Takes a message of so many bytes. False when there is none and the measurement is over.
    fn receive(&self, message: &mut [u8], waiting: Waiting<'_>) -> bool {
        let mut in_vain = 0;
        while self.state.load(Ordering::Acquire) != FULL {
            if waiting.stop.load(Ordering::Relaxed) {
                return false;
            }
            waiting.rest(self, &mut in_vain);
        }
        // SAFETY: the state is FULL, and this is the slot's receiver.
        let slot = unsafe { &*self.message.get() };
        message.copy_from_slice(&slot[..message.len()]);
        self.state.store(EMPTY, Ordering::Release);
        true
    }
}

/// A hop's way to wait.
#[derive(Clone, Copy)]
struct Waiting<'a> {
    wait: Wait,
    patience: u32,
    stop: &'a AtomicBool,
}

impl Waiting<'_> {
    fn of(wait: Wait, stop: &AtomicBool) -> Waiting<'_> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Waiting {
            wait,
            patience: PATIENCE[usize::from(cores >= 3)],
            stop,
        }
    }

    fn rest(&self, slot: &Slot, in_vain: &mut u32) {
        if self.wait == Wait::Block {
            return futex(&slot.state, libc::FUTEX_WAIT, EMPTY);
        }
        *in_vain += 1;
        if *in_vain < self.patience {
            std::hint::spin_loop();
        } else {
            *in_vain = 0;
            std::thread::yield_now();
        }
    }
}

fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    let nap = libc::timespec {
        tv_sec: 0,
        // Less than a second, so it fits.
        tv_nsec: NAP.as_nanos() as libc::c_long,
    };
    let private = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time outlive the call. Whatever it returns,
    // the caller looks at the word again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            private,
            value,
            &raw const nap,
        )
    };
}

/// Measures the time from a request to its answer, in nanoseconds.
pub fn measure(chain: Chain) -> Result<Histogram, PlainError> {
    let largest = chain.request.max(chain.answer);
    if largest > MAX_MESSAGE_BYTES || chain.hops < 2 {
        return Err(PlainError::TooLarge(largest));
    }
    let slots: Vec<Slot> = (0..chain.hops).map(|_| Slot::new()).collect();
    let stop = AtomicBool::new(false);
    let bytes = |hop: usize| match hop + 1 == chain.hops {
        true => chain.answer,
        false => chain.request,
    };
    std::thread::scope(|scope| {
        for (hop, pair) in slots.windows(2).enumerate() {
            let (stop, sizes) = (&stop, [bytes(hop), bytes(hop + 1)]);
            scope.spawn(move || {
                let waiting = Waiting::of(chain.wait, stop);
                let mut message = vec![0; sizes[0].max(sizes[1])];
                while pair[0].receive(&mut message[..sizes[0]], waiting) {
                    pair[1].send(&message[..sizes[1]], chain.wait);
                }
            });
        }
        let times = ask(&slots[0], &slots[chain.hops - 1], chain);
        stop.store(true, Ordering::Relaxed);
        Ok(times)
    })
}

/// The client: one request after the other.
fn ask(first: &Slot, last: &Slot, chain: Chain) -> Histogram {
    let mut times = Histogram::new();
    let (request, mut answer) = (vec![1; chain.request], vec![0; chain.answer]);
    let never = AtomicBool::new(false);
    let waiting = Waiting::of(chain.wait, &never);
    for round in 0..chain.warm_up.saturating_add(chain.rounds) {
        let start = Instant::now();
        first.send(&request, chain.wait);
        last.receive(&mut answer, waiting);
        if round >= chain.warm_up {
            times.record(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
        compute(chain.pause);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Chain = Chain {
        hops: 3,
        request: 64,
        answer: 4096,
        wait: Wait::Block,
        rounds: 200,
        warm_up: 20,
        pause: Duration::ZERO,
    };

    #[test]
    fn messages_come_around_either_way_of_waiting() {
        for wait in [Wait::Block, Wait::Spin] {
            for hops in [2, 3] {
                let times = measure(Chain {
                    hops,
                    wait,
                    ..SHORT
                })
                .unwrap();
                assert_eq!(times.count(), 200);
                assert!(times.min() > 50, "{times:?}");
            }
        }
    }

    #[test]
    fn impossible_chains_are_refused() {
        let answer = MAX_MESSAGE_BYTES + 1;
        assert!(measure(Chain { answer, ..SHORT }).is_err());
        assert!(measure(Chain { hops: 1, ..SHORT }).is_err());
    }
}
