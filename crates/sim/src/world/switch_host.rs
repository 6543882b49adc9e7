//! The switch of a world: its program, its locks, and its part in the rack.

use super::fabric::{Fabric, WorldPacket};
use super::mutate::free_in_first_step;
use super::mutation::Mutation;
use super::run::FIT;
use rackmem_proto::membership::View;
use rackmem_proto::switch::{
    LockConfig, SwitchConfig, SwitchLocks, SwitchMember, SwitchPart, SwitchProgram, switch_part,
};

/// See the module.
pub struct SwitchHost {
    /// The program.
    pub program: SwitchProgram,
    /// The directory of locks beside it.
    pub locks: SwitchLocks,
    member: SwitchMember,
    mutation: Option<Mutation>,
}

impl SwitchHost {
    /// A switch that serves by this view.
    pub fn new(config: SwitchConfig, view: &View, mutation: Option<Mutation>) -> Self {
        let epoch = view.epoch;
        let (ways, sets, shadow) = (2, 1, view.shadow);
        SwitchHost {
            program: SwitchProgram::new(SwitchConfig {
                epoch,
                shadow,
                ..config
            }),
            locks: SwitchLocks::new(LockConfig { epoch, ways, sets }, false),
            member: SwitchMember::new(FIT),
            mutation,
        }
    }

    /// Whether it serves in this epoch.
    pub fn serves(&self, epoch: u32) -> bool {
        !self.program.frozen() && self.program.epoch() == epoch
    }

    /// The epoch that it has heard of last.
    pub fn epoch(&self) -> u32 {
        self.member.epoch(&self.program)
    }

    /// There is a new view.
    pub fn learn(&mut self, view: &View, fabric: &mut Fabric) {
        if (self.member).live_by(view, &mut self.program, &mut self.locks) {
            fabric.tell(|| format!("the switch begins its rebuild for epoch {}", view.epoch));
            self.send(fabric);
        }
    }

    /// A packet for it.
    pub fn handle(&mut self, packet: &WorldPacket, fabric: &mut Fabric) {
        let (header, bytes) = (&packet.header, packet.body.len() as u32);
        let (program, locks) = (&mut self.program, &mut self.locks);
        let outputs = match switch_part(header) {
            SwitchPart::Recovery => {
                let served = !program.frozen();
                let ack = self.member.packet(header, bytes, program, locks);
                if !served && !program.frozen() {
                    fabric.tell(|| format!("the switch serves in epoch {}", program.epoch()));
                }
                ack.iter().for_each(|ack| fabric.send(ack, &[]));
                return self.send(fabric);
            }
            SwitchPart::Tags => {
                let told = self.member.tell_tags(header, program);
                return (told.iter()).for_each(|(output, tags)| fabric.send_records(output, tags));
            }
            SwitchPart::Locks => locks.handle(header),
            SwitchPart::Blocks => program.handle(header),
            // Nobody asks for these here.
            SwitchPart::Reach | SwitchPart::Quorum => return,
        };
        if self.mutation == Some(Mutation::FreeInFirstStep) {
            free_in_first_step(header, &outputs, program, fabric.now);
        }
        outputs.iter().for_each(|output| fabric.send(output, &[]));
    }

    /// Sends again what may have been lost.
    pub fn tick(&mut self, fabric: &mut Fabric) {
        self.member.tick();
        self.send(fabric);
    }

    fn send(&mut self, fabric: &mut Fabric) {
        while let Some((output, records)) = self.member.poll_output() {
            fabric.send_records(&output, records);
        }
    }
}
