//! Two-phase locking: cells are in coherent memory, each under one of the rack's reader-writer
//! locks. A transaction takes the lock of a cell when it first reads it, keeps what it changes to
//! itself, writes that when it commits, and leaves all locks then.
//!
//! Which cells a transaction needs is known only while it goes down its indexes, so no order of
//! locks is kept, and a wait has a bound instead: who does not get a lock in time leaves all that
//! it has, and begins again with more patience. No wait at all, as the paper's engine has it, would
//! refuse every lock that is merely at another node.

use super::attempts::Attempts;
use super::cells::{Cells, RISE};
use super::record::Change;
use super::survival::{Copies, Log, Moment, Settler, Survival, insist, passes};
use super::table::{Held, LockId, LockTable};
use super::{Engine, Outcome};
use crate::access::{Access, Cause, Footprint, Halt, Step, Used, UsedCells, used};
use crate::error::{Result, TxnError};
use crate::layout::{Cell, Layout};
use crate::tally::Counts;
#[cfg(test)]
use crate::tests::{Defect, Dying};
use rackmem::Node;
use std::collections::BTreeMap;
use std::time::Duration;

/// The engine.
#[derive(Debug)]
pub struct Locks {
    pub(super) cells: Cells,
    pub(super) table: LockTable,
    /// Where the database outlives nodes.
    pub(super) survival: Option<Survival>,
    #[cfg(test)]
    pub(crate) defect: Option<Defect>,
    #[cfg(test)]
    pub(crate) dying: Option<Dying>,
    /// Locks that were taken, by their cells, and whether to write.
    #[cfg(test)]
    pub(crate) taken: std::sync::Mutex<Vec<(Cell, bool)>>,
}

impl Locks {
    /// The database of these nodes' rack, zeros if nobody has asked for it before. They are all
    /// nodes of the rack, or one: then the processes of the others do the same.
    ///
    /// # Errors
    /// Those of [`Node::create_region`] and [`rackmem::locked::RwLockArray::attach`].
    pub fn new(nodes: &[Node], layout: Layout) -> Result<Locks> {
        let cells = Cells::new(nodes, layout)?;
        Ok(Locks {
            table: LockTable::at_homes(&cells)?,
            cells,
            survival: None,
            #[cfg(test)]
            defect: None,
            #[cfg(test)]
            dying: None,
            #[cfg(test)]
            taken: std::sync::Mutex::default(),
        })
    }

    /// The same in memory of which several nodes have copies: the database outlives the death of
    /// fewer than half of them, and so do all transactions that have committed. One that a node was
    /// in the middle of when it died has committed, or nothing of it is there.
    ///
    /// A transaction takes some rounds to a majority when it commits.
    ///
    /// # Errors
    /// Those of [`Node::create_region`]: there are too few nodes yet, for example; those of
    /// [`rackmem::locked::RwLock::in_region`].
    pub fn with_copies(nodes: &[Node], layout: Layout, copies: &Copies) -> Result<Locks> {
        let cells = Cells::with_copies(nodes, layout, copies.copies)?;
        let table = LockTable::with_copies(&cells, copies.copies)?;
        Ok(Locks {
            survival: Some(Survival::new(&cells, &table, copies)?),
            cells,
            table,
            #[cfg(test)]
            defect: None,
            #[cfg(test)]
            dying: None,
            #[cfg(test)]
            taken: std::sync::Mutex::default(),
        })
    }

    /// Has the logs of dead nodes settled, if there may be any. The thread has no locks.
    fn settle(&self, node: usize) -> Result<()> {
        match &self.survival {
            Some(survival) => survival.settle(&self.settler(node, &|| self.moment(node))),
            None => Ok(()),
        }
    }

    pub(super) fn settler<'s>(&'s self, nth: usize, moment: Moment<'s>) -> Settler<'s> {
        Settler {
            cells: &self.cells,
            table: &self.table,
            nth,
            moment,
        }
    }

    /// Whether all logs of dead nodes are settled.
    fn is_settled(&self, node: usize) -> bool {
        let survival = self.survival.as_ref();
        survival.is_none_or(|it| it.is_settled(&self.cells.nodes[node], node))
    }

