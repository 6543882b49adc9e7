//! GCP's directory at the switch: the table in `crates/proto/src/gcp/entry.rs` row by row, and
//! locks that are placed there.

use super::build::{Scenario, acquire, ask, count, lock, place, release, who};
use rackmem_proto::wire::GlobalStatus::{self, Modified, Shared, Unshared};
use rackmem_proto::wire::{Header, Kind, MAX_NODES, NodeId, Reason, Tag, encode};

pub fn all() -> Vec<Scenario> {
    let mut scenarios = acquires();
    scenarios.extend(releases());
    scenarios.extend(versions());
    scenarios.extend(places());
    scenarios.extend(fences());
    scenarios
}

fn any() -> Tag {
    lock(1, 1, 0)
}

/// The switch serves `any()`.
fn served(
    name: impl Into<String>,
    about: impl Into<String>,
    who: (NodeId, NodeId),
    status: GlobalStatus,
    sharers: &[NodeId],
) -> Scenario {
    Scenario::new(name, about).first(place(any(), who, status, sharers, count(5)))
}

fn acquires() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (mode, word) in [(Shared, "shared"), (Modified, "modified")] {
        for (wanted, asks) in [
            (Unshared, "nothing"),
            (Shared, "shared"),
            (Modified, "modified"),
        ] {
            for (node, whose) in [(0, "others"), (2, "mine")] {
                scenarios.push(
                    served(
                        format!("acquire-{asks}-of-{word}-{whose}"),
                        "One row of the table: what an Acquire does to the entry, and who hears of it",
                        (2, 1),
                        mode,
                        &[2, 3],
                    )
                    .packet(acquire(node, wanted, any())),
                );
            }
        }
    }
    scenarios.extend([
        served(
            "readers-one-by-one",
            "Each Grant goes to the reader and to the keeper of the data alone, with all sharers",
            (1, 1),
            Shared,
            &[],
        )
        .packet(acquire(0, Shared, any()))
        .packet(acquire(2, Shared, any()))
        .packet(acquire(2, Shared, any()))
        .packet(acquire(1, Shared, any())),
        served(
            "a-writer-over-readers",
            "Case (i) to (iii): sharers, writer and keeper hear of it at once, and who asks next waits at the writer",
            (1, 1),
            Shared,
            &[0, 2],
        )
        .packet(acquire(3, Modified, any()))
        .packet(acquire(0, Shared, any()))
        .packet(acquire(2, Modified, any())),
        served(
            "asking-again",
            "The holder asks for what was lost: it is told what it was told, with the number that it had, after others came",
            (1, 1),
            Shared,
            &[0, 2],
        )
        .packet(acquire(3, Modified, any()))
        .packet(acquire(0, Modified, any()))
        .packet(acquire(3, Modified, any()))
        .packet(acquire(3, Shared, any())),
        served(
            "a-writer-that-was-a-reader",
            "An upgrade: it is among the sharers that make way, and in the list once",
            (1, 3),
            Shared,
            &[0, 3],
        )
        .packet(acquire(3, Modified, any())),
        Scenario::new(
            "what-is-wrong-is-told",
            "The reason of the data's state goes with every grant until a writer has left",
        )
        .first(Header {
            reason: Reason::Lost,
            ..place(any(), (1, 1), Shared, &[], count(5))
        })
        .packet(acquire(0, Shared, any()))
        .packet(acquire(2, Modified, any())),
        served(
            "what-a-request-says-besides",
            "An Acquire's own reason, copyset and version do not count, and neither do a Wait's",
            (1, 1),
            Modified,
            &[],
        )
        .packet(Header {
            reason: Reason::Lost,
            ..release((0, 2), Shared, &[3], any(), count(77))
        })
        .packet(Header {
            kind: Kind::Acquire,
            reason: Reason::Lost,
            ..release((0, 2), Shared, &[3], any(), count(77))
        }),
    ]);
    scenarios
}

