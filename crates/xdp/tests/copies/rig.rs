//! A node's host with the program, and what the node shares with it; the hosts of a reader and of a
//! home, which take what it sends as any process does.

use crate::support::{or_skipped, skipped};
use rackmem_fabric::shm::Lent;
use rackmem_fabric::udp::body_room;
use rackmem_hosts::{Hosts, Place, UPLINK, address, mac};
use rackmem_proto::call::Executed;
use rackmem_proto::flowcc::in_kernel::{KernelEntry, KernelView, concerns_read, give};
use rackmem_proto::flowcc::{LocalStatus, desk};
use rackmem_wire::{
    Flags, GlobalStatus, HEADER_LEN, Header, Kind, MAX_BODY, NodeId, RequesterId, Seq, Tag, decode,
    encode, segment_len,
};
use rackmem_xdp::carrier::Frame;
use rackmem_xdp::{Mode, ObjectReads, Sizes, Verdict};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

const SETS: usize = 4;
const WAYS: usize = 8;
const EPOCH: u32 = 7;
const LIFE: u32 = 3;
pub const BLOCK: usize = 2048;
/// The home of the block, the reader's node, and a node that was not heard of.
const HOME: NodeId = 2;
const READER: NodeId = 1;
pub const ME: NodeId = 3;
pub const UNHEARD: NodeId = 4;
/// Where the reader listens.
pub const REPLY: u16 = 50_123;
/// Where agents do, each elsewhere.
const PORT: u16 = 7400;
const NODE_AT: Place = Place::Host(0);
const READER_AT: Place = Place::Host(1);
const HOME_AT: Place = Place::Host(2);
/// Longer than a datagram is under way on a machine that does much else.
const LONG: Duration = Duration::from_secs(5);
/// As long as is waited for what should not come.
const SHORT: Duration = Duration::from_millis(100);

pub const TAG: Tag = Tag(0x0002_0000_0012_4000);

/// What an entry of the cache is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub tag: Tag,
    pub way: usize,
    pub status: LocalStatus,
    pub locked: bool,
    pub written: bool,
}

pub const DIRTY: Entry = Entry {
    tag: TAG,
    way: 5,
    status: LocalStatus::Modified,
    locked: false,
    written: false,
};

impl Entry {
    fn number(&self) -> usize {
        // As the cache does.
        let mixed = (self.tag.0 >> 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> 24) as usize & (SETS - 1)) * WAYS + self.way
    }

    fn word(&self, version: u64, status: LocalStatus) -> u64 {
        version << 3 | (status as u64) << 1 | u64::from(self.locked)
    }
}

pub fn who(node: NodeId) -> RequesterId {
    RequesterId { node, slot: 9 }
}

/// A reader's miss of a block, of whose entry this is the status.
pub fn order(status: GlobalStatus) -> Header {
    let mut header = Header::request(Kind::ReadMiss, EPOCH, TAG, who(READER), Seq(77));
    header.flags = Flags::GRANTED.and(Flags::PROVIDER);
    header.status = status;
    (header.incarnation, header.reply_port, header.sender) = (LIFE, REPLY, HOME);
    header
}

/// The program, what it shares, and who hears.
pub struct Rig {
    program: ObjectReads,
    desk: Lent,
    tags: Lent,
    controls: Lent,
    blocks: Lent,
    block: usize,
    segment: usize,
    ifindex: u32,
    reader: UdpSocket,
    home: UdpSocket,
}

fn at(place: Place, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(address(place), port)
}

fn home_port() -> u16 {
    PORT + HOME
}

/// Packets of the agent's that have come, if there are any, within this time each.
fn heard(socket: &UdpSocket, most: usize, within: Option<Duration>) -> Vec<Vec<u8>> {
    socket.set_nonblocking(within.is_none()).expect("a socket");
    socket.set_read_timeout(within).expect("a time");
    let next = |_| {
        let mut bytes = vec![0; HEADER_LEN + MAX_BODY];
        match socket.recv_from(&mut bytes) {
            Ok((len, from)) => {
                assert_eq!(from, at(NODE_AT, PORT).into());
                bytes.truncate(len);
                Some(bytes)
            }
            Err(error) => {
                let kinds = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                assert!(kinds.contains(&error.kind()), "{error}");
                None
            }
        }
    };
    (0..most).map_while(next).collect()
}

