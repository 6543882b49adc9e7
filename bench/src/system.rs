//! What is measured: the rack's own protocols, and the baselines that Concordia is compared with
//! (§7.1).

use crate::delegated;
use rackmem::{Builder, Config, Mode, Rack};
use rackmem_baselines::gather;

/// What keeps memory coherent, or does without caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum System {
    /// FlowCC, the switch owning the entries that it has room for.
    Switch,
    /// FlowCC without a switch (the paper's Concordia-base).
    HomeOnly,
    /// A classic directory: homes gather acknowledgements (GAM-style).
    Directory,
    /// No caches: operations travel to the data (Grappa-style). Its words are not the rack's
    /// memory: see [`delegated`].
    Delegate,
}

/// Bytes of words that the guest of a node has for [`System::Delegate`].
pub const DELEGATED: usize = 16 << 20;

impl System {
    /// All of them, with the names used in commands and reports.
    pub const ALL: [(System, &'static str); 4] = [
        (System::Switch, "switch"),
        (System::HomeOnly, "home-only"),
        (System::Directory, "directory"),
        (System::Delegate, "delegate"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|row| row.0 == self);
        row.map_or("", |row| row.1)
    }

    /// The rack's part in it.
    pub fn mode(self) -> Mode {
        match self {
            System::Switch => Mode::Switch,
            System::HomeOnly | System::Directory | System::Delegate => Mode::HomeOnly,
        }
    }

    /// Begins a rack of so many nodes in this process.
    pub fn builder(self, nodes: usize) -> Builder {
        let rack = Rack::builder(nodes).mode(self.mode());
        match self {
            System::Switch | System::HomeOnly => rack,
            System::Directory => rack.answering(gather::answering),
            System::Delegate => rack.guests(delegated::guests(DELEGATED)),
        }
    }

    /// For a node of a rack of processes: what its file cannot say.
    pub fn configure(self, config: Config) -> Config {
        match self {
            System::Directory => config.answering(gather::answering),
            _ => config,
        }
    }
}
