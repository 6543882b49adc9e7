//! Homes that have locked something for a coordinator that is dead, and wrote objects with copies
//! beside that: what the next keeper says of it, and what the coordinator's node does when it is
//! back.

use crate::rack::{COORDINATOR, Fx, Node, Rack, object_of, section};
use rackmem_proto::call::Parcel;
use rackmem_proto::sabre::transaction::Used;
use rackmem_proto::sabre::{Command, Ref, SLAB, Sabre};
use rackmem_proto::wire::{Copyset, Dest, Header, HomeId, Kind, NodeId, Own, Record};

/// The nodes that have objects without copies.
const HOMES: [NodeId; 2] = [3, 4];
/// What it writes.
const NEW: u8 = 9;
/// Where a thread once listened in the slot by which its node asks.
const EARLIER: u16 = 777;

/// A transaction that writes the first object of each of these regions and of each home. Its
/// coordinator dies when the keeper has its call.
struct Scene {
    rack: Rack,
    homes: [Node; 2],
    objects: [Ref; 2],
}

fn in_epoch<R>(
    node: &mut Node,
    epoch: u32,
    act: impl FnOnce(&mut Sabre, &mut Fx<'_, '_>) -> R,
) -> (R, Vec<Parcel>) {
    section(node, (epoch, None), (0, &[]), act)
}

/// A packet comes to a node: what that sends.
fn comes(node: &mut Node, epoch: u32, packet: &Parcel) -> Vec<Parcel> {
    let (own, rest) = packet.split();
    let segment = (packet.header.offset, rest);
    let came = section(node, (epoch, None), segment, |sabre, fx| {
        sabre.packet(&packet.header, &own, rest.len() as u32, fx);
    });
    came.1
}

/// A node goes into an epoch in which these have died, and those take part: what it reports.
fn enters(node: &mut Node, epoch: u32, (gone, members): (Copyset, Copyset)) -> Vec<Record> {
    let reports = in_epoch(node, epoch, |sabre, fx| {
        sabre.enter(members);
        sabre.forget(gone, fx);
        sabre.report()
    });
    reports.0
}

impl Scene {
    /// The keeper dies when a majority has so many lines of it.
    fn new(regions: &[u16], stores: usize) -> Scene {
        let mut rack = Rack::new(None);
        let mut homes = HOMES.map(|home| Node::of_life((home, 1), &rack.laid));
        for home in &mut homes {
            home.values.begin(0, EARLIER, (Vec::new(), 1));
        }
        let objects = homes.each_mut().map(|home| {
            let made = in_epoch(home, 1, |sabre, fx| {
                let region = sabre.home.book.reserve(SLAB).unwrap();
                sabre.home.give(region, 8, fx).unwrap()
            });
            let (tag, generation) = (made.0.tag, made.0.generation);
            Ref { tag, generation }
        });
        let kept = regions.iter().map(|group| object_of(*group, 0));
        let content = [NEW; 8];
        let used: Vec<Used<'_>> = (objects.iter().copied().chain(kept))
            .map(|object| Used {
                object,
                read: None,
                write: Some(&content),
            })
            .collect();
        let mut sent = rack.commit(&used);
        for home in &mut homes {
            assert_eq!(sent[0].header.kind, Kind::TxLock);
            let answer = comes(home, 1, &sent[0]).remove(0);
            sent = comes(&mut rack.coordinator, 1, &answer);
        }
        assert_eq!(sent[0].header.kind, Kind::TxCommit);
        rack.stores = stores;
        let _ = rack.serve(&sent[0]);
        let mut scene = Scene {
            rack,
            homes,
            objects,
        };
        scene.rack.next_keeper();
        scene.begin(Copyset::of(COORDINATOR), Copyset::EMPTY);
        scene
    }

    /// Homes go into the epoch of the keeper.
    fn begin(&mut self, gone: Copyset, members: Copyset) {
        for home in &mut self.homes {
            enters(home, self.rack.epoch, (gone, members));
            in_epoch(home, self.rack.epoch, |sabre, fx| sabre.settle(fx));
        }
    }

