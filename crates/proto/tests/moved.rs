//! A lock whose home a group keeps, when another node serves that home from an epoch on.

mod locks;

use locks::Out;
use rackmem_proto::engine::{AtHome, Change, LockPart, NodeLock, Told};
use rackmem_proto::flowcc::Members;
use rackmem_proto::gcp::{Access, Entry, LockDirectory, Mode, Regions, Report, Right, first};
use rackmem_proto::wire::{
    Contract, Copyset, Dest, GlobalStatus, Header, HomeId, Kind, NodeId, Reason, RequesterId, Seq,
    Tag,
};

/// The epoch that ended, and the one that begins.
const ENDED: u32 = 4;
const EPOCH: u32 = 5;
const ME: NodeId = 1;

fn tag() -> Tag {
    let start = HomeId::of_group(3).start();
    Tag(start.0 | 0x40).under(Contract::Locked)
}

/// What a node has that gave the lock up in an epoch.
fn gave_up(epoch: u32) -> Report {
    Report {
        age: first(epoch) << 1 | 1,
        ..Report::default()
    }
}

/// The entry that the next home makes of these, when so many have died.
fn settled(told: &[(NodeId, Report)], dead: u32) -> Entry {
    let mut directory = LockDirectory::taken_over(ME, tag());
    let own = (ME, Report::default());
    let reports = |_, each: &mut dyn FnMut(NodeId, Report)| {
        for (node, report) in told.iter().chain([&own]) {
            each(*node, *report);
        }
    };
    directory.enter_epoch(EPOCH, Copyset(0b1110), (ENDED, dead), reports, |_| None);
    let (entry, _) = directory.entry(tag()).unwrap();
    entry
}

fn holder(entry: Entry) -> (NodeId, Mode, Reason) {
    let state = entry.state;
    (state.holder.into(), state.mode, state.reason)
}

#[test]
fn a_lock_that_no_live_node_had_is_at_rest_there() {
    for dead in 0..3 {
        let entry = settled(&[(2, Report::default())], dead);
        assert_eq!(holder(entry), (ME, Mode::Modified, Reason::None));
    }
}

#[test]
fn a_live_node_that_has_it_keeps_it() {
    let has = |right, reason| Report {
        right,
        reason,
        ..gave_up(ENDED - 2)
    };
    let mine = (2, has(Right::Modified, Reason::OwnerDied));
    let entry = settled(&[mine, (3, gave_up(ENDED))], 2);
    assert_eq!(holder(entry), (2, Mode::Modified, Reason::OwnerDied));
    let shared = [2, 3].map(|node| (node, has(Right::Shared, Reason::None)));
    let entry = settled(&shared, 1);
    assert_eq!(entry.state.mode, Mode::Shared);
    assert_eq!(entry.sharers, Copyset(0b1100));
}

#[test]
fn what_was_handed_over_last_is_told_from_what_may_be_older() {
    let found = |epoch, dead| holder(settled(&[(2, gave_up(epoch)), (3, gave_up(1))], dead));
    let told = |reason| (2, Mode::Modified, reason);
    assert_eq!(found(ENDED, 1), told(Reason::OwnerDied));
    // Of two one may have had it from the other; who died in an earlier epoch is not known here.
    assert_eq!(found(ENDED, 2), told(Reason::Lost));
    assert_eq!(found(ENDED - 1, 1), told(Reason::Lost));
    // The home was not there when the epoch ended.
    assert_eq!(found(ENDED, 0), told(Reason::Lost));
}

fn lock(home: AtHome) -> NodeLock<u8> {
    let part = LockPart {
        node: ME,
        epoch: ENDED,
        switch: true,
        cohort: 1,
        implicit: true,
        home,
    };
    NodeLock::new(tag(), Regions::default(), part, None)
}

fn members() -> Members {
    Members {
        epoch: EPOCH,
        founders: Copyset(0b1110),
        switch: true,
    }
}

fn acquire() -> Header {
    let requester = RequesterId { node: 2, slot: 0 };
    let header = Header::request(Kind::Acquire, EPOCH, tag(), requester, Seq(0));
    Header {
        status: GlobalStatus::Modified,
        ..header
    }
}

#[test]
fn the_next_home_serves_what_it_has_settled_and_nothing_before() {
    let mut out = Out::default();
    let mut lock = lock(AtHome::No);
    assert!(!lock.is_home());
    lock.enter_epoch(members(), true, None);
    assert!(lock.is_home());
    lock.packet(&acquire(), (0, &[]), &mut out);
    assert!(out.0.is_empty(), "others have not told yet");
    let change = Change {
        members: members(),
        settled: ENDED,
        gone: Copyset::of(0),
        switch_lost: false,
    };
    let mut told = Told::default();
    for record in gave_up(ENDED).records(tag()) {
        told.node(3, record);
    }
    assert!(lock.settle(&change, &told, None), "a death is told");
    lock.packet(&acquire(), (0, &[]), &mut out);
    // Requests come here and not to a switch, and go to who has it.
    assert!(
        matches!(&out.0[..], [(Dest::Agent(3), wait)] if wait.kind == Kind::Wait),
        "{:?}",
        out.0
    );
}

#[test]
fn a_node_that_is_no_home_any_more_forgets_the_entry_and_keeps_its_right() {
    let mut lock = lock(AtHome::Yes);
    assert_eq!(lock.lock().unwrap().right(), Right::Modified);
    lock.enter_epoch(members(), false, None);
    assert!(!lock.is_home());
    assert_eq!(lock.report().unwrap().right, Right::Modified);
    let mut out = Out::default();
    lock.packet(&acquire(), (0, &[]), &mut out);
    assert!(out.0.is_empty());
    // It asks the home, past the switch.
    lock.enter(1, Access::Write, &mut out);
    assert!(out.0.is_empty(), "it has it");
}

#[test]
fn who_serves_its_home_from_an_epoch_to_the_next_knows_the_entry() {
    let mut lock = lock(AtHome::Yes);
    lock.enter_epoch(members(), true, None);
    let change = Change {
        members: members(),
        settled: ENDED,
        gone: Copyset::of(0),
        switch_lost: false,
    };
    assert!(!lock.settle(&change, &Told::default(), None));
    let (entry, ..) = lock.entry().unwrap();
    assert_eq!(holder(entry), (ME, Mode::Modified, Reason::None));
}

#[test]
fn a_lock_that_becomes_known_too_early_is_nobodys_yet() {
    let mut early = lock(AtHome::Settling);
    assert_eq!(early.lock().unwrap().right(), Right::None);
    let mut out = Out::default();
    early.enter(1, Access::Write, &mut out);
    assert!(!early.lock().unwrap().inside().1, "another may have it");
}

/// What a writer has found wrong is told to all until a writer has left.
#[test]
fn what_is_found_wrong_inside_is_told() {
    let mut lock = lock(AtHome::Yes);
    let mut out = Out::default();
    lock.enter(1, Access::Write, &mut out);
    lock.found(Reason::OwnerDied);
    lock.decline(Access::Write, &mut out);
    assert_eq!(
        lock.try_enter(Access::Read).unwrap().reason,
        Reason::OwnerDied
    );
    lock.decline(Access::Read, &mut out);
    assert_eq!(
        lock.try_enter(Access::Write).unwrap().reason,
        Reason::OwnerDied
    );
    lock.leave(Access::Write, &mut out);
    assert_eq!(lock.try_enter(Access::Read).unwrap().reason, Reason::None);
}
