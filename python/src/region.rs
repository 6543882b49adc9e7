//! Regions by calls.

use crate::errors;
use crate::pages::Pages;
use crate::process::Process;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use rackmem::FaultMode;

/// Shorter copies keep the interpreter's lock: letting go of it and taking it costs more than they
/// do, unless they miss.
const SHORT: usize = 64;

/// A named region of coherent memory.
#[pyclass(frozen, module = "rackmem")]
pub struct Region {
    node: rackmem::Node,
    region: rackmem::Region,
    process: Process,
}

impl Region {
    pub fn new(node: &rackmem::Node, region: rackmem::Region, process: Process) -> Region {
        let node = node.clone();
        Region {
            node,
            region,
            process,
        }
    }

    /// The address of a word.
    fn word(&self, at: usize) -> PyResult<u64> {
        self.process.check()?;
        let len = self.region.bytes();
        if !at.is_multiple_of(8) || at.checked_add(8).is_none_or(|end| end > len) {
            let text = format!("byte {at} of a region of {len} bytes is no aligned word of it");
            return Err(PyValueError::new_err(text));
        }
        Ok(self.region.addr() + at as u64)
    }
}

fn bytes_of(buffer: &PyBuffer<u8>) -> PyResult<()> {
    match buffer.is_c_contiguous() {
        true => Ok(()),
        false => Err(PyValueError::new_err(
            "a contiguous buffer of bytes is needed",
        )),
    }
}

#[pymethods]
impl Region {
    #[getter]
    fn name(&self) -> &str {
        self.region.name()
    }

    /// Whether this handle has made it.
    #[getter]
    fn created(&self) -> bool {
        self.region.is_new()
    }

    fn __len__(&self) -> usize {
        self.region.bytes()
    }

    /// So many bytes from one on; what lies in one block is of one moment.
    fn read<'py>(&self, py: Python<'py>, at: usize, len: usize) -> PyResult<Bound<'py, PyBytes>> {
        self.process.check()?;
        PyBytes::new_with(py, len, |out| {
            let read = match len < SHORT {
                true => self.region.read(at, out),
                false => py.detach(|| self.region.read(at, out)),
            };
            read.map_err(errors::region)
        })
    }

    /// The same, as bytes that can be changed.
    fn read_bytearray<'py>(
        &self,
        py: Python<'py>,
        at: usize,
        len: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        self.process.check()?;
        PyByteArray::new_with(py, len, |out| {
            py.detach(|| self.region.read(at, out))
                .map_err(errors::region)
        })
    }

    /// Writes a buffer from one byte on.
    fn write(&self, py: Python<'_>, at: usize, from: PyBuffer<u8>) -> PyResult<()> {
        self.process.check()?;
        bytes_of(&from)?;
        // A copy: what Python's threads do with the buffer meanwhile is theirs.
        let bytes = from.to_vec(py)?;
        py.detach(|| self.region.write(at, &bytes))
            .map_err(errors::region)
    }

    /// The word at an offset that is a multiple of eight.
    fn load(&self, py: Python<'_>, at: usize) -> PyResult<u64> {
        let word = self.word(at)?;
        py.detach(|| self.node.load(word)).map_err(errors::access)
    }

    fn store(&self, py: Python<'_>, at: usize, value: u64) -> PyResult<()> {
        let word = self.word(at)?;
        py.detach(|| self.node.store(word, value))
            .map_err(errors::access)
    }

    /// Adds to a word, wrapping; what it was before.
    fn fetch_add(&self, py: Python<'_>, at: usize, n: u64) -> PyResult<u64> {
        let word = self.word(at)?;
        py.detach(|| self.node.fetch_add(word, n))
            .map_err(errors::access)
    }

    /// Puts `new` where `old` is; whether it was, and what was there.
    fn compare_exchange(
        &self,
        py: Python<'_>,
        at: usize,
        old: u64,
        new: u64,
    ) -> PyResult<(bool, u64)> {
        let word = self.word(at)?;
        let was = py.detach(|| {
            let change = |word| (word == old).then_some(new);
            self.node.fetch_update(word, change)
        });
        let was = was.map_err(errors::access)?;
        Ok((was == old, was))
    }

    /// Goes on with what home has of the block of this byte, which a node has died with: what was
    /// stored since it was last at home is gone.
    fn accept_loss(&self, py: Python<'_>, at: usize) -> PyResult<()> {
        let word = self.word(at / 8 * 8)?;
        py.detach(|| self.node.accept_loss(word))
            .map_err(errors::access)
    }

    /// Its bytes as memory of this process. Faults come by a `signal`,
    /// to a `thread` of the library, or by `mprotect`: see docs/mapped.md.
    /// A node keeps the first way of a region.
    #[pyo3(signature = (*, faults = "signal"))]
    fn map(&self, py: Python<'_>, faults: &str) -> PyResult<Pages> {
        self.process.check()?;
        let mode = FaultMode::ALL
            .into_iter()
            .find(|mode| mode.name() == faults);
        let mode = mode.ok_or_else(|| {
            PyValueError::new_err(format!(
                "faults come by signal, thread or mprotect, not {faults:?}"
            ))
        })?;
        let pages = py
            .detach(|| self.region.map_with(mode))
            .map_err(errors::region)?;
        Ok(Pages::new(pages, self.process.clone()))
    }

    fn __repr__(&self) -> String {
        format!(
            "<rackmem.Region {:?} of {} bytes>",
            self.region.name(),
            self.region.bytes()
        )
    }
}
