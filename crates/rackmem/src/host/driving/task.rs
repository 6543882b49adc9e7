//! What a future and the thread that drives it share.

use crate::bytes::node_cache::NodeCache;
use crate::error::AccessError;
use crate::host::locks::seat::wake;
use rackmem_fabric::Whole;
use rackmem_proto::wire::Tag;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard};
use std::task::{Poll, Waker};

/// What a future wants with a block, for the thread that drives it.
pub(crate) trait Job: Send + Sync {
    /// The block.
    fn tag(&self) -> Tag;
    /// Whether it changes the block.
    fn writes(&self) -> bool;
    /// Whether nobody wants it any more.
    fn is_dropped(&self) -> bool;
    /// Does it with a copy that is here, if one is.
    fn hit(&self, cache: &NodeCache) -> bool;
    /// Does it with a block that nobody can take away.
    fn run(&self, words: &[AtomicU64]);
    /// It is done, or is not going to be.
    fn finish(&self, over: Result<(), AccessError>);
}

/// See the module. `F` sees the block, more than once if it only reads.
pub(crate) struct Task<R, F> {
    tag: Tag,
    writes: bool,
    state: Mutex<State<R, F>>,
}

struct State<R, F> {
    /// `None`: nobody wants it any more.
    wants: Option<F>,
    /// What it came to; a panic is the future's.
    got: Option<Result<R, Box<dyn Any + Send>>>,
    over: Option<Result<(), AccessError>>,
    waker: Waker,
}

impl<R, F> Task<R, F> {
    pub fn new((tag, writes): (Tag, bool), wants: F, waker: &Waker) -> Self {
        Task {
            tag,
            writes,
            state: Mutex::new(State {
                wants: Some(wants),
                got: None,
                over: None,
                waker: waker.clone(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<R, F>> {
        self.state.lock().whole()
    }

    /// What it came to, if it is over; else `waker` is called when it is.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<R, AccessError>> {
        let mut state = self.state();
        let Some(over) = state.over.take() else {
            state.waker.clone_from(waker);
            return Poll::Pending;
        };
        let got = state.got.take();
        drop(state);
        Poll::Ready(match (over, got) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(Ok(got))) => Ok(got),
            (Ok(()), Some(Err(panic))) => resume_unwind(panic),
            (Ok(()), None) => Err(AccessError::Interrupted { addr: self.tag.0 }),
        })
    }

    /// Nobody wants it any more. What has been done is done.
    pub fn drop_it(&self) {
        let wants = self.state().wants.take();
        drop(wants);
    }
}

impl<R, F> Job for Task<R, F>
where
    R: Send,
    F: FnMut(&[AtomicU64]) -> R + Send,
{
    fn tag(&self) -> Tag {
        self.tag
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn is_dropped(&self) -> bool {
        self.state().wants.is_none()
    }

    fn hit(&self, cache: &NodeCache) -> bool {
        let mut state = self.state();
        let Some(wants) = &mut state.wants else {
            return false;
        };
        let hit = catch_unwind(AssertUnwindSafe(|| match self.writes {
            true => cache.write(self.tag, wants),
            false => cache.read(self.tag, wants),
        }));
        state.got = match hit {
            Ok(None) => return false,
            Ok(Some(got)) => Some(Ok(got)),
            Err(panic) => Some(Err(panic)),
        };
        true
    }

    fn run(&self, words: &[AtomicU64]) {
        let mut state = self.state();
        if let Some(wants) = &mut state.wants {
            state.got = Some(catch_unwind(AssertUnwindSafe(|| wants(words))));
        }
    }

    fn finish(&self, over: Result<(), AccessError>) {
        let waker = {
            let mut state = self.state();
            state.over = Some(over);
            std::mem::replace(&mut state.waker, Waker::noop().clone())
        };
        wake(waker);
    }
}
