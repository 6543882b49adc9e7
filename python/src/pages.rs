//! Mapped memory as a buffer: `memoryview`, NumPy and whatever else takes one.

use crate::errors;
use crate::process::Process;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use rackmem::{CoherentPages, OnLost};
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// A region's bytes as memory of this process, which other nodes change as well.
#[pyclass(frozen, module = "rackmem")]
pub struct Pages {
    pages: ManuallyDrop<CoherentPages>,
    process: Process,
}

impl Pages {
    pub fn new(pages: CoherentPages, process: Process) -> Pages {
        let pages = ManuallyDrop::new(pages);
        Pages { pages, process }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if self.process.is_this() {
            // Dirty pages go home; nobody may wait for that with the interpreter's lock.
            // SAFETY: nothing uses it after this.
            let pages = unsafe { ManuallyDrop::take(&mut self.pages) };
            Python::attach(|py| py.detach(|| drop(pages)));
        }
    }
}

#[pymethods]
impl Pages {
    fn __len__(&self) -> usize {
        self.pages.len()
    }

    /// Raises `ClosedError` where a load or a store would end the process: the rack is closed, or
    /// this is a child by `fork`.
    fn check(&self) -> PyResult<()> {
        self.process.check_open()
    }

    /// Brings the pages of these bytes, for stores too if wanted: system calls find them then.
    #[pyo3(signature = (start = 0, stop = None, *, stores = false))]
    fn touch(
        &self,
        py: Python<'_>,
        start: usize,
        stop: Option<usize>,
        stores: bool,
    ) -> PyResult<()> {
        self.process.check()?;
        let stop = stop.unwrap_or(self.pages.len());
        py.detach(|| self.pages.touch(start..stop, stores))
            .map_err(errors::region)
    }

    /// Brings the pages of these bytes, for stores too if wanted, and keeps them until it is left
    /// or released, a second at most: system calls (`os.readv`, `socket.recv_into`) find them.
    #[pyo3(signature = (start = 0, stop = None, *, stores = false))]
    fn pin(
        slf: Bound<'_, Self>,
        start: usize,
        stop: Option<usize>,
        stores: bool,
    ) -> PyResult<Pinned> {
        let pages = slf.get();
        pages.process.check()?;
        let bytes = start..stop.unwrap_or(pages.pages.len());
        let pin = || pages.pages.pin(bytes.clone(), stores).map(std::mem::forget);
        slf.py().detach(pin).map_err(errors::region)?;
        Ok(Pinned {
            pages: slf.unbind(),
            bytes,
            stores,
            released: AtomicBool::new(false),
        })
    }

    /// From now on `handler(byte, stores, error)` is asked about each load or store whose page
    /// cannot be had, in the thread that has it: true, and it is tried again; otherwise the process
    /// gets the signal that it would have had. `None`: nobody is asked.
    #[pyo3(signature = (handler))]
    fn on_lost(&self, py: Python<'_>, handler: Option<Py<PyAny>>) -> PyResult<()> {
        self.process.check()?;
        py.detach(|| match handler {
            None => self.pages.on_lost(|_, _, _| OnLost::Signal),
            Some(handler) => self.pages.on_lost(move |at, stores, why| {
                Python::attach(|py| {
                    let why = errors::access(*why);
                    let told = handler.call1(py, (at, stores, why.into_value(py)));
                    match told.and_then(|told| told.is_truthy(py)) {
                        Ok(true) => OnLost::Retry,
                        Ok(false) => OnLost::Signal,
                        Err(error) => {
                            error.write_unraisable(py, Some(handler.bind(py)));
                            OnLost::Signal
                        }
                    }
                })
            }),
        });
        Ok(())
    }

    /// Loads and stores that were interrupted, pages that were only shown again,
    /// taken away by other nodes, given up to make room, and there before they were asked for.
    fn counts(&self) -> (u64, u64, u64, u64, u64) {
        let rackmem::FaultCounts {
            faults,
            shown,
            taken,
            evicted,
            ahead,
            ..
        } = self.pages.counts();
        (faults, shown, taken, evicted, ahead)
    }

    /// # Safety
    /// Python's: `view` is one of its own.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let pages = slf.get();
        pages.process.check_open()?;
        if view.is_null() {
            return Err(PyBufferError::new_err("no view"));
        }
        let (at, len) = (pages.pages.as_ptr(), pages.pages.len() as ffi::Py_ssize_t);
        // SAFETY: so many bytes are mapped as long as `slf` is alive, which the view keeps alive.
        // Whoever uses them beside others does so as with memory that processes share.
        let done = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), at.cast(), len, 0, flags) };
        match done {
            0 => Ok(()),
            _ => Err(PyErr::fetch(slf.py())),
        }
    }
}

/// Pages that stay for system calls.
#[pyclass(frozen, module = "rackmem")]
pub struct Pinned {
    pages: Py<Pages>,
    bytes: Range<usize>,
    stores: bool,
    released: AtomicBool,
}

impl Pinned {
    fn end(&self, py: Python<'_>) {
        let pages = self.pages.get();
        if pages.process.is_this() && !self.released.swap(true, Relaxed) {
            // They are pages of the mapping: they were pinned.
            let _ = py.detach(|| pages.pages.unpin(self.bytes.clone(), self.stores));
        }
    }
}

#[pymethods]
impl Pinned {
    /// Other nodes may have them.
    fn release(&self, py: Python<'_>) {
        self.end(py);
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.end(py);
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        Python::attach(|py| self.end(py));
    }
}
