//! GCP's part of a node: its locks, each a [`NodeLock`] behind a lock of its own, and what is told
//! of them when an epoch begins.

use super::lock::{LockFx, NodeLock, Told, ended_life};
use super::protocol::{Protocol, Reporter};
use super::{Change, Host};
use crate::flowcc::Members;
use crate::gcp::{Access, Life};
use crate::wire::{Contract, Copyset, Header, HomeId, Kind, Record, Tag};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;

/// GCP, the `Locked` contract.
#[derive(Clone, Copy, Debug)]
pub enum Gcp {}

const KINDS: RangeInclusive<Kind> = Kind::Acquire..=Kind::YieldAck;

impl Gcp {
    /// Whether packets of this kind are about locks.
    pub fn takes(kind: Kind) -> bool {
        KINDS.contains(&kind)
    }
}

/// Its number in reports.
pub const LOCKS: u8 = Contract::Locked as u8;

/// What a thread asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockCommand<S> {
    /// To enter; it waits as this seat until [`LockFx::inside`] or [`LockFx::send_away`].
    Enter(S, Access),
    /// To leave.
    Leave(Access),
    /// To leave without having seen what is wrong with the data, if anything is.
    Decline(Access),
}

/// What GCP needs of a host beside what all protocols need.
///
/// The section of a lock is handed to a closure with what it needs to act ([`LockFx`]); that is
/// done when the host lets go of the lock.
pub trait LockHost: Host {
    /// What names a thread that waits.
    type Seat;
    /// What a section acts by.
    type Fx<'f>: LockFx<Seat = Self::Seat>;

