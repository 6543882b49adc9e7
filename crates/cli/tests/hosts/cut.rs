//! A host whose cable is cut while it lives and beats: the others find out, go on without it, and
//! have it back when it is mended.

use crate::clients::{Clients, Record};
use rackmem_hosts::rack::HostRack;
use std::process::Command;
use std::time::{Duration, Instant};

/// The host that is cut off: not the one with the store's superblock.
const VICTIM: usize = 2;
/// Longer than a rack takes for anything.
const PATIENCE: Duration = Duration::from_secs(90);

/// What `rackmem members` shows.
fn members(rack: &HostRack) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rackmem"))
        .args(["members", "--json", "--rack"])
        .arg(rack.file())
        .output()
        .expect("the command starts");
    String::from_utf8(output.stdout).expect("text")
}

fn wait(rack: &HostRack, what: &str, done: impl Fn(&str) -> bool) {
    let began = Instant::now();
    loop {
        let shown = members(rack);
        if done(&shown) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {shown}");
    }
}

/// A cable is cut and mended under clients.
pub fn is_excluded_and_comes_back(rack: &HostRack) {
    let record = Record::new();
    let name = format!("\"member\":\"node {VICTIM}\"");
    let accused = format!("\"cannot_reach\":[\"node {VICTIM}\"]");
    Clients::work(rack, &record, |clients| {
        clients.until_each_has_done(20);
        let cut = record.now();
        rack.hosts().cut(VICTIM).unwrap();
        wait(rack, "the others say so", |shown| shown.contains(&accused));
        wait(rack, "exclusion", |shown| !shown.contains(&name));
        clients.until_some_have_done(100);
        rack.hosts().mend(VICTIM).unwrap();
        wait(rack, "it is back", |shown| shown.contains(&name));
        clients.until_each_has_done(20);
        record.died(cut);
    });
    record.judge();
}
