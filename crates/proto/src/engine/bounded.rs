//! Bounded Incoherence as a protocol of a node.

use super::{Change, Host, Protocol, Reporter};
use crate::bi::cached::{Bi, BiAsk, BiOut, BiReply};
use crate::flowcc::Members;
use crate::wire::{Contract, Header, Kind, Own, Record};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;

/// Bounded Incoherence, the `Bounded` contract.
///
/// Items are their home's and die with it, and a home keeps nothing of members: an epoch that
/// begins makes nothing anew. What was under way is asked again, and takes effect once.
#[derive(Clone, Copy, Debug)]
pub enum Bounded {}

/// Its number in reports.
pub const BOUNDED: u8 = Contract::Bounded as u8;

/// What Bounded Incoherence needs of a host beside what all protocols need.
pub trait BoundedHost: Host {
    /// The section. What is to be sent leaves when the host lets go of it.
    fn bounded<R>(&mut self, section: impl FnOnce(&mut Bi, &mut BiOut) -> R) -> R;
    /// The section, with what the packet at hand has of its own and what is behind it.
    fn bounded_packet(&mut self, section: impl FnOnce(&mut Bi, (&Own, &[u8]), &mut BiOut));
}

impl<H: BoundedHost> Protocol<H> for Bounded {
    const NAME: &'static str = "BI";
    const NUMBER: u8 = BOUNDED;
    const KINDS: &'static [RangeInclusive<Kind>] = &[Kind::BiRead..=Kind::BiReserveAck];
    type Command = (BiAsk, u16);
    type Outcome = BiReply;

    #[inline]
    fn packet(host: &mut H, header: &Header) {
        host.bounded_packet(|bi, (own, body), out| bi.packet(header, own, body, out));
    }

    fn command(host: &mut H, slot: u8, command: (BiAsk, u16)) {
        host.bounded(|bi, out| bi.ask(slot, command, out));
    }

    fn tick(host: &mut H, _period_ended: bool) {
        host.bounded(|bi, out| bi.tick(out));
    }

    fn enter(_host: &mut H, _members: Members) {}

    fn report(_host: &mut H) -> Vec<Record> {
        Vec::new()
    }

    fn hear(_host: &mut H, _from: Reporter, _record: Record) {}

    fn settle(_host: &mut H, _change: &Change) {}

    fn resume(host: &mut H) {
        host.bounded(|bi, out| bi.resume(out));
    }

    fn fingerprint(host: &mut H, into: &mut impl Hasher)
    where
        H::Bytes: Hash,
    {
        host.bounded(|bi, _| bi.fingerprint(into));
    }
}
