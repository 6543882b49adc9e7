//! A thread that makes and frees locks, and uses those of others,
//! with handles that are old now and then.
//!
//! Nodes share a table of addresses. Each lock protects a number of its own, which nobody changes:
//! whoever is let in by a handle must find the number that belongs to the handle, whatever has died
//! meanwhile, or is told that the lock has been freed.

use super::line::{Fate, Line, What};
use super::worker::{AGAIN, now};
use super::{LOCKS, THREADS};
use crate::out;
use crate::stop::Stop;
use rackmem::locked::Mutex;
use rackmem::{AccessError, Error, LockError, Node, RackError, Result, Shared};
use std::time::Duration;

/// Locks that are there at a time at most, but for those that a death leaves.
const SLOTS: usize = 16;
/// Handles that a thread keeps, whatever becomes of their locks.
const HANDLES: usize = 24;
/// Between two turns, in microseconds.
const BETWEEN: u64 = 4000;

/// A number, and its complement; locks of different sizes use each other's places.
type Short = [u64; 2];
type Long = [u64; 600];

/// A handle on a lock of either size, and the number that it protects.
enum Handle {
    Short(Mutex<Short>),
    Long(Mutex<Long>),
}

impl Handle {
    fn make(node: &Node, number: u64, long: bool) -> Result<Self, LockError> {
        if long {
            let mut value = [number; 600];
            value[599] = !number;
            return Mutex::create(node, value).map(Handle::Long);
        }
        Mutex::create(node, [number, !number]).map(Handle::Short)
    }

    fn attach(node: &Node, addr: u64) -> Result<Self, LockError> {
        match Mutex::attach(node, addr) {
            Err(LockError::NoLock { .. }) => Mutex::attach(node, addr).map(Handle::Long),
            short => short.map(Handle::Short),
        }
    }

    fn addr(&self) -> u64 {
        match self {
            Handle::Short(lock) => lock.addr(),
            Handle::Long(lock) => lock.addr(),
        }
    }

    /// The number found inside; `None` if it is torn.
    fn number(&self) -> Result<Option<u64>, LockError> {
        let (first, last) = match self {
            Handle::Short(lock) => {
                let value = lock.lock()?.get();
                (value[0], value[1])
            }
            Handle::Long(lock) => {
                let value = lock.lock()?.get();
                (value[0], value[599])
            }
        };
        Ok((first == !last).then_some(first))
    }

    fn free(&self) -> Result<(), LockError> {
        match self {
            Handle::Short(lock) => lock.clone().free(),
            Handle::Long(lock) => lock.clone().free(),
        }
    }
}

/// What a thread keeps: a handle, the number of its lock, and whether it has been freed.
struct Kept {
    handle: Handle,
    number: u64,
    freed: bool,
}

struct Churn<'a> {
    node: &'a Node,
    table: u64,
    random: fastrand::Rng,
    kept: Vec<Kept>,
}

