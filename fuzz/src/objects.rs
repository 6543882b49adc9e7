//! Any sequence of packets to nodes of objects, beside threads that use some.
//!
//! Each write of a thread is of one letter, so every object that nobody is writing has bytes of one
//! write, whatever packets came.

use crate::dice::Dice;
use rackmem_proto::sabre::transaction::{
    Entry, MAX_CONTENT, MAX_OBJECTS, MAX_OPEN, NOT_WRITTEN, Parts, Plan, decode,
};
use rackmem_proto::sabre::{
    Book, Bytes, Command, Effects, GRANULE, HEADER, Known, Lane, MANY, MAX_BYTES, Memory, Meta,
    Outcome, Ref, SLAB, Sabre, Spot, class_bytes, own,
};
use rackmem_proto::wire::{
    Contract, Copyset, Dest, Flags, Header, HomeId, Kind, NodeId, Own, Reason, Record, RequesterId,
    Seq, Tag,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// Packets of one run at most, and those that one of them may cause.
const MAX_PACKETS: usize = 256;
const MAX_ANSWERS: usize = 64 * MANY;
/// Bytes of a part of a transaction at most.
const MAX_PART: usize = MAX_CONTENT + 24 * MAX_OBJECTS;
const NODES: NodeId = 3;
/// Slabs of a home, and where its memory begins: an earlier life had what is below.
const SLABS: u32 = 4;
const BASE: u64 = 2 * SLAB;

#[derive(Clone, Default)]
struct Words {
    version: u64,
    meta: Meta,
    /// Of the first bytes, and of the others, whose they are.
    bytes: Vec<u8>,
}

/// A node's bytes, as a host keeps them: it puts them where the core says that they belong.
#[derive(Default)]
struct Host {
    slabs: BTreeMap<u64, u8>,
    objects: BTreeMap<Tag, Words>,
    staging: BTreeMap<RequesterId, Vec<u8>>,
    values: BTreeMap<Lane, Vec<u8>>,
    /// Parts of transactions: those that write here, and this node's own by slot.
    parts: BTreeMap<RequesterId, Vec<u8>>,
    written: BTreeMap<u8, Vec<Vec<u8>>>,
    /// Objects that a writer is in: between packets, a transaction.
    taken: Vec<Tag>,
    full: bool,
}

struct Fx<'a> {
    host: &'a mut Host,
    segment: (u32, &'a [u8]),
    copied: Vec<u8>,
    sent: usize,
}

fn put(value: &mut Vec<u8>, (offset, segment): (u32, &[u8])) {
    let (from, end) = (offset as usize, offset as usize + segment.len());
    assert!(end <= MAX_BYTES as usize, "{offset} and {}", segment.len());
    if value.len() < end {
        value.resize(end, 0);
    }
    value[from..end].copy_from_slice(segment);
}

impl Fx<'_> {
    /// An object's words, which are where one can be.
    fn at(&mut self, object: Tag) -> &mut Words {
        let slab = object.offset() / SLAB;
        let class = self
            .host
            .slabs
            .get(&slab)
            .copied()
            .expect("a slab with a class");
        let bytes = u64::from(class_bytes(class).expect("a class"));
        let within = object.offset() % SLAB;
        assert!(
            within.is_multiple_of(bytes) && within + bytes <= SLAB,
            "{object:x?}"
        );
        let words = self.host.objects.entry(object).or_default();
        words.bytes.resize((bytes - u64::from(HEADER)) as usize, 0);
        words
    }

    fn written(&mut self, object: Tag) {
        assert!(
            self.host.taken.contains(&object),
            "{object:x?} is changed and not taken"
        );
    }
}