impl Rig {
    /// A node whose cache has blocks of so many bytes. Nothing where the kernel takes no program
    /// from this process, which is said.
    pub fn with(
        test: &str,
        block: usize,
        object: Option<&[u8]>,
        act: impl FnOnce(&mut Rig) + Send,
    ) {
        let slabs = (SETS * WAYS * block).div_ceil(desk::CACHE_SLAB as usize) as u32;
        let sizes = Sizes {
            slabs: 1,
            sets: SETS as u32,
            cached: slabs,
            items: 0,
            lines: 0,
        };
        let loaded = match object {
            None => ObjectReads::load_sized(sizes),
            Some(object) => ObjectReads::load_object(object, sizes),
        };
        let Some(program) = or_skipped(test, loaded) else {
            return;
        };
        if let Err(why) = Hosts::probe() {
            return skipped(test, &why);
        }
        let hosts = Hosts::start(3).expect("namespaces");
        let listens = |place, port| {
            let bound = hosts.within(place, || UdpSocket::bind(at(place, port)));
            bound.expect("a namespace").expect("a port")
        };
        let shown = hosts
            .command(NODE_AT, "cat")
            .arg(format!("/sys/class/net/{UPLINK}/ifindex"))
            .output();
        let shown = String::from_utf8(shown.expect("`cat`").stdout).expect("a number");
        let [desk, tags, controls] = program.cache().expect("its maps");
        let words = SETS * WAYS;
        let map = |file, words| Lent::map(file, words).expect("it is mapped");
        let mut rig = Rig {
            desk: map(desk, desk::WORDS),
            tags: map(tags, words),
            controls: map(controls, 8 * words),
            blocks: map(program.cached().expect("its map"), words * block / 8),
            program,
            block,
            segment: segment_len(block as u32, body_room(1500) as u32) as usize,
            ifindex: shown.trim().parse().expect("a number"),
            reader: listens(READER_AT, REPLY),
            home: listens(HOME_AT, home_port()),
        };
        rig.begin();
        let done = hosts.within(NODE_AT, || act(&mut rig));
        done.expect("a namespace");
        drop(rig);
        hosts.tear_down().expect("nothing is left");
    }

    /// As a node does, and as the program that is before this one hears.
    fn begin(&self) {
        let lies = |address: Ipv4Addr| u64::from(u32::from_ne_bytes(address.octets()));
        let port = |port: u16| u64::from(u16::from_ne_bytes(port.to_be_bytes()));
        let mac_of = |place| {
            let mut bytes = [0; 8];
            bytes[..6].copy_from_slice(&mac(place));
            u64::from_ne_bytes(bytes)
        };
        for (at, value) in [
            (desk::EPOCH, EPOCH.into()),
            (desk::NODE, ME.into()),
            (desk::AGENT, lies(address(NODE_AT)) | port(PORT) << 32),
            (desk::SET_MASK, SETS as u64 - 1),
            (desk::SEGMENT, self.segment as u64),
        ] {
            self.word(at).store(value);
        }
        for (node, place) in [(READER, READER_AT), (HOME, HOME_AT), (ME, NODE_AT)] {
            let node = usize::from(node);
            self.word(desk::ADDRESSES + node)
                .store(lies(address(place)));
            self.word(desk::MACS + node).store(mac_of(place));
        }
        let home = desk::PORTS + usize::from(HOME);
        self.word(home).store(port(home_port()));
        for node in [READER, ME, UNHEARD] {
            let life = desk::INCARNATIONS + usize::from(node);
            self.word(life).store(LIFE.into());
        }
        self.gives(self.block as u64);
    }

    /// Blocks of so many bytes.
    pub fn gives(&self, block: u64) {
        self.word(desk::BLOCK).store(block);
    }

