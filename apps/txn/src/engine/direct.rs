//! Cells without transactions: while the database is loaded, and when it is looked at afterwards.

use super::Engine;
use crate::access::{Access, Step, Used, UsedCells, used};
use crate::error::Result;
use crate::layout::Cell;

/// Reads cells as they are, and keeps what it changes until [`Direct::flush`].
pub(crate) struct Direct<'e, E> {
    engine: &'e E,
    node: usize,
    /// What has not been written yet is zeros: nothing has to be read.
    is_new: bool,
    cells: UsedCells,
}

impl<'e, E: Engine> Direct<'e, E> {
    /// Of a database that is there.
    pub fn new(engine: &'e E, node: usize) -> Self {
        Direct {
            engine,
            node,
            is_new: false,
            cells: UsedCells::new(),
        }
    }

    /// Of one that is being made.
    pub fn loading(engine: &'e E, node: usize) -> Self {
        Direct {
            is_new: true,
            ..Direct::new(engine, node)
        }
    }

    /// Writes what has changed, and forgets all.
    pub fn flush(&mut self) -> Result<()> {
        for (cell, used) in std::mem::take(&mut self.cells) {
            if used.is_changed {
                self.engine.poke(self.node, cell, &used.bytes)?;
            }
        }
        Ok(())
    }

    fn used(&mut self, cell: Cell) -> Result<&mut Used> {
        let (engine, node, is_new) = (self.engine, self.node, self.is_new);
        used(&mut self.cells, cell, || {
            Ok(Used {
                version: 0,
                bytes: match is_new {
                    true => vec![0; cell.bytes as usize],
                    false => engine.peek(node, cell)?,
                },
                is_changed: false,
            })
        })
    }
}

impl<E: Engine> Access for Direct<'_, E> {
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
