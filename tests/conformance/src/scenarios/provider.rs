//! Who provides the data: decided by the event alone, looked up without arithmetic.

use super::build::{Scenario, any, ask, who};
use rackmem_proto::wire::GlobalStatus::{Modified, Shared};
use rackmem_proto::wire::Kind::{ReadMiss, WriteMiss};

pub fn all() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    // Thirty-two events of one requester: places above, among and below the members come up.
    let mut many = Scenario::new(
        "thirty-two-events",
        "Consecutive read misses of one requester go to members at and after a place that the event decides, or to the lowest",
    )
    .setup(|setup| setup.shadow = None)
    .owns(any(), Shared, &[1, 2, 3]);
    for seq in 1..=32 {
        many = many.packet(ask(ReadMiss, who(0, 0), seq, any()));
    }
    scenarios.push(many);
    for seed in [1, 2, 4, 8, 16, 31, 0xffff_ffe0] {
        let mut scenario = Scenario::new(
            format!("seed-{seed:x}"),
            "The switch's seed moves the place: its five lowest bits count",
        )
        .setup(|setup| setup.seed = seed)
        .owns(any(), Shared, &[1, 2, 3]);
        for seq in 1..=6 {
            scenario = scenario.packet(ask(ReadMiss, who(0, 0), seq, any()));
        }
        scenarios.push(scenario);
    }
    for (name, node, slot, seq) in [
        ("node", 3, 0, 9),
        ("slot", 0, 1, 9),
        ("sequence", 0, 0, 10),
        ("wide-sequence", 0, 0, 0x0100_0009),
    ] {
        scenarios.push(
            Scenario::new(
                format!("by-{name}"),
                format!(
                    "The place depends on the event's {}",
                    name.replace('-', " ")
                ),
            )
            .owns(any(), Shared, &[1, 2])
            .packet(ask(ReadMiss, who(node, slot), seq, any())),
        );
    }
    scenarios.push(
        Scenario::new(
            "one-copy-is-the-provider",
            "A write miss goes to all members, and the flag is in the copy of one: read misses of the same event pick the same",
        )
        .owns(any(), Shared, &[1, 2, 3])
        .packet(ask(WriteMiss, who(0, 0), 6, any())),
    );
    scenarios.push(
        Scenario::new(
            "the-only-member",
            "A modified entry has one member, which provides whatever the place",
        )
        .owns(any(), Modified, &[1])
        .packet(ask(WriteMiss, who(0, 0), 7, any())),
    );
    scenarios
}
