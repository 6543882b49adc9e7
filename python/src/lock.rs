//! Named locks and conditions of the rack.

use crate::errors;
use crate::process::Process;
use crate::rack::LOOK;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rackmem::locked::{Condvar, Guard, Mutex, Writing};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Held = Guard<'static, u64, Writing>;

/// A lock that one thread of all nodes has at a time.
#[pyclass(frozen, module = "rackmem")]
pub struct Lock {
    place: Arc<Place>,
    process: Process,
}

/// A lock, and whether this handle has it.
pub struct Place {
    /// Ends before the lock does.
    held: std::sync::Mutex<Option<Held>>,
    lock: Mutex<u64>,
}

impl Place {
    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next one in; whether it was held.
    pub fn release(&self) -> bool {
        let held = self.held().take();
        held.is_some()
    }
}

impl Lock {
    pub fn new(lock: Mutex<u64>, process: Process) -> Lock {
        let held = std::sync::Mutex::new(None);
        let place = Arc::new(Place { held, lock });
        process.has_lock(&place);
        Lock { place, process }
    }

    /// The number in the lock, if it is held.
    fn number(&self) -> Option<u64> {
        self.place.held().as_ref().map(Guard::get)
    }

    /// Adds one to the number.
    fn count(&self) -> Option<()> {
        let mut held = self.place.held();
        let held = held.as_mut()?;
        held.set(held.get().wrapping_add(1));
        Some(())
    }

    fn try_for(&self, py: Python<'_>, wait: Duration) -> PyResult<Option<u64>> {
        py.detach(|| {
            let held = self.place.lock.lock_within(wait)?;
            let Some(held) = held else {
                return Ok(None);
            };
            let token = held.token();
            // SAFETY: the guard borrows the lock, which is on the heap and dropped after it
            // (`Place`'s fields, and `release`).
            let held: Held = unsafe { std::mem::transmute::<Guard<'_, u64, Writing>, Held>(held) };
            *self.place.held() = Some(held);
            Ok(Some(token))
        })
        .map_err(errors::lock)
    }
}

/// When so many seconds are over; never, if there are none or too many.
fn limit(timeout: Option<f64>) -> Option<Instant> {
    let wait = Duration::try_from_secs_f64(timeout?.max(0.0)).ok()?;
    Instant::now().checked_add(wait)
}

/// How long that is from now.
fn left(limit: Option<Instant>) -> Duration {
    limit.map_or(Duration::MAX, |limit| {
        limit.saturating_duration_since(Instant::now())
    })
}

#[pymethods]
impl Lock {
    /// Waits for the lock, for ever or so many seconds; whether it has it then.
    #[pyo3(signature = (timeout = None))]
    fn acquire(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.process.check()?;
        let limit = limit(timeout);
        loop {
            let left = left(limit);
            if self.try_for(py, left.min(LOOK))?.is_some() {
                return Ok(true);
            }
            py.check_signals()?;
            if left <= LOOK {
                return Ok(false);
            }
        }
    }

    /// Lets the next one in.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check()?;
        match py.detach(|| self.place.release()) {
            true => Ok(()),
            false => Err(PyRuntimeError::new_err(
                "release of a lock that is not held",
            )),
        }
    }

    /// Rises with each holder: who has a lower one has lost the lock meanwhile.
    #[getter]
    fn token(&self) -> PyResult<u64> {
        self.process.check()?;
        let token = self.place.held().as_ref().map(Guard::token);
        token.ok_or_else(|| PyRuntimeError::new_err("the token of a lock that is not held"))
    }

    /// Whether this handle has it.
    #[getter]
    fn locked(&self) -> bool {
        self.place.held().is_some()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().acquire(slf.py(), None)?;
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _trace: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.release(py)
    }
}

/// A condition that threads of all nodes wait for. What notifies holds the lock,
/// and adds one to the number in it: whoever was off the list just then sees that it has changed.
#[pyclass(frozen, module = "rackmem")]
pub struct Condition {
    condition: Condvar,
    process: Process,
}

impl Condition {
    pub fn new(condition: Condvar, process: Process) -> Condition {
        Condition { condition, process }
    }
}

fn not_held() -> PyErr {
    PyRuntimeError::new_err("a condition is waited for and notified by who holds its lock")
}

#[pymethods]
impl Condition {
    /// Lets the lock go, waits to be notified, for ever or so many seconds, and holds it again;
    /// whether it was notified.
    #[pyo3(signature = (lock, timeout = None))]
    fn wait(&self, py: Python<'_>, lock: &Lock, timeout: Option<f64>) -> PyResult<bool> {
        self.process.check()?;
        let limit = limit(timeout);
        let before = lock.number().ok_or_else(not_held)?;
        loop {
            let left = left(limit);
            let notified = py.detach(|| {
                let held = lock.place.held().take().ok_or(None)?;
                let waited = self.condition.wait_within(held, left.min(LOOK));
                let (held, notified) = waited.map_err(Some)?;
                *lock.place.held() = Some(held);
                Ok(notified)
            });
            let notified: Result<bool, Option<rackmem::LockError>> = notified;
            let notified = notified.map_err(|error| error.map_or_else(not_held, errors::lock))?;
            py.check_signals()?;
            if notified || lock.number() != Some(before) {
                return Ok(true);
            }
            if left <= LOOK {
                return Ok(false);
            }
        }
    }

    /// Wakes so many of those who wait, the longest first, or all.
    #[pyo3(signature = (lock, count = None))]
    fn notify(&self, py: Python<'_>, lock: &Lock, count: Option<usize>) -> PyResult<()> {
        self.process.check()?;
        lock.count().ok_or_else(not_held)?;
        py.detach(|| match count {
            None => self.condition.notify_all().map(drop),
            Some(count) => {
                for _ in 0..count {
                    if !self.condition.notify_one()? {
                        break;
                    }
                }
                Ok(())
            }
        })
        .map_err(errors::lock)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.process.is_this() {
            std::mem::forget(self.place.clone());
        }
    }
}
