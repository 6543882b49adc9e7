//! What happens: requests are granted, multicasts reach exactly those they are for, hosts die.

use crate::ends::Player;
use rackmem_hosts::{Hosts, Place};
use rackmem_proto::switch::SwitchConfig;
use rackmem_wire::{Copyset, Flags, GlobalStatus, Header, Kind, NodeId, RequesterId, Seq, Tag};
use rackmem_xdp::Switch;
use std::io::Write;

const HOSTS: usize = 4;
const EPOCH: u32 = 3;
/// Longer than a packet takes on a loaded machine.
const SOON: u32 = 5_000;
/// For what must not come.
const NEVER: u32 = 100;

pub fn run() {
    let passed = match possible() {
        Ok(()) => in_both_modes(),
        Err(why) => {
            tell(format_args!("skipped: the XDP switch between hosts: {why}"));
            1
        }
    };
    // As the usual harness says it; a failure would have ended the process.
    tell(format_args!(
        "test result: ok. {passed} passed; 0 failed; 0 ignored"
    ));
}

fn in_both_modes() -> usize {
    let modes = ["skb", "native"];
    for mode in modes {
        let hosts = Hosts::start(HOSTS).expect("namespaces");
        story(&hosts, mode);
        hosts.tear_down().expect("nothing is left");
        tell(format_args!("test live_{mode} ... ok"));
    }
    modes.len()
}

