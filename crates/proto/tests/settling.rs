//! Whose lock was it? A home must know before it makes an entry of a dead node anew (§5.4).

use rackmem_proto::flowcc::{
    Event, HomeAgent, HomeConfig, LocalStatus, Requester, RequesterConfig, copy_record,
};
use rackmem_proto::wire::{Copyset, Kind, NodeId, RequesterId, Tag};

const BLOCK: Tag = Tag(0);
const EPOCH: u32 = 1;

fn home() -> HomeAgent {
    let mut home = HomeAgent::new(HomeConfig {
        node: 0,
        epoch: EPOCH,
        block: 4096,
        chunks: 1,
        incarnation: 1,
        migration: None,
        answering: None,
        seed: 0,
    });
    home.grow(1);
    home
}

fn requester(node: NodeId) -> Requester {
    Requester::new(RequesterConfig {
        id: RequesterId { node, slot: 0 },
        epoch: EPOCH,
        incarnation: 1,
        block: 4096,
        switch: false,
        min_timeout: 1,
        give_up: u64::MAX / 4,
    })
}

fn ask(requester: &mut Requester, home: &mut HomeAgent) {
    let event = Event {
        kind: Kind::WriteMiss,
        tag: BLOCK,
        offset: 0,
        reply_port: 0,
    };
    let request = requester.begin(0, event).header;
    home.handle(&request, 0);
}

/// Node 2 has an event open when the epoch ends; node 1 has died.
fn settled(home: &mut HomeAgent, survivor: &mut Requester) -> u64 {
    home.freeze(EPOCH + 1);
    let cut = survivor.enter(EPOCH + 1, false);
    for open in cut.open.into_iter().flatten() {
        home.note_open(2, open, EPOCH);
    }
    home.settle(Copyset::of(1), false).lost
}

#[test]
fn an_event_that_waits_for_a_dead_nodes_lock_does_not_explain_it() {
    let (mut home, mut dead, mut survivor) = (home(), requester(1), requester(2));
    ask(&mut dead, &mut home);
    ask(&mut survivor, &mut home);
    assert_eq!(
        settled(&mut home, &mut survivor),
        1,
        "node 1 may have written"
    );
    assert!(home.lost(BLOCK));
}

#[test]
fn an_event_that_holds_the_lock_explains_it() {
    let (mut home, mut dead, mut survivor) = (home(), requester(1), requester(2));
    ask(&mut survivor, &mut home);
    ask(&mut dead, &mut home);
    assert_eq!(settled(&mut home, &mut survivor), 0);
    assert!(!home.lost(BLOCK));
}

#[test]
fn a_copy_says_more_than_a_lock() {
    let (mut home, mut dead) = (home(), requester(1));
    ask(&mut dead, &mut home);
    home.freeze(EPOCH + 1);
    let copy = copy_record(BLOCK, LocalStatus::Shared == LocalStatus::Modified);
    home.note_copy(2, copy);
    assert_eq!(home.settle(Copyset::of(1), false).lost, 0);
}
