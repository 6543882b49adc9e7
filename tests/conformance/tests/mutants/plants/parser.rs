//! Packets that are let in, and those that are not.

use super::*;

/// Fields that are not looked at.
pub fn parser() -> Vec<Plant> {
    let fixed = |name: &str, at: usize, value: u8| {
        bytes(name, move |packet| {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        })
    };
    let masked = |name: &str, at: usize, mask: u8| {
        bytes(name, move |packet| {
            if let Some(byte) = packet.get_mut(at) {
                *byte &= mask;
            }
        })
    };
    vec![
        fixed("magic is not looked at", 0, 0x52),
        fixed("version is not looked at", 2, 2),
        fixed("the reserved field is not looked at", 43, 0),
        masked("a home of 32 is one of 0", 9, 31),
        masked("a node of 32 is one of 0", 32, 31),
        masked("a requester of 64 is one of 0", 33, 63),
        masked("unknown flags are masked", 41, 0x7f),
        bytes("a status that is none is Modified", |packet| {
            if let Some(byte) = packet.get_mut(40) {
                *byte = (*byte).min(2);
            }
        }),
        bytes("a reason that is none is none", |packet| {
            if let Some(byte) = packet.get_mut(42).filter(|byte| **byte > 9) {
                *byte = 0;
            }
        }),
        bytes("more bytes than it says", |packet| {
            if packet
                .get(3)
                .is_some_and(|&kind| kind < Kind::FIRST_WITH_OWN)
            {
                packet.truncate(48);
            }
        }),
        bytes("what a kind has of its own may be cut", |packet| {
            if (48..64).contains(&packet.len()) && packet[3] >= Kind::FIRST_WITH_OWN {
                packet.resize(64, 0);
                packet[45] = 16;
            }
        }),
        bytes("fewer bytes than it says", |packet| {
            if packet.len() == 48 {
                packet[44..46].fill(0);
            }
        }),
        bytes("a short header is filled up", |packet| {
            if !packet.is_empty() && packet.len() < 48 {
                packet.resize(48, 0);
            }
        }),
        bytes("the body of a data-plane packet is cut off", |packet| {
            if packet.len() == 52 {
                packet.truncate(48);
                packet[44..46].fill(0);
            }
            if packet.len() == 56 {
                packet.truncate(48);
                packet[44..46].fill(0);
            }
        }),
    ]
}

pub fn fences() -> Vec<Plant> {
    let setup = |name: &str, change| Plant {
        name: name.into(),
        hook: Hook::Setup(change),
    };
    vec![
        before("the epoch is not looked at", |program, header| {
            header.epoch = program.epoch();
            true
        }),
        before("a later epoch is served", |program, header| {
            header.epoch = header.epoch.min(program.epoch());
            true
        }),
        Plant {
            name: "a frozen switch goes on".into(),
            hook: Hook::NeverFreeze,
        },
        before("an unknown node is a known one", |_, header| {
            header.requester.node %= 4;
            true
        }),
        before("an unknown requester is a known one", |_, header| {
            if !is_move(header) {
                header.requester.slot %= 2;
            }
            true
        }),
        before("a move of a high slot is of nobody", |_, header| {
            !is_move(header) || header.requester.slot < 2
        }),
        before("a forwarded request is taken for a new one", |_, header| {
            if header.kind.is_request() {
                header.flags = header.flags.but(Flags::GRANTED);
            }
            true
        }),
        setup("the seed does not count", |setup| setup.seed = 0),
        setup("one way only", |setup| setup.ways = 1),
        setup("more sets", |setup| setup.sets = 8),
        setup("the shadow is not told", |setup| setup.shadow = None),
        setup("the shadow is always node 3", |setup| {
            setup.shadow = Some(3)
        }),
    ]
}
