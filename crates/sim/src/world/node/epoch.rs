//! A node goes on to another view: what it ends, what it lets go of, and its part of a rebuild (§5.4).

use super::{Migrating, Node};
use crate::world::block::{self, Block};
use crate::world::fabric::{Fabric, Packet};
use crate::world::mutate::STRANGE_SLOT;
use crate::world::mutation::Mutation;
use crate::world::oracle::Oracle;
use crate::world::thread::Thread;
use rackmem_proto::Data;
use rackmem_proto::flowcc::Stream;
use rackmem_proto::flowcc::{
    Heard, LocalStatus, Members, Next, Open, Rebuild, Shadow, copy_record,
};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{
    Copyset, GlobalStatus, Header, Kind, NodeId, Record, RequesterId, Seq, Tag,
};
use std::collections::BTreeMap;

/// Records that go into a packet: few, so that lists come in parts.
pub const FIT: usize = 3;

/// An entry as its home had it: lock word, status, copyset, and whether the switch owned it.
pub type Before = (u16, GlobalStatus, Copyset, bool);

/// What became of a block's entry when its home settled.
#[derive(Clone, Copy, Debug)]
pub struct Settling {
    /// The block.
    pub tag: Tag,
    /// Its entry in the last epoch.
    pub before: Before,
    /// Whether its last content was lost already.
    pub was_lost: bool,
    /// Whether its last content is said to be lost.
    pub lost: bool,
    /// The nodes that have died since.
    pub gone: Copyset,
}

/// A rebuild under way, or done and there to answer late packets.
pub(super) struct Renewal {
    rebuild: Rebuild,
    /// Everyone's events that the end of the epoch has cut off.
    opens: Vec<(NodeId, Open)>,
    /// Blocks on their way to their homes.
    rescues: BTreeMap<Tag, Block>,
    done: bool,
}

impl Node {
    /// Whether a block's home is in the rack, in the incarnation that has the block.
    pub fn reaches(&self, tag: Tag) -> bool {
        match self.mutation {
            Some(Mutation::ForgetIncarnation) => self.view.live.contains(tag.home()),
            _ => self.view.incarnation(tag.home()) == Some(block::incarnation(tag)),
        }
    }

    /// Whether no rebuild is under way here.
    pub fn in_service(&self) -> bool {
        self.renewal.as_ref().is_none_or(|renewal| renewal.done)
    }

    /// Whether nobody waits for this node's part of a rebuild.
    pub fn told_all(&self) -> bool {
        self.renewal
            .as_ref()
            .is_none_or(|renewal| renewal.done && renewal.rebuild.all_told())
    }

    /// There is a new view. Returns whether it is of another epoch.
    pub fn learn(
        &mut self,
        view: &View,
        threads: &mut [Thread],
        fabric: &mut Fabric,
        oracle: &mut Oracle,
    ) -> bool {
        if view.version <= self.view.version {
            return false;
        }
        let heavy = view.is_heavy_after(&self.view);
        self.view = *view;
        let (id, version, epoch) = (self.id, view.version, view.epoch);
        fabric.tell(|| format!("node {id} learns of view {version}, epoch {epoch}"));
        if !heavy {
            if self.in_service() {
                self.choose_shadow();
            }
            return false;
        }
        self.home.freeze(view.epoch);
        self.executed = Default::default();
        // What they held then, they may have let go of since: only the newest list says.
        self.open.iter_mut().for_each(|open| open.bare = false);
        for thread in threads {
            let interrupted = thread.enter(self, fabric, oracle);
            self.open.extend(interrupted.open.into_iter().flatten());
            self.unfinished
                .extend(interrupted.unfinished.into_iter().flatten());
        }
        self.forget_the_gone(fabric);
        self.home.set_migration(view.switch.and(self.migration));
        if let Some(migrating) = &mut self.migrating {
            migrating.shadow = None;
        }
        let members = Members {
            epoch: view.epoch,
            founders: view.founders,
            switch: view.switch.is_some(),
        };
        let cut_off = self.open.len();
        fabric.tell(|| format!("node {id} begins its rebuild: {cut_off} events cut off"));
        let rebuild = Rebuild::node(self.id, members, block::BLOCK_BYTES, FIT, &self.open);
        let mut opens = Vec::new();
        for &open in &self.open {
            self.home.note_open(self.id, open, self.settled.epoch);
            opens.push((self.id, open));
        }
        self.renewal = Some(Renewal {
            rebuild,
            opens,
            rescues: BTreeMap::new(),
            done: false,
        });
        true
    }

