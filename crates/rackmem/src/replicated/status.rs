//! Who keeps which copies, for programs and tools.

use crate::host::replicated::{CopyStore, Kept};
use crate::membership::{Group, Groups};
use crate::node::Node;
use rackmem_journal::StoreError;
use rackmem_proto::abd::Durability;
use rackmem_proto::engine::keeping::Sweep;
use std::sync::Arc;

/// A copy of a region.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{CopyStatus, Rack, RegionSpec};
///
/// let rack = Rack::local(3)?;
/// rack.node(1).create_region(&RegionSpec::new("log", 640).copies(3))?;
/// let copies: Vec<CopyStatus> = rack.node(0).groups()[0].copies.clone();
/// assert!(copies.iter().all(|copy| copy.counts && copy.live));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CopyStatus {
    /// The node that keeps it.
    pub node: u16,
    /// Which life of the node, which began with the copy: another one has forgotten,
    /// unless the copy is durable.
    pub life: u64,
    /// Whether it answers, and counts; otherwise it fills.
    pub counts: bool,
    /// Whether that life of the node is a member of the rack just now; where the copy is durable,
    /// any life.
    pub live: bool,
    /// Lines that it has which have been written; none where it has not said so.
    pub lines: Option<u64>,
    /// While it fills: bytes of the region that it has been through, and lines that it has fetched;
    /// none where it does not, or has not said so.
    pub filling: Option<(u64, u64)>,
    /// How it is kept; none where it has not said so.
    pub store: Option<CopyStore>,
}

impl CopyStatus {
    /// Whether a majority can be had with it just now: it counts, its node is live, and it has said
    /// of no damage that has ended it.
    pub fn answers(&self) -> bool {
        let over = matches!(self.store, Some(CopyStore::Ended | CopyStore::Missing));
        self.counts && self.live && !over
    }
}

/// How far a sweep through coherent memory with copies is. After each change of the rack's members
/// the node that serves the memory goes through all of it, so that each copy has what a majority
/// has: some blocks at a time, and fewer while there is other work.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, RegionSpec, SweepStatus};
///
/// let rack = Rack::local(3)?;
/// rack.node(0).create_region(&RegionSpec::new("log", 640).copies(3))?;
/// let swept: Option<SweepStatus> = rack.node(0).groups()[0].swept;
/// assert_eq!(swept, None, "lines are no coherent memory");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SweepStatus {
    /// Blocks that it has been through.
    pub blocks: u64,
    /// Blocks that there are.
    pub of: u64,
    /// Of those that it has been through, written again at all copies by it: no thread has used
    /// them since the change.
    pub repaired: u64,
}

/// A region with copies.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{GroupStatus, Rack, RegionSpec};
///
/// let rack = Rack::local(5)?;
/// rack.node(0).create_region(&RegionSpec::new("log", 640).copies(5))?;
/// let groups: Vec<GroupStatus> = rack.node(0).groups();
/// assert_eq!((groups[0].name.as_str(), groups[0].config, groups[0].needed), ("log", 1, 3));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GroupStatus {
    /// Its number, which its addresses have where others have the home.
    pub number: u16,
    /// The region's name.
    pub name: String,
    /// Bytes of the region.
    pub bytes: u64,
    /// Bytes of a line.
    pub line: u32,
    /// The number of its config: rises when its members change.
    pub config: u32,
    /// What its copies survive.
    pub durability: Durability,
    /// Copies that a majority takes.
    pub needed: u8,
    /// Copies that it is to have: while fewer count, it grows, or a copy is made anew.
    pub wanted: u8,
    /// Who keeps copies.
    pub copies: Vec<CopyStatus>,
    /// Of coherent memory: how far the node that serves it has been through it since the rack has
    /// changed last; none where that has not said so.
    pub swept: Option<SweepStatus>,
    /// Whether requests go through the switch, which counts.
    pub through_switch: bool,
    /// Whether the switch also chooses stamps, so that a write takes one round where it knows the
    /// line.
    pub one_round: bool,
}

impl GroupStatus {
    fn of(number: u16, group: &Group, live: impl Fn(u16) -> Option<u64>) -> Self {
        let config = &group.config;
        let places = config.members.iter().enumerate();
        let copies = places.filter_map(|(place, member)| {
            let member = (*member)?;
            Some(CopyStatus {
                node: member.node,
                life: member.life,
                counts: config.counting >> place & 1 == 1,
                live: match group.durability {
                    Durability::Memory => live(member.node) == Some(member.life),
                    _ => live(member.node).is_some(),
                },
                lines: None,
                filling: None,
                store: None,
            })
        });
        GroupStatus {
            number,
            name: group.name.clone(),
            bytes: group.layout.bytes,
            line: group.layout.line,
            config: config.number,
            durability: group.durability,
            needed: config.quorum() as u8,
            wanted: group.copies,
            copies: copies.collect(),
            swept: None,
            through_switch: config.through_switch,
            one_round: config.chooser != 0,
        }
    }

    /// With what a member says of its own copy.
    pub(crate) fn add(&mut self, node: u16, kept: &Kept) {
        if kept.config != self.config {
            return;
        }
        for copy in self.copies.iter_mut().filter(|copy| copy.node == node) {
            copy.lines = Some(kept.lines);
            copy.filling = kept.filling;
            copy.store = Some(kept.store);
        }
    }

    /// With what the node says that serves the memory.
    pub(crate) fn sweeps(&mut self, sweep: Sweep) {
        let Sweep {
            through,
            of,
            repaired,
        } = sweep;
        self.swept = Some(SweepStatus {
            blocks: through,
            of,
            repaired,
        });
    }

    /// Of all groups; `live` says in which life a node is a member.
    pub(crate) fn all(groups: &Groups, live: impl Fn(u16) -> Option<u64>) -> Vec<Self> {
        let rows = groups.rows.iter().enumerate();
        let there = rows.filter(|(_, group)| !group.config.is_removed());
        there
            .map(|(number, group)| GroupStatus::of(number as u16, group, &live))
            .collect()
    }
}

impl Node {
    /// Durable copies of this node that have ended, and why: regions' names and errors. They answer
    /// nothing any more; other copies have what they have acknowledged.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::{Rack, StoreError};
    /// use std::sync::Arc;
    ///
    /// let rack = Rack::local(3)?;
    /// let ended: Vec<(String, Arc<StoreError>)> = rack.node(0).ended_copies();
    /// assert!(ended.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ended_copies(&self) -> Vec<(String, Arc<StoreError>)> {
        let access = &self.inner.access;
        let known = access.groups.known();
        let ended = access.agents.replicas.stores.ended();
        let named = ended.into_iter().filter_map(|(group, why)| {
            let group = known.get(group)?;
            Some((group.name.clone(), why))
        });
        named.collect()
    }

    /// The regions with copies and who keeps these, as this process knows it; what each copy has,
    /// this node says of its own.
    pub fn groups(&self) -> Vec<GroupStatus> {
        let access = &self.inner.access;
        let view = access.standing.view();
        let live = |node| view.incarnation(node).map(u64::from);
        let mut all = GroupStatus::all(&access.groups.known(), live);
        for group in &mut all {
            let kept = access.agents.replicas.kept(group.number);
            kept.iter().for_each(|kept| group.add(self.id(), kept));
            let sweep = access.agents.kept.sweep_of(&access.agents, group.number);
            sweep.into_iter().for_each(|sweep| group.sweeps(sweep));
        }
        all
    }
}
