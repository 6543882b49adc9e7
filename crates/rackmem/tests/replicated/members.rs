//! Members die, come back and are replaced while others work.

use crate::{eventually, history};
use rackmem::membership::{self, Folder, MembershipError, Store};
use rackmem::{AccessError, Config, Node, Rack, RegionError, RegionSpec, Replicated};
use rackmem_sim::history::Recorder;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

pub struct Cluster {
    pub config: Config,
    folder: PathBuf,
    /// What else is removed at the end.
    pub beside: Vec<PathBuf>,
}

impl Cluster {
    /// A rack of so many nodes, which nobody has started yet. Leases are long: nothing here may
    /// depend on a death that has been noticed.
    pub fn new(name: &str, fabric: &str, nodes: usize, more: &str) -> Cluster {
        let name = format!("rackmem-copies-{name}-{fabric}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let addresses: Vec<String> = rackmem_hosts::addresses(nodes + 1)
            .iter()
            .map(|address| format!("\"{address}\""))
            .collect();
        let text = format!(
            "fabric = \"{fabric}\"\nnodes = [{}]\nmembership = \"dir:{}\"\n\
             memory = {}\ncache = {}\n{}",
            addresses[1..].join(", "),
            folder.display(),
            64 << 20,
            1 << 20,
            more.replace("SWITCH", &addresses[0]),
        );
        let config = Config::parse(&text).unwrap();
        Cluster {
            config,
            folder,
            beside: Vec::new(),
        }
    }

    pub fn node(&self, id: usize) -> Rack {
        Rack::join(&self.config, id).unwrap()
    }

    pub fn nodes(&self, count: usize) -> (Vec<Option<Rack>>, Vec<Node>) {
        let racks: Vec<Rack> = (0..count).map(|id| self.node(id)).collect();
        let nodes = racks.iter().enumerate().map(|(id, rack)| rack.node(id));
        let nodes = nodes.collect();
        (racks.into_iter().map(Some).collect(), nodes)
    }

    /// Node 0 dies and comes back, twice. Others do something all the time, and `done` counts it:
    /// more than so often between any two of these. `nodes` says what another one knows.
    pub fn first_dies_twice(
        &self,
        rack: &mut Option<Rack>,
        nodes: &[Node],
        (done, often): (&AtomicU64, u64),
    ) {
        for _ in 0..2 {
            let before = done.load(SeqCst);
            eventually("others are at work", || done.load(SeqCst) > before + often);
            *rack = None;
            eventually("the death is noticed", || !nodes[1].is_member(0));
            let before = done.load(SeqCst);
            eventually("they go on", || done.load(SeqCst) > before + often);
            *rack = Some(self.node(0));
        }
    }

    pub fn store(&self) -> Folder {
        Folder::open(&self.folder.join("rack")).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for folder in self.beside.iter().chain([&self.folder]) {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

const PATIENT: &str = "patience = '60s'\nlease = '20s'\n";
pub const NETWORKS: [&str; 2] = ["udp", "shm"];

/// Threads write and read while a member dies, which is noticed much later: nothing stops, nothing
/// that was acknowledged is lost, and the history is linearizable.
#[test]
fn a_minority_dies_and_nothing_is_lost() {
    const OPERATIONS: usize = 250;
    for fabric in NETWORKS {
        let cluster = Cluster::new("death", fabric, 4, PATIENT);
        let (mut racks, nodes) = cluster.nodes(4);
        let spec = history::spec();
        nodes[1].create_region(&spec).unwrap();
        let recorder = Recorder::new(OPERATIONS);
        std::thread::scope(|scope| {
            // Node 0 keeps no copy, node 1 and 2 do; node 3, which dies, does too.
            for client in 0..3u32 {
                let (node, spec, recorder) = (&nodes[client as usize], &spec, &recorder);
                scope.spawn(move || {
                    let mut log = recorder.client(client);
                    history::work(node, spec, client, &mut log, OPERATIONS);
                });
            }
            std::thread::sleep(Duration::from_millis(50));
            racks[3] = None;
            // The death need not have been noticed.
            let other = RegionSpec::new("other", 64).copies(3);
            let other = nodes[1].create_region(&other).unwrap();
            other.replicated::<u64>(0).unwrap().write(7).unwrap();
            let roster = cluster.store().load(crate::LONG).unwrap().roster.unwrap();
            assert!(roster.view.live.contains(3), "{fabric}: a longer lease");
        });
        let recorded = recorder.into_history();
        assert_eq!(recorded.len(), 3 * OPERATIONS, "{fabric}");
        history::judge(fabric, &recorded);
    }
}

/// Members look at the store for groups every few seconds. One that is asked looks at once, also
/// where it has never heard of any.
#[test]
fn the_first_region_is_used_as_soon_as_it_is_there() {
    for fabric in NETWORKS {
        let late = "patience = '6s'\nlease = '120s'\n";
        let cluster = Cluster::new("first", fabric, 4, late);
        let (_racks, nodes) = cluster.nodes(4);
        let first = nodes[0].create_region(&history::spec().on(1)).unwrap();
        first.replicated::<u64>(0).unwrap().write(7).unwrap();
    }
}

/// Members look at the store every 24 seconds here. A home that hears from a life that it does not
/// know looks at once.
#[test]
fn who_has_just_come_is_answered_before_others_look_by_themselves() {
    for fabric in NETWORKS {
        let late = "patience = '6s'\nlease = '120s'\n";
        let cluster = Cluster::new("just-come", fabric, 3, late);
        let (_racks, nodes) = cluster.nodes(2);
        let word = nodes[0].alloc_bytes(8).unwrap();
        assert_eq!(nodes[1].fetch_add(word, 1).unwrap(), 0, "{fabric}");
        let third = cluster.node(2);
        assert_eq!(third.node(2).fetch_add(word, 1).unwrap(), 1, "{fabric}");
    }
}

/// The node that has the table of names is no exception.
#[test]
fn node_0_dies_and_names_of_regions_with_copies_stay() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("names", fabric, 3, "lease = '1500ms'\npatience = '60s'\n");
        let (mut racks, nodes) = cluster.nodes(3);
        let spec = RegionSpec::new("ledger", 640).copies(3);
        let value: Replicated<u64> = nodes[0]
            .create_region(&spec)
            .unwrap()
            .replicated(3)
            .unwrap();
        value.write(7).unwrap();
        racks[0] = None;
        let same: Replicated<u64> = nodes[2].open_region(&spec).unwrap().replicated(3).unwrap();
        assert_eq!(same.read().unwrap(), 7);
        same.write(8).unwrap();
        assert!(
            matches!(value.read(), Err(AccessError::Rack(_))),
            "its rack is closed"
        );
        eventually("the death is noticed", || !nodes[1].is_member(0));
        let there: Replicated<u64> = nodes[1].open_region(&spec).unwrap().replicated(3).unwrap();
        assert_eq!(there.read().unwrap(), 8);
    }
}

/// A majority that is not there is said, and what was tried may have happened.
#[test]
fn without_a_majority_nothing_is_answered() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("minority", fabric, 3, "lease = '6s'\npatience = '2s'\n");
        let (mut racks, nodes) = cluster.nodes(3);
        let spec = RegionSpec::new("ledger", 640).copies(3);
        let region = nodes[0].create_region(&spec).unwrap();
        let value: Replicated<u64> = region.replicated(0).unwrap();
        eventually("all have heard of it", || value.write(7).is_ok());
        (racks[1], racks[2]) = (None, None);
        let refused = value.write(8).unwrap_err();
        let AccessError::NoQuorum {
            answered,
            needed,
            writes,
            ..
        } = refused
        else {
            panic!("{refused}");
        };
        assert_eq!((answered, needed, writes), (1, 2, true));
        let refused = value.read().unwrap_err();
        assert!(
            matches!(refused, AccessError::NoQuorum { writes: false, .. }),
            "{refused}"
        );
        assert!(refused.to_string().contains("members replace"), "{refused}");
    }
}

