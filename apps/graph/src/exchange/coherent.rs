//! Packs in coherent memory: a read is a hit in this node's cache until the pack's node writes it.

use super::Place;
use super::packs::{PACK, PACK_BYTES, Pack, Packs, packs_of};
use crate::error::Result;
use rackmem::zerocopy::IntoBytes;
use rackmem::{Node, RegionSpec};

pub(super) struct CoherentPacks {
    node: Node,
    me: usize,
    /// Where each node's row is.
    rows: Vec<u64>,
}

fn spec(place: &Place<'_>, node: usize) -> RegionSpec {
    RegionSpec::new(&place.of(node), packs_of(place.part, node) * PACK_BYTES)
}

impl CoherentPacks {
    pub fn make(place: &Place<'_>) -> Result<()> {
        place.node.create_region(&spec(place, place.part.me))?;
        Ok(())
    }

    pub fn find(place: &Place<'_>) -> Result<Self> {
        let row = |node| Ok(place.node.open_region(&spec(place, node))?.addr());
        Ok(CoherentPacks {
            node: place.node.clone(),
            me: place.part.me,
            rows: (0..place.part.nodes).map(row).collect::<Result<_>>()?,
        })
    }

    fn addr(&self, node: usize, nth: usize) -> u64 {
        self.rows[node] + (nth * PACK_BYTES) as u64
    }
}

impl Packs for CoherentPacks {
    fn read(&self, from: usize, nth: usize) -> Result<Pack> {
        let mut pack = [0; PACK];
        self.node.read(self.addr(from, nth), pack.as_mut_bytes())?;
        Ok(pack)
    }

    fn write(&self, packs: &[(usize, Pack)]) -> Result<()> {
        for (nth, pack) in packs {
            self.node.write(self.addr(self.me, *nth), pack.as_bytes())?;
        }
        Ok(())
    }

    fn turn(&self) -> Result<()> {
        Ok(())
    }
}
