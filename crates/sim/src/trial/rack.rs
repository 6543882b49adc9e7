//! A rack of nodes that speak one protocol: its states, and what can happen in each.

use super::{Site, Trial};
use crate::driver::{Complaint, System, Unpacked};
use crate::print::{Print, hash};
use crate::site::{Bare, Cache};
use rackmem_proto::engine::{self, Change, Protocols};
use rackmem_proto::flowcc::{HomeConfig, Members};
use rackmem_proto::membership::{View, host};
use rackmem_proto::wire::{Copyset, Dest, Header, NodeId, Record, RequesterId};
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Bytes of a block that nobody has, and records that go into a packet: few,
/// so that lists come in parts.
const BLOCK: u32 = 4096;
const FIT: usize = 2;

/// A packet on its way to a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TrialPacket {
    /// The node.
    pub to: NodeId,
    /// What.
    pub header: Header,
    /// With these behind it.
    pub records: Vec<Record>,
}

/// What may go wrong in one run, how often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Budget {
    /// Packets that are lost.
    pub lose: u8,
    /// Packets that arrive once more.
    pub double: u8,
    /// Ticks while packets are in flight. Those while none is are free.
    pub early: u8,
    /// Nodes that die, but for the last.
    pub die: u8,
}

/// A node of the rack.
#[derive(Clone)]
pub struct TrialNode<P: Trial> {
    /// Its number.
    pub me: NodeId,
    /// Whether it lives.
    pub up: bool,
    /// Commands of its thread that are done.
    pub done: u8,
    /// Whether the next one is under way.
    pub waits: bool,
    site: Site<P>,
}

impl<P: Trial> Deref for TrialNode<P> {
    type Target = Site<P>;

    fn deref(&self) -> &Site<P> {
        &self.site
    }
}

impl<P: Trial> Hash for TrialNode<P> {
    fn hash<H: Hasher>(&self, into: &mut H) {
        (self.me, self.up, self.done, self.waits, &self.part).hash(into);
        self.site.fingerprint(into);
    }
}

/// All of it.
#[derive(Clone, Hash)]
pub struct State<P: Trial> {
    /// The nodes.
    pub nodes: Vec<TrialNode<P>>,
    /// Packets in flight: any may be the next to arrive.
    pub packets: Vec<TrialPacket>,
    epoch: u32,
    left: Budget,
}

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A packet arrives.
    Arrive(usize),
    /// It arrives, and stays in flight.
    Repeat(usize),
    /// It is lost.
    Lose(usize),
    /// A node's thread asks for the next thing.
    Ask(NodeId),
    /// A node has waited for long.
    Tick(NodeId),
    /// A node dies.
    Die(NodeId),
    /// A node learns of the newest epoch.
    Learn(NodeId),
}

impl Move {
    /// Whether a packet arrives.
    pub fn is_arrival(&self) -> bool {
        matches!(self, Move::Arrive(_))
    }
}

impl<P: Trial> TrialNode<P> {
    /// A node of a rack of so many.
    pub fn new(me: NodeId, nodes: NodeId) -> Self {
        let founders = (0..nodes).fold(Copyset::EMPTY, Copyset::with);
        let view = View::first(founders, false);
        // No block is at home here.
        let config = HomeConfig {
            node: me,
            epoch: view.epoch,
            block: BLOCK,
            chunks: 1,
            incarnation: 1,
            migration: None,
            answering: None,
            seed: 0,
        };
        let members = Members {
            epoch: view.epoch,
            founders,
            switch: false,
        };
        let part = P::new(me, members);
        TrialNode {
            me,
            up: true,
            done: 0,
            waits: false,
            site: Site::new(config, (1, 0, FIT), view, Cache::new(1), part),
        }
    }

    /// The epoch that it is in.
    pub fn epoch(&self) -> u32 {
        self.view.epoch
    }

    /// The nodes that founded it.
    pub fn members(&self) -> Copyset {
        self.view.founders
    }

    /// Does something with its site, and what follows from that. What it sends comes back.
    fn with(&mut self, act: impl FnOnce(&mut Site<P>)) -> Vec<TrialPacket> {
        self.site.passed = false;
        act(&mut self.site);
        self.site.proceed();
        if self.site.in_service() {
            self.site.settled = Arc::new(self.site.view);
        }
        if self.site.passed && std::mem::take(&mut self.waits) {
            self.done += 1;
        }
        sent(&mut self.site)
    }

