//! The parts that processes of the bench play, each in a network namespace: this program again,
//! with a part's name.

use super::{BenchError, Result, missing, reads, upgrades};
use rackmem::{Config, Rack};
use rackmem_hosts::{Place, address, mac, port};
use rackmem_proto::wire::{
    Flags, GlobalStatus, Header, Kind, RequesterId, Seq, Tag, decode, encode,
};
use rackmem_xdp::{Bare, BareProgram, Mode};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddrV4, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

pub const AGENT_PORT: u16 = 7401;
pub const SWITCH_PORT: u16 = 7400;
/// The limit for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Requests on their way at a time, where a rate is measured.
const WINDOW: u16 = 32;
/// Bytes of a block, and how it travels at 1500 bytes a packet.
const BLOCK: usize = 4096;
const SEGMENTS: [usize; 4] = [1344, 1344, 1344, 64];
/// Blocks that are read.
const BLOCKS: usize = 256;
/// Between two misses: what the one before has left to do in the background is done then, and
/// whoever has taken part still listens.
const SHORT: Duration = Duration::from_micros(20);
/// The same, and all have gone to sleep.
const LONG: Duration = Duration::from_micros(200);

pub fn at(place: Place, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address(place), port)
}

/// Plays a part: `echo MODE`, `forward MODE`, `answer`, `trips echo|lock|block ROUNDS`,
/// `rate echo|lock ROUNDS`, `member FILE NODE ROUNDS awake|asleep`, and those of [`reads`] and
/// [`upgrades`]. Programs and members live until their standard input ends; the others print what
/// they have measured.
pub fn play(words: &[String]) -> Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(played) = reads::play(&words).or_else(|| upgrades::play(&words)) {
        return played;
    }
    let number = |word: &str| word.parse::<u32>().map_err(missing);
    match words[..] {
        ["echo", mode] => bare(BareProgram::Echo, mode),
        ["forward", mode] => bare(BareProgram::Forward, mode),
        ["answer"] => answer(),
        ["trips", what, rounds] => trips(what, number(rounds)?),
        ["rate", what, rounds] => rate(what, number(rounds)?),
        ["member", file, node, rounds, pause] => {
            let pause = if pause == "asleep" { LONG } else { SHORT };
            member(Path::new(file), number(node)?, number(rounds)?, pause)
        }
        _ => Err(BenchError::Missing("no such part".into())),
    }
}

pub(super) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush())?;
    Ok(())
}

