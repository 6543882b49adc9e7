//! What is done with items, as futures.

use super::asking::{Entering, Quiescing, Reading};
use super::copies::Copies;
use super::domain::{Domain, Pinned, holds};
use super::writing::DomainWriter;
use crate::bytes::value::Value;
use crate::error::{AccessError, RackError, RegionError};
use crate::host::driving::errand::{Action, Asked, Came};
use rackmem_proto::bi::cached::BiAsk;
use std::future::Future;
use std::sync::Arc;

/// An operation as a future.
fn asked<T, R, F>(
    copies: Arc<Copies<T>>,
    mut go_on: F,
) -> impl Future<Output = Result<R, AccessError>> + Send + Unpin + use<T, R, F>
where
    T: Value,
    R: Send + 'static,
    F: FnMut(&Copies<T>, Option<Came<BiAsk>>) -> Action<R, BiAsk> + Send + 'static,
{
    let node = copies.node.inner.clone();
    let mut polled = false;
    Asked::new(&node, move |came: Option<Came<BiAsk>>| {
        let in_poll = !std::mem::replace(&mut polled, true);
        match go_on(&copies, came) {
            // Many may find at once that the node has not heard lately enough. Each asks when its
            // turn has come, if those before it have not heard enough.
            Action::Ask(BiAsk::News(..)) if in_poll => Action::Pause(0),
            other => other,
        }
    })
}

impl<T: Value> Domain<T> {
    /// [`Domain::read`] as a future: see [the page on futures](crate::futures). What is here, and
    /// within the bound, is ready at the first poll.
    ///
    /// # Errors
    /// Those of [`Domain::read`]; [`AccessError::TooManyAsked`].
    pub fn read_async(
        &self,
        index: usize,
    ) -> impl Future<Output = Result<T, AccessError>> + Send + Unpin + use<T> {
        let mut reading = Reading::new(index);
        asked(self.copies.clone(), move |copies, came| {
            reading.go_on(copies, came)
        })
    }

    /// [`Domain::set`] as a future. If it is dropped the item is written, all of it, or it is not;
    /// it may be later.
    ///
    /// # Errors
    /// Those of [`Domain::set`]; [`AccessError::TooManyAsked`].
    pub fn set_async(
        &self,
        index: usize,
        value: T,
    ) -> impl Future<Output = Result<(), AccessError>> + Send + Unpin + use<T> {
        asked(self.copies.clone(), move |copies, came| {
            copies.write_on((index, &value), came)
        })
    }

    /// [`Domain::quiesce`] as a future: what was acknowledged before its first poll is seen by
    /// sections that begin when it has ended. If it is dropped nothing is heard of.
    ///
    /// # Errors
    /// Those of [`Domain::quiesce`]; [`AccessError::TooManyAsked`].
    pub fn quiesce_async(
        &self,
    ) -> impl Future<Output = Result<(), AccessError>> + Send + Unpin + use<T> {
        let (mut quiescing, mut since) = (Quiescing::default(), None);
        asked(self.copies.clone(), move |copies, came| {
            let enough = since.get_or_insert_with(|| copies.since_now());
            quiescing.go_on(copies, came, &*enough)
        })
    }

    /// [`Domain::enter`] as a future. The section lasts for [`Domain::longest_section`] from then
    /// on, whatever else the task awaits: a task that is not polled for so long has a section that
    /// says [`AccessError::Stale`]. It holds nothing up.
    ///
    /// # Errors
    /// Those of [`Domain::enter`]; [`AccessError::TooManyAsked`].
    pub fn enter_async(
        &self,
    ) -> impl Future<Output = Result<Pinned<'_, T>, AccessError>> + Send + use<'_, T> {
        let mut entering = Entering::default();
        let enters = asked(self.copies.clone(), move |copies, came| {
            if came.is_none()
                && let Some(unseen) = copies.enter_now()
            {
                return Action::Over(Ok(unseen));
            }
            let entered = entering.go_on(copies, came);
            entered.and_then(|section| Ok((section, 0)))
        });
        async move {
            let (section, deadline) = enters.await?;
            Ok(Pinned::new(&self.copies, section, deadline))
        }
    }

    /// [`Domain::writer`] as a future: a turn at the region's lock, as by
    /// [`Mutex::lock_async`](crate::locked::Mutex::lock_async). The first writer of a domain looks
    /// for the lock by its name, once, in a poll that waits for that.
    ///
    /// # Errors
    /// Those of [`Domain::writer`]; [`AccessError::TooManyAsked`].
    pub fn writer_async(
        &self,
    ) -> impl Future<Output = Result<DomainWriter<'_, T>, RegionError>> + Send + use<'_, T> {
        DomainWriter::new_async(self)
    }
}

impl<T: Value> Pinned<'_, T> {
    /// [`Pinned::get`] as a future: see [the page on futures](crate::futures). It looks at the
    /// clock when it has the item. What it has read is believed when the section
    /// [ends](Pinned::finish) without an error.
    ///
    /// # Errors
    /// Those of [`Pinned::get`]; [`AccessError::TooManyAsked`].
    pub fn get_async(
        &self,
        index: usize,
    ) -> impl Future<Output = Result<T, AccessError>> + Send + use<T> {
        let (section, deadline) = (self.section, self.deadline);
        // The domain has them as long as this section is open.
        let gets = self.copies.shared().map(|copies| {
            asked(copies, move |copies, came| {
                let got = match copies.here(index).filter(|_| came.is_none()) {
                    Some(value) => {
                        copies.counters().hits.add();
                        Action::Over(Ok(value))
                    }
                    None => copies.fetch_on(index, came),
                };
                got.and_then(|value| holds(copies, section, deadline).map(|()| value))
            })
        });
        let closed = AccessError::Rack(RackError::Closed);
        async move { gets.ok_or(closed)?.await }
    }
}

impl<T: Value> DomainWriter<'_, T> {
    /// [`DomainWriter::get`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`DomainWriter::get`]; [`AccessError::TooManyAsked`].
    pub fn get_async(
        &self,
        index: usize,
    ) -> impl Future<Output = Result<T, AccessError>> + Send + Unpin + use<T> {
        asked(self.domain.copies.clone(), move |copies, came| {
            copies.fetch_on(index, came)
        })
    }

    /// [`DomainWriter::set`] as a future. If it is dropped the item is written, all of it, or it is
    /// not, and [`DomainWriter::writes`] does not count it; it may be written after the next writer
    /// has come.
    ///
    /// # Errors
    /// Those of [`DomainWriter::set`]; [`AccessError::TooManyAsked`].
    pub fn set_async(
        &mut self,
        index: usize,
        value: T,
    ) -> impl Future<Output = Result<(), AccessError>> + Send {
        let sets = self.domain.set_async(index, value);
        async move {
            sets.await?;
            self.count();
            Ok(())
        }
    }

    /// [`DomainWriter::update`] as a future: what the item is then. `f` runs in a poll.
    ///
    /// # Errors
    /// Those of [`DomainWriter::set_async`].
    pub fn update_async<F>(
        &mut self,
        index: usize,
        f: F,
    ) -> impl Future<Output = Result<T, AccessError>> + Send
    where
        F: FnOnce(T) -> T + Send,
    {
        let gets = self.get_async(index);
        async move {
            let value = f(gets.await?);
            self.set_async(index, value).await?;
            Ok(value)
        }
    }
}
