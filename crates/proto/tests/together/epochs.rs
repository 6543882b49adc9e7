//! What is told of an epoch that has ended.

use crate::rack::{COORDINATOR, LINE, Node, Rack, object, section};
use rackmem_proto::sabre::Need;
use rackmem_proto::wire::{Copyset, Header, Kind, RequesterId, Seq, Tag};

/// A keeper that has asked a majority for a line is told of it in the next epoch, when it has asked
/// for the same line again.
#[test]
fn a_line_of_an_ended_epoch_says_nothing_and_the_question_stands() {
    let mut rack = Rack::new(None);
    let me = RequesterId {
        node: COORDINATOR,
        slot: 1,
    };
    let ask = |keeper: &mut Node, epoch: u32| {
        let header = Header::request(Kind::ObjRead, epoch, object(1).tag, me, Seq(epoch.into()));
        section(keeper, (epoch, None), (0, &[]), |sabre, fx| {
            sabre.packet(&header, &rackmem_proto::sabre::own(0, 0, 0), 0, fx);
            sabre.kept.take_need()
        })
        .0
    };
    let fetched = |keeper: &mut Node, (line, epoch): (Tag, u32)| {
        section(keeper, (2, None), (0, &[]), |sabre, fx| {
            sabre.kept.fetched((line, epoch), &[0; LINE as usize], fx);
        });
    };
    let keeper = &mut rack.keeper;
    let first = ask(keeper, 1);
    section(keeper, (2, None), (0, &[]), |sabre, fx| {
        sabre.enter(Copyset::EMPTY);
        sabre.settle(fx);
    });
    let Some(Need::Line(line)) = ask(keeper, 2) else {
        panic!("a keeper asks for what it has not heard in its epoch");
    };
    assert!(matches!(first, Some(Need::Line(is)) if is == line));
    fetched(keeper, (line, 1));
    assert!(matches!(ask(keeper, 2), Some(Need::Line(is)) if is == line));
    fetched(keeper, (line, 1));
    fetched(keeper, (line, 2));
    assert!(!matches!(ask(keeper, 2), Some(Need::Line(is)) if is == line));
}
