//! Waiting for what another thread of the rack writes in a page of an array.

use super::array::RwLockArray;
use super::handle::Handle;
use crate::bytes::window::{Grow, Window};
use crate::error::LockError;
use crate::host::locks::seat::Seat;
use crate::wait::Wait;
use rackmem_proto::gcp::Access;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl RwLockArray {
    /// Waits until a page says something to `look`, which sees it as its readers do: it is short,
    /// and uses the rack in no way. `None`: it has not said so in time.
    ///
    /// The page is at every node that waits, and who waits asks the network for nothing while
    /// nobody changes it: a writer takes it from the node, and that wakes its threads. The death of
    /// a node changes a page if that node had it. With [`Wait::Never`] the page is looked at once,
    /// if it is here.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::locked::RwLockArray;
    /// use rackmem::{Rack, Wait, Window};
    ///
    /// let rack = Rack::local(2)?;
    /// let memory = rack.node(0).alloc_bytes(RwLockArray::STRIDE)?;
    /// let here = RwLockArray::attach(&rack.node(0), memory, 1, 64)?;
    /// let there = RwLockArray::attach(&rack.node(1), memory, 1, 64)?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| there.write(0).unwrap().view_mut(8).set_u64(0, 42));
    ///     let some = |page: &Window<'_>| Some(page.u64(0)).filter(|n| *n > 0);
    ///     let said = here.await_page(0, Wait::Forever, some)?;
    ///     assert_eq!(said, Some(42));
    ///     Ok::<_, rackmem::Error>(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`super::Mutex::lock`].
    pub fn await_page<R>(
        &self,
        index: usize,
        wait: impl Into<Wait>,
        mut look: impl FnMut(&Window<'_>) -> Option<R>,
    ) -> Result<Option<R>, LockError> {
        let handle = self.handle(index)?;
        let Some(at_most) = wait.into().limit() else {
            let inside = handle.try_enter(Access::Read)?;
            return Ok(inside.and_then(|_inside| look(&handle.window())));
        };
        let began = Instant::now();
        loop {
            let left = at_most.saturating_sub(began.elapsed());
            if let Some(said) = look_or_sleep(handle, left, &mut look)? {
                return Ok(Some(said));
            }
            if began.elapsed() >= at_most {
                return Ok(None);
            }
        }
    }
}

/// Looks, and if that says nothing sleeps until the page may have changed.
fn look_or_sleep<R>(
    handle: &Handle,
    left: Duration,
    look: &mut impl FnMut(&Window<'_>) -> Option<R>,
) -> Result<Option<R>, LockError> {
    let began = Instant::now();
    let Some(inside) = handle.enter(Access::Read, left)? else {
        return Ok(None);
    };
    if let Some(said) = look(&handle.window()) {
        return Ok(Some(said));
    }
    let seat = Arc::new(Seat::new());
    // Nobody changes the page before this thread has left.
    handle.watch(&seat);
    drop(inside);
    handle.await_change(&seat, left.saturating_sub(began.elapsed()))?;
    Ok(None)
}
