//! The stores of this node's durable copies: where each is, what writes it, and what has become of
//! it. When one is opened, and what its thread calls, is in [`super::keeping`].

use crate::config::disks::Disks;
use crate::ports::requester::Requesters;
use rackmem_fabric::{Port, Whole};
use rackmem_journal::{Committer, Folder, StoreError};
use rackmem_proto::abd::journal::Entry;
use rackmem_proto::abd::{Config, Stamp};
use rackmem_proto::wire::{Header, NodeId, Own};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

/// What a record is known by when it is durable.
pub(super) enum Ticket {
    /// A line, by any of the packets that brought it.
    Line(Header, Own, Box<[u8]>),
    /// A config, for which a thread waits.
    Config(Sender<()>),
}

/// A copy: of a group's region, which began with this config, as this life of its member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Name {
    pub group: u16,
    pub first: u32,
    pub life: u64,
}

impl Name {
    /// The number of its store, at this node: no other copy of this group has it.
    pub fn number(self, node: NodeId) -> u64 {
        // Lives are incarnations, of which a node has 65,535.
        u64::from(self.first) << 32 | u64::from(node) << 24 | self.life & 0xff_ffff
    }

    /// From the name of its folder.
    fn parse(text: &str) -> Option<Name> {
        let mut parts = text.strip_prefix("group-")?.split('-');
        let name = Name {
            group: parts.next()?.parse().ok()?,
            first: parts.next()?.parse().ok()?,
            life: parts.next()?.parse().ok()?,
        };
        (parts.next().is_none() && name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group-{}-{}-{}", self.group, self.first, self.life)
    }
}

/// What a durable copy's store is.
#[derive(Clone)]
pub(super) enum State {
    /// Written by this.
    Open(Arc<Committer<Ticket>>),
    /// It could not be opened, or a write or sync has failed: the copy does not count any more.
    Ended(Arc<StoreError>),
    /// It is gone, or the machine has started since: the copy has forgotten what it promised.
    Missing,
}

struct Row {
    name: Name,
    state: State,
    since: Instant,
    /// The highest config that is written down.
    config: u32,
}

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    closed: bool,
}

/// How a copy is kept.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{CopyStore, Rack, RegionSpec};
///
/// let rack = Rack::local(3)?;
/// rack.node(0).create_region(&RegionSpec::new("log", 640).copies(3))?;
/// let store: Option<CopyStore> = rack.node(0).groups()[0].copies[0].store;
/// assert_eq!(store, Some(CopyStore::Memory));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyStore {
    /// In memory.
    Memory,
    /// In a journal of so many bytes, beside a checkpoint.
    Journal(u64),
    /// Its store could not be opened, or a write or sync of it has failed: the copy answers
    /// nothing.
    Ended,
    /// Its store is gone: the copy has forgotten, and answers nothing until it is replaced.
    Missing,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Stores {
    /// Where this node's stores are; none: it keeps no durable copies.
    pub(super) folder: Option<PathBuf>,
    pub(super) disks: Disks,
    table: Mutex<Table>,
    requesters: OnceLock<Weak<Requesters>>,
}

impl Stores {
    /// In this folder, of this node alone.
    pub fn new(folder: Option<PathBuf>, disks: Disks) -> Self {
        Stores {
            folder,
            disks,
            ..Stores::default()
        }
    }

    /// Whether this node can keep durable copies.
    pub fn has_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Why copies that this node creates cannot be in persistent memory, if they cannot. Of other
    /// nodes, each says so itself ([`Stores::ended`]).
    pub fn is_not_persistent(&self) -> Option<StoreError> {
        let folder = self.folder.as_ref().filter(|_| self.disks.0.is_none())?;
        super::keeping::is_not_persistent(folder)
    }

    /// Whoever has ports for what the stores' threads send.
    pub fn plug(&self, requesters: &Arc<Requesters>) {
        let _ = self.requesters.set(Arc::downgrade(requesters));
    }

    pub(super) fn port(&self) -> std::io::Result<Box<dyn Port>> {
        let requesters = self.requesters.get().and_then(Weak::upgrade);
        let none = || std::io::Error::other("the node has no ports yet");
        requesters.ok_or_else(none)?.open_port()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().whole()
    }

    /// What has become of a copy; none: nothing has been tried yet.
    pub(super) fn state(&self, name: Name) -> Option<State> {
        let table = self.table();
        if table.closed {
            return Some(State::Missing);
        }
        let row = table.rows.iter().find(|row| row.name == name);
        row.map(|row| row.state.clone())
    }

    pub(super) fn set(&self, name: Name, state: State) {
        let mut table = self.table();
        let before = table.rows.iter().position(|row| row.name == name);
        let before = before.map(|at| table.rows.swap_remove(at));
        table.rows.push(Row {
            name,
            state,
            since: Instant::now(),
            config: before.as_ref().map_or(0, |row| row.config),
        });
        drop(table);
        // A committer that nothing needs any more ends without this table's lock.
        drop(before);
    }

