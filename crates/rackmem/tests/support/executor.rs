//! An executor: a thread that polls what has been woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Longer than anything takes that is awaited here.
const LONG: Duration = Duration::from_secs(60);

/// Whether a task has been woken.
pub struct Woken {
    pub is: AtomicBool,
    thread: Thread,
}

impl Woken {
    /// Of this thread.
    fn new(is: bool) -> Arc<Woken> {
        Arc::new(Woken {
            is: AtomicBool::new(is),
            thread: std::thread::current(),
        })
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is.store(true, SeqCst);
        self.thread.unpark();
    }
}

type Task<'a, R> = Pin<Box<dyn Future<Output = R> + 'a>>;

/// Drives all of them to their ends.
pub fn join<'a, R>(futures: impl IntoIterator<Item = impl Future<Output = R> + 'a>) -> Vec<R> {
    let begin = |future| {
        let woken = Woken::new(true);
        let task: Task<'a, R> = Box::pin(future);
        (Some(task), woken, None)
    };
    let mut tasks: Vec<_> = futures.into_iter().map(begin).collect();
    let mut left = tasks.len();
    while left > 0 {
        let mut polled = false;
        for (task, woken, done) in &mut tasks {
            let Some(future) = task else { continue };
            if !woken.is.swap(false, SeqCst) {
                continue;
            }
            polled = true;
            let waker = Waker::from(woken.clone());
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                (*task, *done) = (None, Some(result));
                left -= 1;
            }
        }
        if !polled {
            let began = Instant::now();
            std::thread::park_timeout(LONG);
            assert!(began.elapsed() < LONG, "nothing is woken");
        }
    }
    let done = tasks.into_iter().map(|(.., done)| done);
    done.map(Option::unwrap).collect()
}

/// Drives one.
#[allow(dead_code)] // not every program that has this module does
pub fn block_on<R>(future: impl Future<Output = R>) -> R {
    join([future]).remove(0)
}

/// Polls once: what it is then, and whether it has been woken since.
#[allow(dead_code)] // the same
pub fn poll_once<R>(mut future: impl Future<Output = R> + Unpin) -> (Option<R>, Arc<Woken>) {
    let woken = Woken::new(false);
    let waker = Waker::from(woken.clone());
    match Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(done) => (Some(done), woken),
        Poll::Pending => (None, woken),
    }
}

/// Drops futures at any moment: before they are polled, while others are asked, and when all is
/// done. How many of so many have begun, and how many of those have ended.
#[allow(dead_code)] // the same
pub fn drop_at_any_moment<F: Future>(count: u64, mut future: impl FnMut(u64) -> F) -> (u64, u64) {
    let (mut begun, mut done) = (0, 0);
    for nth in 0..count {
        let mut future = Box::pin(future(nth));
        if nth % 4 == 0 {
            continue;
        }
        begun += 1;
        // It goes on as far as it does by then.
        let mut polls = 0..fastrand::u64(1..8);
        let ended = nth % 4 != 1
            && polls.any(|_| {
                let ended = poll_once(&mut future).0.is_some();
                if !ended {
                    std::thread::sleep(Duration::from_micros(fastrand::u64(0..300)));
                }
                ended
            });
        if nth % 4 == 1 {
            block_on(future);
        }
        done += u64::from(ended || nth % 4 == 1);
    }
    (begun, done)
}

/// Awaits the second, with the first, which is polled once, as long under way.
#[allow(dead_code)] // the same
pub async fn beside<R>(first: impl Future, second: impl Future<Output = R>) -> R {
    let mut first = std::pin::pin!(first);
    std::future::poll_fn(|context| {
        let _ = first.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
    second.await
}
