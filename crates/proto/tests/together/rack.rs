//! Groups, the keeper of all of them, and a coordinator.

use rackmem_proto::abd::{Layout, first_line};
use rackmem_proto::call::Parcel;
use rackmem_proto::sabre::transaction::{Plan, Used};
use rackmem_proto::sabre::{
    Book, Defect, Laid, Memory, Meta, Need, Outcome, Ref, SLAB, Sabre, Section, Sender, Spot,
    Values, Words, bytes_with_rows, class_of,
};
use rackmem_proto::wire::{
    Contract, Copyset, Dest, Header, HomeId, Kind, NodeId, OWN_LEN, Reason, RequesterId, Seq, Tag,
};
use std::collections::{BTreeMap, BTreeSet};

pub const LINE: u32 = 64;
pub const OBJECTS: u64 = 6;
/// Regions with copies, one of each group.
pub const REGIONS: u16 = 3;
/// Lines that a packet stores, at most: three records with all that they overwrite.
const MOST_STORES: usize = 64;
/// The node of the coordinator; keepers are 0 and 1.
pub const COORDINATOR: NodeId = 2;

#[derive(Clone, Default)]
pub struct Place {
    version: u64,
    meta: Meta,
    bytes: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct Places(BTreeMap<Tag, Place>);

impl Memory for &mut Places {
    fn version(&mut self, object: Tag) -> u64 {
        self.0.entry(object).or_default().version
    }
    fn meta(&mut self, object: Tag) -> Meta {
        self.0.entry(object).or_default().meta
    }
    fn version_now(&mut self, object: Tag) -> u64 {
        self.version(object)
    }
    fn take(&mut self, object: Tag, version: u64) -> bool {
        let place = self.0.entry(object).or_default();
        assert_eq!((place.version, version & 1), (version, 0));
        place.version += 1;
        true
    }
    fn set_meta(&mut self, object: Tag, meta: Meta) {
        self.0.entry(object).or_default().meta = meta;
    }
    fn release(&mut self, object: Tag, version: u64) {
        self.0.entry(object).or_default().version = version;
    }
    fn open_slab(&mut self, _: Spot) -> bool {
        true
    }
}

impl Words for &mut Places {
    fn copy_out(&mut self, object: Tag, from: u32, out: &mut [u8]) {
        let place = self.0.entry(object).or_default();
        let bytes = place.bytes.iter().skip(from as usize).chain(&[0; 48]);
        out.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
    }
    fn copy_in(&mut self, object: Tag, bytes: &[u8]) {
        assert!(bytes.len() <= 48, "{object:x?} has {} bytes", bytes.len());
        let place = self.0.entry(object).or_default();
        place.bytes.resize(48, 0);
        place.bytes[..bytes.len()].copy_from_slice(bytes);
    }
    fn zero(&mut self, object: Tag, bytes: u32) {
        self.copy_in(object, &vec![0; bytes as usize]);
    }
}

pub struct Node {
    id: NodeId,
    pub sabre: Sabre,
    pub values: Values,
    places: Places,
}

impl Node {
    fn new(id: NodeId, laid: &[Laid]) -> Node {
        Node::of_life((id, 1), laid)
    }

    /// An object's version, and its first byte.
    pub fn first_of(&mut self, object: Tag) -> (u64, u8) {
        let place = self.places.0.entry(object).or_default();
        (place.version, place.bytes.first().copied().unwrap_or(0))
    }

