//! The values of the maps as bytes: `switch/xdp/state.h` has the same fields.

use rackmem_proto::abd::GROUPS;
use rackmem_proto::switch::{Counted, LockConfig, SwitchConfig};
use rackmem_wire::{MAX_NODES, NodeId};
use std::net::SocketAddrV4;

/// Ways that a set has room for.
pub const WAYS: usize = 8;
/// Ways that a set of locks has room for.
pub const LOCK_WAYS: usize = 4;
/// Where the groups begin in CONFIG, and how long one is.
const GROUPS_AT: usize = 88;
const GROUP_LEN: usize = 16;
pub(crate) const CONFIG_LEN: usize = GROUPS_AT + GROUP_LEN * GROUPS;
pub(crate) const SET_LEN: usize = 128;
pub(crate) const LOCK_LEN: usize = 32;
pub(crate) const LOCK_SET_LEN: usize = LOCK_LEN * LOCK_WAYS;
pub(crate) const NODE_LEN: usize = 16;
pub(crate) const NODES_LEN: usize = NODE_LEN * MAX_NODES;

const NOBODY: u32 = u32::MAX;

/// Where the switch and the agents are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// The switch's address and port.
    pub switch: SocketAddrV4,
    /// The agents', by node.
    pub agents: Vec<SocketAddrV4>,
}

/// Faults that the program itself makes, each as a probability from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct KernelFaults {
    /// Packets lost as they come.
    pub lose_in: f64,
    /// Packets lost as they leave.
    pub lose_out: f64,
    /// Packets that the control plane sends, which can hold them back and double them.
    pub divert: f64,
}

/// What CONFIG holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub switch: SwitchConfig,
    pub frozen: bool,
    pub address: Option<SocketAddrV4>,
    pub can_multicast: bool,
    pub nonce: u32,
    pub faults: KernelFaults,
    pub locks: LockConfig,
    /// The directory of locks executes nothing while it is not.
    pub serves_locks: bool,
    /// Entries for lines of replicated memory, a power of two.
    pub lines: u32,
    /// Another number whenever a group's row changes.
    pub configs: u32,
    pub groups: [Option<Counted>; GROUPS],
    /// The switch's incarnation: groups that name it let it choose stamps.
    pub life: u32,
}

/// In place of a node where a group has no member.
const NO_MEMBER: u8 = u8::MAX;

/// A group's row; all zeros where nothing is counted.
fn group_bytes(group: Option<&Counted>, life: u32) -> [u8; GROUP_LEN] {
    let mut bytes = [0; GROUP_LEN];
    let Some(group) = group else {
        return bytes;
    };
    let (counting, quorum) = group.counting();
    let chooses = group.chooser() != 0 && group.chooser() == life;
    bytes[..4].copy_from_slice(&group.config().to_ne_bytes());
    bytes[4..8].copy_from_slice(&[counting, quorum, chooses.into(), 1]);
    for (to, node) in bytes[8..].iter_mut().zip(group.nodes()) {
        *to = node.map_or(NO_MEMBER, |node| node as u8);
    }
    bytes
}