    /// Whether what has ended a run passes, and the run may be tried again.
    fn passes(&self, error: &TxnError) -> bool {
        self.survival.is_some() && passes(error)
    }

    fn run(&self, node: usize, wait: Duration) -> Run<'_> {
        Run {
            engine: self,
            node,
            wait,
            cells: UsedCells::new(),
            before: BTreeMap::new(),
            done: Counts::default(),
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
        let mut attempts = Attempts::new();
        loop {
            self.settle(node)?;
            let mut run = self.run(node, attempts.wait());
            let cause = match body(&mut run) {
                Ok(value) => return Ok(attempts.ended(Some((value, run.commit()?)))),
                Err(Halt::Rollback) => return Ok(attempts.ended(None)),
                Err(Halt::Failed(error)) if self.passes(&error) => Cause::Death,
                Err(Halt::Failed(error)) => return Err(error),
                Err(Halt::Abort(cause)) => cause,
            };
            drop(run);
            attempts.again(cause)?;
        }
    }

    fn peek(&self, node: usize, cell: Cell) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        let look = || {
            self.settle(node)?;
            content = self.cells.load(node, cell)?.bytes;
            Ok(self.is_settled(node))
        };
        match self.survival {
            Some(_) => insist(look)?,
            None => content = self.cells.load(node, cell)?.bytes,
        }
        Ok(content)
    }

    fn poke(&self, node: usize, cell: Cell, content: &[u8]) -> Result<()> {
        let store = || self.cells.store(node, cell, RISE, content);
        match self.survival {
            // Another node may die meanwhile.
            Some(_) => insist(|| store().map(|()| true)),
            None => store(),
        }
    }

    fn rest(&self, node: usize, home: usize) -> Result<()> {
        match self.survival {
            Some(_) => self.cells.rest(node, home),
            None => Ok(()),
        }
    }

    fn counted(&self, node: usize) -> Result<Option<Counts>> {
        let survival = self.survival.as_ref();
        let counted = survival.map(|it| it.counted(&self.cells.nodes[node]));
        counted.transpose()
    }
}

/// One run of a transaction.
struct Run<'e> {
    engine: &'e Locks,
    node: usize,
    wait: Duration,
    cells: UsedCells,
    /// What cells were that have been changed, where there is a log.
    before: BTreeMap<Cell, Vec<u8>>,
    /// What the log counts.
    done: Counts,
    /// Left when this is dropped.
    locks: BTreeMap<LockId, Held<'e>>,
}

