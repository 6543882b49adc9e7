//! The same for packets of replicated memory.

use crate::kernel::{AGENT_PORT, STRANGER, SWITCH, ip, sent, text};
use rackmem_conformance::quorum::QuorumImplementation;
use rackmem_conformance::{Reply, Setup};
use rackmem_proto::abd::Config;
use rackmem_proto::switch::{Counted, QuorumRegister};
use rackmem_wire::{MAX_NODES, NodeId};
use rackmem_xdp::{Switch, Verdict, to_switch};
use std::net::SocketAddrV4;

/// The program, loaded for one number of lines at a time.
pub struct Counting {
    object: Option<Vec<u8>>,
    loaded: Option<(usize, Switch)>,
}

impl Counting {
    /// The embedded program, or another object.
    pub fn new(object: Option<Vec<u8>>) -> Self {
        Counting {
            object,
            loaded: None,
        }
    }

    fn switch(&mut self) -> Result<&mut Switch, String> {
        let loaded = self.loaded.as_mut().ok_or("not loaded")?;
        Ok(&mut loaded.1)
    }
}

impl QuorumImplementation for Counting {
    fn begin(&mut self, life: u32, lines: usize) -> Result<(), String> {
        let fits = |(of, _): &(usize, Switch)| *of == lines;
        if !self.loaded.as_ref().is_some_and(fits) {
            let switch = Switch::load_lines(lines, self.object.as_deref());
            let mut switch = switch.map_err(text)?;
            let agent = |node| (SocketAddrV4::new(ip(node), AGENT_PORT), node);
            let agents: Vec<_> = (0..MAX_NODES as NodeId).map(agent).collect();
            switch.pretend_ports(SWITCH, &agents).map_err(text)?;
            self.loaded = Some((lines, switch));
        }
        let switch = self.switch()?;
        switch.forget_groups().map_err(text)?;
        switch.lives(life).map_err(text)
    }

    fn group(&mut self, group: u16, config: Option<&Config>) -> Result<(), String> {
        let counted = config.map(Counted::new);
        self.switch()?.count(group, counted).map_err(text)
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Reply, String> {
        let switch = self.switch()?;
        let frame = to_switch(SWITCH, STRANGER, bytes);
        let ran = switch.run(&frame, 1).map_err(text)?;
        match ran.verdict {
            Verdict::Drop => Ok(Reply::Sent(Vec::new())),
            Verdict::Pass if ran.frame == frame => Ok(Reply::ControlPlane),
            Verdict::Redirect => {
                let copies = switch.copies(&ran.frame, MAX_NODES as u16).map_err(text)?;
                let sent = copies
                    .into_iter()
                    .map(|(by, frame)| sent(by, &frame, &Setup::default()));
                Ok(Reply::Sent(sent.collect::<Result<_, _>>()?).sorted())
            }
            other => Err(format!("it said {other:?}")),
        }
    }

    fn registers(&mut self) -> Result<Vec<QuorumRegister>, String> {
        self.switch()?.quorum_registers().map_err(text)
    }
}
