//! Durable copies on disks that fail as disks do: a rack whose nodes are all here is opened again
//! on what its disks have kept.

use crate::config::disks::{Disks, Medium};
use crate::config::{Fabric, Settings};
use crate::error::AccessError;
use crate::rack::Rack;
use crate::region::RegionSpec;
use crate::replicated::CopyStore;
use rackmem_journal::faulty::{Faults, FaultyDisk};
use rackmem_journal::{Disk, StoreError};
use rackmem_proto::abd::Durability;
use rackmem_proto::wire::NodeId;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const NODES: usize = 3;
const LINES: usize = 8;

/// Three disks, and a folder that has the rest.
struct Scene {
    folder: PathBuf,
    disks: Vec<FaultyDisk>,
}

impl Scene {
    fn new(name: &str, seed: u64) -> Scene {
        let name = format!("rackmem-durable-{name}-{seed}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        let disks = (0..NODES as u64).map(|nth| FaultyDisk::new(seed * 31 + nth));
        Scene {
            folder,
            disks: disks.collect(),
        }
    }

    /// The rack in its next life.
    fn rack(&self, fabric: Fabric, patience: Duration) -> Rack {
        let disks = self.disks.clone();
        let make = move |node: NodeId| {
            let mut disk = disks[usize::from(node)].clone();
            let remembers = disk.names().is_ok_and(|names| !names.is_empty());
            (Box::new(disk) as Medium, remembers)
        };
        let settings = Settings {
            memory: 64 << 20,
            cache: 1 << 20,
            patience,
            store: Some(self.folder.clone()),
            disks: Disks(Some(Arc::new(make))),
            ..Settings::default()
        };
        let rack = match fabric {
            Fabric::Inline => Rack::inline(NODES, &settings),
            fabric => Rack::networked(fabric, NODES, &settings),
        };
        rack.unwrap()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn spec() -> RegionSpec {
    let spec = RegionSpec::new("ledger", 64 * LINES).copies(3);
    spec.durability(Durability::Sync)
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// The power of all machines fails, each at another step of its disk. What was acknowledged is
/// there when they are back, and nothing that was never written.
#[test]
fn a_power_failure_of_all_machines_loses_nothing() {
    for (seed, fabric) in (0..24).zip([Fabric::Inline, Fabric::Udp].into_iter().cycle()) {
        let scene = Scene::new("power", seed);
        let rack = scene.rack(fabric, SHORT);
        let region = rack.node(0).create_region(&spec()).unwrap();
        let mut acknowledged = [0u64; LINES];
        let mut begun = [0u64; LINES];
        for (nth, disk) in (0..).zip(&scene.disks) {
            let power_at = Some(12 + (seed * 7 + nth * 5) % 40);
            disk.set(Faults {
                power_at,
                ..Faults::default()
            });
        }
        for number in 1..200 {
            let line = number as usize % LINES;
            begun[line] = number;
            match region.replicated::<u64>(line).unwrap().write(number) {
                Ok(()) => acknowledged[line] = number,
                // A majority has lost its power.
                Err(AccessError::NoQuorum { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(acknowledged.iter().any(|number| *number > 0), "seed {seed}");
        assert!(begun[1] < 199, "the power has failed");
        drop((region, rack));
        scene.disks.iter().for_each(FaultyDisk::restart);

        let rack = scene.rack(fabric, LONG);
        for node in rack.nodes() {
            let region = node.open_region(&spec()).unwrap();
            for line in 0..LINES {
                let value = region.replicated::<u64>(line).unwrap().read().unwrap();
                let (least, most) = (acknowledged[line], begun[line]);
                let wrong = value < least || value > most;
                assert!(
                    !wrong,
                    "seed {seed} line {line}: {value}, not {least} to {most}"
                );
            }
            assert!(node.ended_copies().is_empty());
        }
    }
}

/// A copy whose disk fails does not count any more, says why, and takes nothing along: the others
/// go on. With the second one the region stops answering, and what it had is there afterwards.
#[test]
fn a_copy_whose_disk_fails_ends() {
    let faults = [
        (
            "a sync that fails",
            Faults {
                sync_fails_at: Some(6),
                ..Faults::default()
            },
        ),
        (
            "a full disk",
            Faults {
                room: Some(4096),
                ..Faults::default()
            },
        ),
    ];
    for (seed, (what, faults)) in faults.into_iter().enumerate() {
        let scene = Scene::new("ends", seed as u64);
        let rack = scene.rack(Fabric::Inline, SHORT);
        let region = rack.node(0).create_region(&spec()).unwrap();
        let value = region.replicated::<u64>(3).unwrap();
        let ended = |node: usize| rack.node(node).ended_copies();
        value.write(1).unwrap();
        scene.disks[2].set(faults);
        let mut last = 1;
        while ended(2).is_empty() {
            last += 1;
            value.write(last).unwrap();
        }
        let (name, why) = ended(2).remove(0);
        assert_eq!(name, "ledger");
        let typed = matches!(*why, StoreError::Full { .. } | StoreError::Io { .. });
        assert!(typed, "{what}: {why}");
        let group = &rack.node(2).groups()[0];
        assert_eq!(group.copies[2].store, Some(CopyStore::Ended));
        value.write(last + 1).unwrap();
        assert_eq!(value.read().unwrap(), last + 1);
        // It stays so, whatever the disk says now.
        scene.disks[2].set(Faults::default());
        scene.disks[1].set(faults);
        let mut begun = last + 1;
        let refused = loop {
            begun += 1;
            match value.write(begun) {
                Ok(()) => last = begun,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, AccessError::NoQuorum { .. }), "{refused}");
        drop((value, region, rack));
        scene
            .disks
            .iter()
            .for_each(|disk| disk.set(Faults::default()));

        let rack = scene.rack(Fabric::Inline, LONG);
        let region = rack.node(1).open_region(&spec()).unwrap();
        let found = region.replicated::<u64>(3).unwrap().read().unwrap();
        assert!((last..=begun).contains(&found), "{what}: {found}");
    }
}

/// An empty disk in the place of a copy's is no copy of its present life: it answers nothing, and
/// is not taken for one that has promised nothing.
#[test]
fn a_disk_that_was_emptied_does_not_count() {
    let mut scene = Scene::new("emptied", 0);
    let rack = scene.rack(Fabric::Inline, LONG);
    let region = rack.node(0).create_region(&spec()).unwrap();
    region.replicated::<u64>(0).unwrap().write(7).unwrap();
    drop((region, rack));
    scene.disks[2] = FaultyDisk::new(9);
    scene.disks[1] = FaultyDisk::new(9);
    let rack = scene.rack(Fabric::Inline, SHORT);
    let region = rack.node(2).open_region(&spec()).unwrap();
    let refused = region.replicated::<u64>(0).unwrap().read().unwrap_err();
    let expected = AccessError::NoQuorum {
        addr: region.addr(),
        answered: 1,
        needed: 2,
        writes: false,
    };
    assert_eq!(refused, expected, "two that have forgotten are no majority");
    let group = &rack.node(2).groups()[0];
    assert_eq!(group.copies[2].store, Some(CopyStore::Missing));
}
