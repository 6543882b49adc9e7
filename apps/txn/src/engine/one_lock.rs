//! One lock over all of the database, as in Soul's measurement of Kyoto Cabinet (its Fig. 8): every
//! transaction holds it alone from its beginning to its end, so none is ever aborted. Cells are in
//! coherent memory, as under [`super::Locks`]; the lock brings none of them.

use super::cells::{Cells, RISE};
use super::{Engine, Outcome};
use crate::access::{Access, Cause, Footprint, Halt, Step, Used, UsedCells, used};
use crate::error::{Result, TxnError};
use crate::layout::{Cell, Layout};
use rackmem::Node;
use rackmem::locked::Mutex;
use std::error::Error;

/// Why the lock was not to be had.
pub type LockFailure = Box<dyn Error + Send + Sync>;

/// The lock over all of a database.
pub trait OnlyLock: Sync {
    /// Runs a section at a node beside which no other runs. The section runs once, or not at all if
    /// the lock fails. `node` is a place in [`Engine::nodes`].
    ///
    /// # Errors
    /// That the lock was not to be had.
    fn alone(&self, node: usize, section: &mut dyn FnMut())
    -> std::result::Result<(), LockFailure>;
}

/// GCP's, as each node has it.
pub type RackLock = Vec<Mutex<u64>>;

impl OnlyLock for RackLock {
    fn alone(
        &self,
        node: usize,
        section: &mut dyn FnMut(),
    ) -> std::result::Result<(), LockFailure> {
        let lock = self.get(node).ok_or("a node has no lock")?;
        let _held = lock.lock()?;
        section();
        Ok(())
    }
}

/// The engine.
#[derive(Debug)]
pub struct OneLock<L> {
    cells: Cells,
    lock: L,
}

impl OneLock<RackLock> {
    /// The database of these nodes' rack under the rack's own lock, zeros if nobody has asked for
    /// it before. They are all nodes of the rack, or one: then the processes of the others do the
    /// same.
    ///
    /// # Errors
    /// Those of [`Node::create_region`] and [`Mutex::named`].
    pub fn new(nodes: &[Node], layout: Layout) -> Result<Self> {
        let lock = |node| Mutex::named(node, "txn/lock", 0);
        let locks = nodes
            .iter()
            .map(lock)
            .collect::<std::result::Result<_, _>>()?;
        OneLock::under(locks, nodes, layout)
    }
}

impl<L: OnlyLock> OneLock<L> {
    /// The same under another lock.
    ///
    /// # Errors
    /// Those of [`Node::create_region`].
    pub fn under(lock: L, nodes: &[Node], layout: Layout) -> Result<Self> {
        let cells = Cells::new(nodes, layout)?;
        Ok(OneLock { cells, lock })
    }

    fn once<R>(
        &self,
        node: usize,
        body: &mut dyn FnMut(&mut dyn Access) -> Step<R>,
    ) -> Result<Option<(R, Footprint)>> {
        let mut run = Run {
            of: &self.cells,
            node,
            cells: UsedCells::new(),
        };
        match body(&mut run) {
            Ok(value) => Ok(Some((value, self.cells.commit(node, &run.cells)?))),
            Err(Halt::Rollback) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
            Err(Halt::Abort(_)) => Err(TxnError::Broken {
                what: "a transaction was aborted that was alone",
            }),
        }
    }
}

impl<L: OnlyLock> Engine for OneLock<L> {
    const NAME: &'static str = "one-lock";

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
        let mut told = None;
        let taken = self
            .lock
            .alone(node, &mut || told = Some(self.once(node, body)));
        taken.map_err(TxnError::Lock)?;
        let ran = told.ok_or_else(|| TxnError::Lock("the lock has run nothing".into()))?;
        let (value, footprint) = ran?.unzip();
        Ok(Outcome {
            value,
            aborts: [0; Cause::ALL.len()],
            footprint: footprint.unwrap_or_default(),
        })
    }

    fn peek(&self, node: usize, cell: Cell) -> Result<Vec<u8>> {
        Ok(self.cells.load(node, cell)?.bytes)
    }

    fn poke(&self, node: usize, cell: Cell, content: &[u8]) -> Result<()> {
        self.cells.store(node, cell, RISE, content)
    }
}

/// A transaction that is alone.
struct Run<'e> {
    of: &'e Cells,
    node: usize,
    cells: UsedCells,
}

impl Run<'_> {
    fn used(&mut self, cell: Cell) -> Step<&mut Used> {
        let (of, node) = (self.of, self.node);
        Ok(used(&mut self.cells, cell, || of.load(node, cell))?)
    }
}

impl Access for Run<'_> {
    fn read(&mut self, cell: Cell) -> Step<&[u8]> {
        Ok(&self.used(cell)?.bytes)
    }

    fn change(&mut self, cell: Cell) -> Step<&mut [u8]> {
        Ok(self.used(cell)?.change())
    }

    fn kept(&self, cell: Cell) -> Option<&[u8]> {
        self.cells.get(&cell).map(|used| used.bytes.as_slice())
    }

    fn constant(&mut self, cell: Cell) -> Step<Vec<u8>> {
        Ok(self.of.load(self.node, cell)?.bytes)
    }
}