fn releases() -> Vec<Scenario> {
    let held = |name: &str, about: &str| served(name, about, (1, 1), Modified, &[]);
    vec![
        held(
            "hand-over",
            "Writer to writer: Wait, Release, Grant to both; the one who had it keeps the data for the next",
        )
        .packet(acquire(2, Modified, any()))
        .packet(release((1, 2), Modified, &[], any(), count(6))),
        held(
            "hand-over-to-readers",
            "The queue holder lets readers in and leaves no queue: mode S, and the next reader joins",
        )
        .packet(acquire(2, Shared, any()))
        .packet(acquire(3, Shared, any()))
        .packet(release((1, 1), Shared, &[1, 2, 3], any(), count(7)))
        .packet(acquire(0, Shared, any())),
        held(
            "hand-over-to-readers-and-a-writer",
            "Readers, and behind them a writer that has the queue: case (iii) at once",
        )
        .packet(acquire(2, Shared, any()))
        .packet(acquire(3, Modified, any()))
        .packet(release((1, 3), Modified, &[1, 2], any(), count(7)))
        .packet(acquire(3, Modified, any()))
        .packet(acquire(0, Shared, any())),
        served(
            "whoever-had-a-copy",
            "The sharers that a writer waited for are forgotten when it releases: those that it names are all",
            (1, 1),
            Modified,
            &[0, 2],
        )
        .packet(release((1, 3), Modified, &[1], any(), count(5)))
        .packet(acquire(3, Modified, any())),
        held(
            "a-release-of-no-status",
            "Whatever is not Modified leaves the lock to readers",
        )
        .packet(release((1, 1), Unshared, &[1], any(), count(5))),
        held(
            "with-a-reason",
            "The release says what is wrong with the data, and the next one that nothing is any more",
        )
        .packet(Header {
            reason: Reason::OwnerDied,
            ..release((1, 2), Modified, &[], any(), count(5))
        })
        .packet(acquire(0, Shared, any()))
        .packet(acquire(2, Modified, any()))
        .packet(release((2, 0), Modified, &[], any(), count(7))),
        held(
            "refused",
            "Two have asked and the holder has heard of one: Moved, with the number that it has yet to hear",
        )
        .packet(acquire(2, Modified, any()))
        .packet(acquire(3, Modified, any()))
        .packet(release((1, 2), Modified, &[], any(), count(6)))
        .packet(release((1, 2), Modified, &[], any(), count(7))),
        held(
            "a-release-from-the-future",
            "A number that the switch has not given yet does not match either",
        )
        .packet(release((1, 2), Modified, &[], any(), count(6)))
        .packet(release((1, 2), Modified, &[], any(), count(5) + (1 << 32))),
        held(
            "doubled",
            "The second copy hears that it is over; nothing changes",
        )
        .packet(release((1, 2), Modified, &[], any(), count(5)))
        .packet(release((1, 2), Modified, &[], any(), count(5))),
        held(
            "late-after-it-holds-again",
            "An old release of a node that has got the lock again is of an earlier tenure: over, and not refused",
        )
        .packet(release((1, 2), Modified, &[], any(), count(5)))
        .packet(acquire(1, Modified, any()))
        .packet(release((2, 1), Modified, &[], any(), count(7)))
        .packet(release((1, 2), Modified, &[], any(), count(5)))
        .packet(release((1, 2), Modified, &[], any(), count(7)))
        .packet(release((1, 2), Modified, &[], any(), count(8))),
        held(
            "not-the-holder",
            "Whoever is not the holder hears that it is over, even with the right number",
        )
        .packet(release((3, 2), Modified, &[], any(), count(5))),
        held(
            "to-oneself",
            "A holder that renews its tenure: one Grant, to itself",
        )
        .packet(release((1, 1), Modified, &[], any(), count(5))),
        served(
            "of-a-shared-lock",
            "There is no holder in mode S, so there is nothing to release",
            (1, 1),
            Shared,
            &[1],
        )
        .packet(release((1, 2), Modified, &[], any(), count(5))),
    ]
}

