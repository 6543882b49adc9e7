//! Any sequence of packets to those who make the directory anew, and to the shadow of a switch.

use rackmem_proto::flowcc::{
    Heard, HomeAgent, HomeConfig, Members, Next, Open, Rebuild, Shadow, ShadowConfig, Stream,
    Style, copy_record,
};
use rackmem_proto::switch::{SwitchConfig, SwitchProgram};
use rackmem_wire::{Copyset, Kind, Record};

use crate::dice::{Dice, EPOCH, check_sendable};

/// Inputs of one run at most.
const MAX_INPUTS: usize = 256;
const BLOCK: u32 = 4096;
/// Records of a packet at most.
const FIT: usize = 8;

struct Member {
    home: HomeAgent,
    rebuild: Rebuild,
    shadow: Shadow,
    switch: SwitchProgram,
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
            4 => step(&mut member, &mut dice),
            5 => {
                member.rebuild.resend();
                while let Some(output) = member.rebuild.poll_output() {
                    check_sendable(&output.header);
                    assert!(member.rebuild.records(output.to).len() <= FIT);
                }
            }
            6 => to_shadow(&mut member, &mut dice),
            _ => tags(&mut member, &mut dice),
        }
    }
}

fn member(dice: &mut Dice) -> Member {
    let mut home = HomeAgent::new(HomeConfig {
        node: 0,
        epoch: EPOCH - 1,
        block: BLOCK,
        chunks: 2,
        incarnation: 1 + dice.word() % 3,
        migration: None,
        style: Style::Forward,
        seed: 0,
    });
    home.grow(1);
    home.freeze(EPOCH);
    let members = Members {
        epoch: EPOCH,
        founders: Copyset(dice.word() | 1),
        switch: dice.one_in(2),
    };
    let open: Vec<Open> = (0..dice.below(3))
        .map(|_| Open::from_record(record(dice)))
        .collect();
    Member {
        home,
        rebuild: Rebuild::node(0, members, BLOCK, FIT, &open),
        shadow: Shadow::new(ShadowConfig::new(
            0,
            EPOCH,
            dice.byte() % 12,
            dice.below(20),
        )),
        switch: SwitchProgram::new(SwitchConfig {
            epoch: EPOCH,
            ways: dice.byte() % 12,
            sets: dice.below(5),
            ..SwitchConfig::default()
        }),
    }
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
    header.kind = dice.pick(&[
        Kind::Rebuild,
        Kind::RebuildAck,
        Kind::Rescue,
        Kind::RescueAck,
    ]);
    let body = dice.pick(&[0, 64, BLOCK, BLOCK + 1]);
    let (heard, ack) = member.rebuild.handle(&header, body);
    if let Some(ack) = ack {
        check_sendable(&ack.header);
    }
    let Heard::Records(stream) = heard else {
        return;
    };
    for record in records(dice) {
        match stream {
            Stream::Open => {
                let open = Open::from_record(record);
                member.home.note_open(header.sender, open, EPOCH - 1);
            }
            Stream::Copies => member.home.note_copy(header.sender, record),
            Stream::Entries => member.home.note_registers(record),
            Stream::Ready => {}
        }
    }
}

fn step(member: &mut Member, dice: &mut Dice) {
    match member.rebuild.next() {
        Next::Collect => {
            let rescues: Vec<_> = records(dice).iter().map(|r| r.tag).collect();
            let copies = records(dice);
            let copies = copies.iter().map(|r| copy_record(r.tag, r.word & 1 == 1));
            member.rebuild.collect(rescues, copies.collect());
        }
        Next::Settle => {
            member.home.settle(Copyset(dice.word()), dice.one_in(2));
            member.rebuild.settled();
        }
        Next::Wait | Next::Done => {
            let header = dice.header();
            let (outputs, _) = member.home.handle(&header, 0);
            for output in outputs.iter() {
                check_sendable(&output.header);
            }
        }
    }
}

fn to_shadow(member: &mut Member, dice: &mut Dice) {
    let mut header = dice.header();
    header.kind = dice.pick(&[Kind::AddAck, Kind::RemoveAck, Kind::HeatReport, Kind::Tags]);
    let told = records(dice);
    let mut outputs = member.shadow.handle(&header, told);
    if dice.one_in(4) {
        outputs.extend(member.shadow.end_period());
    }
    for output in outputs {
        check_sendable(&output.header);
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
