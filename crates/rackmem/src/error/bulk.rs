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
    /// Elements (bytes of [`Node::write`](crate::Node::write)), from the first of the call on, that
    /// have been read or written. Those behind them may have been, too; an element that is being
    /// written when its home dies is lost with its block, and not torn.
    pub done: usize,
    /// Why.
    pub error: AccessError,
    /// Whether elements were being written.
    writes: bool,
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
        }
    }

    /// Writing has stopped.
    pub(crate) fn writing(done: usize, error: AccessError) -> Self {
        BulkError {
            done,
            error,
            writes: true,
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
        let what = if self.writes { "written" } else { "read" };
        write!(f, ", after {} elements were {what}", self.done)
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
