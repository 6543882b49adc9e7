//! A thread that makes batches durable, while others put records.

use crate::checkpoint::Checkpoint;
use crate::store::Writing;
use crate::{Disk, Store, StoreError};
use rackmem_proto::abd::Stamp;
use rackmem_proto::abd::journal::{Entry, Log};
use rackmem_proto::wire::Tag;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Bytes of lines that wait before [`Committer::put`] waits too.
const WAITING: usize = 64 << 20;

/// The member whose records are written. Its functions are called by the committer's thread.
pub trait Member<T>: Send + 'static {
    /// These are durable, in order: they may be acknowledged.
    fn durable(&mut self, tickets: Vec<T>);
    /// The store has ended, and so has the member: nothing is acknowledged any more.
    fn failed(&mut self, error: StoreError);
    /// A checkpoint could not be written; the store goes on, and tries again later.
    fn no_checkpoint(&mut self, error: &StoreError);
    /// For a checkpoint: the next lines of the member behind this one, or its first ones, in the
    /// order of their tags, as they are now. None: there are no more. It has at least what it has
    /// acknowledged.
    fn lines(&mut self, last: Option<Tag>, each: &mut dyn FnMut(Tag, Stamp, &[u8]));
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    /// Something waits, or there is room again.
    changed: Condvar,
    /// What [`Written`] says.
    bytes: AtomicU64,
    records: AtomicU64,
    batches: AtomicU64,
}

/// What a committer has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Bytes of journals behind the last checkpoint.
    pub bytes: u64,
    /// Records since it began.
    pub records: u64,
    /// Batches, each made durable at once, since it began.
    pub batches: u64,
}

struct Queue<T> {
    log: Log<T>,
    config: u32,
    stops: bool,
}

impl<T> Shared<T> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub struct Committer<T> {
    shared: Arc<Shared<T>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<T: Send + 'static> Committer<T> {
    /// Begins to write what is put.
    pub fn start<D: Disk + Send + 'static>(
        store: Store<D, T>,
        member: impl Member<T>,
    ) -> std::io::Result<Self> {
        let Store { log, writing } = store;
        let bytes = writing.bytes(log.offset());
        let queue = Queue {
            log,
            config: writing.config,
            stops: false,
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            bytes: AtomicU64::new(bytes),
            records: AtomicU64::new(0),
            batches: AtomicU64::new(0),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("rackmem-journal".into())
            .spawn(move || run(&of_thread, writing, member))?;
        Ok(Committer {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// A record for the next batch. Waits while too much does.
    pub fn put(&self, entry: &Entry<'_>, ticket: T) -> Result<(), StoreError> {
        let mut queue = self.shared.queue();
        while queue.log.waiting().1 >= WAITING && !queue.log.has_ended() && !queue.stops {
            let waited = self.shared.changed.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if let Entry::Config(number) = entry {
            queue.config = queue.config.max(*number);
        }
        if queue.stops {
            return Err(StoreError::Ended);
        }
        let put = queue.log.put(entry, ticket);
        drop(queue);
        self.shared.changed.notify_all();
        put.map_err(|_| StoreError::Ended)
    }
}

impl<T> Committer<T> {
    /// What it has written.
    pub fn written(&self) -> Written {
        Written {
            bytes: self.shared.bytes.load(Relaxed),
            records: self.shared.records.load(Relaxed),
            batches: self.shared.batches.load(Relaxed),
        }
    }

    /// Writes what waits, and ends. Nothing is put any more.
    pub fn close(&self) {
        self.shared.queue().stops = true;
        self.shared.changed.notify_all();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = thread.take();
        // The member's functions may be what lets go of the committer.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            // A panic of it has been reported where it happened.
            let _ = thread.join();
        }
    }
}

impl<T> Drop for Committer<T> {
    /// What waits is written first.
    fn drop(&mut self) {
        self.close();
    }
}

fn run<D: Disk, T>(shared: &Shared<T>, mut writing: Writing<D>, mut member: impl Member<T>) {
    let mut checkpoint = None;
    loop {
        let mut queue = shared.queue();
        // One that is not whole when this ends is begun anew by the next process.
        while queue.log.waiting().0 == 0 && (queue.stops || checkpoint.is_none()) {
            if queue.stops {
                return;
            }
            let waited = shared.changed.wait(queue);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
        writing.config = queue.config;
        drop(queue);
        let written = batch(shared, &mut writing, &mut member);
        let done = written
            .and_then(|bytes| go_on(shared, &mut writing, &mut member, &mut checkpoint, bytes));
        if let Err(error) = done {
            shared.queue().log.failed();
            shared.changed.notify_all();
            return member.failed(error);
        }
        let offset = shared.queue().log.offset();
        shared.bytes.store(writing.bytes(offset), Relaxed);
    }
}

/// What waits, as one batch: of how many bytes.
fn batch<D: Disk, T>(
    shared: &Shared<T>,
    writing: &mut Writing<D>,
    member: &mut impl Member<T>,
) -> Result<usize, StoreError> {
    let offset = shared.queue().log.offset();
    if writing.is_full(offset) {
        roll(shared, writing)?;
    }
    let bytes = shared.queue().log.take();
    shared.changed.notify_all();
    let Some(bytes) = bytes else {
        return Ok(0);
    };
    writing.append(&bytes)?;
    let tickets = shared.queue().log.durable();
    shared.batches.fetch_add(1, Relaxed);
    let records = tickets.len() as u64;
    shared.records.fetch_add(records, Relaxed);
    member.durable(tickets);
    Ok(bytes.len())
}

/// Another journal begins, unless the last one has no record yet: says with which record. Threads
/// put meanwhile: numbers are given to what is taken.
fn roll<D: Disk, T>(shared: &Shared<T>, writing: &mut Writing<D>) -> Result<u64, StoreError> {
    let queue = shared.queue();
    let (first, next, offset) = (queue.log.file().first, queue.log.next(), queue.log.offset());
    drop(queue);
    if first != next {
        writing.begin_journal(next, offset)?;
        shared.queue().log.roll().ok_or(StoreError::Ended)?;
    }
    Ok(next)
}

/// Begins a checkpoint if one is due, and writes the next piece of one that has begun, after a
/// batch of so many bytes.
fn go_on<D: Disk, T>(
    shared: &Shared<T>,
    writing: &mut Writing<D>,
    member: &mut impl Member<T>,
    checkpoint: &mut Option<Checkpoint>,
    batch: usize,
) -> Result<(), StoreError> {
    let offset = shared.queue().log.offset();
    let mut written = Ok(());
    if checkpoint.is_none() && writing.is_long(offset) {
        let first = roll(shared, writing)?;
        written = writing.begin(first).map(|begun| *checkpoint = Some(begun));
    }
    if let (Ok(()), Some(mut now)) = (&written, checkpoint.take()) {
        let whole = fill(&mut now, writing.piece(batch), member);
        written = match whole {
            true => writing.finish(now),
            false => writing.write(&mut now).map(|()| *checkpoint = Some(now)),
        };
    }
    match written {
        Err((error, true)) => Err(error),
        Err((error, false)) => {
            writing.put_off();
            member.no_checkpoint(&error);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Puts lines into a checkpoint until so many bytes wait there: whether it has all.
fn fill<T>(checkpoint: &mut Checkpoint, bytes: u64, member: &mut impl Member<T>) -> bool {
    while checkpoint.waiting() < bytes {
        let last = checkpoint.last;
        member.lines(last, &mut |tag, stamp, bytes| {
            checkpoint.put(&Entry::Line { tag, stamp, bytes });
        });
        if checkpoint.last == last {
            return true;
        }
    }
    false
}
