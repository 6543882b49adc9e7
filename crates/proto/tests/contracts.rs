//! Memory is reached under its own contract only, whoever takes an address from wherever.

use rackmem_proto::call::Call;
use rackmem_proto::engine::{Home, Memory};
use rackmem_proto::flowcc::{ChunkKind, HomeAction, HomeAgent, HomeConfig};
use rackmem_proto::heap::Backing;
use rackmem_proto::wire::{Contract, Flags, Header, Kind, Reason, Record, RequesterId, Seq, Tag};
use rackmem_proto::{CHUNK, Outputs};

const BLOCK: u32 = 4096;
const REQUESTER: RequesterId = RequesterId { node: 1, slot: 0 };

fn home() -> HomeAgent {
    let mut home = HomeAgent::new(HomeConfig {
        node: 0,
        epoch: 1,
        block: BLOCK,
        chunks: 4,
        incarnation: 1,
        migration: None,
        answering: None,
        seed: 0,
    });
    assert_eq!(home.grow(1), Some(Tag(0)));
    home
}

fn request(kind: Kind, tag: Tag, seq: u64) -> Header {
    let mut header = Header::request(kind, 1, tag, REQUESTER, Seq(seq));
    header.incarnation = 1;
    header
}

/// Tags of the first block's place under every contract but its own, and under no contract.
fn others() -> impl Iterator<Item = Tag> {
    (1..8).map(|bits| Tag(bits << Tag::OFFSET_BITS))
}

/// Kinds that ask for a block, or for memory.
const ASKS: [Kind; 9] = [
    Kind::ReadMiss,
    Kind::WriteMiss,
    Kind::WriteShared,
    Kind::EvictShared,
    Kind::EvictModified,
    Kind::LockRead,
    Kind::LockWrite,
    Kind::AcceptLoss,
    Kind::Alloc,
];

#[test]
fn what_asks_for_a_block_under_another_contract_is_refused() {
    for (nth, (kind, tag)) in ASKS
        .into_iter()
        .flat_map(|kind| others().map(move |tag| (kind, tag)))
        .enumerate()
    {
        let (mut home, mut untouched) = (home(), home());
        let mut header = request(kind, tag, 1 + nth as u64);
        if kind == Kind::Alloc {
            header.tag.0 |= 64;
            header.offset = Call {
                stream: 0,
                number: 1,
            }
            .to_offset();
        }
        let (outputs, action) = home.handle(&header, 0);
        let reasons: Vec<_> = outputs.iter().map(|output| output.header.reason).collect();
        assert_eq!(reasons, [Reason::Refused], "{kind:?} of {tag:?}");
        assert_eq!(action, HomeAction::None);
        assert_eq!(home.inspect(Tag(0)), untouched.inspect(Tag(0)));
    }
}

#[test]
fn blocks_under_another_contract_are_not_fetched_or_used_in_place() {
    let mut home = home();
    let ours = home.give(u64::from(BLOCK)).unwrap();
    assert!(home.has_current(ours) && home.has_alone(ours));
    for other in others() {
        let tag = Tag(ours.0 | other.0);
        assert!(!home.has_current(tag) && !home.has_alone(tag), "{tag:?}");
        let answer = home.fetched(&request(Kind::Fetch, tag, 1), 0).header;
        assert_eq!(
            (answer.kind, answer.reason),
            (Kind::FetchAck, Reason::Refused)
        );
        assert!(!answer.flags.has(Flags::DATA));
    }
    let answer = home.fetched(&request(Kind::Fetch, ours, 2), 1).header;
    assert!(answer.flags.has(Flags::DATA) && answer.reason == Reason::None);
}

#[test]
fn bytes_for_a_block_under_another_contract_are_not_stored() {
    for tag in others() {
        let mut home = home();
        let (outputs, action) = home.handle(&request(Kind::WriteBack, tag, 1), BLOCK);
        assert!(outputs.is_empty(), "{tag:?}");
        assert_eq!(action, HomeAction::None);
    }
}

#[test]
fn an_object_is_not_freed_by_its_place_under_another_contract() {
    let mut home = home();
    let object = home.give(64).unwrap();
    let live = home.heap().live();
    let objects = others().map(|other| Record {
        tag: Tag(object.0 | other.0),
        word: 64,
    });
    let mut header = request(Kind::Free, Tag(0), 1);
    header.offset = Call {
        stream: 0,
        number: 1,
    }
    .to_offset();
    let outputs = home.free(&header, objects);
    let ack = outputs.iter().next().expect("an answer").header;
    assert_eq!((ack.kind, ack.copyset.0), (Kind::FreeAck, 7));
    assert_eq!(home.heap().live(), live);
    assert!(!home.take_back(object.under(Contract::Locked), 64));
    assert!(home.take_back(object, 64));
}

