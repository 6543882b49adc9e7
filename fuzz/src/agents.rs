//! Any sequence of packets, commands and timeouts to a node.

use rackmem_baselines::gather;
use rackmem_proto::Output;
use rackmem_proto::engine;
use rackmem_proto::flowcc::{
    Event, HomeConfig, LocalStatus, MakeAnswering, Migration, Requester, RequesterConfig, Step,
};
use rackmem_proto::membership::host;
use rackmem_sim::site::Bare;
use rackmem_wire::{Kind, MAX_BODY, Record, RequesterId};

use crate::dice::{Dice, EPOCH, check_sendable};
use crate::node::{FIT, FuzzNode};

/// Inputs of one run at most.
const MAX_INPUTS: usize = 256;
const BLOCK: u32 = 4096;
const MILLISECOND: u64 = 1_000_000;

struct FuzzAgents {
    agents: FuzzNode,
    requester: Requester,
    now: u64,
}

/// No role panics, and what it sends decodes.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let mut node = node(&mut dice);
    for _ in 0..MAX_INPUTS {
        if dice.is_empty() {
            break;
        }
        match dice.below(8) {
            0..=2 => to_agents(&mut node, &mut dice),
            3 => threads(&mut node, &mut dice),
            4..=5 => to_requester(&mut node, &mut dice),
            6 => command(&mut node, &mut dice),
            _ => pass_time(&mut node, &mut dice),
        }
    }
}

fn node(dice: &mut Dice) -> FuzzAgents {
    let id = RequesterId { node: 0, slot: 0 };
    let home = HomeConfig {
        node: id.node,
        epoch: EPOCH,
        block: BLOCK,
        chunks: 2,
        incarnation: 1,
        migration: dice.one_in(2).then(Migration::default),
        answering: dice.pick(&[None, Some(gather::answering as MakeAnswering)]),
        seed: dice.word(),
    };
    let requester = RequesterConfig {
        id,
        epoch: EPOCH,
        incarnation: 1,
        block: BLOCK,
        switch: dice.one_in(2),
        min_timeout: MILLISECOND,
        give_up: 100 * MILLISECOND,
    };
    let shadow = dice.one_in(2).then_some((2, 4));
    FuzzAgents {
        agents: crate::node::node(home, shadow),
        requester: Requester::new(requester),
        now: 0,
    }
}

fn body_len(dice: &mut Dice) -> u32 {
    match dice.below(4) {
        0 => 0,
        1 => BLOCK,
        2 => 64 * dice.below(64) as u32,
        _ => dice.word() % (MAX_BODY as u32 + 1),
    }
}

fn to_agents(node: &mut FuzzAgents, dice: &mut Dice) {
    let header = dice.header();
    let records: Vec<Record> = (0..dice.below(FIT))
        .map(|_| Record {
            tag: dice.tag(false),
            word: u64::from(dice.word()),
        })
        .collect();
    let bytes = body_len(dice);
    node.agents.take(
        &header,
        Bare {
            bytes,
            records,
            ..Bare::default()
        },
    );
    node.agents.sent().for_each(|(output, _)| check(output));
    engine::tick(&mut node.agents, dice.one_in(4));
    node.agents.sent().for_each(|(output, _)| check(output));
    assert!(
        node.agents.books().chunks() <= 2,
        "more memory was handed out than there is"
    );
    if node.agents.passed {
        let (_, output) = node.requester.handle(node.now, &header, 0);
        check_all(&output);
    }
}

/// Threads of the node get blocks and lose them.
fn threads(node: &mut FuzzAgents, dice: &mut Dice) {
    let statuses = [
        LocalStatus::Invalid,
        LocalStatus::Shared,
        LocalStatus::Modified,
    ];
    let (tag, status) = (dice.tag(false), dice.pick(&statuses));
    // A thread gets a block, or loses it.
    node.agents.cache.install(tag, status);
}

fn to_requester(node: &mut FuzzAgents, dice: &mut Dice) {
    let mut header = dice.header();
    header.requester = node.requester.id();
    let (_, output) = node.requester.handle(node.now, &header, body_len(dice));
    check_all(&output);
}

fn command(node: &mut FuzzAgents, dice: &mut Dice) {
    let now = node.now;
    match (dice.below(4), node.requester.step()) {
        (0, Step::Held(_)) => node.requester.write_back(now).into_iter().for_each(check),
        (1, Step::Held(_)) if node.requester.can_unlock() => {
            node.requester
                .unlock(now, dice.one_in(2))
                .into_iter()
                .for_each(check);
        }
        _ => {
            let kinds: Vec<Kind> = Kind::ALL
                .iter()
                .copied()
                .filter(|kind| kind.is_request())
                .collect();
            let event = Event {
                kind: dice.pick(&kinds),
                tag: dice.tag(false),
                offset: 0,
                reply_port: 0,
            };
            check(node.requester.begin(now, event));
        }
    }
}

fn pass_time(node: &mut FuzzAgents, dice: &mut Dice) {
    node.now += dice.word() as u64 >> dice.below(32);
    check_all(node.requester.handle_timeout(node.now).iter());
    if let Some(next) = node.requester.poll_timeout() {
        let far = node.now + 1_000_000 * MILLISECOND;
        assert!(next < far, "a lost answer would never be asked for again");
    }
}

fn check_all<'a>(outputs: impl IntoIterator<Item = &'a Output>) {
    outputs.into_iter().copied().for_each(check);
}

fn check(output: Output) {
    for (_, copy) in output.copies(host) {
        check_sendable(&copy);
    }
}

/// Bytes of several lengths: every byte string is a sequence of inputs.
pub fn seeds() -> Vec<Vec<u8>> {
    crate::switch_program::seeds()
}