    pub fn of_life((id, life): (NodeId, u32), laid: &[Laid]) -> Node {
        let mut sabre = Sabre::new((id, life), Book::new(HomeId::of(id), 0, 1));
        for (group, laid) in (0..).zip(laid) {
            sabre.kept.lay_out(group, *laid);
        }
        Node {
            id,
            sabre,
            values: Values::default(),
            places: Places::default(),
        }
    }
}

/// Groups whose keeper of an epoch is the node before it, and a coordinator.
pub struct Rack {
    pub lines: BTreeMap<Tag, Vec<u8>>,
    pub keeper: Node,
    pub coordinator: Node,
    pub epoch: u32,
    pub broken: Option<Defect>,
    /// Lines that a majority has before the keeper dies.
    pub stores: usize,
    pub stored: Vec<Tag>,
    /// What the home of each group has of objects.
    pub laid: Vec<Laid>,
    /// A group without a majority.
    pub alone: Option<u16>,
}

/// A region of objects whose addresses begin there, or that is removed.
pub fn laid(first: u32, base: u64, is_there: bool) -> Laid {
    let all = bytes_with_rows(OBJECTS * u64::from(LINE), LINE);
    let layout = Layout::new(LINE, all).filter(|_| is_there);
    Laid {
        first,
        base,
        layout,
    }
}

/// What a section acts by.
pub type Fx<'s, 'p> = Section<'s, &'p mut Places>;

pub fn section<R>(
    node: &mut Node,
    (epoch, broken): (u32, Option<Defect>),
    segment: (u32, &[u8]),
    act: impl FnOnce(&mut Sabre, &mut Section<'_, &mut Places>) -> R,
) -> (R, Vec<Parcel>) {
    let sender = Sender {
        node: node.id,
        epoch,
        room: OWN_LEN + (8 << 10),
        broken,
    };
    let mut fx = Section::new(&mut node.places, &mut node.values, segment, sender);
    let result = act(&mut node.sabre, &mut fx);
    (result, fx.sent)
}

pub fn object(nth: u64) -> Ref {
    object_of(0, nth)
}

pub fn object_of(group: u16, nth: u64) -> Ref {
    let tag = Tag(HomeId::of_group(group).start().0 + nth * u64::from(LINE));
    Ref {
        tag: tag.under(Contract::Object),
        generation: 0,
    }
}

impl Rack {
    pub fn new(broken: Option<Defect>) -> Rack {
        let meta = Meta {
            generation: 0,
            class: class_of(LINE - 16).unwrap(),
            live: true,
            len: 8,
        };
        let line = |(group, nth): (u16, u64)| {
            let line = [2, meta.to_word(), 0, 0, 0, 0, 0, 0].map(u64::to_be_bytes);
            let at = Tag(first_line(group).0 + nth * u64::from(LINE));
            (at, line.concat())
        };
        let all = (0..REGIONS).flat_map(|group| (0..OBJECTS).map(move |nth| (group, nth)));
        let laid = vec![laid(1, 0, true); REGIONS.into()];
        Rack {
            lines: all.map(line).collect(),
            keeper: Node::new(0, &laid),
            coordinator: Node::new(COORDINATOR, &laid),
            epoch: 1,
            broken,
            stores: usize::MAX,
            stored: Vec::new(),
            laid,
            alone: None,
        }
    }

    /// A region is removed: all nodes hear of it at once.
    pub fn remove(&mut self, group: u16) {
        self.laid[usize::from(group)] = laid(2, SLAB, false);
        self.lines.retain(|line, _| line.home().0 != group);
        for node in [&mut self.keeper, &mut self.coordinator] {
            node.sabre
                .kept
                .lay_out(group, self.laid[usize::from(group)]);
        }
    }

    fn has_majority(&self, line: Tag) -> bool {
        Some(line.home().0) != self.alone
    }

    /// Serves a packet. None: the keeper has died meanwhile.
    pub fn serve(&mut self, packet: &Parcel) -> Option<Vec<Parcel>> {
        let (own, rest) = packet.split();
        let now = (self.epoch, self.broken);
        let (mut all, mut asked) = (Vec::new(), BTreeSet::new());
        let before = self.stored.len();
        loop {
            let segment = (packet.header.offset, rest);
            let (need, sent) = section(&mut self.keeper, now, segment, |sabre, fx| {
                sabre.packet(&packet.header, &own, rest.len() as u32, fx);
                sabre.kept.take_need()
            });
            all.extend(sent);
            match need {
                None => return Some(all),
                Some(Need::Line(line) | Need::Store(line, _)) if !self.has_majority(line) => {
                    return Some(all);
                }
                Some(Need::Line(line)) => {
                    assert!(asked.insert(line), "it has {line:x?}");
                    let value = self.lines.get(&line).cloned();
                    let value = value.unwrap_or_else(|| vec![0; LINE as usize]);
                    section(&mut self.keeper, now, (0, &[]), |sabre, fx| {
                        sabre.kept.fetched((line, now.0), &value, fx);
                    });
                }
                Some(Need::News) => return Some(all),
                Some(Need::Store(line, value)) => {
                    let ends = self.stored.len() - before < MOST_STORES;
                    assert!(ends, "it stores line after line, {line:x?} at last");
                    self.stores = self.stores.checked_sub(1)?;
                    self.lines.insert(line, value);
                    self.stored.push(line);
                    section(&mut self.keeper, now, (0, &[]), |sabre, fx| {
                        sabre.kept.stored(fx);
                    });
                }
            }
        }
    }

    /// The next keeper serves, and the coordinator asks again.
    pub fn next_keeper(&mut self) -> Vec<Parcel> {
        self.epoch += 1;
        self.stores = usize::MAX;
        self.keeper = Node::new(1, &self.laid);
        let now = (self.epoch, self.broken);
        section(&mut self.keeper, now, (0, &[]), |sabre, fx| {
            sabre.enter(Copyset::EMPTY);
            sabre.settle(fx);
        });
        self.coordinates(|sabre, fx| sabre.resume(fx))
    }

    /// A transaction writes this to these objects: what it sends.
    pub fn begin(&mut self, objects: &[u64], value: u8) -> Vec<Parcel> {
        self.begin_with(objects, &[value; 8])
    }

    pub fn begin_with(&mut self, objects: &[u64], content: &[u8]) -> Vec<Parcel> {
        let used = objects.iter().map(|nth| Used {
            object: object(*nth),
            read: None,
            write: Some(content),
        });
        self.commit(&used.collect::<Vec<_>>())
    }

    pub fn commit(&mut self, used: &[Used<'_>]) -> Vec<Parcel> {
        let (plan, mut parts) = Plan::of(used);
        self.coordinator.values.begin_transaction(0, 0, &mut parts);
        self.coordinates(|sabre, fx| assert!(sabre.transact(0, plan, fx)))
    }

    /// What the coordinator sends for this.
    pub fn coordinates(
        &mut self,
        act: impl FnOnce(&mut Sabre, &mut Section<'_, &mut Places>),
    ) -> Vec<Parcel> {
        let now = (self.epoch, self.broken);
        section(&mut self.coordinator, now, (0, &[]), act).1
    }

    /// A home of a node says so to what the coordinator has sent it: what that sends then.
    pub fn hears(&mut self, asked: &Parcel, (kind, reason): (Kind, Reason)) -> Vec<Parcel> {
        let header = &asked.header;
        let answer = header.refuse(kind, header.tag.home().0, reason);
        // All bytes that it was asked to take are there.
        let (own, _) = asked.split();
        self.coordinates(|sabre, fx| sabre.packet(&answer, &own, 0, fx))
    }

    pub fn ended(&mut self) -> Option<Outcome> {
        self.coordinator.values.end_transaction(0)
    }

    /// The keeper serves what the coordinator has sent, which is answered.
    pub fn ends(&mut self, sent: &[Parcel]) -> Option<Outcome> {
        let now = (self.epoch, self.broken);
        for packet in sent {
            for answer in self.serve(packet)? {
                let (own, _) = answer.split();
                section(&mut self.coordinator, now, (0, &[]), |sabre, fx| {
                    sabre.packet(&answer.header, &own, 0, fx);
                });
            }
        }
        self.ended()
    }

    /// A call of a thread beside the coordinator, and what comes of it.
    pub fn call(&mut self, kind: Kind, by: (u16, u64), tag: Tag, len: u32) -> (Reason, Tag) {
        self.calls(kind, by, tag, len).unwrap().unwrap()
    }

    /// The same; nothing if it is not answered, or if the keeper dies meanwhile.
    pub fn calls(
        &mut self,
        kind: Kind,
        (slot, seq): (u16, u64),
        tag: Tag,
        len: u32,
    ) -> Option<Option<(Reason, Tag)>> {
        let who = RequesterId {
            node: COORDINATOR,
            slot,
        };
        let mut header = Header::request(kind, self.epoch, tag, who, Seq(seq));
        header.incarnation = 1;
        let body = match kind {
            Kind::ObjWrite => vec![7; len as usize],
            _ => Vec::new(),
        };
        let own = rackmem_proto::sabre::own(0, 0, len);
        let packet = Parcel::new(Dest::Home(tag.home()), header, own, &body);
        let answers = self.serve(&packet)?;
        let first = answers.first().map(|answer| &answer.header);
        Some(first.map(|header| (header.reason, header.tag)))
    }

    /// What readers find of all objects.
    pub fn read(&mut self) -> Vec<u8> {
        let all = (0..OBJECTS).map(|nth| self.look(object(nth)).unwrap().unwrap());
        all.collect()
    }

    /// What a reader finds in an object; nothing if it is not answered, or if the keeper dies
    /// meanwhile.
    pub fn look(&mut self, object: Ref) -> Option<Option<u8>> {
        let me = RequesterId {
            node: COORDINATOR,
            slot: 1,
        };
        let header = Header::request(Kind::ObjRead, self.epoch, object.tag, me, Seq(1));
        let own = rackmem_proto::sabre::own(0, 0, 0);
        let packet = Parcel::new(Dest::Home(object.tag.home()), header, own, &[]);
        let answers = self.serve(&packet)?;
        let first = |answer: &Parcel| answer.split().1.first().copied().unwrap_or(0);
        Some(answers.first().map(first))
    }
}