/// A home with a chunk of objects, and that chunk's address as one of coherent memory,
/// which is invented.
fn with_objects() -> (HomeAgent, Tag) {
    let mut home = home();
    let objects = ChunkKind {
        contract: Contract::Object,
        backing: Backing::SharedFile,
    };
    let at = home.set_aside(1, objects).unwrap();
    assert_eq!(at, Tag(CHUNK).under(Contract::Object));
    assert_eq!(home.chunk(at), Some(objects));
    assert_eq!(home.chunk(Tag(0)), Some(ChunkKind::COHERENT));
    (home, Tag(CHUNK))
}

#[test]
fn a_coherent_address_of_another_contracts_chunk_is_no_memory() {
    for (nth, kind) in ASKS.into_iter().enumerate() {
        if kind == Kind::Alloc {
            continue;
        }
        let (mut home, invented) = with_objects();
        let (outputs, action) = home.handle(&request(kind, invented, 1 + nth as u64), 0);
        let reasons: Vec<_> = outputs.iter().map(|output| output.header.reason).collect();
        assert_eq!(reasons, [Reason::NoMemory], "{kind:?}");
        assert_eq!(action, HomeAction::None);
        assert_eq!(home.inspect(invented), None);
    }
    let (mut home, invented) = with_objects();
    let write_back = request(Kind::WriteBack, invented, 1);
    assert_eq!(home.handle(&write_back, BLOCK).1, HomeAction::None);
    assert!(!home.take_back(invented, CHUNK), "nobody gave it out");
    assert!(!home.take_back(invented.under(Contract::Object), CHUNK));
}

#[test]
fn memory_is_not_given_out_of_another_contracts_chunk() {
    let (mut home, invented) = with_objects();
    let mut given = 0;
    while let Some(tag) = home.give(1 << 20) {
        assert_ne!(tag.offset() / CHUNK, invented.offset() / CHUNK);
        given += 1;
    }
    assert_eq!(given, 2 * (CHUNK >> 20), "of two of four chunks");
    let objects = home.chunk(invented).unwrap();
    assert_eq!(home.set_aside(1, objects), None);
}

/// Counts what is stored.
#[derive(Default)]
struct Stored(usize);

impl Memory for Stored {
    type Bytes = ();

    fn store(&mut self, _: &Header) {
        self.0 += 1;
    }

    fn put(&mut self, _: Tag, (): &()) {
        self.0 += 1;
    }

    fn clear(&mut self, _: Tag) {
        self.0 += 1;
    }

    fn gather(&mut self, _: Tag) -> bool {
        true
    }

    fn scatter(&mut self, _: Tag, _: u16) {
        self.0 += 1;
    }

    fn can_operate(&self, _: Tag) -> bool {
        true
    }

    fn operate(&mut self, _: Tag) -> u64 {
        self.0 += 1;
        0
    }
}

#[test]
fn bytes_that_are_rescued_go_into_coherent_memory_only() {
    let (agent, invented) = with_objects();
    let mut home = Home::new(agent);
    let mut memory = Stored::default();
    for tag in others().chain([invented, invented.under(Contract::Object)]) {
        home.rescue(&request(Kind::Rescue, tag, 1), &mut memory);
    }
    assert_eq!(memory.0, 0);
    home.rescue(&request(Kind::Rescue, Tag(0), 1), &mut memory);
    assert_eq!(memory.0, 1);
}

#[test]
fn words_of_another_contract_are_not_operated_on() {
    let (agent, invented) = with_objects();
    let mut home = Home::new(agent);
    let mut memory = Stored::default();
    for (nth, tag) in others().chain([invented]).enumerate() {
        let header = request(Kind::Operate, tag, 1 + nth as u64);
        let mut outputs = Outputs::default();
        home.operate(&header, &mut memory, None, &mut outputs);
        // What is of no home here gets no answer.
        for output in outputs.iter() {
            assert_eq!(output.header.kind, Kind::OperateAck);
            assert_ne!(output.header.reason, Reason::None, "{tag:?}");
            assert!(!output.header.flags.has(Flags::DATA), "{tag:?}");
        }
    }
    assert_eq!(memory.0, 0);
    let mut outputs = Outputs::default();
    home.operate(
        &request(Kind::Operate, Tag(0), 99),
        &mut memory,
        None,
        &mut outputs,
    );
    assert_eq!(memory.0, 1);
    assert!(
        outputs
            .iter()
            .all(|output| output.header.flags.has(Flags::DATA))
    );
    assert_eq!(outputs.iter().count(), 1);
}
