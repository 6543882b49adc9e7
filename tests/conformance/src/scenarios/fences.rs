//! What keeps out packets of other times and places.

use super::build::{Scenario, add, any, ask, free, retire, unlock, who, with};
use rackmem_proto::wire::GlobalStatus::{Modified, Shared};
use rackmem_proto::wire::Kind::{ReadMiss, WriteMiss};
use rackmem_proto::wire::{Flags, Header, Tag, encode};

/// One packet of each sort that the program takes, all of which would do something.
fn sorts() -> [(&'static str, Header); 4] {
    [
        ("a-request", ask(ReadMiss, who(2, 0), 1, any())),
        ("an-unlock", unlock(who(0, 0), 1, any(), Modified, &[0])),
        (
            "an-add",
            add(super::build::block(2, 0, 0), 0, 1, Shared, &[1]),
        ),
        ("a-remove", retire(any(), 0, 1)),
    ]
}

/// An entry whose lock requester 0.0 holds.
fn held(name: String, about: &str) -> Scenario {
    Scenario::new(name, about)
        .owns(any(), Shared, &[3])
        .first(ask(WriteMiss, who(0, 0), 1, any()))
}

pub fn all() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (name, header) in sorts() {
        let epoch = header.epoch;
        let of = |epoch| Header { epoch, ..header };
        scenarios.push(
            held(
                format!("{name}-of-another-epoch"),
                "Older, newer or none: dropped",
            )
            .packet(of(epoch - 1))
            .packet(of(epoch + 1))
            .packet(of(0))
            .packet(of(epoch | 1 << 31)),
        );
        scenarios.push(
            held(
                format!("{name}-at-a-frozen-switch"),
                "The registers are what the rack had agreed on: dropped",
            )
            .frozen()
            .packet(header),
        );
        let mut of_node = header;
        of_node.requester.node = 4;
        let mut last = header;
        last.requester.node = 31;
        scenarios.push(
            held(
                format!("{name}-of-an-unknown-node"),
                "The rack has four nodes: dropped",
            )
            .packet(of_node)
            .packet(last),
        );
        let of_home = |home: u16| Header {
            tag: Tag(u64::from(home) << 48 | header.tag.offset()),
            ..header
        };
        scenarios.push(
            held(
                format!("{name}-about-a-home-that-a-group-keeps"),
                "Its keeper has all entries of it, and the switch none: dropped",
            )
            .packet(of_home(32 + header.tag.home().0))
            .packet(of_home(63)),
        );
        let mut bytes = encode(&header, 4).to_vec();
        bytes.extend([1, 2, 3, 4]);
        scenarios.push(
            held(
                format!("{name}-with-a-body"),
                "No packet of the data plane has one: dropped",
            )
            .bytes(bytes),
        );
    }
    scenarios.push(
        held(
            "an-unknown-requester".into(),
            "Nodes have two requesters here: dropped. A move's slot is another number",
        )
        .packet(ask(ReadMiss, who(0, 2), 1, any()))
        .packet(unlock(who(0, 2), 1, any(), Modified, &[0]))
        .packet(ask(ReadMiss, who(2, 63), 1, any()))
        .packet(add(super::build::block(2, 0, 0), 2, 1, Shared, &[1])),
    );
    scenarios.push(
        held(
            "a-forwarded-request".into(),
            "With GRANTED it is an owner's packet for an agent, that has come back: dropped",
        )
        .packet(with(ask(ReadMiss, who(2, 0), 1, any()), Flags::GRANTED)),
    );
    scenarios.push(
        Scenario::new(
            "other-fields-of-a-granted-request",
            "What the program does not use goes to every agent: incarnation, offset, port, flags, reason",
        )
        .owns(any(), Shared, &[1, 3])
        .packet(Header {
            incarnation: 0xdead_beef,
            offset: 0x0102_0304,
            reply_port: 65_535,
            sender: 2,
            reason: rackmem_proto::wire::Reason::Lost,
            copyset: super::build::set(&[0, 1]),
            status: Modified,
            flags: Flags::DATA.and(Flags::GATHER).and(Flags::KEEP).and(Flags::READER),
            ..ask(WriteMiss, who(2, 0), 1, any())
        }),
    );
    scenarios.push(
        held(
            "other-fields-travel-along".into(),
            "What the program does not use comes out as it came in: incarnation, offset, port, flags",
        )
        .packet(Header {
            incarnation: 0xdead_beef,
            offset: 0x0102_0304,
            reply_port: 65_535,
            sender: 2,
            reason: rackmem_proto::wire::Reason::Lost,
            copyset: super::build::set(&[0, 1]),
            status: Modified,
            flags: Flags::PROVIDER.and(Flags::DATA).and(Flags::GATHER),
            ..ask(ReadMiss, who(2, 0), 1, any())
        })
        .packet(Header {
            incarnation: 0xdead_beef,
            offset: 0x0102_0304,
            reply_port: 1,
            sender: 3,
            reason: rackmem_proto::wire::Reason::Lost,
            ..unlock(who(0, 0), 1, any(), Modified, &[0])
        })
        .packet(Header {
            incarnation: 0xdead_beef,
            offset: 0x0102_0304,
            sender: 3,
            reason: rackmem_proto::wire::Reason::Lost,
            ..free(any(), 0, 1)
        }),
    );
    scenarios
}
