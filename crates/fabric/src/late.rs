//! Packets that are held back: a bounded queue by time, and a thread that sends what is due.

use crate::Whole;
use crate::wrap::{End, Fate, Packet, Taps};
use crate::{Body, Net, Nobody};
use rackmem_wire::{Dest, Header};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Packets held back at once at most: 32 MiB of the largest.
const MOST_HELD_BACK: usize = 1024;

struct Held {
    due: Instant,
    /// In order of arrival where times are equal.
    number: u64,
    from: End,
    from_requester: bool,
    to: Dest,
    header: Header,
    body: Vec<u8>,
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Held {}

#[derive(Default)]
struct Queue {
    held: BinaryHeap<Reverse<Held>>,
    number: u64,
    stop: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A packet is in the queue or not: a panic elsewhere does not spoil it.
        self.queue.lock().whole()
    }

    /// The next packet, when it is due; `None` after the end of the network.
    fn next(&self) -> Option<Held> {
        let mut queue = self.queue();
        loop {
            if queue.stop {
                return None;
            }
            let now = Instant::now();
            let due = queue.held.peek().map(|first| first.0.due);
            queue = match due {
                Some(due) if due <= now => return queue.held.pop().map(|first| first.0),
                Some(due) => {
                    let woken = self.changed.wait_timeout(queue, due - now);
                    woken.whole().0
                }
                None => {
                    let woken = self.changed.wait(queue);
                    woken.whole()
                }
            };
        }
    }
}

/// Packets on their way, later than others. Dropping it loses them.
pub(crate) struct LateQueue {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl LateQueue {
    pub fn start(net: Arc<dyn Net + Send + Sync>, taps: Taps) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let queue = shared.clone();
        let thread = std::thread::Builder::new()
            .name("rackmem-late".into())
            .spawn(move || {
                while let Some(held) = queue.next() {
                    release(&*net, &taps, &held);
                }
            })?;
        Ok(LateQueue {
            shared,
            thread: Some(thread),
        })
    }

    /// Holds a packet back. False when there is no room for it.
    pub fn push(&self, packet: &Packet<'_>, wait: Duration) -> bool {
        let mut body = Vec::with_capacity(packet.body.len());
        match packet.body {
            Body::None => {}
            Body::Block(words) => crate::body::append(&mut body, words),
            Body::Bytes(bytes) => body.extend_from_slice(bytes),
        }
        let mut queue = self.shared.queue();
        if queue.held.len() >= MOST_HELD_BACK {
            return false;
        }
        queue.number += 1;
        let held = Held {
            due: Instant::now() + wait,
            number: queue.number,
            from: packet.from,
            from_requester: packet.from_requester,
            to: packet.to,
            header: *packet.header,
            body,
        };
        queue.held.push(Reverse(held));
        drop(queue);
        self.shared.changed.notify_one();
        true
    }
}

impl Drop for LateQueue {
    fn drop(&mut self) {
        self.shared.queue().stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the thread itself; there is nothing to add while
            // dropping.
            let _ = thread.join();
        }
    }
}

fn release(net: &dyn Net, taps: &Taps, held: &Held) {
    let packet = Packet {
        from: held.from,
        from_requester: held.from_requester,
        to: held.to,
        header: &held.header,
        body: match held.body.is_empty() {
            true => Body::None,
            false => Body::Bytes(&held.body),
        },
    };
    taps.iter().for_each(|tap| tap.packet(&packet, Fate::Late));
    net.send(packet.to, packet.header, packet.body, &mut Nobody);
}