/// Until the parent process releases it.
pub(super) fn stay() -> Result<()> {
    say("ready")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn bare(which: BareProgram, mode: &str) -> Result<()> {
    let mode: Mode = mode.parse().map_err(missing)?;
    let mut bare = Bare::load(which, at(Place::Switch, SWITCH_PORT)).map_err(missing)?;
    if which == BareProgram::Forward {
        let to = Place::Host(1);
        bare.forward_to(at(to, AGENT_PORT), mac(to), &port(1))
            .map_err(missing)?;
    }
    bare.attach(&port(0), mode).map_err(missing)?;
    stay()
}

/// A server that never sleeps: for a request, a block.
fn answer() -> Result<()> {
    let socket = UdpSocket::bind(at(Place::Host(1), AGENT_PORT))?;
    socket.set_nonblocking(true)?;
    let parent = std::thread::spawn(stay);
    let (mut request, block) = ([0; 2048], [0; BLOCK]);
    while !parent.is_finished() {
        match socket.recv_from(&mut request) {
            Ok((_, from)) => {
                for len in SEGMENTS {
                    socket.send_to(&block[..48 + len], from)?;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A requester of node 0, which never sleeps.
pub(super) struct Client {
    socket: UdpSocket,
    to: SocketAddrV4,
    port: u16,
}

impl Client {
    fn new() -> Result<Self> {
        Client::at(0)
    }

    fn at(port: u16) -> Result<Self> {
        Client::between(at(Place::Host(0), port), at(Place::Switch, SWITCH_PORT))
    }

    pub(super) fn between(from: SocketAddrV4, to: SocketAddrV4) -> Result<Self> {
        let socket = UdpSocket::bind(from)?;
        socket.set_nonblocking(true)?;
        Ok(Client {
            port: socket.local_addr()?.port(),
            to,
            socket,
        })
    }

    fn send(&self, header: &Header) -> Result<()> {
        self.send_bytes(&encode(header, 0))
    }

    pub(super) fn send_bytes(&self, packet: &[u8]) -> Result<()> {
        self.socket.send_to(packet, self.to)?;
        Ok(())
    }

    /// So many datagrams; the last one's header, if it is a packet.
    pub(super) fn hear(&self, datagrams: usize) -> Result<Option<Header>> {
        let mut packet = [0; 2048];
        let (began, mut left, mut last) = (Instant::now(), datagrams, None);
        while left > 0 {
            match self.socket.recv(&mut packet) {
                Ok(len) => {
                    left -= 1;
                    last = decode(&packet[..len]).ok().map(|(header, _)| header);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if began.elapsed() > PATIENCE {
                        return Err(BenchError::Missing("no answer".into()));
                    }
                    std::thread::yield_now();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(last)
    }

    fn header(&self, kind: Kind, slot: u16, seq: u64) -> Header {
        let requester = RequesterId { node: 0, slot };
        Header {
            reply_port: self.port,
            ..Header::request(kind, 1, Tag(0x4000), requester, Seq(seq))
        }
    }

    fn unlock(&self, slot: u16, seq: u64, reader: bool) -> Header {
        let side = if reader { Flags::READER } else { Flags(0) };
        Header {
            flags: Flags::IN_SWITCH.and(Flags::KEEP).and(side),
            ..self.header(Kind::Unlock, slot, seq)
        }
    }
}

/// Gives the switch the entry that will be locked.
fn give(client: &Client) -> Result<()> {
    let agent = UdpSocket::bind(at(Place::Host(0), AGENT_PORT))?;
    agent.set_read_timeout(Some(PATIENCE))?;
    let add = Header {
        status: GlobalStatus::Unshared,
        ..client.header(Kind::AddToSwitch, 0, 1)
    };
    agent.send_to(&encode(&add, 0), client.to)?;
    agent.recv(&mut [0; 2048])?;
    Ok(())
}

/// Acquire to Grant: a reader that is the keeper of the data as well,
/// so that nobody else hears of it.
fn grants(rounds: u32) -> Result<()> {
    let agent = Client::at(AGENT_PORT)?;
    let asks = |kind| Header {
        status: GlobalStatus::Shared,
        ..agent.header(kind, 0, 1)
    };
    agent.send(&asks(Kind::Place))?;
    agent.hear(1)?;
    let mut times = Vec::with_capacity(rounds as usize);
    for _ in 0..rounds {
        let began = Instant::now();
        agent.send(&asks(Kind::Acquire))?;
        let heard = agent.hear(1)?;
        times.push(began.elapsed().as_nanos() as u64);
        if heard.is_none_or(|header| header.kind != Kind::Grant) {
            let why = "the switch does not serve the lock";
            return Err(BenchError::Missing(why.into()));
        }
    }
    times.sort_unstable();
    say(&times[times.len() / 2].to_string())
}

fn trips(what: &str, rounds: u32) -> Result<()> {
    if what == "grant" {
        return grants(rounds);
    }
    let client = Client::new()?;
    let lock = what == "lock";
    if lock {
        give(&client)?;
    }
    let datagrams = if what == "block" { SEGMENTS.len() } else { 1 };
    let mut times = Vec::with_capacity(rounds as usize);
    for seq in 1..=u64::from(rounds) {
        let request = client.header(Kind::LockWrite, 0, seq);
        let unlock = client.unlock(0, seq, false);
        let packets = if lock {
            &[request, unlock][..]
        } else {
            &[request][..]
        };
        for packet in packets {
            let began = Instant::now();
            client.send(packet)?;
            let heard = client.hear(datagrams)?;
            times.push(began.elapsed().as_nanos() as u64);
            if lock && heard.is_none_or(|header| header.reason as u8 != 0) {
                return Err(BenchError::Missing(
                    "the switch refuses a lock that is free".into(),
                ));
            }
        }
        if what == "block" {
            crate::plain::compute(SHORT);
        }
    }
    times.sort_unstable();
    say(&times[times.len() / 2].to_string())
}

fn rate(what: &str, rounds: u32) -> Result<()> {
    let client = Client::new()?;
    if what == "lock" {
        give(&client)?;
    }
    let batches = rounds / u32::from(WINDOW);
    let began = Instant::now();
    for seq in 1..=u64::from(batches) {
        for slot in 0..WINDOW {
            client.send(&client.header(Kind::LockRead, slot, seq))?;
        }
        client.hear(WINDOW.into())?;
        for slot in 0..WINDOW {
            client.send(&client.unlock(slot, seq, true))?;
        }
        client.hear(WINDOW.into())?;
    }
    let packets = f64::from(batches) * f64::from(WINDOW) * 2.0;
    say(&format!("{:.0}", packets / began.elapsed().as_secs_f64()))
}

/// A node of a rack. Node 0 reads blocks of node 1 that it does not have,
/// and says how long one took.
fn member(file: &Path, node: u32, rounds: u32, pause: Duration) -> Result<()> {
    let config = Config::load(file)?;
    let rack = Rack::join(&config, node as usize)?;
    if node != 0 {
        return stay();
    }
    let node = rack.node(0);
    let base = node.alloc_bytes_on(1, BLOCKS * BLOCK)?;
    let mut times = Vec::with_capacity(rounds as usize);
    for round in 0..rounds as usize {
        let addr = base + (round % BLOCKS * BLOCK) as u64;
        let began = Instant::now();
        node.load(addr)?;
        times.push(began.elapsed().as_nanos() as u64);
        node.evict(addr)?;
        crate::plain::compute(pause);
    }
    times.sort_unstable();
    say(&times[times.len() / 2].to_string())
}
