//! What a coordinator makes of what nodes' homes say.

use crate::rack::{Rack, object};
use rackmem_proto::sabre::transaction::Used;
use rackmem_proto::sabre::{Outcome, Ref};
use rackmem_proto::wire::{Contract, Copyset, Dest, HomeId, Kind, NodeId, Reason};

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

/// A node may be the keeper and one of the homes, and packets come twice.
#[test]
fn a_copy_of_a_keepers_answer_ends_no_home_of_its_node() {
    let mut rack = Rack::new(None);
    let kept = Used {
        object: object(0),
        read: None,
        write: Some(&[1; 8]),
    };
    let lock = rack.commit(&[plain(0, None), kept]);
    let call = rack.hears(&lock[0], (Kind::TxLockAck, Reason::None));
    let answers = rack.serve(&call[0]).unwrap();
    let came = |rack: &mut Rack| {
        let (own, _) = answers[0].split();
        rack.coordinates(|sabre, fx| sabre.packet(&answers[0].header, &own, 0, fx))
    };
    let end = came(&mut rack);
    came(&mut rack);
    assert_eq!(rack.ended(), None, "its home has said nothing");
    // A home may have to ask what came of it, and a row has room for one call.
    assert!(!rack.coordinator.sabre.may_ask_keeper(0));
    rack.hears(&end[0], (Kind::TxCommitAck, Reason::None));
    assert!(rack.coordinator.sabre.may_ask_keeper(0));
    assert_eq!(rack.ended(), Some(Outcome::Committed));
}