impl Memory for Fx<'_> {
    fn version(&mut self, object: Tag) -> u64 {
        self.at(object).version
    }

    fn meta(&mut self, object: Tag) -> Meta {
        self.at(object).meta
    }

    fn version_now(&mut self, object: Tag) -> u64 {
        self.at(object).version
    }

    fn take(&mut self, object: Tag, version: u64) -> bool {
        let words = self.at(object);
        let free = words.version == version && version & 1 == 0;
        if free {
            words.version += 1;
            self.host.taken.push(object);
        }
        free
    }

    fn set_meta(&mut self, object: Tag, meta: Meta) {
        self.written(object);
        let words = self.at(object);
        assert!(usize::from(meta.len) <= words.bytes.len());
        assert!(meta.generation >= words.meta.generation, "generations fall");
        words.meta = meta;
    }

    fn release(&mut self, object: Tag, version: u64) {
        self.written(object);
        self.host.taken.retain(|taken| *taken != object);
        let words = self.at(object);
        assert!(
            version & 1 == 0 && version + 1 >= words.version,
            "versions fall"
        );
        words.version = version;
    }

    fn open_slab(&mut self, spot: Spot) -> bool {
        let slab = spot.tag.offset() / SLAB;
        if self.host.full {
            return false;
        }
        let before = self.host.slabs.insert(slab, spot.class);
        assert!(
            before.is_none_or(|class| class == spot.class),
            "a slab has two classes"
        );
        true
    }
}

impl Effects for Fx<'_> {
    fn copy(&mut self, object: Tag, from: u32, bytes: u32) {
        let (from, end) = (from as usize, (from + bytes) as usize);
        self.copied = self.at(object).bytes[from..end].to_vec();
    }

    fn stage(&mut self, of: RequesterId) {
        let segment = self.segment;
        put(self.host.staging.entry(of).or_default(), segment);
    }

    fn put(&mut self, of: RequesterId, object: Tag, bytes: u32) {
        self.written(object);
        let value = self.host.staging.get(&of).cloned().unwrap_or_default();
        let bytes = bytes as usize;
        // All of it has come: it is longer only where an earlier one was.
        assert!(
            value.len() >= bytes,
            "{} of {bytes} bytes are here",
            value.len()
        );
        self.at(object).bytes[..bytes].copy_from_slice(&value[..bytes]);
    }

    fn stage_part(&mut self, of: RequesterId) {
        let (offset, segment) = self.segment;
        let part = self.host.parts.entry(of).or_default();
        let (from, end) = (offset as usize, offset as usize + segment.len());
        assert!(end <= MAX_PART, "{offset} and {}", segment.len());
        part.resize(part.len().max(end), 0);
        part[from..end].copy_from_slice(segment);
    }

    fn entries(&mut self, of: RequesterId, objects: u32) -> Option<Vec<(Entry, Range<usize>)>> {
        decode(self.host.parts.get(&of)?, objects)
    }

    fn put_part(&mut self, of: RequesterId, content: Range<usize>, object: Tag) {
        self.written(object);
        let content = self.host.parts[&of][content].to_vec();
        self.at(object).bytes[..content.len()].copy_from_slice(&content);
    }

    fn drop_part(&mut self, of: RequesterId) {
        self.host.parts.remove(&of);
    }

    fn zero(&mut self, object: Tag, bytes: u32) {
        self.written(object);
        self.at(object).bytes[..bytes as usize].fill(0);
    }

    fn gather(&mut self, lane: Lane) {
        let segment = self.segment;
        put(self.host.values.entry(lane).or_default(), segment);
    }

    fn send(&mut self, to: Dest, header: &Header, own: Own, bytes: Bytes) {
        assert!((Kind::ObjRead..=Kind::TxCommitAck).contains(&header.kind));
        let answers = matches!(to, Dest::Requester(_));
        assert_ne!(answers, header.kind.asks_object());
        let len = match bytes {
            Bytes::Copied => std::mem::take(&mut self.copied).len(),
            Bytes::Value(slot) => {
                let lane = Lane { slot, nth: 0 };
                self.host.values.get(&lane).map_or(0, Vec::len)
            }
            Bytes::Part(slot, nth, (from, count)) => {
                let parts = self.host.written.get(&slot);
                let part = parts.and_then(|parts| parts.get(usize::from(nth)));
                let end = from as usize + count as usize;
                assert!(count == 0 || part.is_some_and(|part| end <= part.len()));
                count as usize
            }
            Bytes::Room(bytes) => {
                assert!(bytes <= GRANULE && header.kind == Kind::ObjRead);
                0
            }
            Bytes::Nothing => 0,
        };
        let whole = own.b as u32 as usize;
        let rest = header.kind == Kind::ObjData && header.reason == Reason::None;
        assert!(
            !rest || header.offset as usize + len <= whole,
            "more than there is"
        );
        self.sent += len.div_ceil(GRANULE as usize).max(1);
    }

    fn done(&mut self, lane: Lane, outcome: Outcome) {
        if lane.nth == Lane::TRANSACTION {
            return assert!(matches!(outcome, Outcome::Committed | Outcome::Aborted(..)));
        }
        assert!(usize::from(lane.nth) < MANY);
        let value = self.host.values.entry(lane).or_default();
        if let Outcome::Read { version, len } = outcome {
            assert!(version & 1 == 0 && len <= MAX_BYTES);
            value.resize(len as usize, 0);
        }
    }

    fn epoch(&self) -> u32 {
        1
    }
}

