//! Who is behind which port, and how many: several nodes behind one port,
//! and a rack as large as racks are.

use super::build::{
    Scenario, acquire, add, any, ask, block, count, lock, place, release, set, unlock, who,
};
use rackmem_proto::switch::provider;
use rackmem_proto::wire::GlobalStatus::{Modified, Shared, Unshared};
use rackmem_proto::wire::Kind::{EvictShared, ReadMiss, WriteMiss, WriteShared};
use rackmem_proto::wire::{Copyset, MAX_NODES, NodeId, RequesterId};

pub fn all() -> Vec<Scenario> {
    let mut scenarios = shared_ports();
    scenarios.extend(large_racks());
    scenarios
}

/// Node `n` is behind port `n % 2`.
fn on_two_ports(nodes: u16, name: &str, about: &str) -> Scenario {
    Scenario::new(name, about).setup(|setup| {
        setup.nodes = nodes;
        setup.ports = Some(2);
        setup.shadow = None;
    })
}

/// The lowest number with which this requester's event goes to this provider,
/// if these have the block.
fn number_for(requester: RequesterId, wanted: NodeId, members: Copyset) -> u64 {
    let provided_by = |seq: &u64| {
        let event = ask(ReadMiss, requester, *seq, any());
        provider(&event, members, 0) == Some(wanted)
    };
    (1..).find(provided_by).unwrap_or_default()
}

fn shared_ports() -> Vec<Scenario> {
    let of_2 = number_for(who(1, 0), 2, set(&[0, 2]));
    let lock = lock(1, 1, 0);
    vec![
        on_two_ports(
            3,
            "all-receivers-behind-one-port",
            "Both members are behind one port: each gets its copy, and one of these is the provider's",
        )
        .owns(any(), Shared, &[0, 2])
        .packet(ask(WriteMiss, who(1, 0), of_2, any()))
        .packet(unlock(who(1, 0), of_2, any(), Modified, &[1]))
        .packet(ask(ReadMiss, who(0, 0), 1, any())),
        on_two_ports(
            3,
            "receivers-behind-two-ports",
            "A port with two nodes behind it makes a copy for the receiver alone, whichever of the two it is",
        )
        .owns(any(), Shared, &[0, 1, 2])
        .packet(ask(WriteShared, who(0, 0), 1, any()))
        .packet(unlock(who(0, 0), 1, any(), Shared, &[0, 1, 2]))
        .packet(ask(WriteShared, who(2, 0), 1, any())),
        on_two_ports(
            3,
            "a-single-receiver-behind-a-shared-port",
            "A packet to one node needs no copies, whoever else is behind its port",
        )
        .owns(any(), Shared, &[2])
        .packet(ask(ReadMiss, who(0, 0), 1, any()))
        .packet(ask(EvictShared, who(2, 0), 1, any())),
        on_two_ports(
            4,
            "three-receivers-two-of-them-behind-one-port",
            "The copies of one multicast leave by different ports, two of them by the same",
        )
        .owns(any(), Shared, &[0, 2, 3])
        .packet(ask(WriteMiss, who(1, 0), of_2, any()))
        .packet(unlock(who(1, 0), of_2, any(), Shared, &[0, 1, 2]))
        .packet(ask(WriteMiss, who(3, 0), 1, any())),
        on_two_ports(
            3,
            "home-and-shadow-behind-one-port",
            "The answer to a move goes to the home and to the shadow, each by its own copy",
        )
        .setup(|setup| setup.shadow = Some(0))
        .packet(add(block(2, 2, 0), 0, 1, Unshared, &[])),
        on_two_ports(
            3,
            "reader-and-keeper-behind-one-port",
            "A Grant to a reader and to the keeper of the data, who are behind one port: the keeper's copy has the flag",
        )
        .first(place(lock, (1, 2), Shared, &[], count(5)))
        .packet(acquire(0, Shared, lock))
        .packet(acquire(2, Shared, lock))
        .packet(acquire(1, Modified, lock))
        .packet(acquire(0, Modified, lock))
        .packet(release((1, 0), Modified, &[], lock, count(9))),
    ]
}

