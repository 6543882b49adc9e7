//! GCP's part of a node: its locks.

use super::protocol::{Protocol, Reporter};
use super::{Change, Host};
use crate::flowcc::Members;
use crate::wire::{Contract, Copyset, Header, Kind, Record};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;

/// GCP, the `Locked` contract.
#[derive(Clone, Copy, Debug)]
pub enum Gcp {}

/// Its number in reports.
pub const LOCKS: u8 = Contract::Locked as u8;

#[expect(missing_docs, reason = "each is for the function of `Protocol`")]
/// What GCP needs of a host beside what all need.
pub trait LockHost: Host {
    fn lock_packet(&mut self, header: &Header);
    fn lock_tick(&mut self);
    fn lock_enter(&mut self, members: Members);
    fn lock_forget(&mut self, gone: Copyset);
    fn lock_reports(&mut self) -> Vec<Record>;
    fn lock_report(&mut self, from: Reporter, record: Record);
    fn locks_settle(&mut self, change: &Change);
    fn locks_resume(&mut self);
}

impl<H: LockHost> Protocol<H> for Gcp {
    const NAME: &'static str = "GCP";
    const NUMBER: u8 = LOCKS;
    const KINDS: &'static [RangeInclusive<Kind>] = &[Kind::Acquire..=Kind::YieldAck];
    type Command = Infallible;
    type Outcome = Infallible;

    fn packet(host: &mut H, header: &Header) {
        host.lock_packet(header);
    }

    fn command(_: &mut H, _: u8, command: Infallible) {
        match command {}
    }

    fn tick(host: &mut H, _: bool) {
        host.lock_tick();
    }

    fn enter(host: &mut H, members: Members) {
        host.lock_enter(members);
    }

    fn forget(host: &mut H, gone: Copyset) {
        host.lock_forget(gone);
    }

    fn report(host: &mut H) -> Vec<Record> {
        host.lock_reports()
    }

    fn hear(host: &mut H, from: Reporter, record: Record) {
        host.lock_report(from, record);
    }

    fn settle(host: &mut H, change: &Change) {
        host.locks_settle(change);
    }

    fn resume(host: &mut H) {
        host.locks_resume();
    }

    fn fingerprint(_: &mut H, _: &mut impl Hasher)
    where
        H::Bytes: Hash,
    {
    }
}
