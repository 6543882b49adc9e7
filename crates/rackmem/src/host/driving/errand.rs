//! An operation that asks others, as a value: what a call and the future beside it both go through.
//!
//! It is a function of what has come of its last question, if it has asked one, to what is to be
//! done next. A call does that and sleeps; a future leaves it to the thread that drives futures
//! ([`ErrandOrder`]), and shares an [`Errand`] with it.

use super::driver::{ASKED, Driver};
use super::order::{Order, Pace, Step};
use crate::backoff::Backoff;
use crate::error::{AccessError, RackError};
use crate::host::access::Access;
use crate::host::inner::NodeInner;
use crate::host::locks::seat::wake;
use crate::membership::current_view::Looked;
use rackmem_fabric::Whole;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// What is to be done next about an operation.
pub(crate) enum Action<R, Q> {
    /// Nothing: it has ended.
    Over(Result<R, AccessError>),
    /// A question.
    Ask(Q),
    /// Others were in the way, and are soon out of it: it goes on after a random time up to so many
    /// nanoseconds.
    Pause(u64),
    /// Others are in the way. If they are for too long, this is why it ends.
    Later(AccessError),
}

impl<R, Q> Action<R, Q> {
    /// The same, with this made of what it has come to.
    pub fn and_then<S>(self, then: impl FnOnce(R) -> Result<S, AccessError>) -> Action<S, Q> {
        match self {
            Action::Over(over) => Action::Over(over.and_then(then)),
            Action::Ask(question) => Action::Ask(question),
            Action::Pause(most) => Action::Pause(most),
            Action::Later(why) => Action::Later(why),
        }
    }

    /// What it has come to, or what is to be done before it has.
    pub fn over<S>(self) -> Result<Result<R, AccessError>, Action<S, Q>> {
        match self {
            Action::Over(over) => Ok(over),
            Action::Ask(question) => Err(Action::Ask(question)),
            Action::Pause(most) => Err(Action::Pause(most)),
            Action::Later(why) => Err(Action::Later(why)),
        }
    }
}

/// What an operation asks others.
pub(crate) trait Question: Sized + Send + 'static {
    /// What answers it.
    type Answer: Send + 'static;

    /// Whether there is somebody to ask; `None`: this node has not heard of it yet.
    fn has_answerer(
        &self,
        access: &Access,
        seen: &mut Option<Looked>,
    ) -> Option<Result<(), AccessError>>;
    /// Nobody has answered for too long.
    fn unanswered(&self, access: &Access) -> AccessError;
}

/// What came of a question.
pub(crate) type Came<Q> = Result<<Q as Question>::Answer, AccessError>;

/// An operation of a future: mostly a function, see the module.
pub(crate) trait Operation<R, Q: Question> {
    /// What is to be done next, when this has come of its last question.
    fn go_on(&mut self, came: Option<Came<Q>>) -> Action<R, Q>;

    /// Whether it goes on when nobody wants it any more: it has something to give back. `asked`: or
    /// it is given that by what it has asked just now.
    fn owes(&self, asked: bool) -> bool {
        let _ = asked;
        false
    }

    /// Nobody takes what it has come to. True: its next steps give that back.
    fn take_back(&mut self, over: Result<R, AccessError>) -> bool {
        drop(over);
        false
    }

    /// What it comes to if nobody goes on with it, for this reason.
    fn given_up(&self, why: AccessError) -> Result<R, AccessError> {
        Err(why)
    }
}

impl<R, Q: Question, F> Operation<R, Q> for F
where
    F: FnMut(Option<Came<Q>>) -> Action<R, Q>,
{
    fn go_on(&mut self, came: Option<Came<Q>>) -> Action<R, Q> {
        self(came)
    }
}

/// Goes through an operation in this thread, which sleeps where it has to wait.
pub(crate) fn call<R, Q: Question>(
    access: &Access,
    mut ask: impl FnMut(Q) -> Came<Q>,
    mut go_on: impl FnMut(Option<Came<Q>>) -> Action<R, Q>,
) -> Result<R, AccessError> {
    let mut backoff = Backoff::new(access.patience);
    let mut came = None;
    loop {
        match go_on(came.take()) {
            Action::Over(over) => return over,
            Action::Ask(question) => came = Some(ask(question)),
            Action::Pause(most) => pause(most),
            Action::Later(_) if backoff.wait() => {}
            Action::Later(why) => return Err(why),
        }
    }
}

/// From here on a pause is slept, not spun.
const SLEEP: u64 = 50_000;

/// A random time, half of this at least.
fn some_of(most: u64) -> Duration {
    Duration::from_nanos(most / 2 + fastrand::u64(0..=most / 2))
}

fn pause(most: u64) {
    let pause = some_of(most);
    if pause >= Duration::from_nanos(SLEEP) {
        return std::thread::sleep(pause);
    }
    let began = Instant::now();
    // The writer may need this processor.
    std::thread::yield_now();
    while began.elapsed() < pause {
        std::hint::spin_loop();
    }
}