struct ObjectRack {
    nodes: Vec<(Sabre, Host)>,
    objects: Vec<Ref>,
    regions: Vec<Tag>,
}

impl ObjectRack {
    fn act<R>(
        &mut self,
        node: NodeId,
        segment: (u32, &[u8]),
        act: impl FnOnce(&mut Sabre, &mut Fx<'_>) -> R,
    ) -> R {
        let (sabre, host) = &mut self.nodes[usize::from(node)];
        let mut fx = Fx {
            host,
            segment,
            copied: Vec::new(),
            sent: 0,
        };
        let result = act(sabre, &mut fx);
        assert!(fx.sent <= MAX_ANSWERS, "{} packets at once", fx.sent);
        let (taken, open) = (&host.taken, sabre.home.participant.locked());
        assert!(
            taken.is_empty() || open > 0,
            "a writer is left in {taken:x?}"
        );
        assert!(host.parts.len() <= MAX_OPEN);
        let live = host
            .objects
            .values()
            .filter(|words| words.meta.live)
            .count();
        assert_eq!(live as u64, sabre.home.book.live());
        assert_eq!(host.slabs.len(), sabre.home.book.slabs() as usize);
        result
    }
}

/// Nothing panics, nothing outside an object's place is touched, no version or generation falls, no
/// writer is left in an object, and no packet is answered by a storm.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let node = |node| {
        let book = Book::new(HomeId::of(node), BASE, SLABS);
        let mut sabre = Sabre::new((node, 1), book);
        sabre.home.kernel_reads = node == 0;
        (sabre, Host::default())
    };
    let mut rack = ObjectRack {
        nodes: (0..NODES).map(node).collect(),
        objects: Vec::new(),
        regions: Vec::new(),
    };
    for node in 0..NODES {
        let region = rack.act(node, (0, &[]), |sabre, _| sabre.home.book.reserve(2 * SLAB));
        rack.regions.extend(region);
    }
    for _ in 0..MAX_PACKETS {
        if dice.is_empty() {
            break;
        }
        step(&mut dice, &mut rack);
    }
}

/// Bytes of objects, around where granules end.
const LENGTHS: [u32; 10] = [0, 1, 48, 1000, 1024, 1025, 2048, 5000, 33_000, MAX_BYTES];

