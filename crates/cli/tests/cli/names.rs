//! Names of regions and locks that outlive all processes of a rack.

use crate::durable::Scene;
use crate::process::Running;
use rackmem::locked::Mutex;
use rackmem::{Config, Durability, Node, RackError, RegionError, RegionSpec};
use std::path::{Path, PathBuf};

const MORE: &str = "copies = 3\n";

fn ledger() -> RegionSpec {
    let spec = RegionSpec::new("ledger", 640).copies(3).on(0);
    spec.durability(Durability::Sync)
}

fn plain(name: &str) -> RegionSpec {
    RegionSpec::new(name, 64)
}

fn names(node: &Node) -> Vec<String> {
    let regions = node.regions().unwrap();
    let names = regions.iter().map(|region| region.spec.name().to_owned());
    names.collect()
}

/// All processes are killed and started again, twice. Names are there, of locks too, and so is what
/// is durable; memory that is not says so, and its name can be used again. What was removed stays
/// removed.
#[test]
fn names_outlive_the_end_of_all_processes() {
    let scene = Scene::with("names", "60s", MORE);
    let nodes = scene.start();
    let rack = scene.join();
    let node = rack.node(3);
    let region = node.create_region(&ledger()).unwrap();
    region.replicated::<u64>(0).unwrap().write(7).unwrap();
    for name in ["log", "old"] {
        node.create_region(&plain(name)).unwrap();
    }
    let lock = Mutex::named(&node, "door", 41u64).unwrap();
    *lock.lock().unwrap() += 1;
    node.remove_region("old").unwrap();
    nodes.iter().for_each(|node| node.send("KILL"));
    drop((lock, region, node, rack, nodes));

    let nodes = scene.start();
    let rack = scene.join();
    let node = rack.node(3);
    assert_eq!(names(&node), ["door", "ledger", "log"]);
    let region = node.open_region(&ledger()).unwrap();
    let value = region.replicated::<u64>(0).unwrap();
    assert_eq!(value.read().unwrap(), 7);
    value.write(8).unwrap();
    let lost = |name: &str| RegionError::NameLost {
        name: name.into(),
        node: 3,
    };
    let log = node.open_region(&plain("log"));
    assert_eq!(log.unwrap_err(), lost("log"));
    let door = Mutex::named(&node, "door", 0u64);
    assert_eq!(door.unwrap_err(), lost("door"));
    let old = node.open_region(&plain("old")).unwrap_err();
    assert_eq!(old, RegionError::NotFound { name: "old".into() });
    let door = Mutex::renewed(&node, "door", 50u64).unwrap();
    assert_eq!(*door.lock().unwrap(), 50);
    node.remove_region("log").unwrap();
    node.create_region(&plain("more")).unwrap();
    nodes.iter().for_each(|node| node.send("KILL"));
    drop((door, region, node, rack, nodes));

    let _nodes = scene.start();
    let rack = scene.join();
    let node = rack.node(3);
    assert_eq!(names(&node), ["door", "ledger", "more"]);
    let region = node.open_region(&ledger()).unwrap();
    assert_eq!(region.replicated::<u64>(0).unwrap().read().unwrap(), 8);
}

/// The folders of durable copies below one, of a group.
fn stores(folder: &Path, group: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for node in std::fs::read_dir(folder.join("copies")).unwrap() {
        let copies = std::fs::read_dir(node.unwrap().path()).unwrap();
        let copies = copies.map(|copy| copy.unwrap().path());
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(group)
        };
        found.extend(copies.filter(is_it));
    }
    found.sort();
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    files.filter(|path| path.is_file()).collect()
}

fn ended(node: &mut Running) -> String {
    loop {
        let said = node.line();
        if said["copy_ended"] == ".names" {
            return said["why"].as_str().unwrap().to_owned();
        }
    }
}

/// A copy of the names that is damaged says so, and one of another rack; they do not count, and are
/// left as they are. Without a majority nothing is known of names, and nothing is made up.
#[test]
fn copies_of_names_that_are_damaged_or_of_another_rack_say_so() {
    let (scene, other) = (
        Scene::with("damaged", "60s", MORE),
        Scene::with("other", "60s", MORE),
    );
    for scene in [&other, &scene] {
        let nodes = scene.start();
        let rack = scene.join();
        let node = rack.node(3);
        // Each of its rows has its own line, and none of them is lost in silence.
        for nth in 0..20 {
            node.create_region(&plain(&format!("region {nth}")))
                .unwrap();
        }
        nodes.iter().for_each(|node| node.send("KILL"));
    }
    let (ours, others) = (
        stores(&scene.folder, "group-0-"),
        stores(&other.folder, "group-0-"),
    );
    assert_eq!((ours.len(), others.len()), (3, 3), "{ours:?}");
    // Of node 1 the first half of what it has; of node 2 all of it.
    for file in files(&ours[1]) {
        let mut bytes = std::fs::read(&file).unwrap();
        let half = bytes.len() / 2;
        bytes
            .iter_mut()
            .take(half)
            .skip(200)
            .for_each(|byte| *byte ^= 0x55);
        std::fs::write(&file, bytes).unwrap();
    }
    for file in files(&ours[2]) {
        std::fs::remove_file(file).unwrap();
    }
    for file in files(&others[2]) {
        std::fs::copy(&file, ours[2].join(file.file_name().unwrap())).unwrap();
    }
    let mut nodes = scene.start();
    let (damaged, foreign) = (ended(&mut nodes[1]), ended(&mut nodes[2]));
    assert!(damaged.contains("damaged"), "{damaged}");
    assert!(foreign.contains("a store of rack"), "{foreign}");
    drop(nodes);
    let _nodes = scene.start();
    let text = scene.text().replace("patience = '60s'", "patience = '2s'");
    let rack = scene.join_as(&Config::parse(&text).unwrap());
    let error = rack.node(3).regions().unwrap_err();
    let silent = matches!(error, RegionError::Rack(RackError::Timeout { .. }));
    assert!(silent, "{error}");
}
