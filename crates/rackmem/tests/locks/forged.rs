//! Forged and repeated packets of the present epoch, from a socket that is no member's.

use crate::deaths::Cluster;
use rackmem::locked::RwLockArray;
use rackmem::{Node, Rack, Shared};
use rackmem_proto::gcp::{first, with_version};
use rackmem_proto::wire::{
    Contract, Copyset, Flags, GlobalStatus, Header, Kind, OWN_LEN, Reason, Record, RequesterId,
    Seq, Tag, decode, encode,
};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const LOCKS: usize = 8;
const LONG: Duration = Duration::from_secs(60);
/// What a storm sends in the time of a few round trips. Nodes that ask again for what does not come
/// send a few packets in 64 ms.
const STORM: u64 = 5_000;

/// Somebody who knows the rack's addresses and its epoch.
struct Forger {
    socket: UdpSocket,
    nodes: Vec<SocketAddr>,
    switch: SocketAddr,
    epoch: u32,
}

impl Forger {
    fn header(&self, kind: Kind, tag: Tag, node: u16, ahead: u64) -> Header {
        let requester = RequesterId { node, slot: 0 };
        let header = Header::request(kind, self.epoch, tag, requester, Seq(0));
        with_version(header, first(self.epoch) + ahead)
    }

    fn send(&self, to: SocketAddr, header: &Header, body: &[u8]) {
        let mut packet = encode(header, body.len()).to_vec();
        packet.extend_from_slice(body);
        self.socket.send_to(&packet, to).unwrap();
    }
}

fn received(nodes: &[Node], switch: &Rack) -> u64 {
    let agents = nodes.iter().map(|node| node.metrics().received.total());
    agents.sum::<u64>() + switch.switch().unwrap().received().total()
}

/// Waits until the rack's traffic has died down.
fn quiet(nodes: &[Node], switch: &Rack) {
    crate::until(|| {
        let before = received(nodes, switch);
        std::thread::sleep(Duration::from_millis(200));
        received(nodes, switch) - before < STORM / 5
    });
    // And stays so.
    let before = received(nodes, switch);
    std::thread::sleep(Duration::from_secs(1));
    let more = received(nodes, switch) - before;
    assert!(
        more < STORM,
        "{more} packets of a rack whose threads do nothing"
    );
}

struct Attacked {
    _cluster: Cluster,
    switch: Rack,
    _racks: [Rack; 3],
    nodes: Vec<Node>,
    arrays: Vec<RwLockArray>,
    first: u64,
    forger: Forger,
}

impl Attacked {
    fn new(name: &str) -> Attacked {
        let cluster = Cluster::new(name, "udp");
        let (switch, racks) = cluster.start();
        let nodes: Vec<Node> = (0..3).map(|id| racks[id].node(id)).collect();
        let first = nodes[0]
            .alloc_bytes_on(1, LOCKS * RwLockArray::STRIDE)
            .unwrap();
        let attach = |node| RwLockArray::attach(node, first, LOCKS, 64).unwrap();
        let forger = Forger {
            // Answers go to a member's address.
            socket: UdpSocket::bind((cluster.config.nodes[0].ip(), 0)).unwrap(),
            nodes: cluster.config.nodes.clone(),
            switch: cluster.config.switch.unwrap(),
            epoch: nodes[0].epoch(),
        };
        let attacked = Attacked {
            arrays: nodes.iter().map(attach).collect(),
            _cluster: cluster,
            switch,
            _racks: racks,
            nodes,
            first,
            forger,
        };
        for node in [2, 1, 0] {
            (0..LOCKS).for_each(|index| attacked.write(node, index));
        }
        attacked
    }

    fn tag(&self, index: usize) -> Tag {
        let memory = self.first + (index * RwLockArray::STRIDE) as u64;
        Tag(memory).under(Contract::Locked)
    }

