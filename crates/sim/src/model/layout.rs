//! How large a rack is, and where its blocks and locks live.

use super::guest::Guest;
use super::{BLOCK, EPOCH, Platform, System};
use crate::site::{Cache, Site};
use rackmem_proto::CHUNK;
use rackmem_proto::engine::{Copies, Migrating};
use rackmem_proto::flowcc::{HomeConfig, Migration, Requester, RequesterConfig, ShadowConfig};
use rackmem_proto::membership::View;
use rackmem_proto::switch::SwitchConfig;
use rackmem_proto::wire::{Contract, Copyset, NodeId, RequesterId, Tag, records_that_fit};

/// Who keeps the shadow of the switch.
const SHADOW: NodeId = 0;
/// Bytes of records in a packet, a RoCE MTU.
const BODY: usize = 4096;
/// Which sharer provides data is drawn from this.
const SEED: u32 = 1;
/// Hand-overs of a lock inside a node while another one waits: the library's.
const COHORT: u8 = 16;
/// Nothing is lost in the model, so nothing is sent again.
const NEVER: u64 = u64::MAX / 4;
/// Records in a packet at most.
pub const RECORDS: usize = records_that_fit(BODY);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Nodes of the rack.
    pub nodes: u16,
    /// The first node that is the home of something, and how many are.
    pub homes: (NodeId, u16),
    /// Blocks that only one node accesses, of each node.
    pub private: u32,
    /// Blocks that all nodes access.
    pub shared: u32,
    /// Entries of a node's cache, and of each of its sets.
    pub cache: (u32, u32),
    /// Locks of GCP, each with this many bytes.
    pub locks: (u32, u32),
    /// Locks stay where they were used last.
    pub locks_stay: bool,
    /// A block leaves a full set beside a miss, so that the next one finds room.
    pub evicts_ahead: bool,
    /// Hot blocks move to the switch while a rack runs; otherwise it has them all from the
    /// beginning.
    pub moves: Option<Moves>,
}

/// Ownership migration (§5.2.2): the shipped policy, with every size divided by `scale`.
#[derive(Clone, Copy, Debug)]
pub struct Moves {
    /// See [`Moves`].
    pub scale: u32,
    /// Entries of each of the switch's ways.
    pub sets: usize,
    /// How long a period is, in virtual nanoseconds.
    pub period: u64,
}

impl Moves {
    fn policy(&self) -> Migration {
        let shipped = Migration::default();
        Migration {
            top: shipped.top.div_ceil(self.scale),
            tracked: shipped.tracked.div_ceil(self.scale),
            ..shipped
        }
    }
}

impl Layout {
    /// What a home moves to the switch in a period.
    fn policy(&self) -> Migration {
        const NONE: Migration = Migration {
            top: 0,
            least: 1,
            tracked: 1,
        };
        self.moves.map_or(NONE, |moves| moves.policy())
    }

    /// The switch of the rack.
    pub fn switch(&self) -> SwitchConfig {
        let shipped = SwitchConfig::default();
        SwitchConfig {
            epoch: EPOCH,
            sets: self.moves.map_or(shipped.sets, |moves| moves.sets),
            shadow: self.moves.map(|_| SHADOW),
            ..shipped
        }
    }

    /// A node's part in the moves.
    fn migrating(&self, me: NodeId) -> Option<Migrating> {
        let moves = self.moves?;
        let switch = self.switch();
        let shipped = ShadowConfig::new(me, EPOCH, switch.ways, switch.sets);
        let config = ShadowConfig {
            leave: shipped.leave.div_ceil(moves.scale),
            ..shipped
        };
        let mut migrating = Migrating::new(config, moves.policy().tracked, RECORDS);
        migrating.set_shadow(Some(SHADOW), EPOCH);
        Some(migrating)
    }

    /// A node that has handed out all memory that is used, and cached none of it. Blocks and locks
    /// have a size and no bytes.
    pub fn site(&self, id: NodeId, platform: &Platform) -> Site<(), Guest> {
        let chunks = (u64::from(self.at_home(id)) * u64::from(BLOCK)).div_ceil(CHUNK) as u32;
        let system = platform.system;
        let config = HomeConfig {
            node: id,
            epoch: EPOCH,
            block: BLOCK,
            chunks,
            incarnation: 1,
            migration: (system == System::Switch).then(|| self.policy()),
            answering: match system {
                System::Directory => Some(rackmem_baselines::gather::answering),
                _ => None,
            },
            seed: SEED,
        };
        let all = (0..self.nodes).fold(Copyset::EMPTY, Copyset::with);
        let view = View::first(all, platform.locks_in_switch);
        let cache = self.cache_of(id);
        let mut site = Site::new(config, (1, chunks, RECORDS), view, cache, Guest::of(system));
        // The model's network loses nothing.
        site.copies = Copies::new(false);
        site.migrating = self.migrating(id).map(Box::new);
        (site.locks.cohort, site.locks.loops) = (COHORT, false);
        site.locks.bytes = self.locks.1;
        (0..self.locks.0).for_each(|lock| site.open_lock(self.lock(lock), [0; 4], None));
        site
    }

