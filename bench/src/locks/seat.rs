//! A thread in one of the node's seats: executes its machine's operations.

use super::error::Result;
use super::local::Local;
use super::steps::Progress;
use rackmem::Node;
use rackmem_baselines::locks::{Access, Machine, Op, Step};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// How long a thread that waits for a word looks at it all the time,
/// giving the processor away between looks.
const AWAKE: Duration = Duration::from_millis(1);
/// How often it looks afterwards.
const LOOK: Duration = Duration::from_micros(100);
/// How long the manager's answer is awaited awake, as GCP's are.
const AWAKE_FOR_ANSWERS: Duration = Duration::from_micros(50);
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
                Progress::Did | Progress::Inside => {}
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
        // In the middle of something that nobody else can finish.
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
    /// When this one did.
    since: Option<Instant>,
}

impl Wait {
    fn new(at_most: Duration) -> Self {
        Wait {
            at_most,
            began: None,
            since: None,
        }
    }

    /// What it waited for has come; the next wait begins awake, and the time that all may take goes
    /// on.
    fn rest(&mut self) {
        self.since = None;
    }

    /// Waits a little. False: it has waited too long.
    fn wait(&mut self, for_answer: bool) -> bool {
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        let since = *self.since.get_or_insert(now);
        let awake = match for_answer {
            true => AWAKE_FOR_ANSWERS,
            false => AWAKE,
        };
        let (waited, this) = (now - began, now - since);
        let Some(left) = self
            .at_most
            .checked_sub(waited)
            .filter(|left| !left.is_zero())
        else {
            return false;
        };
        if this < awake {
            std::thread::yield_now();
        } else if for_answer {
            std::thread::park_timeout(super::service::RETRY.min(left));
        } else {
            std::thread::sleep(LOOK.min(left));
        }
        true
    }
}

/// After a compare-and-swap that somebody else was quicker at: a random number of turns of others,
/// up to twice as many each time.
fn back_off(nth: u32) {
    for _ in 0..fastrand::u32(0..1 << nth.min(MAX_BACKOFF)) {
        std::thread::yield_now();
    }
}