    /// Memory whose home has died is nobody's any more.
    fn forget_the_gone(&mut self, fabric: &mut Fabric) {
        let view = self.view;
        let blind = self.mutated(Mutation::ForgetIncarnation);
        let reaches = |tag: Tag| match blind {
            true => view.live.contains(tag.home()),
            false => view.incarnation(tag.home()) == Some(block::incarnation(tag)),
        };
        if self.mutation != Some(Mutation::KeepDeadCopies) {
            for tag in self
                .cache
                .tags()
                .filter(|&tag| !reaches(tag))
                .collect::<Vec<_>>()
            {
                if let Some(at) = self.cache.find(tag) {
                    self.cache.install(at, tag, LocalStatus::Invalid);
                    fabric.note(self.id, tag, "dropped: its home is gone");
                }
            }
        }
        self.open.retain(|open| reaches(open.tag));
        self.unfinished.retain(|&tag| reaches(tag));
        self.downgraded.retain(|&tag| reaches(tag));
        // A requester that starts again begins with the same sequence numbers.
        let gone = view.gone_since(&self.settled);
        self.retained.retain(|requester, (_, tag, _)| {
            reaches(*tag) && view.live.contains(requester.node) && !gone.contains(requester.node)
        });
    }

    pub(super) fn choose_shadow(&mut self) {
        let (id, view) = (self.id, self.view);
        if let Some(Migrating {
            shadow_node,
            shadow,
            config,
            ..
        }) = &mut self.migrating
        {
            *shadow_node = view.shadow;
            let mine = view.shadow == Some(id);
            if !mine {
                *shadow = None;
            } else if shadow.as_ref().is_none_or(|old| old.epoch() != view.epoch) {
                let config = rackmem_proto::flowcc::ShadowConfig {
                    epoch: view.epoch,
                    ..*config
                };
                *shadow = Some(Shadow::new(config));
            }
        }
    }

    /// A packet of a rebuild.
    pub fn rebuild_packet(&mut self, packet: &Packet, fabric: &mut Fabric) -> Vec<Settling> {
        let header = &packet.header;
        let bytes = packet.body.len() as u32 * block::GRANULE_BYTES;
        let Some(renewal) = &mut self.renewal else {
            return Vec::new();
        };
        let (heard, ack) = renewal.rebuild.handle(header, bytes);
        match heard {
            Heard::Nothing => {}
            Heard::Records(stream) => {
                for record in packet.records() {
                    self.hear(stream, header.sender, record);
                }
            }
            Heard::Rescue { store, whole } => {
                if store {
                    fabric.note(self.id, header.tag, "segment rescued");
                    block::put(self.memory(header.tag), header.offset, &packet.body);
                }
                if whole {
                    self.home.note_rescued(header.tag);
                }
            }
            Heard::Rescued(tag) => self.let_go(tag),
        }
        if let Some(ack) = ack {
            fabric.send(&ack, &[]);
        }
        self.proceed(fabric)
    }

    fn hear(&mut self, stream: Stream, from: NodeId, record: Record) {
        match stream {
            Stream::Open => {
                let open = Open::from_record(record);
                self.home.note_open(from, open, self.settled.epoch);
                if let Some(renewal) = &mut self.renewal {
                    renewal.opens.push((from, open));
                }
            }
            Stream::Copies => self.home.note_copy(from, record),
            Stream::Entries => self.home.note_registers(record),
            Stream::Ready => {}
        }
    }

    /// Home has this block.
    fn let_go(&mut self, tag: Tag) {
        self.downgraded.remove(&tag);
        self.unfinished.remove(&tag);
        if let Some(renewal) = &self.renewal {
            let opens = &renewal.opens;
            self.retained.retain(|&requester, &mut (seq, of, _)| {
                of != tag
                    || !opens.iter().any(|&(node, open)| {
                        node == requester.node && open.slot == requester.slot && open.seq == seq
                    })
            });
        }
    }

    /// Sends again what may have been lost.
    pub(super) fn renewal_tick(&mut self, fabric: &mut Fabric) {
        if let Some(renewal) = &mut self.renewal {
            renewal.rebuild.resend();
            self.send_renewal(fabric);
        }
    }

    /// Does what can be done.
    pub fn proceed(&mut self, fabric: &mut Fabric) -> Vec<Settling> {
        let mut settled = Vec::new();
        loop {
            self.send_renewal(fabric);
            let Some(renewal) = &mut self.renewal else {
                return settled;
            };
            match renewal.rebuild.next() {
                Next::Collect => self.collect(fabric),
                Next::Settle => settled.extend(self.settle(fabric)),
                Next::Done if !renewal.done => {
                    renewal.done = true;
                    renewal.opens.clear();
                    self.open.clear();
                    self.unfinished.clear();
                    self.choose_shadow();
                    self.poked = true;
                    let (id, epoch) = (self.id, self.view.epoch);
                    fabric.tell(|| format!("node {id} serves in epoch {epoch}"));
                }
                Next::Wait | Next::Done => return settled,
            }
        }
    }

    fn send_renewal(&mut self, fabric: &mut Fabric) {
        let Some(renewal) = &mut self.renewal else {
            return;
        };
        while let Some(output) = renewal.rebuild.poll_output() {
            match output.data {
                Data::Records => {
                    let records = renewal.rebuild.records(output.to);
                    fabric.send_records(&output, records);
                }
                _ => match renewal.rescues.get(&output.header.tag) {
                    Some(words) => fabric.send(&output, words),
                    None => fabric.send(&output, &[]),
                },
            }
        }
    }

