//! Durable copies in folders: racks that end and start again, and folders that are gone, damaged or
//! another rack's.

use crate::members::Cluster;
use crate::{LONG, eventually};
use rackmem::membership::{self, Store};
use rackmem::{
    CopyStatus, CopyStore, Durability, Error, GroupStatus, Node, RegionError, RegionSpec,
    Replicated, StoreError,
};
use std::path::{Path, PathBuf};

const TIMES: &str = "lease = '1500ms'\npatience = '60s'\n";

fn spec(durability: Durability) -> RegionSpec {
    RegionSpec::new("ledger", 640)
        .copies(3)
        .durability(durability)
}

pub fn durable(name: &str, more: &str) -> Cluster {
    let store = std::env::temp_dir().join(format!("rackmem-copies-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&store);
    let more = format!("{TIMES}{more}store = '{}'\n", store.display());
    let mut cluster = Cluster::new(name, "udp", 4, &more);
    cluster.beside.push(store);
    cluster
}

fn store_of(cluster: &Cluster) -> &Path {
    cluster.config.store().unwrap()
}

/// The folders of a node's copies.
pub fn folders(cluster: &Cluster, node: usize) -> Vec<PathBuf> {
    let folder = store_of(cluster).join(format!("node-{node}"));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// What a node has heard of the region.
fn group(node: &Node) -> Option<GroupStatus> {
    node.groups().into_iter().next()
}

pub fn line(node: &Node, durability: Durability, nth: usize) -> Replicated<u64> {
    let region = node.open_region(&spec(durability)).unwrap();
    region.replicated(nth).unwrap()
}

pub fn write_some(cluster: &Cluster, durability: Durability) {
    let (racks, nodes) = cluster.nodes(3);
    let region = nodes[0].create_region(&spec(durability)).unwrap();
    let all_have = |least: u64| {
        nodes.iter().all(|node| {
            let group = group(node);
            let copies = group.iter().flat_map(|group| &group.copies);
            let mut mine = copies.filter(|copy| copy.node == node.id());
            mine.any(|copy| copy.lines >= Some(least))
        })
    };
    eventually("all three have heard of it", || all_have(0));
    for nth in 0..10 {
        region
            .replicated::<u64>(nth)
            .unwrap()
            .write(nth as u64 + 100)
            .unwrap();
    }
    // A majority has each line.
    eventually("each has some lines", || all_have(4));
    let group = group(&nodes[1]).unwrap();
    assert_eq!(group.durability, durability);
    assert!(matches!(group.copies[1].store, Some(CopyStore::Journal(bytes)) if bytes > 640));
    drop(racks);
}

fn check_all(node: &Node, durability: Durability) {
    for nth in 0..10 {
        let value = line(node, durability, nth).read().unwrap();
        assert_eq!(value, nth as u64 + 100);
    }
}

/// A member that comes back with its store counts at once, as the life that it was.
#[test]
fn a_rack_that_starts_again_has_what_it_had() {
    for durability in [Durability::File, Durability::Sync] {
        let cluster = durable(&format!("again-{durability}"), "");
        write_some(&cluster, durability);
        for _ in 0..2 {
            let (_racks, nodes) = cluster.nodes(3);
            check_all(&nodes[2], durability);
            let group = group(&nodes[2]).unwrap();
            assert_eq!((group.config, group.copies[2].life), (1, 1));
            assert!(group.copies[2].live && group.copies[2].counts);
        }
        let (_racks, nodes) = cluster.nodes(3);
        let other = match durability {
            Durability::File => Durability::Sync,
            _ => Durability::File,
        };
        let error = nodes[0].open_region(&spec(other)).unwrap_err();
        assert!(matches!(error, RegionError::Mismatch { .. }), "{error}");
    }
}

/// A folder that was emptied while its node was down is no copy of the node's present life, which
/// fills before it counts.
#[test]
fn a_copy_whose_folder_is_gone_fills_before_it_counts() {
    let cluster = durable("gone", "replace_after = '200ms'\n");
    write_some(&cluster, Durability::Sync);
    std::fs::remove_dir_all(store_of(&cluster).join("node-2")).unwrap();
    let (mut racks, nodes) = cluster.nodes(3);
    eventually("it has filled in its second life", || {
        let group = group(&nodes[0]);
        let mut copies = group.iter().flat_map(|group| &group.copies);
        copies.any(|copy| copy.node == 2 && copy.life == 2 && copy.counts)
    });
    racks[1] = None;
    check_all(&nodes[2], Durability::Sync);
}

/// Changes a bit of a copy's journal, in front of what was written last.
pub fn damage(folder: &Path) {
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let mut journals =
        files.filter(|file| file.file_name().to_string_lossy().starts_with("journal"));
    let journal = journals.next().unwrap().path();
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&journal, bytes).unwrap();
}

/// What is damaged, and what is another rack's, answers nothing and says why; the others go on, and
/// a person gives the copy to the node's present life.
#[test]
fn a_damaged_store_and_one_of_another_rack_do_not_count() {
    let cluster = durable("damaged", "replace_after = '0s'\n");
    write_some(&cluster, Durability::Sync);
    let other = durable("other", "");
    write_some(&other, Durability::Sync);
    damage(&folders(&cluster, 1)[0]);
    let foreign = folders(&cluster, 2).remove(0);
    let aside = foreign.with_file_name("aside");
    std::fs::rename(&foreign, &aside).unwrap();
    std::fs::rename(folders(&other, 2).remove(0), &foreign).unwrap();

    // One that counts is no majority: nothing is answered, and nothing is lost.
    let (racks, nodes) = cluster.nodes(3);
    eventually("both say why", || {
        !nodes[1].ended_copies().is_empty() && !nodes[2].ended_copies().is_empty()
    });
    let why = |node: usize| nodes[node].ended_copies().remove(0);
    let (region, damaged) = why(1);
    assert_eq!(region, "ledger");
    assert!(matches!(*damaged, StoreError::Damaged { .. }), "{damaged}");
    assert!(damaged.to_string().contains("damaged at byte"), "{damaged}");
    let other = why(2).1;
    assert!(matches!(*other, StoreError::Other { .. }), "{other}");
    let seen = group(&nodes[1]).unwrap();
    assert_eq!(seen.copies[1].store, Some(CopyStore::Ended));
    assert!(!seen.copies[1].answers());
    drop(racks);
    // Another copy's, under this one's name.
    assert!(foreign.exists(), "what is another rack's is never removed");
    std::fs::remove_dir_all(&foreign).unwrap();
    copy(&folders(&cluster, 0).remove(0), &foreign);
    let (racks, nodes) = cluster.nodes(3);
    eventually("it is another node's", || {
        !nodes[2].ended_copies().is_empty()
    });
    let other = nodes[2].ended_copies().remove(0).1;
    assert!(matches!(*other, StoreError::Other { .. }), "{other}");
    drop(racks);

    // With its own store back, a majority is there, and the damaged copy is made anew.
    std::fs::remove_dir_all(&foreign).unwrap();
    std::fs::rename(&aside, &foreign).unwrap();
    let (_racks, nodes) = cluster.nodes(3);
    check_all(&nodes[2], Durability::Sync);
    let store = cluster.store();
    let wait = std::time::Duration::from_secs(5);
    membership::replace(&store, "ledger", (1, 1), wait).unwrap();
    eventually("the damaged copy was made anew", || {
        let group = group(&nodes[0]);
        group.is_some_and(|it| it.copies.iter().all(CopyStatus::answers) && it.copies[1].life > 1)
    });
    eventually("the damaged store is removed", || {
        let left = folders(&cluster, 1);
        left.len() == 1 && !left[0].ends_with("group-0-1-1")
    });
    assert_ne!(store.groups(LONG).unwrap().unwrap().rack, 0);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().flatten() {
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[test]
fn what_is_not_durable_says_so() {
    let cluster = Cluster::new("no-store", "udp", 3, TIMES);
    let (_racks, nodes) = cluster.nodes(3);
    let error = nodes[0].create_region(&spec(Durability::Sync)).unwrap_err();
    let durability = Durability::Sync;
    assert_eq!(error, RegionError::NoStore { durability });
    assert!(error.to_string().contains("`store`"), "{error}");
    let coherent = RegionSpec::new("counts", 640).durability(durability);
    let error = nodes[0].create_region(&coherent).unwrap_err();
    assert_eq!(error, RegionError::NotDurable { durability });
    assert_eq!(Error::from(error).code(), "not-durable");
}
