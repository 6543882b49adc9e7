//! What lets a database outlive its nodes, beside copies of its cells: a log for each terminal, in
//! memory with copies.
//!
//! A transaction has committed when its log tells of it (`record.rs`). Then its cells are written
//! and brought home, and nobody else gets their locks before. The next transaction of the terminal
//! is written over it.
//!
//! When the rack has changed, whoever gets a lock leaves all that it has, and first has all logs of
//! the dead settled: what they tell of is done once more, under the locks of the cells. A cell of a
//! higher version has been changed by others since, so the record was done long ago; otherwise
//! doing it again changes nothing that is there. So it does not matter who settles a log,
//! how often, or whether the settler dies as well.

use super::PATIENCE;
use super::cells::{Cells, RISE, copied, take_home};
use super::record::{Change, HEAD, Head};
use super::table::LockTable;
use crate::error::{Result, TxnError};
use crate::tally::Counts;
use rackmem::locked::RwLock;
use rackmem::{AccessError, Error, LockError, Node, RackError};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of a log: a transaction that changes more than this does not fit.
const LOG_BYTES: usize = 128 << 10;
/// Between two attempts at something that the rack's changes have interrupted.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a terminal waits at once for a cell of a record that it settles.
const TURN: Duration = Duration::from_millis(100);
/// Of no epoch.
const NEVER: u32 = u32::MAX;

/// Copies of a database, and who is to use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copies {
    /// How many nodes have one: 3, 5 or 7. Fewer than half of them may be dead at any time.
    pub copies: u8,
    /// Threads of a node that run transactions at once, at most: each has a log.
    pub terminals: usize,
}

/// A terminal's log.
#[derive(Debug)]
pub struct Log {
    place: usize,
    /// What it tells of now.
    head: Head,
}

/// What a node of this process has beside the memory.
#[derive(Debug)]
struct Ours {
    /// In which epoch all logs of the dead were settled.
    settled: AtomicU32,
    /// Who settles.
    turn: RwLock<u64>,
    /// Logs that no thread has.
    free: Mutex<Vec<Log>>,
}

/// All logs.
#[derive(Debug)]
pub struct Survival {
    logs: u64,
    /// Of each node.
    terminals: usize,
    nodes: usize,
    block: usize,
    /// By node of this process.
    ours: Vec<Ours>,
}

/// A step of a commit or of settling is done: tests have a node die there.
pub type Moment<'m> = &'m dyn Fn() -> Result<()>;

/// A node of this process that settles logs of the dead. Its thread has no lock of a cell.
pub struct Settler<'s> {
    pub cells: &'s Cells,
    pub table: &'s LockTable,
    /// Its place among the nodes of this process.
    pub nth: usize,
    pub moment: Moment<'s>,
}

impl Survival {
    /// Those of the nodes of these cells, which are members.
    pub fn new(cells: &Cells, table: &LockTable, copies: &Copies) -> Result<Survival> {
        let (nodes, terminals) = (cells.layout.parts().len(), copies.terminals.max(1));
        let mut survival = Survival {
            logs: 0,
            terminals,
            nodes,
            block: 0,
            ours: Vec::new(),
        };
        for node in &cells.nodes {
            survival.block = node.block_size();
            let bytes = survival.block + nodes * terminals * LOG_BYTES;
            let region = copied(node, "txn/logs", bytes, copies.copies)?;
            survival.logs = region.addr() + survival.block as u64;
            survival.ours.push(Ours {
                settled: AtomicU32::new(NEVER),
                turn: RwLock::in_region(&region, 0, 0)?,
                free: Mutex::new(Vec::new()),
            });
        }
        for nth in 0..cells.nodes.len() {
            survival.open(&Settler {
                cells,
                table,
                nth,
                moment: &|| Ok(()),
            })?;
        }
        Ok(survival)
    }

