//! Asking the members of a rack, from outside, what their locks are doing.

use crate::config::{Config, Fabric};
use crate::error::{Error, Result};
use crate::host::locks::status::LockStatus;
use rackmem_fabric::udp::{self, Peers, UdpPort};
use rackmem_fabric::{Body, Net, Nobody, Port, Receiver};
use rackmem_proto::wire::{Dest, Flags, Header, Kind, NodeId, RequesterId, Seq, Tag};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a node that does not answer is asked.
const TRIES: u32 = 3;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_millis(200);

/// What the nodes of a rack of processes know of their locks: all, or those that somebody is inside or waits for. `None` for
/// a node that has not answered three times in 200 ms each.
///
/// Nodes are asked one after the other, and go on meanwhile: what they tell need not fit together.
///
/// # Errors
/// [`Error::Config`] when the fabric is not UDP; [`Error::Io`] when no node of the rack has an address of this host.
pub fn inspect(config: &Config, all: bool) -> Result<Vec<Option<Vec<LockStatus>>>> {
    if config.fabric != Fabric::Udp {
        return Err(Error::Config(
            "only the members of a UDP rack can be asked from outside: in a program, `Node::locks` tells".into(),
        ));
    }
    let mtu = config.settings.mtu;
    let mtu = mtu.or_else(|| config.nodes.first().map(|addr| udp::path_mtu(addr.ip())));
    let peers = Arc::new(Peers {
        switch: None,
        agents: config.nodes.clone(),
        mtu: mtu.unwrap_or(1500),
    });
    // Answers go to the address of a node.
    let mut ports = (0..config.nodes.len())
        .map(|id| (id as NodeId, UdpPort::open(id as NodeId, peers.clone())));
    let (near, mut port) = match ports.find(|(_, port)| port.is_ok()) {
        Some((near, port)) => (near, port?),
        None => {
            let text =
                "this host has none of the rack's addresses: ask on a host of one of its nodes";
            return Err(std::io::Error::other(text).into());
        }
    };
    let nodes = 0..config.nodes.len() as NodeId;
    Ok(nodes.map(|node| ask(&mut port, near, node, all)).collect())
}

/// One page of an answer.
struct Page {
    from: NodeId,
    seq: Seq,
    locks: Option<Vec<LockStatus>>,
    more: bool,
}

impl Receiver for Page {
    fn receive(&mut self, header: &Header, body: Body<'_>) {
        let wanted = (header.kind, header.sender, header.seq);
        if wanted != (Kind::Inspected, self.from, self.seq) {
            return;
        }
        let bytes = match body {
            Body::Bytes(bytes) => bytes,
            _ => &[],
        };
        let locks = bytes.chunks(LockStatus::LEN).map(LockStatus::decode);
        self.locks = locks.collect();
        self.more = header.flags.has(Flags::DATA);
    }
}

fn ask(port: &mut UdpPort, near: NodeId, node: NodeId, all: bool) -> Option<Vec<LockStatus>> {
    let me = RequesterId {
        node: near,
        slot: 0,
    };
    let (mut known, mut seq) = (Vec::<LockStatus>::new(), Seq(0));
    loop {
        let after = known.last().map_or(0, |lock| lock.addr);
        seq = Seq(seq.0.wrapping_add(1));
        let mut header = Header::request(Kind::Inspect, 0, Tag(after), me, seq);
        header.offset = all.into();
        header.reply_port = port.reply_port();
        let mut page = Page {
            from: node,
            seq,
            locks: None,
            more: false,
        };
        for _ in 0..TRIES {
            port.send(Dest::Agent(node), &header, Body::None, &mut Nobody);
            let asked = Instant::now();
            while page.locks.is_none() && asked.elapsed() < PATIENCE {
                port.wait(PATIENCE.saturating_sub(asked.elapsed()), &mut page);
            }
            if page.locks.is_some() {
                break;
            }
        }
        let locks = page.locks?;
        // Addresses rise, so this ends.
        let more = page.more && locks.last().is_some_and(|lock| lock.addr > after);
        known.extend(locks);
        if !more {
            return Some(known);
        }
    }
}
