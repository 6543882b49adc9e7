//! A home's host with the program, and the host of a reader at the other end of its cable, which
//! takes what the program sends as any process does.

use crate::support::{Shared, or_skipped, skipped};
use crate::{EPOCH, LIFE, ME, READER, SLABS, nth, value};
use rackmem_fabric::shm::Lent;
use rackmem_fabric::udp::body_room;
use rackmem_hosts::{Hosts, Place, UPLINK, address, mac};
use rackmem_proto::flowcc::twin::{TwinPassed, Twins, answer, concerns, segments};
use rackmem_wire::{
    HEADER_LEN, Header, Kind, MAX_BODY, RequesterId, Seq, Tag, decode, encode, segment_len,
};
use rackmem_xdp::carrier::Frame;
use rackmem_xdp::{BlockReadCounts, BlockReads, Served, Verdict};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

/// Where the reader listens.
pub const REPLY: u16 = 50_123;
const PORT: u16 = 7400;
const HOME: Place = Place::Host(0);
const ASKER: Place = Place::Host(1);
/// Longer than a datagram is under way on a machine that does much else.
const LONG: Duration = Duration::from_secs(5);
/// As long as is waited for what should not come.
const SHORT: Duration = Duration::from_millis(100);

/// What the process of a home has.
pub struct Blocks {
    pub block: u32,
    pub twins: Twins,
    pub words: Shared,
}

impl Blocks {
    pub fn show(&mut self, tag: Tag, word: u64) {
        let block = value(self.block, word);
        self.twins.show(tag, block, &mut self.words);
    }

    pub fn write(&mut self, tag: Tag, word: u64) {
        let block = value(self.block, word);
        self.twins.write(tag, block, &mut self.words);
    }

    pub fn hide(&mut self, tag: Tag) {
        self.twins.hide(tag, &mut self.words);
    }
}

/// What becomes of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Became {
    /// It passes as it came, and nothing is sent.
    Passed,
    /// These are sent to its requester.
    Answered(Vec<Vec<u8>>),
    /// Something that should not be.
    Wrong(&'static str),
}

impl Became {
    pub fn is_answer(&self) -> bool {
        matches!(self, Became::Answered(_))
    }
}

/// What asks, and hears what is sent.
pub struct Asker<'h> {
    hosts: &'h Hosts,
    pub reads: BlockReads,
    /// The number of the home's interface.
    ifindex: u32,
    socket: UdpSocket,
    /// Packets that a block comes in.
    pub segments: usize,
}

pub struct Host<'h> {
    asker: Asker<'h>,
    pub blocks: Blocks,
}

impl<'h> std::ops::Deref for Host<'h> {
    type Target = Asker<'h>;

    fn deref(&self) -> &Asker<'h> {
        &self.asker
    }
}

impl std::ops::DerefMut for Host<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.asker
    }
}

fn at(place: Place, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address(place), port)
}

/// A packet on its way from the reader to the agent.
fn frame(packet: &[u8]) -> Vec<u8> {
    Frame {
        macs: [mac(HOME), mac(ASKER)],
        from: at(ASKER, REPLY),
        to: at(HOME, PORT),
        payload: packet.to_vec(),
    }
    .to_bytes()
}

fn reply_port(packet: &[u8]) -> u16 {
    decode(packet).map_or(0, |(header, _)| header.reply_port)
}

