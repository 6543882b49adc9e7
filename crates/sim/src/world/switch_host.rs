//! The switch of a world: its program, and its part of a rebuild.

use super::fabric::{Fabric, WorldPacket};
use super::mutate::STRANGE_SLOT;
use super::mutation::Mutation;
use super::node::FIT;
use rackmem_proto::engine::Gcp;
use rackmem_proto::flowcc::{Members, Next, Rebuild};
use rackmem_proto::membership::View;
use rackmem_proto::switch::{LockConfig, SWITCH, SwitchConfig, SwitchLocks, SwitchProgram};
use rackmem_proto::wire::{Flags, Kind, Reason, Record, Seq, Tag};
use rackmem_proto::{Data, Dest, Output};

/// Tags that go into a packet.
const ROOM: usize = 4;

/// The program and what drives it.
pub struct SwitchHost {
    /// The program.
    pub program: SwitchProgram,
    /// The directory of locks beside it.
    pub locks: SwitchLocks,
    view: View,
    mutation: Option<Mutation>,
    rebuild: Option<Rebuild>,
}

impl SwitchHost {
    /// A switch that has been there from the start.
    pub fn new(config: SwitchConfig, view: View, mutation: Option<Mutation>) -> Self {
        let locks = LockConfig {
            epoch: view.epoch,
            ways: 2,
            sets: 1,
        };
        SwitchHost {
            program: SwitchProgram::new(SwitchConfig {
                epoch: view.epoch,
                shadow: view.shadow,
                ..config
            }),
            locks: SwitchLocks::new(locks, false),
            view,
            mutation,
            rebuild: None,
        }
    }

    /// Whether it serves in this epoch.
    pub fn serves(&self, epoch: u32) -> bool {
        !self.program.frozen() && self.program.epoch() == epoch
    }

    /// The epoch that it has heard of last.
    pub fn epoch(&self) -> u32 {
        self.view.epoch
    }

    /// There is a new view. `fresh`: this switch has just been admitted by it.
    pub fn learn(&mut self, view: &View, fresh: bool, fabric: &mut Fabric) {
        if view.version <= self.view.version && !fresh {
            return;
        }
        let heavy = fresh || view.is_heavy_after(&self.view);
        self.view = *view;
        if !heavy {
            return self.program.set_shadow(view.shadow);
        }
        self.program.freeze();
        self.locks.enter(view.epoch, |_| Vec::new());
        fabric.tell(|| format!("the switch begins its rebuild for epoch {}", view.epoch));
        let members = Members {
            epoch: view.epoch,
            founders: view.founders,
            switch: true,
        };
        let (program, locks) = (&self.program, &self.locks);
        self.rebuild = Some(Rebuild::switch(members, FIT, |home| {
            if fresh {
                Vec::new()
            } else {
                let entries = program.entries_of(home).into_iter();
                entries.chain(locks.entries_of(home)).collect()
            }
        }));
        self.send(fabric);
    }

    /// A packet for it.
    pub fn handle(&mut self, packet: &WorldPacket, fabric: &mut Fabric) {
        let header = &packet.header;
        if Rebuild::concerns(header.kind) {
            let bytes = packet.body.len() as u32;
            let ack = self
                .rebuild
                .as_mut()
                .and_then(|rebuild| rebuild.handle(header, bytes).1);
            if let Some(ack) = ack {
                fabric.send(&ack, &[]);
            }
            self.send(fabric);
            let done = self.rebuild.as_ref().map(Rebuild::next) == Some(Next::Done);
            if done && self.program.frozen() {
                self.program.reset(self.view.epoch, self.view.shadow);
                self.locks.done();
                fabric.tell(|| format!("the switch serves in epoch {}", self.view.epoch));
            }
            return;
        }
        if header.kind == Kind::ReadTags && header.epoch == self.program.epoch() {
            let (output, records) = self.tell_tags(packet);
            return fabric.send_records(&output, &records);
        }
        let outputs = match Gcp::takes(header.kind) {
            true => self.locks.handle(header),
            false => self.program.handle(header),
        };
        if self.mutation == Some(Mutation::FreeInFirstStep)
            && header.kind == Kind::RemoveFromSwitch
            && !header.flags.has(Flags::GRANTED)
            && outputs
                .iter()
                .any(|output| output.header.reason == Reason::None)
        {
            let mut free = *header;
            free.flags = Flags::GRANTED;
            free.requester.slot = STRANGE_SLOT;
            free.seq = Seq(fabric.now / 8);
            self.program.handle(&free);
        }
        outputs.iter().for_each(|output| fabric.send(output, &[]));
    }

    /// Sends again what may have been lost.
    pub fn tick(&mut self, fabric: &mut Fabric) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.tick();
        }
        self.send(fabric);
    }

    fn send(&mut self, fabric: &mut Fabric) {
        let Some(rebuild) = &mut self.rebuild else {
            return;
        };
        while let Some(output) = rebuild.poll_output() {
            fabric.send_records(&output, rebuild.records(output.to));
        }
    }

    /// What the control plane answers to a shadow that reads TAG.
    fn tell_tags(&self, packet: &WorldPacket) -> (Output, Vec<Record>) {
        let header = &packet.header;
        let (records, next) = self.program.tags(header.offset as usize, ROOM);
        let mut answer = header.answer(Kind::Tags, SWITCH);
        answer.tag = Tag(next as u64);
        let to = Dest::Agent(header.requester.node);
        (Output::with(to, answer, Data::Records), records)
    }
}