    /// Writes down which config the copy lives by from here on, if that is a later one. Returns
    /// when it is durable: whether it is.
    pub(super) fn lives_by(&self, name: Name, config: u32) -> bool {
        let committer = {
            let table = self.table();
            match table.rows.iter().find(|row| row.name == name) {
                Some(row) if row.config >= config => return matches!(row.state, State::Open(_)),
                Some(Row {
                    state: State::Open(committer),
                    ..
                }) => committer.clone(),
                _ => return false,
            }
        };
        let (told, hears) = channel();
        let put = committer.put(&Entry::Config(config), Ticket::Config(told));
        // Without an answer its sender is gone, with a store that has ended.
        let durable = put.is_ok() && hears.recv().is_ok();
        if durable && let Some(row) = self.table().rows.iter_mut().find(|row| row.name == name) {
            row.config = row.config.max(config);
        }
        durable
    }

    /// What writes the copy of a group.
    fn writer(&self, group: u16) -> Option<Arc<Committer<Ticket>>> {
        let table = self.table();
        let mut rows = table.rows.iter().filter(|row| row.name.group == group);
        rows.find_map(|row| match &row.state {
            State::Open(committer) => Some(committer.clone()),
            _ => None,
        })
    }

    /// A line on its way to the store of its group's copy.
    pub(super) fn put(&self, line: Box<[u8]>, header: Header, own: Own) {
        let committer = self.writer(header.tag.home().0);
        let (tag, stamp) = (header.tag, Stamp(own.a));
        let bytes = &line.clone();
        let entry = Entry::Line { tag, stamp, bytes };
        // One that has ended acknowledges nothing.
        let _ = committer.map(|committer| committer.put(&entry, Ticket::Line(header, own, line)));
    }

    /// This node keeps no other copy of this group but that of a name, if any: their stores are
    /// closed, and once all members count, so that nothing has to come from them, removed.
    pub(super) fn leave(&self, (group, rack): (u16, u64), now: Option<Name>, config: &Config) {
        let mut left = Vec::new();
        let mut table = self.table();
        table.rows.retain(|row| {
            let stays = row.name.group != group || Some(row.name) == now;
            if let (false, State::Open(committer)) = (stays, &row.state) {
                left.push(committer.clone());
            }
            stays
        });
        drop(table);
        left.iter().for_each(|committer| committer.close());
        let last = Name {
            group,
            first: config.first,
            life: now.map_or(u64::MAX, |now| now.life),
        };
        if let Some(folder) = self.folder.as_ref().filter(|_| config.filling().is_none()) {
            remove_before(folder, rack, last);
        }
    }

    /// How the copy of a group is kept; none where none is, or in memory.
    pub(super) fn status(&self, group: u16) -> Option<CopyStore> {
        let table = self.table();
        let row = table.rows.iter().find(|row| row.name.group == group)?;
        Some(match &row.state {
            State::Open(committer) => CopyStore::Journal(committer.written().bytes),
            State::Ended(_) => CopyStore::Ended,
            State::Missing => CopyStore::Missing,
        })
    }

    /// Copies whose stores have ended, and why.
    pub fn ended(&self) -> Vec<(u16, Arc<StoreError>)> {
        let table = self.table();
        let ended = table.rows.iter().filter_map(|row| match &row.state {
            State::Ended(why) => Some((row.name.group, why.clone())),
            _ => None,
        });
        ended.collect()
    }

    /// Groups whose copies have forgotten what they had as this life, for so long.
    pub fn missing(&self, after: Duration) -> Vec<(u16, u64)> {
        let table = self.table();
        let long = |row: &&Row| matches!(row.state, State::Missing) && row.since.elapsed() >= after;
        let rows = table.rows.iter().filter(long);
        rows.map(|row| (row.name.group, row.name.life)).collect()
    }

    /// Writes what waits, and ends.
    pub fn close(&self) {
        let rows = {
            let mut table = self.table();
            table.closed = true;
            std::mem::take(&mut table.rows)
        };
        for row in rows {
            if let State::Open(committer) = row.state {
                committer.close();
            }
        }
    }
}

/// Removes the stores of this rack's copies that were there before that of a name.
fn remove_before(folder: &Path, rack: u64, last: Name) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = Name::parse(&entry.file_name().to_string_lossy());
        let old = name.is_some_and(|name| name.group == last.group && name < last);
        let ours = || Folder::identity(&entry.path()).is_some_and(|found| found.rack == rack);
        if old && ours() {
            // What stays is removed the next time.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_its_copy() {
        let name = Name {
            group: 7,
            first: 3,
            life: 12,
        };
        assert_eq!(name.to_string(), "group-7-3-12");
        assert_eq!(Name::parse("group-7-3-12"), Some(name));
        for wrong in ["group-7-3", "group-7-3-12-1", "group-07-3-12", "lock", ""] {
            assert_eq!(Name::parse(wrong), None, "{wrong}");
        }
        let next = Name { first: 4, ..name };
        assert!(name < next && name.number(1) != next.number(1));
        assert_ne!(name.number(1), name.number(2));
    }
}