    fn word(&self, at: usize) -> Word<'_> {
        Word(&self.desk.words()[at])
    }

    pub fn counts(&self) -> Vec<u64> {
        (0..9)
            .map(|nth| self.word(desk::GIVEN + nth).load())
            .collect()
    }

    /// What a block has.
    pub fn bytes(&self, tag: Tag) -> Vec<u8> {
        let words = (0..self.block as u64 / 8).map(|nth| tag.0 ^ nth << 3);
        words.flat_map(u64::to_ne_bytes).collect()
    }

    /// Empties the cache, and puts that there.
    pub fn put(&self, entry: Option<Entry>) {
        let all = self.tags.words().iter().chain(self.controls.words());
        all.for_each(|word| Word(word).store(0));
        let Some(entry) = entry else { return };
        let number = entry.number();
        Word(&self.tags.words()[number]).store(entry.tag.0 | 1);
        let control = &self.controls.words()[8 * number..];
        Word(&control[0]).store(entry.word(40, entry.status));
        Word(&control[1]).store(entry.tag.0 | 1);
        Word(&control[2]).store(9 | u64::from(entry.written) << 32);
        let first = number * self.block / 8;
        let bytes = self.bytes(entry.tag);
        for (nth, word) in bytes.chunks(8).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().expect("eight"));
            Word(&self.blocks.words()[first + nth]).store(word);
        }
    }

    /// Plays one packet to the program and to the rule; what differs.
    pub fn play(&self, entry: Option<Entry>, executed: u64, header: &Header) -> Result<(), String> {
        self.play_packet(entry, executed, &encode(header, 0))
    }

    pub fn play_packet(
        &self,
        entry: Option<Entry>,
        executed: u64,
        packet: &[u8],
    ) -> Result<(), String> {
        self.put(entry);
        let decoded = decode(packet).ok().filter(|(_, body)| body.is_empty());
        let header = decoded.map(|(header, _)| header);
        if let Some(header) = &header {
            let row = desk::row(header.requester, header.seq);
            self.word(row).store(executed);
        }
        let ruled = header.filter(concerns_read).map(|header| {
            let view = self.view(entry, executed, &header);
            (header, give(&view, &header))
        });
        let (state, counts) = (self.state(), self.counts());
        let frame = frame(packet);
        let ran = self.program.run_gives(&frame, self.ifindex);
        let ran = ran.expect("it runs");
        let counted: Vec<usize> = (0..9)
            .filter(|nth| self.counts()[*nth] != counts[*nth])
            .collect();
        let expected: Vec<usize> = match &ruled {
            // What it passes and cannot be decoded may ask for anything.
            None if header.is_none() => counted.clone(),
            None => vec![],
            Some((_, Ok(_))) => vec![0],
            Some((_, Err(why))) => vec![1 + *why as usize],
        };
        let given = ruled.and_then(|(header, given)| Some((header, given.ok()?)));
        let done = match (&given, ran.verdict) {
            (Some((header, given)), Verdict::Redirect) => {
                let said = [Some(given.reader), given.home];
                let sent = self.sent(&ran.frame, entry, &said);
                sent.and_then(|()| self.ended(&state, entry, header))
            }
            (None, Verdict::Pass) if ran.frame != frame => Err("it passes another packet".into()),
            (None, Verdict::Pass) if self.state() != state => {
                Err("it passes what it has changed".into())
            }
            (None, Verdict::Pass) => Ok(()),
            (_, other) => Err(format!("{other:?}")),
        };
        let silent = self.is_silent();
        done?;
        match (silent, counted == expected) {
            (true, true) => Ok(()),
            (false, _) => Err("there is more".into()),
            _ => Err(format!("counted {counted:?}, not {expected:?}")),
        }
    }

    pub fn passes(&self, header: &Header) -> bool {
        self.put(Some(DIRTY));
        let frame = frame(&encode(header, 0));
        let ran = self.program.run_gives(&frame, self.ifindex);
        let ran = ran.expect("it runs");
        ran.verdict == Verdict::Pass && ran.frame == frame
    }

    fn view(&self, entry: Option<Entry>, executed: u64, header: &Header) -> KernelView {
        // As the cache does: an odd address is of no block's, and found like its block.
        let of_block = entry.filter(|entry| entry.tag.0 | 1 == header.tag.0 | 1);
        let has_life = [READER, ME, UNHEARD].contains(&header.requester.node);
        let heard = [READER, HOME, ME];
        KernelView {
            me: ME,
            epoch: Some(EPOCH),
            incarnation: if has_life { LIFE } else { 0 },
            entry: of_block.map(|entry| KernelEntry {
                status: entry.status,
                locked: entry.locked,
            }),
            executed: Executed::of(header.seq, Seq(executed)),
            reaches: heard.contains(&header.requester.node) && header.reply_port != 0,
            reaches_home: heard.contains(&header.tag.home().0),
        }
    }

    /// All that a cache and its table of executed requests are.
    fn state(&self) -> Vec<u64> {
        let all = self.tags.words().iter().chain(self.controls.words());
        let rows = &self.desk.words()[desk::ROWS..desk::WORDS];
        let all = all.chain(self.blocks.words()).chain(rows);
        all.map(|word| Word(word).load()).collect()
    }

    /// What was sent is what the rule says, in this order, and the last packet is the frame.
    fn sent(
        &self,
        last: &[u8],
        entry: Option<Entry>,
        said: &[Option<Header>; 2],
    ) -> Result<(), String> {
        let bytes = self.bytes(entry.ok_or("there was none")?.tag);
        let packets = |said: &Header| {
            let parts = bytes.chunks(self.segment).enumerate();
            let packets = parts.map(|(nth, part)| {
                let offset = (nth * self.segment) as u32;
                let header = Header { offset, ..*said };
                [encode(&header, part.len()).as_slice(), part].concat()
            });
            packets.collect::<Vec<_>>()
        };
        let wanted: Vec<Vec<Vec<u8>>> = said
            .iter()
            .map(|s| s.iter().flat_map(packets).collect())
            .collect();
        let last = Frame::parse(last)?;
        let (of_home, to, place) = match said[1] {
            Some(_) => (true, at(HOME_AT, home_port()), HOME_AT),
            None => (false, at(READER_AT, REPLY), READER_AT),
        };
        if (last.from, last.to) != (at(NODE_AT, PORT), to)
            || last.macs != [mac(place), mac(NODE_AT)]
        {
            return Err("the last goes elsewhere".into());
        }
        for (nth, socket) in [&self.reader, &self.home].into_iter().enumerate() {
            let has_last = of_home == (nth == 1);
            let most = wanted[nth].len() - usize::from(has_last);
            let mut came = heard(socket, most, Some(LONG));
            if has_last {
                came.push(last.payload.clone());
            }
            if came != wanted[nth] {
                return Err(format!("to {nth} went {} packets of others", came.len()));
            }
        }
        Ok(())
    }

    /// The entry is as the agent would leave it, and nothing else has changed.
    fn ended(&self, before: &[u64], entry: Option<Entry>, header: &Header) -> Result<(), String> {
        let entry = entry.ok_or("there was none")?;
        let number = entry.number();
        let dirty = entry.status == LocalStatus::Modified;
        let mut wanted = before.to_vec();
        let control = SETS * WAYS + 8 * number;
        wanted[control] = entry.word(40 + u64::from(dirty), LocalStatus::Shared);
        wanted[control + 2] = 9 | u64::from(entry.written || dirty) << 32;
        let rows = wanted.len() - (desk::WORDS - desk::ROWS);
        wanted[rows + desk::row(header.requester, header.seq) - desk::ROWS] = header.seq.0;
        match (self.state() == wanted, self.word(desk::INSIDE).load()) {
            (true, 0) => Ok(()),
            (same, inside) => Err(format!("as the agent: {same}, inside: {inside}")),
        }
    }

    fn is_silent(&self) -> bool {
        let sockets = [&self.reader, &self.home].into_iter();
        let more = sockets.map(|socket| heard(socket, 100, None).len());
        more.sum::<usize>() == 0
    }

    /// At the node's interface, as a node has it.
    pub fn attach(&mut self) {
        let program = &mut self.program;
        program.attach(UPLINK, Mode::Skb).expect("an interface");
        program.attach_gives(UPLINK).expect("an interface");
    }

    /// Asks over the cable, and what comes to the reader and home: so many packets, and no more.
    pub fn ask(&self, header: &Header, packets: usize) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let packet = encode(header, 0);
        let sent = self.home.send_to(&packet, at(NODE_AT, PORT));
        assert_eq!(sent.expect("a datagram"), packet.len());
        let [reader, home] = [&self.reader, &self.home].map(|socket| {
            let mut came = heard(socket, packets, Some(LONG));
            came.extend(heard(socket, 1, Some(SHORT)));
            came
        });
        (reader, home)
    }
}

/// A packet on its way from the home to the agent.
fn frame(packet: &[u8]) -> Vec<u8> {
    Frame {
        macs: [mac(NODE_AT), mac(HOME_AT)],
        from: at(HOME_AT, home_port()),
        to: at(NODE_AT, PORT),
        payload: packet.to_vec(),
    }
    .to_bytes()
}

struct Word<'w>(&'w std::sync::atomic::AtomicU64);

impl Word<'_> {
    fn load(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn store(&self, value: u64) {
        self.0.store(value, std::sync::atomic::Ordering::SeqCst);
    }
}