    /// Settles what an earlier life of a node has left, and takes its logs.
    fn open(&self, settler: &Settler<'_>) -> Result<()> {
        self.settle(settler)?;
        let node = settler.node();
        let first = usize::from(node.id()) * self.terminals;
        for place in first..first + self.terminals {
            let head = self.head(node, place)?;
            self.give_back(settler.nth, Log { place, head });
        }
        Ok(())
    }

    fn at(&self, place: usize) -> u64 {
        self.logs + (place * LOG_BYTES) as u64
    }

    fn head(&self, node: &Node, place: usize) -> Result<Head> {
        let mut bytes = [0; HEAD];
        node.read(self.at(place), &mut bytes)?;
        Ok(Head::from_bytes(&bytes))
    }

    /// A log that no other thread of the node has.
    pub fn take(&self, nth: usize) -> Result<Log> {
        let free = self.ours[nth].free.lock();
        let log = free.unwrap_or_else(PoisonError::into_inner).pop();
        log.ok_or(TxnError::OutOfRange {
            what: "terminals of a node at once",
            most: self.terminals as u64,
        })
    }

    /// The thread has done what its log tells of.
    pub fn give_back(&self, nth: usize, log: Log) {
        let free = self.ours[nth].free.lock();
        free.unwrap_or_else(PoisonError::into_inner).push(log);
    }

    /// The record of these changes: room for its head, and its body.
    ///
    /// # Errors
    /// [`TxnError::Full`]: nothing has changed.
    pub fn record(&self, changes: &[Change]) -> Result<Vec<u8>> {
        let mut bytes = vec![0; HEAD];
        changes.iter().for_each(|change| change.put(&mut bytes));
        match bytes.len() <= LOG_BYTES {
            true => Ok(bytes),
            false => Err(TxnError::Full { table: "a log" }),
        }
    }

    /// Writes a record, and counts what it has done. It has committed when this returns.
    pub fn write(
        &self,
        node: &Node,
        log: &mut Log,
        (mut bytes, done): (Vec<u8>, Counts),
        moment: Moment<'_>,
    ) -> Result<()> {
        let (life, number) = (life(node, node.id()), log.head.number + 1);
        let head = Head::of(life, number, log.head.done.and(done), &bytes[HEAD..]);
        bytes[..HEAD].copy_from_slice(&head.to_bytes());
        let (first, behind) = bytes.split_at(bytes.len().min(self.block));
        let at = self.at(log.place);
        for (nth, part) in (1..).zip(behind.chunks(self.block)) {
            put(node, at + nth * self.block as u64, part)?;
            moment()?;
        }
        put(node, at, first)?;
        log.head = head;
        moment()
    }

    /// What all terminals of all nodes, dead or alive, have done since the database was loaded.
    pub fn counted(&self, node: &Node) -> Result<Counts> {
        let mut sum = Counts::default();
        for place in 0..self.nodes * self.terminals {
            sum = sum.and(self.head(node, place)?.done);
        }
        Ok(sum)
    }

    /// Whether nothing has changed in the rack since a node has seen all logs settled.
    pub fn is_settled(&self, node: &Node, nth: usize) -> bool {
        self.ours[nth].settled.load(SeqCst) == node.epoch()
    }

    /// Has all logs of the dead settled.
    pub fn settle(&self, settler: &Settler<'_>) -> Result<()> {
        let (node, nth) = (settler.node(), settler.nth);
        insist(|| {
            let epoch = node.epoch();
            if self.is_settled(node, nth) {
                return Ok(true);
            }
            self.settle_of(settler, &|owner, life| is_dead(node, owner, life))?;
            self.ours[nth].settled.store(epoch, SeqCst);
            Ok(node.epoch() == epoch)
        })
    }