    /// What a home sends when it asks.
    fn asks(&mut self, home: usize) -> Vec<Parcel> {
        let epoch = self.rack.epoch;
        let asks = in_epoch(&mut self.homes[home], epoch, |sabre, fx| sabre.resume(fx)).1;
        for question in &asks {
            assert_eq!(question.header.reply_port, 0, "no thread waits for this");
        }
        asks
    }

    /// A home asks until it is answered. Whether it has committed.
    fn resolve(&mut self, home: usize) -> bool {
        for _ in 0..4 {
            for question in self.asks(home) {
                for answer in self.rack.serve(&question).unwrap() {
                    comes(&mut self.homes[home], self.rack.epoch, &answer);
                }
            }
        }
        assert_eq!(self.homes[home].sabre.home.participant.in_doubt(), 0);
        self.plain(home) == NEW
    }

    /// The first byte of a home's object, which nobody has locked.
    fn plain(&mut self, home: usize) -> u8 {
        let object = self.objects[home];
        let (epoch, node) = (self.rack.epoch, &mut self.homes[home]);
        let (version, first) = node.first_of(object.tag);
        assert_eq!(version & 1, 0, "it is locked in epoch {epoch}");
        first
    }

    /// What readers find of the first object of a region.
    fn kept(&mut self, group: u16) -> u8 {
        self.rack.look(object_of(group, 0)).unwrap().unwrap()
    }
}

/// Whatever a majority had when both died: homes do what readers of the objects with copies find.
#[test]
fn homes_do_what_a_majority_has_of_it() {
    for regions in [&[0][..], &[0, 1], &[0, 1, 2]] {
        let mut seen = [0, 0];
        for stores in 0..24 {
            for overwritten in [false, true] {
                let mut scene = Scene::new(regions, stores);
                let took = scene.kept(regions[0]) == NEW;
                for group in regions {
                    assert_eq!(scene.kept(*group) == NEW, took, "{regions:?}, {stores}");
                }
                if overwritten {
                    // Lines and the record say nothing of it any more: a row does.
                    for group in regions {
                        let tag = object_of(*group, 0).tag;
                        scene.rack.call(Kind::ObjWrite, (5, 1), tag, 8);
                    }
                }
                let [one, other] = [0, 1].map(|home| scene.resolve(home));
                assert_eq!((one, other), (took, took), "{regions:?}, {stores}");
                seen[usize::from(took)] += 1;
            }
        }
        assert!(seen.iter().all(|count| *count > 1), "{seen:?}");
    }
}

/// The lowest region that is still there says it.
#[test]
fn a_region_that_is_removed_leaves_the_answer_to_the_next() {
    for stores in 0..24 {
        let mut scene = Scene::new(&[0, 1], stores);
        let took = scene.kept(0) == NEW;
        scene.rack.remove(0);
        assert_eq!(
            [0, 1].map(|home| scene.resolve(home)),
            [took; 2],
            "{stores}"
        );
        assert_eq!(scene.kept(1) == NEW, took, "{stores}");
    }
}

/// When all of its regions are removed all homes do the same: what the first one of them was told
/// before, or nothing.
#[test]
fn homes_do_the_same_when_no_region_is_left() {
    for (asked_before, regions) in [(true, &[0][..]), (false, &[0]), (true, &[0, 1])] {
        let mut scene = Scene::new(regions, 24);
        assert_eq!(scene.kept(0), NEW);
        let first = asked_before.then(|| scene.resolve(0));
        regions.iter().for_each(|group| scene.rack.remove(*group));
        let second = scene.resolve(1);
        assert_eq!(
            (first.unwrap_or(second), second),
            (asked_before, asked_before)
        );
        assert_eq!(
            scene.homes[0].sabre.home.participant.in_doubt(),
            usize::from(!asked_before)
        );
    }
}

/// A home that another one tells of its commit when the epoch begins asks nobody.
#[test]
fn a_home_commits_what_another_one_reports() {
    let mut scene = Scene::new(&[0], 24);
    assert!(scene.resolve(0));
    scene.rack.next_keeper();
    scene.rack.remove(0);
    let (epoch, both) = (scene.rack.epoch, Copyset::of(HOMES[0]).with(HOMES[1]));
    let told = enters(&mut scene.homes[0], epoch, (Copyset::EMPTY, both));
    enters(&mut scene.homes[1], epoch, (Copyset::EMPTY, both));
    in_epoch(&mut scene.homes[1], epoch, |sabre, fx| {
        told.iter().for_each(|record| sabre.hear(*record));
        sabre.settle(fx);
    });
    assert!(scene.asks(1).is_empty());
    assert_eq!(scene.plain(1), NEW);
}

