//! A member whose threads take locks all the time and tell of it, until it is killed.

use super::line::{Line, What};
use super::{LOCKS, THREADS, churn};
use crate::out;
use crate::stop::Stop;
use rackmem::locked::{Content, RwLock};
use rackmem::{Error, Node, RackError, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A number, and its complement: a torn value is none.
type Value = [u64; 2];

/// Longest time inside, and between two turns, in microseconds.
const INSIDE: u64 = 300;
const BETWEEN: u64 = 6000;
/// Before another try, when the lease has run out.
pub(super) const AGAIN: Duration = Duration::from_millis(5);

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_nanos() as u64)
}

/// Takes locks until told to stop.
pub fn work(node: &Node, stop: &Stop) -> Result<()> {
    let locks = (0..LOCKS)
        .map(|number| find(node, number, stop))
        .collect::<Result<Option<Vec<_>>>>()?;
    let Some(locks) = locks else { return Ok(()) };
    out::line(serde_json::json!({"locks": LOCKS}));
    std::thread::scope(|scope| {
        let turn = |thread| {
            let locks = &locks;
            move || take_turns(node, locks, thread, stop)
        };
        let mut threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(turn(n))).collect();
        threads.push(scope.spawn(|| churn::churn(node, stop)));
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All of them are waited for.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Node 0 makes the locks, and tells the others where: it is never killed, and a lock dies with its
/// home. `None` when told to stop.
fn find(node: &Node, number: usize, stop: &Stop) -> Result<Option<RwLock<Value>>> {
    let (at, _) = node.region_on(0, "soak", LOCKS * 8, 0)?;
    let at = at + number as u64 * 8;
    if node.id() == 0 {
        let lock = RwLock::create(node, [0, u64::MAX])?;
        node.store(at, lock.addr())?;
        return Ok(Some(lock));
    }
    loop {
        match node.load(at)? {
            0 if !stop.sleep(AGAIN) => return Ok(None),
            0 => {}
            addr => return Ok(Some(RwLock::attach(node, addr)?)),
        }
    }
}

fn take_turns(node: &Node, locks: &[RwLock<Value>], thread: u32, stop: &Stop) -> Result<()> {
    let mut random = fastrand::Rng::new();
    while !stop.requested() {
        let number = random.usize(..locks.len());
        let turn = Turn {
            node,
            lock: &locks[number],
            number,
            thread,
            inside: Duration::from_micros(random.u64(..INSIDE)),
        };
        match turn.take(random.bool()) {
            Ok(()) => {}
            Err(Error::Rack(RackError::NoLease)) => std::thread::sleep(AGAIN),
            Err(error) => return Err(error),
        }
        std::thread::sleep(Duration::from_micros(random.u64(..BETWEEN)));
    }
    Ok(())
}

struct Turn<'a> {
    node: &'a Node,
    lock: &'a RwLock<Value>,
    number: usize,
    thread: u32,
    inside: Duration,
}

impl Turn<'_> {
    fn take(&self, writes: bool) -> Result<()> {
        if writes {
            let mut held = self.lock.write()?;
            let value = self.enter(true, held.get(), held.token(), held.content());
            held.set([value + 1, !(value + 1)]);
            self.leave(true, value + 1)
        } else {
            let held = self.lock.read()?;
            let value = self.enter(false, held.get(), held.token(), held.content());
            self.leave(false, value)
        }
    }

    fn enter(&self, writes: bool, [value, complement]: Value, token: u64, content: Content) -> u64 {
        // What is torn is told as what no writer has left.
        let value = if value == !complement {
            value
        } else {
            u64::MAX / 2
        };
        self.tell(writes, value, What::Enters { token, content });
        std::thread::sleep(self.inside);
        value
    }

    /// Who has no lease any more may have lost its place inside, and does not tell what it leaves.
    fn leave(&self, writes: bool, value: u64) -> Result<()> {
        self.node.confirm()?;
        self.tell(writes, value, What::Leaves);
        Ok(())
    }

    fn tell(&self, writes: bool, value: u64, what: What) {
        out::line(Line {
            at: now(),
            lock: self.number,
            thread: self.thread,
            writes,
            value,
            what,
        });
    }
}