/// Numbers around a carry: the parts of 64 bits in which other forms keep them.
fn versions() -> Vec<Scenario> {
    let edge = count(0xffff_ffff);
    let at_edge = |name: &str, about: &str, status| {
        Scenario::new(name, about).first(place(any(), (1, 1), status, &[], edge))
    };
    vec![
        at_edge(
            "a-carry-by-a-request",
            "The number after 0xffffffff is 0x100000000",
            Modified,
        )
        .packet(acquire(2, Modified, any()))
        .packet(release((1, 2), Modified, &[], any(), edge))
        .packet(release((1, 2), Modified, &[], any(), edge + 1)),
        at_edge(
            "a-carry-by-a-release",
            "The new holder's tenure begins beyond it, and the old one's release is over",
            Modified,
        )
        .packet(release((1, 1), Modified, &[], any(), edge))
        .packet(release((1, 1), Modified, &[], any(), edge))
        .packet(release((1, 1), Modified, &[], any(), edge + 2))
        .packet(release((1, 1), Modified, &[], any(), edge + 1)),
        at_edge(
            "a-carry-by-a-writer-over-readers",
            "Likewise when readers make way",
            Shared,
        )
        .packet(acquire(2, Modified, any()))
        .packet(acquire(2, Modified, any()))
        .packet(release((2, 1), Modified, &[], any(), edge)),
        Scenario::new(
            "the-low-half-alone",
            "A number whose low half is right and whose high half is not is not that number",
        )
        .first(place(any(), (1, 1), Modified, &[], edge + 6))
        .packet(release((1, 2), Modified, &[], any(), count(5)))
        .packet(release((1, 2), Modified, &[], any(), edge + 6 + (1 << 32)))
        .packet(release((1, 2), Modified, &[], any(), edge + 6)),
        Scenario::new(
            "the-order-of-halves",
            "Older is decided by the high half first",
        )
        .first(place(any(), (1, 1), Modified, &[], edge - 1))
        .first(release((1, 1), Modified, &[], any(), edge - 1))
        .first(acquire(2, Shared, any()))
        .packet(release((1, 1), Modified, &[], any(), edge - 1))
        .packet(release((1, 1), Modified, &[], any(), edge)),
    ]
}

fn places() -> Vec<Scenario> {
    let full = |scenario: Scenario| {
        scenario
            .first(place(lock(1, 0, 0), (1, 1), Modified, &[], count(1)))
            .first(place(lock(2, 0, 0), (2, 2), Modified, &[], count(1)))
    };
    vec![
        Scenario::new("place", "A home hands its lock over as it is, and the switch serves it")
            .packet(Header {
                reason: Reason::OwnerDied,
                ..place(any(), (3, 2), Shared, &[0, 3], count(9))
            })
            .packet(acquire(1, Shared, any())),
        Scenario::new("place-modified", "A queue holder, and a keeper that is another node")
            .packet(place(any(), (3, 2), Modified, &[0], count(9)))
            .packet(acquire(1, Shared, any()))
            .packet(acquire(3, Modified, any())),
        Scenario::new("place-of-no-status", "What is not Shared is Modified")
            .packet(place(any(), (3, 2), Unshared, &[], count(9))),
        Scenario::new(
            "place-twice",
            "The second copy is answered as the first one and changes nothing: the lock has been used since",
        )
        .packet(place(any(), (1, 1), Modified, &[], count(1)))
        .packet(acquire(2, Modified, any()))
        .packet(place(any(), (1, 1), Modified, &[], count(1)))
        .packet(acquire(3, Modified, any())),
        full(Scenario::new("place-into-each-way", "Two locks of a set take a way each, and both are served"))
            .packet(acquire(3, Modified, lock(2, 0, 0)))
            .packet(acquire(3, Modified, lock(1, 0, 0)))
            .packet(release((2, 3), Modified, &[], lock(2, 0, 0), count(2))),
        full(Scenario::new(
            "place-when-full",
            "A third one is told that it is full, as often as it asks; its requests go on to its home",
        ))
        .packet(place(lock(3, 0, 0), (3, 3), Modified, &[], count(1)))
        .packet(place(lock(3, 0, 0), (3, 3), Modified, &[], count(1)))
        .packet(acquire(0, Shared, lock(3, 0, 0)))
        .packet(release((3, 0), Modified, &[], lock(3, 0, 0), count(1))),
        full(Scenario::new("place-twice-when-full", "A lock that is in the last way is not refused"))
            .packet(place(lock(2, 0, 0), (2, 2), Modified, &[], count(1))),
        Scenario::new("not-here", "Requests for a lock that the switch does not serve go on as they came")
            .packet(acquire(2, Modified, any()))
            .packet(Header {
                reason: Reason::Lost,
                ..release((2, 1), Shared, &[0], any(), count(1))
            }),
        Scenario::new(
            "beside-a-block",
            "A block and a lock of one tag have nothing to do with each other",
        )
        .owns(any(), Shared, &[0, 3])
        .first(place(any(), (1, 1), Modified, &[], count(1)))
        .packet(acquire(2, Modified, any()))
        .packet(ask(Kind::ReadMiss, who(2, 0), 1, any())),
    ]
}

