//! Replicated memory at a node beside blocks and locks: a site that speaks all three protocols.

use crate::site::{Bare, Cache, Site, Speaks};
use rackmem_proto::abd::{
    Abd, Config, Effect, Layout, Member, Replica, ReplicatedMemory, Section, Stamp, first_line, own,
};
use rackmem_proto::engine::{
    self, Change, FlowCc, Gcp, Host, Protocols, Replicated, ReplicatedHost,
};
use rackmem_proto::flowcc::HomeConfig;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, Header, Kind, Own, Record, RequesterId, Seq, Tag};

/// What a site has of it, and what came of its sections.
#[derive(Clone)]
struct Beside {
    /// Its part.
    part: ReplicatedMemory,
    /// What it wants done.
    effects: Vec<Effect>,
}

impl Speaks<()> for Beside {
    type Protocols = (FlowCc, Gcp, Replicated);
}

impl ReplicatedHost for Site<(), Beside> {
    type Fx<'f> = Section<'f>;

    fn replicated<R>(&mut self, act: impl FnOnce(&mut Abd, &mut Section<'_>) -> R) -> R {
        let (result, effects) = self.part.part.section((0, &[]), act);
        self.part.effects.extend(effects);
        result
    }

    fn own(&self) -> Own {
        let first = self.records().first().copied().unwrap_or_default();
        Own {
            a: first.tag.0,
            b: first.word,
        }
    }
}

/// A node of a rack in epoch 1 that speaks all three protocols and keeps copies.
fn beside() -> Site<(), Beside> {
    let view = View::first(Copyset(0b11), false);
    let config = HomeConfig {
        node: 0,
        epoch: view.epoch,
        block: 4096,
        chunks: 1,
        incarnation: 1,
        migration: None,
        answering: None,
        seed: 0,
    };
    let part = ReplicatedMemory::new((0, 1), 1472);
    let effects = Vec::new();
    let mut site = Site::new(
        config,
        (1, 0, 2),
        view,
        Cache::new(1),
        Beside { part, effects },
    );
    let member = Member { node: 0, life: 1 };
    let group = Config::first(&[member]).unwrap();
    let layout = Layout::new(64, 4096).unwrap();
    site.part.part.section((0, &[]), |abd, fx| {
        abd.keep(0, 1, Replica::new(false));
        abd.learn(0, layout, &group, fx);
    });
    site
}

/// Whether a site answers a question of an epoch, and a death's rebuild does not stop it.
fn answers(site: &mut Site<(), Beside>, epoch: u32) -> bool {
    let who = RequesterId { node: 1, slot: 0 };
    let header = Header::request(Kind::AbdStamp, epoch, first_line(0), who, Seq(1));
    let own = own(Stamp::NONE, 1);
    let body = Bare::of(vec![Record {
        tag: Tag(own.a),
        word: own.b,
    }]);
    site.take(&header, body);
    let effects = std::mem::take(&mut site.part.effects);
    let ack = |effect: &Effect| matches!(effect, Effect::Send(parcel) if parcel.header.kind == Kind::AbdStampAck);
    effects.iter().any(ack)
}

#[test]
fn a_node_that_speaks_three_protocols_answers_in_every_epoch_and_while_one_begins() {
    type Three = Site<(), Beside>;
    let table = <<Three as Host>::Protocols as Protocols<Three>>::table();
    let names: Vec<(&str, u8)> = table.iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(names, [("FlowCC", 0), ("GCP", 1), ("ABD", 4)]);
    let mut site = beside();
    assert!(answers(&mut site, 1) && answers(&mut site, 7) && answers(&mut site, 0));
    let view = View {
        epoch: 2,
        live: Copyset(1),
        founders: Copyset(1),
        ..site.view
    };
    let change = Change::between(&site.settled, &view);
    site.stop(view, &change);
    site.begin(change, Vec::new());
    assert!(answers(&mut site, 1) && answers(&mut site, 2));
    engine::tick(&mut site, false);
}
