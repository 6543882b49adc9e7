//! What a transaction does with the database: cells that it reads and changes.

use crate::error::TxnError;
use crate::layout::Cell;
use crate::tally::Counts;
use rackmem::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use zerocopy::FromBytes;

/// Why a run of a transaction was aborted, and is tried again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It did not get a lock in time.
    Lock,
    /// What it has read was changed before it had it to write, or before it committed.
    Changed,
    /// The rack has changed meanwhile: a node may have died in the middle of what it was to read.
    Death,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 3] = [Cause::Lock, Cause::Changed, Cause::Death];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Lock => "lock",
            Cause::Changed => "changed",
            Cause::Death => "death",
        }
    }
}

/// Why a run of a transaction ends before its end.
#[derive(Debug)]
pub enum Halt {
    /// It is to be tried again.
    Abort(Cause),
    /// Its user has taken it back: nothing of it is to be.
    Rollback,
    /// It cannot be.
    Failed(TxnError),
}

/// A step of a transaction.
pub type Step<T> = Result<T, Halt>;

impl From<TxnError> for Halt {
    fn from(error: TxnError) -> Self {
        Halt::Failed(error)
    }
}

/// Memory is not as it was left, or an optimistic run sees two moments of it.
pub fn broken(what: &'static str) -> Halt {
    Halt::Failed(TxnError::Broken { what })
}

/// One run of a transaction. What it changes others see when it has committed, all at once.
pub trait Access {
    /// A cell's content, as this run has it.
    ///
    /// # Errors
    /// [`Halt::Abort`], and what the rack says.
    fn read(&mut self, cell: Cell) -> Step<&[u8]>;

    /// The same; it is going to be changed. Who takes no locks reads it as any other.
    ///
    /// # Errors
    /// Those of [`Access::read`].
    fn claim(&mut self, cell: Cell) -> Step<&[u8]> {
        self.read(cell)
    }

    /// A cell's content, to be changed.
    ///
    /// # Errors
    /// Those of [`Access::read`].
    fn change(&mut self, cell: Cell) -> Step<&mut [u8]>;

    /// A cell's content as some transaction has left it that has committed by now. It takes no part
    /// in this one: it may be of another moment, and may change before this run commits. What this
    /// run has of it itself is that.
    ///
    /// # Errors
    /// Those of [`Access::read`].
    fn committed(&mut self, cell: Cell) -> Step<Vec<u8>> {
        match self.kept(cell) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => self.constant(cell),
        }
    }

    /// What this run has read or changed of a cell; nothing of one that it has not used.
    fn kept(&self, cell: Cell) -> Option<&[u8]>;

    /// A cell's content that no transaction ever changes.
    ///
    /// # Errors
    /// Those of [`Access::read`].
    fn constant(&mut self, cell: Cell) -> Step<Vec<u8>>;

    /// Has a part of a transaction ([`crate::transactions::parts`]) run at the node that has what
    /// it needs: its answer. Nothing: it is to be run here.
    ///
    /// # Errors
    /// Those of [`Access::change`].
    fn delegate(&mut self, home: usize, part: (u32, &[u8])) -> Step<Option<Vec<u8>>> {
        let _ = (home, part);
        Ok(None)
    }

    /// What it has read so far, and changes if it commits now; nothing where that is not told.
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }

    /// If this run commits, so much has been done. Where a database outlives nodes, that is kept
    /// with it; otherwise it is nothing.
    fn note(&mut self, done: Counts) {
        let _ = done;
    }
}

/// The record of a cell.
///
/// # Errors
/// Those of [`Access::read`].
pub fn get<T: Value>(access: &mut dyn Access, cell: Option<Cell>) -> Step<T> {
    record(access.read(known(cell)?)?)
}

/// Changes the record of a cell; what it was before.
///
/// # Errors
/// Those of [`Access::change`].
pub fn update<T: Value>(
    access: &mut dyn Access,
    cell: Option<Cell>,
    change: impl FnOnce(&mut T),
) -> Step<T> {
    let bytes = access.change(known(cell)?)?;
    let before: T = record(bytes)?;
    let mut after = before;
    change(&mut after);
    bytes.copy_from_slice(after.as_bytes());
    Ok(before)
}

/// The record that these bytes are.
///
/// # Errors
/// That it has another length.
pub fn record<T: FromBytes>(bytes: &[u8]) -> Step<T> {
    T::read_from_bytes(bytes).or(Err(broken("a record has another length")))
}

/// A cell that there is.
///
/// # Errors
/// That there is none.
pub fn known(cell: Option<Cell>) -> Step<Cell> {
    cell.ok_or_else(|| broken("there is no such row"))
}

/// A cell that a run has read.
#[derive(Clone, Debug)]
pub(crate) struct Used {
    pub version: u64,
    pub bytes: Vec<u8>,
    pub is_changed: bool,
}

impl Used {
    /// Its content, which is changed from here on.
    pub fn change(&mut self) -> &mut [u8] {
        self.is_changed = true;
        &mut self.bytes
    }
}

/// The cells that a run has read, and what it has changed of them.
pub(crate) type UsedCells = BTreeMap<Cell, Used>;

/// A cell as a run has it, which `load` reads when the run has not.
pub(crate) fn used<E>(
    cells: &mut UsedCells,
    cell: Cell,
    load: impl FnOnce() -> Result<Used, E>,
) -> Result<&mut Used, E> {
    match cells.entry(cell) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(new) => Ok(new.insert(load()?)),
    }
}

/// Versions of what a transaction has read and made, by [`Cell::key`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footprint {
    /// Everything that it has read.
    pub reads: Vec<(u64, u64)>,
    /// What it has changed, with the versions that it has made.
    pub writes: Vec<(u64, u64)>,
}

impl Footprint {
    /// Of these cells; a change raises a version by so much.
    pub(crate) fn of(cells: &UsedCells, by: u64) -> Footprint {
        let changed = cells.iter().filter(|(_, used)| used.is_changed);
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        reads.extend(cells.iter().map(|(cell, used)| (cell.key(), used.version)));
        writes.extend(changed.map(|(cell, used)| (cell.key(), used.version + by)));
        Footprint { reads, writes }
    }
}