/// Makes, uses and frees locks until told to stop.
pub fn churn(node: &Node, stop: &Stop) -> Result<()> {
    let (table, _) = node.region_on(0, "soak/churn", SLOTS * 8, 0)?;
    let mut churn = Churn {
        node,
        table,
        random: fastrand::Rng::new(),
        kept: Vec::new(),
    };
    while !stop.requested() {
        match churn.turn() {
            Ok(()) => {}
            // The table is older now: locks may be missing in it, or some be there that have been
            // freed.
            Err(Error::Access(AccessError::Lost { addr })) => node.accept_loss(addr)?,
            Err(Error::Rack(RackError::NoLease)) => std::thread::sleep(AGAIN),
            Err(error) if is_of_a_death(&error) => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(Duration::from_micros(churn.random.u64(..BETWEEN)));
    }
    Ok(())
}

/// What the death of a home, or of who was asked, may bring about.
fn is_of_a_death(error: &Error) -> bool {
    matches!(
        error,
        Error::Rack(RackError::NodeLost { .. } | RackError::Timeout { .. })
            | Error::Lock(
                LockError::NoLock { .. } | LockError::Busy { .. } | LockError::FreedInPart { .. }
            )
            | Error::Access(
                AccessError::Interrupted { .. }
                    | AccessError::Busy { .. }
                    | AccessError::BadAddress { .. }
            )
    )
}

impl Churn<'_> {
    fn turn(&mut self) -> Result<()> {
        let slot = self.table + self.random.u64(..SLOTS as u64) * 8;
        let addr = self.node.load(slot)?;
        match (addr, self.random.u8(..8)) {
            (0, _) => self.make(slot),
            (addr, 0..3) => self.free(slot, addr),
            (addr, 3..5) => self.attach(addr).map(drop).map_err(Error::from),
            _ => self.use_one(),
        }
    }

    fn make(&mut self, slot: u64) -> Result<()> {
        // Nobody else of this node makes one at this moment.
        let number = now() << 5 | u64::from(self.node.id());
        let handle = Handle::make(self.node, number, self.random.bool())?;
        tell(number, Fate::Made);
        let addr = handle.addr();
        self.keep(handle, number, false);
        match self.exchange(slot, 0, addr)? {
            true => Ok(()),
            // Another one has been faster.
            false => Ok(self.free_kept(self.kept.len() - 1)?),
        }
    }

    fn exchange(&self, slot: u64, from: u64, to: u64) -> Result<bool> {
        let slot: Shared<u64> = self.node.attach(slot)?;
        Ok(slot.compare_exchange(from, to)?.is_ok())
    }

    fn keep(&mut self, handle: Handle, number: u64, freed: bool) {
        if self.kept.len() == HANDLES {
            let at = self.random.usize(..HANDLES);
            self.kept.swap_remove(at);
        }
        self.kept.push(Kept {
            handle,
            number,
            freed,
        });
    }

    /// Keeps a handle on the lock that is at an address now, if one is: where.
    fn attach(&mut self, addr: u64) -> Result<Option<usize>, LockError> {
        let handle = match Handle::attach(self.node, addr) {
            Err(LockError::Freed { .. }) => return Ok(None),
            handle => handle?,
        };
        match handle.number() {
            Ok(Some(number)) => {
                self.keep(handle, number, false);
                return Ok(Some(self.kept.len() - 1));
            }
            Ok(None) => tell(0, Fate::Mistaken),
            Err(LockError::Freed { .. }) => tell(0, Fate::Refused),
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    fn free(&mut self, slot: u64, addr: u64) -> Result<()> {
        match self.attach(addr) {
            Ok(Some(at)) => self.free_kept(at)?,
            // It is gone, with its home.
            Ok(None)
            | Err(LockError::Rack(RackError::NodeLost { .. }) | LockError::NoLock { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.exchange(slot, addr, 0).map(|_| ())
    }

    fn free_kept(&mut self, at: usize) -> Result<(), LockError> {
        let Kept { handle, number, .. } = &self.kept[at];
        let fate = match handle.free() {
            Ok(()) => Fate::Freed,
            Err(LockError::Freed { .. }) => Fate::Refused,
            Err(error) => return Err(error),
        };
        tell(*number, fate);
        self.kept[at].freed = true;
        Ok(())
    }

    /// Uses a handle that may be old.
    fn use_one(&mut self) -> Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        let at = self.random.usize(..self.kept.len());
        let Kept {
            handle,
            number,
            freed,
        } = &self.kept[at];
        let fate = match handle.number() {
            // Who has been told that a lock is freed never finds it again.
            Ok(found) if found != Some(*number) || *freed => Fate::Mistaken,
            Ok(_) => return Ok(()),
            Err(LockError::Freed { .. }) => Fate::Refused,
            Err(error) => {
                if matches!(error, LockError::Rack(RackError::NodeLost { .. })) {
                    self.kept.swap_remove(at);
                }
                return Err(error.into());
            }
        };
        tell(*number, fate);
        self.kept[at].freed |= fate == Fate::Refused;
        Ok(())
    }
}

fn tell(number: u64, fate: Fate) {
    out::line(Line {
        at: now(),
        lock: LOCKS,
        thread: THREADS,
        writes: true,
        value: number,
        what: What::Fate(fate),
    });
}
