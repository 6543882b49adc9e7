//! Copies of a node's cache that the kernel invalidates, by test runs beside the rule
//! (`rackmem_proto::flowcc::in_kernel`): chosen orders, random ones, and differences that are
//! planted.
#![cfg(feature = "xdp")]

use rackmem_fabric::shm::Lent;
use rackmem_proto::call::Executed;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::flowcc::desk;
use rackmem_proto::flowcc::in_kernel::{KernelEntry, KernelView, answer, concerns};
use rackmem_wire::{
    Contract, Flags, GlobalStatus, Header, Kind, Reason, RequesterId, Seq, Tag, decode, encode,
};
use rackmem_xdp::carrier::Frame;
use rackmem_xdp::{Error, ObjectReads, Ran, Sizes, Verdict};
use std::io::Write;
use std::net::SocketAddrV4;
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

const SETS: u32 = 4;
const SIZES: Sizes = Sizes {
    slabs: 1,
    sets: SETS,
    cached: 0,
    items: 0,
    lines: 0,
};
const WAYS: usize = 8;
const EPOCH: u32 = 7;
const ME: u16 = 2;
const AGENT: &str = "10.0.0.3:7400";
const HOME: &str = "10.0.0.1:7400";
/// The requesters' nodes: one that has been heard of, and one that has not.
const HEARD: u16 = 1;
const UNHEARD: u16 = 4;
const LIFE: u32 = 3;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OURS: [u8; 6] = [2, 0, 0, 0, 0, 3];

fn at(text: &str) -> SocketAddrV4 {
    text.parse().expect("an address")
}

/// What an entry of the cache is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    tag: Tag,
    way: usize,
    status: LocalStatus,
    locked: bool,
    written: bool,
}

/// The program, and what it shares.
struct Node {
    program: ObjectReads,
    desk: Lent,
    tags: Lent,
    controls: Lent,
}

