//! Packet orders that once left a lock held, a copy downgraded or memory handed out for nobody:
//! each is about an event that is still open at one role while another role has moved on. Found by
//! seeded worlds, kept in short.

use rackmem_proto::call::Call;
use rackmem_proto::flowcc::{Event, HomeAction, HomeAgent, HomeConfig, Requester, RequesterConfig};
use rackmem_proto::wire::{
    Copyset, Dest, Flags, GlobalStatus, Header, Kind, NodeId, Record, RequesterId, Seq, Tag,
};
use rackmem_proto::{Output, Outputs};

const BLOCK: u32 = 4096;
const X: Tag = Tag(0);
const Y: Tag = Tag(BLOCK as u64);

fn requester(node: NodeId) -> RequesterId {
    RequesterId { node, slot: 0 }
}

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
    assert_eq!(home.grow(1), Some(X));
    home
}

fn request(kind: Kind, tag: Tag, node: NodeId, seq: u64) -> Header {
    Header::request(kind, 1, tag, requester(node), Seq(seq))
}

fn unlock(request: Header, status: GlobalStatus, copyset: Copyset) -> Header {
    let flags = match request.kind.locks_shared() {
        true => Flags::READER,
        false => Flags::default(),
    };
    Header {
        kind: Kind::Unlock,
        status,
        copyset,
        flags,
        ..request
    }
}

fn only(outputs: &Outputs) -> Output {
    let mut all = outputs.iter();
    let first = *all.next().expect("one packet");
    assert_eq!(all.next(), None);
    first
}

/// An event of node 2 waits for its write-back, the next one's arrives first: both must be stored.
#[test]
fn a_write_back_may_come_after_the_next_events() {
    let mut home = home();
    let write_back = |tag, seq| Header {
        flags: Flags::DATA,
        ..request(Kind::WriteBack, tag, 2, seq)
    };
    let (_, newer) = home.handle(&write_back(Y, 8), BLOCK);
    let (outputs, older) = home.handle(&write_back(X, 7), BLOCK);
    assert_eq!((newer, older), (HomeAction::Store, HomeAction::Store));
    assert_eq!(only(&outputs).header.kind, Kind::WriteBackAck);
    // A copy of it changes nothing, and one of an event before it is ignored.
    assert_eq!(home.handle(&write_back(X, 7), BLOCK).1, HomeAction::None);
    let (outputs, stale) = home.handle(&write_back(X, 5), BLOCK);
    assert!(outputs.is_empty() && stale == HomeAction::None);
}

/// Two nodes miss on a block that node 1 has dirty. The first one's request is forwarded and
/// delayed; others end their events; the first asks again. Both copies must go to node 1 as orders
/// to downgrade: to another provider, the delayed one would reach node 1 when it may have become
/// the writer.
#[test]
fn every_copy_of_a_request_goes_to_one_provider() {
    let mut home = home();
    let write = request(Kind::WriteMiss, X, 1, 1);
    home.handle(&write, 0);
    home.handle(&unlock(write, GlobalStatus::Modified, Copyset::of(1)), 0);

    let slow = request(Kind::ReadMiss, X, 2, 1);
    let first = only(&home.handle(&slow, 0).0);
    for node in 3..20 {
        let fast = request(Kind::ReadMiss, X, node, 1);
        home.handle(&fast, 0);
        let members = Copyset::of(1).with(node);
        home.handle(&unlock(fast, GlobalStatus::Shared, members), 0);
    }
    let again = only(&home.handle(&slow, 0).0);
    for copy in [first, again] {
        assert_eq!(
            copy.to,
            Dest::Agents {
                nodes: Copyset::of(1),
                provider: Some(1)
            }
        );
        assert_eq!(copy.header.status, GlobalStatus::Modified);
    }
}

