//! Where everything of a scenario is: tags of blocks, requesters of threads, parts of the rack.

use super::keeping::{GROUP, Kept, STEPS};
use super::packet::{BLOCK_BYTES, FIT, Value};
use super::scenario::{MAX_BLOCKS, MAX_NODES, MAX_OPERATIONS, MAX_THREADS, Scenario};
use crate::site::{Cache, Site};
use crate::world::{Mutation, Owners};
use rackmem_proto::engine;
use rackmem_proto::engine::keeping::InPlace;
use rackmem_proto::flowcc::{
    HomeConfig, KeptBlocks, MakeAnswering, Migration, Requester, RequesterConfig,
};
use rackmem_proto::membership::View;
use rackmem_proto::switch::{SwitchConfig, SwitchProgram};
use rackmem_proto::wire::{Copyset, Dest, NodeId, RequesterId, Tag};

/// Epoch of every explored rack.
pub const EPOCH: u32 = 1;
/// Explorers see to it themselves that nothing takes for ever.
const NEVER: u64 = u64::MAX / 4;
/// Entries move when the explorer says so, and never for their heat.
const ON_DEMAND: Migration = Migration {
    top: 0,
    least: 1,
    tracked: 1,
};
/// Decides which sharer provides data.
const SEED: u32 = 1;

/// Chunks of an incarnation of a node.
const CHUNKS: u32 = MAX_BLOCKS as u32;

/// A scenario and what follows from it.
pub struct Layout {
    /// The scenario.
    pub scenario: Scenario,
    tags: Vec<Tag>,
    requesters: Vec<RequesterId>,
    /// What the group's home has, after each of its steps.
    groups: [KeptBlocks; STEPS as usize + 1],
}

