//! The golden cases, as a table of scenarios a reader can follow;
//! the Rust program fills in what comes out of each.

mod build;
mod contradictions;
mod fences;
mod kinds;
mod lock;
mod lock_directory;
mod migration;
mod owner;
mod ports;
mod provider;
mod score;
mod tables;
mod unlock;

use crate::Case;
use build::Scenario;

/// A file of golden packets.
pub struct Topic {
    /// Its name, without `.txt`.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    scenarios: fn() -> Vec<Scenario>,
}

impl Topic {
    /// Its cases, with the outputs of the Rust program.
    pub fn cases(&self) -> Vec<Case> {
        (self.scenarios)().into_iter().map(Scenario::case).collect()
    }
}

/// Every file, in the order in which a reader may want them.
pub const TOPICS: &[Topic] = &[
    Topic {
        name: "kinds",
        about: "Every kind of packet, and who takes it; malformed packets",
        scenarios: kinds::all,
    },
    Topic {
        name: "check",
        about: "Table 2: requests that the check table refuses",
        scenarios: tables::refused,
    },
    Topic {
        name: "forward",
        about: "Table 3: where valid requests go, by status and copyset",
        scenarios: tables::forwarded,
    },
    Topic {
        name: "provider",
        about: "Which member of a copyset provides the data",
        scenarios: provider::all,
    },
    Topic {
        name: "lock",
        about: "Readers and writers of an entry's lock word",
        scenarios: lock::all,
    },
    Topic {
        name: "score",
        about: "Requests that come twice, late or in another order",
        scenarios: score::all,
    },
    Topic {
        name: "unlock",
        about: "The end of an event: what is installed, once, by whom",
        scenarios: unlock::all,
    },
    Topic {
        name: "owner",
        about: "Requests for entries that the switch does not own, or no longer, or not yet",
        scenarios: owner::all,
    },
    Topic {
        name: "migration",
        about: "Entries that move to the switch and back",
        scenarios: migration::all,
    },
    Topic {
        name: "lock-directory",
        about: "GCP's directory of locks: its table, versions, the next holder, and locks that come to the switch",
        scenarios: lock_directory::all,
    },
    Topic {
        name: "ports",
        about: "Multicasts to several nodes behind one port, and in a rack of 32 nodes",
        scenarios: ports::all,
    },
    Topic {
        name: "fences",
        about: "Other epochs, a frozen switch, and hosts that the rack does not have",
        scenarios: fences::all,
    },
    Topic {
        name: "contradictions",
        about: "Packets that contradict each other: nobody sends them, and every form does the same with them",
        scenarios: contradictions::all,
    },
];

/// Every golden case, named `topic/case`.
pub fn golden() -> Vec<Case> {
    let named = |topic: &'static Topic| {
        let cases = topic.cases().into_iter();
        cases.map(|case| Case {
            name: format!("{}/{}", topic.name, case.name),
            ..case
        })
    };
    TOPICS.iter().flat_map(named).collect()
}
