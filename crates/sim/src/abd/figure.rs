//! CNVMM's Fig. 3 by a model: how long a page takes that comes from replicated memory.
//!
//! The roles are the shipped ones: a client's operations, members, and the switch that counts.
//! Around them are costs: cables of 10 Gb/s on which one packet goes at a time, a switch, memories,
//! and one constant of the client's host. That one is fitted to the paper's median of one kind of
//! fetch; all else is predicted. The paper tells neither how a page of 4 KiB is fetched, by 64
//! lines or as one, nor what its controller, driver and boards cost each,
//! so the model says nothing of these. There is no noise in it:
//! what differs between fetches is who waits for whom.

use rackmem_proto::Output;
use rackmem_proto::abd::{
    Abd, Body, Command, Config, Effects, Layout, MIN_LINE, Member, Outcome, Replica, Staging,
    Stamp, first_line,
};
use rackmem_proto::membership::host;
use rackmem_proto::switch::{Carries, Counted, QuorumProgram};
use rackmem_proto::wire::{
    Dest, Flags, HEADER_LEN, Header, MAX_REQUESTERS, NodeId, OWN_LEN, Own, Tag, segment_len,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nanoseconds.
pub type Time = u64;

/// What CNVMM reports: a page from replicated memory, and a line from local memory.
pub const PAPER_MEDIAN: Time = 18_000;
/// See [`PAPER_MEDIAN`].
pub const PAPER_LOCAL: Time = 3_000;

/// Bytes of a page.
const PAGE: u32 = 4096;
/// Bytes around a packet on a cable: preamble, Ethernet with its checksum, gap, IP and UDP.
const CARRIER: u64 = 8 + 18 + 12 + 28;
/// Bytes of a packet's body.
const ROOM: u32 = 1472 - HEADER_LEN as u32;

/// What is modelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Members.
    pub copies: NodeId,
    /// Whether the switch counts; else the client does.
    pub counts: bool,
    /// Bytes of a line; the lines of a page are asked for at once.
    pub line: u32,
    /// Pages that each client asks for at a time.
    pub pages: usize,
    /// Clients.
    pub clients: NodeId,
    /// Writes them, and not reads.
    pub writes: bool,
    /// One of the memories takes so much longer than the others.
    pub slow: Option<(NodeId, Time)>,
    /// The client's fault, driver and interrupt: the fitted constant.
    pub host: Time,
}

/// A cable of 10 Gb/s, ten nanoseconds long.
const CABLE: Time = 10;
const fn on_the_wire(bytes: u64) -> Time {
    bytes * 8 / 10
}
/// From the end of a packet at the switch to its beginning behind it.
const SWITCH: Time = 700;
/// A memory, which is an FPGA that has the whole packet before it answers.
const MEMORY: Time = 1_000;

impl Setup {
    /// The paper's rack: three memories, a switch that counts, one page at a time, as one line.
    /// The host's constant is what makes its median the paper's.
    pub fn paper() -> Setup {
        let bare = Setup {
            copies: 3,
            counts: true,
            line: PAGE,
            pages: 1,
            clients: 1,
            writes: false,
            slow: None,
            host: 0,
        };
        let network = run(&bare, 1).median;
        Setup {
            host: PAPER_MEDIAN.saturating_sub(network),
            ..bare
        }
    }
}

/// How long pages took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Half of them took no longer.
    pub median: Time,
    /// 99% of them took no longer.
    pub p99: Time,
}

/// A case, and what the paper says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// What is modelled.
    pub setup: Setup,
    /// What came of it.
    pub taken: Taken,
    /// The paper's median.
    pub paper: Option<Time>,
}

/// The figure, and what the model predicts beside it.
pub fn rows() -> Vec<Row> {
    let paper = Setup::paper();
    let slow = |node| Setup {
        slow: Some((node, 20_000)),
        ..paper
    };
    let (lines, counts, copies) = (MIN_LINE, false, 5);
    let lines = Setup {
        line: lines,
        ..paper
    };
    let many = Setup {
        clients: 16,
        pages: 10,
        ..paper
    };
    let writes = Setup {
        writes: true,
        ..paper
    };
    let cases = [
        ("three memories", paper, Some(PAPER_MEDIAN)),
        ("in 64 lines of 64 bytes", lines, None),
        ("the client counts", Setup { counts, ..paper }, None),
        ("five memories", Setup { copies, ..paper }, None),
        ("the memory that sends it is 20 us slower", slow(0), None),
        ("another memory is 20 us slower", slow(1), None),
        ("a page is written", writes, None),
        ("16 clients of 10 pages each", many, None),
    ];
    let row = |(name, setup, paper)| Row {
        name,
        setup,
        taken: run(&setup, 200),
        paper,
    };
    cases.into_iter().map(row).collect()
}

