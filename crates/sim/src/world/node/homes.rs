//! The home of a node, in shards as a library's node has them.

use rackmem_proto::Output;
use rackmem_proto::engine::Home;
use rackmem_proto::flowcc::{HomeAgent, HomeConfig, HomeCounters, Shards};
use rackmem_proto::wire::Tag;
use std::ops::Add;

/// As many as the smallest machine with several cores has.
const SHARDS: u32 = 2;

/// See the module.
pub struct Homes {
    shards: Shards,
    homes: Vec<Home>,
}

impl Homes {
    /// A home that has given a chunk of its memory out.
    pub fn new(config: HomeConfig) -> Self {
        let shards = Shards::new(SHARDS, config.block);
        let mut agents = HomeAgent::sharded(config, shards);
        agents[Shards::BOOKS].grow(1);
        if let Some(news) = agents[Shards::BOOKS].news() {
            agents
                .iter_mut()
                .skip(1)
                .for_each(|agent| agent.hear(&news));
            agents[Shards::BOOKS].heard(&news);
        }
        let homes = agents.into_iter().map(Home::new).collect();
        Homes { shards, homes }
    }

    /// How it is divided.
    pub fn shards(&self) -> Shards {
        self.shards
    }

    /// One of them.
    pub fn shard(&mut self, nth: usize) -> &mut Home {
        &mut self.homes[nth]
    }

    /// The one that has a block.
    pub fn of(&mut self, tag: Tag) -> &mut HomeAgent {
        &mut self.homes[self.shards.of(tag)].agent
    }

    /// The one that has the books.
    pub fn books(&self) -> &HomeAgent {
        &self.homes[Shards::BOOKS].agent
    }

    /// What all have done.
    pub fn counters(&self) -> HomeCounters {
        let each = self.homes.iter().map(|home| home.agent.counters());
        each.fold(HomeCounters::default(), Add::add)
    }

    /// Moves under way.
    pub fn moves(&self) -> impl Iterator<Item = Output> {
        self.homes.iter().flat_map(|home| home.agent.resend())
    }
}
