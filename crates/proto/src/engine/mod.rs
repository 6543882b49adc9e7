//! A node: which of its parts takes a packet, what it keeps for retransmissions,
//! and its part when an epoch begins.
//!
//! What is here decides; whoever runs it brings threads, bytes and ports as a [`Host`]. The
//! library, the seeded worlds, the explorer, the cost models and the fuzzers are hosts of the same
//! code, so what is checked is what ships.
//!
//! | question | answered in |
//! |---|---|
//! | who takes this packet, and is it of this epoch? | [`part`], [`is_current`], [`Protocol::KINDS`] |
//! | which protocols does a node speak, and what is each asked for? | [`Host::Protocols`], [`Protocol`] |
//! | what does a cache do for others, and what does it keep because packets are lost? | [`Copies`] |
//! | what does a home do with a packet's bytes? | [`Home`] |
//! | what waits for a majority, where a group keeps a home? | [`keeping`] |
//! | and what is served side by side meanwhile? | [`turns`] |
//! | what does a node do with copies whose region is removed? | [`hear`], [`install`] |
//! | what does a node tell the shadow of the switch? | [`Migrating`] |
//! | what does a node do when an epoch begins? | [`Recovery`] |
//! | what does a node do with a lock, and with all of them? | [`NodeLock`], [`Gcp`] |
//! | what does a node do with replicated memory? | [`Replicated`] |
//! | what does a node do with objects? | [`Objects`] |
//! | what does a node do with bounded memory? | [`Bounded`] |
//! | what does a thread do that found no usable copy? | [`plan`], [`Access`] |
//! | which block leaves a full set before its room is needed? | [`Pressure`], [`next_out`] |
//! | does a word come to an operation, or the operation go to the word? | [`Contention`] |
//!
//! Each of these values is a *section*: a host whose threads share a node puts a lock around each,
//! and the functions here hold at most one at a time, in the steps that explorers take as atomic.
//! An [`Access`] belongs to the thread that has its requester.

mod access;
mod bounded;
mod coherent;
mod copies;
mod delegating;
mod evicting;
mod home;
mod host;
pub mod keeping;
mod lock;
mod locked;
mod long;
mod migrating;
mod objects;
mod part;
mod protocol;
mod recovery;
mod removing;
mod replicated;
mod rescuing;
mod single;
pub mod turns;

pub use access::{Access, Do, Entries, Plan, Purpose, Then, plan};
pub use bounded::{BOUNDED, Bounded, BoundedHost};
pub use coherent::{FlowCc, Role, follow, role, spread};
pub use copies::{Answer, Copies};
pub use delegating::{Contention, HOT};
pub use evicting::{ENOUGH, Pressure, next_out};
pub use home::{ACCEPT_EMPTY, Home, Memory, Served};
pub use host::{CoherentHost, Defect, Host, Note, Payload};
pub use lock::{AtHome, LockFx, NodeLock, Part as LockPart, Told, ended_life};
pub use locked::{Gcp, LOCKS, LockCommand, LockHost};
pub use long::Stored;
pub use migrating::{Migrating, Report};
pub use objects::{OBJECTS, ObjectHost, Objects};
pub use part::{Part, is_current, part};
pub use protocol::{Holds, MAX_NUMBER, Protocol, Protocols, Reporter, number_of, numbered};
pub use recovery::{Change, Recovery};
pub use removing::{KeptCopies, hear, install};
pub use replicated::{REPLICATED, Replicated, ReplicatedHost};
pub use single::{Single, Wants};

use crate::flowcc::Members;
use crate::wire::{Header, Kind};

/// A packet for the agents of a node.
pub fn packet<H: Host>(host: &mut H, header: &Header) {
    let part = part(header);
    let always = matches!(part, Part::Reach | Part::Inspect);
    if !always && !is_current(header, host.epoch(), |node| host.incarnation(node)) {
        let (epoch, life) = (host.epoch(), host.incarnation(header.requester.node));
        let later = header.epoch > epoch || header.incarnation > life;
        return host.note(Note::NotOfNow { later });
    }
    match part {
        Part::Protocol if H::Protocols::packet(host, header) => {}
        Part::Protocol if matches!(header.kind, Kind::GuestAsk | Kind::GuestTell) => {
            host.elsewhere(Part::Guest, header);
        }
        Part::Protocol => host.note(Note::OfNobody),
        Part::Recovery => host.recovery(|recovery, host| recovery.packet(header, host)),
        Part::Reach | Part::Inspect | Part::Guest => host.elsewhere(part, header),
    }
}

/// What is due every few round trips. `period_ended`: a period of ownership migration has (§5.2.2).
pub fn tick<H: Host>(host: &mut H, period_ended: bool) {
    H::Protocols::tick(host, period_ended);
}

/// The rack is in a new epoch: nothing of the last one is served from here on,
/// and nothing of the new one until
/// [`Recovery`] is done.
pub fn stop<H: Host>(host: &mut H, members: Members) {
    H::Protocols::enter(host, members);
}

/// [`Recovery`] is done, and the host lives by the new view ([`follow`]).
pub fn resume<H: Host>(host: &mut H) {
    H::Protocols::resume(host);
}
