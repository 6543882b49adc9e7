//! The program in the kernel does what the Rust program does: golden packets, random ones, and
//! differences that are planted.
#![cfg(feature = "xdp")]

mod kernel;
mod quorum;

use kernel::Kernel;
use quorum::Counting;
use rackmem_conformance::quorum::scenarios;
use rackmem_conformance::{Case, golden, replay, sequence, shrink, text};
use rackmem_proto::Output;
use rackmem_proto::switch::SwitchConfig;
use rackmem_wire::{Copyset, Dest, Header, Kind, RequesterId, Seq, Tag, decode, encode};
use rackmem_xdp::carrier::Frame;
use rackmem_xdp::{Address, Error, Order, Switch, Verdict, to_switch};
use std::io::Write;
use std::process::Command;

/// Whether the kernel takes programs from this process; says so if not.
fn can_load(test: &str) -> bool {
    match Switch::load(SwitchConfig {
        sets: 4,
        ..SwitchConfig::default()
    }) {
        Ok(_) => true,
        Err(error @ (Error::Permission | Error::Kernel(_))) => {
            let mut out = std::io::stdout();
            let _ = writeln!(out, "skipped: {test}: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn all_golden() -> Vec<Case> {
    golden()
}

#[test]
fn golden_packets() {
    if !can_load("golden packets in the kernel") {
        return;
    }
    let mut kernel = Kernel::new();
    let cases = all_golden();
    assert!(cases.len() > 50, "{}", cases.len());
    for case in &cases {
        if let Err(difference) = replay(&mut kernel, case) {
            panic!("{difference}");
        }
    }
}

#[test]
fn random_packets() {
    if !can_load("random packets in the kernel") {
        return;
    }
    let mut kernel = Kernel::new();
    for seed in 0..8 {
        let case = sequence(seed, 4000);
        if let Err(difference) = replay(&mut kernel, &case) {
            let (least, difference) = shrink(&mut kernel, &case, difference);
            panic!("{difference}\n{}", text::write("random", &[least]));
        }
    }
}

#[test]
fn what_the_ports_cannot_send_is_an_order_to_the_control_plane() {
    if !can_load("orders to the control plane") {
        return;
    }
    let config = SwitchConfig {
        epoch: 7,
        sets: 4,
        ..SwitchConfig::default()
    };
    let mut switch = Switch::load(config).unwrap();
    let address = Address {
        switch: "10.9.0.254:7400".parse().unwrap(),
        agents: vec![
            "10.9.0.1:7401".parse().unwrap(),
            "10.9.0.2:7401".parse().unwrap(),
        ],
    };
    switch.serve(&address).unwrap();
    // Node 1, the block's home, has sent nothing yet.
    let requester = RequesterId { node: 0, slot: 0 };
    let request = Header {
        reply_port: 40_000,
        ..Header::request(Kind::ReadMiss, 7, Tag(1 << 48), requester, Seq(1))
    };
    let frame = to_switch(
        address.switch,
        "10.9.0.1:40000".parse().unwrap(),
        &encode(&request, 0),
    );
    let ran = switch.run(&frame, 1).unwrap();
    assert_eq!(ran.verdict, Verdict::Pass);
    let passed = Frame::parse(&ran.frame).unwrap();
    assert_eq!(
        (passed.to, *passed.from.ip()),
        (address.switch, *address.agents[0].ip())
    );
    let (header, body) = decode(&passed.payload).unwrap();
    let to = Dest::Agents {
        nodes: Copyset::of(1),
        provider: None,
    };
    let order = Order::read(&header, body, switch.nonce());
    assert_eq!(order, Some(Order(Output::new(to, request))));
    assert_eq!(switch.counters().unwrap().orders, 1);
}

/// Differences in the C code, by what `PLANT` they are compiled with. Those of multicasts, in
/// `deliver.h`: 9, a neighbour of the provider gets its flag; 15, a port makes one copy for all
/// receivers behind it; 16, a provider's number is cut to four bits; 17, node 31 gets no copy; 18,
/// an order names no provider; 19, a port's copy goes to the first node behind it.
const PLANTS: std::ops::RangeInclusive<u32> = 1..=19;
/// The same of `quorum.h`: 20, no stamp raises the highest; 21, a line counts as known while a
/// question learns; 22, a row is not emptied; 23, any copy of a question learns; 24, members that
/// fill count; 25, what is of a group's home is taken for what is of a node's, of blocks as well.
const PLANTS_OF_QUORUMS: std::ops::RangeInclusive<u32> = 20..=OF_HOMES;
const OF_HOMES: u32 = 25;

#[test]
fn a_planted_difference_is_found() {
    if !can_load("planted differences in the kernel") {
        return;
    }
    let cases = all_golden();
    for plant in PLANTS.chain([OF_HOMES]) {
        let mut kernel = Kernel::of(format!("plant {plant}"), compile(plant));
        let found = cases
            .iter()
            .find_map(|case| replay(&mut kernel, case).err());
        assert!(found.is_some(), "plant {plant} is not found");
    }
}

#[test]
fn golden_packets_of_replicated_memory() {
    if !can_load("golden packets of replicated memory in the kernel") {
        return;
    }
    let mut kernel = Counting::new(None);
    let cases = scenarios::all();
    assert!(cases.len() > 30, "{}", cases.len());
    for case in &cases {
        if let Err(difference) = rackmem_conformance::quorum::replay(&mut kernel, case) {
            panic!("{difference}");
        }
    }
    for seed in 0..20 {
        let case = rackmem_conformance::quorum::sequence(seed, 3000);
        if let Err(difference) = rackmem_conformance::quorum::replay(&mut kernel, &case) {
            panic!("{difference}");
        }
    }
}

#[test]
fn a_planted_difference_in_counting_is_found() {
    if !can_load("planted differences in counting in the kernel") {
        return;
    }
    for plant in PLANTS_OF_QUORUMS {
        let mut kernel = Counting::new(Some(compile(plant)));
        let mut cases = scenarios::all().into_iter();
        let found =
            cases.find_map(|case| rackmem_conformance::quorum::replay(&mut kernel, &case).err());
        assert!(found.is_some(), "plant {plant} is not found");
    }
}

/// The program with a difference in it.
fn compile(plant: u32) -> Vec<u8> {
    let object =
        std::env::temp_dir().join(format!("rackmem-plant-{plant}-{}.o", std::process::id()));
    let arguments = include_str!(concat!(env!("OUT_DIR"), "/clang.txt"));
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../switch/xdp/rackmem.bpf.c"
    );
    let status = Command::new("clang")
        .args(arguments.lines())
        .arg(format!("-DPLANT={plant}"))
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status()
        .expect("clang, which has compiled this package");
    assert!(status.success());
    let bytes = std::fs::read(&object).expect("an object");
    let _ = std::fs::remove_file(&object);
    bytes
}
