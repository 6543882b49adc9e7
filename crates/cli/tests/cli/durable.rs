//! Durable copies of processes that are killed.

use crate::process::{Running, TempFile, run, stdout};
use rackmem::{AccessError, Config, Durability, Rack, RegionSpec, Replicated};
use rackmem_hosts::addresses;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const LINES: usize = 8;

pub struct Scene {
    file: TempFile,
    pub folder: PathBuf,
}

impl Scene {
    fn new(name: &str, patience: &str) -> Scene {
        Scene::with(name, patience, "")
    }

    /// With further lines of its rack file.
    pub fn with(name: &str, patience: &str, more: &str) -> Scene {
        let name = format!("rackmem-cli-durable-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        let nodes: Vec<String> = addresses(4).iter().map(|a| format!("'{a}'")).collect();
        let file = TempFile::new(&format!(
            "nodes = [{}]\nmembership = 'dir:{}'\nlease = '3s'\nmemory = '64M'\n\
             patience = '{patience}'\nreplace_after = '0s'\nstore = '{}'\n{more}",
            nodes.join(", "),
            folder.join("members").display(),
            folder.join("copies").display(),
        ));
        Scene { file, folder }
    }

    /// Of its rack file.
    pub fn text(&self) -> String {
        self.file.text()
    }

    /// Nodes 0 to 2, which keep the copies: node 0 is there first, since copies of names are at the
    /// node that founds the rack and those behind it.
    pub fn start(&self) -> Vec<Running> {
        let start =
            |node: &str| Running::start(&["node", "--rack", self.file.path(), "--node", node]);
        let mut nodes = vec![start("0")];
        nodes[0].line();
        nodes.extend(["1", "2"].map(start));
        nodes[1..].iter_mut().for_each(|node| drop(node.line()));
        nodes
    }

    /// This process is node 3, which keeps none.
    pub fn join(&self) -> Rack {
        self.join_as(&Config::parse(&self.text()).unwrap())
    }

    /// The same by a description that differs in what is this process' own.
    pub fn join_as(&self, config: &Config) -> Rack {
        let rack = Rack::join(config, 3).unwrap();
        let began = Instant::now();
        while !(0..3).all(|node| rack.node(3).is_member(node)) {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "they do not come"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        rack
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn spec(durability: Durability) -> RegionSpec {
    // Its copies are at node 0 and those behind it.
    let spec = RegionSpec::new("ledger", 64 * LINES).copies(3).on(0);
    spec.durability(durability)
}

/// All processes that keep copies are killed while threads write. When they have started again,
/// everything that was acknowledged is there, and nothing that was never written.
#[test]
fn what_was_acknowledged_survives_the_end_of_all_processes() {
    for durability in [Durability::Sync, Durability::File] {
        let scene = Scene::new(durability.name(), "3s");
        let nodes = scene.start();
        let rack = scene.join();
        let region = rack.node(3).create_region(&spec(durability)).unwrap();
        let zeros = || (0..LINES).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let (begun, acknowledged) = (zeros(), zeros());
        let dead = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for line in 0..LINES {
                let value: Replicated<u64> = region.replicated(line).unwrap();
                let (begun, acknowledged) = (&begun[line], &acknowledged[line]);
                let dead = &dead;
                scope.spawn(move || {
                    for number in 1u64.. {
                        begun.store(number, SeqCst);
                        match value.write(number) {
                            Ok(()) => acknowledged.store(number, SeqCst),
                            // A disk may be slower than a write is patient, while all are there.
                            Err(AccessError::NoQuorum { .. }) if !dead.load(SeqCst) => {}
                            Err(AccessError::NoQuorum { .. } | AccessError::Rack(_)) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    assert!(dead.load(SeqCst), "this process was not to leave its rack");
                });
            }
            let busy = || acknowledged.iter().all(|number| number.load(SeqCst) > 3);
            let began = Instant::now();
            while !busy() {
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "nothing is written"
                );
                std::thread::sleep(Duration::from_millis(5));
            }
            dead.store(true, SeqCst);
            nodes.iter().for_each(|node| node.send("KILL"));
        });
        drop((region, rack, nodes));

        let nodes = scene.start();
        let rack = scene.join();
        let region = rack.node(3).open_region(&spec(durability)).unwrap();
        for line in 0..LINES {
            let value = region.replicated::<u64>(line).unwrap();
            let began = Instant::now();
            let value = loop {
                match value.read() {
                    Ok(value) => break value,
                    Err(error) => assert!(began.elapsed() < Duration::from_secs(60), "{error}"),
                }
            };
            let (least, most) = (acknowledged[line].load(SeqCst), begun[line].load(SeqCst));
            assert!(
                (least..=most).contains(&value),
                "{durability} line {line}: {value}, not {least} to {most}"
            );
        }
        let shown = stdout(&run(&[
            "inspect",
            "--json",
            "--groups",
            "--rack",
            scene.file.path(),
        ]));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let group = &shown["groups"][0];
        assert_eq!(group["durability"], durability.name(), "{shown}");
        assert_eq!(group["copies"][0]["store"], "journal", "{shown}");
        assert!(
            group["copies"][0]["journal_bytes"].as_u64() > Some(640),
            "{shown}"
        );
        let text = stdout(&run(&["inspect", "--groups", "--rack", scene.file.path()]));
        assert!(
            text.contains(durability.name()) && text.contains("a journal of"),
            "{text}"
        );
        drop(nodes);
    }
}

/// A node that may not write more (a limit on files, as a full disk would be) says so, and the
/// others go on.
#[test]
fn a_node_whose_writes_fail_says_so_and_the_others_go_on() {
    let scene = Scene::new("full", "60s");
    let mut nodes = scene.start();
    nodes.pop();
    let limited = format!(
        "trap '' XFSZ; ulimit -f 48; exec '{}' --json node --rack '{}' --node 2",
        env!("CARGO_BIN_EXE_rackmem"),
        scene.file.path()
    );
    let mut limited = Running::of_shell(&limited);
    limited.line();
    let rack = scene.join();
    let region = rack.node(3).create_region(&spec(Durability::Sync)).unwrap();
    let value = region.replicated::<u64>(0).unwrap();
    for number in 0..600 {
        value.write(number).unwrap();
    }
    let said = loop {
        // Members that come are told as well.
        let said = limited.line();
        if said["copy_ended"] == "ledger" {
            break said;
        }
    };
    assert!(said["why"].as_str().unwrap().contains("journal"), "{said}");
    assert_eq!(value.read().unwrap(), 599);
}