    /// The blocks that their homes may not have.
    fn rescues(&self, opens: &[(NodeId, Open)]) -> BTreeMap<Tag, Block> {
        let mut rescues = BTreeMap::new();
        if !self.mutated(Mutation::ForgetGiven) {
            for (requester, (seq, tag, words)) in &self.retained {
                let waits = opens.iter().any(|&(node, open)| {
                    open.awaits_data
                        && node == requester.node
                        && open.slot == requester.slot
                        && (open.seq, open.tag) == (*seq, *tag)
                });
                if waits {
                    rescues.insert(*tag, words.clone());
                }
            }
        }
        let forgets = |mutation| self.mutated(mutation);
        let downgraded = self.downgraded.iter();
        let downgraded = downgraded.filter(|_| !forgets(Mutation::ForgetDowngraded));
        let unfinished = self.unfinished.iter();
        let unfinished = unfinished.filter(|_| !forgets(Mutation::ForgetRead));
        for &tag in downgraded.chain(unfinished) {
            // One that may be written by now is nothing home could answer for.
            if let Some((LocalStatus::Shared, words)) = self.cache.copy(tag) {
                rescues.insert(tag, words.into());
            }
        }
        rescues
    }

    fn collect(&mut self, fabric: &mut Fabric) {
        let opens = self.renewal.as_ref().map(|r| r.opens.clone());
        let mut rescues = self.rescues(&opens.unwrap_or_default());
        let me = self.id;
        let own: Vec<Tag> = rescues
            .keys()
            .copied()
            .filter(|tag| tag.home() == me)
            .collect();
        for tag in own {
            if let Some(words) = rescues.remove(&tag) {
                fabric.note(me, tag, "rescued");
                *self.memory(tag) = words;
                self.home.note_rescued(tag);
                self.let_go(tag);
            }
        }
        let mut copies = Vec::new();
        for tag in self.cache.tags().collect::<Vec<_>>() {
            let Some((status, _)) = self.cache.copy(tag) else {
                continue;
            };
            let record = copy_record(tag, status == LocalStatus::Modified);
            if tag.home() == me {
                self.home.note_copy(me, record);
            } else {
                copies.push(record);
            }
        }
        self.rescued += rescues.len() as u64;
        let (sent, told) = (rescues.len(), copies.len());
        fabric.tell(|| format!("node {me} rescues {sent} blocks and tells homes of {told} copies"));
        if let Some(renewal) = &mut self.renewal {
            let tags: Vec<Tag> = rescues.keys().copied().collect();
            renewal.rescues = rescues;
            renewal.rebuild.collect(tags, copies);
            if self.mutation == Some(Mutation::SettleEarly) {
                self.early = true;
            }
        }
        if std::mem::take(&mut self.early) {
            self.settle(fabric);
        }
    }

    fn settle(&mut self, fabric: &mut Fabric) -> Vec<Settling> {
        let gone = self.view.gone_since(&self.settled);
        let switch_lost = self.settled.switch.is_some() && self.settled.switch != self.view.switch;
        let tags: Vec<Tag> = self.blocks.clone();
        let before: Vec<(Tag, Option<Before>, bool)> = tags
            .into_iter()
            .map(|tag| (tag, self.home.inspect(tag), self.home.lost(tag)))
            .collect();
        self.home.settle(gone, switch_lost);
        let (id, left) = (self.id, gone.0);
        fabric.tell(|| {
            format!(
                "node {id} settles its entries: nodes {left:b} gone, switch lost: {switch_lost}"
            )
        });
        if self.mutated(Mutation::KeepDeadLocks)
            && let Some(dead) = gone.iter().next()
        {
            let locked = before
                .iter()
                .filter(|(_, entry, _)| entry.is_some_and(|e| e.0 != 0));
            for (at, (tag, ..)) in locked.enumerate() {
                let id = RequesterId {
                    node: dead,
                    slot: STRANGE_SLOT - at as u16,
                };
                let kind = Kind::LockWrite;
                let request = Header::request(kind, self.view.epoch, *tag, id, Seq(1));
                self.home.handle(&request, 0);
            }
        }
        self.settled = self.view;
        self.rebuilds += 1;
        if let Some(renewal) = &mut self.renewal {
            renewal.rebuild.settled();
        }
        let settling = before.into_iter().filter_map(|(tag, before, was_lost)| {
            let lost = self.home.lost(tag);
            fabric.note(self.id, tag, if lost { "settled: lost" } else { "settled" });
            Some(Settling {
                tag,
                before: before?,
                was_lost,
                lost,
                gone,
            })
        });
        settling.collect()
    }

    /// Where a rebuild is, for a violation.
    pub fn describe(&self) -> String {
        let (id, version, epoch) = (self.id, self.view.version, self.view.epoch);
        let rebuild = self.renewal.as_ref().map(|r| (r.rebuild.next(), r.done));
        format!(
            "node {id} {:?} view {version} epoch {epoch} rebuild {rebuild:?}",
            self.standing
        )
    }
}