    /// A packet arrives.
    pub fn take(&mut self, packet: &TrialPacket) -> Vec<TrialPacket> {
        let body = Bare::of(packet.records.clone());
        self.with(|site| site.take(&packet.header, body))
    }

    fn tick(&mut self) -> Vec<TrialPacket> {
        self.with(|site| {
            engine::tick(site, false);
            site.recover(|recovery, site| {
                for output in recovery.unacknowledged() {
                    recovery.send_one(&output, site);
                }
            });
        })
    }

    fn ask(&mut self) -> Vec<TrialPacket> {
        self.waits = true;
        let command = P::asks(self.me, self.done);
        self.with(|site| P::command(site, 0, command))
    }

    fn learn(&mut self, epoch: u32, founders: Copyset) -> Vec<TrialPacket> {
        let view = View {
            epoch,
            live: founders,
            founders,
            ..self.view
        };
        let change = Change::between(&self.settled, &view);
        self.with(|site| {
            site.stop(view, &change);
            site.begin(change, Vec::new());
        })
    }
}

/// The rack.
pub struct TrialRack<P: Trial> {
    first: State<P>,
    commands: &'static [u8],
    seen: [bool; 3],
}

impl<P: Trial> TrialRack<P> {
    /// Of nodes whose threads ask for so many things each.
    pub fn new(commands: &'static [u8], budget: Budget) -> Self {
        let nodes = commands.len() as NodeId;
        TrialRack {
            first: State {
                nodes: (0..nodes).map(|me| TrialNode::new(me, nodes)).collect(),
                packets: Vec::new(),
                epoch: 1,
                left: budget,
            },
            commands,
            seen: [false; 3],
        }
    }

    /// Whether a node's thread has something left to do.
    fn asks(&self, node: &TrialNode<P>) -> bool {
        node.done < self.commands[usize::from(node.me)]
    }

    fn quick_moves(&self, state: &State<P>, moves: &mut Vec<Move>) {
        for node in state.nodes.iter().filter(|node| node.up) {
            let asks = !node.waits && self.asks(node) && node.in_service();
            moves.extend((node.epoch() < state.epoch).then_some(Move::Learn(node.me)));
            moves.extend(asks.then_some(Move::Ask(node.me)));
        }
    }
}

impl<P: Trial> Unpacked for State<P> {
    fn fingerprint(&self) -> u128 {
        let mut print = Print::default();
        self.hash(&mut print);
        print.whole()
    }
}

impl<P: Trial> System for TrialRack<P> {
    type State = State<P>;
    type Move = Move;

    fn first(&self) -> State<P> {
        self.first.clone()
    }

    fn moves(&mut self, state: &State<P>) -> Vec<Move> {
        let mut moves = Vec::new();
        let left = state.left;
        for (at, packet) in state.packets.iter().enumerate() {
            if at > 0 && state.packets[at - 1] == *packet {
                continue;
            }
            moves.push(Move::Arrive(at));
            moves.extend((left.double > 0).then_some(Move::Repeat(at)));
            moves.extend((left.lose > 0).then_some(Move::Lose(at)));
        }
        self.quick_moves(state, &mut moves);
        let live = state.nodes.iter().filter(|node| node.up);
        if left.die > 0 && live.clone().count() > 1 {
            moves.extend(live.clone().map(|node| Move::Die(node.me)));
        }
        if state.packets.is_empty() || left.early > 0 {
            let sends = live.filter(|node| !TrialNode::clone(node).tick().is_empty());
            moves.extend(sends.map(|node| Move::Tick(node.me)));
        }
        moves
    }

