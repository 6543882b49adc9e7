//! The program in the kernel does what the Rust program does: golden packets, random ones, and differences that are planted.
#![cfg(feature = "xdp")]

mod kernel;

use kernel::Kernel;
use rackmem_conformance::{Case, golden, replay, sequence, shrink, text};
use rackmem_proto::switch::SwitchConfig;
use rackmem_xdp::{Error, Switch};
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

/// Differences in the C code, by what `PLANT` they are compiled with.
const PLANTS: std::ops::RangeInclusive<u32> = 1..=9;

#[test]
fn a_planted_difference_is_found() {
    if !can_load("planted differences in the kernel") {
        return;
    }
    let cases = all_golden();
    for plant in PLANTS {
        let mut kernel = Kernel::of(format!("plant {plant}"), compile(plant));
        let found = cases
            .iter()
            .find_map(|case| replay(&mut kernel, case).err());
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