    fn write(&self, node: usize, index: usize) {
        let held = self.arrays[node].write_within(index, LONG);
        assert!(
            held.unwrap().is_some(),
            "node {node} has waited for lock {index} in vain"
        );
    }
}

/// A holder that has heard of a request which no directory has numbered asked for its release to be
/// approved for ever, some 200,000 times a second, and nobody got the lock any more.
#[test]
fn a_request_that_nobody_made_causes_no_storm() {
    let rack = Attacked::new("forged-wait");
    let mut all = Vec::new();
    for index in 0..LOCKS {
        let held = rack.arrays[0].write_within(index, LONG).unwrap();
        all.push(held.expect("the lock comes"));
        let mut wait = rack
            .forger
            .header(Kind::Wait, rack.tag(index), 2, 1_000_000);
        wait.status = GlobalStatus::Modified;
        for _ in 0..3 {
            rack.forger.send(rack.forger.nodes[0], &wait, &[]);
        }
    }
    let came = || rack.nodes[0].metrics().received;
    let waits = || came().0.iter().find(|row| row.0 == Kind::Wait).unwrap().1;
    crate::until(|| waits() >= LOCKS as u64);
    drop(all);
    quiet(&rack.nodes, &rack.switch);
    for node in [2, 0, 1] {
        (0..LOCKS).for_each(|index| rack.write(node, index));
    }
}

/// A node that has forgotten a lock is served by a late copy of what it asked for once: it takes
/// the lock, and gives it away again.
#[test]
fn a_late_request_for_a_forgotten_lock_keeps_nobody_waiting() {
    let mut rack = Attacked::new("forged-late");
    let homes = &rack.arrays[1];
    (0..LOCKS).for_each(|index| rack.write(1, index));
    crate::until(|| {
        // The home tells those whom it knows to be members by then.
        (0..LOCKS).for_each(|index| homes.tell_home(index));
        rack.nodes[2].idle_locks() == LOCKS
    });
    drop(rack.arrays.pop());
    crate::until(|| {
        rack.nodes[2].forget_locks();
        rack.nodes[2].lock_metrics().known == 0
    });
    let came = || rack.nodes[2].metrics().received.total();
    for index in 0..LOCKS {
        let before = came();
        let tag = rack.tag(index);
        let mut late = rack.forger.header(Kind::Acquire, tag, 2, 0);
        (late.status, late.offset) = (GlobalStatus::Modified, 64);
        rack.forger.send(rack.forger.switch, &late, &[]);
        crate::until(|| came() > before);
        rack.write(0, index);
    }
}

