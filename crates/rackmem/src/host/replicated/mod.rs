//! Replicated memory at this node: the copies that it keeps and the operations of its threads.
//!
//! What a packet means, and the bytes of lines, are `rackmem_proto::abd`'s; here are a lock around
//! that value, and the way of a packet to where it goes.

mod keeping;
mod operating;
mod pages;
mod persistent;
#[cfg(test)]
mod persisting;
mod post;
mod stores;
pub(crate) mod telling;

pub(crate) use self::operating::Asks;
pub use self::operating::CopyCounts;
pub(in crate::host) use self::operating::{LOOK_UP, Operating};
pub(crate) use self::post::{apart, listening, post};
pub use self::stores::CopyStore;
pub(crate) use self::stores::Stores;

use self::pages::Pages;
use crate::bytes::mirror::LentMirror;
use crate::data_plane::kernel::reads::ReadsInKernel;
use crate::host::agents::Agents;
use crate::host::here::Here;
use crate::host::names;
use crate::membership::{GroupMember, Groups};
use rackmem_fabric::{Body, Net, Nobody, Whole};
use rackmem_proto::Dest;
use rackmem_proto::abd::{
    Abd, Durability, Effect, Effects, Layout, Replica, ReplicatedMemory, Section, Stamp, first_line,
};
use rackmem_proto::call::Parcel;
use rackmem_proto::engine::{self, ReplicatedHost};
use rackmem_proto::wire::{NodeId, Own, Tag};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

/// What is behind one lock: a line's stamp and its bytes never part.
struct Part {
    memory: ReplicatedMemory,
    /// When members that were late are asked as the others are.
    forgiven: Option<Instant>,
    counts: CopyCounts,
    /// Where the kernel reads lines.
    mirror: Option<LentMirror>,
}

/// See the module.
pub(crate) struct Replicas {
    me: NodeId,
    /// The node's incarnation: where copies are in memory, another life of it is another member.
    life: u64,
    /// Of durable copies.
    pub stores: Stores,
    /// Of which groups this node has the pages for itself.
    pub pages: Pages,
    part: Mutex<Part>,
    kernel: Option<Arc<ReadsInKernel>>,
    /// An operation has ended: for threads that no packet wakes, and how many these are.
    ended: Condvar,
    waiting: AtomicU32,
    /// What to do when a packet shows that a group has a newer config.
    behind: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// What a node has of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    /// The config that it lives by.
    pub config: u32,
    /// Lines that have been written.
    pub lines: u64,
    /// While it fills: how far in bytes of the region, and how many lines it has fetched.
    pub filling: Option<(u64, u64)>,
    /// It has filled, and may count from the next config on.
    pub whole: bool,
    /// How.
    pub store: CopyStore,
}

impl Replicas {
    /// Of a node that knows of no group, whose packets have room for so many bytes, and whose lines
    /// a program in the kernel reads, if there is one.
    pub fn new(
        (me, incarnation): (NodeId, u32),
        room: usize,
        (epoch, stores): (u32, Stores),
        kernel: Option<Arc<ReadsInKernel>>,
    ) -> Self {
        let mut memory = ReplicatedMemory::new((me, incarnation), room);
        memory.abd.enter(epoch);
        memory.abd.ask_a_quorum_first();
        Replicas {
            me,
            life: incarnation.into(),
            stores,
            pages: Pages::default(),
            part: Mutex::new(Part {
                memory,
                forgiven: None,
                counts: CopyCounts::default(),
                mirror: kernel.as_ref().and_then(|kernel| kernel.take_mirror()),
            }),
            kernel,
            ended: Condvar::new(),
            waiting: AtomicU32::new(0),
            behind: OnceLock::new(),
        }
    }

    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().whole()
    }

    /// What to do when a packet shows that a group has a newer config; the first counts.
    pub fn when_behind(&self, act: Box<dyn Fn() + Send + Sync>) {
        let _ = self.behind.set(act);
    }

    /// The lines of a group's region, and the config with which that began, if this process has
    /// heard of it.
    pub fn region(&self, group: u16) -> Option<(Layout, u32)> {
        let memory = &self.part().memory;
        let config = memory.abd.config(group).filter(|it| !it.is_removed())?;
        Some((memory.lines.layout(group)?, config.first))
    }

    /// What this node keeps of a group.
    pub fn kept(&self, group: u16) -> Option<Kept> {
        let store = self.stores.status(group).unwrap_or(CopyStore::Memory);
        let part = self.part();
        let ReplicatedMemory { abd, lines } = &part.memory;
        let config = abd.config(group)?;
        if matches!(store, CopyStore::Memory | CopyStore::Journal(_)) {
            abd.replica(group)?;
        }
        let fill = abd.fill(group);
        let filling = fill.filter(|fill| !fill.is_whole()).map(|fill| {
            let (at, fetched) = fill.progress();
            (at.0.saturating_sub(first_line(group).0), fetched)
        });
        Some(Kept {
            config: config.number,
            lines: lines.written(group),
            filling,
            whole: fill.is_some_and(|fill| fill.is_whole()),
            store,
        })
    }
}

impl Replicas {
    /// No copy of a group is kept here any more as this life of its member.
    fn end(&self, group: u16, life: u64) {
        let ReplicatedMemory { abd, lines } = &mut self.part().memory;
        if abd.life(group) == Some(life) {
            abd.end(group);
            lines.forget(group);
        }
    }