/// An unlock is unanswered; an event without an unlock follows, then another:
/// it must not take the score of the first, whose unlock could then release nothing any more.
#[test]
fn a_sequence_number_leaves_open_scores_alone() {
    let mut home = home();
    let mut engine = Requester::new(RequesterConfig {
        id: requester(0),
        epoch: 1,
        incarnation: 1,
        block: BLOCK,
        switch: false,
        min_timeout: 1,
        give_up: 1_000,
    });
    let mut run = |engine: &mut Requester, kind, tag, offset| {
        let event = Event {
            kind,
            tag,
            offset,
            reply_port: 0,
        };
        let output = engine.begin(0, event);
        let (outputs, _) = home.handle(&output.header, 0);
        for answer in outputs.iter() {
            engine.handle(0, &answer.header, BLOCK);
        }
    };
    run(&mut engine, Kind::LockWrite, X, 0);
    let late = engine.unlock(0, false).expect("it holds the lock");
    run(&mut engine, Kind::Alloc, Tag(64), 1);
    run(&mut engine, Kind::LockWrite, Y, 0);
    // The unlock comes at last, as it is sent again until it is answered.
    home.handle(&late.header, 0);
    assert_eq!(home.inspect(X).map(|entry| entry.0), Some(0));
    assert_ne!(home.inspect(Y).map(|entry| entry.0), Some(0));
}

/// A late copy of a request for memory, whose node has asked for more since.
#[test]
fn memory_is_given_out_once_a_call() {
    let mut home = home();
    let call = |number| Call { stream: 5, number }.to_offset();
    let ask = |seq, number| Header {
        offset: call(number),
        incarnation: 1,
        ..request(Kind::Alloc, Tag(X.0 | 70_000), 2, seq)
    };
    let given = |home: &mut HomeAgent, header: &Header| only(&home.handle(header, 0).0).header;
    let live = home.heap().live();
    let first = given(&mut home, &ask(1, 1));
    let second = given(&mut home, &ask(2, 2));
    assert_ne!(first.tag, second.tag);
    assert!(home.handle(&ask(1, 1), 0).0.is_empty());
    assert_eq!(given(&mut home, &ask(2, 2)), second);
    // The epoch ended before the answer came: asked again under another sequence number.
    home.freeze(2);
    home.settle(Copyset::EMPTY, false);
    let again = Header {
        epoch: 2,
        ..ask(7, 2)
    };
    assert_eq!(given(&mut home, &again).tag, second.tag);

    let free = |number, tag: Tag| {
        let header = Header {
            kind: Kind::Free,
            epoch: 2,
            ..ask(8, number)
        };
        (header, [Record { tag, word: 70_000 }])
    };
    let mut release = |(header, objects): (Header, [Record; 1])| {
        let outputs = home.free(&header, objects.into_iter());
        outputs.iter().next().map(|output| output.header.copyset)
    };
    assert_eq!(release(free(3, first.tag)), Some(Copyset::EMPTY));
    assert_eq!(release(free(3, first.tag)), Some(Copyset::EMPTY), "a copy");
    assert_eq!(release(free(2, second.tag)), None, "an old one");
    assert_eq!(
        release(free(4, first.tag)),
        Some(Copyset(1)),
        "free already"
    );
    assert_eq!(release(free(5, second.tag)), Some(Copyset::EMPTY));
    assert_eq!(home.heap().live(), live);
    // Its node has started again, and counts anew.
    let anew = Header {
        incarnation: 2,
        ..again
    };
    let tag = given(&mut home, &anew).tag;
    let late = Header {
        epoch: 2,
        ..ask(9, 6)
    };
    assert!(home.handle(&late, 0).0.is_empty(), "of its last life");
    assert_eq!(given(&mut home, &anew).tag, tag);
}

/// A home may leave while other nodes have nothing of its memory: neither a copy nor an event.
#[test]
fn a_home_is_held_by_copies_and_events_of_other_nodes() {
    let mut home = home();
    assert!(!home.is_held_elsewhere());
    let mut reads = |node, sharers| {
        let read = request(Kind::ReadMiss, X, node, 1);
        home.handle(&read, 0);
        let during = home.is_held_elsewhere();
        home.handle(&unlock(read, GlobalStatus::Shared, Copyset(sharers)), 0);
        (during, home.is_held_elsewhere())
    };
    assert_eq!(reads(0, 0b001), (true, false), "its own copy is its own");
    assert_eq!(reads(2, 0b101), (true, true));
    let evict = request(Kind::EvictShared, X, 2, 2);
    home.handle(&evict, 0);
    home.handle(&unlock(evict, GlobalStatus::Shared, Copyset(0b001)), 0);
    assert!(!home.is_held_elsewhere());
}
