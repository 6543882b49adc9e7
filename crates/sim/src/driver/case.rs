//! Scenarios of any protocol, as a command line lists them and runs them.

use super::report::Report;
use super::search::{Limits, explore};
use super::system::System;

/// How often something may happen in one run that need not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Its key in an object.
    pub key: &'static str,
    /// In words, behind a number.
    pub words: &'static str,
    /// How often at most.
    pub count: usize,
}

/// What a scenario is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Its name: stable, lower case.
    pub name: &'static str,
    /// What it is for.
    pub shows: &'static str,
    /// Who owns directory entries.
    pub rack: String,
    /// Nodes.
    pub nodes: usize,
    /// Blocks of coherent memory.
    pub blocks: usize,
    /// Locks.
    pub locks: usize,
    /// Threads.
    pub threads: usize,
    /// What may go wrong.
    pub budget: Vec<Allowance>,
    /// How many things must have been come across somewhere.
    pub sometimes: usize,
}

/// A scenario.
pub trait Case: Sync {
    /// What it is, `deep`: with more that goes wrong.
    fn about(&self, deep: bool) -> About;

    /// Visits its states. `defect` is one of its [`Suite`]'s. `Err` says why the scenario makes no
    /// rack.
    fn explore(
        &self,
        deep: bool,
        defect: Option<&str>,
        limits: &mut Limits<'_>,
    ) -> Result<Report, &'static str>;
}

/// A scenario that makes a system, all of whose states are visited: a [`Case`] by that.
pub trait Explored: Sync {
    /// What it makes.
    type System: System;
    /// A defect that can be put in.
    type Defect: Copy;
    /// States at most, whatever the limits allow.
    const STATES: usize = usize::MAX;

    /// See [`Case::about`].
    fn about(&self, deep: bool) -> About;

    /// All defects by their names.
    fn defects() -> impl Iterator<Item = (String, Self::Defect)>;

    /// Makes it. `Err` says why the scenario makes no rack.
    fn system(
        &self,
        deep: bool,
        defect: Option<Self::Defect>,
    ) -> Result<Self::System, &'static str>;
}

impl<E: Explored> Case for E {
    fn about(&self, deep: bool) -> About {
        Explored::about(self, deep)
    }

    fn explore(
        &self,
        deep: bool,
        defect: Option<&str>,
        limits: &mut Limits<'_>,
    ) -> Result<Report, &'static str> {
        let found = E::defects().find(|(name, _)| Some(name.as_str()) == defect);
        let mut system = self.system(deep, found.map(|(_, defect)| defect))?;
        let mut limits = Limits {
            states: limits.states.min(E::STATES),
            time: limits.time,
            stop: &mut *limits.stop,
        };
        Ok(explore(&mut system, &mut limits))
    }
}

/// The scenarios of one protocol, or of several together.
pub struct Suite {
    /// Its name: stable, lower case.
    pub name: &'static str,
    /// All scenarios.
    pub scenarios: fn() -> Vec<&'static dyn Case>,
    /// The names of the defects that can be put in.
    pub defects: fn() -> Vec<String>,
}
