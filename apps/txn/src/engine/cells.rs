//! Cells in coherent memory, each behind its version. Whoever uses one has what protects it.

use crate::access::{Footprint, Used, UsedCells};
use crate::error::{Result, TxnError};
use crate::layout::{Cell, Layout, VERSION_BYTES};
use rackmem::{Node, RegionSpec};

/// By how much a commit raises the version of what it changes.
pub const RISE: u64 = 1;

/// The cells of a database, as the nodes of this process have them.
#[derive(Debug)]
pub struct Cells {
    pub layout: Layout,
    pub nodes: Vec<Node>,
    /// Where the cells of each home begin.
    bases: Vec<u64>,
}

impl Cells {
    /// Those of these nodes' rack, zeros if nobody has asked for them before.
    pub fn new(nodes: &[Node], layout: Layout) -> Result<Cells> {
        let mut cells = Cells {
            layout,
            nodes: nodes.to_vec(),
            bases: Vec::new(),
        };
        for home in 0..cells.layout.parts().len() {
            let bytes = cells.layout.parts()[home].bytes.max(VERSION_BYTES);
            let base = cells.region(home, &format!("txn/{home}"), bytes as usize)?;
            cells.bases.push(base);
        }
        Ok(cells)
    }

    /// Where memory of this name is, at a home.
    pub fn region(&self, home: usize, name: &str, bytes: usize) -> Result<u64> {
        let what = "nodes of this process";
        let most = self.layout.parts().len() as u64;
        let node = self.nodes.first();
        let node = node.ok_or(TxnError::OutOfRange { what, most })?;
        let spec = RegionSpec::new(name, bytes).on(home as u16);
        Ok(node.create_region(&spec)?.addr())
    }

    fn addr(&self, cell: Cell) -> u64 {
        self.bases[usize::from(cell.home)] + cell.at
    }

    /// The version of a cell.
    pub fn version(&self, node: usize, cell: Cell) -> Result<u64> {
        Ok(self.nodes[node].load(self.addr(cell))?)
    }

    /// A cell with its version.
    pub fn load(&self, node: usize, cell: Cell) -> Result<Used> {
        let mut bytes = vec![0; VERSION_BYTES as usize + cell.bytes as usize];
        self.nodes[node].read(self.addr(cell), &mut bytes)?;
        let content = bytes.split_off(VERSION_BYTES as usize);
        let version = bytes.try_into().map_or(0, u64::from_le_bytes);
        Ok(Used {
            version,
            bytes: content,
            is_changed: false,
        })
    }

    /// Gives a cell this version and content.
    pub fn store(&self, node: usize, cell: Cell, version: u64, content: &[u8]) -> Result<()> {
        let bytes = [&version.to_le_bytes(), content].concat();
        Ok(self.nodes[node].write(self.addr(cell), &bytes)?)
    }

    /// Writes what a run has changed.
    pub fn commit(&self, node: usize, run: &UsedCells) -> Result<Footprint> {
        for (cell, used) in run.iter().filter(|(_, used)| used.is_changed) {
            self.store(node, *cell, used.version + RISE, &used.bytes)?;
        }
        Ok(Footprint::of(run, RISE))
    }
}
