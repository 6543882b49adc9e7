//! Cells in coherent memory, each behind its version. Whoever uses one has what protects it.

use super::survival::insist;
use crate::access::{Footprint, Used, UsedCells};
use crate::error::{Result, TxnError};
use crate::layout::{Cell, Layout, VERSION_BYTES};
use rackmem::{Node, Region, RegionSpec, Survives};
use std::collections::BTreeSet;

/// By how much a commit raises the version of what it changes.
pub const RISE: u64 = 1;
/// How often a block is brought here to be brought home, without a pause.
const TRIES: u32 = 100;

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
        let mut cells = Cells::nowhere(nodes, layout);
        for home in 0..cells.layout.parts().len() {
            let base = cells.region(home, &format!("txn/{home}"), cells.bytes(home))?;
            cells.bases.push(base);
        }
        Ok(cells)
    }

    /// The same in memory of which so many nodes have copies. What a cell was stored as survives
    /// once it was brought home ([`Cells::take_home`]).
    pub fn with_copies(nodes: &[Node], layout: Layout, copies: u8) -> Result<Cells> {
        let mut cells = Cells::nowhere(nodes, layout);
        let block = cells.first()?.block_size();
        let lengths = 0..cells.layout.parts().len();
        let lengths: Vec<usize> = lengths
            .map(|home| cells.bytes(home).next_multiple_of(block))
            .collect();
        let of_first = cells.first()?.clone();
        let region = copied(&of_first, "txn/cells", lengths.iter().sum(), copies)?;
        cells.bases = lengths
            .iter()
            .scan(region.addr(), |at, bytes| {
                let base = *at;
                *at += *bytes as u64;
                Some(base)
            })
            .collect();
        Ok(cells)
    }

    fn nowhere(nodes: &[Node], layout: Layout) -> Cells {
        Cells {
            layout,
            nodes: nodes.to_vec(),
            bases: Vec::new(),
        }
    }

    fn bytes(&self, home: usize) -> usize {
        self.layout.parts()[home].bytes.max(VERSION_BYTES) as usize
    }

    fn first(&self) -> Result<&Node> {
        let what = "nodes of this process";
        let most = self.layout.parts().len() as u64;
        let node = self.nodes.first();
        node.ok_or(TxnError::OutOfRange { what, most })
    }

    /// Where memory of this name is, at a home.
    pub fn region(&self, home: usize, name: &str, bytes: usize) -> Result<u64> {
        let spec = RegionSpec::new(name, bytes).on(home as u16);
        Ok(self.first()?.create_region(&spec)?.addr())
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

    /// Brings the blocks of these cells home, and so to a majority of the copies, as they are now
    /// or later. False: others were in the way again and again.
    pub fn take_home(&self, node: usize, cells: impl Iterator<Item = Cell>) -> Result<bool> {
        let block = self.nodes[node].block_size() as u64;
        let of = |cell: Cell| {
            let (at, bytes) = (self.addr(cell), VERSION_BYTES + u64::from(cell.bytes));
            at / block..(at + bytes).div_ceil(block)
        };
        let blocks: BTreeSet<u64> = cells.flat_map(of).collect();
        for nth in blocks {
            if !take_home(&self.nodes[node], nth * block)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Brings home what a node has of all cells of a home, which nobody else changes meanwhile.
    pub fn rest(&self, node: usize, home: usize) -> Result<()> {
        let (node, base) = (&self.nodes[node], self.bases[home]);
        for at in (0..self.bytes(home)).step_by(node.block_size()) {
            insist(|| Ok(node.evict(base + at as u64).map(|_| true)?))?;
        }
        Ok(())
    }
}

/// Memory of this name of which so many nodes have copies, as a node has it.
pub fn copied(node: &Node, name: &str, bytes: usize, copies: u8) -> Result<Region> {
    let spec = RegionSpec::new(name, bytes).copies(copies);
    Ok(node.create_region(&spec.survives(Survives::Rest))?)
}

/// Brings a block home. A copy that a node gives up is home's; where another node has it, or
/// another thread uses it, a read brings it here first. False: that happens again and again.
pub fn take_home(node: &Node, addr: u64) -> Result<bool> {
    for _ in 0..TRIES {
        if node.evict(addr)? {
            return Ok(true);
        }
        node.load(addr)?;
    }
    Ok(false)
}
