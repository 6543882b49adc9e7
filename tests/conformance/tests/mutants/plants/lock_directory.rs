//! The directory of locks.

use super::*;
use rackmem_proto::gcp::{Entry, version, with_version};
use rackmem_proto::switch::LockProgram;
use rackmem_proto::wire::{Copyset, GlobalStatus, NodeId, Reason, Tag};

fn before_lock(
    name: &str,
    change: impl Fn(&mut LockProgram, &mut Header) -> bool + 'static,
) -> Plant {
    let hook = Hook::BeforeLock(Rc::new(change));
    let name = name.into();
    Plant { name, hook }
}

fn after_lock(
    name: &str,
    change: impl Fn(&LockProgram, &mut LockProgram, &Header, &mut Sent) + 'static,
) -> Plant {
    let hook = Hook::AfterLock(Rc::new(change));
    let name = name.into();
    Plant { name, hook }
}

/// A register of a lock's entry, or zero where the lock is not.
fn of_lock(program: &LockProgram, tag: Tag, field: Field) -> Register {
    let registers = program.registers();
    let tagged = |r: &&Register| r.field == Field::LockTag && r.value == tag.0 | 1;
    let (way, at) = (registers.iter().find(tagged)).map_or((0, 0), |found| (found.way, found.at));
    let here = |r: &&Register| (r.field, r.way, r.at) == (field, way, at);
    let value = registers.iter().find(here).map_or(0, |found| found.value);
    Register {
        field,
        way,
        at,
        value,
    }
}

/// After a packet of a kind some bits of an entry's register are what they were.
fn keeps(name: &str, kind: Kind, field: Field, bits: u64) -> Plant {
    after_lock(name, move |was, is, asked, _| {
        if asked.kind == kind && was.entry(asked.tag).is_some() {
            let (old, new) = (
                of_lock(was, asked.tag, field),
                of_lock(is, asked.tag, field),
            );
            let value = old.value & bits | new.value & !bits;
            is.set_register(Register { value, ..new });
        }
    })
}

/// Every packet of a kind that leaves has something done to it.
fn sends(
    name: &str,
    kind: Kind,
    change: impl Fn(&LockProgram, &Header, &mut Header) + 'static,
) -> Plant {
    after_lock(name, move |_, is, asked, sent| {
        let leaving = sent.iter_mut().map(|(_, header)| header);
        leaving
            .filter(|header| header.kind == kind)
            .for_each(|header| change(is, asked, header));
    })
}

/// A node gets no copy.
fn untold(name: &str, kind: Kind, whom: impl Fn(&Entry, &Header) -> NodeId + 'static) -> Plant {
    after_lock(name, move |_, is, asked, sent| {
        if let Some(entry) = is.entry(asked.tag) {
            let whom = Port::Agent(whom(&entry, asked));
            sent.retain(|(port, header)| header.kind != kind || *port != whom);
        }
    })
}

const ALL: u64 = u64::MAX;
const HIGH: u64 = 0xffff_ffff_0000_0000;