const LAST: NodeId = MAX_NODES as NodeId - 1;

fn in_a_large_rack(name: &str, about: &str) -> Scenario {
    Scenario::new(name, about).setup(|setup| {
        setup.nodes = MAX_NODES as u16;
        setup.shadow = None;
    })
}

fn all_nodes() -> Vec<NodeId> {
    (0..=LAST).collect()
}

fn large_racks() -> Vec<Scenario> {
    let others = |node: NodeId| -> Vec<NodeId> { (0..=LAST).filter(|n| *n != node).collect() };
    let lock = lock(LAST, 1, 0);
    let (zero, last) = (who(0, 0), who(LAST, 1));
    let every = Copyset(u32::MAX);
    let number_for = |requester, wanted| number_for(requester, wanted, every);
    let of_31 = number_for(zero, LAST);
    vec![
        in_a_large_rack(
            "provider-31-of-32",
            "Thirty-one members hear of a write miss, and the last of them provides",
        )
        .owns(any(), Shared, &others(0))
        .packet(ask(WriteMiss, zero, of_31, any())),
        in_a_large_rack(
            "provider-31-reads",
            "A read miss that the last node answers, alone",
        )
        .owns(any(), Shared, &others(0))
        .packet(ask(ReadMiss, zero, of_31, any())),
        in_a_large_rack(
            "behind-31-comes-0",
            "The place is the last node's, which has no copy: the search goes on at the lowest",
        )
        .owns(any(), Shared, &[0, 5, 30])
        .packet(ask(ReadMiss, last, number_for(last, LAST), any())),
        in_a_large_rack(
            "provider-0-of-32",
            "The first node provides, and the last one gets a copy without the flag",
        )
        .owns(any(), Shared, &others(1))
        .packet(ask(WriteMiss, who(1, 0), number_for(who(1, 0), 0), any())),
        in_a_large_rack(
            "the-31-others",
            "The last node upgrades its copy: all nodes below it make way",
        )
        .owns(any(), Shared, &all_nodes())
        .packet(ask(WriteShared, last, 1, any()))
        .packet(unlock(last, 1, any(), Modified, &[LAST]))
        .packet(ask(ReadMiss, zero, 1, any())),
        in_a_large_rack(
            "home-31",
            "A block of the last node: its home hears of misses, and has it moved there and told the shadow",
        )
        .setup(|setup| setup.shadow = Some(LAST - 1))
        .packet(ask(ReadMiss, zero, 1, block(LAST, 2, 0)))
        .packet(add(block(LAST, 2, 0), 63, 1, Unshared, &[]))
        .packet(ask(WriteMiss, zero, 2, block(LAST, 2, 0))),
        in_a_large_rack(
            "a-lock-of-32-readers",
            "All nodes read under a lock whose data the last one has; a writer sends each of them away",
        )
        .first(place(lock, (LAST, LAST), Shared, &others(0), count(5)))
        .packet(acquire(0, Shared, lock))
        .packet(acquire(LAST - 1, Modified, lock))
        .packet(acquire(LAST, Modified, lock))
        .packet(release((LAST - 1, LAST), Modified, &[], lock, count(8)))
        .packet(acquire(0, Modified, lock)),
        in_a_large_rack(
            "two-of-32-behind-one-port",
            "Nodes 15 and 31 are behind one port of sixteen, and both are members",
        )
        .setup(|setup| setup.ports = Some(16))
        .owns(any(), Shared, &[3, 15, LAST])
        .packet(ask(WriteMiss, zero, of_31, any()))
        .packet(unlock(zero, of_31, any(), Shared, &[3, 14, LAST]))
        .packet(ask(WriteMiss, who(1, 0), number_for(who(1, 0), LAST), any())),
    ]
}
