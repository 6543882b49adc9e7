//! A thread in one of the node's seats: executes its machine's operations.

use super::error::Result;
use super::local::Local;
use super::steps::Progress;
use rackmem::Node;
use rackmem_baselines::locks::{Access, Machine, Op, Step};
use rackmem_fabric::awake::{Awake, SPIN};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// How long a thread that waits for a word looks at it all the time, giving the processor away
/// between looks. The manager's answers are awaited awake for [`SPIN`], as GCP's are.
/// On a processor that others want all of them sleep at once, as the rack's own threads do
/// ([`Awake`]).
const AWAKE: Duration = Duration::from_millis(1);
/// How often it looks afterwards.
const LOOK: Duration = Duration::from_micros(100);
/// The longest back-off is so many times two of the shortest, which is one turn of the processor's
/// other threads.
const MAX_BACKOFF: u32 = 6;

/// A seat, taken. Outside again when it is dropped.
pub(super) struct TakenPlace<'a> {
    node: &'a Node,
    local: &'a Local,
    place: usize,
    machine: MutexGuard<'a, Machine>,
    /// Whether the manager has been asked by the present operation.
    asked: bool,
    /// Whether it has looked, and has to wait.
    waits: bool,
}

impl<'a> TakenPlace<'a> {
    pub fn take(node: &'a Node, local: &'a Local) -> Result<TakenPlace<'a>> {
        local.check()?;
        let (place, machine) = match local.seat() {
            Some(seat) => seat,
            None => local.wait_for_a_seat().ok_or(local.abandoned_error())?,
        };
        local.check()?;
        Ok(TakenPlace {
            node,
            local,
            place,
            machine,
            asked: false,
            waits: false,
        })
    }

    pub fn begin(&mut self, access: Access) {
        self.machine.enter(access);
        self.asked = false;
    }

    /// Whether the thread is inside.
    pub fn inside(&self) -> bool {
        self.machine.said() == Step::Inside
    }

    pub fn begin_to_leave(&mut self) {
        self.machine.leave();
        self.asked = false;
    }

    /// Executes the next operation, if it need not wait.
    #[inline]
    pub fn step(&mut self) -> Result<Progress> {
        let op = match self.machine.said() {
            Step::Do(op) => op,
            Step::Inside => return Ok(Progress::Inside),
            Step::Outside => return Ok(Progress::Outside),
        };
        let Some(result) = self.execute(op)? else {
            self.note(true);
            return Ok(Progress::Waits);
        };
        self.note(false);
        self.asked = false;
        Ok(match self.machine.result(result) {
            Step::Do(_) => Progress::Did,
            Step::Inside => Progress::Inside,
            Step::Outside => Progress::Outside,
        })
    }

    #[inline]
    fn note(&mut self, waits: bool) {
        if waits != self.waits {
            self.waits = waits;
            self.local.note(waits);
        }
    }

    /// Its result; nothing when it has to wait.
    #[inline]
    fn execute(&mut self, op: Op) -> Result<Option<u64>> {
        let (node, local) = (self.node, self.local);
        Ok(Some(match op {
            Op::Load(at) => node.load(local.word(at)?)?,
            Op::Store(at, word) => {
                node.store(local.word(at)?, word)?;
                0
            }
            Op::Swap(at, word) => node.fetch_update(local.word(at)?, |_| Some(word))?,
            Op::CompareSwap { at, old, new } => {
                let swap = |seen| (seen == old).then_some(new);
                node.fetch_update(local.word(at)?, swap)?
            }
            Op::Add(at, n) => node.fetch_add(local.word(at)?, n)?,
            Op::Wait(at, until) => {
                let word = node.load(local.word(at)?)?;
                return Ok(until.met(word).then_some(word));
            }
            Op::Pause(_) => 0,
            Op::Ask(request) => {
                let post = &local.posts[self.place];
                let first = !std::mem::replace(&mut self.asked, true);
                if first {
                    post.expect();
                }
                if first || post.due() {
                    local.say(node, &request)?;
                }
                if !post.inside(request.turn) {
                    return Ok(None);
                }
                0
            }
            Op::Tell(request) => {
                local.posts[self.place].tell(request);
                local.say(node, &request)?;
                0
            }
        }))
    }

    /// Goes on until it is inside. False: that took too long, and it is outside again.
    pub fn enter(&mut self, access: Access, at_most: Duration) -> Result<bool> {
        self.begin(access);
        let mut wait = Wait::new(at_most);
        loop {
            let said = self.machine.said();
            match self.step()? {
                Progress::Inside => return Ok(true),
                Progress::Outside => return Ok(false),
                Progress::Did => match said {
                    Step::Do(Op::Pause(nth)) => back_off(nth),
                    _ => wait.rest(),
                },
                Progress::Waits if wait.wait(matches!(said, Step::Do(Op::Ask(_)))) => {}
                Progress::Waits if self.machine.give_up() => {}
                Progress::Waits => return Err(self.local.abandoned_error()),
            }
            self.look_up()?;
        }
    }

    /// Whether there is still a rack to wait in.
    fn look_up(&self) -> Result<()> {
        Ok(self.node.check()?)
    }

    fn leave(&mut self) -> Result<()> {
        self.begin_to_leave();
        let mut wait = Wait::new(Duration::MAX);
        loop {
            match self.step()? {
                Progress::Outside => return Ok(()),
                Progress::Waits => {
                    wait.wait(false);
                }
                Progress::Did | Progress::Inside => wait.rest(),
            }
        }
    }
}

