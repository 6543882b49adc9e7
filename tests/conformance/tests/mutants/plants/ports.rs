//! Multicasts: several receivers behind one port, and as many as a rack may have.

use super::*;
use rackmem_conformance::Setup;
use rackmem_proto::wire::{MAX_NODES, NodeId};
use std::collections::BTreeSet;

const LAST: NodeId = MAX_NODES as NodeId - 1;

fn by_port(name: &str, change: impl Fn(&Setup, &mut Sent) + 'static) -> Plant {
    let hook = Hook::Ports(Rc::new(change));
    let name = name.into();
    Plant { name, hook }
}

fn receiver(port: Port) -> Option<NodeId> {
    match port {
        Port::Agent(node) => Some(node),
        Port::Requester { .. } => None,
    }
}

pub fn ports() -> Vec<Plant> {
    vec![
        by_port(
            "a port makes one copy for all receivers behind it",
            |setup, sent| {
                let mut ports = BTreeSet::new();
                sent.retain(|(port, _)| {
                    receiver(*port).is_none_or(|node| ports.insert(setup.port_of(node)))
                });
            },
        ),
        by_port(
            "a port's copy goes to the first node behind it",
            |setup, sent| {
                if sent.len() < 2 {
                    return;
                }
                for (port, _) in sent {
                    if let Some(node) = receiver(*port) {
                        *port = Port::Agent(setup.port_of(node));
                    }
                }
            },
        ),
        by_port(
            "receivers that share a port are told of no provider",
            |setup, sent| {
                let nodes = || sent.iter().filter_map(|(port, _)| receiver(*port));
                let ports: BTreeSet<_> = nodes().map(|node| setup.port_of(node)).collect();
                if ports.len() < nodes().count() {
                    for (_, header) in sent {
                        header.flags = header.flags.but(Flags::PROVIDER);
                    }
                }
            },
        ),
        by_port("provider 31 is not told that it is it", |_, sent| {
            for (port, header) in sent {
                if receiver(*port) == Some(LAST) {
                    header.flags = header.flags.but(Flags::PROVIDER);
                }
            }
        }),
        by_port("a provider's number is cut to four bits", |_, sent| {
            let provides = |header: &Header| header.flags.has(Flags::PROVIDER);
            let provider = sent.iter().find(|(_, header)| provides(header));
            let provider = provider.and_then(|(port, _)| receiver(*port));
            let several = sent.len() > 1;
            for (port, header) in sent {
                if let (Some(provider), Some(node), true) = (provider, receiver(*port), several) {
                    header.flags = match node == provider % 16 {
                        true => header.flags.and(Flags::PROVIDER),
                        false => header.flags.but(Flags::PROVIDER),
                    };
                }
            }
        }),
        by_port("node 31 gets no copy", |_, sent| {
            let several = sent.len() > 1;
            sent.retain(|(port, _)| !several || receiver(*port) != Some(LAST));
        }),
        by_port("a multicast has 31 copies at most", |_, sent| {
            sent.truncate(MAX_NODES - 1);
        }),
    ]
}
