//! The end of an event, and moves.

use super::*;
use rackmem_proto::wire::{Copyset, GlobalStatus, Reason};

pub fn unlocks() -> Vec<Plant> {
    let unlock = |header: &Header, flag| header.kind == Kind::Unlock && header.flags.has(flag);
    vec![
        after("an unlock releases again and again", |was, is, asked, _| {
            if asked.kind == Kind::Unlock {
                is.set_register(score(was, asked));
            }
        }),
        before("an unlock is for whoever gets it", |_, header| {
            if header.kind == Kind::Unlock {
                header.flags = header.flags.and(Flags::IN_SWITCH);
            }
            true
        }),
        before("KEEP is not looked at", |_, header| {
            if header.kind == Kind::Unlock {
                header.flags = header.flags.but(Flags::KEEP);
            }
            true
        }),
        before("READER is not looked at", |_, header| {
            if header.kind == Kind::Unlock {
                header.flags = header.flags.but(Flags::READER);
            }
            true
        }),
        before("any number unlocks", |program, header| {
            let found = score(program, header);
            if header.kind == Kind::Unlock && found.value & 1 != 0 {
                let value = u64::from(header.seq.low()) << 32 | found.value & 0xffff_ffff;
                program.set_register(Register { value, ..found });
            }
            true
        }),
        after(
            "a reader's unlock overwrites the copyset",
            move |was, is, asked, _| {
                if unlock(asked, Flags::READER)
                    && !asked.flags.has(Flags::KEEP)
                    && over(was, is, asked)
                {
                    change(is, asked, Field::Copyset, |_| asked.copyset.0.into());
                }
            },
        ),
        after(
            "a writer's unlock adds to the copyset",
            |was, is, asked, _| {
                let old = was
                    .inspect(asked.tag)
                    .map_or(Copyset::EMPTY, |(.., old)| old);
                if asked.kind == Kind::Unlock
                    && !asked.flags.has(Flags::READER)
                    && over(was, is, asked)
                {
                    change(is, asked, Field::Copyset, |now| now | u64::from(old.0));
                }
            },
        ),
        after("the status is not installed", |was, is, asked, _| {
            if let Some((_, old, _)) = was.inspect(asked.tag)
                && asked.kind == Kind::Unlock
            {
                change(is, asked, Field::Status, |_| old as u64);
            }
        }),
        after("a second unlock is not answered", |was, is, asked, sent| {
            if asked.kind == Kind::Unlock && !over(was, is, asked) {
                sent.clear();
            }
        }),
    ]
}

pub fn moves() -> Vec<Plant> {
    let refused = |sent: &Sent, why| sent.iter().any(|(_, header)| header.reason == why);
    vec![
        after("a full set is not final", move |was, is, asked, sent| {
            if asked.kind == Kind::AddToSwitch && refused(sent, Reason::Full) {
                is.set_register(move_of(was, asked));
            }
        }),
        after(
            "a locked entry is not final",
            move |was, is, asked, sent| {
                if refused(sent, Reason::Locked) && is_move(asked) {
                    is.set_register(move_of(was, asked));
                }
            },
        ),
        after(
            "an entry that has moved is not final",
            move |was, is, asked, sent| {
                if refused(sent, Reason::Moved) && is_move(asked) {
                    is.set_register(move_of(was, asked));
                }
            },
        ),
        after(
            "a move is done as often as it comes",
            |was, is, asked, _| {
                if is_move(asked) {
                    is.set_register(move_of(was, asked));
                }
            },
        ),
        after("a copy of an ADD installs again", |was, is, asked, sent| {
            let again = move_of(was, asked).value == move_of(is, asked).value;
            if asked.kind == Kind::AddToSwitch && again && !sent.is_empty() {
                change(is, asked, Field::Lock, |_| 0);
            }
        }),
        after("an ADD does not install the copyset", |_, is, asked, _| {
            if asked.kind == Kind::AddToSwitch {
                change(is, asked, Field::Copyset, |_| 0);
            }
        }),
        after(
            "an ADD of what is there overwrites it",
            move |_, is, asked, sent| {
                if asked.kind == Kind::AddToSwitch && refused(sent, Reason::Full) {
                    change(is, asked, Field::Status, |_| asked.status as u64);
                    change(is, asked, Field::Copyset, |_| asked.copyset.0.into());
                }
            },
        ),
        after("the first step does not lock", |was, is, asked, _| {
            let free = was.inspect(asked.tag).is_some_and(|(lock, ..)| lock == 0);
            if asked.kind == Kind::RemoveFromSwitch && free {
                change(is, asked, Field::Lock, |_| 0);
            }
        }),
        before("the first step frees at once", |_, header| {
            if header.kind == Kind::RemoveFromSwitch {
                header.flags = header.flags.and(Flags::GRANTED);
            }
            true
        }),
        after(
            "the second step leaves the metadata",
            |was, is, asked, _| {
                if let Some((way, at)) = place(was, asked)
                    && asked.kind == Kind::RemoveFromSwitch
                    && place(is, asked).is_none()
                {
                    for field in [Field::Status, Field::Copyset] {
                        is.set_register(register(was, field, way, at));
                    }
                }
            },
        ),
        after(
            "a copy of the first step tells nothing",
            |was, is, asked, sent| {
                if asked.kind == Kind::RemoveFromSwitch
                    && move_of(was, asked).value == move_of(is, asked).value
                {
                    for (_, header) in sent {
                        (header.status, header.copyset) = (GlobalStatus::Unshared, Copyset::EMPTY);
                    }
                }
            },
        ),
        before("homes share slots", |_, header| {
            if is_move(header) && header.requester.node < 4 {
                header.requester.node = 0;
            }
            true
        }),
        after(
            "the shadow gets two copies when it asked",
            |_, _, asked, sent| {
                if is_move(asked) && sent.len() == 1 && sent[0].0 == Port::Agent(1) {
                    sent.push(sent[0]);
                }
            },
        ),
    ]
}
