//! A node: which of its parts takes a packet, what it keeps for retransmissions, and its part when an epoch begins.
//!
//! What is here decides; whoever runs it brings threads, bytes and ports as a [`Host`]. The library, the seeded worlds, the
//! explorer, the cost models and the fuzzers are hosts of the same code, so what is checked is what ships.
//!
//! | question | answered in |
//! |---|---|
//! | who takes this packet, and is it of this epoch? | [`part`], [`is_current`] |
//! | what does a cache do for others, and what does it keep because packets are lost? | [`Copies`] |
//! | what does a home do with a packet's bytes? | [`Home`] |
//! | what does a node tell the shadow of the switch? | [`Migrating`] |
//! | what does a node do when an epoch begins? | [`Recovery`] |
//!
//! Each of these values is a *section*: a host whose threads share a node puts a lock around each, and the functions here hold at
//! most one at a time, in the steps that explorers take as atomic.

mod copies;
mod home;
mod host;
mod migrating;
mod part;
mod recovery;

pub use copies::{Answer, Copies};
pub use home::{ACCEPT_EMPTY, Home, Memory, Served};
pub use host::{Defect, Host, Note, Payload};
pub use migrating::{Migrating, Report};
pub use part::{Part, is_current, part};
pub use recovery::{Change, Recovery};

use crate::call::Executed;
use crate::flowcc::LocalStatus;
use crate::wire::{Flags, Header, Kind};
use crate::{Data, Dest, Output};
use alloc::vec::Vec;

/// A packet for the agents of a node.
pub fn packet<H: Host>(host: &mut H, header: &Header) {
    let part = part(host.me(), header);
    let always = matches!(part, Part::Reach | Part::Inspect);
    if !always && !is_current(header, host.epoch(), |node| host.incarnation(node)) {
        return host.note(Note::NotOfNow);
    }
    match part {
        Part::Recovery => host.recovery(|recovery, host| recovery.packet(header, host)),
        Part::Cache => cache(host, header),
        Part::Requester => host.requester(header),
        Part::Shadow => shadow(host, header),
        Part::ShadowAndHome => {
            shadow(host, header);
            home(host, header);
        }
        Part::Home => home(host, header),
        Part::Reach | Part::Inspect | Part::Locks | Part::Service => host.elsewhere(part, header),
    }
}

/// What is due every few round trips. `period_ended`: a period of ownership migration has (§5.2.2).
pub fn tick<H: Host>(host: &mut H, period_ended: bool) {
    let outputs: Vec<Output> = host.home(|home, _| {
        let again: Vec<Output> = home.agent.resend().collect();
        let moves = match period_ended {
            true => home.agent.end_period(),
            false => home.agent.start_moves(),
        };
        again.into_iter().chain(moves).collect()
    });
    for output in &outputs {
        host.send(output, Payload::Nothing);
    }
    if !period_ended {
        return;
    }
    let epoch = host.epoch();
    let Some((outputs, report)) = host.migrating(|migrating| migrating.end_period(epoch)) else {
        return;
    };
    for output in &outputs {
        host.send(output, Payload::Nothing);
    }
    if let Some(Report { output, records }) = report {
        host.send(&output, Payload::Records(&records));
    }
}

/// The rack is in a new epoch: nothing of the last one is served from here on, and nothing of the new one until
/// [`Recovery`] is done.
pub fn stop<H: Host>(host: &mut H, epoch: u32) {
    let forgets = host.defect() == Some(Defect::ForgetRescued);
    let moves_on = host.defect() == Some(Defect::MoveOn);
    host.home(|home, _| {
        // An entry that begins to move is locked until the switch answers. There may be none, and until all members go on
        // nobody can say that there is.
        if !moves_on {
            home.agent.set_migration(None);
        }
        if forgets {
            home.agent.forget_rescued();
        }
        home.agent.freeze(epoch);
    });
    if host.defect() != Some(Defect::KeepExecuted) {
        host.copies(Copies::enter);
    }
}

fn home<H: Host>(host: &mut H, header: &Header) {
    let defect = host.defect();
    host.note(Note::AtHome);
    let served = host.home(|home, memory| home.packet(header, memory, defect));
    if served.accepted {
        host.note(Note::Accepted(header.tag));
    }
    if served.stored {
        host.note(Note::Stored(header.tag));
    }
    if let Some((old, new)) = served.delegated {
        host.note(Note::Delegated { old, new });
    }
    for output in served.outputs.iter() {
        let payload = match output.data {
            Data::Home => Payload::Home,
            Data::Operand => Payload::Word(served.result),
            _ => Payload::Nothing,
        };
        host.send(output, payload);
    }
}

fn shadow<H: Host>(host: &mut H, header: &Header) {
    let records = host.records();
    let outputs = host.migrating(|migrating| migrating.packet(header, &records));
    for output in outputs.iter().flatten() {
        host.send(output, Payload::Nothing);
    }
}

/// A request that its owner has granted, for this node's cache.
fn cache<H: Host>(host: &mut H, header: &Header) {
    let (me, defect) = (host.me(), host.defect());
    let reads = header.kind == Kind::ReadMiss;
    let local = host.hold(header.tag, reads);
    let Answer {
        reaction,
        executed,
        recalled,
    } = host.copies(|copies| copies.request(me, header, local, defect));
    host.note(Note::Asked {
        again: executed == Executed::Again,
        old: executed == Executed::Old,
        recalled: recalled.is_some(),
    });
    if reaction.retain {
        let bytes = recalled.clone().unwrap_or_else(|| host.keep());
        host.copies(|copies| copies.retain(header, bytes));
    }
    let invalidates = local.is_some() && reaction.next == LocalStatus::Invalid;
    if invalidates && header.flags.has(Flags::IN_SWITCH) {
        host.migrating(|migrating| migrating.invalidated(header.tag));
    }
    let next = match defect {
        Some(Defect::KeepInvalidated) if invalidates => local.unwrap_or_default(),
        _ => reaction.next,
    };
    // What is read stays where it is: the lock of its entry at the owner keeps writers and evictions away, so the copy need
    // not be held while its bytes travel. What is given away may be overwritten once it is let go.
    if local.is_some() && reads {
        host.set(next);
    }
    for output in reaction.outputs.iter() {
        let lies = defect == Some(Defect::SkipWriteBack)
            && output.header.kind == Kind::WriteBack
            && !header.flags.has(Flags::GATHER);
        if lies {
            let ack = header.answer(Kind::WriteBackAck, me);
            let output = Output::new(Dest::Requester(header.requester), ack);
            host.send(&output, Payload::Nothing);
            continue;
        }
        let payload = match (output.data, &recalled) {
            (Data::Cache, Some(kept)) => Payload::Kept(kept),
            (Data::Cache, None) => Payload::Copy,
            _ => Payload::Nothing,
        };
        host.send(output, payload);
    }
    if local.is_some() && !reads {
        host.set(next);
    }
}