impl Config {
    pub fn to_bytes(self) -> [u8; CONFIG_LEN] {
        let config = &self.switch;
        let shadow = config.shadow.map_or(NOBODY, u32::from);
        let (ip, port) = self
            .address
            .map_or((0, 0), |at| (u32::from(*at.ip()), at.port()));
        let mut words = [0u32; CONFIG_LEN / 4];
        // The first word is the lock's.
        words[1] = config.epoch;
        words[2] = config.seed;
        words[3] = (config.sets - 1) as u32;
        words[4] = config.ways.into();
        words[5] = self.frozen.into();
        words[6] = shadow;
        words[7] = config.nodes.into();
        words[8] = config.requesters.into();
        words[9] = ip.to_be();
        words[11] = self.nonce;
        let faults = self.faults;
        let parts = [faults.lose_in, faults.lose_out, faults.divert];
        for (word, part) in words[12..].iter_mut().zip(parts) {
            *word = (part.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        }
        let locks = &self.locks;
        words[15] = locks.epoch;
        words[16] = self.serves_locks.into();
        words[17] = (locks.sets - 1) as u32;
        words[18] = locks.ways.into();
        words[19] = self.lines - 1;
        words[20] = self.configs;
        let mut bytes = [0; CONFIG_LEN];
        for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        bytes[40..42].copy_from_slice(&port.to_be_bytes());
        bytes[42..44].copy_from_slice(&u16::from(self.can_multicast).to_ne_bytes());
        let rows = bytes[GROUPS_AT..].chunks_exact_mut(GROUP_LEN);
        for (row, group) in rows.zip(&self.groups) {
            row.copy_from_slice(&group_bytes(group.as_ref(), self.life));
        }
        bytes
    }
}

/// One set of the entry table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Set {
    pub tag: [u64; WAYS],
    pub copyset: [u32; WAYS],
    pub lock: [u16; WAYS],
    pub status: [u8; WAYS],
}

impl Set {
    pub fn from_bytes(bytes: &[u8; SET_LEN]) -> Self {
        let mut set = Set::default();
        let (tags, rest) = bytes.split_at(8 * WAYS);
        let (copysets, rest) = rest.split_at(4 * WAYS);
        let (locks, rest) = rest.split_at(2 * WAYS);
        set.status.copy_from_slice(&rest[..WAYS]);
        for way in 0..WAYS {
            set.tag[way] = u64::from_ne_bytes(part(tags, way));
            set.copyset[way] = u32::from_ne_bytes(part(copysets, way));
            set.lock[way] = u16::from_ne_bytes(part(locks, way));
        }
        set
    }

    pub fn to_bytes(self) -> [u8; SET_LEN] {
        let mut bytes = [0; SET_LEN];
        let tags = self.tag.iter().flat_map(|tag| tag.to_ne_bytes());
        let copysets = self.copyset.iter().flat_map(|set| set.to_ne_bytes());
        let locks = self.lock.iter().flat_map(|lock| lock.to_ne_bytes());
        let all = tags.chain(copysets).chain(locks).chain(self.status);
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }
}

/// One location of the directory of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slot {
    pub tag: u64,
    pub version: u64,
    pub since: u64,
    /// Holder, keeper, whether it is shared, and the reason.
    pub who: [u8; 4],
    pub sharers: u32,
}

impl Slot {
    fn from_bytes(bytes: &[u8]) -> Self {
        Slot {
            tag: u64::from_ne_bytes(part(bytes, 0)),
            version: u64::from_ne_bytes(part(bytes, 1)),
            since: u64::from_ne_bytes(part(bytes, 2)),
            who: part(bytes, 6),
            sharers: u32::from_ne_bytes(part(bytes, 7)),
        }
    }

    fn to_bytes(self) -> [u8; LOCK_LEN] {
        let words = [self.tag, self.version, self.since];
        let words = words.into_iter().flat_map(u64::to_ne_bytes);
        let all = words.chain(self.who).chain(self.sharers.to_ne_bytes());
        let mut bytes = [0; LOCK_LEN];
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }
}

/// One set of the directory of locks.
pub(crate) type LockSet = [Slot; LOCK_WAYS];

pub(crate) fn lock_set(bytes: &[u8; LOCK_SET_LEN]) -> LockSet {
    std::array::from_fn(|way| Slot::from_bytes(&bytes[way * LOCK_LEN..][..LOCK_LEN]))
}

pub(crate) fn lock_set_bytes(set: &LockSet) -> [u8; LOCK_SET_LEN] {
    let mut bytes = [0; LOCK_SET_LEN];
    for (to, slot) in bytes.chunks_exact_mut(LOCK_LEN).zip(set) {
        to.copy_from_slice(&slot.to_bytes());
    }
    bytes
}