fn step(dice: &mut Dice<'_>, rack: &mut ObjectRack) {
    let node = dice.below(usize::from(NODES)) as NodeId;
    let slot = dice.below(2) as u8;
    let object = object(dice, rack);
    match dice.below(16) {
        0 => {
            let (home, len) = (rack.regions[usize::from(node)], dice.pick(&LENGTHS));
            rack.nodes[usize::from(node)].1.full = dice.one_in(8);
            let given = rack.act(node, (0, &[]), |sabre, fx| sabre.home.give(home, len, fx));
            if let Ok(answer) = given {
                let (tag, generation) = (answer.tag, answer.generation);
                rack.objects.push(Ref { tag, generation });
            }
        }
        1 => {
            let Ref { tag, generation } = object;
            let _ = rack.act(node, (0, &[]), |sabre, fx| {
                sabre.home.free(tag, generation, fx)
            });
        }
        2 => {
            let len = dice.pick(&LENGTHS);
            let version = 2 * dice.below(2) as u64;
            let reads = [(object, Known { version, len }); MANY + 1];
            let reads = &reads[..dice.below(MANY + 2)];
            rack.act(node, (0, &[]), |sabre, fx| sabre.reads(slot, reads, fx));
        }
        3 => {
            let len = dice.pick(&LENGTHS);
            let version = 2 * dice.below(3) as u64;
            let known = Known { version, len };
            let commands = [
                Command::Read(object, known),
                Command::ReadLocked(object),
                Command::Write(object, 2 * dice.below(3) as u64, len),
                Command::Alloc(object.tag, len),
                Command::Reserve(object.tag, u64::from(len) << dice.below(40)),
                Command::Free(object),
                Command::Remove(rack.regions[usize::from(node)]),
            ];
            let lane = Lane { slot, nth: 0 };
            let value = vec![dice.byte(); len as usize];
            rack.nodes[usize::from(node)].1.values.insert(lane, value);
            let command = dice.pick(&commands);
            rack.act(node, (0, &[]), |sabre, fx| sabre.command(slot, command, fx));
        }
        4 => rack.act(node, (0, &[]), |sabre, fx| sabre.tick(fx)),
        5 => rack.act(node, (0, &[]), |sabre, fx| sabre.resume(fx)),
        6 => {
            let nth = dice.below(MANY + 1) as u8;
            rack.act(node, (0, &[]), |sabre, _| sabre.abandon(Lane { slot, nth }));
        }
        7 => {
            let others = [object, self::object(dice, rack)];
            let (parts, reads) = parts(dice, &others);
            let plan = Plan {
                parts: parts.of.clone(),
                reads,
                kept: None,
            };
            if rack.nodes[usize::from(node)].0.may_transact(slot) {
                let host = &mut rack.nodes[usize::from(node)].1;
                host.written.insert(slot, parts.bytes);
                rack.act(node, (0, &[]), |sabre, fx| sabre.transact(slot, plan, fx));
            }
        }
        8 => {
            rack.act(node, (0, &[]), |sabre, fx| sabre.leave(slot, fx));
        }
        9 => {
            let (gone, word) = (Copyset(dice.word()), dice.word());
            let told = Record {
                tag: Tag(u64::from(dice.word()) << 13),
                word: word.into(),
            };
            rack.act(node, (0, &[]), |sabre, fx| {
                sabre.enter(Copyset(!gone.0));
                sabre.forget(gone, fx);
                sabre
                    .report()
                    .into_iter()
                    .for_each(|record| sabre.hear(record));
                sabre.hear(told);
                sabre.settle(fx);
            });
        }
        10 => {
            let (header, own, body) = tx_lock(dice, object);
            rack.act(node, (header.offset, &body), |sabre, fx| {
                sabre.packet(&header, &own, body.len() as u32, fx);
            });
        }
        _ => {
            let (header, own, body) = packet(dice, object);
            rack.act(node, (header.offset, &body), |sabre, fx| {
                sabre.packet(&header, &own, body.len() as u32, fx);
            });
        }
    }
}

/// An object that there is, or has been; else any address.
fn object(dice: &mut Dice<'_>, rack: &ObjectRack) -> Ref {
    let wild = dice.one_in(8);
    let known = match rack.objects.len() {
        0 => None,
        count => Some(rack.objects[dice.below(count.min(256))]),
    };
    match known.filter(|_| !wild) {
        Some(known) => known,
        None => {
            let home = HomeId::of(dice.below(4) as NodeId).start();
            let offset = match dice.below(4) {
                0 => BASE,
                1 => BASE + u64::from(dice.byte()) * 64,
                2 => u64::from(dice.word()),
                _ => u64::from(dice.word()) << 16,
            };
            let contract = match dice.one_in(8) {
                true => Contract::Coherent,
                false => Contract::Object,
            };
            let tag = Tag(home.0 + (offset & 0xff_ffff_ffff)).under(contract);
            let generation = dice.pick(&[0, 1, u32::MAX]);
            Ref { tag, generation }
        }
    }
}

