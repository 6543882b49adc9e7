//! What explorers of all states take for one state, and what not.

use rackmem_proto::flowcc::{Event, HomeAgent, HomeConfig, Requester, RequesterConfig};
use rackmem_proto::wire::{Copyset, Header, Kind, RequesterId, Seq, Tag};
use std::hash::{DefaultHasher, Hasher};

const REQUESTER: RequesterId = RequesterId { node: 1, slot: 2 };

fn request(kind: Kind, epoch: u32) -> Header {
    Header::request(kind, epoch, Tag(0), REQUESTER, Seq(1))
}

fn home(agent: &HomeAgent) -> u64 {
    let mut hasher = DefaultHasher::new();
    agent.fingerprint(&mut hasher);
    hasher.finish()
}

#[test]
fn a_home_agent_is_what_it_will_do_and_not_what_it_has_counted() {
    let mut agent = HomeAgent::new(HomeConfig {
        node: 0,
        epoch: 1,
        block: 4096,
        chunks: 1,
        incarnation: 1,
        migration: None,
        answering: None,
        seed: 0,
    });
    agent.grow(1);
    let before = home(&agent);
    agent.handle(&request(Kind::ReadMiss, 7), 0);
    assert_eq!(agent.counters().ignored, 1);
    assert_eq!(home(&agent), before);
    agent.handle(&request(Kind::ReadMiss, 1), 0);
    assert_ne!(home(&agent), before);
    assert_eq!(home(&agent.clone()), home(&agent));
    let mut later = agent.clone();
    later.freeze(2);
    later.settle(Copyset::EMPTY, false);
    let settled = home(&later);
    later.freeze(3);
    later.settle(Copyset::EMPTY, false);
    assert_eq!(later.epoch(), 3);
    assert_ne!(home(&later), settled, "packets of another epoch are taken");
}

#[test]
fn a_requester_that_has_sent_again_is_still_the_same() {
    let mut requester = Requester::new(RequesterConfig {
        id: REQUESTER,
        epoch: 1,
        incarnation: 1,
        block: 4096,
        switch: false,
        min_timeout: 1,
        give_up: u64::MAX / 4,
    });
    let print = |requester: &Requester| {
        let mut hasher = DefaultHasher::new();
        requester.fingerprint(&mut hasher);
        hasher.finish()
    };
    let idle = print(&requester);
    let event = Event {
        kind: Kind::WriteMiss,
        tag: Tag(0),
        offset: 0,
        reply_port: 0,
    };
    requester.begin(0, event);
    let waiting = print(&requester);
    assert_ne!(waiting, idle);
    assert_eq!(requester.open(), [Some(Seq(1)), None, None]);
    let mut later = requester.clone();
    later.enter(2, false);
    assert_ne!(print(&later), waiting);
    assert!(!requester.handle_timeout(1 << 40).is_empty());
    assert_eq!(print(&requester), waiting);
}
