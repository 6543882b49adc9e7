//! A network that is late: locks change hands on it as fast as it lets them, and what nodes ask
//! again does not make it worse.
//!
//! Nodes and a directory at the home or the switch, as they ship,
//! by a clock of milliseconds that nobody waits for.

use rackmem_proto::engine::{AtHome, LOCKS, LockFx, LockPart, NodeLock};
use rackmem_proto::gcp::{Access, Body, Entered, Region, Regions};
use rackmem_proto::membership::host;
use rackmem_proto::switch::{LockConfig, LockProgram};
use rackmem_proto::wire::{Dest, Header, Kind, NodeId, Tag};
use std::collections::VecDeque;

const EPOCH: u32 = 1;
const HOME: NodeId = 1;
const LEN: u32 = 64;
const ENTRIES: u32 = 6;

/// A packet, and when it arrives.
struct LatePacket {
    at: u32,
    to: Dest,
    header: Header,
    body: Body,
}

/// What a section has done.
#[derive(Default)]
struct Fx {
    sent: Vec<(Dest, Header, Body)>,
    inside: bool,
}

impl LockFx for Fx {
    type Seat = ();

    fn store(&mut self, _: &Header) {}
    fn install(&mut self, _: bool) {}
    fn clear(&mut self) {}
    fn send(&mut self, to: Dest, header: &Header, body: &Body) {
        self.sent.push((to, *header, body.clone()));
    }
    fn inside(&mut self, (): (), _: Entered, _: bool) {
        self.inside = true;
    }
    fn send_away(&mut self, (): ()) {}
}

struct LateNode {
    lock: NodeLock<()>,
    /// Entries to come.
    left: u32,
    /// When the thread that is inside leaves.
    leaves: Option<u32>,
    waits: bool,
}

struct LateRack {
    nodes: Vec<LateNode>,
    switch: Option<LockProgram>,
    now: u32,
    delay: u32,
    /// In the order in which they arrive: all are equally late.
    flying: VecDeque<LatePacket>,
    sent: u32,
}

impl LateRack {
    fn new(nodes: NodeId, switch: bool, delay: u32) -> LateRack {
        let tag = Tag(u64::from(HOME) << 48 | (LOCKS as u64) << Tag::OFFSET_BITS | 0x1000);
        let region = Region {
            addr: tag.0,
            len: LEN,
        };
        let node = |node| LateNode {
            lock: NodeLock::new(
                tag,
                Regions::new(&[region]).unwrap(),
                LockPart {
                    node,
                    epoch: EPOCH,
                    switch,
                    cohort: 16,
                    implicit: false,
                    home: AtHome::of(node, tag),
                },
                None,
            ),
            left: ENTRIES,
            leaves: None,
            waits: false,
        };
        let config = LockConfig {
            epoch: EPOCH,
            ways: 1,
            sets: 1,
        };
        LateRack {
            nodes: (0..nodes).map(node).collect(),
            switch: switch.then(|| LockProgram::new(config)),
            now: 0,
            delay,
            flying: VecDeque::new(),
            sent: 0,
        }
    }

    fn send(&mut self, to: Dest, header: Header, body: Body) {
        self.sent += 1;
        self.flying.push_back(LatePacket {
            at: self.now + self.delay,
            to,
            header,
            body,
        });
    }

    fn section(&mut self, node: usize, act: impl FnOnce(&mut NodeLock<()>, &mut Fx)) {
        let (now, mut fx) = (self.now, Fx::default());
        let at = &mut self.nodes[node];
        act(&mut at.lock, &mut fx);
        at.lock.await_news(|| now);
        if fx.inside {
            (at.waits, at.leaves) = (false, Some(now + 1));
        }
        for (to, header, body) in fx.sent {
            let output = rackmem_proto::Output::new(to, header);
            for (to, header) in output.copies(host) {
                self.send(to, header, body.clone());
            }
        }
    }

    fn arrive(&mut self, packet: &LatePacket) {
        match packet.to {
            Dest::Switch => {
                let switch = self.switch.as_mut().expect("a switch");
                let outputs = switch.handle(&packet.header);
                for (to, header) in outputs.iter().flat_map(|output| output.copies(host)) {
                    self.send(to, header, Body::None);
                }
            }
            Dest::Agent(node) => {
                let gives = packet.header.kind == Kind::Give;
                let records: Vec<_> = match &packet.body {
                    Body::Queue(queue) => queue.records().collect(),
                    _ => Vec::new(),
                };
                let len = if gives { LEN } else { 0 };
                self.section(usize::from(node), |lock, fx| {
                    lock.packet(&packet.header, (len, &records), fx);
                });
            }
            to => panic!("{to:?}"),
        }
    }

    fn tick(&mut self) {
        self.now += 1;
        let now = self.now;
        while self.flying.front().is_some_and(|packet| packet.at <= now) {
            let packet = self.flying.pop_front().expect("looked");
            self.arrive(&packet);
        }
        for node in 0..self.nodes.len() {
            let at = &mut self.nodes[node];
            if at.leaves.is_some_and(|leaves| leaves <= now) {
                (at.leaves, at.left) = (None, at.left - 1);
                self.section(node, |lock, fx| lock.leave(Access::Write, fx));
            }
            let at = &mut self.nodes[node];
            if at.left > 0 && at.leaves.is_none() && !at.waits {
                at.waits = true;
                self.section(node, |lock, fx| lock.enter((), Access::Write, fx));
            }
            if self.nodes[node].lock.due(|| now) {
                self.section(node, |lock, fx| {
                    lock.retry(fx);
                });
            }
        }
    }

    fn over(&self) -> bool {
        self.nodes.iter().all(|node| node.left == 0)
    }
}

#[test]
fn locks_change_hands_on_a_late_network_and_what_is_asked_again_dies_down() {
    for (nodes, switch) in [(2, false), (3, false), (2, true), (3, true), (8, true)] {
        for delay in [1, 10, 100, 300, 1_000] {
            let mut rack = LateRack::new(nodes, switch, delay);
            let what = format!("{nodes} nodes, switch: {switch}, {delay} ms a hop");
            let entries = u32::from(nodes) * ENTRIES;
            // An entry is some trips, of which some are in vain, and a millisecond inside.
            let bound = entries * (16 * delay + 2);
            while !rack.over() && rack.now < bound {
                rack.tick();
            }
            assert!(rack.over(), "{what}: {bound} ms were not enough");
            // Each request is doubled as often as pauses double while it is under way.
            let copies = 2 + (4 * delay).ilog2();
            let each = rack.sent / entries;
            assert!(each <= 6 * copies, "{what}: {each} packets an entry");
            (0..20 * delay).for_each(|_| rack.tick());
            let before = rack.sent;
            (0..20 * delay).for_each(|_| rack.tick());
            assert_eq!(rack.sent, before, "{what}: traffic does not die down");
        }
    }
}