/// What a transaction writes of these objects, and what it has read.
fn parts(dice: &mut Dice<'_>, objects: &[Ref]) -> (Parts, Vec<(Ref, u64)>) {
    let mut all: BTreeMap<Tag, (Entry, Vec<u8>)> = BTreeMap::new();
    for object in objects {
        let len = dice.pick(&LENGTHS);
        let entry = Entry {
            object: *object,
            expected: 2 * dice.below(4) as u64,
            len,
        };
        all.insert(object.tag, (entry, vec![dice.byte(); len as usize]));
    }
    // An object with copies that is written beside them, mostly of no region that is there.
    let tag = HomeId::of_group(0).start().under(Contract::Object);
    let decider = Entry {
        object: Ref { tag, generation: 0 },
        expected: 0,
        len: NOT_WRITTEN,
    };
    let deciders = dice.one_in(2).then_some(decider);
    let all = all.values();
    let parts = Parts::new(
        all.map(|(entry, content)| (*entry, &content[..])),
        deciders.as_slice(),
    );
    let reads = match dice.one_in(2) {
        true => Vec::new(),
        false => objects.iter().map(|object| (*object, 2)).collect(),
    };
    (parts, reads)
}

/// A segment of a part that is one, mostly.
fn tx_lock(dice: &mut Dice<'_>, object: Ref) -> (Header, Own, Vec<u8>) {
    let (parts, _) = parts(dice, &[object]);
    let (mut header, ..) = packet(dice, object);
    (header.kind, header.reason) = (Kind::TxLock, Reason::None);
    let part = &parts.bytes[0];
    let own = Own {
        a: u64::from(dice.word()) << 32 | u64::from(!dice.one_in(12)),
        b: part.len() as u64 ^ u64::from(dice.one_in(12)),
    };
    let step = GRANULE as usize * dice.pick(&[1, 32]);
    let from = step * dice.below(3);
    header.offset = from as u32;
    let rest = part.get(from..).unwrap_or_default();
    (
        header,
        own,
        rest[..rest.len().min(32 * GRANULE as usize)].to_vec(),
    )
}

fn packet(dice: &mut Dice<'_>, object: Ref) -> (Header, Own, Vec<u8>) {
    let wild = dice.one_in(12);
    let all = Kind::ALL.iter().copied();
    let kinds: Vec<Kind> = all
        .filter(|k| (Kind::ObjRead..=Kind::TxCommitAck).contains(k))
        .collect();
    let requester = RequesterId {
        node: dice.below(if wild { 40 } else { 3 }) as NodeId,
        slot: dice.below(if wild { 80 } else { 2 }) as u16,
    };
    let kind = dice.pick(&kinds);
    let seq = Seq(dice.below(24) as u64);
    let mut header = Header::request(kind, 1, object.tag, requester, seq);
    header.incarnation = if wild { dice.word() } else { 1 };
    header.sender = dice.below(4) as NodeId;
    header.flags = Flags(dice.byte() & Flags::KNOWN);
    header.reason = match dice.one_in(4) {
        true => Reason::from_byte(dice.byte() % 16).unwrap_or_default(),
        false => Reason::None,
    };
    let granule = GRANULE * dice.below(65) as u32;
    header.offset = dice.pick(&[0, 0, granule, granule, 1, u32::MAX]);
    let len = match wild {
        true => dice.word(),
        false => dice.pick(&LENGTHS),
    };
    let version = dice.pick(&[0, 2, 4, 6, 1, u64::MAX]);
    let own = own(version, object.generation, len);
    let rest = len.saturating_sub(header.offset).min(MAX_BYTES) as usize;
    let bytes = dice.pick(&[0, 1, GRANULE as usize, rest.min(8 * GRANULE as usize), rest]);
    (header, own, vec![dice.byte(); bytes])
}

/// Bytes of several lengths: every byte string is a sequence of steps.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(5);
    [64, 256, 1024, 4096]
        .map(|n| std::iter::repeat_with(|| random.u8(..)).take(n).collect())
        .into()
}
