//! A long range is read or written.

use super::{AccessError, Changed, shown};
use std::fmt;

/// Why an operation on a long range has stopped, and how far it has come.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{AccessError, Rack, SharedSlice};
///
/// let rack = Rack::local(1)?;
/// let slice: SharedSlice<u32> = rack.node(0).alloc_slice(10)?;
/// let stopped = slice.write_from(8, &[1, 2, 3]).unwrap_err();
/// assert_eq!(stopped.done, 0);
/// assert_eq!(stopped.error, AccessError::OutOfBounds { at: 8, len: 3, of: 10 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BulkError {
    /// Elements of a slice, or bytes of [`Node::write`](crate::Node::write) and
    /// [`Region::write`](crate::Region::write), from the first of the call on, that have been read
    /// or written. Those behind them may have been, too; what is being written when its home dies
    /// is lost with its block, and not torn.
    pub done: usize,
    /// Why.
    pub error: AccessError,
    /// Whether it was writing.
    writes: bool,
    /// Whether `done` is bytes.
    bytes: bool,
}

/// The result of an operation on a long range.
pub type BulkResult<T> = std::result::Result<T, BulkError>;

impl BulkError {
    /// Reading has stopped.
    pub(crate) fn reading(done: usize, error: AccessError) -> Self {
        BulkError {
            done,
            error,
            writes: false,
            bytes: false,
        }
    }

    /// Writing has stopped.
    pub(crate) fn writing(done: usize, error: AccessError) -> Self {
        BulkError {
            done,
            error,
            writes: true,
            bytes: false,
        }
    }

    /// The same, of an operation that counts bytes.
    pub(crate) fn in_bytes(self) -> Self {
        BulkError {
            bytes: true,
            ..self
        }
    }

    /// The cause in a word that stays the same in later versions, for logs.
    pub fn code(&self) -> &'static str {
        self.error.code()
    }

    /// The family that the cause is of, in a word.
    pub fn family(&self) -> &'static str {
        self.error.family()
    }

    /// What has happened.
    pub fn what(&self) -> String {
        super::text(|f| self.cause(f))
    }

    pub(super) fn cause(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.cause(f)?;
        let did = if self.writes { "written" } else { "read" };
        let unit = if self.bytes { "byte" } else { "element" };
        match self.done {
            1 => write!(f, ", after 1 {unit} was {did}"),
            done => write!(f, ", after {done} {unit}s were {did}"),
        }
    }

    /// Whether anything has changed.
    pub fn changed(&self) -> Changed {
        match (self.writes, self.done, self.error) {
            (false, ..) => Changed::No,
            (true, 1.., _) => Changed::Yes,
            // Refused before it began.
            (
                _,
                0,
                AccessError::BadAddress { .. }
                | AccessError::WrongContract { .. }
                | AccessError::BadRange { .. }
                | AccessError::OutOfBounds { .. },
            ) => Changed::No,
            // Several blocks are under way at a time: not the first one, but one behind it.
            (true, 0, _) => Changed::Perhaps,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> &'static str {
        self.error.next_step()
    }
}

shown!(BulkError);

impl std::error::Error for BulkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
