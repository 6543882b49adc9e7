//! Durable copies of this node: opened when it hears that it keeps one, and written by a thread.
//!
//! | this node is named as | and its store | so |
//! |---|---|---|
//! | the life that it has now | is not there | the copy is new, and has promised nothing: an empty store |
//! | any life | is there | the copy is what the store has, and counts as before |
//! | an earlier life | is not there, or was in the page cache of a machine that has started since | the copy has forgotten: it is replaced, by this node's present life |
//! | any life | is another rack's, damaged, full or cannot be read | the copy answers nothing, and says why |
//!
//! A folder that a person empties while a node is down is the third row: it never counts as new.

use super::persistent::{PersistentFolder, Processor};
use super::stores::{Name, State, Ticket};
use crate::config::disks::Medium;
use crate::host::agents::Agents;
use crate::host::here::Here;
use crate::membership::Group;
use rackmem_fabric::{Body, Nobody, Port};
use rackmem_journal::{Committer, Folder, Limits, Member, Store, StoreError, Wanted};
use rackmem_proto::abd::journal::Identity;
use rackmem_proto::abd::{Durability, Stamp, first_line};
use rackmem_proto::engine::ReplicatedHost;
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Lines that are acknowledged, or copied for a checkpoint, in one section.
const PAGE: usize = 64;
/// In a store that is in the page cache: since which start of the machine.
const BOOT: &str = "boot";
/// A folder without a store, to see what files are there.
const PROBE: &str = "probe";

impl Agents {
    /// As which life this node keeps a durable copy of a group from here on: its store is open, and
    /// the config is written down. None: it keeps none.
    pub(super) fn keeps_durably(
        self: &Arc<Self>,
        (number, group): (u16, &Group),
        rack: u64,
    ) -> Option<u64> {
        let (config, stores) = (&group.config, &self.replicas.stores);
        let place = config.place(self.replicas.me);
        let life = place
            .and_then(|place| config.members[place])
            .map(|m| m.life);
        let name = life.map(|life| Name {
            group: number,
            first: config.first,
            life,
        });
        stores.leave((number, rack), name, config);
        let name = name?;
        if stores.state(name).is_none() {
            let state = match self.open_copy(name, group, rack) {
                Ok(state) => state,
                Err(why) => State::Ended(Arc::new(why)),
            };
            stores.set(name, state);
        }
        stores.lives_by(name, config.number).then_some(name.life)
    }

    fn open_copy(
        self: &Arc<Self>,
        name: Name,
        group: &Group,
        rack: u64,
    ) -> Result<State, StoreError> {
        let folder = self.replicas.stores.folder.as_ref();
        let path = folder.ok_or(StoreError::NoFolder)?.join(name.to_string());
        let is_new = name.life == self.replicas.life;
        let disk = match &self.replicas.stores.disks.0 {
            Some(make) => Some(make(self.replicas.me))
                .filter(|(_, remembers)| is_new || *remembers)
                .map(|(disk, _)| disk),
            None => medium(&path, group.durability, is_new)?,
        };
        let Some(disk) = disk else {
            return Ok(State::Missing);
        };
        let wanted = Wanted {
            rack,
            group: name.group,
            layout: group.layout,
            fresh: name.number(self.replicas.me),
        };
        let mut lines = BTreeMap::new();
        let apply = |tag: Tag, bytes: &[u8]| {
            lines.insert(tag, Box::from(bytes));
        };
        let (store, restored) = Store::open(disk, &wanted, Limits::default(), apply)?;
        if restored.life != wanted.fresh {
            // Another copy's folder, under this one's name.
            return Err(StoreError::Other {
                file: path.display().to_string(),
                found: Identity {
                    rack,
                    group: name.group,
                    layout: group.layout,
                    store: restored.life,
                },
            });
        }
        let port = self.replicas.stores.port();
        let port = port.map_err(|cause| failed("get a port for it", &path, cause))?;
        let agents = self.clone();
        let keeper = Keeper { agents, name, port };
        let committer = Committer::start(store, keeper);
        let committer = committer.map_err(|cause| failed("start its thread", &path, cause))?;
        let memory = &mut self.replicas.part().memory;
        memory.lines.lay_out(name.group, group.layout);
        memory.lines.restore(name.group, lines);
        // Requests of a removed region whose number this one has are no requests for it.
        let mut replica = restored.replay.replica();
        replica.lives_by(name.first);
        memory.abd.keep(name.group, name.life, replica);
        Ok(State::Open(Arc::new(committer)))
    }
}

