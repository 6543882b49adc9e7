//! Asking the members of a rack, from outside, what their locks are doing,
//! and which regions there are.

use crate::bytes::window::Window;
use crate::config::{Config, Fabric};
use crate::error::OpenError;
use crate::host::hot::{self, HotBlock};
use crate::host::locks::status::LockStatus;
use crate::host::metrics::ObjectCounts;
use crate::host::objects::telling as objects;
use crate::host::replicated::telling;
use crate::host::rows::{ASK_ROWS, NUMBERED, ROW};
use crate::host::told::{self, ToldFigures};
use crate::membership::{MembershipError, View};
use crate::region::RegionInfo;
use crate::replicated::GroupStatus;
use rackmem_fabric::udp::{self, Peers, UdpPort};
use rackmem_fabric::{Body, Net, Nobody, Port, Receiver};
use rackmem_proto::wire::{Dest, Flags, Header, Kind, NodeId, RequesterId, Seq, Tag};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// How often a node that does not answer is asked.
const TRIES: u32 = 3;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_millis(200);

/// What the nodes of a rack of processes know of their locks: all, or those that somebody is inside
/// or waits for. `None` for a node that has not answered three times in 200 ms each.
///
/// Nodes are asked one after the other, and go on meanwhile: what they tell need not fit together.
///
/// # Errors
/// [`OpenError::Config`] when the fabric is not UDP; [`OpenError::NotOfThisHost`] when no node of
/// the rack has an address of this host.
pub fn inspect(config: &Config, all: bool) -> Result<Vec<Option<Vec<LockStatus>>>, OpenError> {
    let mut outside = Outside::open(config)?;
    let nodes = 0..config.nodes.len() as NodeId;
    let read = |bytes: &[u8]| LockStatus::decode(bytes).map(|lock| (lock, lock.addr));
    Ok(nodes
        .map(|node| outside.ask_all(node, all.into(), LockStatus::LEN, read))
        .collect())
}

/// The regions of a rack of processes and its named locks, as the node has their names that keeps
/// the table, in the order of these: node 0, or with [`Config::copies`] any. `None` when it has not
/// answered three times in 200 ms each. From inside a rack [`Node::regions`](crate::Node::regions)
/// tells.
///
/// # Errors
/// Those of [`inspect`].
pub fn inspect_regions(config: &Config) -> Result<Option<Vec<RegionInfo>>, OpenError> {
    let mut outside = Outside::open(config)?;
    let read = |bytes: &[u8]| {
        let (number, row) = bytes.split_first_chunk::<8>()?;
        let row: &[u8; ROW] = row.try_into().ok()?;
        let words: Vec<AtomicU64> = row
            .chunks_exact(8)
            .map(|word| word.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b)))
            .map(AtomicU64::new)
            .collect();
        let next = u64::from_be_bytes(*number) + 1;
        // One of a later version is not shown.
        Some((RegionInfo::of(&Window::new(&words, 0, ROW)), next))
    };
    // Where nodes have copies of the table, one of them keeps it, and the others tell nothing.
    let nodes = if config.copies() > 0 {
        config.nodes.len()
    } else {
        1
    };
    let told =
        (0..nodes as NodeId).filter_map(|node| outside.ask_all(node, ASK_ROWS, NUMBERED, read));
    let rows = told.reduce(|all, more| if all.is_empty() { more } else { all });
    Ok(rows.map(|rows| {
        let mut regions: Vec<_> = rows.into_iter().flatten().collect();
        regions.sort_by(|a, b| a.spec.name().cmp(b.spec.name()));
        regions
    }))
}

/// The regions with copies of a rack of processes, who keeps these, and how far members are that
/// fill. What members say themselves, over UDP and from a host of the rack, is left out where they
/// do not answer; the rest is what the membership's store has, which may take `within` to answer.
///
/// # Errors
/// [`MembershipError::Fixed`] where the rack has no such store, and the store's own.
pub fn inspect_groups(config: &Config, within: Duration) -> Result<Vec<GroupStatus>, OpenError> {
    let members = &config.membership;
    let store = members.source.open(&members.name)?;
    let store = store.ok_or(MembershipError::Fixed)?;
    let groups = store.groups(within)?.unwrap_or_default();
    let view: Option<View> = store.load(within)?.roster.map(|roster| roster.view);
    let live = |node| Some(u64::from(view.as_ref()?.incarnation(node)?));
    let mut told = GroupStatus::all(&groups, live);
    let Ok(mut outside) = Outside::open(config) else {
        return Ok(told);
    };
    for node in 0..config.nodes.len() as NodeId {
        let keeps = |group: &GroupStatus| group.copies.iter().any(|c| c.node == node && c.live);
        let serves = view.is_some_and(|view| view.keeper() == Some(node));
        if !serves && !told.iter().any(keeps) {
            continue;
        }
        let read = |record: &[u8]| {
            let told = telling::decode(record)?;
            Some((told, u64::from(told.0) + 1))
        };
        let kept = outside.ask_all(node, telling::ASK_GROUPS, telling::RECORD, read);
        for (group, kept, sweep) in kept.into_iter().flatten() {
            let group = told.iter_mut().find(|told| told.number == group);
            if let Some(group) = group {
                kept.iter().for_each(|kept| group.add(node, kept));
                sweep.into_iter().for_each(|sweep| group.sweeps(sweep));
            }
        }
    }
    Ok(told)
}

