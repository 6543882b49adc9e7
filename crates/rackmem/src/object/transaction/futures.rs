//! Transactions as futures.

use super::commit::{Attempts, Ended, OfNode};
use super::{Content, Object, Retry, Transaction};
#[cfg(doc)]
use crate::error::AccessError;
use crate::error::TransactionError;
use crate::host::driving::errand::Asked;
use crate::host::objects::Answered;
use crate::node::Node;
use crate::object::reading::Reading;
use std::future::Future;

impl Transaction<'_> {
    /// [`Transaction::read`] as a future. If it is dropped, this run has not read the object.
    ///
    /// # Errors
    /// Those of [`Transaction::read`]; [`AccessError::TooManyAsked`].
    pub async fn read_async<T: Content + ?Sized + 'static>(
        &mut self,
        object: &Object<T>,
    ) -> Result<T::Owned, TransactionError> {
        if self.is_new(object)? {
            let mut reading = Reading::new(object.known(0), Retry::default());
            let same = object.clone();
            let read = Asked::new(&self.node.inner, move |came: Option<Answered>| {
                reading.go_on(&same, came, &mut <[u8]>::copied)
            });
            let read = read.await?;
            self.has_read(object, read);
        }
        self.value_of(object)
    }
}

impl Node {
    /// [`Node::transaction`] as a future: see [the page on futures](crate::futures).
    /// `f` is an async closure, which the task runs that polls the future. What it reads is awaited
    /// ([`Transaction::read_async`]), what it writes is kept until it returns; then a thread of the
    /// node has the homes make that one step, while the task goes on with others. If other writers
    /// came first `f` runs again, after a pause in which no thread waits.
    ///
    /// ```
    /// # use std::future::Future;
    /// # use std::sync::Arc;
    /// # use std::task::{Context, Poll, Wake, Waker};
    /// # struct Unpark(std::thread::Thread);
    /// # impl Wake for Unpark {
    /// #     fn wake(self: Arc<Self>) {
    /// #         self.0.unpark();
    /// #     }
    /// # }
    /// # /// Your executor's.
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = std::pin::pin!(future);
    /// #     let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    /// #     loop {
    /// #         match future.as_mut().poll(&mut Context::from_waker(&waker)) {
    /// #             Poll::Ready(done) => return done,
    /// #             Poll::Pending => std::thread::park(),
    /// #         }
    /// #     }
    /// # }
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::object::Object;
    /// use rackmem::{Contract, Rack, RegionSpec, TransactionError};
    ///
    /// let rack = Rack::local(2)?;
    /// let bank = |name, node| RegionSpec::new(name, 1 << 20).contract(Contract::Object).on(node);
    /// let a: Object<u64> = rack.node(0).create_region(&bank("here", 0))?.alloc(70)?;
    /// let b: Object<u64> = rack.node(0).create_region(&bank("there", 1))?.alloc(30)?;
    ///
    /// let transfer = |amount: u64| {
    ///     let (a, b) = (a.clone(), b.clone());
    ///     rack.node(0).transaction_async(async move |t| {
    ///         let (from, to) = (t.read_async(&a).await?, t.read_async(&b).await?);
    ///         let left = from.checked_sub(amount).ok_or(TransactionError::Cancelled)?;
    ///         t.write(&a, left)?;
    ///         t.write(&b, to + amount)
    ///     })
    /// };
    /// block_on(transfer(20))?;
    /// assert_eq!(block_on(transfer(51)), Err(TransactionError::Cancelled));
    /// assert_eq!((a.read()?, b.read()?), (50, 50));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// **If it is dropped** before it is ready, it takes effect, all of it, or it does not, and
    /// nobody says which; it may a little later. Nothing stays locked: what has begun to be
    /// committed is ended by the node, and what has not never is. While `f` runs nothing is locked
    /// at all, however long that takes.
    ///
    /// It may go to another thread if `f` and what that awaits may. An executor that moves tasks
    /// between threads wants the closure to own what it uses (`async move`, with clones of handles,
    /// as above): that what it *borrows* may go, too, is more than the compiler can tell as yet.
    ///
    /// # Errors
    /// Those of [`Node::transaction`]; [`AccessError::TooManyAsked`],
    /// and then nothing has happened.
    pub fn transaction_async<R, F>(
        &self,
        mut f: F,
    ) -> impl Future<Output = Result<R, TransactionError>> + use<R, F>
    where
        F: AsyncFnMut(&mut Transaction<'_>) -> Result<R, TransactionError>,
    {
        let node = self.clone();
        async move {
            let mut attempts = Attempts::default();
            loop {
                // A lease that is late is waited for by what needs it.
                node.open_now().unwrap_or(Ok(()))?;
                let mut transaction = Transaction::new(&node);
                let result = f(&mut transaction).await;
                let ends = transaction.commit(result.is_ok(), attempts);
                match Asked::of(&node.inner, OfNode(node.clone(), ends)).await?? {
                    Ended::Whole => return result,
                    Ended::Again(next) => attempts = next,
                }
            }
        }
    }
}
