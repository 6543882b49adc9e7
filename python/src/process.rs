//! A child by `fork` has copies of handles whose threads, sockets and mappings are its parent's:
//! every call there must say so, or both would go on with memory of their own.

use crate::errors;
use pyo3::prelude::*;

/// The process that made a handle.
#[derive(Clone, Copy)]
pub struct Process(u32);

impl Process {
    pub fn this() -> Process {
        Process(std::process::id())
    }

    /// Whether the calling process made it.
    pub fn is_this(self) -> bool {
        self.0 == std::process::id()
    }

    /// # Errors
    /// `ClosedError` in a child by `fork`.
    pub fn check(self) -> PyResult<()> {
        if self.is_this() {
            return Ok(());
        }
        let text = "this process is a fork of the one that joined the rack, and is no member; \
                    nothing has changed; join in the child, with a node of its own \
                    (multiprocessing: the start method `spawn`)";
        Err(errors::raise("closed", text.into()))
    }
}
