//! The search: breadth first, so that the first way to a broken promise is a shortest one.

use super::graph::Graph;
use super::report::{Ended, Report, Violation};
use super::system::System;
use super::visited::Visited;
use super::waiting::Waiting;
use std::time::{Duration, Instant};

/// States after which an exploration stops: some 5 GB where a waiting state takes a few words.
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

/// Visits every state of a system, as far as the limits allow.
pub fn explore<S: System>(system: &mut S, limits: &mut Limits<'_>) -> Report {
    let first = system.first();
    let search = Search {
        system,
        visited: Visited::new(),
        graph: Graph::default(),
        first,
        frontier: Vec::new(),
        next: Vec::new(),
        depth: 0,
        peak: 0,
        began: Instant::now(),
    };
    search.run(limits)
}

/// What states of a system wait as.
type Word<S> = <<S as System>::State as Waiting>::Word;

struct Search<'a, S: System> {
    system: &'a mut S,
    visited: Visited,
    graph: Graph,
    first: S::State,
    /// States of this depth and of the next one, as words.
    frontier: Vec<Word<S>>,
    next: Vec<Word<S>>,
    depth: usize,
    /// The longest that both have been together, in words.
    peak: usize,
    began: Instant,
}

impl<S: System> Search<'_, S> {
    fn run(mut self, limits: &mut Limits<'_>) -> Report {
        self.visited.insert(self.first.fingerprint());
        self.graph.discover(0, 0);
        self.first.clone().pack(&mut self.frontier);
        let violation = self
            .system
            .broken(&self.first)
            .map(|complaint| Violation::new(complaint, vec!["in the first state".into()]));
        let mut ended = match violation {
            Some(violation) => Ended::Broken(violation),
            None => self.layers(limits),
        };
        if !matches!(ended, Ended::Broken(_))
            && let Some(stuck) = self.graph.stuck()
        {
            let (story, state) = self.story(stuck);
            ended = Ended::Broken(Violation::new(self.system.stuck(&state), story));
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
        let (mut scratch, mut successors) = (self.first.clone(), Vec::new());
        let (mut at, mut ended) = (0, None);
        while at < frontier.len() && ended.is_none() {
            let (state, words) = S::State::unpack(&frontier[at..], &mut scratch);
            at += words;
            ended = self.expand(state, &mut successors);
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
        state: &S::State,
        successors: &mut Vec<(S::Move, S::State)>,
    ) -> Option<Ended> {
        let number = self.graph.closed() as u32;
        if let Err((action, complaint)) = self.system.successors(state, successors) {
            let (mut story, _) = self.story(number);
            story.extend(self.system.tell(state, &action));
            return Some(Ended::Broken(Violation::new(complaint, story)));
        }
        for (nth, (_, next)) in successors.drain(..).enumerate() {
            let (to, new) = self.visited.insert(next.fingerprint());
            self.graph.lead(to);
            if !new {
                continue;
            }
            self.graph.discover(number, nth);
            if let Some(complaint) = self.system.broken(&next) {
                let (story, _) = self.story(to);
                return Some(Ended::Broken(Violation::new(complaint, story)));
            }
            next.pack(&mut self.next);
        }
        if self.system.done(state) {
            self.graph.end(number);
        }
        self.graph.close();
        None
    }

    /// The lines of the first way to a state, and that state.
    fn story(&mut self, number: u32) -> (Vec<String>, S::State) {
        let mut lines = Vec::new();
        let mut state = self.first.clone();
        let mut successors = Vec::new();
        for nth in self.graph.path(number) {
            // A move that breaks a promise is never a part of a way: it ends the exploration.
            let _ = self.system.successors(&state, &mut successors);
            let nth = usize::from(nth);
            if nth >= successors.len() {
                break;
            }
            let (action, next) = successors.swap_remove(nth);
            lines.extend(self.system.tell(&state, &action));
            state = next;
        }
        (lines, state)
    }

    fn report(self, ended: Ended) -> Report {
        let [seen, missing] = self.system.seen();
        Report {
            states: self.visited.len(),
            expanded: self.graph.closed(),
            transitions: self.graph.transitions(),
            depth: self.depth,
            ends: self.graph.ended(),
            figures: self.system.figures(),
            bytes: self.visited.bytes() + self.graph.bytes() + self.peak * size_of::<Word<S>>(),
            time: self.began.elapsed(),
            seen,
            missing,
            ended,
        }
    }
}
