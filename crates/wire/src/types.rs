//! The words of the protocols: tags, copysets, statuses, sequence numbers.

use crate::{MAX_HOMES, MAX_NODES, MAX_REQUESTERS};

/// A node of the rack, `0..MAX_NODES`.
pub type NodeId = u16;

/// Under which promise memory is shared. It is part of every address,
/// so that whoever is given one knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Contract {
    /// Loads and stores of bytes, coherent and linearizable: FlowCC.
    #[default]
    Coherent = 0,
    /// What a lock protects is seen inside the lock only: GCP.
    Locked = 1,
    /// Whole objects are read and written atomically.
    Object = 2,
    /// What is read is at most so old.
    Bounded = 3,
    /// Several nodes keep it, and a majority of them is enough.
    Replicated = 4,
}

impl Contract {
    /// Every contract there is.
    pub const ALL: [Contract; 5] = [
        Contract::Coherent,
        Contract::Locked,
        Contract::Object,
        Contract::Bounded,
        Contract::Replicated,
    ];

    /// From its number.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Contract::Coherent),
            1 => Some(Contract::Locked),
            2 => Some(Contract::Object),
            3 => Some(Contract::Bounded),
            4 => Some(Contract::Replicated),
            _ => None,
        }
    }

    /// Its name in messages and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Contract::Coherent => "coherent",
            Contract::Locked => "locked",
            Contract::Object => "object",
            Contract::Bounded => "bounded",
            Contract::Replicated => "replicated",
        }
    }
}

impl core::fmt::Display for Contract {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// Whose memory an address is in: 0 to 31 are the nodes' own memories, each named like its node,
/// and what follows is for memory that several nodes keep. It is a name and not a place: which node
/// serves a home now, the rack's view says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct HomeId(pub u16);

impl HomeId {
    /// The node's own memory.
    #[inline]
    pub const fn of(node: NodeId) -> Self {
        HomeId(node)
    }

    /// Whether it is this node's own memory.
    #[inline]
    pub const fn is_of(self, node: NodeId) -> bool {
        self.is_own() && self.0 == node
    }

    /// Whether it is some node's own memory.
    #[inline]
    pub const fn is_own(self) -> bool {
        (self.0 as usize) < MAX_NODES
    }

    /// The home whose blocks are lines of this group of replicated memory.
    #[inline]
    pub const fn of_group(group: u16) -> Self {
        HomeId(MAX_NODES as u16 + group)
    }

    /// The group whose lines the blocks of this home are, if it is no node's own memory.
    #[inline]
    pub const fn group(self) -> Option<u16> {
        match self.is_own() || self.0 as usize >= MAX_HOMES {
            true => None,
            false => Some(self.0 - MAX_NODES as u16),
        }
    }

    /// Whether a rack can have such a home. Packets about others are not decoded.
    #[inline]
    pub const fn can_be(self) -> bool {
        (self.0 as usize) < MAX_HOMES
    }

    /// Whether it is the own memory of one of these nodes, and so is gone when they are.
    #[inline]
    pub const fn dies_with(self, nodes: Copyset) -> bool {
        nodes.contains(self.0)
    }

    /// Whether it is there when of all nodes these live.
    #[inline]
    pub const fn lives_with(self, nodes: Copyset) -> bool {
        !self.is_own() || nodes.contains(self.0)
    }

    /// The address where its coherent memory begins.
    #[inline]
    pub const fn start(self) -> Tag {
        Tag((self.0 as u64) << 48)
    }
}

impl core::fmt::Display for HomeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// What names a block: its global address `home:16 | contract:3 | offset:45`, whose low
/// `log2(block size)` bits are zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tag(pub u64);

impl Tag {
    /// Whose memory backs the block.
    #[inline]
    pub const fn home(self) -> HomeId {
        HomeId((self.0 >> 48) as u16)
    }

    /// Bits of an offset.
    pub const OFFSET_BITS: u32 = 45;
    /// Bytes that a home's memory under one contract has at most, over all its incarnations.
    pub const SPACE: u64 = 1 << Self::OFFSET_BITS;

    /// Where the block begins in its home's memory under its contract, in bytes.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.0 & (Self::SPACE - 1)
    }

    /// Under which contract this memory is shared; none under a number that no contract has.
    #[inline]
    pub const fn contract(self) -> Option<Contract> {
        Contract::from_byte((self.0 >> Self::OFFSET_BITS & 7) as u8)
    }