/// A dead member's copies go to a spare, by a person's order, while threads work. When two more
/// have died, what was written before is at the spare.
#[test]
fn a_dead_member_is_replaced_while_the_region_is_in_use() {
    for fabric in NETWORKS {
        let cluster = Cluster::new(
            "replace",
            fabric,
            4,
            "lease = '1500ms'\npatience = '60s'\nreplace_after = '0s'\n",
        );
        let (mut racks, nodes) = cluster.nodes(4);
        let lines = 500;
        let spec = RegionSpec::new("ledger", 64 * lines).copies(3);
        let region = nodes[0].create_region(&spec).unwrap();
        for line in 0..lines {
            region
                .replicated::<u64>(line)
                .unwrap()
                .write(line as u64 + 1)
                .unwrap();
        }
        let store = cluster.store();
        let wait = Duration::from_secs(5);
        let error = membership::replace(&store, "ledger", (2, 1), wait).unwrap_err();
        assert!(
            matches!(error, MembershipError::NotReplaced { .. }),
            "{error}"
        );
        racks[2] = None;
        let written: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (line, written) in written.iter().enumerate() {
                let (node, spec, stop) = (&nodes[line % 2], &spec, &stop);
                scope.spawn(move || {
                    let value = node
                        .open_region(spec)
                        .unwrap()
                        .replicated::<u64>(line)
                        .unwrap();
                    for number in 1_000u64.. {
                        if stop.load(SeqCst) {
                            return;
                        }
                        value.write(number).unwrap();
                        written.store(number, SeqCst);
                    }
                });
            }
            let next = membership::replace(&store, "ledger", (2, 3), wait);
            assert_eq!(next.unwrap().rows[0].config.number, 2);
            eventually("the spare has filled, and counts", || {
                let group = &nodes[0].groups()[0];
                group.config == 3 && group.copies.iter().all(|copy| copy.counts)
            });
            stop.store(true, SeqCst);
        });
        eventually("the spare knows", || nodes[3].groups()[0].config == 3);
        // Of the three that wrote, one is left: what it cannot show the spare can.
        racks[1] = None;
        let same = nodes[3].open_region(&spec).unwrap();
        for line in 0..lines {
            let value = same.replicated::<u64>(line).unwrap().read().unwrap();
            let expected = match written.get(line) {
                Some(written) => written.load(SeqCst),
                None => line as u64 + 1,
            };
            assert_eq!(value, expected, "{fabric} line {line}");
        }
    }
}

