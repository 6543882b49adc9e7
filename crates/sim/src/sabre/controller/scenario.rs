//! A controller, an object, sources and writers.

use crate::names::kebab;
use rackmem_proto::sabre::controller::{Defect, Design};

/// What is wrong on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// A rule of the controller.
    Controller(Defect),
    /// A writer's version becomes even before its last block is visible: not TSO.
    StoresOutOfOrder,
    /// Registrations that wait hold up the requests of all other sources.
    OneQueue,
}

impl Fault {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Fault> {
        let rules = Defect::ALL.iter().map(|rule| Fault::Controller(*rule));
        rules.chain([Fault::StoresOutOfOrder, Fault::OneQueue])
    }

    /// As on a command line.
    pub fn name(self) -> String {
        match self {
            Fault::Controller(rule) => kebab(rule),
            fault => kebab(fault),
        }
    }
}

/// A small chip.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// The controller.
    pub design: Design,
    /// Blocks of the object.
    pub blocks: u16,
    /// How many of them lie on consecutive pages.
    pub piece: u16,
    /// SABRes of each source, one after the other.
    pub sources: &'static [u8],
    /// Whether all requests of a SABRe come at once.
    pub at_once: bool,
    /// Writes of each writer.
    pub writers: &'static [u8],
    /// Blocks that are evicted.
    pub evictions: u8,
    /// States that there are.
    pub states: usize,
}