    /// The section of a lock that this node knows.
    fn lock<R>(
        &mut self,
        tag: Tag,
        section: impl FnOnce(&mut NodeLock<Self::Seat>, &mut Self::Fx<'_>) -> R,
    ) -> Option<R>;
    /// All of them, one after the other.
    fn each_lock(&mut self, section: impl FnMut(&mut NodeLock<Self::Seat>, &mut Self::Fx<'_>));
    /// Those whose turn it is to ask again for what has not come: all, where ticks are rare.
    fn each_due(&mut self, section: impl FnMut(&mut NodeLock<Self::Seat>, &mut Self::Fx<'_>)) {
        self.each_lock(section);
    }
    /// What was told of this home's locks for the epoch that begins.
    fn told<R>(&mut self, section: impl FnOnce(&mut Told) -> R) -> R;

    /// Makes a lock known again that the node has forgotten in this epoch. `false`: it has not.
    fn recall(&mut self, _tag: Tag) -> bool {
        false
    }
    /// Makes a lock that no program makes, whose home this is, and which protects so many bytes.
    /// `false`: there is no room.
    fn hear_of(&mut self, _tag: Tag, _len: u32) -> bool {
        false
    }
    /// Makes a lock known of which others have told, and whose home a group keeps and this node
    /// serves: it is to be settled ([`super::AtHome::Settling`]).
    fn take_over(&mut self, _tag: Tag) {}
    /// All have told what they have of locks of homes that groups keep: what is not known here is
    /// at rest from here on in this epoch.
    fn all_told(&mut self) {}
    /// What is remembered of locks that were forgotten is of an epoch that has ended.
    fn forget_forgotten(&mut self) {}
    /// Whether an address is memory of its home as that is now: a member,
    /// and not one that has begun anew since.
    fn is_current(&self, _tag: Tag) -> bool {
        true
    }
    /// Removes a lock that has ended.
    fn remove(&mut self, tag: Tag);
    /// Gives back what was kept for locks of memory that is gone with these nodes.
    fn forget_room(&mut self, _gone: Copyset) {}

    /// The home has heard of the end of this life.
    fn life_ended(&mut self, _tag: Tag, _life: Life) {}
    /// This home has been asked to take the lock, and has done what it can.
    fn asked_home(&mut self, _tag: Tag) {}
    /// A packet about a lock that this node does not know was ignored.
    fn unknown(&mut self) {}
    /// So many locks of this home have lost their last data.
    fn locks_lost(&mut self, _count: u64) {}
}

impl<H: LockHost> Protocol<H> for Gcp {
    const NAME: &'static str = "GCP";
    const NUMBER: u8 = LOCKS;
    const KINDS: &'static [RangeInclusive<Kind>] = &[KINDS];
    type Command = (Tag, LockCommand<H::Seat>);
    /// Threads hear by [`LockFx::inside`].
    type Outcome = ();

    #[inline]
    fn packet(host: &mut H, header: &Header) {
        let tag = header.tag;
        // No lock has another name, and whoever asks for one is no node of this rack.
        if !tag.is_under(Contract::Locked) {
            return host.unknown();
        }
        if let (Kind::YieldAck, Some(ended)) = (header.kind, ended_life(header)) {
            return host.life_ended(tag, ended);
        }
        let len = host.body_len();
        let records = match header.kind {
            Kind::Queue => host.records(),
            _ => Vec::new(),
        };
        let known = take(host, header, (len, &records))
            || (host.recall(tag) || heard_of(host, header)) && take(host, header, (len, &records));
        if !known {
            return host.unknown();
        }
        if header.kind == Kind::Yield {
            host.asked_home(tag);
        }
    }

    fn command(host: &mut H, _: u8, (tag, command): (Tag, LockCommand<H::Seat>)) {
        host.lock(tag, |lock, fx| match command {
            LockCommand::Enter(seat, access) => lock.enter(seat, access, fx),
            LockCommand::Leave(access) => lock.leave(access, fx),
            LockCommand::Decline(access) => lock.decline(access, fx),
        });
    }

    fn tick(host: &mut H, _: bool) {
        host.each_due(|lock, fx| {
            lock.retry(fx);
        });
    }

    fn enter(host: &mut H, members: Members) {
        // Whatever could be late is of the last epoch.
        host.forget_forgotten();
        let defect = host.defect();
        let keeps = host.host_of(HomeId::of_group(0)) == Some(host.me());
        host.each_lock(|lock, _| lock.enter_epoch(members, keeps, defect));
    }

    /// Locks whose home is not what it was are gone, unless they have been made since it is back.
    /// What was told for an epoch that was cut off is told again.
    fn forget(host: &mut H, gone: Copyset) {
        host.told(|told| *told = Told::default());
        if gone.is_empty() {
            return;
        }
        let mut of_gone = Vec::new();
        host.each_lock(|lock, _| {
            let tag = lock.tag();
            of_gone.extend(tag.home().dies_with(gone).then_some(tag));
        });
        of_gone.retain(|tag| !host.is_current(*tag));
        for tag in of_gone {
            host.lock(tag, |lock, fx| lock.end(fx));
            host.remove(tag);
        }
        host.forget_room(gone);
    }

    /// Of locks of other homes: this one takes what its own node has when it settles.
    fn report(host: &mut H) -> Vec<Record> {
        let mut records = Vec::new();
        host.each_lock(|lock, _| {
            let report = lock.report().filter(|_| !lock.is_home());
            records.extend(report.into_iter().flat_map(|r| r.records(lock.tag())));
        });
        records
    }

    fn hear(host: &mut H, from: Reporter, record: Record) {
        host.told(|told| match from {
            Reporter::Node(node) => told.node(node, record),
            Reporter::Switch => told.switch(record),
        });
    }

    fn settle(host: &mut H, change: &Change) {
        let told = host.told(core::mem::take);
        for tag in told.of_groups() {
            if host.is_home_of(tag) {
                host.take_over(tag);
            }
        }
        // From here on a lock may become known that nobody has told of, and not before: otherwise
        // one could be taken for a lock at rest that another node has.
        host.all_told();
        let defect = host.defect();
        let mut lost = 0;
        host.each_lock(|lock, _| lost += u64::from(lock.settle(change, &told, defect)));
        host.locks_lost(lost);
    }

    fn resume(host: &mut H) {
        host.each_lock(|lock, fx| lock.resume(fx));
    }

    fn fingerprint(host: &mut H, mut into: &mut impl Hasher)
    where
        H::Bytes: Hash,
    {
        host.each_lock(|lock, _| {
            (lock.lock(), lock.entry(), lock.waiting()).hash(&mut into);
        });
        host.told(|told| told.hash(&mut into));
    }
}

/// The node's lock takes a packet, if the node knows it.
#[inline]
fn take<H: LockHost>(host: &mut H, header: &Header, body: (u32, &[Record])) -> bool {
    let taken = host.lock(header.tag, |lock, fx| lock.packet(header, body, fx));
    taken.is_some()
}

/// Makes a lock that no program makes, if this is a request for one at its home. Without room the
/// request is dropped; whoever asks waits.
fn heard_of<H: LockHost>(host: &mut H, header: &Header) -> bool {
    let (tag, len) = (header.tag, header.offset);
    let named = header.kind == Kind::Acquire && host.is_home_of(tag) && len != 0;
    named && tag.0.is_multiple_of(16) && host.is_current(tag) && host.hear_of(tag, len)
}