    /// Whether this memory is shared under that contract.
    #[inline]
    pub const fn is_under(self, contract: Contract) -> bool {
        self.0 >> Self::OFFSET_BITS & 7 == contract as u64
    }

    /// The same home and offset under another contract.
    #[inline]
    #[must_use]
    pub const fn under(self, contract: Contract) -> Self {
        Tag(self.0 & !(7 << Self::OFFSET_BITS) | (contract as u64) << Self::OFFSET_BITS)
    }
}

/// One requester of the rack: a node and a slot within it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RequesterId {
    /// The node it runs on.
    pub node: NodeId,
    /// Which of the node's requesters, `0..MAX_REQUESTERS`.
    pub slot: u16,
}

impl RequesterId {
    /// How many requesters a rack can have, and so the length of a table with a row for each.
    pub const COUNT: usize = MAX_NODES * MAX_REQUESTERS;

    /// The row of this requester in such a table.
    #[inline]
    pub const fn index(self) -> usize {
        (self.node as usize % MAX_NODES) * MAX_REQUESTERS + self.slot as usize % MAX_REQUESTERS
    }
}

/// Set of nodes that hold a copy of a block: bit *n* for node *n*.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Copyset(pub u32);

impl Copyset {
    /// No node.
    pub const EMPTY: Copyset = Copyset(0);

    /// Just this node.
    #[inline]
    pub const fn of(node: NodeId) -> Self {
        Copyset(1 << (node as u32 % MAX_NODES as u32))
    }

    /// Whether the node is in the set.
    #[inline]
    pub const fn contains(self, node: NodeId) -> bool {
        (node as usize) < MAX_NODES && self.0 & Self::of(node).0 != 0
    }

    /// The set and this node.
    #[inline]
    pub const fn with(self, node: NodeId) -> Self {
        Copyset(self.0 | Self::of(node).0)
    }

    /// The set without this node.
    #[inline]
    pub const fn without(self, node: NodeId) -> Self {
        Copyset(self.0 & !Self::of(node).0)
    }

    /// Both sets.
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Copyset(self.0 | other.0)
    }

    /// Whether all of `other` is in the set.
    #[inline]
    pub const fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many nodes are in the set.
    #[inline]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The members, lowest first.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            (rest != 0).then(|| {
                let node = rest.trailing_zeros() as NodeId;
                rest &= rest - 1;
                node
            })
        })
    }

    /// The lowest member that is not below `from`, or the lowest of all if there is none;
    /// none of an empty set.
    #[inline]
    pub const fn first_from(self, from: NodeId) -> Option<NodeId> {
        let upper = self.0 & (!0 << (from as u32 % MAX_NODES as u32));
        let candidates = if upper == 0 { self.0 } else { upper };
        if candidates == 0 {
            None
        } else {
            Some(candidates.trailing_zeros() as NodeId)
        }
    }
}

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dest {
    /// The switch program.
    Switch,
    /// The home and cache agent of a node.
    Agent(NodeId),
    /// The home agent of this memory, on whichever node that is now.
    /// Who sends the packet looks it up in the rack's view: no network has an address for it.
    Home(HomeId),
    /// The agents of several nodes: one packet that the network multiplies.
    /// The provider's copy carries
    /// [`crate::Flags::PROVIDER`].
    Agents {
        /// To whom.
        nodes: Copyset,
        /// Which of them provides the data, if any does.
        provider: Option<NodeId>,
    },
    /// An application thread.
    Requester(RequesterId),
}

impl Dest {
    /// The same with a node in the place of a home, by the view's word on who serves it;
    /// none if no node does.
    #[inline]
    pub fn hosted(self, host: impl FnOnce(HomeId) -> Option<NodeId>) -> Option<Dest> {
        match self {
            Dest::Home(home) => host(home).map(Dest::Agent),
            other => Some(other),
        }
    }
}

/// A directory entry's global status (paper §4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum GlobalStatus {
    /// No cache holds the block; its home's memory is current.
    #[default]
    Unshared = 0,
    /// Caches in the copyset hold it with read permission; its home's memory is current.
    Shared = 1,
    /// The one cache in the copyset holds it with write permission; its home's memory is stale.
    Modified = 2,
}

impl GlobalStatus {
    /// From its byte on the wire.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Unshared),
            1 => Some(Self::Shared),
            2 => Some(Self::Modified),
            _ => None,
        }
    }
}

