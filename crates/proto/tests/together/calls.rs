//! Calls as long as they can be, and such that no coordinator sends.

use crate::rack::{COORDINATOR, LINE, OBJECTS, Rack, object};
use rackmem_proto::abd::first_line;
use rackmem_proto::call::Parcel;
use rackmem_proto::sabre::{Outcome, room_of};
use rackmem_proto::wire::{
    Contract, Dest, Header, HomeId, Kind, Own, Reason, RequesterId, Seq, Tag,
};

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
    let line = first_line(0).0 + (OBJECTS - 1) * u64::from(LINE);
    rack.lines.remove(&Tag(line));
    let made = (Reason::None, last);
    assert_eq!(rack.call(Kind::ObjAlloc, (1, 1), any, 8), made);
    assert_eq!(rack.call(Kind::ObjWrite, (3, 1), last, 8), made);
    rack.next_keeper();
    assert_eq!(rack.call(Kind::ObjAlloc, (1, 1), any, 8), made);
}
