//! Datagrams to every UDP port of a rack that runs over loopback: two nodes and a switch.

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rackmem::{Config, Rack, Shared};
use rackmem_wire::{Flags, Header, Kind, RequesterId, Seq, Tag, decode, encode};

use crate::dice::{Dice, EPOCH};

/// Datagrams of one run at most.
const MAX_DATAGRAMS: usize = 32;
/// How long a port may take to answer before it is asked again:
/// a burst may have overrun its buffer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a port is asked.
const TRIES: usize = 10;

/// A rack whose ports are under fire, and a word of its memory.
struct Range {
    ports: [SocketAddr; 3],
    racks: [Rack; 3],
    socket: UdpSocket,
    expected: u64,
    word: Option<(Shared<u64>, Shared<u64>)>,
}

/// Strangers, whose datagrams do not decode or are of another epoch, change nothing:
/// a word that both nodes share is still coherent. Insiders send packets of the rack's epoch, which
/// may spoil its memory but not its processes: every port still answers.
pub fn fuzz(input: &[u8]) {
    static STRANGERS: OnceLock<Mutex<Range>> = OnceLock::new();
    static INSIDERS: OnceLock<Mutex<Range>> = OnceLock::new();
    let mut dice = Dice::new(input);
    let inside = dice.one_in(2);
    let range = if inside { &INSIDERS } else { &STRANGERS };
    let range = range.get_or_init(|| Mutex::new(Range::start()));
    let mut range = range.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..MAX_DATAGRAMS {
        if dice.is_empty() {
            break;
        }
        let port = range.ports[dice.below(3)];
        let packet = datagram(&mut dice);
        if inside || is_strange(&packet) {
            // A datagram that the system refuses to send is one that no port gets.
            let _ = range.socket.send_to(&packet, port);
        }
    }
    if inside {
        range.expect_answers()
    } else {
        range.expect_coherence()
    }
}

fn datagram(dice: &mut Dice) -> Vec<u8> {
    let raw = dice.one_in(3);
    let body = (0..dice.below(80))
        .map(|_| dice.byte())
        .collect::<Vec<u8>>();
    if raw {
        return body;
    }
    let header = dice.header();
    // Now and then a length that is not true.
    let claimed = if dice.one_in(4) {
        dice.word() as usize
    } else {
        body.len()
    };
    let mut packet = encode(&header, claimed).to_vec();
    packet.extend(body);
    if dice.one_in(4) {
        let at = dice.below(packet.len());
        packet[at] = dice.byte();
    }
    packet
}

fn is_strange(packet: &[u8]) -> bool {
    decode(packet).map_or(true, |(header, _)| header.epoch != EPOCH)
}

impl Range {
    fn start() -> Range {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let ports = [(); 3].map(|()| UdpSocket::bind(loopback).expect("loopback has free ports"));
        let addresses = [0, 1, 2].map(|n: usize| {
            ports[n]
                .local_addr()
                .expect("a bound socket has an address")
        });
        drop(ports);
        let [switch, first, second] = addresses;
        let text = format!(
            "switch = \"{switch}\"\nnodes = [\"{first}\", \"{second}\"]\nepoch = {EPOCH}\n\
             cache = 1048576\nmemory = 67108864\nswitch_entries = 1024"
        );
        let config = Config::parse(&text).expect("the configuration is valid");
        let racks = [
            Rack::serve_switch(&config),
            Rack::join(&config, 0),
            Rack::join(&config, 1),
        ];
        let racks = racks.map(|rack| rack.expect("a rack starts on free ports"));
        let socket = UdpSocket::bind(loopback).expect("loopback has free ports");
        socket
            .set_read_timeout(Some(PATIENCE))
            .expect("sockets have time limits");
        Range {
            ports: addresses,
            racks,
            socket,
            expected: 0,
            word: None,
        }
    }

    /// Node 0 adds one, node 1 sees it.
    fn expect_coherence(&mut self) {
        let nodes = [self.racks[1].node(0), self.racks[2].node(1)];
        let (mine, theirs) = self.word.get_or_insert_with(|| {
            let mine: Shared<u64> = nodes[0].alloc(0).expect("the rack has memory");
            let theirs = nodes[1]
                .attach(mine.addr())
                .expect("the address is of the rack");
            (mine, theirs)
        });
        mine.fetch_add(1).expect("the rack works on");
        self.expected += 1;
        assert_eq!(theirs.read().expect("the rack works on"), self.expected);
    }

    /// Each port answers a packet that needs no state.
    fn expect_answers(&self) {
        let reply_port = self.socket.local_addr().map_or(0, |address| address.port());
        for (number, port) in self.ports.iter().enumerate() {
            let (kind, answer) = if number == 0 {
                (Kind::Unlock, Kind::UnlockAck)
            } else {
                (Kind::Ping, Kind::Pong)
            };
            let home = number.saturating_sub(1) as u64;
            let requester = RequesterId {
                node: home as u16,
                slot: 63,
            };
            let mut ping = Header::request(kind, EPOCH, Tag(home << 48), requester, Seq(0x7777));
            ping.flags = Flags::IN_SWITCH;
            ping.reply_port = reply_port;
            let answers = (0..TRIES).any(|_| self.ask(*port, &ping, answer));
            assert!(answers, "port {number} does not answer");
        }
    }

    /// Whether the answer comes; what earlier datagrams caused may come before it.
    fn ask(&self, port: SocketAddr, ping: &Header, answer: Kind) -> bool {
        let mut packet = [0; 65_536];
        self.socket
            .send_to(&encode(ping, 0), port)
            .expect("loopback takes a datagram");
        while let Ok(length) = self.socket.recv(&mut packet) {
            let header = decode(&packet[..length]).map(|(header, _)| header);
            if header.is_ok_and(|header| header.kind == answer && header.seq == ping.seq) {
                return true;
            }
        }
        false
    }
}

/// Bytes of several lengths for both sides.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = crate::switch_program::seeds();
    for (number, seed) in seeds.iter_mut().enumerate() {
        seed[0] = number as u8;
    }
    seeds
}
