//! Processes that end and start again, and what the durable ones of them remember.

use super::scenario::Store;
use super::witness::Witness;
use super::world::{GROUP, LineRack, Syncing, World, layout};
use crate::driver::Complaint;
use rackmem_proto::abd::journal::{Entry, Replay};
use rackmem_proto::abd::{Abd, Defect, Replica, Section, Stamp};
use rackmem_proto::wire::{NodeId, Tag};
use std::collections::BTreeMap;

/// What a durable member has written down.
#[derive(Clone, Hash, Debug, Default)]
pub struct Disk {
    /// Lines, in the order in which they have become durable.
    pub lines: Vec<(Tag, Stamp, Box<[u8]>)>,
    /// The config that it lives by.
    pub config: u32,
}

/// How a process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// What was on its way to the store has not come there.
    Cut,
    /// It has, and was not acknowledged.
    Kept,
    /// A record of the store is damaged when it starts again.
    Damaged(usize),
}

impl LineRack {
    /// What a durable member remembers.
    pub fn recovered(&self, disk: &Disk) -> (Replica, BTreeMap<Tag, Box<[u8]>>) {
        let (mut replay, mut lines) = (Replay::default(), BTreeMap::new());
        for (tag, stamp, line) in &disk.lines {
            let stamp = match self.has(Defect::CheckpointWithoutStamps) {
                true => Stamp::NONE,
                false => *stamp,
            };
            let (tag, bytes) = (*tag, &line[..]);
            if replay.take(&Entry::Line { tag, stamp, bytes }, self.defect) {
                lines.insert(tag, line.clone());
            }
        }
        replay.take(&Entry::Config(disk.config), self.defect);
        (replay.replica(), lines)
    }
}

impl World {
    /// What was staged by this packet is durable.
    pub fn synced(&mut self, rack: &LineRack, nth: usize) -> Result<(), Complaint> {
        let sync = self.syncs.remove(nth);
        self.write_down(rack, &sync);
        self.acknowledge(rack, &sync)
    }

    fn acknowledge(&mut self, rack: &LineRack, sync: &Syncing) -> Result<(), Complaint> {
        let (header, own) = (&sync.header, &sync.own);
        let synced = |abd: &mut Abd, fx: &mut Section<'_>| abd.synced(header, own, fx);
        let part = &mut self.nodes[usize::from(sync.node)].part;
        let effects = part.section((0, &[]), synced).1;
        // What it has brought is committed as by the packet that has completed it.
        self.follow(rack, (sync.node, Some(header)), effects)
    }

    /// A line is in a member's journal.
    fn write_down(&mut self, rack: &LineRack, sync: &Syncing) {
        let lines = &mut self.nodes[usize::from(sync.node)].disk.lines;
        lines.push((sync.header.tag, Stamp(sync.own.a), sync.line.clone()));
        // What says nothing is left out of the state, where order is not what is looked at.
        if !rack.has(Defect::ReplayInOrder) {
            lines.sort_unstable();
            lines.reverse();
            lines.dedup_by_key(|line| line.0);
        }
    }

    /// A sync fails: the member ends, and starts again with what was durable before.
    pub fn fail_sync(&mut self, rack: &LineRack, nth: usize) -> Result<(), Complaint> {
        self.left.fail -= 1;
        if rack.has(Defect::TrustSecondSync) {
            let sync = self.syncs.remove(nth);
            return self.acknowledge(rack, &sync);
        }
        let node = self.syncs[nth].node;
        self.restart(rack, node, Ending::Cut);
        Ok(())
    }

    /// A durable member writes down by which config it lives.
    pub fn keep_config(&mut self, rack: &LineRack, node: usize) {
        let replica = self.nodes[node].part.abd.replica(GROUP);
        let config = replica.map_or(0, Replica::config);
        if rack.scenario.store == Store::Durable && !rack.has(Defect::ForgetConfig) {
            self.nodes[node].disk.config = config;
        }
    }

    /// A process ends, and starts again.
    pub fn crash(&mut self, rack: &LineRack, node: NodeId, ending: Ending) {
        match ending {
            Ending::Damaged(_) => self.left.damage -= 1,
            _ => self.left.crash -= 1,
        }
        self.restart(rack, node, ending);
    }

    fn restart(&mut self, rack: &LineRack, node: NodeId, ending: Ending) {
        let at = usize::from(node);
        let pending: Vec<_> = self
            .syncs
            .extract_if(.., |sync| sync.node == node)
            .collect();
        match (ending, pending.is_empty()) {
            (Ending::Kept, _) => {
                pending.iter().for_each(|sync| self.write_down(rack, sync));
                self.witness(Witness::KeptSync);
            }
            (_, false) => self.witness(Witness::CutSync),
            _ => {}
        }
        if let Ending::Damaged(nth) = ending {
            self.nodes[at].disk.lines.remove(nth);
            self.witness(Witness::RefusedStore);
        }
        let known = self.nodes[at].part.abd.config(GROUP).copied();
        let old = &mut self.nodes[at];
        old.incarnation += 1;
        let mut part = rack.part(node, old.incarnation);
        let durable = rack.scenario.store == Store::Durable;
        let keeps = old.life.is_some();
        match (ending, old.life) {
            (Ending::Damaged(_), _) if !rack.has(Defect::CountAfterDamage) => old.life = None,
            (_, Some(life)) if durable => {
                let (replica, lines) = rack.recovered(&old.disk);
                part.lines.restore(GROUP, lines);
                part.abd.keep(GROUP, life, replica);
            }
            (_, Some(_)) => {
                old.life = Some(u64::from(old.incarnation));
                part.abd.keep(GROUP, old.incarnation.into(), rack.replica());
            }
            (_, None) => {}
        }
        old.part = part;
        if let Some(thread) = self.threads.get_mut(at)
            && thread.waits
        {
            thread.waits = false;
            thread.floor = Stamp::NONE;
            self.judge.abandoned(node);
        }
        // A durable member may hear of any config first, and knows by which it has lived; one that
        // has forgotten hears the newest.
        let config = match (durable, keeps) {
            (true, true) => self.configs.first().copied(),
            (true, false) => known,
            (false, _) => Some(*self.config()),
        };
        if let Some(config) = config {
            let learn = |abd: &mut Abd, fx: &mut Section<'_>| {
                fx.lines.lay_out(GROUP, layout());
                abd.learn(GROUP, layout(), &config, fx);
            };
            self.act(rack, node, learn).expect("nothing is under way");
        }
        self.keep_config(rack, at);
    }
}