/// The folder of a copy; none: it has no store that remembers, and may not begin one.
fn medium(path: &Path, durability: Durability, is_new: bool) -> Result<Option<Medium>, StoreError> {
    let remembers = Folder::has_store(path);
    if !remembers && !is_new {
        return Ok(None);
    }
    match durability {
        Durability::File => {}
        Durability::Dax => return Ok(Some(Box::new(persistent(path)?))),
        Durability::Memory | Durability::Sync => return Ok(Some(Box::new(Folder::open(path)?))),
    }
    let (boot, file) = (boot_of_machine(), path.join(BOOT));
    if remembers && (boot.is_none() || boot != std::fs::read_to_string(&file).ok()) {
        return Ok(None);
    }
    let folder = Folder::open(path)?.unsynced();
    let written = std::fs::write(&file, boot.unwrap_or_default());
    written.map_err(|cause| failed("write it", &file, cause))?;
    Ok(Some(Box::new(folder)))
}

/// The folder of a copy in persistent memory.
fn persistent(path: &Path) -> Result<PersistentFolder<Processor>, StoreError> {
    let names = Folder::open(path)?;
    let of_processor = Processor::new().ok_or(std::io::ErrorKind::Unsupported.into());
    let folder = of_processor.and_then(|by| PersistentFolder::new(names, path.to_owned(), by));
    folder.map_err(|cause| match cause.kind() {
        std::io::ErrorKind::StorageFull => failed("write it", path, cause),
        _ => StoreError::NotPersistent {
            folder: path.display().to_string(),
            cause,
        },
    })
}

/// Why a folder of this node has no files in persistent memory, if it has none.
pub(super) fn is_not_persistent(folder: &Path) -> Option<StoreError> {
    persistent(&folder.join(PROBE)).err()
}

fn failed(doing: &'static str, path: &Path, cause: std::io::Error) -> StoreError {
    StoreError::Io {
        doing,
        file: path.display().to_string(),
        cause,
    }
}

/// Which start of this machine it is, as the kernel says.
fn boot_of_machine() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
}

/// A copy, as its store's thread sees it. It keeps the node alive until the store is closed: a
/// checkpoint without lines would be a loss.
struct Keeper {
    agents: Arc<Agents>,
    name: Name,
    port: Box<dyn Port>,
}

impl Member<Ticket> for Keeper {
    fn durable(&mut self, tickets: Vec<Ticket>) {
        let mut lines = Vec::with_capacity(tickets.len());
        for ticket in tickets {
            match ticket {
                Ticket::Line(header, own, line) => lines.push((header, own, line)),
                // A thread that waits no longer does not have to be told.
                Ticket::Config(waits) => drop(waits.send(())),
            }
        }
        let mut nobody = Nobody;
        let mut here = Here::new(&self.agents, &*self.port, Body::None, &mut nobody);
        let mut lines = lines.into_iter().peekable();
        while lines.peek().is_some() {
            here.replicated(|abd, fx| {
                for (header, own, line) in lines.by_ref().take(PAGE) {
                    abd.synced(&header, &own, fx);
                    if abd.is_durable(header.tag, Stamp(own.a)) {
                        fx.lines.set(header.tag, line);
                    }
                }
            });
        }
    }

    fn failed(&mut self, error: StoreError) {
        let replicas = &self.agents.replicas;
        replicas
            .stores
            .set(self.name, State::Ended(Arc::new(error)));
        replicas.end(self.name.group, self.name.life);
    }

    fn no_checkpoint(&mut self, _: &StoreError) {}

    fn lines(&mut self, last: Option<Tag>, each: &mut dyn FnMut(Tag, Stamp, &[u8])) {
        let from = last.map_or(first_line(self.name.group), |last| Tag(last.0 + 1));
        for (tag, stamp, bytes) in &self.agents.replicas.page(self.name.group, from, PAGE) {
            each(*tag, *stamp, bytes);
        }
    }
}