/// The `at`th item of `N` bytes.
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut item = [0; N];
    item.copy_from_slice(&bytes[at * N..][..N]);
    item
}

/// Where a node is, as far as that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub node: NodeId,
    pub agent: SocketAddrV4,
    pub mac: [u8; 6],
    /// Zero while unknown.
    pub ifindex: u32,
}

pub(crate) fn nodes_to_bytes(places: &[Place]) -> [u8; NODES_LEN] {
    let mut bytes = [0; NODES_LEN];
    for place in places {
        let Some(at) = bytes.chunks_exact_mut(NODE_LEN).nth(place.node.into()) else {
            continue;
        };
        at[..4].copy_from_slice(&place.agent.ip().octets());
        at[4..6].copy_from_slice(&place.agent.port().to_be_bytes());
        at[6..12].copy_from_slice(&place.mac);
        at[12..].copy_from_slice(&place.ifindex.to_ne_bytes());
    }
    bytes
}

/// The ports that nodes have been learned to be behind, by node; zero where unknown.
pub(crate) fn ports_of(bytes: &[u8; NODES_LEN]) -> Vec<u32> {
    let nodes = bytes.chunks_exact(NODE_LEN);
    nodes
        .map(|node| u32::from_ne_bytes(part(&node[12..], 0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::abd::Member;

    #[test]
    fn a_set_comes_back_from_its_bytes() {
        let mut set = Set::default();
        for way in 0..WAYS {
            set.tag[way] = u64::MAX - way as u64;
            set.copyset[way] = 0x8000_0000 + way as u32;
            set.lock[way] = 0x7ff0 + way as u16;
            set.status[way] = way as u8;
        }
        assert_eq!(Set::from_bytes(&set.to_bytes()), set);
    }

    #[test]
    fn a_set_of_locks_comes_back_from_its_bytes() {
        let set = std::array::from_fn(|way| Slot {
            tag: u64::MAX - way as u64,
            version: 1 << 40 | way as u64,
            since: 3 << 40,
            who: [way as u8, 31, 1, 9],
            sharers: 0x8000_0000 + way as u32,
        });
        assert_eq!(lock_set(&lock_set_bytes(&set)), set);
    }

    #[test]
    fn the_configuration_is_where_the_program_looks() {
        let members = [2, 31, 0].map(|node| Member { node, life: 1 });
        let mut first = rackmem_proto::abd::Config::first(&members).unwrap();
        (first.number, first.chooser) = (9, 6);
        let group = Counted::new(&first);
        let config = Config {
            switch: SwitchConfig {
                epoch: 7,
                sets: 64,
                shadow: None,
                ..SwitchConfig::default()
            },
            frozen: true,
            address: Some("10.0.0.254:7400".parse().unwrap()),
            can_multicast: true,
            nonce: 9,
            faults: KernelFaults {
                divert: 1.0,
                ..KernelFaults::default()
            },
            locks: LockConfig {
                epoch: 8,
                ways: 2,
                sets: 16,
            },
            serves_locks: true,
            lines: 64,
            configs: 3,
            groups: std::array::from_fn(|at| (at == 1).then_some(group)),
            life: 6,
        };
        let bytes = config.to_bytes();
        let word = |at: usize| u32::from_ne_bytes(part(&bytes, at));
        assert_eq!((word(0), word(1), word(3), word(5)), (0, 7, 63, 1));
        assert_eq!((word(6), word(14)), (NOBODY, u32::MAX));
        assert_eq!((word(15), word(16), word(17), word(18)), (8, 1, 15, 2));
        assert_eq!(bytes[36..42], [10, 0, 0, 254, 0x1c, 0xe8]);
        assert_eq!((word(19), word(20), word(22), word(26)), (63, 3, 0, 9));
        let row = [7, 2, 1, 1, 2, 31, 0, 255, 255, 255, 255, 255];
        assert_eq!(bytes[GROUPS_AT + 20..GROUPS_AT + 32], row);
    }
}
