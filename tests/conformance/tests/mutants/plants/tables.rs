//! The paper's tables, and what leaves.

use super::*;
use rackmem_proto::flowcc::tables::{CHECK, FORWARD};
use rackmem_proto::wire::Reason;

/// A row each of the two tables.
pub fn tables() -> Vec<Plant> {
    let mut plants = Vec::new();
    for (kind, _) in CHECK {
        let name = format!("{} is never valid", kind.name());
        plants.push(after(&name, move |_, _, asked, sent| {
            if asked.kind == kind && sent.iter().any(|(_, h)| h.flags.has(Flags::GRANTED)) {
                sent.truncate(1);
                sent[0].1 = asked.refuse(Kind::Ack, u16::MAX, Reason::Invalid);
            }
        }));
    }
    for (kind, _) in CHECK.iter().take(5).copied() {
        let name = format!("{} is always valid", kind.name());
        plants.push(after(&name, move |_, _, asked, sent| {
            for (_, header) in sent.iter_mut() {
                if asked.kind == kind && header.reason == Reason::Invalid {
                    header.reason = Reason::None;
                    header.flags = header.flags.and(Flags::GRANTED);
                }
            }
        }));
    }
    for (kind, status, to) in FORWARD {
        let name = format!("{} of {status:?} does not go to {to:?}", kind.name());
        plants.push(after(&name, move |_, _, asked, sent| {
            let granted = |h: &Header| h.flags.has(Flags::GRANTED) && h.status == status;
            if asked.kind == kind && sent.iter().any(|(_, h)| granted(h)) {
                sent.pop();
            }
        }));
    }
    plants
}

/// What is written into packets.
pub fn packets() -> Vec<Plant> {
    vec![
        after("sender is not the switch", |_, _, asked, sent| {
            for (_, header) in sent {
                header.sender = asked.sender;
            }
        }),
        granted("the status is not filled in", |asked, header| {
            header.status = asked.status;
        }),
        granted("the copyset is not filled in", |asked, header| {
            header.copyset = asked.copyset;
        }),
        granted("IN_SWITCH is not set", |_, header| {
            header.flags = header.flags.but(Flags::IN_SWITCH);
        }),
        granted("every copy is the provider's", |_, header| {
            header.flags = header.flags.and(Flags::PROVIDER);
        }),
        granted("no copy is the provider's", |_, header| {
            header.flags = header.flags.but(Flags::PROVIDER);
        }),
        granted("flags that it does not know are cleared", |_, header| {
            header.flags = header.flags.but(Flags::GATHER);
        }),
        after("the incarnation is lost", |_, _, _, sent| {
            for (_, header) in sent {
                header.incarnation = 1;
            }
        }),
        after("the heat is lost", |_, _, _, sent| {
            for (_, header) in sent {
                header.offset = 0;
            }
        }),
        after("locked and invalid are the same", |_, _, _, sent| {
            for (_, header) in sent {
                if header.reason == Reason::Invalid {
                    header.reason = Reason::Locked;
                }
            }
        }),
        after("the requester is among the others", |_, _, asked, sent| {
            let first = sent.first().copied();
            if let Some((Port::Agent(_), header)) = first
                && asked.kind == Kind::WriteShared
                && header.flags.has(Flags::GRANTED)
            {
                sent.push((Port::Agent(asked.requester.node), header));
            }
        }),
        after(
            "a multicast leaves out its last copy",
            |_, _, asked, sent| {
                if sent.len() > 1 && asked.kind.is_request() {
                    sent.pop();
                }
            },
        ),
        after("an answer goes to the agent", |_, _, _, sent| {
            for (port, _) in sent {
                if let Port::Requester { node, .. } = *port {
                    *port = Port::Agent(node);
                }
            }
        }),
        after("what is stale is passed on", |_, _, asked, sent| {
            if asked.kind.is_request() && sent.is_empty() {
                sent.push((Port::Agent(asked.tag.home().0), *asked));
            }
        }),
        after("the lowest member always provides", |_, _, asked, sent| {
            let lowest = |header: &Header| header.copyset.iter().next();
            if let [(port, header)] = &mut sent[..]
                && asked.kind == Kind::ReadMiss
                && header.flags.has(Flags::PROVIDER)
                && let Some(node) = lowest(header)
            {
                *port = Port::Agent(node);
            }
        }),
    ]
}
