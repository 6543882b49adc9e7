//! Memory is reached under its own contract only, whoever takes an address from wherever.

use rackmem_proto::flowcc::{Call, HomeAction, HomeAgent, HomeConfig};
use rackmem_proto::wire::{Contract, Header, Kind, Reason, Record, RequesterId, Seq, Tag};

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
        style: Default::default(),
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

#[test]
fn what_asks_for_a_block_under_another_contract_is_refused() {
    let asks = [
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
    for (nth, (kind, tag)) in asks
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