    /// The requester of a thread.
    pub fn requester(&self, id: RequesterId, platform: &Platform) -> Requester {
        Requester::new(RequesterConfig {
            id,
            epoch: EPOCH,
            incarnation: 1,
            block: BLOCK,
            switch: platform.system == System::Switch,
            min_timeout: NEVER,
            give_up: NEVER,
        })
    }

    fn cache_of(self, node: NodeId) -> Cache<()> {
        let ways = self.cache.1.max(1) as usize;
        let sets = (self.cache.0 as usize / ways).max(1);
        let set = move |tag| self.block(node, tag).map_or(0, |block| hashed(block, sets));
        Cache::in_sets((sets, ways), set)
    }

    /// Blocks whose home is this node.
    pub fn at_home(&self, node: NodeId) -> u32 {
        let (first, homes) = self.homes;
        match (first..first + homes).contains(&node) {
            true => self.private_at_home() * u32::from(homes) + self.shared.div_ceil(homes.into()),
            false => 0,
        }
    }

    fn private_at_home(&self) -> u32 {
        self.private.div_ceil(self.homes.1.into())
    }

    /// The tag of a block of which `node` speaks: its private ones come first,
    /// then the shared ones. Both are spread over all homes.
    pub fn tag(&self, node: NodeId, block: u32) -> Tag {
        let (first, homes) = (self.homes.0, u32::from(self.homes.1));
        let (home, at) = match block.checked_sub(self.private) {
            None => (
                (u32::from(node) + block) % homes,
                u32::from(node) * self.private_at_home() + block / homes,
            ),
            Some(shared) => (
                shared % homes,
                homes * self.private_at_home() + shared / homes,
            ),
        };
        let home = u64::from(first) + u64::from(home);
        Tag((home << 48) | (u64::from(at) * u64::from(BLOCK)))
    }

    /// What `node` calls the block with this tag; the inverse of [`Layout::tag`].
    pub fn block(&self, node: NodeId, tag: Tag) -> Option<u32> {
        let homes = u32::from(self.homes.1);
        let home = u32::from(tag.home().0 - self.homes.0);
        let at = nth(tag);
        let private = self.private_at_home();
        if at >= homes * private {
            let shared = (at - homes * private) * homes + home;
            return (shared < self.shared).then_some(self.private + shared);
        }
        let rank = (home + homes - u32::from(node) % homes) % homes;
        let block = at % private * homes + rank;
        (at / private == u32::from(node) && block < self.private).then_some(block)
    }

    /// The address of a lock. All are of the first home.
    pub fn lock(&self, lock: u32) -> Tag {
        let offset = u64::from(lock) * u64::from(BLOCK);
        Tag((u64::from(self.homes.0) << 48) | offset).under(Contract::Locked)
    }
}

/// "We hash its tag into a bucket" (§6): neighbours are spread at random,
/// and some sets get too many.
fn hashed(block: u32, sets: usize) -> usize {
    let mixed = (u64::from(block) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (((mixed >> 32) * sets as u64) >> 32) as usize
}

/// Which of its home's blocks or locks it is.
pub fn nth(tag: Tag) -> u32 {
    (tag.offset() / u64::from(BLOCK)) as u32
}

#[cfg(test)]
mod tests {
    use super::super::{Accesses, Program, Workload};
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_block_has_a_tag_and_only_shared_ones_have_the_same() {
        for nodes in [1, 3, 8] {
            let workload = Workload {
                nodes,
                program: Accesses {
                    scale: 1024,
                    ..Accesses::default()
                },
                ..Workload::default()
            };
            let layout = Accesses::layout(&System::Switch.platform(), &workload);
            let mut seen = BTreeSet::new();
            for node in 0..nodes {
                for block in 0..layout.private + layout.shared {
                    let tag = layout.tag(node, block);
                    assert_eq!(layout.block(node, tag), Some(block));
                    assert!(nth(tag) < layout.at_home(tag.home().0));
                    assert_eq!(seen.insert(tag), block < layout.private || node == 0);
                    if block < layout.private && nodes > 1 {
                        assert_eq!(layout.block((node + 1) % nodes, tag), None);
                    }
                }
            }
        }
    }

    #[test]
    fn sets_overflow_as_random_ones_do() {
        let mut load = vec![0u32; 1024];
        (0..8192).for_each(|block| load[hashed(block, 1024)] += 1);
        let excess: u32 = load.iter().map(|n| n.saturating_sub(8)).sum();
        // Poisson with mean 8: 1.117 beyond eight on average.
        assert!((1000..1300).contains(&excess), "{excess}");
    }
}