impl Drop for TakenPlace<'_> {
    fn drop(&mut self) {
        self.note(false);
        if self.machine.said() == Step::Inside && self.leave().is_ok() {
            return;
        }
        // In the middle of an operation that no other thread can finish.
        if self.machine.said() != Step::Outside {
            self.local.abandon();
        }
    }
}

/// The waits of one acquisition.
struct Wait {
    at_most: Duration,
    /// When the first of them began.
    began: Option<Instant>,
    /// This one.
    this: Option<Awake>,
}

/// What a thread does that has looked in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// It looks again: it has given the processor away already.
    Look,
    Sleep(Duration),
    GiveUp,
}

impl Wait {
    fn new(at_most: Duration) -> Self {
        Wait {
            at_most,
            began: None,
            this: None,
        }
    }

    /// What it waited for has come; the next wait begins awake, and the time that all may take goes
    /// on.
    fn rest(&mut self) {
        self.this = None;
    }

    fn next(&mut self, for_answer: bool) -> Next {
        let (awake, look) = match for_answer {
            true => (SPIN, super::service::RETRY),
            false => (AWAKE, LOOK),
        };
        let began = *self.began.get_or_insert_with(Instant::now);
        let left = self.at_most.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Next::GiveUp;
        }
        let this = self.this.get_or_insert_with(|| Awake::begin(awake));
        match this.look_again(this.waited()) {
            true => Next::Look,
            false => Next::Sleep(look.min(left)),
        }
    }

    /// Waits a little. False: it has waited too long.
    fn wait(&mut self, for_answer: bool) -> bool {
        match self.next(for_answer) {
            Next::Look => true,
            Next::Sleep(time) if for_answer => {
                std::thread::park_timeout(time);
                true
            }
            Next::Sleep(time) => {
                std::thread::sleep(time);
                true
            }
            Next::GiveUp => false,
        }
    }
}

/// After a compare-and-swap at which another thread was quicker: a random number of turns of other
/// threads, up to twice as many each time. A turn of another program is as good as all of them.
fn back_off(nth: u32) {
    let mut awake = Awake::begin(AWAKE);
    for _ in 0..fastrand::u32(0..1 << nth.min(MAX_BACKOFF)) {
        if !awake.look_again(awake.waited()) {
            std::thread::sleep(LOOK);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_whose_processor_others_want_sleeps_at_once() {
        let first = |for_answer| Wait::new(Duration::MAX).next(for_answer);
        assert!((0..100).any(|_| first(false) == Next::Look));
        // It gave its processor away, and has it back three milliseconds later.
        let crowded = || {
            let mut other = Awake::begin(SPIN);
            other.look_again(Duration::ZERO) && !other.look_again(Duration::from_millis(3))
        };
        // What it learns holds for a while only; a machine that stands still for longer tries
        // again.
        let sleeps = |for_answer| {
            (0..100).any(|_| {
                crowded();
                matches!(first(for_answer), Next::Sleep(_))
            })
        };
        assert!(sleeps(false) && sleeps(true));
    }

    #[test]
    fn a_wait_ends_with_its_time() {
        assert_eq!(Wait::new(Duration::ZERO).next(false), Next::GiveUp);
        assert!(!Wait::new(Duration::ZERO).wait(true));
    }
}
