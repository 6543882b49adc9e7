//! Optimistic transactions: each cell is an object ([`Contract::Object`]). A transaction reads
//! objects without locks, and commits if all that it has read is as it was then.

use super::{Engine, Outcome};
use crate::access::{Access, Cause, Footprint, Halt, Step, Used, UsedCells, used};
use crate::error::{Result, TxnError};
use crate::layout::{Cell, Layout};
#[cfg(test)]
use crate::tests::Defect;
use rackmem::object::{Object, ObjectRef, Transaction};
use rackmem::{Contract, Node, RegionSpec, TransactionError};
use std::sync::OnceLock;
use zerocopy::IntoBytes;

/// By how much a commit raises the version of what it changes: an odd one is being written.
const RISE: u64 = 2;
/// Bytes that an object takes beside its content, at most, if it is not rounded up.
const OBJECT_BYTES: u64 = 64;

/// The engine.
#[derive(Debug)]
pub struct Objects {
    layout: Layout,
    nodes: Vec<Node>,
    /// By home: the object of each cell. Those of other processes are read when they are wanted.
    objects: Vec<OnceLock<Vec<ObjectRef>>>,
    #[cfg(test)]
    pub(crate) defect: Option<Defect>,
}

impl Objects {
    /// A database of zeros in the memory of these nodes: all nodes of a rack, or one. Then the
    /// processes of the others do the same, and it is used when all have.
    ///
    /// # Errors
    /// Those of [`Node::create_region`] and [`rackmem::Region::alloc_bytes`].
    pub fn new(nodes: &[Node], layout: Layout) -> Result<Objects> {
        let homes = layout.parts().iter();
        let objects: Vec<_> = homes.map(|_| OnceLock::new()).collect();
        for node in nodes {
            let made = make(node, &layout)?;
            let table = table(node, node.id(), made.len())?;
            node.write(table, made.as_bytes())?;
            let _ = objects[usize::from(node.id())].set(made);
        }
        Ok(Objects {
            layout,
            nodes: nodes.to_vec(),
            objects,
            #[cfg(test)]
            defect: None,
        })
    }

    fn object(&self, node: usize, cell: Cell) -> Result<Object<[u8]>> {
        let home = usize::from(cell.home);
        let all = match self.objects[home].get() {
            Some(all) => all,
            None => self.read_table(node, cell.home)?,
        };
        let what = "a cell has no object";
        let at = all.get(cell.number as usize);
        let at = at.ok_or(TxnError::Broken { what })?;
        Ok(self.nodes[node].attach_object(*at)?)
    }

    #[cold]
    fn read_table(&self, node: usize, home: u16) -> Result<&Vec<ObjectRef>> {
        let at = usize::from(home);
        let mut all = vec![ObjectRef::default(); self.layout.parts()[at].cells as usize];
        let node = &self.nodes[node];
        let table = table(node, home, all.len())?;
        node.read(table, all.as_mut_bytes())?;
        Ok(self.objects[at].get_or_init(|| all))
    }
}

/// Where it is told which objects the cells of a home are.
fn table(node: &Node, home: u16, cells: usize) -> Result<u64> {
    let bytes = cells.max(1) * size_of::<ObjectRef>();
    let spec = RegionSpec::new(&format!("txn/{home}/objects"), bytes).on(home);
    Ok(node.create_region(&spec)?.addr())
}

/// The objects of a node's cells.
fn make(node: &Node, layout: &Layout) -> Result<Vec<ObjectRef>> {
    let home = node.id();
    let part = &layout.parts()[usize::from(home)];
    let bytes = part.bytes * 2 + (u64::from(part.cells) + 1) * OBJECT_BYTES;
    let spec = RegionSpec::new(&format!("txn/{home}"), bytes as usize).contract(Contract::Object);
    let region = node.create_region(&spec)?;
    let mut all = Vec::with_capacity(part.cells as usize);
    for len in part.lengths() {
        all.push(region.alloc_bytes(&vec![0; len], len)?.at());
    }
    Ok(all)
}

impl Engine for Objects {
    const NAME: &'static str = "objects";

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn transact<R>(
        &self,
        node: usize,
        body: &mut dyn FnMut(&mut dyn Access) -> Step<R>,
    ) -> Result<Outcome<R>> {
        let (mut runs, mut halt) = (0_u64, None);
        let done = self.nodes[node].transaction(|transaction| {
            runs += 1;
            let mut run = Run {
                engine: self,
                node,
                transaction,
                cells: UsedCells::new(),
            };
            halt = None;
            match body(&mut run).and_then(|value| Ok((value, run.commit()?))) {
                Ok(done) => Ok(done),
                Err(why) => {
                    halt = Some(why);
                    // Counts only if all that it has read was of one moment.
                    Err(TransactionError::Cancelled)
                }
            }
        });
        let mut aborts = [0; Cause::ALL.len()];
        aborts[Cause::Changed as usize] = runs.saturating_sub(1);
        let done = match (done, halt) {
            (Ok(done), _) => Some(done),
            (Err(TransactionError::Cancelled), Some(Halt::Rollback)) => None,
            (Err(TransactionError::Cancelled), Some(Halt::Failed(error))) => return Err(error),
            (Err(TransactionError::Conflict { tries }), _) => {
                return Err(TxnError::Starved { tries });
            }
            (Err(error), _) => return Err(error.into()),
        };
        let (value, footprint) = done.unzip();
        Ok(Outcome {
            value,
            aborts,
            footprint: footprint.unwrap_or_default(),
        })
    }

    fn peek(&self, node: usize, cell: Cell) -> Result<Vec<u8>> {
        Ok(self.object(node, cell)?.read()?)
    }

    fn poke(&self, node: usize, cell: Cell, content: &[u8]) -> Result<()> {
        self.object(node, cell)?.write(content)?;
        Ok(())
    }
}

/// One run of a transaction.
struct Run<'r, 't, 'n> {
    engine: &'r Objects,
    node: usize,
    transaction: &'t mut Transaction<'n>,
    cells: UsedCells,
}

impl Run<'_, '_, '_> {
    fn used(&mut self, cell: Cell) -> Step<&mut Used> {
        let (engine, node, unchecked) = (self.engine, self.node, self.skips_validation());
        let transaction = &mut *self.transaction;
        used(&mut self.cells, cell, || {
            let object = engine.object(node, cell)?;
            let (version, bytes) = match unchecked {
                true => object.read_versioned()?,
                false => {
                    let bytes = transaction.read(&object)?;
                    let version = transaction.version_of(&object);
                    (version.unwrap_or_default(), bytes)
                }
            };
            Ok(Used {
                version,
                bytes,
                is_changed: false,
            })
        })
    }

    fn commit(&mut self) -> Step<Footprint> {
        for (cell, used) in &self.cells {
            if used.is_changed {
                let object = self.engine.object(self.node, *cell)?;
                self.transaction.write_bytes(&object, &used.bytes)?;
            }
        }
        Ok(Footprint::of(&self.cells, RISE))
    }

    #[cfg(test)]
    fn skips_validation(&self) -> bool {
        self.engine.defect == Some(Defect::CommitsUnchecked)
    }

    #[cfg(not(test))]
    fn skips_validation(&self) -> bool {
        false
    }
}

impl Access for Run<'_, '_, '_> {
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
        Ok(self.engine.peek(self.node, cell)?)
    }
}