impl Node {
    /// None: the kernel takes no program from this process, which is said.
    fn new(test: &str, object: Option<&[u8]>) -> Option<Node> {
        let loaded = match object {
            None => ObjectReads::load_sized(SIZES),
            Some(object) => ObjectReads::load_object(object, SIZES),
        };
        let program = match loaded {
            Ok(program) => program,
            Err(error @ (Error::Permission | Error::Kernel(_) | Error::Rack(_))) => {
                let mut out = std::io::stdout();
                let _ = writeln!(out, "skipped: {test}: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let [desk, tags, controls] = program.cache().expect("its maps");
        let words = SETS as usize * WAYS;
        let node = Node {
            desk: Lent::map(desk, desk::WORDS).expect("it is mapped"),
            tags: Lent::map(tags, words).expect("it is mapped"),
            controls: Lent::map(controls, 8 * words).expect("it is mapped"),
            program,
        };
        let address = |text: &str| u64::from(u32::from_ne_bytes(at(text).ip().octets()));
        let port = u64::from(u16::from_ne_bytes(at(AGENT).port().to_be_bytes()));
        for (word, value) in [
            (desk::EPOCH, EPOCH.into()),
            (desk::NODE, ME.into()),
            (desk::AGENT, address(AGENT) | port << 32),
            (desk::SET_MASK, u64::from(SETS) - 1),
            (desk::ADDRESSES, address(HOME)),
            (desk::ADDRESSES + usize::from(HEARD), address("10.0.0.2:1")),
            (
                desk::ADDRESSES + usize::from(UNHEARD),
                address("10.0.0.5:1"),
            ),
            (desk::INCARNATIONS + usize::from(HEARD), LIFE.into()),
            (desk::INCARNATIONS + usize::from(UNHEARD), LIFE.into()),
        ] {
            node.word(word).store(value, SeqCst);
        }
        // Any packet of a node tells where it is.
        let ping = Header::request(Kind::Ping, EPOCH, Tag(0), who(HEARD), Seq(1));
        let frame = frame_of(&ping, "10.0.0.2:7400", MAC);
        assert_eq!(node.run(&frame).verdict, Verdict::Pass);
        Some(node)
    }

    fn run(&self, frame: &[u8]) -> Ran {
        self.program.run(frame, 1).expect("it runs")
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.desk.words()[at]
    }

    fn control(&self, entry: usize) -> &[AtomicU64] {
        &self.controls.words()[8 * entry..8 * entry + 8]
    }

    fn counts(&self) -> Vec<u64> {
        let counts = desk::COUNTS..desk::COUNTS + desk::COUNTED;
        counts.map(|at| self.word(at).load(SeqCst)).collect()
    }

    /// Empties the cache, and puts that there.
    fn put(&self, entry: Option<Entry>) {
        let all = self.tags.words().iter().chain(self.controls.words());
        all.for_each(|word| word.store(0, SeqCst));
        let Some(entry) = entry else { return };
        let number = set_of(entry.tag) * WAYS + entry.way;
        self.tags.words()[number].store(entry.tag.0 | 1, SeqCst);
        let control = self.control(number);
        let word = 40 << 3 | (entry.status as u64) << 1 | u64::from(entry.locked);
        control[0].store(word, SeqCst);
        control[1].store(entry.tag.0 | 1, SeqCst);
        // The half before says when it was used.
        control[2].store(9 | u64::from(entry.written) << 32, SeqCst);
    }
}

/// As the cache does.
fn set_of(tag: Tag) -> usize {
    let mixed = (tag.0 >> 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 24) as usize & (SETS as usize - 1)
}

fn who(node: u16) -> RequesterId {
    RequesterId { node, slot: 9 }
}

fn frame_of(header: &Header, from: &str, mac: [u8; 6]) -> Vec<u8> {
    Frame {
        macs: [OURS, mac],
        from: at(from),
        to: at(AGENT),
        payload: encode(header, 0).to_vec(),
    }
    .to_bytes()
}

const TAG: Tag = Tag(0x0003_0000_0012_3000);

fn order(kind: Kind) -> Header {
    let mut header = Header::request(kind, EPOCH, TAG, who(HEARD), Seq(77));
    header.flags = Flags::GRANTED;
    header.status = GlobalStatus::Shared;
    (header.incarnation, header.reply_port, header.sender) = (LIFE, 50_123, 0);
    header
}

const CLEAN: Entry = Entry {
    tag: TAG,
    way: 5,
    status: LocalStatus::Shared,
    locked: false,
    written: false,
};

/// Plays one packet to the program and to the rule; what differs.
fn play(node: &Node, entry: Option<Entry>, executed: u64, header: &Header) -> Result<(), String> {
    node.put(entry);
    let row = node.word(desk::row(header.requester, header.seq));
    row.store(executed, SeqCst);
    let of_block = entry.filter(|entry| entry.tag == header.tag);
    let view = KernelView {
        me: ME,
        epoch: Some(node.word(desk::EPOCH).load(SeqCst) as u32).filter(|epoch| *epoch != 0),
        incarnation: match header.requester.node {
            HEARD | UNHEARD => LIFE,
            _ => 0,
        },
        entry: of_block.map(|entry| KernelEntry {
            status: entry.status,
            locked: entry.locked,
        }),
        executed: Executed::of(header.seq, Seq(executed)),
        reaches: header.requester.node == HEARD && header.reply_port != 0,
        reaches_home: false,
    };
    let before = (words(node), node.counts());
    let frame = frame_of(header, HOME, [2, 0, 0, 0, 0, 1]);
    let ran = node.run(&frame);
    let after = (words(node), node.counts());
    if after.0 != before.0 && ran.verdict == Verdict::Pass {
        return Err("it passes what it has changed something for".into());
    }
    let counted: Vec<usize> = (0..desk::COUNTED)
        .filter(|nth| after.1[*nth] != before.1[*nth])
        .collect();
    let wanted = answer(&view, header);
    let expected: Vec<usize> = match (concerns(header) && view.epoch.is_some(), wanted) {
        (false, _) => vec![],
        (true, Ok(_)) => vec![0],
        (true, Err(why)) => vec![1 + why as usize],
    };
    if counted != expected {
        return Err(format!(
            "counted {counted:?}, not {expected:?} ({wanted:?})"
        ));
    }
    match wanted {
        Err(_) if ran.verdict == Verdict::Pass && ran.frame == frame => Ok(()),
        Err(why) => Err(format!("{:?} where the rule says {why:?}", ran.verdict)),
        Ok(ack) => answered(node, of_block, &ran, &ack),
    }
}

/// All that a cache and its table of executed requests are.
fn words(node: &Node) -> Vec<u64> {
    let all = node.tags.words().iter().chain(node.controls.words());
    let rows = &node.desk.words()[desk::ROWS..desk::WORDS];
    all.chain(rows).map(|word| word.load(SeqCst)).collect()
}

fn answered(node: &Node, entry: Option<Entry>, ran: &Ran, ack: &Header) -> Result<(), String> {
    if ran.verdict != Verdict::Redirect {
        return Err(format!("{:?} where the rule answers", ran.verdict));
    }
    let sent = Frame::parse(&ran.frame)?;
    let to = SocketAddrV4::new("10.0.0.2".parse().expect("an address"), ack.reply_port);
    if (sent.from, sent.to, sent.macs) != (at(AGENT), to, [MAC, OURS]) {
        return Err(format!(
            "from {} to {}, {:?}",
            sent.from, sent.to, sent.macs
        ));
    }
    let (header, body) = decode(&sent.payload).map_err(|error| format!("{error:?}"))?;
    if header != *ack || !body.is_empty() {
        return Err(format!("{header:?}, not {ack:?}"));
    }
    let entry = entry.ok_or("there was none")?;
    let number = set_of(entry.tag) * WAYS + entry.way;
    let control = node.control(number);
    let now = (
        node.tags.words()[number].load(SeqCst),
        control[0].load(SeqCst),
        control[1].load(SeqCst),
        control[2].load(SeqCst),
    );
    if now != (0, 41 << 3, 0, 9) {
        return Err(format!("the entry is {now:?}"));
    }
    let row = node.word(desk::row(ack.requester, ack.seq)).load(SeqCst);
    match (row, node.word(desk::INSIDE).load(SeqCst)) {
        (row, 0) if row == ack.seq.0 => Ok(()),
        other => Err(format!("executed, and inside: {other:?}")),
    }
}

type Case = (&'static str, Option<Entry>, u64, Header);

fn cases() -> Vec<Case> {
    let good = order(Kind::WriteShared);
    let with = |change: fn(&mut Header)| {
        let mut header = good;
        change(&mut header);
        header
    };
    let entry = |change: fn(&mut Entry)| {
        let mut entry = CLEAN;
        change(&mut entry);
        Some(entry)
    };
    let clean = Some(CLEAN);
    vec![
        ("an upgrade elsewhere", clean, 0, good),
        ("a write elsewhere", clean, 75, order(Kind::WriteMiss)),
        ("a copy in another way", entry(|e| e.way = 0), 0, good),
        ("a copy in the last way", entry(|e| e.way = 7), 0, good),
        ("another block", entry(|e| e.tag.0 += 0x1000), 0, good),
        ("no copy", None, 0, good),
        ("a store under way", entry(|e| e.locked = true), 0, good),
        (
            "an empty entry",
            entry(|e| e.status = LocalStatus::Invalid),
            0,
            good,
        ),
        (
            "a dirty copy",
            entry(|e| e.status = LocalStatus::Modified),
            0,
            good,
        ),
        ("a downgraded copy", entry(|e| e.written = true), 0, good),
        ("for the second time", clean, 77, good),
        ("of an event that has ended", clean, 79, good),
        ("of an epoch that is over", clean, 0, with(|h| h.epoch -= 1)),
        ("of an epoch to come", clean, 0, with(|h| h.epoch += 1)),
        ("of an earlier life", clean, 0, with(|h| h.incarnation -= 1)),
        (
            "the provider",
            clean,
            0,
            with(|h| h.flags = h.flags.and(Flags::PROVIDER)),
        ),
        (
            "in the switch",
            clean,
            0,
            with(|h| h.flags = h.flags.and(Flags::IN_SWITCH)),
        ),
        (
            "gathered",
            clean,
            0,
            with(|h| h.flags = h.flags.and(Flags::GATHER)),
        ),
        ("not granted", clean, 0, with(|h| h.flags = Flags(0))),
        (
            "a modified entry",
            clean,
            0,
            with(|h| h.status = GlobalStatus::Modified),
        ),
        (
            "an unshared entry",
            clean,
            0,
            with(|h| h.status = GlobalStatus::Unshared),
        ),
        ("a reason", clean, 0, with(|h| h.reason = Reason::Locked)),
        ("a read", clean, 0, with(|h| h.kind = Kind::ReadMiss)),
        (
            "an eviction",
            clean,
            0,
            with(|h| h.kind = Kind::EvictShared),
        ),
        ("nobody to answer", clean, 0, with(|h| h.reply_port = 0)),
        (
            "a node not heard of",
            clean,
            0,
            with(|h| h.requester = who(UNHEARD)),
        ),
        (
            "memory of objects",
            clean,
            0,
            with(|h| h.tag = h.tag.under(Contract::Object)),
        ),
        (
            "a home that a group keeps",
            clean,
            0,
            with(|h| h.tag.0 |= 40 << 48),
        ),
    ]
}

#[test]
fn chosen_orders_are_answered_by_the_rule() {
    let Some(node) = Node::new("invalidations in the kernel", None) else {
        return;
    };
    for (name, entry, executed, header) in cases() {
        play(&node, entry, executed, &header).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    let counts = node.counts();
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    node.word(desk::EPOCH).store(0, SeqCst);
    play(&node, Some(CLEAN), 0, &order(Kind::WriteShared)).expect("it passes");
    assert_eq!(node.counts(), counts);
}

/// Each field as it should be or not, and now and then two.
fn random(rng: &mut impl FnMut(u64) -> u64) -> Case {
    let cases = cases();
    let mut pick = || cases[rng(cases.len() as u64) as usize];
    let (a, b) = (pick(), pick());
    let good = order(Kind::WriteShared);
    let mut header = a.3;
    if b.3.flags != good.flags {
        header.flags = b.3.flags;
    }
    if b.3.kind != good.kind {
        header.kind = b.3.kind;
    }
    header.seq = Seq(1 + rng(4) + 70 * rng(2));
    header.copyset.0 = rng(1 << 32) as u32;
    header.offset = rng(1 << 20) as u32;
    header.requester.slot = rng(64) as u16;
    let entry = match rng(2) {
        0 => a.1,
        _ => b.1,
    };
    ("", entry, rng(80), header)
}

#[test]
fn random_orders_are_answered_by_the_rule() {
    let Some(node) = Node::new("random invalidations in the kernel", None) else {
        return;
    };
    let mut state = 0x9e37_79b9_u64;
    let mut rng = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 31) % below
    };
    for round in 0..20_000 {
        let (_, entry, executed, header) = random(&mut rng);
        play(&node, entry, executed, &header)
            .unwrap_or_else(|why| panic!("{round}: {why}: {header:?} {entry:?} {executed}"));
    }
    assert!(node.counts()[0] > 500, "{:?}", node.counts());
}

/// What is cut, longer, or of another socket is nobody's business here; whatever a frame's bytes
/// are, it is answered or stays as it was.
#[test]
fn forged_frames_pass_unchanged() {
    let Some(node) = Node::new("forged invalidations in the kernel", None) else {
        return;
    };
    let good = frame_of(&order(Kind::WriteShared), HOME, MAC);
    for at in 0..good.len() {
        for value in 0..=255 {
            let mut forged = good.clone();
            forged[at] = value;
            node.put(Some(CLEAN));
            node.desk.words()[desk::ROWS..]
                .iter()
                .for_each(|row| row.store(0, SeqCst));
            let ran = node.run(&forged);
            match ran.verdict {
                Verdict::Pass => assert!(ran.frame == forged, "byte {at} = {value}"),
                Verdict::Redirect => assert!(Frame::parse(&ran.frame).is_ok()),
                other => panic!("byte {at} = {value}: {other:?}"),
            }
        }
    }
    for len in 14..good.len() {
        assert_eq!(node.run(&good[..len]).verdict, Verdict::Pass, "{len} bytes");
    }
}

fn planted(number: u32) -> Vec<u8> {
    let out = std::path::Path::new(env!("OUT_DIR"));
    let arguments = std::fs::read_to_string(out.join("clang.txt")).expect("the build's");
    let object =
        std::env::temp_dir().join(format!("rackmem-cache-{number}-{}.o", std::process::id()));
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../switch/xdp/objects.bpf.c"
    );
    let ran = Command::new("clang")
        .args(arguments.lines())
        .arg(format!("-DPLANT={number}"))
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output()
        .expect("clang");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    let bytes = std::fs::read(&object).expect("an object");
    let _ = std::fs::remove_file(object);
    bytes
}

#[test]
fn planted_differences_are_noticed() {
    for number in 11..=18 {
        let object = planted(number);
        let Some(node) = Node::new("planted differences of invalidations", Some(&object)) else {
            return;
        };
        let found = cases()
            .into_iter()
            .find_map(|(name, entry, executed, header)| {
                play(&node, entry, executed, &header).err().map(|_| name)
            });
        assert!(found.is_some(), "plant {number} is not found");
    }
}
