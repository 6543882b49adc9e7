//! What must be true of every block after everything that happens, one file an invariant.
//! Seeded worlds and the explorer check the same ones.

pub mod data_value;
pub mod directory_covers_caches;
pub mod home_is_current;
pub mod liveness;
pub mod locks_of_live_events;
pub mod no_starvation;
pub mod nothing_of_the_dead;
pub mod one_owner;
pub mod single_writer;

use crate::site::Client;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::{Copyset, GlobalStatus, NodeId, Tag};

/// A coherence event that may hold its entry's lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LiveEvent {
    /// Whose.
    pub node: NodeId,
    /// On which block.
    pub tag: Tag,
    /// Whether it takes the lock as a reader.
    pub shared: bool,
}

impl LiveEvent {
    /// Those of a thread.
    pub fn of<B>(client: &Client<B>) -> impl Iterator<Item = LiveEvent> {
        let (node, requester) = (client.engine.id().node, &client.engine);
        let event = client.event.and_then(|event| event.lock());
        let tail = requester.tail().map(|tag| (tag, true));
        let live = event.into_iter().chain(tail).chain(requester.unlocking());
        live.map(move |(tag, shared)| LiveEvent { node, tag, shared })
    }
}

/// A node's valid copy of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    /// Whose.
    pub node: NodeId,
    /// What it may do with it.
    pub status: LocalStatus,
    /// Whether it holds what was written last.
    pub current: bool,
}

/// Everything there is to know about a block at one instant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockState {
    /// The lock word at the entry's owner.
    pub lock: u16,
    /// The entry's status.
    pub status: GlobalStatus,
    /// The entry's copyset.
    pub copyset: Copyset,
    /// Who serves the entry.
    pub owners: Owners,
    /// The valid copies.
    pub copies: Vec<Copy>,
    /// The events that may hold the lock.
    pub events: Vec<LiveEvent>,
    /// Whether home's memory holds what was written last.
    pub home_current: bool,
    /// Whether its last content has died with a node, and everyone is told so.
    pub lost: bool,
}

/// Who serves an entry's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Owners {
    /// Its home agent.
    pub home: bool,
    /// The switch.
    pub switch: bool,
    /// It is on its way between them.
    pub moving: bool,
}

/// The writer's bit of a lock word; the others count readers.
const WRITER: u16 = 1 << 15;

impl BlockState {
    /// Readers that hold the lock.
    fn readers(&self) -> u16 {
        self.lock & !WRITER
    }

    /// Whether a writer holds the lock.
    fn write_locked(&self) -> bool {
        self.lock & WRITER != 0
    }
}

/// An invariant of a block.
pub struct Invariant {
    /// Its name, which is its file's.
    pub name: &'static str,
    /// Where the paper promises it.
    pub section: &'static str,
    /// Whether it holds while the rack goes from one epoch to the next, too.
    pub always: bool,
    /// What is wrong with a block, if anything is.
    pub broken: fn(&BlockState) -> Option<String>,
}

/// All of them, the most telling first.
pub const INVARIANTS: [Invariant; 6] = [
    one_owner::INVARIANT,
    single_writer::INVARIANT,
    data_value::INVARIANT,
    directory_covers_caches::INVARIANT,
    home_is_current::INVARIANT,
    locks_of_live_events::INVARIANT,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> BlockState {
        BlockState {
            lock: 0,
            status: GlobalStatus::Shared,
            copyset: Copyset(0b11),
            owners: Owners {
                home: true,
                ..Owners::default()
            },
            copies: [0, 1]
                .map(|node| Copy {
                    node,
                    status: LocalStatus::Shared,
                    current: true,
                })
                .to_vec(),
            events: Vec::new(),
            home_current: true,
            lost: false,
        }
    }

    fn broken(change: impl FnOnce(&mut BlockState)) -> Vec<&'static str> {
        let mut state = sound();
        change(&mut state);
        INVARIANTS
            .iter()
            .filter(|invariant| (invariant.broken)(&state).is_some())
            .map(|invariant| invariant.name)
            .collect()
    }

    #[test]
    fn a_sound_block_breaks_nothing() {
        assert!(broken(|_| ()).is_empty());
    }

    #[test]
    fn every_invariant_notices_its_own() {
        let writer = |state: &mut BlockState| state.copies[0].status = LocalStatus::Modified;
        assert!(broken(writer).contains(&"single writer"));
        assert_eq!(broken(|s| s.copies[1].current = false), ["data value"]);
        assert_eq!(
            broken(|s| s.copyset = Copyset(1)),
            ["directory covers caches"]
        );
        assert_eq!(broken(|s| s.home_current = false), ["home is current"]);
        assert_eq!(broken(|s| s.owners.switch = true), ["one owner"]);
        assert_eq!(broken(|s| s.owners.home = false), ["one owner"]);
        assert_eq!(broken(|s| s.lock = 1), ["locks of live events"]);
        assert_eq!(broken(|s| s.lock = WRITER), ["locks of live events"]);
    }
}
