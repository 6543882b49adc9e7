//! Two-phase locking: cells are in coherent memory, each under one of the rack's reader-writer
//! locks. A transaction takes the lock of a cell when it first reads it, keeps what it changes to
//! itself, writes that when it commits, and leaves all locks then.
//!
//! Which cells a transaction needs is known only while it goes down its indexes, so no order of
//! locks is kept, and a wait has a bound instead: who does not get a lock in time leaves all that
//! it has, and begins again with more patience. No wait at all, as the paper's engine has it, would
//! refuse every lock that is merely at another node.

use super::cells::{Cells, RISE};
use super::{Engine, Outcome, PATIENCE};
use crate::access::{Access, Cause, Footprint, Halt, Step, Used, UsedCells, used};
use crate::error::{Result, TxnError};
use crate::layout::{Cell, Layout};
#[cfg(test)]
use crate::tests::Defect;
use rackmem::Node;
use rackmem::locked::{Entered, Reading, Right, RwLockArray, Writing};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Locks of a database at most: a node knows two million, of all that it does. Where there are
/// more cells, several share one.
const MAX_LOCKS: usize = 1 << 18;
/// What a lock protects beside what is agreed on: a page cannot be empty.
const LOCK_BYTES: usize = 8;
/// How long a run waits for a lock at first. Each time that it is aborted this doubles.
const FIRST_WAIT: Duration = Duration::from_millis(2);
/// So often.
const DOUBLINGS: u32 = 6;

/// The engine.
#[derive(Debug)]
pub struct Locks {
    cells: Cells,
    /// By node: the locks of each home.
    locks: Vec<Vec<RwLockArray>>,
    /// How many each home has.
    counts: Vec<u32>,
    #[cfg(test)]
    pub(crate) defect: Option<Defect>,
}

impl Locks {
    /// The database of these nodes' rack, zeros if nobody has asked for it before. They are all
    /// nodes of the rack, or one: then the processes of the others do the same.
    ///
    /// # Errors
    /// Those of [`Node::create_region`] and [`RwLockArray::attach`].
    pub fn new(nodes: &[Node], layout: Layout) -> Result<Locks> {
        let mut engine = Locks {
            cells: Cells::new(nodes, layout)?,
            locks: nodes.iter().map(|_| Vec::new()).collect(),
            counts: Vec::new(),
            #[cfg(test)]
            defect: None,
        };
        for home in 0..engine.cells.layout.parts().len() {
            engine.add_home(home)?;
        }
        Ok(engine)
    }

    fn add_home(&mut self, home: usize) -> Result<()> {
        let parts = self.cells.layout.parts();
        let count = (parts[home].cells as usize).clamp(1, MAX_LOCKS / parts.len());
        let (name, bytes) = (format!("txn/{home}/locks"), count * RwLockArray::STRIDE);
        let locks = self.cells.region(home, &name, bytes)?;
        for (node, of_homes) in self.cells.nodes.iter().zip(&mut self.locks) {
            of_homes.push(RwLockArray::attach(node, locks, count, LOCK_BYTES)?);
        }
        self.counts.push(count as u32);
        Ok(())
    }

    /// Which lock a cell is under.
    fn lock_of(&self, cell: Cell) -> (u16, u32) {
        let count = self.counts[usize::from(cell.home)];
        (cell.home, cell.number % count)
    }

    fn run(&self, node: usize, wait: Duration) -> Run<'_> {
        Run {
            engine: self,
            node,
            wait,
            cells: UsedCells::new(),
            locks: BTreeMap::new(),
        }
    }
}

impl Engine for Locks {
    const NAME: &'static str = "locks";

    fn layout(&self) -> &Layout {
        &self.cells.layout
    }

    fn nodes(&self) -> &[Node] {
        &self.cells.nodes
    }

    fn transact<R>(
        &self,
        node: usize,
        body: &mut dyn FnMut(&mut dyn Access) -> Step<R>,
    ) -> Result<Outcome<R>> {
        let end = Instant::now() + PATIENCE;
        let mut aborts = [0; Cause::ALL.len()];
        for tries in 0.. {
            let wait = FIRST_WAIT * (1 << u32::min(tries, DOUBLINGS));
            let mut run = self.run(node, wait);
            let done = match body(&mut run) {
                Ok(value) => Some((value, run.commit()?)),
                Err(Halt::Rollback) => None,
                Err(Halt::Failed(error)) => return Err(error),
                Err(Halt::Abort(cause)) => {
                    drop(run);
                    aborts[cause as usize] += 1;
                    if Instant::now() > end {
                        return Err(TxnError::Starved { tries: tries + 1 });
                    }
                    pause(wait);
                    continue;
                }
            };
            let (value, footprint) = done.unzip();
            return Ok(Outcome {
                value,
                aborts,
                footprint: footprint.unwrap_or_default(),
            });
        }
        Err(TxnError::Starved { tries: u32::MAX })
    }

    fn peek(&self, node: usize, cell: Cell) -> Result<Vec<u8>> {
        Ok(self.cells.load(node, cell)?.bytes)
    }

