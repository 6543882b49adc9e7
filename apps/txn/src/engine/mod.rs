//! What makes transactions of reads and writes of cells.

mod attempts;
mod cells;
mod delegate;
mod direct;
mod locks;
mod objects;
mod one_lock;
mod record;
mod seams;
mod survival;
mod table;

pub use delegate::Delegated;
pub(crate) use direct::Direct;
pub use locks::Locks;
pub use objects::Objects;
pub use one_lock::{LockFailure, OneLock, OnlyLock, RackLock};
pub use survival::Copies;

use crate::access::{Access, Cause, Footprint, Step};
use crate::error::Result;
use crate::layout::{Cell, Layout};
use crate::tally::Counts;
use rackmem::Node;
use std::time::Duration;

/// How long a transaction is tried again.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome<R> {
    /// What it has returned; nothing if its user has taken it back.
    pub value: Option<R>,
    /// Runs that were aborted before, by the order of [`Cause::ALL`].
    pub aborts: [u64; Cause::ALL.len()],
    /// What it has read and changed, if it has committed.
    pub footprint: Footprint,
}

/// Keeps a database in the memory of a rack's nodes. Its threads may use it all at once. Where a
/// method takes a `node`, that is a place in [`Engine::nodes`].
pub trait Engine: Sync {
    /// What it is called in reports.
    const NAME: &'static str;

    /// Where everything is.
    fn layout(&self) -> &Layout;

    /// The nodes of this process: all of the rack's, or one.
    fn nodes(&self) -> &[Node];

    /// Runs a transaction at a node, again and again until it commits or takes itself back.
    /// `body` may be run on cells of different moments where that is noticed before it commits: it
    /// has no effects but on `access`, and ends whatever it finds.
    ///
    /// # Errors
    /// [`TxnError::Starved`](crate::TxnError::Starved) after [`PATIENCE`]; those of `body` and of
    /// the rack.
    fn transact<R>(
        &self,
        node: usize,
        body: &mut dyn FnMut(&mut dyn Access) -> Step<R>,
    ) -> Result<Outcome<R>>;

    /// A cell's content, outside of transactions: nobody changes it meanwhile.
    ///
    /// # Errors
    /// Those of the rack.
    fn peek(&self, node: usize, cell: Cell) -> Result<Vec<u8>>;

    /// Gives a cell a content, outside of transactions: nobody else uses it meanwhile.
    ///
    /// # Errors
    /// Those of the rack.
    fn poke(&self, node: usize, cell: Cell, content: &[u8]) -> Result<()>;

    /// What a node has poked into cells of a home survives as what transactions write.
    ///
    /// # Errors
    /// Those of the rack.
    fn rest(&self, node: usize, home: usize) -> Result<()> {
        let _ = (node, home);
        Ok(())
    }

    /// What all terminals of the rack have done since the database was loaded, where that is kept
    /// with it ([`Access::note`]): also terminals of nodes that are dead. Nobody works meanwhile.
    ///
    /// # Errors
    /// Those of the rack.
    fn counted(&self, node: usize) -> Result<Option<Counts>> {
        let _ = node;
        Ok(None)
    }
}

/// The place of a home's node among those of this process; the first one's if it is none of them.
pub(crate) fn nearest<E: Engine>(engine: &E, home: usize) -> usize {
    let mut ids = engine.nodes().iter().map(|node| usize::from(node.id()));
    ids.position(|id| id == home).unwrap_or_default()
}
