//! The program in the kernel as an implementation that golden packets can be played to.

use rackmem_conformance::{Implementation, Port, Reply, Sent, Setup};
use rackmem_proto::switch::Register;
use rackmem_wire::{Dest, Header, MAX_NODES, NodeId, decode, encode};
use rackmem_xdp::carrier::Frame;
use rackmem_xdp::{Order, Switch, Verdict, to_switch};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The switch of all cases.
pub const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 254), 7400);
/// Where packets come from: no member of the rack, so that no port is learned.
pub const STRANGER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 1, 1), 40_000);
pub const AGENT_PORT: u16 = 7401;

/// The program, loaded for switches of one size at a time.
pub struct Kernel {
    name: String,
    object: Option<Vec<u8>>,
    loaded: Option<Switch>,
    setup: Setup,
}

pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub fn ip(node: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, 1 + node as u8)
}

impl Kernel {
    /// The embedded program.
    pub fn new() -> Self {
        Kernel {
            name: "XDP".into(),
            object: None,
            loaded: None,
            setup: Setup::default(),
        }
    }

    /// Another object.
    pub fn of(name: String, object: Vec<u8>) -> Self {
        Kernel {
            name,
            object: Some(object),
            loaded: None,
            setup: Setup::default(),
        }
    }

    fn load_program(&self, setup: &Setup) -> Result<Switch, String> {
        let (config, locks) = (setup.config(), setup.locks());
        match &self.object {
            None => Switch::load_with(config, locks).map_err(text),
            Some(object) => Switch::load_object(object, config, locks).map_err(text),
        }
    }

    fn switch(&mut self) -> Result<&mut Switch, String> {
        self.loaded.as_mut().ok_or("not configured".into())
    }
}

impl Implementation for Kernel {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn configure(&mut self, setup: &Setup) -> Result<(), String> {
        self.setup = *setup;
        // Loading takes the verifier a while, so a program stays as long as it fits.
        let loaded = self.loaded.take().map(|mut switch| {
            let fits = switch.become_another(setup.config(), setup.locks());
            fits.map(|fits| fits.then_some(switch)).map_err(text)
        });
        let mut switch = match loaded.transpose()?.flatten() {
            Some(switch) => switch,
            None => self.load_program(setup)?,
        };
        let agent = |node| (SocketAddrV4::new(ip(node), AGENT_PORT), setup.port_of(node));
        let agents: Vec<_> = (0..MAX_NODES as NodeId).map(agent).collect();
        switch.pretend_ports(SWITCH, &agents).map_err(text)?;
        self.loaded = Some(switch);
        Ok(())
    }

    fn load(&mut self, registers: &[Register]) -> Result<(), String> {
        let switch = self.switch()?;
        for &register in registers {
            if !switch.set_register(register).map_err(text)? {
                return Err(format!("there is no {register:?}"));
            }
        }
        Ok(())
    }

    fn freeze(&mut self) -> Result<(), String> {
        self.switch()?.freeze().map_err(text)
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String> {
        let setup = self.setup;
        let switch = self.switch()?;
        let frame = to_switch(SWITCH, STRANGER, bytes);
        let ran = switch.run(&frame, 1).map_err(text)?;
        match ran.verdict {
            Verdict::Drop => Ok(Reply::Sent(Vec::new())),
            Verdict::Pass if ran.frame == frame => Ok(Reply::ControlPlane),
            Verdict::Pass => ordered(&ran.frame, switch.nonce(), &setup),
            Verdict::Redirect => {
                let copies = switch.copies(&ran.frame, MAX_NODES as u16).map_err(text)?;
                let sent = copies
                    .into_iter()
                    .map(|(by, frame)| sent(by, &frame, &setup));
                Ok(Reply::Sent(sent.collect::<Result<_, _>>()?).sorted())
            }
            other => Err(format!("it said {other:?}")),
        }
    }

    fn registers(&mut self) -> Result<Vec<Register>, String> {
        self.switch()?.registers().map_err(text)
    }
}

/// What the control plane sends by an order: copies that the ports cannot make,
/// since several receivers share one.
fn ordered(frame: &[u8], nonce: u32, setup: &Setup) -> Result<Reply, String> {
    let frame = Frame::parse(frame)?;
    if (frame.from.ip(), frame.to) != (STRANGER.ip(), SWITCH) {
        return Err(format!("it passes on {} to {}", frame.from, frame.to));
    }
    let (header, body) = decode(&frame.payload).map_err(text)?;
    let order = Order::read(&header, body, nonce).ok_or("it passes on what is no order")?;
    let mut ports = BTreeSet::new();
    let mut sent = Vec::new();
    for (to, header) in order.0.copies(rackmem_proto::membership::host) {
        let Dest::Agent(node) = to else {
            return Err(format!("an order for {to:?}"));
        };
        ports.insert(setup.port_of(node));
        sent.push(Sent {
            port: Port::Agent(node),
            bytes: encode(&header, 0).to_vec(),
        });
    }
    if ports.len() == sent.len() {
        return Err("an order for what the ports can send".into());
    }
    Ok(Reply::Sent(sent).sorted())
}

/// A frame that leaves, as a packet with its destination. Everything around it must be as it is
/// between hosts.
pub fn sent(by: Option<u16>, frame: &[u8], setup: &Setup) -> Result<Sent, String> {
    let frame = Frame::parse(frame)?;
    if frame.from != SWITCH {
        return Err(format!("it is from {}", frame.from));
    }
    let node = (0..MAX_NODES as NodeId).find(|&node| ip(node) == *frame.to.ip());
    let node = node.ok_or_else(|| format!("it is for {}", frame.to))?;
    let header: Header = decode(&frame.payload).map_err(text)?.0;
    let macs = [[2, 0, 0, 0, 0, node as u8], [2, 0, 0, 0, 1, 0]];
    if frame.macs != macs || by.is_some_and(|by| by != setup.port_of(node)) {
        return Err(format!(
            "for node {node} it goes by {by:?} to {:x?}",
            frame.macs
        ));
    }
    let port = if header.kind.is_request() || frame.to.port() == AGENT_PORT {
        if frame.to.port() != AGENT_PORT {
            return Err(format!("an agent does not listen at {}", frame.to));
        }
        Port::Agent(node)
    } else {
        let port = frame.to.port();
        Port::Requester { node, port }
    };
    let bytes = frame.payload;
    Ok(Sent { port, bytes })
}
