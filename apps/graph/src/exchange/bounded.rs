//! Packs in bounded memory: a read is a look at a copy, which is dropped when this node learns that
//! it was modified. On demand it asks at each barrier; otherwise its domains ask once a tick.

use super::Place;
use super::packs::{PACK_BYTES, Pack, Packs, packs_of};
use crate::error::Result;
use rackmem::bounded::Domain;
use rackmem::{AccessError, Contract, RegionSpec};
use std::time::{Duration, Instant};

/// How long a read is tried again that is older than it may be each time.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct BoundedPacks {
    me: usize,
    rows: Vec<Domain<Pack>>,
    asks: bool,
}

fn spec(place: &Place<'_>, node: usize) -> RegionSpec {
    RegionSpec::new(&place.of(node), packs_of(place.part, node) * PACK_BYTES)
        .contract(Contract::Bounded)
        .line(PACK_BYTES as u32)
}

impl BoundedPacks {
    pub fn make(place: &Place<'_>) -> Result<()> {
        place.node.create_region(&spec(place, place.part.me))?;
        Ok(())
    }

    pub fn find(place: &Place<'_>, bound: Duration, asks: bool) -> Result<Self> {
        let row = |node| {
            let region = place.node.open_region(&spec(place, node))?;
            Ok(Domain::of(&region, bound)?)
        };
        Ok(BoundedPacks {
            me: place.part.me,
            rows: (0..place.part.nodes).map(row).collect::<Result<_>>()?,
            asks,
        })
    }
}

impl Packs for BoundedPacks {
    fn read(&self, from: usize, nth: usize) -> Result<Pack> {
        patiently(|| self.rows[from].read(nth))
    }

    fn write(&self, packs: &[(usize, Pack)]) -> Result<()> {
        if packs.is_empty() {
            return Ok(());
        }
        let mut writer = self.rows[self.me].writer()?;
        for (nth, pack) in packs {
            writer.set(*nth, pack)?;
        }
        Ok(())
    }

    fn turn(&self) -> Result<()> {
        let others = self.rows.iter().enumerate();
        let mut others = others.filter(|(node, _)| self.asks && *node != self.me);
        others.try_for_each(|(_, row)| patiently(|| row.quiesce()))
    }
}

/// A section that lasts longer than its bound, on a machine that is busy with other things,
/// is begun again.
fn patiently<T>(mut read: impl FnMut() -> std::result::Result<T, AccessError>) -> Result<T> {
    let began = Instant::now();
    loop {
        match read() {
            Err(AccessError::Stale { .. }) if began.elapsed() < PATIENCE => {}
            read => return Ok(read?),
        }
    }
}