/// What the thread that drives futures does with an operation.
trait Driven<Q: Question>: Send + Sync {
    fn is_dropped(&self) -> bool;
    /// Its question is asked now. False: nobody wants that any more.
    fn asks(&self) -> bool;
    /// `None`: it has ended.
    fn go_on(&self, came: Option<Came<Q>>) -> Option<Action<(), Q>>;
    /// It is not going to end otherwise.
    fn give_up(&self, why: AccessError);
    /// Wakes whoever awaits it.
    fn wake(&self);
    /// Nobody wants it any more. What has been done is done, but for what is given back. True: it
    /// has ended, and has that.
    fn drop_it(&self) -> bool;
}

/// What a future and the thread that drives it share.
struct Errand<M, R> {
    state: Mutex<State<M, R>>,
}

struct State<M, R> {
    /// `None`: nobody wants it any more.
    operation: Option<M>,
    /// It goes on if nobody does.
    owes: bool,
    /// Nobody does.
    dropped: bool,
    /// What it came to; a panic is the future's.
    over: Option<std::thread::Result<Result<R, AccessError>>>,
    waker: Waker,
}

impl<M, R> Errand<M, R> {
    fn new((operation, owes): (M, bool), waker: &Waker) -> Self {
        Errand {
            state: Mutex::new(State {
                operation: Some(operation),
                owes,
                dropped: false,
                over: None,
                waker: waker.clone(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<M, R>> {
        self.state.lock().whole()
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<R, AccessError>> {
        let mut state = self.state();
        let Some(over) = state.over.take() else {
            state.waker.clone_from(waker);
            return Poll::Pending;
        };
        let operation = state.operation.take();
        drop(state);
        drop(operation);
        Poll::Ready(over.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl<M, R, Q> Driven<Q> for Errand<M, R>
where
    Q: Question,
    R: Send,
    M: Operation<R, Q> + Send,
{
    fn is_dropped(&self) -> bool {
        self.state().operation.is_none()
    }

    fn asks(&self) -> bool {
        let state = &mut *self.state();
        let operation = state.operation.as_ref();
        state.owes = operation.is_some_and(|operation| operation.owes(true));
        operation.is_some()
    }

    fn go_on(&self, mut came: Option<Came<Q>>) -> Option<Action<(), Q>> {
        let state = &mut *self.state();
        loop {
            let (operation, came) = (state.operation.as_mut()?, came.take());
            let action = catch_unwind(AssertUnwindSafe(|| operation.go_on(came)));
            state.owes = operation.owes(false);
            match action {
                Ok(Action::Over(over)) if state.dropped => {
                    if operation.take_back(over) {
                        continue;
                    }
                    state.operation = None;
                }
                Ok(Action::Over(over)) => state.over = Some(Ok(over)),
                Err(panic) => state.over = Some(Err(panic)),
                Ok(next) if state.owes || !state.dropped => return next.over().err(),
                // It has given back what it had.
                Ok(_) => state.operation = None,
            }
            return None;
        }
    }

    fn give_up(&self, why: AccessError) {
        let mut state = self.state();
        if state.over.is_none() {
            let operation = state.operation.as_ref();
            let over = operation.map_or(Err(why), |operation| operation.given_up(why));
            state.over = Some(Ok(over));
        }
    }

    fn wake(&self) {
        let waker = {
            let mut state = self.state();
            std::mem::replace(&mut state.waker, Waker::noop().clone())
        };
        wake(waker);
    }

    fn drop_it(&self) -> bool {
        let mut state = self.state();
        state.dropped = true;
        if let Some(Ok(over)) = state.over.take()
            && let Some(operation) = &mut state.operation
            && operation.take_back(over)
        {
            return true;
        }
        let operation = match state.owes {
            true => None,
            false => state.operation.take(),
        };
        drop(state);
        drop(operation);
        false
    }
}

/// An errand of the thread that drives futures, and what is to be asked for it next.
pub(crate) struct ErrandOrder<Q: Question> {
    errand: Arc<dyn Driven<Q>>,
    asks: Option<Q>,
    /// Since when it asks that.
    since: Instant,
    pub(super) pace: Pace,
    /// What was known of the members when nobody was there to be asked.
    seen: Option<Looked>,
}

impl<Q: Question> ErrandOrder<Q> {
    fn new(errand: Arc<dyn Driven<Q>>, asks: Option<Q>) -> Self {
        ErrandOrder {
            errand,
            asks,
            since: Instant::now(),
            pace: Pace::new(),
            seen: None,
        }
    }

    pub fn is_dropped(&self) -> bool {
        self.errand.is_dropped()
    }

    /// The question that it asks next.
    pub fn asks(&self) -> Option<&Q> {
        self.asks.as_ref()
    }

    /// The same, which is asked now, unless nobody wants that any more.
    pub fn take_question(&mut self) -> Option<Q> {
        self.asks.take_if(|_| self.errand.asks())
    }

    pub(super) fn step<'a>(&mut self, inner: &NodeInner) -> Step<'a> {
        if inner.closed.load(Relaxed) {
            return Step::Over(Err(RackError::Closed.into()));
        }
        let Some(question) = &self.asks else {
            return self.go_on(None);
        };
        let access = &inner.access;
        match question.has_answerer(access, &mut self.seen) {
            // Those in front of it have not been answered.
            Some(Ok(())) if self.since.elapsed() >= access.patience => {
                let unanswered = question.unanswered(access);
                self.go_on(Some(Err(unanswered)))
            }
            Some(Ok(())) => Step::Ask,
            Some(Err(error)) => self.go_on(Some(Err(error))),
            None => {
                let node = inner.id;
                Step::Later(RackError::Timeout { node }.into())
            }
        }
    }

    /// What it has asked has come to this.
    pub(super) fn go_on<'a>(&mut self, came: Option<Came<Q>>) -> Step<'a> {
        self.asks = None;
        match self.errand.go_on(came) {
            None | Some(Action::Over(_)) => Step::Over(Ok(())),
            Some(Action::Ask(question)) => {
                (self.asks, self.since) = (Some(question), Instant::now());
                Step::Again
            }
            Some(Action::Pause(most)) => Step::Pause(some_of(most)),
            Some(Action::Later(why)) => Step::Later(why),
        }
    }

    pub fn finish(&self, over: Result<(), AccessError>) {
        if let Err(why) = over {
            self.errand.give_up(why);
        }
        self.errand.wake();
    }
}

/// An operation as a future. What it can do without others the first poll does there and then; for
/// anything else a thread of the node's asks.
pub(crate) struct Asked<M, R, Q> {
    inner: Arc<NodeInner>,
    stage: Stage<M, R>,
    asks: PhantomData<fn() -> Q>,
}

enum Stage<M, R> {
    New(M),
    /// With what is done when it is dropped.
    Asked(Arc<Errand<M, R>>, Leave<M, R>),
    Over,
}

type Leave<M, R> = fn(&Arc<NodeInner>, &Arc<Errand<M, R>>);

/// Nobody wants it any more: what is to be given back is left to the thread.
fn leave<M, R, Q>(inner: &Arc<NodeInner>, errand: &Arc<Errand<M, R>>)
where
    Q: Question,
    ErrandOrder<Q>: Into<Order>,
    R: Send + 'static,
    M: Operation<R, Q> + Send + 'static,
{
    if Driven::<Q>::drop_it(&**errand) {
        let order: ErrandOrder<Q> = ErrandOrder::new(errand.clone(), None);
        Driver::owe(inner, order.into());
    }
}

// Nothing of it is ever pinned.
impl<M, R, Q> Unpin for Asked<M, R, Q> {}

impl<M, R, Q> Asked<M, R, Q>
where
    Q: Question,
    M: FnMut(Option<Came<Q>>) -> Action<R, Q>,
{
    pub fn new(inner: &Arc<NodeInner>, operation: M) -> Self {
        Asked::of(inner, operation)
    }
}

impl<M, R, Q> Asked<M, R, Q>
where
    Q: Question,
    M: Operation<R, Q>,
{
    pub fn of(inner: &Arc<NodeInner>, operation: M) -> Self {
        Asked {
            inner: inner.clone(),
            stage: Stage::New(operation),
            asks: PhantomData,
        }
    }
}

impl<M, R, Q> Future for Asked<M, R, Q>
where
    Q: Question,
    ErrandOrder<Q>: Into<Order>,
    R: Send + 'static,
    M: Operation<R, Q> + Send + 'static,
{
    type Output = Result<R, AccessError>;

    /// # Panics
    /// After it was ready, and with what the program's part of the operation panics with.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let asked = self.get_mut();
        let errand = match std::mem::replace(&mut asked.stage, Stage::Over) {
            Stage::Over => panic!("an operation is polled after its end"),
            Stage::Asked(errand, _) => errand,
            Stage::New(mut operation) => {
                let asks = match operation.go_on(None) {
                    Action::Over(over) => return Poll::Ready(over),
                    Action::Ask(question) => Some(question),
                    // The driver looks again, and waits if it must.
                    Action::Pause(_) | Action::Later(_) => None,
                };
                let owes = operation.owes(false);
                let errand = Arc::new(Errand::new((operation, owes), context.waker()));
                let order = ErrandOrder::new(errand.clone(), asks).into();
                if owes {
                    Driver::owe(&asked.inner, order);
                } else if Driver::ask(&asked.inner, order).is_err() {
                    return Poll::Ready(Err(AccessError::TooManyAsked { most: ASKED }));
                }
                asked.stage = Stage::Asked(errand, leave::<M, R, Q>);
                return Poll::Pending;
            }
        };
        let done = errand.poll(context.waker());
        if done.is_pending() {
            asked.stage = Stage::Asked(errand, leave::<M, R, Q>);
        }
        done
    }
}

impl<M, R, Q> Drop for Asked<M, R, Q> {
    fn drop(&mut self) {
        if let Stage::Asked(errand, leave) = &self.stage {
            leave(&self.inner, errand);
        }
    }
}