    /// So many lines of a group from an address on, as they are now.
    fn page(&self, group: u16, from: Tag, most: usize) -> Vec<(Tag, Stamp, Box<[u8]>)> {
        let ReplicatedMemory { abd, lines } = &self.part().memory;
        let stamps = abd.replica(group).map(|replica| replica.lines(from));
        let stamps = stamps.into_iter().flatten().take(most);
        let with_bytes = stamps.map(|(tag, stamp)| {
            let bytes = lines.line(tag).unwrap_or_default();
            (tag, stamp, Box::from(bytes))
        });
        with_bytes.collect()
    }
}

impl Agents {
    /// Lives by these groups from here on. What follows leaves through `net`.
    pub fn adopt(self: &Arc<Self>, groups: &Groups, net: &dyn Net) {
        let replicas = &self.replicas;
        let mut nobody = Nobody;
        let mut here = Here::new(self, net, Body::None, &mut nobody);
        for (number, group) in groups.rows.iter().enumerate() {
            let (number, config) = (number as u16, &group.config);
            let life = match group.durability {
                Durability::Memory => {
                    // A removed region that had the number may have had stores.
                    replicas.stores.leave((number, groups.rack), None, config);
                    Some(replicas.life)
                }
                _ => self.keeps_durably((number, group), groups.rack),
            };
            let node = replicas.me;
            let me = life.map(|life| GroupMember { node, life });
            let me = me.filter(|me| config.role(*me).is_some());
            let mapper = GroupMember {
                node,
                life: replicas.life,
            };
            let mapped = group.mapped == Some(mapper);
            replicas.pages.are(number, mapped);
            here.replicated(|abd, fx| {
                if !mapped {
                    // Before this node learns of the config under which another may have them.
                    let pagers = replicas.pages.workers(number);
                    pagers.for_each(|slot| abd.abandon(slot));
                }
                abd.end_removed(number, config, fx);
                if abd
                    .life(number)
                    .is_some_and(|kept| me.is_none_or(|me| me.life != kept))
                {
                    // Another member has its place, and what it had.
                    abd.end(number);
                    fx.forget(number);
                }
                if let (Some(me), None) = (me, abd.replica(number)) {
                    // This life of the node is a member for the first time, so it has promised
                    // nothing yet. A durable copy has been opened.
                    abd.keep(number, me.life, Replica::new(false));
                }
                fx.lines.lay_out(number, group.layout);
                if group.name == names::GROUP || group.home.is_some() {
                    abd.fence_by_epochs(number);
                }
                abd.learn(number, group.layout, config, fx);
            });
            self.kept.lay_out(self, number, group);
        }
    }
}

impl Agents {
    /// Sends again what operations and fills of this node wait for.
    pub fn ask_again(&self, net: &dyn Net) {
        let mut nobody = Nobody;
        let mut here = Here::new(self, net, Body::None, &mut nobody);
        here.replicated(|abd, fx| abd.ask_again(fx));
    }
}

impl Here<'_> {
    /// Sends what a section has left, whose lock is not held any more.
    fn post(&self, parcels: Vec<Parcel>) {
        let (agents, net) = (self.agents, self.net);
        let me = agents.replicas.me;
        let mut nobody = Nobody;
        post(me, parcels, |from, parcel| {
            let (header, body) = (&parcel.header, Body::Bytes(&parcel.bytes));
            let to = listening(parcel.to, header);
            if to == Dest::Agent(me) && from == me {
                // A copy of this node's own: by a call.
                let mut here = Here::new(agents, net, body, &mut nobody).at(header.offset);
                engine::packet(&mut here, header);
            } else {
                net.send(to, header, body, &mut nobody);
            }
        });
    }
}

impl ReplicatedHost for Here<'_> {
    type Fx<'f> = Section<'f>;

    fn replicated<R>(&mut self, act: impl FnOnce(&mut Abd, &mut Section<'_>) -> R) -> R {
        let replicas = &self.agents.replicas;
        let segment = match self.body {
            Body::Bytes(bytes) => Own::split(bytes).map_or(&[][..], |(_, rest)| rest),
            _ => &[],
        };
        let mut part = replicas.part();
        let (result, effects) = part.memory.section((self.offset, segment), act);
        let Part { memory, mirror, .. } = &mut *part;
        if let Some(mirror) = mirror {
            mirror.follow(memory, &effects);
        }
        drop(part);
        let parcel = |effect| match effect {
            Effect::Send(parcel) => Some(parcel),
            Effect::Sync(line, header, own) => {
                replicas.stores.put(line, header, own);
                None
            }
            Effect::Stored(..) | Effect::Adopted(_) | Effect::Forgot(_) => None,
            Effect::Ended(_) => {
                replicas.has_ended();
                None
            }
            Effect::Behind => {
                replicas.behind.get().iter().for_each(|act| act());
                None
            }
        };
        let parcels = effects.into_iter().filter_map(parcel).collect();
        self.post(parcels);
        result
    }

    fn own(&self) -> Own {
        match self.body {
            Body::Bytes(bytes) => Own::split(bytes).map_or_else(Own::default, |(own, _)| own),
            _ => Own::default(),
        }
    }
}
