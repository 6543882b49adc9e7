//! What a node does about packets of a config that it does not live by.

use super::{Message, Registers};
use rackmem_proto::abd::{Change, first_line};
use rackmem_proto::wire::{Header, Kind, Own, RequesterId, Seq};

/// A member of all groups that the rack has.
const ASKED: u16 = 1;
/// A node without copies.
const ASKS: u16 = 4;

/// What comes of a question that names this config: whose config the asked one is to ask for, and
/// what it answers, with the config that the answer names.
type Comes = (Vec<(u16, u32)>, Vec<(Kind, u32)>);

fn asked(rack: &mut Registers, kind: Kind, group: u16, config: u32) -> Comes {
    let requester = RequesterId {
        node: ASKS,
        slot: 0,
    };
    let mut header = Header::request(kind, 0, first_line(group), requester, Seq(1));
    header.incarnation = 1;
    let own = Own {
        a: 0,
        b: u64::from(config) << 32,
    };
    rack.act(ASKED, (0, &[]), |abd, fx| {
        abd.packet(&header, &own, (0, &[]), fx);
    });
    let answers = rack.packets.drain(..);
    let answers = answers.map(|(_, header, own, ..): Message| (header.kind, (own.b >> 32) as u32));
    let answers = answers.collect();
    let bytes = &mut rack.nodes[usize::from(ASKED)].1;
    (core::mem::take(&mut bytes.behind), answers)
}

#[test]
fn who_is_asked_by_a_later_config_asks_for_it_and_an_earlier_one_is_told() {
    let mut rack = Registers::new((3, 64, false), 1);
    rack.config = rack.config.step(Change::Fence).unwrap();
    for node in 0..5 {
        rack.learn(node);
    }
    assert_eq!(rack.config.number, 2);
    for kind in [Kind::AbdRead, Kind::AbdStamp, Kind::AbdFill] {
        let later = asked(&mut rack, kind, 0, 3);
        assert_eq!(later, (vec![(0, 3)], vec![]), "{kind:?}");
        let earlier = asked(&mut rack, kind, 0, 1);
        assert_eq!(earlier, (vec![], vec![(Kind::AbdConfig, 2)]), "{kind:?}");
        let (behind, answers) = asked(&mut rack, kind, 0, 2);
        assert!(behind.is_empty() && answers.len() == 1, "{kind:?}");
        assert_ne!(answers[0].0, Kind::AbdConfig, "{kind:?}");
    }
    // It was said to the one who asked.
    assert_eq!(asked(&mut rack, Kind::AbdConfig, 0, 2), (vec![], vec![]));
    let later = asked(&mut rack, Kind::AbdConfig, 0, 4);
    assert_eq!(later, (vec![(0, 4)], vec![]));
}

#[test]
fn a_group_that_it_does_not_know_is_asked_for_and_one_that_was_removed_is_told() {
    let mut rack = Registers::new((3, 64, false), 1);
    for config in [1, 2, 7] {
        let comes = asked(&mut rack, Kind::AbdRead, 1, config);
        assert_eq!(comes, (vec![(1, config)], vec![]));
    }
    assert_eq!(asked(&mut rack, Kind::AbdRead, 1, 0), (vec![], vec![]));
    rack.config = rack.config.step(Change::Remove).unwrap();
    rack.learn(ASKED);
    for config in [1, 2] {
        let comes = asked(&mut rack, Kind::AbdRead, 0, config);
        assert_eq!(comes, (vec![], vec![(Kind::AbdConfig, 2)]), "by {config}");
    }
    let later = asked(&mut rack, Kind::AbdRead, 0, 3);
    assert_eq!(later, (vec![(0, 3)], vec![]));
}
