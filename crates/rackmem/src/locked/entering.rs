//! The way into a lock as a future.

use super::guard::{Guard, Protected, Reading, Right, Writing};
use super::handle::{Handle, Inside, locks};
use super::mutex::Mutex;
use super::rwlock::RwLock;
use crate::bytes::value::Value;
use crate::error::{AccessError, LockError, RackError};
use crate::host::driving::driver::{ASKED, Driver, Place};
use crate::host::locks::seat::{Called, Pass, Seat};
use rackmem_proto::gcp::Access;
use rackmem_proto::membership::Telling;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A turn at a lock, which begins when it is first polled. It stands in the same line as threads
/// do, and leaves the line when it is dropped.
struct Entering<'a, T, A> {
    turn: Turn<'a>,
    of: PhantomData<fn() -> (T, A)>,
}

struct Turn<'a> {
    handle: &'a Handle,
    access: Access,
    /// Since when there is no lease.
    unsure: Option<Instant>,
    seat: Option<Waits<'a>>,
}

type Waits<'a> = (Arc<Seat>, Place<'a>);

impl<'a, T, A> Future for Entering<'a, T, A>
where
    T: Protected<Inside<'a> = Inside<'a>>,
    A: Right,
{
    type Output = Result<Guard<'a, T, A>, LockError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let turn = &mut self.get_mut().turn;
        turn.poll(context.waker()).map(|done| done.map(Guard::of))
    }
}

impl<'a> Turn<'a> {
    fn poll(&mut self, waker: &Waker) -> Poll<Result<Inside<'a>, LockError>> {
        match self.seat.take() {
            None => self.begin(waker),
            Some(waits) => {
                waits.0.wake_by(waker);
                self.wait(waits, waker)
            }
        }
    }

    fn begin(&mut self, waker: &Waker) -> Poll<Result<Inside<'a>, LockError>> {
        let (handle, access) = (self.handle, self.access);
        let inner = &handle.node.inner;
        if let Some(error) = handle.ended() {
            return Poll::Ready(Err(error.into()));
        }
        if !inner.serving.load(Relaxed) {
            return self.unsure(waker).map(|error| Err(error.into()));
        }
        if handle.cell.word.enter(access) {
            return self.inside(handle.cell.pass());
        }
        let Ok(place) = inner.driver.place() else {
            let most = ASKED;
            return Poll::Ready(Err(AccessError::TooManyAsked { most }.into()));
        };
        inner.access.relieve();
        let seat = Arc::new(Seat::of_task(waker));
        let out = locks(&handle.node).step(&handle.cell, |lock, fx| {
            lock.enter(seat.clone(), access, fx);
        });
        handle.send(out);
        if seat.called() == Called::Waiting {
            Driver::look_after(inner, &seat, &handle.cell);
        }
        self.wait((seat, place), waker)
    }

    fn wait(&mut self, waits: Waits<'a>, waker: &Waker) -> Poll<Result<Inside<'a>, LockError>> {
        let (handle, seat) = (self.handle, &waits.0);
        let standing = &handle.node.inner.access.standing;
        match (seat.called(), handle.ended()) {
            (Called::Over, _) => Poll::Ready(Err(handle.lost())),
            (Called::Waiting, None) => {
                self.seat = Some(waits);
                Poll::Pending
            }
            (Called::Waiting, Some(error)) => {
                self.seat = Some(waits);
                self.leave();
                Poll::Ready(Err(error.into()))
            }
            // See `Handle::enter_slowly`.
            (Called::Inside(pass), _) => match standing.telling() {
                Telling::Now => self.inside(pass),
                Telling::Never => {
                    handle.decline(self.access);
                    Poll::Ready(Err(RackError::Fenced.into()))
                }
                Telling::Later => {
                    let over = self.unsure(waker);
                    match over {
                        Poll::Ready(_) => handle.decline(self.access),
                        Poll::Pending => self.seat = Some(waits),
                    }
                    over.map(|error| Err(error.into()))
                }
            },
        }
    }

    /// There is no lease; it is looked at again a little later, as often as a thread would.
    fn unsure(&mut self, waker: &Waker) -> Poll<RackError> {
        let inner = &self.handle.node.inner;
        let since = *self.unsure.get_or_insert_with(Instant::now);
        if since.elapsed() >= inner.access.patience {
            return Poll::Ready(RackError::NoLease);
        }
        Driver::wake_later(inner, waker);
        Poll::Pending
    }

    fn inside(&mut self, pass: Pass) -> Poll<Result<Inside<'a>, LockError>> {
        let inside = self.handle.inside(self.access, pass);
        let found = self.handle.inside_alive(inside, Duration::MAX);
        Poll::Ready(found.and_then(|inside| inside.ok_or_else(|| self.handle.busy())))
    }

    /// Stands in line no longer.
    fn leave(&mut self) {
        if let Some((seat, _)) = self.seat.take()
            && !self.handle.give_up(&seat)
            && let Called::Inside(_) = seat.called()
        {
            self.handle.decline(self.access);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

fn entering<T: Protected, A: Right>(handle: &Handle) -> Entering<'_, T, A> {
    Entering {
        turn: Turn {
            handle,
            access: A::ACCESS,
            unsure: None,
            seat: None,
        },
        of: PhantomData,
    }
}

impl<T: Value> Mutex<T> {
    /// [`Mutex::lock`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Mutex::lock`]; [`AccessError::TooManyAsked`].
    pub fn lock_async(
        &self,
    ) -> impl Future<Output = Result<Guard<'_, T, Writing>, LockError>> + Send + Unpin {
        entering(&self.handle)
    }
}

impl<T: Value> RwLock<T> {
    /// [`RwLock::read`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`RwLock::read`]; [`AccessError::TooManyAsked`].
    pub fn read_async(
        &self,
    ) -> impl Future<Output = Result<Guard<'_, T, Reading>, LockError>> + Send + Unpin {
        entering(&self.handle)
    }

    /// [`RwLock::write`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`RwLock::write`]; [`AccessError::TooManyAsked`].
    pub fn write_async(
        &self,
    ) -> impl Future<Output = Result<Guard<'_, T, Writing>, LockError>> + Send + Unpin {
        entering(&self.handle)
    }
}
