//! What events bring to pages of a mapping, and what becomes of faults.

use crate::error::AccessError;
use rackmem_proto::engine::Purpose;
use rackmem_proto::pages::Right;
use std::sync::Arc;

/// What becomes of a load or a store whose block cannot be had
/// ([`CoherentPages::on_lost`](crate::CoherentPages::on_lost)).
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{AccessError, OnLost, Rack, RegionError, RegionSpec};
///
/// let rack = Rack::local(1)?;
/// let region = rack.node(0).create_region(&RegionSpec::new("cells", 4096))?;
/// let pages = match region.map() {
///     Err(RegionError::NoPaging { .. }) => return Ok(()), // the system does not allow it
///     pages => pages?,
/// };
/// // Goes on with what a block's home has had before the block was lost.
/// let (node, first) = (rack.node(0), region.addr());
/// pages.on_lost(move |at, _stores, why| match why {
///     AccessError::Lost { .. } if node.accept_loss(first + at as u64).is_ok() => OnLost::Retry,
///     _ => OnLost::Signal,
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnLost {
    /// The reason is printed, and the thread gets `SIGBUS`, as without a handler.
    Signal,
    /// The instruction is tried again: the handler has done something about it.
    Retry,
}

/// Who says what becomes of an access whose block cannot be had: where in the mapping, whether it
/// stores, and why.
pub(crate) type Lost = Arc<dyn Fn(usize, bool, &AccessError) -> OnLost + Send + Sync>;

/// What came of showing a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Yes,
    /// The copy does not allow it, or this process cannot show that it is alive.
    No,
    /// The system does not allow it: the number of its error.
    Refused(i32),
}

/// What an event has brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Granted {
    /// A copy, for loads or for stores.
    New(Right),
    /// The right to store to the copy that was here.
    More,
}

impl Granted {
    /// By an event that brings a copy or a right.
    pub fn by(purpose: Purpose) -> Granted {
        let fetched = purpose.fetches().then(|| purpose.leaves()).flatten();
        fetched.map_or(Granted::More, |status| Granted::New(Right::of(status)))
    }
}
