//! What came of an exploration.

use super::system::Complaint;
use std::fmt::{self, Display};
use std::time::Duration;

/// A promise that some run breaks, and a shortest such run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The invariant's name.
    pub invariant: &'static str,
    /// Where the paper promises it.
    pub section: &'static str,
    /// What was seen.
    pub detail: String,
    /// What happened, in order.
    pub story: Vec<String>,
}

impl Violation {
    pub(super) fn new((invariant, section, detail): Complaint, story: Vec<String>) -> Self {
        Violation {
            invariant,
            section,
            detail,
            story,
        }
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            invariant,
            section,
            detail,
            story,
        } = self;
        writeln!(f, "{invariant} ({section}) broken: {detail}")?;
        story.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Why an exploration ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Every state was visited.
    Whole,
    /// Seeded worlds were run, all that there were to be.
    Seeds,
    /// A limit of states or time was reached.
    Limit,
    /// It was told to stop.
    Stopped,
    /// A promise was broken.
    Broken(Violation),
}

/// What was visited, and what was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// States.
    pub states: usize,
    /// Of these, states all of whose successors were visited.
    pub expanded: usize,
    /// Transitions between them.
    pub transitions: usize,
    /// Moves on the longest of the shortest ways to a state.
    pub depth: usize,
    /// States in which everything has ended.
    pub ends: usize,
    /// The system's own figures.
    pub figures: Vec<(&'static str, u64)>,
    /// Bytes of the states and the graph at their largest.
    pub bytes: usize,
    /// How long it took.
    pub time: Duration,
    /// What was seen.
    pub seen: Vec<String>,
    /// What should have been, and was not.
    pub missing: Vec<String>,
    /// Why it ended.
    pub ended: Ended,
}

impl Report {
    /// The broken promise, if one is.
    pub fn violation(&self) -> Option<&Violation> {
        match &self.ended {
            Ended::Broken(violation) => Some(violation),
            _ => None,
        }
    }

    /// Whether nothing was broken, and everything seen that should be if every state was visited.
    pub fn passed(&self) -> bool {
        match self.ended {
            Ended::Whole | Ended::Seeds => self.missing.is_empty(),
            Ended::Limit | Ended::Stopped => true,
            Ended::Broken(_) => false,
        }
    }

    /// One of the system's own figures, 0 if it has none of this name.
    pub fn figure(&self, name: &str) -> u64 {
        let found = self.figures.iter().find(|figure| figure.0 == name);
        found.map_or(0, |figure| figure.1)
    }

    /// States visited in a second.
    pub fn speed(&self) -> f64 {
        self.states as f64 / self.time.as_secs_f64().max(1e-9)
    }
}
