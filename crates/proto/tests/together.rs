//! Objects with copies that are written together, where lines are so short that a record takes
//! several, and calls that no coordinator sends; and what a coordinator makes of what nodes' homes
//! say.

use rackmem_proto::abd::{Layout, first_line};
use rackmem_proto::call::Parcel;
use rackmem_proto::sabre::transaction::{Plan, Used};
use rackmem_proto::sabre::{
    Book, Defect, Laid, Memory, Meta, Need, Outcome, Ref, SLAB, Sabre, Section, Sender, Spot,
    Values, Words, bytes_with_rows, class_of, room_of,
};
use rackmem_proto::wire::{
    Contract, Copyset, Dest, Header, HomeId, Kind, NodeId, OWN_LEN, Own, Reason, RequesterId, Seq,
    Tag,
};
use std::collections::{BTreeMap, BTreeSet};

const LINE: u32 = 64;
const OBJECTS: u64 = 6;
/// The node of the coordinator; keepers are 0 and 1.
const COORDINATOR: NodeId = 2;

#[derive(Clone, Default)]
struct Place {
    version: u64,
    meta: Meta,
    bytes: Vec<u8>,
}

#[derive(Clone, Default)]
struct Places(BTreeMap<Tag, Place>);

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

struct Node {
    id: NodeId,
    sabre: Sabre,
    values: Values,
    places: Places,
}

impl Node {
    fn new(id: NodeId) -> Node {
        let mut sabre = Sabre::new((id, 1), Book::new(HomeId::of(id), 0, 1));
        let all = bytes_with_rows(OBJECTS * u64::from(LINE), LINE);
        let laid = Laid {
            first: 1,
            base: 0,
            layout: Layout::new(LINE, all),
        };
        sabre.kept.lay_out(0, laid);
        Node {
            id,
            sabre,
            values: Values::default(),
            places: Places::default(),
        }
    }
}

/// A group, whose keeper of an epoch is the node before it, and a coordinator.
struct Rack {
    lines: BTreeMap<Tag, Vec<u8>>,
    keeper: Node,
    coordinator: Node,
    epoch: u32,
    broken: Option<Defect>,
    /// Lines that a majority has before the keeper dies.
    stores: usize,
    stored: Vec<Tag>,
}

fn section<R>(
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

fn object(nth: u64) -> Ref {
    let tag = Tag(HomeId::of_group(0).start().0 + nth * u64::from(LINE));
    Ref {
        tag: tag.under(Contract::Object),
        generation: 0,
    }
}

/// An object in the memory of a node.
fn plain(home: NodeId, write: Option<&[u8]>) -> Used<'_> {
    let object = Ref {
        tag: HomeId::of(home).start().under(Contract::Object),
        generation: 0,
    };
    let read = Some(2);
    Used {
        object,
        read,
        write,
    }
}

impl Rack {
    fn new(broken: Option<Defect>) -> Rack {
        let meta = Meta {
            generation: 0,
            class: class_of(LINE - 16).unwrap(),
            live: true,
            len: 8,
        };
        let line = |nth: u64| {
            let line = [2, meta.to_word(), 0, 0, 0, 0, 0, 0].map(u64::to_be_bytes);
            let at = Tag(first_line(0).0 + nth * u64::from(LINE));
            (at, line.concat())
        };
        Rack {
            lines: (0..OBJECTS).map(line).collect(),
            keeper: Node::new(0),
            coordinator: Node::new(COORDINATOR),
            epoch: 1,
            broken,
            stores: usize::MAX,
            stored: Vec::new(),
        }
    }

