//! What a protocol is to a node, and the list of those that a node speaks.
//!
//! A protocol is a set of functions over a [`Host`], which hands out its sections: all of FlowCC's
//! or GCP's, or the one value of a protocol that is no more than that ([`Holds`]). What it needs of
//! a host beside what all need is a trait that it asks for (`impl<H: LockHost> Protocol<H> for
//! Gcp`), so a host has what its own protocols ask for, and nothing else. The list is a
//! tuple, [`Host::Protocols`]: to register a protocol is to name it there. Who takes a packet, what
//! a tick does, what an epoch's beginning asks of each protocol and what is told for a rebuild
//! follow from the list, at compile time.

use super::{Change, Host};
use crate::flowcc::{Members, Open};
use crate::wire::{Copyset, Header, Kind, NodeId, Record, Tag};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::RangeInclusive;

/// Who reports something of the epoch that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reporter {
    /// A node.
    Node(NodeId),
    /// The switch, which has survived.
    Switch,
}

/// One protocol's part of a node.
pub trait Protocol<H: Host> {
    /// Its name.
    const NAME: &'static str;
    /// Its number in reports, at most [`MAX_NUMBER`]: that of its contract. A protocol on trial has
    /// one that no contract has.
    const NUMBER: u8;
    /// The kinds of its packets.
    const KINDS: &'static [RangeInclusive<Kind>];
    /// What a thread of the node asks for.
    type Command;
    /// What it is answered.
    type Outcome;

    /// Takes a packet of one of its kinds, which is of this epoch and of a living incarnation.
    fn packet(host: &mut H, header: &Header);
    /// A thread asks for something, in a slot in which nothing is under way.
    fn command(host: &mut H, slot: u8, command: Self::Command);
    /// What is due every few round trips. `period_ended`: a period of ownership migration has
    /// (§5.2.2).
    fn tick(_host: &mut H, _period_ended: bool) {}

    /// The rack is in a new epoch: what was under way is over, and nothing is served until
    /// [`Protocol::settle`].
    fn enter(host: &mut H, members: Members);
    /// These incarnations of nodes have ended since entries were made last: their memory is gone,
    /// and all that they had.
    fn forget(_host: &mut H, _gone: Copyset) {}
    /// What this node has, for the homes that make their entries anew: at the time of the call,
    /// and in any order.
    fn report(host: &mut H) -> Vec<Record>;
    /// What was reported of this home, by this node too.
    fn hear(host: &mut H, from: Reporter, record: Record);
    /// All have reported: this home makes its entries anew, and serves.
    fn settle(host: &mut H, change: &Change);
    /// All homes serve: asks again for what threads wait for.
    fn resume(_host: &mut H) {}

    // What follows is of blocks, whose only current copy may be where an epoch has cut an event
    // off.

    /// An event of a node was cut off. This home's entries were made last in the epoch `settled`.
    fn note_open(_host: &mut H, _node: NodeId, _open: Open, _settled: u32) {}
    /// Blocks that this node has and that their homes may not have: `open` are events of all nodes
    /// that were cut off, and `read` blocks that this node has read from another cache.
    fn to_rescue(_host: &mut H, _open: &[(NodeId, Open)], _read: &[Tag]) -> Vec<(Tag, H::Bytes)> {
        Vec::new()
    }
    /// A packet brings bytes of a block that this home may not have: to be stored, if they are new,
    /// and all of it is here if it is whole.
    fn rescue(_host: &mut H, _header: &Header, _store: bool, _whole: bool) {}
    /// This node itself has a block that its home may not have.
    fn rescue_own(_host: &mut H, _tag: Tag, _bytes: &H::Bytes) {}
    /// A block's home has it, and this node lets go of what it has kept.
    fn rescued(_host: &mut H, _tag: Tag) {}

    /// Everything that decides what it will do.
    fn fingerprint(host: &mut H, into: &mut impl Hasher)
    where
        H::Bytes: Hash;
}

/// A host that has all of a protocol's part of the node as one value, behind one lock.
pub trait Holds<P: Protocol<Self>>: Host {
    /// Its section.
    fn part<R>(&mut self, section: impl FnOnce(&mut P) -> R) -> R;
    /// The answer to the command in this slot.
    fn done(&mut self, slot: u8, outcome: P::Outcome);
}

/// The highest [`Protocol::NUMBER`].
pub const MAX_NUMBER: u8 = (1 << (48 - Tag::OFFSET_BITS)) - 1;
const NUMBER_BITS: u64 = (MAX_NUMBER as u64) << Tag::OFFSET_BITS;

/// A record of the protocol of this number, as it is told: the number is that of a contract, and
/// stands where addresses have theirs.
#[must_use]
pub const fn numbered(number: u8, record: Record) -> Record {
    Record {
        tag: Tag(record.tag.0 & !NUMBER_BITS | (number as u64) << Tag::OFFSET_BITS),
        word: record.word,
    }
}