/// What happens at a time.
enum Event {
    /// A client asks for a page.
    Fault(usize, usize),
    /// A packet is at the switch, which is to handle it or only to pass it on.
    Switch(Dest, InFlight),
    /// A packet is at a node.
    Node(NodeId, InFlight),
    /// A node has taken it.
    Taken(NodeId, InFlight),
}

#[derive(Clone, Copy)]
struct InFlight {
    header: Header,
    own: Own,
    len: u32,
}

/// What a section wants sent, and which slots have ended.
#[derive(Default)]
struct Fx {
    line: u32,
    sent: Vec<(Dest, InFlight)>,
    ended: Vec<u8>,
}

impl Effects for Fx {
    fn stage(&mut self, _: Staging) {}
    fn commit(&mut self, _: Staging, _: Tag, _: Stamp) {}
    fn gather(&mut self, _: u8) {}

    fn send(&mut self, to: Dest, header: &Header, own: Own, body: Body<'_>) {
        let mut header = *header;
        let mut packet = |header, len| self.sent.push((to, InFlight { header, own, len }));
        if matches!(body, Body::Nothing | Body::Records(_)) {
            return packet(header, 0);
        }
        let segment = segment_len(self.line, ROOM - OWN_LEN as u32);
        header.flags = header.flags.and(Flags::DATA);
        for offset in (0..self.line).step_by(segment.max(1) as usize) {
            header.offset = offset;
            packet(header, segment.min(self.line - offset));
        }
    }