    /// Serves a packet. None: the keeper has died meanwhile.
    fn serve(&mut self, packet: &Parcel) -> Option<Vec<Parcel>> {
        let (own, rest) = packet.split();
        let now = (self.epoch, self.broken);
        let (mut all, mut asked) = (Vec::new(), BTreeSet::new());
        loop {
            let segment = (packet.header.offset, rest);
            let (need, sent) = section(&mut self.keeper, now, segment, |sabre, fx| {
                sabre.packet(&packet.header, &own, rest.len() as u32, fx);
                sabre.kept.take_need()
            });
            all.extend(sent);
            match need {
                None => return Some(all),
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
    fn next_keeper(&mut self) -> Vec<Parcel> {
        self.epoch += 1;
        self.stores = usize::MAX;
        self.keeper = Node::new(1);
        let now = (self.epoch, self.broken);
        section(&mut self.keeper, now, (0, &[]), |sabre, fx| {
            sabre.enter(Copyset::EMPTY);
            sabre.settle(Copyset::EMPTY, fx);
        });
        self.coordinates(|sabre, fx| sabre.resume(fx))
    }

    /// A transaction writes this to these objects: what it sends.
    fn begin(&mut self, objects: &[u64], value: u8) -> Vec<Parcel> {
        self.begin_with(objects, &[value; 8])
    }

    fn begin_with(&mut self, objects: &[u64], content: &[u8]) -> Vec<Parcel> {
        let used = objects.iter().map(|nth| Used {
            object: object(*nth),
            read: None,
            write: Some(content),
        });
        self.commit(&used.collect::<Vec<_>>())
    }

    fn commit(&mut self, used: &[Used<'_>]) -> Vec<Parcel> {
        let (plan, mut parts) = Plan::of(used).unwrap();
        self.coordinator.values.begin_transaction(0, 0, &mut parts);
        self.coordinates(|sabre, fx| assert!(sabre.transact(0, plan, fx)))
    }

    /// What the coordinator sends for this.
    fn coordinates(
        &mut self,
        act: impl FnOnce(&mut Sabre, &mut Section<'_, &mut Places>),
    ) -> Vec<Parcel> {
        let now = (self.epoch, self.broken);
        section(&mut self.coordinator, now, (0, &[]), act).1
    }

    /// A home of a node says so to what the coordinator has sent it: what that sends then.
    fn hears(&mut self, asked: &Parcel, (kind, reason): (Kind, Reason)) -> Vec<Parcel> {
        let header = &asked.header;
        let answer = header.refuse(kind, header.tag.home().0, reason);
        // All bytes that it was asked to take are there.
        let (own, _) = asked.split();
        self.coordinates(|sabre, fx| sabre.packet(&answer, &own, 0, fx))
    }

    fn ended(&mut self) -> Option<Outcome> {
        self.coordinator.values.end_transaction(0)
    }

    /// The keeper serves what the coordinator has sent, which is answered.
    fn ends(&mut self, sent: &[Parcel]) -> Option<Outcome> {
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
    fn call(&mut self, kind: Kind, (slot, seq): (u16, u64), tag: Tag, len: u32) -> (Reason, Tag) {
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
        let packet = Parcel::new(Dest::Home(HomeId::of_group(0)), header, own, &body);
        let answers = self.serve(&packet).unwrap();
        (answers[0].header.reason, answers[0].header.tag)
    }

    /// What readers find of all objects.
    fn read(&mut self) -> Vec<u8> {
        let me = RequesterId {
            node: COORDINATOR,
            slot: 1,
        };
        let all = (0..OBJECTS).map(|nth| {
            let header = Header::request(Kind::ObjRead, self.epoch, object(nth).tag, me, Seq(1));
            let own = rackmem_proto::sabre::own(0, 0, 0);
            let packet = Parcel::new(Dest::Home(HomeId::of_group(0)), header, own, &[]);
            let answers = self.serve(&packet).unwrap();
            answers[0].split().1.first().copied().unwrap_or(0)
        });
        all.collect()
    }
}

/// How many lines a transaction over four objects stores.
fn whole() -> usize {
    let mut rack = Rack::new(None);
    let sent = rack.begin(&[0, 1, 2, 3], 1);
    assert_eq!(rack.ends(&sent), Some(Outcome::Committed));
    rack.stored.len()
}

/// A keeper dies after each line that a second transaction stores: all of it is there, or nothing.
fn dies_everywhere(broken: Option<Defect>) -> Result<(), Vec<u8>> {
    // A record of four objects takes several lines, and its objects are not all in the first one.
    for stores in 0..=whole() + 4 {
        let mut rack = Rack::new(broken);
        let sent = rack.begin(&[0, 1, 2, 3], 1);
        assert_eq!(rack.ends(&sent), Some(Outcome::Committed));
        rack.stores = stores;
        let sent = rack.begin(&[2, 3, 4, 5], 2);
        let ended = rack.ends(&sent);
        let again = rack.next_keeper();
        let seen = rack.read();
        let (before, after) = ([1, 1, 1, 1, 0, 0], [1, 1, 2, 2, 2, 2]);
        if seen != after && (seen != before || ended.is_some()) {
            return Err(seen);
        }
        if ended.is_none() {
            assert_eq!(rack.ends(&again), Some(Outcome::Committed), "{stores}");
        }
        if rack.read() != after {
            return Err(rack.read());
        }
    }
    Ok(())
}

#[test]
fn a_keeper_that_dies_at_any_line_leaves_all_or_nothing() {
    assert!(whole() > 1 + 4, "a record takes several lines");
    assert_eq!(dies_everywhere(None), Ok(()));
}

/// A transaction that writes what it has read is one with its own outcome, not one that was
/// overtaken: its coordinator asks the next keeper, who finds the objects changed by the record.
#[test]
fn a_transaction_that_has_changed_what_it_read_is_not_in_its_own_way() {
    for stores in 0..=whole() {
        let mut rack = Rack::new(None);
        rack.stores = stores;
        let used = [0, 1, 2, 3].map(|nth| Used {
            object: object(nth),
            read: Some(2),
            write: Some(&[1; 8]),
        });
        let sent = rack.commit(&used);
        // Its answers are lost.
        let whole = sent.iter().all(|packet| rack.serve(packet).is_some());
        assert_eq!(whole, stores == self::whole(), "the keeper died");
        let again = rack.next_keeper();
        assert_eq!(rack.ends(&again), Some(Outcome::Committed), "{stores}");
        assert_eq!(rack.read(), [1, 1, 1, 1, 0, 0]);
    }
}

#[test]
fn the_lines_of_the_last_record_stay_until_the_next_one_is_there() {
    assert!(dies_everywhere(Some(Defect::OneStretch)).is_err());
    assert!(dies_everywhere(Some(Defect::ForgetRecord)).is_err());
}

/// A keeper that has asked a majority for a line is told of it in the next epoch, when it has asked
/// for the same line again.
#[test]
fn a_line_of_an_ended_epoch_says_nothing_and_the_question_stands() {
    let mut rack = Rack::new(None);
    let me = RequesterId {
        node: COORDINATOR,
        slot: 1,
    };
    let ask = |keeper: &mut Node, epoch: u32| {
        let header = Header::request(Kind::ObjRead, epoch, object(1).tag, me, Seq(epoch.into()));
        section(keeper, (epoch, None), (0, &[]), |sabre, fx| {
            sabre.packet(&header, &rackmem_proto::sabre::own(0, 0, 0), 0, fx);
            sabre.kept.take_need()
        })
        .0
    };
    let fetched = |keeper: &mut Node, (line, epoch): (Tag, u32)| {
        section(keeper, (2, None), (0, &[]), |sabre, fx| {
            sabre.kept.fetched((line, epoch), &[0; LINE as usize], fx);
        });
    };
    let keeper = &mut rack.keeper;
    let first = ask(keeper, 1);
    section(keeper, (2, None), (0, &[]), |sabre, fx| {
        sabre.enter(Copyset::EMPTY);
        sabre.settle(Copyset::EMPTY, fx);
    });
    let Some(Need::Line(line)) = ask(keeper, 2) else {
        panic!("a keeper asks for what it has not heard in its epoch");
    };
    assert!(matches!(first, Some(Need::Line(is)) if is == line));
    fetched(keeper, (line, 1));
    assert!(matches!(ask(keeper, 2), Some(Need::Line(is)) if is == line));
    fetched(keeper, (line, 1));
    fetched(keeper, (line, 2));
    assert!(!matches!(ask(keeper, 2), Some(Need::Line(is)) if is == line));
}

#[test]
fn an_object_is_written_to_its_last_byte_and_not_beyond() {
    let mut rack = Rack::new(None);
    let room = room_of(LINE) as usize;
    let sent = rack.begin_with(&[1, 4], &vec![3; room]);
    assert_eq!(rack.ends(&sent), Some(Outcome::Committed));
    assert_eq!(rack.read(), [0, 3, 0, 0, 3, 0]);
    let sent = rack.begin_with(&[1, 4], &vec![5; room + 1]);
    let ended = rack.ends(&sent);
    assert!(ended.is_some() && ended != Some(Outcome::Committed));
    assert_eq!(rack.read(), [0, 3, 0, 0, 3, 0]);
}

/// Whatever a call says of itself, nothing is changed that it does not bring, and it is answered
/// with a refusal or not at all.
#[test]
fn forged_calls_change_nothing() {
    let mut rack = Rack::new(None);
    let who = RequesterId {
        node: COORDINATOR,
        slot: 2,
    };
    let word = |tag: Tag, expected: u64, len: u32| {
        let rest = u64::from(len);
        [tag.0, expected, rest].map(u64::to_be_bytes).concat()
    };
    let (here, plain) = (object(0).tag, HomeId::of(1).start().under(Contract::Object));
    let outside = object(1 << 20).tag;
    let others = Tag(HomeId::of_group(3).start().0).under(Contract::Object);
    let long = [word(here, 0, 40), vec![1; 40]].concat();
    let cases: &[(u64, Vec<u8>)] = &[
        (0, Vec::new()),
        (1, word(here, 0, 8)),
        (1, word(here, 0, u32::MAX)),
        (1, word(here, 0, u32::MAX - 1)),
        (1, word(plain, 0, 0)),
        (1, word(outside, 0, 0)),
        (1, word(others, 0, 0)),
        (1, word(Tag(here.0 + 8), 0, 0)),
        (1, long),
        (2, [word(here, 0, 0), word(here, 0, 0)].concat()),
        (2, [word(here, 0, 0), word(others, 2, u32::MAX)].concat()),
        (65, vec![0; 65 * 24]),
        (u64::MAX, word(here, 0, 0)),
    ];
    for (nth, (objects, body)) in cases.iter().enumerate() {
        for claimed in [body.len() as u32, body.len() as u32 + 1024, u32::MAX] {
            let seq = Seq(nth as u64 * 8 + u64::from(claimed % 7) + 1);
            let mut header = Header::request(Kind::TxCommit, rack.epoch, here, who, seq);
            header.incarnation = 1;
            let own = Own {
                a: *objects,
                b: claimed.into(),
            };
            let packet = Parcel::new(Dest::Home(HomeId::of_group(0)), header, own, body);
            let answers = rack.serve(&packet).unwrap();
            let done = |answer: &&Parcel| answer.header.reason == Reason::None;
            assert!(
                !answers.iter().any(|answer| done(&answer)),
                "{nth} {claimed}"
            );
        }
    }
    assert_eq!(rack.read(), [0; OBJECTS as usize]);
    assert_eq!(rack.stored, []);
}

#[test]
fn a_region_is_full_when_an_object_is_in_each_of_its_places() {
    let mut rack = Rack::new(None);
    let (any, last) = (object(0).tag, object(OBJECTS - 1).tag);
    let full = Reason::Full;
    assert_eq!(rack.call(Kind::ObjAlloc, (1, 1), any, 8).0, full);
    assert_eq!(rack.call(Kind::ObjFree, (1, 2), last, 0).0, Reason::None);
    let given = rack.call(Kind::ObjAlloc, (1, 3), any, 8);
    assert_eq!(given, (Reason::None, last));
    assert_eq!(rack.call(Kind::ObjAlloc, (1, 4), any, 8).0, full);
}

/// Who has made an object and was not told is told by the next keeper which it is, whoever has
/// written it meanwhile: it does not make another one.
#[test]
fn an_object_is_made_once_though_its_maker_asks_the_next_keeper() {
    let mut rack = Rack::new(None);
    let (any, last) = (object(0).tag, object(OBJECTS - 1).tag);
    rack.lines.pop_last();
    let made = (Reason::None, last);
    assert_eq!(rack.call(Kind::ObjAlloc, (1, 1), any, 8), made);
    assert_eq!(rack.call(Kind::ObjWrite, (3, 1), last, 8), made);
    rack.next_keeper();
    assert_eq!(rack.call(Kind::ObjAlloc, (1, 1), any, 8), made);
}

/// A region may have been removed, and another made in its place, of which the keeper has yet to
/// hear: until then it cannot say what is wrong with a transaction that has read both.
#[test]
fn a_transaction_waits_until_its_keeper_has_heard_of_its_objects() {
    let mut rack = Rack::new(None);
    let next = SLAB / u64::from(LINE);
    let sent = rack.begin(&[1, next], 3);
    assert_eq!(rack.ends(&sent), None);
    let laid = Laid {
        first: 2,
        base: SLAB,
        layout: Layout::new(LINE, bytes_with_rows(OBJECTS * u64::from(LINE), LINE)),
    };
    assert!(rack.keeper.sabre.kept.lay_out(0, laid));
    let gone = Outcome::Aborted(Reason::Gone, object(1).tag);
    assert_eq!(rack.ends(&sent), Some(gone));
}

#[test]
fn a_transaction_that_reads_ends_when_each_object_is_known_to_be_as_it_was() {
    let mut rack = Rack::new(None);
    let all = [plain(0, None), plain(1, None)];
    let same = (Kind::ObjData, Reason::NotModified);
    let asked = rack.commit(&all);
    for _ in 0..2 {
        rack.hears(&asked[1], same);
        assert_eq!(
            rack.ended(),
            None,
            "a copy says nothing of the other object"
        );
    }
    rack.hears(&asked[0], same);
    assert_eq!(rack.ended(), Some(Outcome::Committed));
    let asked = rack.commit(&all);
    rack.hears(&asked[0], same);
    rack.hears(&asked[1], (Kind::ObjData, Reason::None));
    let changed = Outcome::Aborted(Reason::Invalid, all[1].object.tag);
    assert_eq!(rack.ended(), Some(changed));
}

/// It waits for those that are left, and asks them again when it has heard of the others' end.
#[test]
fn a_decided_transaction_does_not_wait_for_a_home_whose_memory_is_gone() {
    for done in [false, true] {
        let mut rack = Rack::new(None);
        let lock = rack.commit(&[plain(0, Some(&[1])), plain(1, Some(&[1]))]);
        let locked = (Kind::TxLockAck, Reason::None);
        let lock = rack.hears(&lock[0], locked);
        let commit = rack.hears(&lock[0], locked);
        let committed = (Kind::TxCommitAck, Reason::None);
        if done {
            rack.hears(&commit[0], committed);
        }
        let again = rack.coordinates(|sabre, fx| sabre.forget(Copyset::of(0), fx));
        let to = Vec::from_iter(again.iter().map(|packet| packet.to));
        match done {
            true => assert_eq!(to, [], "nothing was lost that it waits for"),
            false => assert_eq!(to, [Dest::Home(HomeId::of(1))]),
        }
        assert_eq!(rack.ended(), None);
        rack.hears(&commit[1], committed);
        assert_eq!(rack.ended(), Some(Outcome::Committed));
    }
}