/// What each node of a rack of processes has done with objects, and which ways its reads go;
/// nothing of those that do not answer. Over UDP, and from a host of the rack.
///
/// # Errors
/// [`OpenError::Config`] where nodes cannot be asked so.
pub fn inspect_objects(config: &Config) -> Result<Vec<Option<ObjectCounts>>, OpenError> {
    let mut outside = Outside::open(config)?;
    let read = |record: &[u8]| Some((objects::decode(record)?, 1));
    let nodes = 0..config.nodes.len() as NodeId;
    let told = nodes.map(|node| {
        let told = outside.ask_all(node, objects::ASK_OBJECTS, objects::RECORD, read);
        told.and_then(|told| told.into_iter().next())
    });
    Ok(told.collect())
}

/// What each node of a rack of processes counts; nothing of those that do not answer, or are of
/// another version of this library. Over UDP, and from a host of the rack.
///
/// # Errors
/// [`OpenError::Config`] where nodes cannot be asked so.
pub fn inspect_figures(config: &Config) -> Result<Vec<Option<ToldFigures>>, OpenError> {
    let mut outside = Outside::open(config)?;
    let read = |record: &[u8]| {
        let told = told::decode(record)?;
        Some((told, u64::from(told.0) + 1))
    };
    let nodes = 0..config.nodes.len() as NodeId;
    let told = nodes.map(|node| outside.ask_all(node, told::ASK_FIGURES, told::RECORD, read));
    Ok(told
        .map(|told| told.map(ToldFigures::from_places))
        .collect())
}

/// The blocks that each node of a rack of processes misses most, as
/// [`Node::hot_blocks`](crate::Node::hot_blocks); nothing of those that do not answer. Over UDP,
/// and from a host of the rack.
///
/// # Errors
/// [`OpenError::Config`] where nodes cannot be asked so.
pub fn inspect_hot(config: &Config) -> Result<Vec<Option<Vec<HotBlock>>>, OpenError> {
    let mut outside = Outside::open(config)?;
    let read = |record: &[u8]| {
        let (at, hot) = hot::decode(record)?;
        Some((hot, at + 1))
    };
    let nodes = 0..config.nodes.len() as NodeId;
    Ok(nodes
        .map(|node| outside.ask_all(node, hot::ASK_HOT, hot::RECORD, read))
        .collect())
}

/// A port to a rack's nodes, of a process that is none of them.
struct Outside {
    near: NodeId,
    port: UdpPort,
}

/// One page of an answer.
struct Page {
    from: NodeId,
    seq: Seq,
    bytes: Option<Vec<u8>>,
    more: bool,
}

impl Receiver for Page {
    fn receive(&mut self, header: &Header, body: Body<'_>) {
        let wanted = (header.kind, header.sender, header.seq);
        if wanted != (Kind::Inspected, self.from, self.seq) {
            return;
        }
        self.bytes = Some(match body {
            Body::Bytes(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        });
        self.more = header.flags.has(Flags::DATA);
    }
}

impl Outside {
    fn open(config: &Config) -> Result<Self, OpenError> {
        if config.fabric != Fabric::Udp {
            return Err(OpenError::Config(
                "only the members of a UDP rack can be asked from outside: in a program, `Node::locks` and `Node::regions` tell".into(),
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
        match ports.find(|(_, port)| port.is_ok()) {
            Some((near, port)) => Ok(Outside { near, port: port? }),
            None => Err(OpenError::NotOfThisHost),
        }
    }

    /// Everything that a node tells, page by page. `read` makes of one of its records what it is,
    /// and where the next one is to begin: behind what came before.
    fn ask_all<T>(
        &mut self,
        node: NodeId,
        what: u32,
        record: usize,
        read: impl Fn(&[u8]) -> Option<(T, u64)>,
    ) -> Option<Vec<T>> {
        let (mut known, mut after, mut seq) = (Vec::new(), 0, Seq(0));
        loop {
            seq = Seq(seq.0.wrapping_add(1));
            let page = self.ask(node, what, after, seq)?;
            let records: Option<Vec<_>> = page.0.chunks(record).map(&read).collect();
            let before = after;
            for (told, next) in records? {
                known.push(told);
                after = next;
            }
            // It rises, so this ends.
            if !page.1 || after <= before {
                return Some(known);
            }
        }
    }

    /// One page, and whether more follow.
    fn ask(&mut self, node: NodeId, what: u32, after: u64, seq: Seq) -> Option<(Vec<u8>, bool)> {
        let me = RequesterId {
            node: self.near,
            slot: 0,
        };
        let mut header = Header::request(Kind::Inspect, 0, Tag(after), me, seq);
        header.offset = what;
        header.reply_port = self.port.reply_port();
        let mut page = Page {
            from: node,
            seq,
            bytes: None,
            more: false,
        };
        for _ in 0..TRIES {
            self.port
                .send(Dest::Agent(node), &header, Body::None, &mut Nobody);
            let asked = Instant::now();
            while page.bytes.is_none() && asked.elapsed() < PATIENCE {
                let left = PATIENCE.saturating_sub(asked.elapsed());
                self.port.wait(left, &mut page);
            }
            if page.bytes.is_some() {
                break;
            }
        }
        Some((page.bytes?, page.more))
    }
}