impl<'e> Run<'e> {
    fn enter(&self, lock: LockId, to_write: bool) -> Step<Held<'e>> {
        let engine = self.engine;
        let entered = engine.table.enter(self.node, lock, (to_write, self.wait))?;
        let held = entered.ok_or(Halt::Abort(Cause::Lock))?;
        // The lock may be one that a dead node had, and the cell what it was in the middle of.
        match engine.is_settled(self.node) {
            true => Ok(held),
            false => Err(Halt::Abort(Cause::Death)),
        }
    }

    fn lock_to_read(&mut self, cell: Cell) -> Step<()> {
        let lock = self.engine.table.lock_of(cell);
        if !self.locks.contains_key(&lock) {
            let held = self.enter(lock, false)?;
            self.engine.took(cell, false);
            self.locks.insert(lock, held);
        }
        Ok(())
    }

    fn lock_to_write(&mut self, cell: Cell) -> Step<()> {
        let lock = self.engine.table.lock_of(cell);
        let was_read = match self.locks.get(&lock) {
            Some(held) if held.is_alone() => return Ok(()),
            other => other.is_some(),
        };
        self.locks.remove(&lock);
        let held = self.enter(lock, true)?;
        self.engine.took(cell, true);
        self.locks.insert(lock, held);
        match was_read && self.engine.looks_again() && !self.is_as_read(lock)? {
            true => Err(Halt::Abort(Cause::Changed)),
            false => Ok(()),
        }
    }

    /// Whether all that was read under a lock is as it was, after the lock was left to get it to
    /// write: then it is as if it had never been left.
    fn is_as_read(&self, lock: LockId) -> Step<bool> {
        let under = |cell: &Cell| self.engine.table.lock_of(*cell) == lock;
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

    /// To be changed. What it was is kept for the log.
    fn changed(&mut self, cell: Cell) -> Step<&mut [u8]> {
        let has_log = self.engine.survival.is_some();
        let used = self.used(cell)?;
        if has_log && !used.is_changed {
            let before = used.bytes.clone();
            self.before.insert(cell, before);
        }
        Ok(self.used(cell)?.change())
    }

    fn commit(self) -> Result<Footprint> {
        let survival = self.engine.survival.as_ref();
        let Some(survival) = survival.filter(|_| !self.before.is_empty()) else {
            return self.engine.cells.commit(self.node, &self.cells);
        };
        let record = survival.record(&self.changes())?;
        let mut log = survival.take(self.node)?;
        match self.log(survival, &mut log, record) {
            Ok(()) => {
                survival.give_back(self.node, log);
                Ok(Footprint::of(&self.cells, RISE))
            }
            Err(error) => {
                // It may have committed, and not be whole. As long as this process is a member
                // nobody is to see that; then others settle the log.
                if self.engine.stays_inside() {
                    std::mem::forget(self);
                }
                Err(error)
            }
        }
    }

    /// Commits by the log, and does what it tells of.
    fn log(&self, survival: &Survival, log: &mut Log, record: Vec<u8>) -> Result<()> {
        let (engine, nth) = (self.engine, self.node);
        let node = &engine.cells.nodes[nth];
        let moment = || engine.moment(nth);
        moment()?;
        if engine.writes_log() {
            survival.write(node, log, (record, self.done), &moment)?;
        }
        insist(|| {
            let epoch = node.epoch();
            for (cell, used) in self.cells.iter().filter(|(_, used)| used.is_changed) {
                let version = used.version + RISE;
                engine.cells.store(nth, *cell, version, &used.bytes)?;
                moment()?;
            }
            let changed = self.before.keys().copied();
            let is_home = engine.cells.take_home(nth, changed)?;
            // In another one a node may have had a block in between that has died with it.
            Ok(is_home && node.epoch() == epoch)
        })
    }

    fn changes(&self) -> Vec<Change> {
        let changed = self.before.iter().filter_map(|(cell, before)| {
            let used = self.cells.get(cell)?;
            Some(Change::between(*cell, used.version, (before, &used.bytes)))
        });
        changed.collect()
    }
}

impl Access for Run<'_> {
    fn read(&mut self, cell: Cell) -> Step<&[u8]> {
        self.lock_to_read(cell)?;
        Ok(&self.used(cell)?.bytes)
    }

    fn claim(&mut self, cell: Cell) -> Step<&[u8]> {
        if !self.engine.skips_lock() {
            self.lock_to_write(cell)?;
        }
        Ok(&self.used(cell)?.bytes)
    }

    fn change(&mut self, cell: Cell) -> Step<&mut [u8]> {
        if !self.engine.skips_lock() {
            self.lock_to_write(cell)?;
        }
        self.changed(cell)
    }

    fn committed(&mut self, cell: Cell) -> Step<Vec<u8>> {
        if let Some(bytes) = self.kept(cell) {
            return Ok(bytes.to_vec());
        }
        let lock = self.engine.table.lock_of(cell);
        let _held = match self.locks.contains_key(&lock) {
            true => None,
            false => Some(self.enter(lock, false)?),
        };
        self.engine.took(cell, false);
        Ok(self.engine.cells.load(self.node, cell)?.bytes)
    }

    fn kept(&self, cell: Cell) -> Option<&[u8]> {
        self.cells.get(&cell).map(|used| used.bytes.as_slice())
    }

    fn constant(&mut self, cell: Cell) -> Step<Vec<u8>> {
        Ok(self.engine.cells.load(self.node, cell)?.bytes)
    }

    fn footprint(&self) -> Footprint {
        Footprint::of(&self.cells, RISE)
    }

    fn note(&mut self, done: Counts) {
        self.done = self.done.and(done);
    }
}
