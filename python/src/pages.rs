//! Mapped memory as a buffer: `memoryview`, NumPy and whatever else takes one.

use crate::errors;
use crate::process::Process;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use rackmem::CoherentPages;
use std::ffi::c_int;
use std::mem::ManuallyDrop;

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

    /// Loads and stores that were interrupted, pages that were only shown again,
    /// taken away by other nodes, and given up to make room.
    fn counts(&self) -> (u64, u64, u64, u64) {
        let counts = self.pages.counts();
        (counts.faults, counts.shown, counts.taken, counts.evicted)
    }

    /// # Safety
    /// Python's: `view` is one of its own.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let pages = slf.get();
        pages.process.check()?;
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