fn tell(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn possible() -> Result<(), String> {
    Switch::load(SwitchConfig {
        sets: 4,
        ..SwitchConfig::default()
    })
    .map_err(|error| error.to_string())?;
    Hosts::probe().map_err(|error| error.to_string())
}

fn request(kind: Kind, node: NodeId, tag: Tag, seq: u64, port: &str) -> Header {
    Header {
        reply_port: port.parse().expect("a port"),
        ..Header::request(kind, EPOCH, tag, RequesterId { node, slot: 0 }, Seq(seq))
    }
}

fn story(hosts: &Hosts, mode: &str) {
    let mut switch = Player::switch(hosts, mode, EPOCH).expect("a switch");
    let mut players: Vec<Player> = (0..HOSTS).map(|host| Player::host(hosts, host)).collect();
    let ports: Vec<String> = players.iter().map(|player| player.ready.clone()).collect();

    // A switch answers every sender, and learns its port.
    for node in 0..HOSTS {
        let unlock = Header {
            flags: Flags::IN_SWITCH,
            ..request(Kind::Unlock, node as NodeId, Tag(0), 1, &ports[node])
        };
        players[node].send('R', &unlock);
        let answer = players[node]
            .hear('R', SOON)
            .unwrap_or_else(|| panic!("{mode} {node}: {}", switch.ask("count")));
        assert_eq!((answer.kind, answer.seq), (Kind::UnlockAck, Seq(1)));
    }

    // Host 1's agents give a shared block to the switch: they and the shadow, host 0, hear of it.
    let tag = Tag(1 << 48 | 0x4000);
    let add = Header {
        status: GlobalStatus::Shared,
        copyset: Copyset(0b1110),
        ..request(Kind::AddToSwitch, 1, tag, 1, "0")
    };
    players[1].send('A', &add);
    for node in [1, 0] {
        let ack = players[node].hear('A', SOON).expect("an answer to a move");
        assert_eq!((ack.kind, ack.tag), (Kind::AddAck, tag), "{mode} {node}");
    }

    // A write miss goes to all three, one of which provides.
    players[0].send('R', &request(Kind::WriteMiss, 0, tag, 2, &ports[0]));
    let heard: Vec<Header> = (1..HOSTS)
        .map(|node| {
            players[node]
                .hear('A', SOON)
                .unwrap_or_else(|| panic!("{mode}: nothing at {node}"))
        })
        .collect();
    assert!(
        heard
            .iter()
            .all(|h| h.kind == Kind::WriteMiss && h.flags.has(Flags::GRANTED))
    );
    let providers = heard
        .iter()
        .filter(|h| h.flags.has(Flags::PROVIDER))
        .count();
    assert_eq!(providers, 1, "{mode}: {heard:?}");
    assert_eq!(
        players[0].hear('A', NEVER),
        None,
        "{mode}: a copy for nobody"
    );
    // Each host has heard of it once.
    for player in &mut players[1..] {
        assert_eq!(player.hear('A', NEVER), None, "{mode}: a copy too many");
    }

    // While it is locked no other node gets it.
    players[3].send('R', &request(Kind::WriteShared, 3, tag, 2, &ports[3]));
    assert_eq!(
        players[3].hear('R', SOON).expect("a refusal").reason as u8,
        1
    );
    let unlock = Header {
        flags: Flags::IN_SWITCH,
        status: GlobalStatus::Shared,
        copyset: Copyset(0b1110),
        ..request(Kind::Unlock, 0, tag, 2, &ports[0])
    };
    players[0].send('R', &unlock);
    assert_eq!(
        players[0].hear('R', SOON).expect("an answer").kind,
        Kind::UnlockAck
    );

    // To a subset, one of which dies: the other still hears.
    hosts.kill(Place::Host(2)).expect("a host to kill");
    players[3].send('R', &request(Kind::WriteShared, 3, tag, 3, &ports[3]));
    assert_eq!(
        players[1].hear('A', SOON).expect("an invalidation").kind,
        Kind::WriteShared
    );
    assert_eq!(players[3].hear('A', NEVER), None);

    locks(&mut players, mode);

    // A miss in the table goes to the home agent, and a node that is unknown to the control plane.
    let elsewhere = Tag(1 << 48 | 0x9000);
    players[0].send('R', &request(Kind::ReadMiss, 0, elsewhere, 3, &ports[0]));
    let passed = players[1].hear('A', SOON).expect("the request as it was");
    assert_eq!(
        (passed.kind, passed.sender, passed.flags),
        (Kind::ReadMiss, 0, Flags(0))
    );

    let counted = switch.ask("count");
    assert_eq!(
        counted, "2 0 0 1",
        "{mode}: granted, orders, control plane, entries"
    );

    // A new epoch: it owns nothing, and packets of the old one are dropped.
    assert_eq!(switch.ask(&format!("epoch {}", EPOCH + 1)), "2 0 0 0");
    players[0].send('R', &request(Kind::ReadMiss, 0, elsewhere, 4, &ports[0]));
    assert_eq!(players[1].hear('A', NEVER), None);

    // Another switch cannot be attached where this one is, and can when it has gone.
    let second = Player::switch(hosts, mode, EPOCH).err().expect("a refusal");
    assert_eq!(second, "refused busy");
    drop(switch);
    Player::switch(hosts, mode, EPOCH).expect("nothing is left of the first");
}

/// A lock that the switch serves: grants reach exactly those they are for, and the keeper of its
/// data knows that it is it.
fn locks(players: &mut [Player], mode: &str) {
    let tag = Tag(1 << 48 | 0x5000);
    let of = |kind: Kind, sender: NodeId, about: NodeId, status: GlobalStatus| Header {
        sender,
        status,
        offset: 1,
        ..request(kind, about, tag, u64::from(EPOCH) << 40 | 1, "0")
    };
    players[1].send('A', &of(Kind::Place, 1, 1, GlobalStatus::Shared));
    let placed = players[1].hear('A', SOON).expect("an answer to Place");
    assert_eq!((placed.kind, placed.reason as u8), (Kind::PlaceAck, 0));

    // A reader, whom the keeper gives the data.
    players[0].send('A', &of(Kind::Acquire, 0, 0, GlobalStatus::Shared));
    for node in [0, 1] {
        let grant = players[node].hear('A', SOON).expect("a grant");
        let provides = grant.flags.has(Flags::PROVIDER);
        assert_eq!((grant.kind, provides), (Kind::Grant, node == 1), "{mode}");
        assert_eq!(grant.copyset, Copyset(0b1));
    }
    // A writer, who waits for the reader.
    players[3].send('A', &of(Kind::Acquire, 3, 3, GlobalStatus::Modified));
    for node in [0, 1, 3] {
        let way = players[node].hear('A', SOON).expect("an invalidation");
        assert_eq!((way.kind, way.copyset), (Kind::Invalidate, Copyset(0b1)));
        assert_eq!(way.requester.node, 3);
    }
    // Who comes next is told to it alone.
    players[0].send('A', &of(Kind::Acquire, 0, 0, GlobalStatus::Modified));
    assert_eq!(players[3].hear('A', SOON).expect("a wait").kind, Kind::Wait);
    for node in [0, 1] {
        assert_eq!(players[node].hear('A', NEVER), None, "{mode}: for nobody");
    }
}