/// With `replace_after` nobody has to give an order, and a node that has come back under its old
/// number is another member, which has forgotten.
#[test]
fn a_node_that_comes_back_fills_before_it_counts() {
    for fabric in NETWORKS {
        let more = "lease = '1500ms'\npatience = '60s'\nreplace_after = '200ms'\n";
        let cluster = Cluster::new("back", fabric, 3, more);
        let (mut racks, nodes) = cluster.nodes(3);
        let spec = RegionSpec::new("ledger", 640).copies(3);
        let region = nodes[0].create_region(&spec).unwrap();
        let value: Replicated<u64> = region.replicated(0).unwrap();
        value.write(7).unwrap();
        racks[2] = None;
        value.write(8).unwrap();
        racks[2] = Some(cluster.node(2));
        eventually("it has filled in its second life", || {
            let group = &nodes[0].groups()[0];
            let back = group.copies.iter().find(|copy| copy.node == 2);
            back.is_some_and(|copy| copy.life == 2 && copy.counts && copy.live)
        });
        // Now it may stand in for another.
        racks[1] = None;
        assert_eq!(value.read().unwrap(), 8);
        value.write(9).unwrap();
        let back = racks[2].as_ref().unwrap().node(2);
        let same: Replicated<u64> = back.open_region(&spec).unwrap().replicated(0).unwrap();
        assert_eq!(same.read().unwrap(), 9);
    }
}

/// A switch counts, dies, and comes again: the group goes past it and through it by configs.
#[test]
fn a_switch_dies_and_the_group_goes_on_without() {
    for fabric in NETWORKS {
        let more = "lease = '1500ms'\npatience = '60s'\nswitch = SWITCH\n";
        let cluster = Cluster::new("switch", fabric, 3, more);
        let switch = Rack::serve_switch(&cluster.config).unwrap();
        let (_racks, nodes) = cluster.nodes(3);
        let spec = RegionSpec::new("ledger", 640).copies(3);
        let region = nodes[0].create_region(&spec).unwrap();
        let value: Replicated<u64> = region.replicated(0).unwrap();
        value.write(7).unwrap();
        assert!(nodes[0].groups()[0].through_switch);
        drop(switch);
        value.write(8).unwrap();
        assert!(!nodes[0].groups()[0].through_switch);
        let _switch = Rack::serve_switch(&cluster.config).unwrap();
        eventually("the group goes through the switch", || {
            nodes[0].groups()[0].through_switch
        });
        assert_eq!(value.read().unwrap(), 8);
        let same: Replicated<u64> = nodes[2].open_region(&spec).unwrap().replicated(0).unwrap();
        same.write(9).unwrap();
        assert_eq!(value.read().unwrap(), 9);
    }
}

#[test]
fn racks_whose_members_are_fixed_have_no_copies() {
    let address = rackmem_hosts::addresses(1)[0];
    let config = Config::parse(&format!("nodes = [\"{address}\"]\nmemory = {}", 64 << 20)).unwrap();
    let rack = Rack::join(&config, 0).unwrap();
    let spec = RegionSpec::new("ledger", 64).copies(1);
    let error = rack.node(0).create_region(&spec).unwrap_err();
    assert_eq!(error, RegionError::FixedMembers);
    assert!(error.to_string().contains("dir:"), "{error}");
}