    /// Settles the logs of those of whom `is_dead` says so: of a node's number, and its life.
    pub fn settle_of(
        &self,
        settler: &Settler<'_>,
        is_dead: &dyn Fn(u16, u64) -> bool,
    ) -> Result<()> {
        let node = settler.node();
        let _turn = self.ours[settler.nth].turn.write()?;
        for place in 0..self.nodes * self.terminals {
            let head = self.head(node, place)?;
            let owner = (place / self.terminals) as u16;
            if head.life == 0 || !is_dead(owner, head.life) {
                continue;
            }
            for change in self.body(node, place, &head)? {
                settler.redo(&change)?;
                (settler.moment)()?;
            }
            put(node, self.at(place), &Head { life: 0, ..head }.to_bytes())?;
            (settler.moment)()?;
        }
        Ok(())
    }

    /// What a log tells of; nothing if the next record was being written over that, which had been
    /// done.
    fn body(&self, node: &Node, place: usize, head: &Head) -> Result<Vec<Change>> {
        let most = LOG_BYTES - HEAD;
        let mut body = vec![0; (head.bytes as usize).min(most)];
        node.read(self.at(place) + HEAD as u64, &mut body)?;
        if !head.fits(&body) {
            return Ok(Vec::new());
        }
        Change::all(&body).ok_or(TxnError::Broken {
            what: "a log tells of no changes",
        })
    }
}

impl Settler<'_> {
    fn node(&self) -> &Node {
        &self.cells.nodes[self.nth]
    }

    /// Makes a change again, under the cell's lock, unless others have changed the cell since.
    fn redo(&self, change: &Change) -> Result<()> {
        let (cell, cells, nth) = (change.cell, self.cells, self.nth);
        let (lock, end) = (self.table.lock_of(cell), Instant::now() + PATIENCE);
        let _held = loop {
            match self.table.enter(nth, lock, (true, TURN))? {
                Some(held) => break held,
                None if Instant::now() > end => return Err(TxnError::Starved { tries: 1 }),
                None => {}
            }
        };
        let mut used = cells.load(nth, cell)?;
        let made = change.version + RISE;
        if used.version > made {
            return Ok(());
        }
        if !change.apply(&mut used.bytes) {
            return Err(TxnError::Broken {
                what: "a log tells of bytes behind a cell",
            });
        }
        insist(|| {
            let epoch = self.node().epoch();
            cells.store(nth, cell, made, &used.bytes)?;
            let is_home = cells.take_home(nth, [cell].into_iter())?;
            Ok(is_home && self.node().epoch() == epoch)
        })
    }
}

/// Writes a part of a block of a log, which nobody else writes. A majority has it when this
/// returns.
fn put(node: &Node, addr: u64, bytes: &[u8]) -> Result<()> {
    insist(|| {
        let epoch = node.epoch();
        node.write(addr, bytes)?;
        Ok(take_home(node, addr)? && node.epoch() == epoch)
    })
}

/// Does what may be done twice, until it is done: it says so itself.
///
/// # Errors
/// That this process is no member any more; whatever lasts longer than a transaction may.
pub fn insist(mut f: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        match f() {
            Ok(true) => return Ok(()),
            Err(error) if !passes(&error) || Instant::now() > end => return Err(error),
            Ok(false) | Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Whether an error is of what the rack is in the middle of, and not of what was asked for.
pub fn passes(error: &TxnError) -> bool {
    let TxnError::Rack(error) = error else {
        return false;
    };
    let waits = |error: &AccessError| {
        matches!(
            error,
            AccessError::Interrupted { .. }
                | AccessError::Busy { .. }
                | AccessError::NoQuorum { .. }
                | AccessError::Rack(RackError::Timeout { .. })
        )
    };
    error.access().is_some_and(|error| waits(&error))
        || matches!(error.rack(), Some(RackError::Timeout { .. }))
        || matches!(error, Error::Lock(LockError::Busy { .. }))
}

/// Which life of a node this is; never 0.
fn life(node: &Node, owner: u16) -> u64 {
    u64::from(node.incarnation_of(owner)) + 1
}

/// Whether this life of a node is over.
fn is_dead(node: &Node, owner: u16, of: u64) -> bool {
    let now = life(node, owner);
    now > of || now == of && !node.is_member(owner)
}
