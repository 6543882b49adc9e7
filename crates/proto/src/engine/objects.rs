//! SABRes as a protocol of a node.

use super::{Change, Host, Protocol, Reporter};
use crate::flowcc::Members;
use crate::sabre::{Command, Effects, Outcome, Sabre};
use crate::wire::{Contract, Copyset, Header, Kind, OWN_LEN, Own, Record};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;

/// SABRes, the `Object` contract.
///
/// An object is its home's and dies with it, so nothing is made anew when an epoch begins: what was
/// under way is asked again in the new one, and calls take effect once across epochs. Homes report
/// which transactions of dead coordinators they have committed ([`crate::sabre::transaction`]).
#[derive(Clone, Copy, Debug)]
pub enum Objects {}

/// Its number in reports.
pub const OBJECTS: u8 = Contract::Object as u8;

/// What SABRes needs of a host beside what all protocols need.
pub trait ObjectHost: Host {
    /// What the section acts by.
    type Fx<'f>: Effects;

    /// The section. What is to be sent leaves when the host lets go of it.
    fn objects<R>(&mut self, section: impl FnOnce(&mut Sabre, &mut Self::Fx<'_>) -> R) -> R;
    /// What the packet at hand has of its own.
    fn own(&self) -> Own;
}

impl<H: ObjectHost> Protocol<H> for Objects {
    const NAME: &'static str = "SABRes";
    const NUMBER: u8 = OBJECTS;
    const KINDS: &'static [RangeInclusive<Kind>] = &[Kind::ObjRead..=Kind::TxCommitAck];
    type Command = Command;
    type Outcome = Outcome;

    #[inline]
    fn packet(host: &mut H, header: &Header) {
        let own = ObjectHost::own(host);
        let bytes = host.body_len().saturating_sub(OWN_LEN as u32);
        host.objects(|sabre, fx| sabre.packet(header, &own, bytes, fx));
    }

    fn command(host: &mut H, slot: u8, command: Command) {
        host.objects(|sabre, fx| sabre.command(slot, command, fx));
    }

    fn tick(host: &mut H, _period_ended: bool) {
        host.objects(|sabre, fx| sabre.tick(fx));
    }

    fn enter(host: &mut H, members: Members) {
        host.objects(|sabre, _| sabre.enter(members.founders));
    }

    fn forget(host: &mut H, gone: Copyset) {
        host.objects(|sabre, fx| sabre.forget(gone, fx));
    }

    fn report(host: &mut H) -> Vec<Record> {
        host.objects(|sabre, _| sabre.report())
    }

    fn hear(host: &mut H, _from: Reporter, record: Record) {
        host.objects(|sabre, _| sabre.hear(record));
    }

    fn settle(host: &mut H, _change: &Change) {
        host.objects(|sabre, fx| sabre.settle(fx));
    }

    fn resume(host: &mut H) {
        host.objects(|sabre, fx| sabre.resume(fx));
    }

    fn fingerprint(host: &mut H, into: &mut impl Hasher)
    where
        H::Bytes: Hash,
    {
        host.objects(|sabre, _| sabre.fingerprint(into));
    }
}