impl Layout {
    /// Lays a scenario out; the reason why it cannot be.
    pub fn new(scenario: Scenario) -> Result<Self, &'static str> {
        let nodes = usize::from(scenario.nodes);
        let fits = (1..=MAX_NODES).contains(&nodes)
            && (1..=MAX_BLOCKS).contains(&scenario.homes.len())
            && (1..=MAX_THREADS).contains(&scenario.programs.len());
        if !fits {
            return Err("more nodes, blocks or threads than an explorer has room for");
        }
        let beyond = |node: &NodeId| usize::from(*node) >= nodes;
        if scenario.homes.iter().any(beyond) || scenario.programs.iter().any(|p| beyond(&p.node)) {
            return Err("a home or a thread on a node that the rack has not");
        }
        if scenario
            .programs
            .iter()
            .any(|p| p.ops.len() > MAX_OPERATIONS)
        {
            return Err("more operations of a thread than there are numbers for what they write");
        }
        let blocks = scenario.homes.len();
        if scenario.in_switch.iter().any(|b| usize::from(*b) >= blocks) {
            return Err("a block in the switch that the rack has not");
        }
        let kept = |at: usize| scenario.kept.get(at).copied().unwrap_or_default();
        if (0..blocks).any(|at| kept(at) > 2 || kept(at) > 0 && scenario.homes[at] != 0) {
            return Err("a home of a group that node 0 does not keep");
        }
        let of_region = |region| (0..blocks).filter(move |at| kept(*at) == region).count() as u64;
        let [old, next] = [1, 2].map(|region| of_region(region) * u64::from(BLOCK_BYTES));
        let base = match scenario.mutation {
            Some(Mutation::ReuseAddresses) => 0,
            _ => old,
        };
        let first = KeptBlocks::of_bytes(old);
        let groups = [
            first,
            KeptBlocks {
                base,
                bytes: 0,
                ..first
            },
            KeptBlocks {
                first: 2,
                base,
                bytes: next,
            },
        ];
        let age = |at: usize| u64::from(scenario.young.contains(&(at as u8)));
        let before = |at: usize, home: NodeId| {
            let earlier = (0..at).filter(|&other| scenario.homes[other] == home);
            let earlier = earlier.filter(|&other| kept(other) == kept(at));
            earlier.filter(|&other| age(other) == age(at)).count() as u64
        };
        let homes = scenario.homes.iter().enumerate();
        let tags = homes.map(|(at, &home)| {
            let chunk = age(at) * u64::from(CHUNKS) + before(at, home);
            let offset = chunk * u64::from(BLOCK_BYTES);
            match kept(at) {
                0 => Tag(u64::from(home) << 48 | offset),
                1 => first.tag(GROUP, offset),
                _ => groups[2].tag(GROUP, offset),
            }
        });
        let programs = scenario.programs.iter().enumerate();
        let requesters = programs.map(|(at, program)| RequesterId {
            node: program.node,
            slot: scenario
                .threads_of(program.node)
                .position(|other| other == at)
                .unwrap_or_default() as u16,
        });
        Ok(Layout {
            tags: tags.collect(),
            requesters: requesters.collect(),
            groups,
            scenario,
        })
    }

    /// The rack before anything has happened.
    pub fn view(&self) -> View {
        let all = (0..self.scenario.nodes).fold(Copyset::EMPTY, Copyset::with);
        View::first(all, self.has_switch())
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> usize {
        self.tags.len()
    }

    /// The tag of a block.
    pub fn tag(&self, block: u8) -> Tag {
        self.tags[usize::from(block)]
    }

    /// The block of a tag.
    pub fn block(&self, tag: Tag) -> Option<u8> {
        let at = self.tags.iter().position(|other| *other == tag)?;
        Some(at as u8)
    }

    /// What the group's home has, after so many steps of it.
    pub fn group(&self, steps: u8) -> KeptBlocks {
        self.groups[usize::from(steps)]
    }

    /// After how many steps of the group its home has an address, if it ever has.
    pub fn step_of(&self, tag: Tag) -> Option<u8> {
        let kept = tag.home().group() == Some(GROUP);
        let mut steps = (0..=STEPS).filter(|_| kept);
        steps.find(|step| self.group(*step).at(tag).is_some())
    }

    /// The requester of a thread.
    pub fn requester(&self, thread: usize) -> RequesterId {
        self.requesters[thread]
    }

    /// Whether a defect is in.
    pub fn mutated(&self, mutation: Mutation) -> bool {
        self.scenario.mutation == Some(mutation)
    }

    /// Whether there is a switch.
    pub fn has_switch(&self) -> bool {
        matches!(self.scenario.rack, Owners::Switch { .. })
    }

    /// Which entries go to the switch, if there is one.
    pub fn migration(&self) -> Option<Migration> {
        self.has_switch().then_some(ON_DEMAND)
    }

    /// How many parts a rack has: its nodes, and its switch behind them.
    pub fn parts(&self) -> usize {
        usize::from(self.scenario.nodes) + usize::from(self.has_switch())
    }

    /// The part that a packet goes to.
    pub fn part(&self, to: Dest) -> Option<usize> {
        let part = match to {
            Dest::Switch => usize::from(self.scenario.nodes),
            Dest::Agent(node) => usize::from(node),
            Dest::Requester(id) => usize::from(id.node),
            Dest::Agents { .. } | Dest::Home(_) => return None,
        };
        (part < self.parts()).then_some(part)
    }

    /// The incarnation of its home that has a block.
    pub fn incarnation(&self, block: u8) -> u32 {
        1 + u32::from(self.scenario.young.contains(&block))
    }

    /// A node's home, and how many chunks it has handed out: one for each of its blocks.
    fn home(&self, node: NodeId, view: &View) -> (HomeConfig, u32) {
        let incarnation = view.incarnations[usize::from(node)];
        let mine = |block: &u8| {
            self.scenario.homes[usize::from(*block)] == node
                && self.tag(*block).home().is_own()
                && self.incarnation(*block) == incarnation
        };
        let blocks = (0..self.blocks() as u8).filter(mine);
        let chunks = blocks.count() as u32;
        let answering: Option<MakeAnswering> = match self.scenario.rack {
            Owners::Gather => Some(rackmem_baselines::gather::answering),
            _ => None,
        };
        let config = HomeConfig {
            node,
            epoch: view.epoch,
            block: BLOCK_BYTES,
            chunks: CHUNKS,
            incarnation,
            migration: self.migration(),
            answering,
            seed: SEED,
        };
        (config, chunks)
    }

    /// A node that starts into a view. Its cache has room for every block, and only programs evict:
    /// which block must go is no matter of coherence.
    pub fn site(&self, id: NodeId, view: &View) -> Site<Value, Kept> {
        let blocks = 0..self.blocks() as u8;
        let tags: Vec<_> = blocks.map(|block| self.tag(block)).collect();
        let (config, given) = self.home(id, view);
        let cache = Cache::new(tags.len());
        let mut site = Site::new(config, (1, given, FIT), *view, cache, Kept::default());
        if !self.scenario.kept.is_empty() {
            site = site.with_kept(config);
            let in_place = InPlace::new(BLOCK_BYTES, view.epoch);
            site.part.in_place = Some(Box::new(in_place));
            engine::hear(&mut site, GROUP, self.group(0));
        }
        site.in_kernel = self.scenario.in_kernel;
        site.mutation = self.scenario.mutation;
        let mine = tags.iter().filter(|tag| tag.home().is_of(id));
        site.blocks = mine.copied().collect();
        tags.iter().for_each(|tag| _ = site.memory(*tag));
        site
    }

    /// A requester that has done nothing.
    pub fn engine(&self, id: RequesterId, view: &View) -> Requester {
        Requester::new(RequesterConfig {
            id,
            epoch: view.epoch,
            incarnation: view.incarnations[usize::from(id.node)],
            block: BLOCK_BYTES,
            switch: view.switch.is_some(),
            min_timeout: 1,
            give_up: NEVER,
        })
    }

    /// The switch, if there is one.
    pub fn switch(&self) -> Option<SwitchProgram> {
        let Owners::Switch { ways, sets } = self.scenario.rack else {
            return None;
        };
        let slots = self.requesters.iter().map(|id| id.slot + 1).max();
        Some(SwitchProgram::new(SwitchConfig {
            epoch: EPOCH,
            ways,
            sets,
            seed: SEED,
            shadow: None,
            nodes: self.scenario.nodes,
            requesters: slots.unwrap_or(1),
        }))
    }
}