fn fences() -> Vec<Scenario> {
    let packets = [
        ("acquire", acquire(2, Modified, any())),
        ("release", release((1, 2), Modified, &[], any(), count(5))),
        (
            "place",
            place(lock(2, 0, 0), (2, 2), Modified, &[], count(1)),
        ),
    ];
    let held = |name: String, about: &str| served(name, about, (1, 1), Modified, &[]);
    let mut scenarios = Vec::new();
    for (name, header) in packets {
        let of = |epoch| Header { epoch, ..header };
        let epoch = header.epoch;
        let kept = Header {
            tag: Tag(header.tag.0 | (MAX_NODES as u64) << 48),
            ..header
        };
        let mut with_body = encode(&header, 8).to_vec();
        with_body.extend([0x5a; 8]);
        scenarios.extend([
            held(format!("{name}-of-another-epoch"), "Older, newer or none: dropped")
                .packet(of(epoch - 1))
                .packet(of(epoch + 1))
                .packet(of(0)),
            held(
                format!("{name}-about-a-home-that-a-group-keeps"),
                "Such memory has no locks: dropped",
            )
            .packet(kept),
            held(format!("{name}-with-a-body"), "Dropped").bytes(with_body),
            held(
                format!("{name}-at-a-frozen-switch"),
                "What is frozen is the directory of blocks; locks are in the next epoch before it ends",
            )
            .frozen()
            .packet(header),
        ]);
    }
    scenarios.extend([
        held(
            "a-releaser-that-is-no-node".into(),
            "Nobody could be answered: dropped",
        )
        .packet(release((32, 2), Modified, &[], any(), count(5)))
        .packet(release((NodeId::MAX, 2), Modified, &[], any(), count(5)))
        .packet(release((257, 2), Modified, &[], any(), count(5))),
        held(
            "a-keeper-that-is-no-node".into(),
            "Nobody could give the data: dropped",
        )
        .packet(place(lock(2, 0, 0), (2, 32), Modified, &[], count(1)))
        .packet(place(lock(2, 0, 0), (2, 258), Modified, &[], count(1)))
        .packet(place(lock(2, 0, 0), (2, 31), Modified, &[], count(1))),
        held(
            "a-node-beyond".into(),
            "Who asks for a lock need not have a score: any of 32 nodes may",
        )
        .packet(Header {
            requester: who(31, 63),
            ..acquire(2, Modified, any())
        })
        .packet(place(lock(2, 0, 0), (31, 31), Modified, &[31], count(1))),
        Scenario::new(
            "any-sender-may-ask",
            "An Acquire's sender and offset are nobody's business, and go on with it",
        )
        .packet(Header {
            sender: NodeId::MAX,
            offset: 77,
            ..acquire(2, Modified, any())
        }),
    ]);
    scenarios
}
