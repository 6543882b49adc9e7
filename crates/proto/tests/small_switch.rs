//! A switch for a small rack keeps few scores, and an entry can be told to move there.

use rackmem_proto::flowcc::{HomeAgent, HomeConfig, Migration};
use rackmem_proto::switch::{SwitchConfig, SwitchProgram};
use rackmem_proto::wire::{Header, Kind, NodeId, Reason, RequesterId, Seq, Tag};
use std::hash::{DefaultHasher, Hasher};

const REQUESTER: RequesterId = RequesterId { node: 1, slot: 2 };

fn program(requesters: u16) -> SwitchProgram {
    SwitchProgram::new(SwitchConfig {
        nodes: 2,
        requesters,
        ways: 1,
        sets: 1,
        ..SwitchConfig::default()
    })
}

fn print(program: &SwitchProgram) -> u64 {
    let mut hasher = DefaultHasher::new();
    program.fingerprint(&mut hasher);
    hasher.finish()
}

#[test]
fn a_switch_drops_what_it_keeps_no_score_for() {
    let request = Header::request(Kind::ReadMiss, 1, Tag(0), REQUESTER, Seq(1));
    let (mut small, mut enough) = (program(2), program(3));
    assert!(small.handle(&request).is_empty());
    assert_eq!(small.counters().dropped, 1);
    assert_eq!(small.counters().violations, 0);
    assert_eq!(print(&small), print(&enough));
    assert!(!enough.handle(&request).is_empty());
    assert_ne!(print(&small), print(&enough));
}

fn home(migration: Option<Migration>) -> HomeAgent {
    let mut home = HomeAgent::new(HomeConfig {
        node: 0,
        epoch: 1,
        block: 4096,
        chunks: 1,
        incarnation: 1,
        migration,
        answering: None,
        seed: 0,
    });
    home.grow(1);
    home
}

#[test]
fn nothing_moves_where_no_policy_lets_it() {
    let mut home = home(None);
    assert_eq!(home.want(Tag(0)), None);
    home.set_migration(Some(Migration::default()));
    assert!(home.want(Tag(0)).is_some());
}

#[test]
fn an_entry_that_is_told_to_move_moves_once() {
    let mut home = home(Some(Migration::default()));
    let mut switch = program(1);
    let add = home.want(Tag(0)).expect("its lock is free");
    assert_eq!(home.want(Tag(0)), None);
    assert_eq!(home.want(Tag(1 << 48)), None, "another node's");
    let answers = switch.handle(&add.header);
    let ack = answers.iter().next().expect("an answer");
    home.handle(&ack.header, 0);
    assert_eq!(home.counters().migrated, 1);
    assert_eq!(switch.entries(), 1);
    assert_eq!(home.want(Tag(0)), None);
}

#[test]
fn what_a_switch_refuses_is_counted_by_its_reason() {
    let mut home = home(Some(Migration::default()));
    let mut switch = program(3);
    let add = home.want(Tag(0)).expect("its lock is free");
    switch.handle(&add.header);
    let mut ask = |kind: Kind, node: NodeId, slot: u16| {
        let who = RequesterId { node, slot };
        let request = Header::request(kind, 1, Tag(0), who, Seq(1));
        let answers = switch.handle(&request);
        let first = answers.iter().next().expect("an answer").header;
        let counters = switch.counters();
        (first.kind, first.reason, counters.locked, counters.invalid)
    };
    // Nobody has a copy that could become a writer's.
    let (_, reason, locked, invalid) = ask(Kind::WriteShared, 1, 0);
    assert_eq!((reason, locked, invalid), (Reason::Invalid, 0, 1));
    // One reads, and another one would write.
    let (kind, reason, ..) = ask(Kind::ReadMiss, 1, 1);
    assert_eq!((kind, reason), (Kind::ReadMiss, Reason::None));
    let refused = ask(Kind::WriteMiss, 0, 0);
    assert_eq!(refused, (Kind::Ack, Reason::Locked, 1, 1));
    // Readers go on, the lock is theirs.
    let (kind, ..) = ask(Kind::ReadMiss, 0, 1);
    assert_eq!(kind, Kind::ReadMiss);
}
