//! Every kind, and what is no packet.

use super::build::{Scenario, any, ask, who};
use rackmem_proto::wire::{GlobalStatus::Unshared, Header, HomeId, Kind, encode};

pub fn all() -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Kind::ALL.iter().map(|&kind| of_kind(kind)).collect();
    scenarios.extend(malformed());
    scenarios
}

/// Each kind for an entry that the switch owns: those of the data plane do something or are
/// dropped, the others are for the control plane.
fn of_kind(kind: Kind) -> Scenario {
    let name = kind.name();
    let number = kind as u8;
    let about = if kind.in_data_plane() {
        format!("{name} is for the switch program")
    } else {
        format!(
            "{name} is for the control plane, whatever the epoch, and of homes that groups keep"
        )
    };
    let packet = ask(kind, who(1, 1), 3, any());
    let with_body = |header: &Header, body: &[u8]| {
        let mut bytes = encode(header, body.len()).to_vec();
        bytes.extend(body);
        bytes
    };
    let scenario = Scenario::new(format!("kind-{number:02x}"), about)
        .owns(any(), Unshared, &[])
        .bytes(with_body(&packet, &vec![0; kind.own_len()]));
    if kind.in_data_plane() {
        return scenario;
    }
    let later = Header {
        epoch: packet.epoch + 1,
        ..packet
    };
    let kept = |group| Header {
        tag: HomeId::of_group(group).start(),
        ..packet
    };
    scenario
        .bytes(with_body(&later, &[0x5a; 32]))
        .bytes(with_body(&kept(0), &[0x5a; 32]))
        .bytes(with_body(&kept(31), &vec![0; kind.own_len()]))
}

fn request() -> Vec<u8> {
    encode(&ask(Kind::ReadMiss, who(1, 1), 3, any()), 0).to_vec()
}

/// What is wrong, and the packet.
type Wrong = (&'static str, &'static str, fn(&mut Vec<u8>));

const WRONG: &[Wrong] = &[
    ("empty", "no bytes", |p| p.clear()),
    ("short-header", "a byte less than a header", |p| {
        p.truncate(47)
    }),
    ("short-header-16", "a third of a header", |p| p.truncate(16)),
    ("short-body", "a body that is not there", |p| p[45] = 1),
    ("huge-body", "a body of 64 KiB", |p| p[44..46].fill(0xff)),
    (
        "short-own",
        "a kind with less than it has of its own",
        |p| {
            p[3] = Kind::GuestAsk as u8;
            p[45] = 15;
            p.extend([7; 15]);
        },
    ),
    ("long", "a byte more than it says", |p| p.push(0)),
    ("magic", "not rackmem's first two bytes", |p| p[0] = 0x72),
    ("magic-second", "not rackmem's second byte", |p| p[1] = 0),
    ("version-1", "an older layout", |p| p[2] = 1),
    ("version-3", "a newer layout", |p| p[2] = 3),
    ("kind-00", "kind zero", |p| p[3] = 0),
    ("kind-17", "a kind between others that is none", |p| {
        p[3] = 0x17
    }),
    ("kind-ff", "the last kind, which is none", |p| p[3] = 0xff),
    ("tag", "a block of home 64", |p| {
        p[8..10].copy_from_slice(&[0, 64])
    }),
    ("tag-high", "a block of node 257", |p| {
        p[8..10].copy_from_slice(&[1, 1])
    }),
    ("node-id", "a requester of node 32", |p| p[32] = 32),
    ("node-id-high", "a requester of node 129", |p| p[32] = 129),
    ("requester", "requester 64 of a node", |p| p[33] = 64),
    ("requester-high", "requester 129 of a node", |p| p[33] = 129),
    ("global-status", "a status that is none", |p| p[40] = 3),
    ("flags", "a flag that is none", |p| p[41] = 0x80),
    ("reason", "a reason that is none", |p| p[42] = 13),
    ("reserved", "the field that is zero", |p| p[43] = 1),
];

fn malformed() -> impl Iterator<Item = Scenario> {
    WRONG.iter().map(|&(name, what, spoil)| {
        let mut bytes = request();
        spoil(&mut bytes);
        let about = format!("Malformed, {what}: dropped, and nothing changes");
        Scenario::new(format!("malformed-{name}"), about)
            .owns(any(), Unshared, &[])
            .bytes(bytes)
    })
}