pub fn requests() -> Vec<Plant> {
    let number = |bits: u64| {
        move |program: &mut LockProgram, header: &mut Header| {
            if header.kind == Kind::Release
                && let Some(entry) = program.entry(header.tag)
            {
                let number = version(header) & !bits | entry.state.version & bits;
                *header = with_version(*header, number);
            }
            true
        }
    };
    vec![
        keeps(
            "an Acquire has no number",
            Kind::Acquire,
            Field::LockVersion,
            ALL,
        ),
        keeps(
            "a Release has no number",
            Kind::Release,
            Field::LockVersion,
            ALL,
        ),
        keeps(
            "a request does not carry",
            Kind::Acquire,
            Field::LockVersion,
            HIGH,
        ),
        keeps(
            "a release does not carry",
            Kind::Release,
            Field::LockVersion,
            HIGH,
        ),
        keeps(
            "a writer's tenure does not begin",
            Kind::Acquire,
            Field::LockSince,
            ALL,
        ),
        keeps(
            "the next holder's tenure does not begin",
            Kind::Release,
            Field::LockSince,
            ALL,
        ),
        keeps(
            "the upper half of a tenure stays",
            Kind::Release,
            Field::LockSince,
            HIGH,
        ),
        keeps(
            "a writer does not become the holder",
            Kind::Acquire,
            Field::LockWho,
            0xff,
        ),
        keeps(
            "a writer leaves the mode",
            Kind::Acquire,
            Field::LockWho,
            0xff_0000,
        ),
        keeps("the keeper stays", Kind::Release, Field::LockWho, 0xff00),
        keeps("the holder stays", Kind::Release, Field::LockWho, 0xff),
        keeps(
            "a release leaves the mode",
            Kind::Release,
            Field::LockWho,
            0xff_0000,
        ),
        keeps(
            "a release's reason is forgotten",
            Kind::Release,
            Field::LockWho,
            0xff00_0000,
        ),
        keeps(
            "a reader does not join",
            Kind::Acquire,
            Field::LockSharers,
            ALL,
        ),
        after_lock("a release adds to the sharers", |was, is, asked, _| {
            if let Some(entry) = was.entry(asked.tag)
                && asked.kind == Kind::Release
            {
                let new = of_lock(is, asked.tag, Field::LockSharers);
                let value = new.value | u64::from(entry.sharers.0);
                is.set_register(Register { value, ..new });
            }
        }),
        before_lock("anybody may release", |program, header| {
            if let Some(entry) = program.entry(header.tag) {
                header.sender = entry.state.holder.into();
            }
            true
        }),
        before_lock("the upper half of a number is not looked at", number(HIGH)),
        before_lock("the lower half of a number is not looked at", number(!HIGH)),
        before_lock(
            "a release of an earlier tenure is refused",
            |program, header| {
                let entry = program.entry(header.tag);
                if let Some(Entry { state, .. }) = entry.filter(|_| header.kind == Kind::Release)
                    && version(header) < state.since
                {
                    let there = of_lock(program, header.tag, Field::LockSince);
                    program.set_register(Register { value: 0, ..there });
                }
                true
            },
        ),
        before_lock("any epoch is served for locks", |program, header| {
            header.epoch = program.epoch();
            true
        }),
        before_lock("a releaser is a node by its lower bits", |_, header| {
            if header.kind == Kind::Release {
                header.sender %= 32;
            }
            true
        }),
        before_lock("a keeper is a node by its lower bits", |_, header| {
            if header.kind == Kind::Place {
                header.offset %= 32;
            }
            true
        }),
        before_lock("a lock is placed a second time", |program, header| {
            if header.kind == Kind::Place && program.entry(header.tag).is_some() {
                let tag = of_lock(program, header.tag, Field::LockTag);
                program.set_register(Register { value: 0, ..tag });
            }
            true
        }),
        before_lock("a lock of no status is placed as shared", |_, header| {
            if header.kind == Kind::Place && header.status == GlobalStatus::Unshared {
                header.status = GlobalStatus::Shared;
            }
            true
        }),
        before_lock("an Acquire of nothing is one to read", |_, header| {
            if header.kind == Kind::Acquire && header.status == GlobalStatus::Unshared {
                header.status = GlobalStatus::Shared;
            }
            true
        }),
        before_lock("a home's reason is forgotten", |_, header| {
            if header.kind == Kind::Place {
                header.reason = Reason::None;
            }
            true
        }),
    ]
}

