//! The locks of a database: each home's at that home, or all in memory that outlives nodes.

use super::cells::{Cells, copied};
use crate::error::Result;
use crate::layout::Cell;
use rackmem::locked::{PageReadGuard, PageWriteGuard, ReadGuard, RwLock, RwLockArray, WriteGuard};
use rackmem::{Node, Region};
use std::sync::OnceLock;
use std::time::Duration;

/// Locks of a database at most: a node knows two million, of all that it does. Where there are
/// more cells, several share one.
const MAX_LOCKS: usize = 1 << 18;
/// The same of locks with copies, of each of which a majority keeps a record.
const MAX_COPIED: usize = 1 << 15;
/// What a lock protects beside what is agreed on: a page cannot be empty.
const LOCK_BYTES: usize = 8;
/// A lock in a region with copies, and its record.
const RECORD: usize = RwLock::<u64>::BYTES;

/// Which lock: of which home, and its number there.
pub type LockId = (u16, u32);

/// The locks.
#[derive(Debug)]
pub struct LockTable {
    /// By node of this process, by home.
    locks: Vec<Vec<OfHome>>,
    /// How many each home has.
    counts: Vec<u32>,
}

/// Those of cells of a home, as a node has them.
#[derive(Debug)]
enum OfHome {
    There(RwLockArray),
    Copied(Copied),
}

/// Locks in a region with copies, each made when it is first wanted.
#[derive(Debug)]
struct Copied {
    region: Region,
    /// Where the first one is.
    at: usize,
    locks: Box<[OnceLock<RwLock<u64>>]>,
}

impl Copied {
    fn lock(&self, number: usize) -> Result<&RwLock<u64>> {
        let place = &self.locks[number];
        if let Some(lock) = place.get() {
            return Ok(lock);
        }
        let lock = RwLock::in_region(&self.region, self.at + number * RECORD, 0)?;
        Ok(place.get_or_init(|| lock))
    }
}

/// A thread is inside of a lock until this is dropped.
#[expect(dead_code, reason = "guards are there to be dropped")]
pub enum Held<'t> {
    PageReading(PageReadGuard<'t>),
    PageWriting(PageWriteGuard<'t>),
    Reading(ReadGuard<'t, u64>),
    Writing(WriteGuard<'t, u64>),
}

impl Held<'_> {
    /// Whether nobody else is inside.
    pub fn is_alone(&self) -> bool {
        matches!(self, Held::PageWriting(_) | Held::Writing(_))
    }
}

impl LockTable {
    /// Locks at the homes of their cells.
    pub fn at_homes(cells: &Cells) -> Result<LockTable> {
        let counts = counts(cells, MAX_LOCKS);
        let mut locks: Vec<Vec<OfHome>> = cells.nodes.iter().map(|_| Vec::new()).collect();
        for (home, count) in counts.iter().map(|count| *count as usize).enumerate() {
            let (name, bytes) = (format!("txn/{home}/locks"), count * RwLockArray::STRIDE);
            let first = cells.region(home, &name, bytes)?;
            for (node, of_homes) in cells.nodes.iter().zip(&mut locks) {
                let array = RwLockArray::attach(node, first, count, LOCK_BYTES)?;
                of_homes.push(OfHome::There(array));
            }
        }
        Ok(LockTable { locks, counts })
    }

    /// Locks in memory of which so many nodes have copies.
    pub fn with_copies(cells: &Cells, copies: u8) -> Result<LockTable> {
        let counts = counts(cells, MAX_COPIED);
        let all: usize = counts.iter().map(|count| *count as usize).sum();
        let of_node = |node: &Node| {
            let region = copied(node, "txn/locks", all * RECORD, copies)?;
            let mut at = 0;
            let of_home = |count: &u32| {
                let count = *count as usize;
                let locks = (0..count).map(|_| OnceLock::new()).collect();
                let region = region.clone();
                let home = OfHome::Copied(Copied { region, at, locks });
                at += count * RECORD;
                home
            };
            Ok(counts.iter().map(of_home).collect())
        };
        let locks = cells.nodes.iter().map(of_node).collect::<Result<_>>()?;
        Ok(LockTable { locks, counts })
    }

    /// Which lock a cell is under.
    pub fn lock_of(&self, cell: Cell) -> LockId {
        let count = self.counts[usize::from(cell.home)];
        (cell.home, cell.number % count)
    }

    /// Enters a lock to write, or with others to read, if it is this thread's turn in that time.
    pub fn enter(
        &self,
        node: usize,
        (home, number): LockId,
        (to_write, wait): (bool, Duration),
    ) -> Result<Option<Held<'_>>> {
        let number = number as usize;
        Ok(match &self.locks[node][usize::from(home)] {
            OfHome::There(array) => match to_write {
                true => array.write_within(number, wait)?.map(Held::PageWriting),
                false => array.read_within(number, wait)?.map(Held::PageReading),
            },
            OfHome::Copied(copied) => match (copied.lock(number)?, to_write) {
                (lock, true) => lock.write_within(wait)?.map(Held::Writing),
                (lock, false) => lock.read_within(wait)?.map(Held::Reading),
            },
        })
    }
}

/// How many locks each home has, of so many.
fn counts(cells: &Cells, most: usize) -> Vec<u32> {
    let parts = cells.layout.parts();
    let of = |cells: u32| (cells as usize).clamp(1, (most / parts.len()).max(1)) as u32;
    parts.iter().map(|part| of(part.cells)).collect()
}