    fn done(&mut self, slot: u8, outcome: Outcome) {
        debug_assert!(!matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
        self.ended.push(slot);
    }
}

/// A rack at work.
struct Model {
    setup: Setup,
    /// Members first, clients behind them.
    nodes: Vec<Abd>,
    switch: QuorumProgram,
    /// When the cable to each node is free, and that from it.
    free: Vec<[Time; 2]>,
    now: Time,
    /// What happens when: its place in `events`.
    agenda: BinaryHeap<Reverse<(Time, usize)>>,
    events: Vec<Option<Event>>,
    /// By client and slot: which page of the client's its line is of.
    slots: Vec<Vec<usize>>,
    /// By client and page under way: when it began, and lines that are missing.
    pages: Vec<Vec<(Time, u32)>>,
    taken: Vec<Time>,
}

fn run(setup: &Setup, pages: usize) -> Taken {
    let mut model = Model::new(*setup);
    let wanted = pages * usize::from(setup.clients) * setup.pages;
    for client in 0..usize::from(setup.clients) {
        for page in 0..setup.pages {
            model.begin(client, page);
        }
    }
    while model.taken.len() < wanted && model.step() {}
    let mut taken = model.taken;
    taken.sort_unstable();
    let at = |percent: usize| taken[(taken.len() - 1) * percent / 100];
    Taken {
        median: at(50),
        p99: at(99),
    }
}

impl Model {
    fn new(setup: Setup) -> Self {
        let members: Vec<Member> = (0..setup.copies)
            .map(|node| Member { node, life: 1 })
            .collect();
        // One, three, five or seven different ones.
        let config = Config::first(&members).unwrap_or_else(|why| panic!("{why:?}"));
        let config = Config {
            through_switch: setup.counts,
            ..config
        };
        let layout = Layout {
            line: setup.line,
            bytes: u64::from(PAGE) << 10,
        };
        let mut switch = QuorumProgram::new(MAX_REQUESTERS, 1);
        if setup.counts {
            switch.count(0, Some(Counted::new(&config)));
        }
        let nodes = (0..setup.copies + setup.clients).map(|node| {
            let mut abd = Abd::new(node, 1);
            if node < setup.copies {
                abd.keep(0, 1, Replica::new(false));
            }
            abd.learn(0, layout, &config, &mut Fx::default());
            abd
        });
        let nodes: Vec<Abd> = nodes.collect();
        let clients = usize::from(setup.clients);
        Model {
            free: vec![[0; 2]; nodes.len()],
            nodes,
            switch,
            setup,
            now: 0,
            agenda: BinaryHeap::new(),
            events: Vec::new(),
            slots: vec![vec![0; MAX_REQUESTERS]; clients],
            pages: vec![vec![(0, 0); setup.pages]; clients],
            taken: Vec::new(),
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.agenda.push(Reverse((time, self.events.len())));
        self.events.push(Some(event));
    }

    /// A client comes to a page that it has not got. Half of what its host takes is before the
    /// first packet, half behind the last.
    fn begin(&mut self, client: usize, page: usize) {
        self.pages[client][page] = (self.now, PAGE / self.setup.line);
        let asks = self.now + self.setup.host / 2;
        self.at(asks, Event::Fault(client, page));
    }

    /// It asks for the lines of the page: each in a slot of its own.
    fn fault(&mut self, client: usize, page: usize) {
        let lines = (PAGE / self.setup.line) as usize;
        for slot in page * lines..(page + 1) * lines {
            self.slots[client][slot] = page;
            let line = Tag(first_line(0).0 + slot as u64 * u64::from(self.setup.line));
            let command = match self.setup.writes {
                true => Command::Write(line),
                false => Command::Read(line),
            };
            let node = self.setup.copies + client as NodeId;
            self.section(node, |abd, fx| abd.command(slot as u8, command, fx));
        }
    }

    fn section(&mut self, node: NodeId, act: impl FnOnce(&mut Abd, &mut Fx)) {
        let mut fx = Fx {
            line: self.setup.line,
            ..Fx::default()
        };
        act(&mut self.nodes[usize::from(node)], &mut fx);
        for (to, packet) in fx.sent {
            let there = self.over(usize::from(node), 0, &packet);
            self.at(there, Event::Switch(to, packet));
        }
        for slot in fx.ended {
            let client = usize::from(node - self.setup.copies);
            let page = self.slots[client][usize::from(slot)];
            let (began, missing) = self.pages[client][page];
            self.pages[client][page].1 = missing - 1;
            if missing == 1 {
                let done = self.now + self.setup.host - self.setup.host / 2;
                self.taken.push(done - began);
                let now = std::mem::replace(&mut self.now, done);
                self.begin(client, page);
                self.now = now;
            }
        }
    }

    /// When a packet that goes to a cable now is at its other end.
    fn over(&mut self, node: usize, way: usize, packet: &InFlight) -> Time {
        let bytes = CARRIER + (HEADER_LEN + OWN_LEN) as u64 + u64::from(packet.len);
        let free = &mut self.free[node][way];
        *free = self.now.max(*free) + on_the_wire(bytes);
        *free + CABLE
    }

    /// The next thing that happens. False: there is none.
    fn step(&mut self) -> bool {
        let Some(Reverse((now, at))) = self.agenda.pop() else {
            return false;
        };
        self.now = now;
        match self.events[at].take() {
            None => {}
            Some(Event::Fault(client, page)) => self.fault(client, page),
            Some(Event::Switch(to, packet)) => self.at_switch(to, packet),
            Some(Event::Node(node, packet)) => {
                let slow = self.setup.slow.filter(|(slow, _)| *slow == node);
                let takes = match node < self.setup.copies {
                    true => MEMORY + slow.map_or(0, |(_, more)| more),
                    false => 0,
                };
                self.at(now + takes, Event::Taken(node, packet));
            }
            Some(Event::Taken(node, InFlight { header, own, len })) => {
                self.section(node, |abd, fx| abd.packet(&header, &own, (len, &[]), fx));
            }
        }
        true
    }

    fn at_switch(&mut self, to: Dest, packet: InFlight) {
        let InFlight { header, own, len } = packet;
        let left = match to {
            Dest::Switch => self.switch.handle(&header, &own, &[]),
            to => Some((to, header, own, Carries::WhatCame)),
        };
        let Some((to, leaves, own, _)) = left else {
            return;
        };
        for (to, header) in Output::new(to, leaves).copies(host) {
            let Dest::Agent(node) = to else { continue };
            let packet = InFlight { header, own, len };
            let there = SWITCH + self.over(usize::from(node), 1, &packet);
            self.at(there, Event::Node(node, packet));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_median_is_fitted_and_its_tail_is_predicted() {
        let rows = rows();
        let first = &rows[0];
        assert_eq!(first.taken.median, PAPER_MEDIAN);
        // "The latency is pretty stable around 18 us."
        assert!(first.taken.p99 * 10 <= first.taken.median * 12, "{first:?}");
        // A host that takes no time, or all of it, would explain nothing.
        assert!((PAPER_LOCAL..PAPER_MEDIAN).contains(&first.setup.host));
    }

    #[test]
    fn what_is_predicted_follows_from_what_is_modelled() {
        let rows = rows();
        let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap().taken;
        let paper = rows[0].taken;
        // Headers of 64 lines take longer than the page.
        assert!(of("in 64 lines of 64 bytes").median > paper.median);
        // A majority is enough: who waits for one slow memory takes 20 us more.
        let slow = of("another memory is 20 us slower").median;
        assert!(slow < paper.median + 10_000, "{slow}");
        let slow = of("the memory that sends it is 20 us slower").median;
        assert!(slow >= paper.median + 20_000, "{slow}");
        // A write takes two rounds, of which one has the page.
        assert!(of("a page is written").median > paper.median);
        // The memory that sends has a cable for 160 pages at once.
        assert!(of("16 clients of 10 pages each").median > 2 * paper.median);
    }
}