/// Why an acknowledgement says no.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Reason {
    /// It does not: the request was granted or executed.
    #[default]
    None = 0,
    /// The entry is locked by a conflicting coherence event: back off and try again.
    Locked = 1,
    /// The check table refused: the requester's view of its own cache is out of date.
    Invalid = 2,
    /// The entry's owner has changed: try again.
    Moved = 3,
    /// The home has no memory at this address.
    NoMemory = 4,
    /// The home has no room for what was asked.
    Full = 5,
    /// The receiver does not do this kind of request, or the request contradicts itself.
    Refused = 6,
    /// The block's last content died with a node.
    Lost = 7,
    /// The rack has gone on to another epoch: the event never happened, try again.
    Fenced = 8,
    /// The lock's holder died: what it protects is as of the last hand-over before.
    OwnerDied = 9,
    /// The object has changed while it was copied: try again.
    Torn = 10,
    /// The object has been freed, and its memory may be another's.
    Gone = 11,
    /// The object still has the version that the requester knows.
    NotModified = 12,
}

impl Reason {
    /// From its byte on the wire.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Locked),
            2 => Some(Self::Invalid),
            3 => Some(Self::Moved),
            4 => Some(Self::NoMemory),
            5 => Some(Self::Full),
            6 => Some(Self::Refused),
            7 => Some(Self::Lost),
            8 => Some(Self::Fenced),
            9 => Some(Self::OwnerDied),
            10 => Some(Self::Torn),
            11 => Some(Self::Gone),
            12 => Some(Self::NotModified),
            _ => None,
        }
    }
}

/// A requester's sequence number: one per coherence event, in increasing order, and none comes
/// twice. (A million events a second take half a million years to use them up.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// The number after this one.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Seq(self.0.wrapping_add(1))
    }

    /// Which of a requester's two scores belongs to this event (paper §5.3.2).
    #[inline]
    pub const fn parity(self) -> usize {
        (self.0 & 1) as usize
    }

    /// The half that a switch's register has room for.
    #[inline]
    pub const fn low(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copyset_is_a_set_of_nodes() {
        let set = Copyset::of(0).with(5).with(31);
        assert_eq!(set.len(), 3);
        assert!(set.iter().eq([0, 5, 31]));
        assert!(set.contains(31) && !set.contains(30) && !set.contains(32));
        assert_eq!(set.without(5), Copyset::of(0).with(31));
        let from = [0, 1, 5, 6, 31].map(|from| set.first_from(from));
        assert_eq!(from, [0, 5, 5, 31, 31].map(Some));
        assert_eq!(set.without(31).first_from(6), Some(0));
        assert_eq!(Copyset::EMPTY.first_from(3), None);
    }

    #[test]
    fn an_address_names_its_home() {
        let tag = Tag(0x0003_0000_0000_1000);
        assert_eq!((tag.home(), tag.offset()), (HomeId::of(3), 0x1000));
        assert_eq!(tag.contract(), Some(Contract::Coherent));
    }

    #[test]
    fn a_home_is_a_name_and_no_node() {
        let group = Tag(40 << 48 | 0x1000).home();
        assert_eq!((group, group.is_own()), (HomeId(40), false));
        assert!(!group.is_of(40) && !group.dies_with(Copyset(!0)));
        assert!(group.lives_with(Copyset::EMPTY));
        let own = HomeId::of(31);
        assert!(own.is_own() && own.is_of(31) && !own.is_of(30));
        assert!(own.dies_with(Copyset::of(31)) && !own.dies_with(Copyset::of(30)));
        assert!(own.lives_with(Copyset::of(31)) && !own.lives_with(Copyset::of(30)));
        assert_eq!((own.start().home(), own.start().offset()), (own, 0));
        let host = |home: HomeId| (home == group).then_some(7);
        assert_eq!(Dest::Home(group).hosted(host), Some(Dest::Agent(7)));
        assert_eq!(Dest::Home(own).hosted(host), None);
        assert_eq!(Dest::Switch.hosted(host), Some(Dest::Switch));
    }

    #[test]
    fn an_address_names_its_contract() {
        let tag = Tag(31 << 48 | (Tag::SPACE - 16));
        for contract in Contract::ALL {
            assert_eq!(Contract::from_byte(contract as u8), Some(contract));
            let under = tag.under(contract);
            assert_eq!(under.contract(), Some(contract));
            assert_eq!(
                (under.home(), under.offset()),
                (HomeId::of(31), tag.offset())
            );
            assert_eq!(
                under.is_under(Contract::Locked),
                contract == Contract::Locked
            );
            assert_eq!(under.under(Contract::Coherent), tag);
        }
        assert_eq!(Tag(7 << Tag::OFFSET_BITS).contract(), None);
    }
}
