//! The home of a node, in shards as a library's node has them.

use rackmem_proto::Output;
use rackmem_proto::engine::Home;
use rackmem_proto::flowcc::{HomeAgent, HomeConfig, HomeCounters, Shards};
use rackmem_proto::wire::Tag;
use std::ops::Add;

/// See the module.
#[derive(Clone)]
pub struct Homes {
    shards: Shards,
    homes: Vec<Home>,
}

impl Homes {
    /// A home in so many shards that has given so many chunks of its memory out;
    /// the others are to hear of that.
    pub fn new(config: HomeConfig, shards: u32, given: u32) -> Self {
        let shards = Shards::new(shards, config.block);
        let mut agents = HomeAgent::sharded(config, shards);
        agents[Shards::BOOKS].grow(given);
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

    /// All of them.
    pub fn agents(&self) -> impl Iterator<Item = &HomeAgent> {
        self.homes.iter().map(|home| &home.agent)
    }

    /// What all have done.
    pub fn counters(&self) -> HomeCounters {
        let each = self.agents().map(HomeAgent::counters);
        each.fold(HomeCounters::default(), Add::add)
    }

    /// Moves under way.
    pub fn moves(&self) -> impl Iterator<Item = Output> {
        self.agents().flat_map(HomeAgent::resend)
    }
}