/// The coordinator's node is back, in its next life. Its slot asks keepers for nothing, nor homes,
/// before the one in doubt has said that this is over: a keeper may have it in the slot's row only.
#[test]
fn a_node_that_is_back_calls_no_keeper_before_homes_know() {
    let mut scene = Scene::new(&[0], 24);
    assert!(scene.resolve(0));
    let members = [COORDINATOR, HOMES[0], HOMES[1]].map(Copyset::of);
    let members = members.into_iter().fold(Copyset::EMPTY, Copyset::union);
    scene.rack.next_keeper();
    let epoch = scene.rack.epoch;
    let mut back = Node::of_life((COORDINATOR, 2), &scene.rack.laid);
    let mut told = Vec::new();
    for home in &mut scene.homes {
        let gone = Copyset::of(COORDINATOR);
        told.extend(enters(home, epoch, (gone, members)));
    }
    told.retain(|record| record.tag.home() == HomeId::of(COORDINATOR));
    assert_eq!(told.len(), 1, "one of them is in doubt");
    in_epoch(&mut scene.homes[1], epoch, |sabre, fx| sabre.settle(fx));
    // Before all have reported nothing goes to a keeper, nor does anything afterwards.
    in_epoch(&mut back, epoch, |sabre, _| sabre.enter(members));
    back.values.begin(0, EARLIER, (vec![1; 8], 1));
    let write = Command::Write(object_of(0, 0), 0, 8);
    let early = in_epoch(&mut back, epoch, |sabre, fx| sabre.command(0, write, fx));
    assert!(early.1.is_empty());
    let asked = in_epoch(&mut back, epoch, |sabre, fx| {
        told.iter().for_each(|record| sabre.hear(*record));
        sabre.settle(fx);
        sabre.resume(fx);
    });
    let to: Vec<Dest> = asked.1.iter().map(|packet| packet.to).collect();
    assert_eq!(to, [Dest::Home(HomeId::of(HOMES[1]))]);
    assert_eq!(asked.1[0].header.reply_port, 0, "the node waits for this");
    assert!(comes(&mut scene.homes[1], epoch, &asked.1[0]).is_empty());
    // A home that has nothing in doubt says so at once.
    assert!(scene.resolve(1));
    let over = comes(&mut scene.homes[1], epoch, &asked.1[0]).remove(0);
    let written = comes(&mut back, epoch, &over);
    assert_eq!(written[0].header.kind, Kind::ObjWrite);
    // A copy of the answer says nothing more.
    assert!(scene.rack.serve(&written[0]).is_some());
}

/// Nothing but a home's question about its own last transaction is answered with what it does.
#[test]
fn answers_that_nobody_asked_for_change_nothing() {
    let mut scene = Scene::new(&[0], 24);
    let question = scene.asks(0).remove(0);
    let answer = scene.rack.serve(&question).unwrap().remove(0);
    let (own, _) = answer.split();
    // There is no such requester.
    let b = own.b | 1 << 31;
    let nobody = Parcel::new(question.to, question.header, Own { b, ..own }, &[]);
    assert!(scene.rack.serve(&nobody).unwrap().is_empty());
    let forged = |node: &mut Node, header, own| {
        let packet = Parcel::new(answer.to, header, own, &[]);
        comes(node, scene.rack.epoch, &packet);
        node.sabre.home.participant.in_doubt()
    };
    let [home, other] = &mut scene.homes;
    for (a, b) in [(own.a + 1, own.b), (own.a, own.b ^ 1), (own.a, !own.b)] {
        let own = Own { a, b };
        assert_eq!(forged(home, answer.header, own), 1);
    }
    let tag = object_of(1, 0).tag;
    let elsewhere = Header {
        tag,
        ..answer.header
    };
    assert_eq!(forged(home, elsewhere, own), 1);
    // Of another home's question.
    assert_eq!(forged(other, answer.header, own), 1);
    assert_eq!(forged(home, answer.header, own), 0);
    assert_eq!(scene.plain(0), NEW);
}
