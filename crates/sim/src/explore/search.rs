//! The search: breadth first, so that the first way to a broken promise is a shortest one.

use super::graph::Graph;
use super::layout::Layout;
use super::moves::Rack;
use super::report::{Ended, Report, Violation};
use super::scenario::Scenario;
use super::state::State;
use super::visited::Visited;
use crate::invariants::liveness;
use std::time::{Duration, Instant};

/// States after which an exploration stops: some 5 GB.
pub const MAX_STATES: usize = 60_000_000;
/// States between two looks at the clock.
const STRIDE: usize = 4096;

/// What ends an exploration before it has visited everything.
pub struct Limits<'a> {
    /// States at most; never more than [`MAX_STATES`].
    pub states: usize,
    /// Time at most.
    pub time: Option<Duration>,
    /// Asked every few thousand states with what there is so far: whether to stop.
    pub stop: &'a mut dyn FnMut(&Progress) -> bool,
}

/// How far an exploration is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// States discovered.
    pub states: usize,
    /// Of these, states whose successors are known.
    pub expanded: usize,
    /// Moves from the first state.
    pub depth: usize,
    /// Time since the beginning.
    pub time: Duration,
}

/// Visits every state of a scenario, as far as the limits allow. `Err` says why the scenario makes no rack.
pub fn explore(scenario: &Scenario, limits: &mut Limits<'_>) -> Result<Report, &'static str> {
    let layout = Layout::new(*scenario)?;
    let (rack, first) = Rack::new(layout);
    let search = Search {
        rack,
        visited: Visited::new(),
        graph: Graph::default(),
        first,
        frontier: Vec::new(),
        next: Vec::new(),
        depth: 0,
        peak: 0,
        began: Instant::now(),
    };
    Ok(search.run(limits))
}

struct Search {
    rack: Rack,
    visited: Visited,
    graph: Graph,
    first: State,
    /// States of this depth and of the next one, as words.
    frontier: Vec<u32>,
    next: Vec<u32>,
    depth: usize,
    /// The longest that both have been together, in words.
    peak: usize,
    began: Instant,
}

impl Search {
    fn run(mut self, limits: &mut Limits<'_>) -> Report {
        self.visited.insert(self.first.fingerprint());
        self.graph.discover(0, 0);
        self.first.encode(&mut self.frontier);
        let violation = self
            .rack
            .broken(&self.first.clone())
            .map(|complaint| Violation::new(complaint, vec!["in the first state".into()]));
        let mut ended = match violation {
            Some(violation) => Ended::Broken(violation),
            None => self.layers(limits),
        };
        if !matches!(ended, Ended::Broken(_))
            && let Some(stuck) = self.graph.stuck()
        {
            ended = Ended::Broken(self.stuck(stuck));
        }
        self.report(ended)
    }

    /// One depth after the other.
    fn layers(&mut self, limits: &mut Limits<'_>) -> Ended {
        while !self.frontier.is_empty() {
            if let Some(ended) = self.layer(limits) {
                return ended;
            }
            self.frontier.clear();
            std::mem::swap(&mut self.frontier, &mut self.next);
            self.depth += usize::from(!self.frontier.is_empty());
        }
        Ended::Whole
    }

    fn layer(&mut self, limits: &mut Limits<'_>) -> Option<Ended> {
        let frontier = std::mem::take(&mut self.frontier);
        let (mut state, mut successors) = (State::default(), Vec::new());
        let (mut at, mut ended) = (0, None);
        while at < frontier.len() && ended.is_none() {
            at += state.decode(&frontier[at..]);
            ended = self.expand(&state, &mut successors);
            if ended.is_none() && self.graph.closed().is_multiple_of(STRIDE) {
                ended = self.look_up(limits);
            }
        }
        self.peak = self.peak.max(frontier.len() + self.next.len());
        self.frontier = frontier;
        ended
    }

    /// Whether it is time to stop.
    fn look_up(&self, limits: &mut Limits<'_>) -> Option<Ended> {
        let progress = Progress {
            states: self.visited.len(),
            expanded: self.graph.closed(),
            depth: self.depth,
            time: self.began.elapsed(),
        };
        if (limits.stop)(&progress) {
            return Some(Ended::Stopped);
        }
        let full = progress.states >= limits.states.min(MAX_STATES);
        let late = limits.time.is_some_and(|time| progress.time >= time);
        (full || late).then_some(Ended::Limit)
    }

    fn expand(
        &mut self,
        state: &State,
        successors: &mut Vec<(super::moves::Move, State)>,
    ) -> Option<Ended> {
        let number = self.graph.closed() as u32;
        if let Err((action, complaint)) = self.rack.successors(state, successors) {
            let path = self.graph.path(number);
            let (mut story, _) = self.rack.story(&self.first, &path);
            story.extend(self.rack.tell(&action));
            return Some(Ended::Broken(Violation::new(complaint, story)));
        }
        for (nth, (_, next)) in successors.iter().enumerate() {
            let (to, new) = self.visited.insert(next.fingerprint());
            self.graph.lead(to);
            if !new {
                continue;
            }
            self.graph.discover(number, nth);
            next.encode(&mut self.next);
            if let Some(complaint) = self.rack.broken(next) {
                let path = self.graph.path(to);
                let (story, _) = self.rack.story(&self.first, &path);
                return Some(Ended::Broken(Violation::new(complaint, story)));
            }
        }
        if self.rack.done(state) {
            self.graph.end(number);
        }
        self.graph.close();
        None
    }

    /// A state from which nothing leads to the end of every operation.
    fn stuck(&mut self, state: u32) -> Violation {
        let path = self.graph.path(state);
        let (story, state) = self.rack.story(&self.first, &path);
        let still = self.rack.unfinished(&state);
        let detail = format!("nothing that can happen ends every operation: {still}");
        Violation::new((liveness::NAME, liveness::SECTION, detail), story)
    }

    fn report(self, ended: Ended) -> Report {
        let (parts, packets, steps) = self.rack.parts.counts();
        let scenario = &self.rack.layout.scenario;
        let seen = self.rack.seen;
        let missing = scenario.sometimes.iter().copied();
        let missing = missing.filter(|witness| !seen.has(*witness));
        Report {
            states: self.visited.len(),
            expanded: self.graph.closed(),
            transitions: self.graph.transitions(),
            depth: self.depth,
            ends: self.graph.ended(),
            parts,
            packets,
            steps,
            bytes: self.visited.bytes() + self.graph.bytes() + self.peak * size_of::<u32>(),
            time: self.began.elapsed(),
            seen: seen.iter().collect(),
            missing: missing.collect(),
            ended,
        }
    }
}