    fn poke(&self, node: usize, cell: Cell, content: &[u8]) -> Result<()> {
        self.cells.store(node, cell, RISE, content)
    }
}

/// Two that were in each other's way do not meet again at once.
fn pause(at_most: Duration) {
    let micros = at_most.as_micros() as u64;
    std::thread::sleep(Duration::from_micros(fastrand::u64(0..=micros / 4)));
}

/// A lock that a run has.
enum Inside {
    Reading(Entered<Reading>),
    Writing(Entered<Writing>),
}

/// One run of a transaction.
struct Run<'e> {
    engine: &'e Locks,
    node: usize,
    wait: Duration,
    cells: UsedCells,
    locks: BTreeMap<(u16, u32), Inside>,
}

impl Run<'_> {
    fn enter<A: Right>(&self, lock: (u16, u32), wait: Duration) -> Step<Entered<A>> {
        let locks = &self.engine.locks[self.node][usize::from(lock.0)];
        let entered = locks.enter(lock.1 as usize, wait)?;
        entered.ok_or(Halt::Abort(Cause::Lock))
    }

    fn leave(&self, lock: (u16, u32), inside: Inside) {
        let locks = &self.engine.locks[self.node][usize::from(lock.0)];
        match inside {
            Inside::Reading(entered) => locks.leave(entered),
            Inside::Writing(entered) => locks.leave(entered),
        }
    }

    fn lock_to_read(&mut self, cell: Cell) -> Step<()> {
        let lock = self.engine.lock_of(cell);
        if !self.locks.contains_key(&lock) {
            let entered = self.enter(lock, self.wait)?;
            self.locks.insert(lock, Inside::Reading(entered));
        }
        Ok(())
    }

    fn lock_to_write(&mut self, cell: Cell) -> Step<()> {
        let lock = self.engine.lock_of(cell);
        let read = match self.locks.remove(&lock) {
            Some(Inside::Writing(entered)) => {
                self.locks.insert(lock, Inside::Writing(entered));
                return Ok(());
            }
            other => other,
        };
        let was_read = read.is_some();
        if let Some(inside) = read {
            self.leave(lock, inside);
        }
        let entered = self.enter(lock, self.wait)?;
        self.locks.insert(lock, Inside::Writing(entered));
        match was_read && self.looks_again() && !self.is_as_read(lock)? {
            true => Err(Halt::Abort(Cause::Changed)),
            false => Ok(()),
        }
    }

    /// Whether all that was read under a lock is as it was, after the lock was left to get it to
    /// write: then it is as if it had never been left.
    fn is_as_read(&self, lock: (u16, u32)) -> Step<bool> {
        let under = |cell: &Cell| self.engine.lock_of(*cell) == lock;
        for (cell, used) in self.cells.iter().filter(|(cell, _)| under(cell)) {
            if self.engine.cells.version(self.node, *cell)? != used.version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn used(&mut self, cell: Cell) -> Step<&mut Used> {
        let (engine, node) = (self.engine, self.node);
        Ok(used(&mut self.cells, cell, || {
            engine.cells.load(node, cell)
        })?)
    }

    fn commit(self) -> Result<Footprint> {
        self.engine.cells.commit(self.node, &self.cells)
    }

    #[cfg(test)]
    fn skips_lock(&self) -> bool {
        self.engine.defect == Some(Defect::WritesUnlocked)
    }

    #[cfg(not(test))]
    fn skips_lock(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn looks_again(&self) -> bool {
        self.engine.defect != Some(Defect::UpgradesUnchecked)
    }

    #[cfg(not(test))]
    fn looks_again(&self) -> bool {
        true
    }
}

impl Access for Run<'_> {
    fn read(&mut self, cell: Cell) -> Step<&[u8]> {
        self.lock_to_read(cell)?;
        Ok(&self.used(cell)?.bytes)
    }

    fn claim(&mut self, cell: Cell) -> Step<&[u8]> {
        if !self.skips_lock() {
            self.lock_to_write(cell)?;
        }
        Ok(&self.used(cell)?.bytes)
    }

    fn change(&mut self, cell: Cell) -> Step<&mut [u8]> {
        if !self.skips_lock() {
            self.lock_to_write(cell)?;
        }
        Ok(self.used(cell)?.change())
    }

    fn committed(&mut self, cell: Cell) -> Step<Vec<u8>> {
        let lock = self.engine.lock_of(cell);
        if let Some(used) = self.cells.get(&cell) {
            return Ok(used.bytes.clone());
        }
        let entered = match self.locks.contains_key(&lock) {
            true => None,
            false => Some(self.enter::<Reading>(lock, self.wait)?),
        };
        let used = self.engine.cells.load(self.node, cell);
        if let Some(entered) = entered {
            self.leave(lock, Inside::Reading(entered));
        }
        Ok(used?.bytes)
    }

    fn constant(&mut self, cell: Cell) -> Step<Vec<u8>> {
        Ok(self.engine.cells.load(self.node, cell)?.bytes)
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        while let Some((lock, inside)) = self.locks.pop_first() {
            self.leave(lock, inside);
        }
    }
}
