//! The Rust program as a form that packets can be played to.

use super::{Event, QuorumCase, QuorumImplementation};
use crate::{Port, Reply, Sent};
use rackmem_proto::abd::{Config, Defect, config_of};
use rackmem_proto::switch::{Counted, QuorumProgram, QuorumRegister};
use rackmem_proto::wire::{Dest, Header, MAX_REQUESTERS, OWN_LEN, Own, decode, encode};
use rackmem_proto::{Output, membership};

/// See the module.
#[derive(Default)]
pub struct QuorumReference {
    program: QuorumProgram,
    broken: Option<Defect>,
}

impl QuorumReference {
    /// With a rule broken on purpose.
    pub fn breaking(defect: Defect) -> Self {
        QuorumReference {
            broken: Some(defect),
            ..Self::default()
        }
    }

    /// What becomes of a packet.
    pub fn take(&mut self, bytes: &[u8]) -> Reply {
        let Ok((header, body)) = decode(bytes) else {
            return Reply::Sent(Vec::new());
        };
        let Some((own, rest)) = Own::split(body) else {
            return Reply::ControlPlane;
        };
        let counted = self.program.config(header.tag.home().0);
        if counted != Some(config_of(&own)) || !QuorumProgram::takes(header.kind) {
            return Reply::ControlPlane;
        }
        let Some((to, leaves, own, carries)) = self.program.handle(&header, &own, rest) else {
            return Reply::Sent(Vec::new());
        };
        let rest = carries.bytes(rest);
        let copies = Output::new(to, leaves).copies(membership::host);
        let sent = copies.filter_map(|(to, header)| {
            let mut bytes = encode(&header, OWN_LEN + rest.len()).to_vec();
            bytes.extend(own.to_bytes());
            bytes.extend(rest);
            Some(Sent {
                port: port(to, &header)?,
                bytes,
            })
        });
        Reply::Sent(sent.collect()).sorted()
    }

    /// The case in which these happen, with what becomes of the packets.
    pub fn case(
        (name, about): (&str, &str),
        (life, lines): (u32, usize),
        events: &[Event],
    ) -> QuorumCase {
        let mut rust = QuorumReference::default();
        rust.start(life, lines);
        let happens = |event: &Event| match event {
            Event::Group(group, config) => {
                rust.tell(*group, config.as_ref());
                event.clone()
            }
            Event::Packet(bytes, _) => Event::Packet(bytes.clone(), rust.take(bytes)),
        };
        let events = events.iter().map(happens).collect();
        QuorumCase {
            name: name.into(),
            about: about.into(),
            life,
            lines,
            events,
            after: rust.program.registers(),
        }
    }

    fn start(&mut self, life: u32, lines: usize) {
        let program = QuorumProgram::new(MAX_REQUESTERS, lines).of_life(life);
        self.program = program.breaking(self.broken);
    }

    fn tell(&mut self, group: u16, config: Option<&Config>) {
        self.program.count(group, config.map(Counted::new));
    }
}

/// An answer goes to the thread that has asked, if that listens.
fn port(to: Dest, header: &Header) -> Option<Port> {
    let Dest::Agent(node) = to else { return None };
    let port = header.reply_port;
    Some(match header.kind.asks_copies() || port == 0 {
        true => Port::Agent(node),
        false => Port::Requester { node, port },
    })
}

impl QuorumImplementation for QuorumReference {
    fn begin(&mut self, life: u32, lines: usize) -> Result<(), String> {
        self.start(life, lines);
        Ok(())
    }

    fn group(&mut self, group: u16, config: Option<&Config>) -> Result<(), String> {
        self.tell(group, config);
        Ok(())
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String> {
        Ok(self.take(bytes))
    }

    fn registers(&mut self) -> Result<Vec<QuorumRegister>, String> {
        Ok(self.program.registers())
    }
}
