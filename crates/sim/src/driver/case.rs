//! Scenarios of any protocol, as a command line lists them and runs them.

use super::report::Report;
use super::search::Limits;

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

    /// Visits its states. `defect` is one of its [`Suite`]'s. `Err` says why the scenario makes no rack.
    fn explore(
        &self,
        deep: bool,
        defect: Option<&str>,
        limits: &mut Limits<'_>,
    ) -> Result<Report, &'static str>;
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
