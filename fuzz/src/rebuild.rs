//! Any sequence of packets to those who make the directory anew, and to the shadow of a switch.

use rackmem_proto::engine::{self, Change, Recovery};
use rackmem_proto::flowcc::{HomeConfig, Interrupted, LocalStatus, Members, Open};
use rackmem_proto::membership::host;
use rackmem_proto::switch::{SwitchConfig, SwitchProgram};
use rackmem_sim::site::Bare;
use rackmem_wire::{Copyset, Kind, Record};

use crate::dice::{Dice, EPOCH, check_sendable};
use crate::node::{self, FIT, FuzzNode};

/// Inputs of one run at most.
const MAX_INPUTS: usize = 256;
const BLOCK: u32 = 4096;
/// Epochs that one run goes through at most.
const EPOCHS: u32 = 4;

struct Member {
    node: FuzzNode,
    switch: SwitchProgram,
    epoch: u32,
}

/// Nothing panics, whatever strangers say in whatever order, and what is sent decodes.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let mut member = member(&mut dice);
    for _ in 0..MAX_INPUTS {
        if dice.is_empty() {
            break;
        }
        match dice.below(8) {
            0..=3 => packet(&mut member, &mut dice),
            4 => recover(&mut member, |recovery, here| _ = recovery.proceed(here)),
            5 => recover(&mut member, Recovery::retell),
            6 => begin(&mut member, &mut dice),
            _ => tags(&mut member, &mut dice),
        }
    }
}

fn member(dice: &mut Dice) -> Member {
    let home = HomeConfig {
        node: 0,
        epoch: EPOCH - 1,
        block: BLOCK,
        chunks: 2,
        incarnation: 1 + dice.word() % 3,
        migration: None,
        answering: None,
        seed: 0,
    };
    let mut node = node::node(home, Some((dice.byte() % 12, dice.below(20))));
    for _ in 0..dice.below(4) {
        let status = dice.pick(&[LocalStatus::Shared, LocalStatus::Modified]);
        node.cache.install(dice.tag(false), status);
    }
    let switch = SwitchProgram::new(SwitchConfig {
        epoch: EPOCH,
        ways: dice.byte() % 12,
        sets: dice.below(5),
        ..SwitchConfig::default()
    });
    let mut member = Member {
        node,
        switch,
        epoch: EPOCH - 1,
    };
    begin(&mut member, dice);
    member
}

/// The next epoch begins, in the middle of whatever is under way.
fn begin(member: &mut Member, dice: &mut Dice) {
    if member.epoch >= EPOCH + EPOCHS {
        return;
    }
    let change = Change {
        members: Members {
            epoch: member.epoch + 1,
            founders: Copyset(dice.word() | 1),
            switch: dice.one_in(2),
        },
        settled: member.epoch,
        gone: Copyset(dice.word() & !1),
        switch_lost: dice.one_in(2),
    };
    member.epoch += 1;
    let mut cut = Interrupted::default();
    for open in &mut cut.open[..dice.below(4)] {
        *open = Some(Open::from_record(record(dice)));
    }
    member.node.view.epoch = member.epoch;
    engine::stop(&mut member.node, change.members);
    recover(member, |recovery, here| recovery.begin(change, [cut], here));
}

fn record(dice: &mut Dice) -> Record {
    Record {
        tag: dice.header().tag,
        word: u64::from(dice.word()) << 32 | u64::from(dice.word()),
    }
}

fn records(dice: &mut Dice) -> Vec<Record> {
    (0..dice.below(FIT)).map(|_| record(dice)).collect()
}

fn packet(member: &mut Member, dice: &mut Dice) {
    let mut header = dice.header();
    header.epoch = member.epoch;
    if !dice.one_in(4) {
        header.kind = dice.pick(&[
            Kind::Rebuild,
            Kind::RebuildAck,
            Kind::Rescue,
            Kind::RescueAck,
            Kind::AddAck,
            Kind::RemoveAck,
            Kind::HeatReport,
            Kind::Tags,
        ]);
    }
    let bytes = dice.pick(&[0, 64, BLOCK, BLOCK + 1]);
    let records = records(dice);
    member.node.take(
        &header,
        Bare {
            bytes,
            records,
            ..Bare::default()
        },
    );
    check(&mut member.node);
    engine::tick(&mut member.node, dice.one_in(4));
    check(&mut member.node);
}

/// Does something to its part in a rebuild.
fn recover(member: &mut Member, act: impl FnOnce(&mut Recovery<()>, &mut FuzzNode)) {
    member.node.recover(act);
    check(&mut member.node);
}

/// Everything that it sends decodes.
fn check(node: &mut FuzzNode) {
    for (output, records) in node.sent() {
        for (_, copy) in output.copies(host) {
            check_sendable(&copy);
        }
        assert!(records.len() <= FIT);
    }
}

/// The control plane's answers to a shadow are bounded and go on to the end.
fn tags(member: &mut Member, dice: &mut Dice) {
    let header = dice.header();
    member.switch.handle(&header);
    let (records, next) = member.switch.tags(header.offset as usize, FIT);
    assert!(records.len() <= FIT.max(1));
    assert!(next > header.offset as usize || records.is_empty());
}

/// Bytes of several lengths: every byte string is a sequence of packets.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(2);
    [16, 64, 256, 1024, 4096]
        .map(|n| std::iter::repeat_with(|| random.u8(..)).take(n).collect())
        .into()
}
