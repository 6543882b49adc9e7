//! Operations on blocks as futures.

use super::Node;
use crate::bytes::window::{Window, WindowMut};
use crate::error::AccessError;
use crate::host::driving::driver::{ASKED, Driver};
use crate::host::driving::order::Order;
use crate::host::driving::task::Task;
use rackmem_proto::wire::Tag;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

/// An operation on a block, which begins when it is first polled. A hit is done there and then; for
/// anything else a thread of the node's asks, while the program's does something else.
struct Operation<R, F> {
    node: Node,
    block: Result<Tag, AccessError>,
    writes: bool,
    stage: Stage<R, F>,
}

enum Stage<R, F> {
    New(F),
    Asked(Arc<Task<Option<R>, F>>),
    Over,
}

// Nothing of it is ever pinned.
impl<R, F> Unpin for Operation<R, F> {}

impl<R, F> Future for Operation<R, F>
where
    R: Send + 'static,
    F: FnMut(&[AtomicU64]) -> Option<R> + Send + 'static,
{
    type Output = Result<R, AccessError>;

    /// # Panics
    /// After it was ready, and with what `F` panics with.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let operation = self.get_mut();
        let stage = std::mem::replace(&mut operation.stage, Stage::Over);
        let (task, tag) = match (stage, operation.block) {
            (Stage::Over, _) => panic!("an operation is polled after its end"),
            (Stage::New(_), Err(error)) => return Poll::Ready(Err(error)),
            (Stage::Asked(task), Ok(tag)) => (task, tag),
            (Stage::Asked(_), Err(error)) => return Poll::Ready(Err(error)),
            (Stage::New(mut wants), Ok(tag)) => {
                if let Some(got) = operation.hit(tag, &mut wants) {
                    return Poll::Ready(Ok(got));
                }
                let what = (tag, operation.writes);
                let task = Arc::new(Task::new(what, wants, context.waker()));
                let order = Order::block(task.clone());
                if Driver::ask(&operation.node.inner, order).is_err() {
                    return Poll::Ready(Err(AccessError::TooManyAsked { most: ASKED }));
                }
                operation.stage = Stage::Asked(task);
                return Poll::Pending;
            }
        };
        let done = task.poll(context.waker());
        if done.is_pending() {
            operation.stage = Stage::Asked(task);
        }
        let interrupted = AccessError::Interrupted { addr: tag.0 };
        done.map(|done| done.and_then(|got| got.ok_or(interrupted)))
    }
}

impl<R, F: FnMut(&[AtomicU64]) -> Option<R>> Operation<R, F> {
    /// What a copy that is here allows.
    fn hit(&self, tag: Tag, wants: &mut F) -> Option<R> {
        let inner = &self.node.inner;
        if !inner.serving.load(Relaxed) {
            return None;
        }
        let agents = &inner.access.agents;
        match self.writes {
            false => agents.cache.read(tag, wants)?,
            // To be home then takes a while.
            true if agents.kept.writes_survive(tag) => None,
            true => agents.cache.write(tag, wants)?,
        }
    }
}

impl<R, F> Drop for Operation<R, F> {
    fn drop(&mut self) {
        if let Stage::Asked(task) = &self.stage {
            task.drop_it();
        }
    }
}

impl Node {
    /// [`Node::snapshot`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Node::snapshot`]; [`AccessError::TooManyAsked`].
    pub fn snapshot_async<R, F>(
        &self,
        addr: u64,
        len: usize,
        mut f: F,
    ) -> impl Future<Output = Result<R, AccessError>> + Send + Unpin + use<R, F>
    where
        R: Send + 'static,
        F: FnMut(&Window<'_>) -> R + Send + 'static,
    {
        let place = self.within(addr, len);
        let offset = place.map_or(0, |(_, offset)| offset);
        self.operation(place, false, move |words| {
            Some(f(&Window::new(words, offset, len)))
        })
    }

    /// [`Node::update`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Node::update`]; [`AccessError::TooManyAsked`].
    pub fn update_async<R, F>(
        &self,
        addr: u64,
        len: usize,
        f: F,
    ) -> impl Future<Output = Result<R, AccessError>> + Send + Unpin + use<R, F>
    where
        R: Send + 'static,
        F: FnOnce(&mut WindowMut<'_>) -> R + Send + 'static,
    {
        let place = self.within(addr, len);
        let offset = place.map_or(0, |(_, offset)| offset);
        let mut once = Some(f);
        self.operation(place, true, move |words| {
            let f = once.take()?;
            Some(f(&mut WindowMut::new(words, offset, len)))
        })
    }

    fn operation<R, F>(
        &self,
        place: Result<(Tag, usize), AccessError>,
        writes: bool,
        wants: F,
    ) -> Operation<R, F>
    where
        R: Send + 'static,
        F: FnMut(&[AtomicU64]) -> Option<R> + Send + 'static,
    {
        Operation {
            node: self.clone(),
            block: place.map(|(tag, _)| tag),
            writes,
            stage: Stage::New(wants),
        }
    }
}
