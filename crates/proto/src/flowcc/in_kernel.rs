//! What of a cache agent's work the kernel of the node's host may do, where it shares the cache's
//! control words and blocks with the node (`switch/xdp/cache.h` and `given.h` are the same rule in
//! C).
//!
//! It is one more thread of the agent, which never waits: it takes an entry's lock bit or leaves
//! the packet to the node, and what it answers is what [`react`](super::cache_agent::react) would.
//! That is an invalidation of a clean copy: it goes without a byte, and all that was noted of it
//! goes with its entry. And it is a reader's miss: the copy stays, and if it was dirty its entry
//! says that it was written here. A writer's miss takes the only copy away, of which the agent
//! keeps the bytes until they have arrived: that is the agent's.

use super::LocalStatus;
use crate::call::Executed;
use crate::engine::is_current;
use crate::wire::{Contract, Flags, GlobalStatus, Header, Kind, NodeId, Reason};

/// The cache's entry that has a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelEntry {
    /// What the node may do with it.
    pub status: LocalStatus,
    /// Somebody has its lock bit: a store is under way, or another step of the agent.
    pub locked: bool,
}

/// What the kernel sees of a node when a packet comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelView {
    /// The node.
    pub me: NodeId,
    /// The epoch that the node serves in. `None`: it serves nobody, or is not to be answered for.
    pub epoch: Option<u32>,
    /// The incarnation of the requester's node in it.
    pub incarnation: u32,
    /// The entry that has the packet's block, if one does.
    pub entry: Option<KernelEntry>,
    /// How the packet relates to what the agent has executed.
    pub executed: Executed,
    /// Whether the kernel knows how the requester is reached.
    pub reaches: bool,
    /// Whether it knows that of the home of the packet's block.
    pub reaches_home: bool,
}

/// Why a packet for the cache agent is the node's own to answer, in the order in which the desk has
/// the counts of each, behind that of what was answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Passed {
    /// Of another epoch or incarnation than the node serves, or it serves none.
    NotOfNow,
    /// It wants data, or something else than an acknowledgement to its requester.
    Asks,
    /// Where its requester is reached is not known, or the block's home, which is to have it.
    NoWay,
    /// No entry has the block: it is a page, it has left, or this comes late.
    Absent,
    /// The entry is locked.
    Locked,
    /// The copy is dirty, of which the order does not know: there is no such order.
    Written,
    /// Not for the first time.
    Again,
}

/// Whether this is an order to a cache agent that the kernel knows: any other packet passes it, and
/// is not counted.
pub fn concerns(header: &Header) -> bool {
    let kind = matches!(header.kind, Kind::WriteMiss | Kind::WriteShared);
    kind && header.flags.has(Flags::GRANTED)
        && header.status != GlobalStatus::Unshared
        && header.tag.is_under(Contract::Coherent)
}

/// The acknowledgement to the requester: with it the request is executed and the entry is empty, in
/// one step. Or why the packet is left to the node, as it came, with nothing changed.
pub fn answer(view: &KernelView, header: &Header) -> Result<Header, Passed> {
    let serves = |epoch| is_current(header, epoch, |_| view.incarnation);
    if !view.epoch.is_some_and(serves) {
        return Err(Passed::NotOfNow);
    }
    // Who counts invalidations of the switch's entries is the node (§5.2.2).
    let acknowledges = concerns(header)
        && header.flags == Flags::GRANTED
        && header.status == GlobalStatus::Shared
        && header.reason == Reason::None;
    if !acknowledges {
        return Err(Passed::Asks);
    }
    if !view.reaches {
        return Err(Passed::NoWay);
    }
    match view.entry {
        None => Err(Passed::Absent),
        Some(entry) if entry.locked => Err(Passed::Locked),
        Some(entry) if entry.status == LocalStatus::Invalid => Err(Passed::Absent),
        Some(entry) if entry.status == LocalStatus::Modified => Err(Passed::Written),
        Some(_) if view.executed != Executed::New => Err(Passed::Again),
        Some(_) => Ok(header.answer(Kind::Ack, view.me)),
    }
}

/// Whether this is a reader's miss for a cache that has the block.
pub fn concerns_read(header: &Header) -> bool {
    header.kind == Kind::ReadMiss
        && header.flags.has(Flags::GRANTED)
        && header.status != GlobalStatus::Unshared
        && header.tag.is_under(Contract::Coherent)
}

/// Who gets the block's bytes, in this order. With them the request is executed, and the copy
/// clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Given {
    /// The requester.
    pub reader: Header,
    /// The block's home, which does not have what was written here.
    pub home: Option<Header>,
}

