//! A named lock of the rack.

use crate::errors;
use crate::process::Process;
use crate::rack::LOOK;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rackmem::locked::{Guard, Mutex, Writing};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

type Held = Guard<'static, u64, Writing>;

/// A lock that one thread of all nodes has at a time.
#[pyclass(frozen, module = "rackmem")]
pub struct Lock {
    /// Ends before the lock does.
    held: std::sync::Mutex<Option<Held>>,
    lock: Arc<Mutex<u64>>,
    process: Process,
}

impl Lock {
    pub fn new(lock: Mutex<u64>, process: Process) -> Lock {
        Lock {
            held: std::sync::Mutex::new(None),
            lock: Arc::new(lock),
            process,
        }
    }

    fn try_for(&self, py: Python<'_>, wait: Duration) -> PyResult<Option<u64>> {
        py.detach(|| {
            let held = self.lock.lock_within(wait)?;
            let Some(held) = held else {
                return Ok(None);
            };
            let token = held.token();
            // SAFETY: the guard borrows the lock, which is on the heap and dropped after it
            // (`Lock`'s fields, and `release`).
            let held: Held = unsafe { std::mem::transmute::<Guard<'_, u64, Writing>, Held>(held) };
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
            Ok(Some(token))
        })
        .map_err(errors::lock)
    }
}

#[pymethods]
impl Lock {
    /// Waits for the lock, for ever or so many seconds; whether it has it then.
    #[pyo3(signature = (timeout = None))]
    fn acquire(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.process.check()?;
        let limit = timeout.map(|seconds| {
            let wait = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
            Instant::now().checked_add(wait)
        });
        loop {
            let left = match limit {
                Some(Some(limit)) => limit.saturating_duration_since(Instant::now()),
                _ => Duration::MAX,
            };
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
        let held = self
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match held {
            Some(held) => {
                py.detach(|| drop(held));
                Ok(())
            }
            None => Err(PyRuntimeError::new_err(
                "release of a lock that is not held",
            )),
        }
    }

    /// Rises with each holder: who has a lower one has lost the lock meanwhile.
    #[getter]
    fn token(&self) -> PyResult<u64> {
        self.process.check()?;
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let token = held.as_ref().map(Guard::token);
        token.ok_or_else(|| PyRuntimeError::new_err("the token of a lock that is not held"))
    }

    /// Whether this handle has it.
    #[getter]
    fn locked(&self) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.is_some()
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

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.process.is_this() {
            let held = self
                .held
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            std::mem::forget(held);
            std::mem::forget(self.lock.clone());
        }
    }
}