pub fn packets() -> Vec<Plant> {
    vec![
        untold(
            "the keeper is not told of a reader",
            Kind::Grant,
            |entry, _| entry.state.keeper.into(),
        ),
        untold("the next holder is not told", Kind::Grant, |_, asked| {
            asked.requester.node
        }),
        untold(
            "a writer is not told to wait for readers",
            Kind::Invalidate,
            |_, asked| asked.requester.node,
        ),
        untold(
            "the keeper is not told of a writer",
            Kind::Invalidate,
            |entry, _| entry.state.keeper.into(),
        ),
        after_lock("sharers are not told of a writer", |_, _, asked, sent| {
            let me = Port::Agent(asked.requester.node);
            sent.retain(|(port, header)| header.kind != Kind::Invalidate || *port == me);
        }),
        after_lock("who waits is told to the keeper", |_, is, asked, sent| {
            if let Some(entry) = is.entry(asked.tag) {
                let keeper = Port::Agent(entry.state.keeper.into());
                let waits = sent.iter_mut().filter(|(_, h)| h.kind == Kind::Wait);
                waits.for_each(|(port, _)| *port = keeper);
            }
        }),
        sends("no keeper of a Grant", Kind::Grant, |_, _, header| {
            header.flags = header.flags.but(Flags::PROVIDER);
        }),
        sends(
            "no keeper of an Invalidate",
            Kind::Invalidate,
            |_, _, header| {
                header.flags = header.flags.but(Flags::PROVIDER);
            },
        ),
        sends("a Grant without sharers", Kind::Grant, |_, _, header| {
            header.copyset = Copyset::EMPTY;
        }),
        sends(
            "an Invalidate without sharers",
            Kind::Invalidate,
            |_, asked, header| {
                header.copyset = asked.copyset;
            },
        ),
        sends(
            "a Grant with the request's reason",
            Kind::Grant,
            |_, asked, header| {
                header.reason = asked.reason;
            },
        ),
        sends(
            "a Wait with the entry's reason",
            Kind::Wait,
            |is, asked, header| {
                header.reason = is.entry(asked.tag).map_or(Reason::None, |e| e.state.reason);
            },
        ),
        sends(
            "a Wait with the request's number",
            Kind::Wait,
            |_, asked, header| {
                *header = with_version(*header, version(asked));
            },
        ),
        sends(
            "what is told again has a new number",
            Kind::Invalidate,
            |is, asked, header| {
                let now = is.entry(asked.tag).map_or(0, |e| e.state.version);
                *header = with_version(*header, now);
            },
        ),
        sends(
            "a Grant of what the request says",
            Kind::Grant,
            |_, asked, header| {
                header.status = asked.status;
            },
        ),
        sends(
            "an Invalidate of what the request says",
            Kind::Invalidate,
            |_, asked, header| {
                header.status = asked.status;
            },
        ),
        sends(
            "a release is not named",
            Kind::ReleaseAck,
            |_, asked, header| {
                header.offset = asked.offset;
            },
        ),
        sends(
            "what is over is refused",
            Kind::ReleaseAck,
            |_, _, header| {
                header.reason = Reason::Moved;
            },
        ),
        sends(
            "what is refused is over",
            Kind::ReleaseAck,
            |_, _, header| {
                header.reason = Reason::None;
            },
        ),
        sends(
            "no number to hear of",
            Kind::ReleaseAck,
            |_, asked, header| {
                *header = with_version(*header, version(asked));
            },
        ),
        sends(
            "a full directory takes a lock",
            Kind::PlaceAck,
            |_, _, header| {
                header.reason = Reason::None;
            },
        ),
        sends(
            "a lock that is taken keeps its reason",
            Kind::PlaceAck,
            |_, asked, header| {
                header.reason = asked.reason;
            },
        ),
        after_lock(
            "a lock that is not here is nobody's",
            |was, is, asked, sent| {
                if was.entry(asked.tag).is_none() && is.entry(asked.tag).is_none() {
                    sent.retain(|(_, header)| header.kind == Kind::PlaceAck);
                }
            },
        ),
        after_lock(
            "what goes to its home is from the switch",
            |_, _, asked, sent| {
                let on = sent.iter_mut().filter(|(_, h)| h.kind == asked.kind);
                on.for_each(|(_, header)| header.sender = NodeId::MAX);
            },
        ),
    ]
}