    fn apply(&mut self, state: &mut State<P>, step: Move) -> Result<(), Complaint> {
        let (epoch, founders) = (state.epoch, live(&state.nodes));
        let node = |node: NodeId| usize::from(node);
        let sent = match step {
            Move::Arrive(at) => {
                let packet = state.packets.remove(at);
                state.nodes[node(packet.to)].take(&packet)
            }
            Move::Repeat(at) => {
                state.left.double -= 1;
                let packet = state.packets[at].clone();
                state.nodes[node(packet.to)].take(&packet)
            }
            Move::Lose(at) => {
                state.left.lose -= 1;
                state.packets.remove(at);
                Vec::new()
            }
            Move::Ask(at) => state.nodes[node(at)].ask(),
            Move::Tick(at) => {
                state.left.early -= u8::from(!state.packets.is_empty());
                state.nodes[node(at)].tick()
            }
            Move::Learn(at) => state.nodes[node(at)].learn(epoch, founders),
            Move::Die(at) => {
                state.left.die -= 1;
                state.epoch += 1;
                self.seen[0] |= state.nodes.iter().any(|node| node.waits);
                self.seen[1] |= state.nodes.iter().any(|node| !node.in_service());
                state.nodes[node(at)].up = false;
                state.packets.retain(|packet| packet.to != at);
                Vec::new()
            }
        };
        let up =
            |packet: &TrialPacket| state.nodes.get(node(packet.to)).is_some_and(|node| node.up);
        state.packets.extend(sent.into_iter().filter(up));
        // Which order this is makes no difference, as long as it is one.
        state.packets.sort_by_cached_key(hash);
        Ok(())
    }

    fn broken(&mut self, state: &State<P>) -> Option<Complaint> {
        self.seen[2] |= self.done(state);
        P::broken(&state.nodes)
    }

    fn done(&self, state: &State<P>) -> bool {
        let ended = |node: &TrialNode<P>| {
            let now = node.epoch() == state.epoch && node.in_service();
            !node.up || now && !self.asks(node)
        };
        state.packets.is_empty() && state.nodes.iter().all(ended)
    }

    fn stuck(&self, state: &State<P>) -> Complaint {
        let waits = state.nodes.iter().filter(|node| node.up && self.asks(node));
        let waits: Vec<NodeId> = waits.map(|node| node.me).collect();
        (
            "every command ends",
            P::NAME,
            format!("nodes {waits:?} wait for ever"),
        )
    }

    fn tell(&self, before: &State<P>, step: &Move) -> Vec<String> {
        let packet = |at: usize| {
            let TrialPacket {
                to,
                header,
                records,
            } = &before.packets[at];
            let (kind, who, seq) = (header.kind.name(), header.requester.node, header.seq.0);
            format!(
                "{kind} of node {who} #{seq} to {to}, {} records",
                records.len()
            )
        };
        vec![match *step {
            Move::Arrive(at) => format!("arrives: {}", packet(at)),
            Move::Repeat(at) => format!("arrives, stays: {}", packet(at)),
            Move::Lose(at) => format!("is lost: {}", packet(at)),
            other => format!("{other:?}"),
        }]
    }

    /// With deaths in the budget, one must have met a command under way,
    /// and one a rebuild if there are two.
    fn seen(&self) -> [Vec<String>; 2] {
        let names = ["died-during-a-command", "died-during-a-rebuild", "ended"];
        let deaths = self.first.left.die;
        let wanted = [deaths > 0, deaths > 1, true];
        let of = |seen: bool| {
            let rows = names.iter().zip(self.seen).zip(wanted);
            rows.filter(|((_, was), wanted)| *was == seen && (seen || *wanted))
                .map(|((name, _), _)| (*name).to_owned())
                .collect()
        };
        [of(true), of(false)]
    }

    fn figures(&self) -> Vec<(&'static str, u64)> {
        vec![(
            "protocols",
            <(P,) as Protocols<Site<P>>>::table().len() as u64,
        )]
    }
}

/// The packets that a site has sent.
fn sent<P: Trial>(site: &mut Site<P>) -> Vec<TrialPacket> {
    let mut sent = Vec::new();
    for (output, records) in site.sent() {
        for (to, header) in output.copies(host) {
            if let Dest::Agent(to) | Dest::Requester(RequesterId { node: to, .. }) = to {
                let records = records.clone();
                sent.push(TrialPacket {
                    to,
                    header,
                    records,
                });
            }
        }
    }
    sent
}

fn live<P: Trial>(nodes: &[TrialNode<P>]) -> Copyset {
    let live = nodes.iter().filter(|node| node.up);
    live.fold(Copyset::EMPTY, |set, node| set.with(node.me))
}
