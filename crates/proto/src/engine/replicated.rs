//! ABD's part of a node: groups, copies and operations, which are one value and one section
//! ([`Abd`]).

use super::protocol::{Protocol, Reporter};
use super::{Change, Host};
use crate::abd::{Abd, Command, Effects, Outcome};
use crate::flowcc::Members;
use crate::wire::{Contract, Header, Kind, OWN_LEN, Own, Record};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;

/// ABD, the `Replicated` contract.
///
/// Epochs are nothing to it, but for groups with one writer ([`Abd::fence_by_epochs`]): its packets
/// are of any, and no node waits with them for a death to be known. So it tells nothing for a
/// rebuild and hears nothing; members and configs come with the rack's view ([`Abd::learn`]).
#[derive(Clone, Copy, Debug)]
pub enum Replicated {}

/// Its number in reports.
pub const REPLICATED: u8 = Contract::Replicated as u8;

/// What ABD needs of a host beside what all protocols need.
pub trait ReplicatedHost: Host {
    /// What the section acts by.
    type Fx<'f>: Effects;

    /// The section. What is to be sent leaves when the host lets go of it.
    fn replicated<R>(&mut self, section: impl FnOnce(&mut Abd, &mut Self::Fx<'_>) -> R) -> R;
    /// What the packet at hand has of its own.
    fn own(&self) -> Own;
}

impl<H: ReplicatedHost> Protocol<H> for Replicated {
    const NAME: &'static str = "ABD";
    const NUMBER: u8 = REPLICATED;
    const KINDS: &'static [RangeInclusive<Kind>] = &[Kind::AbdStamp..=Kind::AbdConfig];
    type Command = Command;
    type Outcome = Outcome;

    #[inline]
    fn packet(host: &mut H, header: &Header) {
        // What the kind has of its own is the beginning of the body, as long as a record.
        let (own, len) = (host.own(), host.body_len().saturating_sub(OWN_LEN as u32));
        let records = match header.kind {
            Kind::AbdFillAck => host.records(),
            _ => Vec::new(),
        };
        let list = records.get(1..).unwrap_or_default();
        host.replicated(|abd, fx| abd.packet(header, &own, (len, list), fx));
    }

    fn command(host: &mut H, slot: u8, command: Command) {
        host.replicated(|abd, fx| abd.command(slot, command, fx));
    }

    fn tick(host: &mut H, _period_ended: bool) {
        host.replicated(|abd, fx| abd.tick(fx));
    }

    fn enter(host: &mut H, members: Members) {
        host.replicated(|abd, _| abd.enter(members.epoch));
    }

    fn report(_host: &mut H) -> Vec<Record> {
        Vec::new()
    }

    fn hear(_host: &mut H, _from: Reporter, _record: Record) {}

    fn settle(_host: &mut H, _change: &Change) {}

    fn fingerprint(host: &mut H, into: &mut impl Hasher)
    where
        H::Bytes: Hash,
    {
        host.replicated(|abd, _| abd.fingerprint(into));
    }
}
