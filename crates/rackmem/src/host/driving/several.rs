//! Several futures as one: in order, some of them under way at a time.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Futures of one that are under way at a time: as many as the node's thread has events.
const AHEAD: usize = 16;

enum Part<F, R> {
    UnderWay(F),
    Done(R),
}

/// See the module. Those behind the sixteenth that has not been taken have not begun.
pub(crate) struct Several<I, F, R> {
    later: I,
    begun: VecDeque<Part<F, R>>,
}

impl<I, F, R> Several<I, F, R>
where
    I: Iterator<Item = F>,
    F: Future<Output = R> + Unpin,
{
    pub fn new(later: I) -> Self {
        let begun = VecDeque::with_capacity(AHEAD);
        Several { later, begun }
    }

    /// What the next one in order comes to; `None` behind the last.
    pub async fn next(&mut self) -> Option<R> {
        poll_fn(|context| self.poll(context)).await
    }

    /// What all of them come to, in their order.
    pub async fn all(mut self) -> Vec<R> {
        let mut all = Vec::with_capacity(self.later.size_hint().0);
        while let Some(done) = self.next().await {
            all.push(done);
        }
        all
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<R>> {
        let room = AHEAD - self.begun.len();
        let more = self.later.by_ref().take(room);
        self.begun.extend(more.map(Part::UnderWay));
        for part in &mut self.begun {
            if let Part::UnderWay(future) = part
                && let Poll::Ready(done) = Pin::new(future).poll(context)
            {
                *part = Part::Done(done);
            }
        }
        match self.begun.pop_front() {
            None => Poll::Ready(None),
            Some(Part::Done(done)) => Poll::Ready(Some(done)),
            Some(waits) => {
                self.begun.push_front(waits);
                Poll::Pending
            }
        }
    }
}
