//! Every state of a small rack, breadth first.

use super::moves::{Line, Move};
use super::mutation::Mutation;
use super::oracle::{Complaint, at_end};
use super::scenario::Scenario;
use super::world::{Cost, Rack, Witness, World};
use crate::explore::graph::Graph;
use crate::explore::visited::Visited;

/// How an exploration ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every state was visited, and every promise holds.
    Whole,
    /// There are more states than the limit.
    Limit,
    /// A promise is broken: which, and a shortest way there.
    Broken(Complaint, Vec<String>),
}

/// What an exploration found.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// States visited.
    pub states: usize,
    /// Moves between them.
    pub transitions: usize,
    /// What the scenario wants to see and nobody saw.
    pub missing: Vec<Witness>,
    /// The cost of the first way to the end: a shortest one.
    pub cost: Cost,
}

/// Visits every state of a scenario, up to `limit`.
pub fn explore(scenario: &Scenario, mutation: Option<Mutation>, limit: usize) -> Report {
    let rack = Rack {
        scenario: *scenario,
        mutation,
        loose: false,
    };
    let mut search = Search {
        first: rack.first(),
        rack,
        visited: Visited::new(),
        graph: Graph::default(),
        seen: 0,
        cost: None,
    };
    let outcome = search.run(limit);
    let seen = search.seen;
    let missing = scenario.sometimes.iter().copied();
    Report {
        outcome,
        states: search.visited.len(),
        transitions: search.graph.transitions(),
        missing: missing.filter(|w| seen & 1 << *w as u32 == 0).collect(),
        cost: search.cost.unwrap_or_default(),
    }
}

struct Search {
    rack: Rack,
    first: World,
    visited: Visited,
    graph: Graph,
    seen: u32,
    cost: Option<Cost>,
}

impl Search {
    fn run(&mut self, limit: usize) -> Outcome {
        self.visited.insert(self.first.fingerprint());
        self.graph.discover(0, 0);
        let mut frontier = vec![self.first.clone()];
        let mut number = 0;
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for world in &frontier {
                if let Err((complaint, way)) = self.expand(number, world, &mut next) {
                    return Outcome::Broken(complaint, self.story(&way));
                }
                number += 1;
                if self.visited.len() > limit {
                    return Outcome::Limit;
                }
            }
            frontier = next;
        }
        match self.graph.stuck() {
            None => Outcome::Whole,
            Some(stuck) => {
                let complaint = Complaint::stuck("nothing that can happen leads to the end".into());
                Outcome::Broken(complaint, self.story(&self.graph.path(stuck)))
            }
        }
    }

    fn expand(
        &mut self,
        number: u32,
        world: &World,
        next: &mut Vec<World>,
    ) -> Result<(), (Complaint, Vec<u16>)> {
        if world.done(&self.rack) {
            self.graph.end(number);
            self.cost.get_or_insert_with(|| world.cost());
            at_end(world, &self.rack).map_err(|why| (why, self.graph.path(number)))?;
        }
        for (nth, step) in world.moves(&self.rack).into_iter().enumerate() {
            let mut successor = world.clone();
            if let Err(complaint) = successor.act(&self.rack, step) {
                let mut way = self.graph.path(number);
                way.push(nth as u16);
                return Err((complaint, way));
            }
            self.seen |= successor.seen;
            let (to, new) = self.visited.insert(successor.fingerprint());
            self.graph.lead(to);
            if new {
                self.graph.discover(number, nth);
                next.push(successor);
            }
        }
        self.graph.close();
        Ok(())
    }

    /// What happens on a way, a line a move.
    fn story(&self, way: &[u16]) -> Vec<String> {
        let mut world = self.first.clone();
        let mut lines = Vec::new();
        for &nth in way {
            let moves: Vec<Move> = world.moves(&self.rack);
            let step = moves[usize::from(nth)];
            lines.push(Line(&world, step).to_string());
            if let Err(complaint) = world.act(&self.rack, step) {
                lines.push(complaint.to_string());
            }
        }
        lines
    }
}