/// The block, to whom it goes. Or why the packet is left to the node, as it came, with nothing
/// changed.
pub fn give(view: &KernelView, header: &Header) -> Result<Given, Passed> {
    let serves = |epoch| is_current(header, epoch, |_| view.incarnation);
    if !view.epoch.is_some_and(serves) {
        return Err(Passed::NotOfNow);
    }
    // Of a copy that stays the node counts nothing, whoever has the entry.
    let asked = header.flags.but(Flags::IN_SWITCH) == Flags::GRANTED.and(Flags::PROVIDER);
    if !concerns_read(header) || !asked || header.reason != Reason::None {
        return Err(Passed::Asks);
    }
    // The node's own threads and its own home are reached by no interface.
    let (dirty, home) = (header.status == GlobalStatus::Modified, header.tag.home());
    let reaches_home = view.reaches_home && home.is_own() && !home.is_of(view.me);
    if !view.reaches || header.requester.node == view.me || dirty && !reaches_home {
        return Err(Passed::NoWay);
    }
    match view.entry {
        None => Err(Passed::Absent),
        Some(entry) if entry.locked => Err(Passed::Locked),
        Some(entry) if entry.status == LocalStatus::Invalid => Err(Passed::Absent),
        Some(entry) if entry.status == LocalStatus::Modified && !dirty => Err(Passed::Written),
        Some(_) if view.executed != Executed::New => Err(Passed::Again),
        Some(_) => {
            let (mut reader, mut home) = (*header, *header);
            reader.flags = header.flags.and(Flags::DATA);
            home.flags = reader.flags.but(Flags::GRANTED);
            Ok(Given {
                reader: reader.answer(Kind::Ack, view.me),
                home: dirty.then(|| home.answer(Kind::WriteBack, view.me)),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outputs;
    use crate::flowcc::cache_agent::react;
    use crate::wire::{RequesterId, Seq, Tag};

    fn packet(kind: Kind, flags: Flags, status: GlobalStatus) -> Header {
        let who = RequesterId { node: 1, slot: 3 };
        let mut header = Header::request(kind, 7, Tag(0x1000), who, Seq(9));
        (header.flags, header.status, header.incarnation) = (flags, status, 2);
        header
    }

    fn view() -> KernelView {
        KernelView {
            me: 0,
            epoch: Some(7),
            incarnation: 2,
            entry: Some(KernelEntry {
                status: LocalStatus::Shared,
                locked: false,
            }),
            executed: Executed::New,
            reaches: true,
            reaches_home: true,
        }
    }

    /// The same of a block whose home is elsewhere.
    fn elsewhere(mut header: Header) -> Header {
        header.tag = Tag(2 << 48 | 0x1000);
        header
    }

    const SHARED: GlobalStatus = GlobalStatus::Shared;

    /// Whatever the packet and the entry: what it answers is all that the agent would do.
    #[test]
    fn it_answers_what_the_agent_would() {
        let statuses = [GlobalStatus::Unshared, SHARED, GlobalStatus::Modified];
        let locals = [
            LocalStatus::Invalid,
            LocalStatus::Shared,
            LocalStatus::Modified,
        ];
        let mut answered = 0;
        for &kind in Kind::ALL {
            for flags in 0..=Flags::KNOWN {
                for status in statuses {
                    let header = packet(kind, Flags(flags), status);
                    for local in locals {
                        let entry = view().entry.map(|entry| KernelEntry {
                            status: local,
                            ..entry
                        });
                        let Ok(ack) = answer(&KernelView { entry, ..view() }, &header) else {
                            continue;
                        };
                        answered += 1;
                        let mut outputs = Outputs::default();
                        let done = react(0, &header, local, Executed::New, true, &mut outputs);
                        assert_eq!(done.next, LocalStatus::Invalid);
                        assert!(!done.retain);
                        let sent: alloc::vec::Vec<_> = outputs.iter().collect();
                        assert_eq!(sent.len(), 1);
                        assert_eq!(sent[0].header, ack);
                        assert_eq!(sent[0].to, crate::Dest::Requester(header.requester));
                    }
                }
            }
        }
        assert_eq!(answered, 2);
    }

    /// The same of what it gives, and of whether the entry says then that it was written here.
    #[test]
    fn it_gives_what_the_agent_would() {
        let statuses = [GlobalStatus::Unshared, SHARED, GlobalStatus::Modified];
        let mut given = alloc::vec::Vec::new();
        for &kind in Kind::ALL {
            for (flags, status) in (0..=Flags::KNOWN).flat_map(|f| statuses.map(|s| (f, s))) {
                let header = elsewhere(packet(kind, Flags(flags), status));
                for local in [LocalStatus::Shared, LocalStatus::Modified] {
                    let entry = view().entry.map(|entry| KernelEntry {
                        status: local,
                        ..entry
                    });
                    let Ok(gives) = give(&KernelView { entry, ..view() }, &header) else {
                        continue;
                    };
                    given.push((flags, status, local));
                    let mut outputs = Outputs::default();
                    let done = react(0, &header, local, Executed::New, true, &mut outputs);
                    assert_eq!((done.next, done.retain), (LocalStatus::Shared, false));
                    let sent: alloc::vec::Vec<_> = outputs
                        .iter()
                        .map(|output| (output.to, output.header, output.data))
                        .collect();
                    let to = crate::Dest::Requester(header.requester);
                    let mut wanted = alloc::vec![(to, gives.reader, crate::Data::Cache)];
                    let home = crate::Dest::Home(header.tag.home());
                    wanted.extend(gives.home.map(|to| (home, to, crate::Data::Cache)));
                    assert_eq!(sent, wanted);
                }
            }
        }
        // Of a clean copy, and of one that is dirty or was a moment ago; with a switch or without.
        assert_eq!(given.len(), 2 * 3, "{given:?}");
    }

    #[test]
    fn what_it_cannot_give_passes() {
        let flags = Flags::GRANTED.and(Flags::PROVIDER);
        let dirty = elsewhere(packet(Kind::ReadMiss, flags, GlobalStatus::Modified));
        let clean = packet(Kind::ReadMiss, flags, SHARED);
        let entry = |status| view().entry.map(|entry| KernelEntry { status, ..entry });
        let modified = KernelView {
            entry: entry(LocalStatus::Modified),
            ..view()
        };
        assert!(give(&modified, &dirty).is_ok() && give(&view(), &clean).is_ok());
        let own = Header {
            tag: Tag(0x1000),
            ..dirty
        };
        let kept = Header {
            tag: Tag(40 << 48 | 0x1000),
            ..dirty
        };
        let mine = Header {
            requester: RequesterId { node: 0, slot: 3 },
            ..dirty
        };
        for header in [own, kept, mine] {
            assert_eq!(give(&modified, &header), Err(Passed::NoWay));
        }
        let alone = KernelView {
            reaches_home: false,
            ..modified
        };
        assert_eq!(give(&alone, &dirty), Err(Passed::NoWay));
        assert!(
            give(
                &KernelView {
                    reaches_home: false,
                    ..view()
                },
                &clean
            )
            .is_ok()
        );
        assert_eq!(give(&modified, &clean), Err(Passed::Written));
        let locked = entry(LocalStatus::Shared).map(|entry| KernelEntry {
            locked: true,
            ..entry
        });
        for (view, why) in [
            (
                KernelView {
                    entry: locked,
                    ..view()
                },
                Passed::Locked,
            ),
            (
                KernelView {
                    entry: None,
                    ..view()
                },
                Passed::Absent,
            ),
            (
                KernelView {
                    epoch: Some(8),
                    ..view()
                },
                Passed::NotOfNow,
            ),
            (
                KernelView {
                    executed: Executed::Again,
                    ..view()
                },
                Passed::Again,
            ),
            (
                KernelView {
                    executed: Executed::Old,
                    ..view()
                },
                Passed::Again,
            ),
        ] {
            assert_eq!(give(&view, &clean), Err(why));
        }
        for more in [Flags::GATHER, Flags::DATA] {
            let asks = packet(Kind::ReadMiss, flags.and(more), SHARED);
            assert_eq!(give(&view(), &asks), Err(Passed::Asks), "{more:?}");
        }
    }

    #[test]
    fn what_is_not_for_it_passes() {
        let good = packet(Kind::WriteShared, Flags::GRANTED, SHARED);
        assert!(concerns(&good) && answer(&view(), &good).is_ok());
        let entry = view().entry.unwrap();
        let with = |entry| KernelView {
            entry: Some(entry),
            ..view()
        };
        let locked = KernelEntry {
            locked: true,
            ..entry
        };
        let dirty = KernelEntry {
            status: LocalStatus::Modified,
            ..entry
        };
        let cases = [
            (
                KernelView {
                    reaches: false,
                    ..view()
                },
                Passed::NoWay,
            ),
            (
                KernelView {
                    epoch: None,
                    ..view()
                },
                Passed::NotOfNow,
            ),
            (
                KernelView {
                    epoch: Some(8),
                    ..view()
                },
                Passed::NotOfNow,
            ),
            (
                KernelView {
                    incarnation: 3,
                    ..view()
                },
                Passed::NotOfNow,
            ),
            (
                KernelView {
                    entry: None,
                    ..view()
                },
                Passed::Absent,
            ),
            (with(locked), Passed::Locked),
            (with(dirty), Passed::Written),
            (
                KernelView {
                    executed: Executed::Again,
                    ..view()
                },
                Passed::Again,
            ),
            (
                KernelView {
                    executed: Executed::Old,
                    ..view()
                },
                Passed::Again,
            ),
        ];
        for (view, why) in cases {
            assert_eq!(answer(&view, &good), Err(why));
        }
        for flags in [
            Flags::PROVIDER,
            Flags::GATHER,
            Flags::IN_SWITCH,
            Flags::DATA,
        ] {
            let asks = packet(Kind::WriteMiss, Flags::GRANTED.and(flags), SHARED);
            assert_eq!(answer(&view(), &asks), Err(Passed::Asks), "{flags:?}");
        }
        for kind in [Kind::ReadMiss, Kind::Unlock, Kind::EvictShared] {
            assert!(!concerns(&packet(kind, Flags::GRANTED, SHARED)));
        }
    }
}
