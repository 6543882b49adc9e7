//! A rack as a process has it. Every handle of it keeps it, so that nobody's memory goes away under
//! the program.
//!
//! A child by `fork` has copies of handles whose threads, sockets and mappings are its parent's:
//! every call there must say so, or both would go on with memory of their own.

use crate::errors;
use crate::lock::Place;
use pyo3::prelude::*;
use rackmem::{LeaveError, Node, Rack, RackError};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The racks of this process that are open, and those of its parent's.
static OPEN: Mutex<Vec<Weak<Joined>>> = Mutex::new(Vec::new());

/// A rack, and the process that has made or joined it.
#[derive(Clone)]
pub struct Process(Arc<Joined>);

struct Joined {
    process: u32,
    closed: AtomicBool,
    /// `None`: closed.
    rack: Mutex<Option<Rack>>,
    /// Those that there are handles of.
    locks: Mutex<Vec<Weak<Place>>>,
}

impl Joined {
    fn is_this(&self) -> bool {
        self.process == std::process::id()
    }

    fn rack(&self) -> MutexGuard<'_, Option<Rack>> {
        self.rack.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locks(&self) -> MutexGuard<'_, Vec<Weak<Place>>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets others in where a thread has ended, or ends now, that would have done so.
    fn release_locks(&self) {
        let locks: Vec<_> = self.locks().drain(..).collect();
        let locks = locks.iter().filter_map(Weak::upgrade);
        locks.for_each(|lock| _ = lock.release());
    }

    fn close(&self) -> Result<(), LeaveError> {
        self.closed.store(true, Relaxed);
        let rack = self.rack().take();
        rack.map_or(Ok(()), Rack::close)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        match self.is_this() {
            // What its cache has would be lost otherwise. There is nobody to tell that it was.
            true => Python::attach(|py| drop(py.detach(|| self.close()))),
            // Its threads are the parent's.
            false => std::mem::forget(self.rack().take()),
        }
    }
}

impl Process {
    pub fn joined(rack: Rack) -> Process {
        let joined = Arc::new(Joined {
            process: std::process::id(),
            closed: AtomicBool::new(false),
            rack: Mutex::new(Some(rack)),
            locks: Mutex::default(),
        });
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|rack| rack.strong_count() > 0);
        open.push(Arc::downgrade(&joined));
        Process(joined)
    }

    /// Whether the calling process made it.
    pub fn is_this(&self) -> bool {
        self.0.is_this()
    }

    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Relaxed)
    }

    pub fn node(&self, id: usize) -> PyResult<Node> {
        let rack = self.0.rack();
        let node = rack.as_ref().ok_or(RackError::Closed);
        node.and_then(|rack| rack.try_node(id))
            .map_err(errors::rack)
    }

    pub fn close(&self) -> Result<(), LeaveError> {
        self.0.close()
    }

    /// There is a handle of this lock.
    pub fn has_lock(&self, lock: &Arc<Place>) {
        let mut locks = self.0.locks();
        // Those that are gone leave when there are twice as many.
        if locks.len() == locks.capacity() {
            locks.retain(|lock| lock.strong_count() > 0);
        }
        locks.push(Arc::downgrade(lock));
    }

    /// # Errors
    /// `ClosedError` in a child by `fork`.
    pub fn check(&self) -> PyResult<()> {
        if self.is_this() {
            return Ok(());
        }
        let text = "this process is a fork of the one that joined the rack, and is no member; \
                    nothing has changed; join in the child, with a node of its own \
                    (multiprocessing: the start method `spawn`)";
        Err(errors::raise("closed", text.into()))
    }

    /// The same, and of a rack that is closed: for memory that would end the process.
    pub fn check_open(&self) -> PyResult<()> {
        self.check()?;
        match self.is_closed() {
            true => Err(errors::rack(RackError::Closed)),
            false => Ok(()),
        }
    }
}

/// Closes the racks of this process that are open, for its end;
/// locks that it is inside go to others.
#[pyfunction]
pub fn close_all(py: Python<'_>) -> PyResult<()> {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open: Vec<_> = open.iter().filter_map(Weak::upgrade).collect();
    let own = open.iter().filter(|joined| joined.is_this());
    // All of them, whatever one says.
    let close = |joined: &Arc<Joined>| {
        joined.release_locks();
        joined.close()
    };
    let closed: Vec<_> = py.detach(|| own.map(close).collect());
    let closed: Result<(), LeaveError> = closed.into_iter().collect();
    closed.map_err(errors::leave)
}