/// What a told record is of.
pub const fn number_of(record: &Record) -> u8 {
    ((record.tag.0 & NUMBER_BITS) >> Tag::OFFSET_BITS) as u8
}

/// The protocols that a node speaks: what the list does, each of them does.
#[expect(missing_docs, reason = "they are those of `Protocol`")]
pub trait Protocols<H: Host> {
    /// Whether one of them takes it. A packet that none takes is dropped.
    fn packet(host: &mut H, header: &Header) -> bool;
    fn tick(host: &mut H, period_ended: bool);
    fn enter(host: &mut H, members: Members);
    fn forget(host: &mut H, gone: Copyset);
    /// Numbered records.
    fn report(host: &mut H) -> Vec<Record>;
    /// A numbered record. One of a protocol that this node does not speak is dropped.
    fn hear(host: &mut H, from: Reporter, record: Record);
    fn settle(host: &mut H, change: &Change);
    fn resume(host: &mut H);
    fn note_open(host: &mut H, node: NodeId, open: Open, settled: u32);
    fn to_rescue(host: &mut H, open: &[(NodeId, Open)], read: &[Tag]) -> Vec<(Tag, H::Bytes)>;
    fn rescue(host: &mut H, header: &Header, store: bool, whole: bool);
    fn rescue_own(host: &mut H, tag: Tag, bytes: &H::Bytes);
    fn rescued(host: &mut H, tag: Tag);
    fn fingerprint(host: &mut H, into: &mut impl Hasher)
    where
        H::Bytes: Hash;
    /// Names, numbers and kinds, for documents and tests.
    fn table() -> Vec<(&'static str, u8, &'static [RangeInclusive<Kind>])>;
}

macro_rules! lists {
    ($($($protocol:ident)+;)+) => { $(
        impl<H: Host, $($protocol: Protocol<H>),+> Protocols<H> for ($($protocol,)+) {
            #[inline]
            fn packet(host: &mut H, header: &Header) -> bool {
                $(if $protocol::KINDS.iter().any(|kinds| kinds.contains(&header.kind)) {
                    $protocol::packet(host, header);
                    return true;
                })+
                false
            }

            fn tick(host: &mut H, period_ended: bool) {
                $($protocol::tick(host, period_ended);)+
            }

            fn enter(host: &mut H, members: Members) {
                $($protocol::enter(host, members);)+
            }

            fn forget(host: &mut H, gone: Copyset) {
                $($protocol::forget(host, gone);)+
            }

            fn report(host: &mut H) -> Vec<Record> {
                let mut records = Vec::new();
                $(
                    let told = $protocol::report(host).into_iter();
                    records.extend(told.map(|record| numbered($protocol::NUMBER, record)));
                )+
                records
            }

            fn hear(host: &mut H, from: Reporter, record: Record) {
                let number = number_of(&record);
                $(if number == $protocol::NUMBER {
                    return $protocol::hear(host, from, record);
                })+
            }

            fn settle(host: &mut H, change: &Change) {
                $($protocol::settle(host, change);)+
            }

            fn resume(host: &mut H) {
                $($protocol::resume(host);)+
            }

            fn note_open(host: &mut H, node: NodeId, open: Open, settled: u32) {
                $($protocol::note_open(host, node, open, settled);)+
            }

            fn to_rescue(
                host: &mut H,
                open: &[(NodeId, Open)],
                read: &[Tag],
            ) -> Vec<(Tag, H::Bytes)> {
                let mut found = Vec::new();
                $(found.append(&mut $protocol::to_rescue(host, open, read));)+
                found
            }

            fn rescue(host: &mut H, header: &Header, store: bool, whole: bool) {
                $($protocol::rescue(host, header, store, whole);)+
            }

            fn rescue_own(host: &mut H, tag: Tag, bytes: &H::Bytes) {
                $($protocol::rescue_own(host, tag, bytes);)+
            }

            fn rescued(host: &mut H, tag: Tag) {
                $($protocol::rescued(host, tag);)+
            }

            fn fingerprint(host: &mut H, into: &mut impl Hasher)
            where
                H::Bytes: Hash,
            {
                $($protocol::fingerprint(host, into);)+
            }

            fn table() -> Vec<(&'static str, u8, &'static [RangeInclusive<Kind>])> {
                [$(($protocol::NAME, $protocol::NUMBER, $protocol::KINDS)),+].into()
            }
        }
    )+ };
}

lists! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_which_protocol_it_is_of() {
        let record = Record {
            tag: Tag(31 << 48 | 0x1fff_ffff_ffff),
            word: u64::MAX,
        };
        for number in 0..=MAX_NUMBER {
            let told = numbered(number, record);
            assert_eq!(told.tag.home(), record.tag.home());
            assert_eq!((number_of(&told), told.word), (number, record.word));
            assert_eq!(told.tag.offset(), record.tag.offset());
        }
    }
}