/// Any packets, for all kinds of them.
#[test]
fn whatever_is_forged_traffic_dies_down() {
    let rack = Attacked::new("forged-any");
    let forger = &rack.forger;
    let mut random = fastrand::Rng::with_seed(7);
    let hold = |index: usize| rack.arrays[index % 3].write_within(index, LONG).unwrap();
    let all: Vec<_> = (0..LOCKS)
        .map(|index| hold(index).expect("the lock comes"))
        .collect();
    for sent in 0..4_000 {
        let kind = Kind::ALL[random.usize(..Kind::ALL.len())];
        let ahead = [random.u64(..20), random.u64(..1 << 40)][usize::from(random.bool())];
        let mut header = forger.header(
            kind,
            rack.tag(random.usize(..LOCKS)),
            random.u16(..3),
            ahead,
        );
        header.sender = random.u16(..3);
        header.copyset = Copyset(random.u32(..8));
        header.status = GlobalStatus::from_byte(random.u8(..3)).unwrap();
        header.reason = [Reason::None, Reason::Moved][usize::from(random.bool())];
        header.flags = [Flags::default(), Flags::PROVIDER, Flags::GRANTED][random.usize(..3)];
        header.offset = random.u32(..64);
        // Answers go to a member's own socket.
        header.reply_port = forger.nodes[random.usize(..3)].port();
        let waits = Record {
            tag: Tag(random.u64(..3)),
            word: first(forger.epoch) + ahead,
        };
        let body = match kind {
            Kind::Queue => waits.to_bytes().to_vec(),
            _ => Vec::new(),
        };
        // The membership's word is not at stake here: a rebuild that was never begun.
        let to = match random.usize(..4) {
            3 => forger.switch,
            node => forger.nodes[node],
        };
        forger.send(to, &header, &body);
        if sent % 64 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    drop(all);
    quiet(&rack.nodes, &rack.switch);
}

/// Homes that no node of three serves: two that could be nodes', two that groups could keep, and
/// two that could be neither.
const NOBODYS: [u16; 6] = [3, 31, 32, 63, 64, u16::MAX];

/// Packets of every kind about memory whose home is nobody's, at the offsets of memory that is
/// somebody's.
#[test]
fn packets_about_a_home_that_no_node_serves_change_nothing() {
    let rack = Attacked::new("forged-home");
    let forger = &rack.forger;
    let word: Shared<u64> = rack.nodes[1].alloc(5).unwrap();
    let other: Shared<u64> = rack.nodes[2].attach(word.addr()).unwrap();
    assert_eq!(other.read().unwrap(), 5);
    let block = Tag(word.addr() / 4096 * 4096);
    for &kind in Kind::ALL {
        for of in [block, rack.tag(0)] {
            for home in NOBODYS {
                let mut header = forger.header(kind, of, 0, 1_000);
                header.tag = Tag(u64::from(home) << 48 | of.0 << 16 >> 16);
                header.status = GlobalStatus::Modified;
                header.copyset = Copyset(0b111);
                header.incarnation = rack.nodes[0].incarnation_of(0);
                header.reply_port = forger.nodes[0].port();
                let body = &[0; OWN_LEN][..kind.own_len()];
                let mut packet = encode(&header, body.len()).to_vec();
                packet.extend_from_slice(body);
                assert_eq!(decode(&packet).is_ok(), home < 64, "{kind:?} {home}");
                for to in forger.nodes.iter().chain([&forger.switch]) {
                    forger.socket.send_to(&packet, *to).unwrap();
                }
            }
        }
        // Sockets have room for so many.
        std::thread::sleep(Duration::from_millis(2));
    }
    quiet(&rack.nodes, &rack.switch);
    for node in [2, 0, 1] {
        (0..LOCKS).for_each(|index| rack.write(node, index));
    }
    assert_eq!(other.fetch_add(1).unwrap(), 5);
    assert_eq!(word.read().unwrap(), 6);
    for node in &rack.nodes {
        assert_eq!(node.blocks_lost(), 0);
    }
}

/// Baselines ask guests, which change words behind the backs of caches if they like; a node that
/// has none drops what is for one.
#[test]
fn a_question_for_a_guest_is_dropped_where_there_is_none() {
    let rack = Attacked::new("forged-question");
    let word: Shared<u64> = rack.nodes[1].alloc(5).unwrap();
    assert_eq!(word.read().unwrap(), 5);
    let began = Instant::now();
    for kind in [Kind::GuestAsk, Kind::GuestTell] {
        let requester = RequesterId { node: 0, slot: 63 };
        let tag = Tag(word.addr() / 4096 * 4096);
        let mut header = Header::request(kind, rack.forger.epoch, tag, requester, Seq(1));
        header.incarnation = rack.nodes[0].incarnation_of(0);
        header.reply_port = rack.forger.socket.local_addr().unwrap().port();
        let ignored = rack.nodes[1].metrics().ignored;
        rack.forger.send(rack.forger.nodes[1], &header, &[1; 32]);
        while rack.nodes[1].metrics().ignored == ignored {
            assert!(began.elapsed() < LONG, "{kind:?} was not dropped");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert_eq!(word.read().unwrap(), 5);
    let same: Shared<u64> = rack.nodes[2].attach(word.addr()).unwrap();
    assert_eq!(same.read().unwrap(), 5);
}
