//! The switch program in a process: behind the inline fabric, or behind a UDP socket.

use rackmem_fabric::{Body, Handler, Net, PacketStats, Receiver};
use rackmem_proto::Dest;
use rackmem_proto::switch::{Resources, SwitchConfig, SwitchCounters, SwitchProgram};
use rackmem_proto::wire::{Header, Kind, Tag, records_that_fit};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A switch that runs in software.
pub struct SoftSwitch {
    program: Mutex<SwitchProgram>,
    /// Records that fit into a packet.
    fit: usize,
    packets: PacketStats,
}

impl SoftSwitch {
    /// A switch that owns nothing yet, and whose packets carry bodies of so many bytes.
    pub fn new(config: SwitchConfig, body: usize) -> Self {
        SoftSwitch {
            fit: records_that_fit(body),
            program: Mutex::new(SwitchProgram::new(config)),
            packets: PacketStats::default(),
        }
    }

    fn program(&self) -> MutexGuard<'_, SwitchProgram> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it has done so far.
    pub fn counters(&self) -> SwitchCounters {
        self.program().counters()
    }

    /// Entries it owns.
    pub fn entries(&self) -> usize {
        self.program().entries()
    }

    /// What it asks of an ASIC.
    pub fn resources(&self) -> Resources {
        self.program().resources()
    }

    /// Packets it has received, by kind.
    pub fn packets(&self) -> &PacketStats {
        &self.packets
    }

    /// See [`SwitchProgram::inspect`]: lock word, status and copyset of an entry it owns.
    pub fn inspect(&self, addr: u64) -> Option<(u16, &'static str, u32)> {
        let (lock, status, copyset) = self.program().inspect(Tag(addr))?;
        Some((lock, crate::metrics::status_name(status), copyset.0))
    }
}

impl SoftSwitch {
    /// The control plane's answer to a shadow that reads TAG.
    fn tell_tags(&self, net: &dyn Net, header: &Header, reply: &mut dyn Receiver) {
        let (records, next) = {
            let program = self.program();
            if header.epoch != program.epoch() {
                return;
            }
            program.tags(header.offset as usize, self.fit)
        };
        let mut answer = header.answer(Kind::Tags, rackmem_proto::switch::SWITCH);
        answer.tag = Tag(next as u64);
        let bytes: Vec<u8> = records.iter().flat_map(|r| r.to_bytes()).collect();
        let to = Dest::Agent(header.requester.node);
        net.send(to, &answer, Body::Bytes(&bytes), reply);
    }
}

impl Handler for SoftSwitch {
    fn handle(&self, net: &dyn Net, header: &Header, _: Body<'_>, reply: &mut dyn Receiver) {
        self.packets.count(header.kind);
        if header.kind == Kind::ReadTags {
            return self.tell_tags(net, header, reply);
        }
        let outputs = self.program().handle(header);
        for output in outputs.iter() {
            for (to, header) in output.copies() {
                net.send(to, &header, Body::None, reply);
            }
        }
    }
}
