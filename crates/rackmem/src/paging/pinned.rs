//! Mapped pages that stay for a while, so that system calls find them; and blocks that are lost.

use super::coherent::CoherentPages;
use crate::backoff::Backoff;
use crate::bytes::mapped::OnLost;
use crate::error::{AccessError, RegionError};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Others wait no longer than this for a page that was just shown.
const LONGEST_HOLD: Duration = Duration::from_millis(1);

/// Pages that this node keeps until it is dropped, or for a second ([`CoherentPages::pin`]).
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Pinned, Rack, RegionError, RegionSpec};
/// use std::io::Read;
///
/// let rack = Rack::local(2)?;
/// let region = rack.node(0).create_region(&RegionSpec::new("file", 8192))?;
/// let pages = match region.map() {
///     Err(RegionError::NoPaging { .. }) => return Ok(()), // the system does not allow it
///     pages => pages?,
/// };
/// let pinned: Pinned<'_> = pages.pin(0..8192, true)?;
/// // SAFETY: nobody else uses these bytes now.
/// let buffer = unsafe { std::slice::from_raw_parts_mut(pages.as_ptr(), 8192) };
/// let read = std::fs::File::open("/dev/zero").and_then(|mut file| file.read(buffer));
/// assert_eq!(read.expect("the kernel finds the pages"), 8192);
/// assert!(pinned.is_kept());
/// # Ok(())
/// # }
/// ```
#[must_use = "pages are unpinned when it is dropped"]
#[derive(Debug)]
pub struct Pinned<'a> {
    pages: &'a CoherentPages,
    /// Blocks of the mapping.
    blocks: Range<usize>,
    stores: bool,
}

impl Pinned<'_> {
    /// Whether all of it is here still: the second is not over for any, or nobody has wanted it.
    pub fn is_kept(&self) -> bool {
        let frames = self.pages.frames();
        (self.blocks.clone()).all(|nth| frames.allows(nth, self.stores))
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.pages.unpin_blocks(self.blocks.clone(), self.stores);
    }
}

impl CoherentPages {
    /// Brings the pages of these bytes, for stores too if wanted, and keeps them here, so that
    /// system calls find them: `read(2)`, `write(2)`, `sendmsg(2)` and whatever is over when it
    /// returns.
    ///
    /// Other nodes that want them wait meanwhile, and so do threads that wait for these: not longer
    /// than a second from the first pin of a page on, when it is taken as if it were not pinned. So
    /// pin for one call at a time, and a file or a socket that may have nothing for long is waited
    /// for before (`poll(2)`). A page pinned for loads still goes to nodes that load. What waits
    /// for a third node is refused, and tries for as long as its patience
    /// ([`Builder::patience`](crate::Builder::patience)), which should be more.
    ///
    /// A call of this node that looks at a pinned block ([`Node::snapshot`](crate::Node::snapshot),
    /// [`Region::write`](crate::Region::write)) has it for itself for that moment: a system call of
    /// another thread may fail then with `EFAULT`. So may one where the process cannot show that it
    /// is alive.
    ///
    /// # Errors
    /// [`RegionError::TooManyPinned`]: 4,096 blocks of a mapping, or half of the blocks that the
    /// cache has room for; those of [`CoherentPages::touch`]. Nothing is pinned then.
    pub fn pin(&self, bytes: Range<usize>, stores: bool) -> Result<Pinned<'_>, RegionError> {
        let blocks = self.blocks(bytes)?;
        let mut pinned = Pinned {
            pages: self,
            blocks: blocks.start..blocks.start,
            stores,
        };
        for nth in blocks {
            self.pin_block(nth, stores)?;
            pinned.blocks.end = nth + 1;
        }
        Ok(pinned)
    }

    /// Undoes one [`CoherentPages::pin`] of these bytes whose [`Pinned`] was forgotten
    /// ([`std::mem::forget`]): for bindings, whose callers keep no guards.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`].
    pub fn unpin(&self, bytes: Range<usize>, stores: bool) -> Result<(), RegionError> {
        self.unpin_blocks(self.blocks(bytes)?, stores);
        Ok(())
    }

    fn pin_block(&self, nth: usize, stores: bool) -> Result<(), RegionError> {
        let (frames, access) = (self.frames(), &self.node().inner.access);
        let mut backoff = Backoff::new(access.patience);
        loop {
            access.page_in(frames.tag(nth), stores)?;
            match frames.pin(nth, stores) {
                Ok(true) => return Ok(()),
                Ok(false) if backoff.wait() => {}
                Ok(false) => {
                    let addr = frames.tag(nth).0;
                    return Err(AccessError::Busy { addr }.into());
                }
                Err(most) => return Err(RegionError::TooManyPinned { most }),
            }
        }
    }

    fn unpin_blocks(&self, blocks: Range<usize>, stores: bool) {
        if !self.is_of_this_process() {
            return;
        }
        let frames = self.frames();
        blocks.for_each(|nth| frames.unpin(nth, stores));
        self.node().inner.access.unpinned();
    }

    /// Lets a page that this mapping has just got stay for so long, while other nodes wait for it:
    /// a millisecond at most, and 10 µs without this call (100 by
    /// [`FaultMode::Thread`](crate::FaultMode::Thread), where who has asked has to wake up). Longer
    /// where nodes store to different words of one page, and would rather do more at a time than
    /// wait for less; zero gives it away before it may have been of use. For all handles on the
    /// mapping.
    pub fn set_hold(&self, hold: Duration) {
        self.frames().set_hold(bounded(hold));
    }

    /// From now on this says what becomes of loads and stores of this mapping whose block cannot be
    /// had, by all handles on it; without one the reason is printed, and the thread gets `SIGBUS`.
    ///
    /// It runs in the thread that has loaded or stored, is told the offset in the region, whether
    /// it was a store, and why, and may call this library: on
    /// [`AccessError::Lost`] it may accept the loss
    /// ([`Node::accept_loss`](crate::Node::accept_loss)) and have the instruction tried again. It
    /// must not touch the mapping, nor wait for a thread that does, and may end the thread or jump
    /// out of it only where the program could at that instruction.
    pub fn on_lost(
        &self,
        handler: impl Fn(usize, bool, &AccessError) -> OnLost + Send + Sync + 'static,
    ) {
        let skip = self.skip();
        self.frames().on_lost(Some(Arc::new(
            move |at: usize, stores, error: &AccessError| {
                handler(at.saturating_sub(skip), stores, error)
            },
        )));
    }
}

/// Nanoseconds of a hold.
fn bounded(hold: Duration) -> u64 {
    hold.min(LONGEST_HOLD).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_kept_waiting_for_longer_than_a_millisecond() {
        assert_eq!(bounded(Duration::ZERO), 0);
        assert_eq!(bounded(Duration::from_micros(200)), 200_000);
        assert_eq!(bounded(Duration::MAX), 1_000_000);
    }
}