impl Host<'_> {
    /// A home with blocks of so many bytes, on a network with packets of so many. Nothing where the
    /// kernel takes no program from this process, which is said.
    pub fn with(
        test: &str,
        (block, mtu): (u32, usize),
        object: Option<&[u8]>,
        act: impl FnOnce(&mut Host<'_>) + Send,
    ) {
        let loaded = match object {
            None => BlockReads::load(SLABS),
            Some(object) => BlockReads::load_object(object, SLABS),
        };
        let Some(reads) = or_skipped(test, loaded) else {
            return;
        };
        if let Err(why) = Hosts::probe() {
            return skipped(test, &why);
        }
        let hosts = Hosts::start(2).expect("namespaces");
        let bound = hosts.within(ASKER, || UdpSocket::bind(at(ASKER, REPLY)));
        let socket = bound.expect("a namespace").expect("a port");
        let shown = hosts
            .command(HOME, "cat")
            .arg(format!("/sys/class/net/{UPLINK}/ifindex"))
            .output();
        let shown = String::from_utf8(shown.expect("`cat`").stdout).expect("a number");
        let segment = segment_len(block, body_room(mtu) as u32);
        let asker = Asker {
            hosts: &hosts,
            reads,
            ifindex: shown.trim().parse().expect("a number"),
            socket,
            segments: block.div_ceil(segment) as usize,
        };
        let mut host = Host::new(asker, block, segment);
        let done = hosts.within(HOME, || act(&mut host));
        done.expect("a namespace");
        drop(host);
        hosts.tear_down().expect("nothing is left");
    }

    fn new(mut asker: Asker<'_>, block: u32, segment: u32) -> Host<'_> {
        let words = Twins::words(SLABS as usize);
        let lent = Lent::map(asker.reads.memory().expect("its memory"), words);
        let served = Served {
            agent: at(HOME, PORT),
            node: ME,
            epoch: EPOCH,
            base: 0,
        };
        asker.reads.serve(&served).expect("its map");
        let (twins, mut words) = (
            Twins::new(block, SLABS as usize),
            Shared(lent.expect("it is mapped")),
        );
        let as_it_lies = |address: Ipv4Addr| u64::from(u32::from_ne_bytes(address.octets()));
        // The reader's node, and others that are nowhere.
        let addresses = (0..5).map(|node| match node {
            node if node == READER => as_it_lies(address(ASKER)),
            node => as_it_lies(Ipv4Addr::new(10, 77, 1, node as u8)),
        });
        twins.begin((ME, segment), addresses, &mut words);
        twins.open(EPOCH, &[1, LIFE, 1, 1, 1], &mut words);
        let blocks = Blocks {
            block,
            twins,
            words,
        };
        let host = Host { asker, blocks };
        host.hear();
        host
    }

    /// A packet without a body, which says where the reader is reached and is for nobody.
    fn hear(&self) {
        let who = RequesterId {
            node: READER,
            slot: 0,
        };
        let ping = Header::request(Kind::Ping, EPOCH, nth(64, 0), who, Seq(1));
        assert_eq!(self.became(&encode(&ping, 0), 0), Became::Passed);
    }

    /// What the rule says becomes of a packet.
    pub fn ruled(&self, packet: &[u8]) -> Result<Vec<Vec<u8>>, Option<TwinPassed>> {
        let (header, body) = decode(packet).map_err(|_| None)?;
        if !concerns(&header) || !body.is_empty() {
            return Err(None);
        }
        let words = &self.blocks.words;
        let (said, block) = answer(words, &header).map_err(Some)?;
        let packets = segments(words, said, &block).map(|(header, bytes)| {
            let mut payload = encode(&header, bytes.len()).to_vec();
            payload.extend(bytes);
            payload
        });
        Ok(packets.collect())
    }

    /// What becomes of a packet, and what the rule says. Of what goes to a port where nobody
    /// listens only the last is seen.
    pub fn both(&self, packet: &[u8]) -> (Became, Became) {
        let ruled = self.ruled(packet).map(|mut packets| {
            if reply_port(packet) != REPLY {
                packets.drain(..packets.len() - 1);
            }
            packets
        });
        let packets = ruled.as_ref().map_or(0, Vec::len);
        let ruled = ruled.map_or(Became::Passed, Became::Answered);
        (self.became(packet, packets), ruled)
    }

    /// Both say the same: what.
    pub fn agree(&self, packet: &[u8]) -> Became {
        let (became, ruled) = self.both(packet);
        assert_eq!(became, ruled, "of {packet:x?}");
        became
    }

    pub fn counts(&self) -> BlockReadCounts {
        self.reads.counts().expect("counters")
    }

    /// Who asks, beside a thread that has the blocks.
    pub fn split(&mut self) -> (&Asker<'_>, &mut Blocks) {
        (&self.asker, &mut self.blocks)
    }

    /// At the home's interface, as a node has it.
    pub fn attach(&mut self) {
        self.asker.reads.attach(UPLINK).expect("an interface");
    }
}

impl Asker<'_> {
    /// A datagram from the home's agent, within this time.
    fn heard(&self, within: Duration) -> Option<Vec<u8>> {
        let mut bytes = vec![0; HEADER_LEN + MAX_BODY];
        let waits = self.socket.set_read_timeout(Some(within));
        waits.expect("a time");
        match self.socket.recv_from(&mut bytes) {
            Ok((len, from)) => {
                assert_eq!(from, at(HOME, PORT).into());
                bytes.truncate(len);
                Some(bytes)
            }
            Err(error) => {
                let kinds = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                assert!(kinds.contains(&error.kind()), "{error}");
                None
            }
        }
    }

    /// What has come already.
    fn is_silent(&self) -> bool {
        self.socket.set_nonblocking(true).expect("a socket");
        let more = self.heard(SHORT);
        self.socket.set_nonblocking(false).expect("a socket");
        more.is_none()
    }

    /// What becomes of a packet that is expected to become so many.
    pub fn became(&self, packet: &[u8], packets: usize) -> Became {
        let frame = frame(packet);
        let ran = self.reads.run(&frame, self.ifindex).expect("it runs");
        let became = match ran.verdict {
            Verdict::Pass if ran.frame == frame => Became::Passed,
            Verdict::Pass => Became::Wrong("it passes another packet"),
            Verdict::Redirect => self.answered(&ran.frame, reply_port(packet), packets),
            other => panic!("{other:?}"),
        };
        match self.is_silent() {
            true => became,
            false => {
                while !self.is_silent() {}
                Became::Wrong("there is more")
            }
        }
    }

    /// All but the last are sent; that is what the frame is.
    fn answered(&self, last: &[u8], port: u16, packets: usize) -> Became {
        let sent = (1..packets).map_while(|_| self.heard(LONG));
        let mut sent: Vec<Vec<u8>> = sent.collect();
        let Ok(last) = Frame::parse(last) else {
            return Became::Wrong("no datagram with right lengths and sums");
        };
        let ends = (last.from, last.to) == (at(HOME, PORT), at(ASKER, port));
        if !ends || last.macs != [mac(ASKER), mac(HOME)] {
            return Became::Wrong("it goes elsewhere");
        }
        sent.push(last.payload);
        Became::Answered(sent)
    }

    /// Whether the reader's device adds sums to what the reader sends.
    pub fn device_adds_sums(&self, adds: bool) {
        let set = self
            .hosts
            .command(ASKER, "ethtool")
            .args(["-K", UPLINK, "tx", if adds { "on" } else { "off" }])
            .output();
        assert!(set.expect("`ethtool`").status.success());
    }

    /// Asks over the cable, and what comes back: so many packets, and no more.
    pub fn ask(&self, packet: &[u8], packets: usize) -> Vec<Vec<u8>> {
        let sent = self.socket.send_to(packet, at(HOME, PORT));
        assert_eq!(sent.expect("a datagram"), packet.len());
        let mut heard: Vec<Vec<u8>> = (0..packets).map_while(|_| self.heard(LONG)).collect();
        heard.extend(std::iter::from_fn(|| self.heard(SHORT)));
        heard
    }
}
