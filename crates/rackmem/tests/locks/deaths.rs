//! Locks live through the deaths of those who use them, and die with their homes.

use crate::executor::block_on;
use crate::until;
use rackmem::locked::{BlockLock, Condvar, Content, Mutex, RwLock, RwLockArray};
use rackmem::membership::{self, Role};
use rackmem::{Config, LeaveError, LockError, Node, Rack, RackError, RegionError, Shared};
use std::path::PathBuf;
use std::sync::Mutex as Local;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// As long as this machine may stand still; members that come wait for a fifth of it.
const LEASE: Duration = Duration::from_secs(12);
/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

/// A rack of members that can die.
pub struct Cluster {
    pub config: Config,
    folder: PathBuf,
}

impl Cluster {
    pub fn new(name: &str, fabric: &str) -> Cluster {
        Cluster::patient(name, fabric, LONG)
    }

    fn patient(name: &str, fabric: &str, patience: Duration) -> Cluster {
        let name = format!("rackmem-locks-{name}-{fabric}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let addresses: Vec<String> = rackmem_hosts::addresses(4)
            .iter()
            .map(|address| format!("\"{address}\""))
            .collect();
        let text = format!(
            "fabric = \"{fabric}\"\nnodes = [{}]\nswitch = {}\nmembership = \"dir:{}\"\nlease_ms = {}\n\
             memory = {}\ncache = {}\npatience_ms = {}",
            addresses[1..].join(", "),
            addresses[0],
            folder.display(),
            LEASE.as_millis(),
            64 << 20,
            1 << 20,
            patience.as_millis(),
        );
        Cluster {
            config: Config::parse(&text).unwrap(),
            folder,
        }
    }

    pub fn start(&self) -> (Rack, [Rack; 3]) {
        let switch = Rack::serve_switch(&self.config).unwrap();
        (switch, [0, 1, 2].map(|id| self.node(id)))
    }

    fn node(&self, id: usize) -> Rack {
        Rack::join(&self.config, id).unwrap()
    }

    /// A member dies. The others hear of it at once, as from `rackmem members remove`: leases that
    /// end of themselves are what `failover` is about, and would end for members that live where
    /// the machine stands still.
    pub fn kill(&self, role: Role, member: Rack) {
        drop(member);
        let settings = &self.config.membership;
        let store = settings.source.open(&settings.name).unwrap().unwrap();
        membership::remove(&*store, role, LONG).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Threads of these nodes count by one lock until told to stop, while something happens.
fn count_while(nodes: &[Node], addr: u64, happens: impl FnOnce(&AtomicU64)) -> u64 {
    let (stop, counted) = (AtomicBool::new(false), AtomicU64::new(0));
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    std::thread::scope(|scope| {
        for node in nodes {
            let (stop, counted) = (&stop, &counted);
            scope.spawn(move || {
                let mutex: Mutex<u64> = Mutex::attach(node, addr).unwrap();
                while !stop.load(SeqCst) {
                    let mut held = mutex.lock().unwrap();
                    assert_eq!(held.content(), Content::Current);
                    held.update(|n| n + 1);
                    counted.fetch_add(1, SeqCst);
                }
            });
        }
        let _stop = Stop(&stop);
        happens(&counted);
    });
    counted.into_inner()
}

#[test]
fn a_switch_that_dies_takes_no_lock_along() {
    for fabric in ["udp", "shm"] {
        let cluster = Cluster::new("switch", fabric);
        let (switch, racks) = cluster.start();
        let nodes: Vec<Node> = (0..3).map(|id| racks[id].node(id)).collect();
        let made: Mutex<u64> = Mutex::create(&nodes[0], 0).unwrap();
        let mut fresh = None;
        let counted = count_while(&nodes, made.addr(), |counted| {
            let more = |than: u64| until(|| counted.load(SeqCst) > than + 300);
            let rebuilt = || nodes[0].metrics().rebuilds.done;
            more(0);
            let before = rebuilt();
            cluster.kill(Role::Switch, switch);
            until(|| rebuilt() > before);
            more(counted.load(SeqCst));
            let between = rebuilt();
            fresh = Some(Rack::serve_switch(&cluster.config).unwrap());
            until(|| rebuilt() > between);
            more(counted.load(SeqCst));
        });
        assert_eq!(made.lock().unwrap().get(), counted);
        drop(fresh);
    }
}

#[test]
fn who_enters_after_a_dead_writer_is_told_until_somebody_has_written() {
    for fabric in ["udp", "shm"] {
        let cluster = Cluster::new("writer", fabric);
        let (_switch, [first, second, third]) = cluster.start();
        let made: RwLock<u64> = RwLock::create(&first.node(0), 1).unwrap();
        let near: RwLock<u64> = RwLock::attach(&second.node(1), made.addr()).unwrap();
        let far: RwLock<u64> = RwLock::attach(&third.node(2), made.addr()).unwrap();
        near.write().unwrap().set(2);
        // Handed on with 2; what comes after stays with the node that dies.
        far.write().unwrap().set(3);
        let token = far.write().unwrap().token();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let held = near.read().unwrap();
                (held.get(), held.content(), held.token())
            });
            let inside = far.write().unwrap();
            until(|| far.waiting().nodes == 1);
            cluster.kill(Role::Node(2), third);
            let (seen, content, fenced) = waits.join().unwrap();
            assert_eq!((seen, content), (2, Content::OwnerDied));
            assert!(fenced > token);
            drop(inside);
        });
        assert_eq!(made.read().unwrap().content(), Content::OwnerDied);
        let mut held = made.write().unwrap();
        assert_eq!(held.content(), Content::OwnerDied);
        held.set(4);
        drop(held);
        let held = near.read().unwrap();
        assert_eq!((held.get(), held.content()), (4, Content::Current));
        // It is back, and the lock is as ever.
        drop(held);
        let again = cluster.node(2);
        let far: RwLock<u64> = RwLock::attach(&again.node(2), made.addr()).unwrap();
        assert_eq!(far.write().unwrap().update(|n| n + 1), 4);
        assert_eq!(near.read().unwrap().get(), 5);
    }
}

#[test]
fn a_reader_that_dies_is_not_waited_for() {
    let cluster = Cluster::new("reader", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made: RwLock<u64> = RwLock::create(&first.node(0), 1).unwrap();
    let near: RwLock<u64> = RwLock::attach(&second.node(1), made.addr()).unwrap();
    let far: RwLock<u64> = RwLock::attach(&third.node(2), made.addr()).unwrap();
    let here = near.read().unwrap();
    let _inside = far.read().unwrap();
    cluster.kill(Role::Node(2), third);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut held = made.write().unwrap();
            assert_eq!((held.get(), held.content()), (1, Content::Current));
            held.set(2);
        });
        // A thread that is inside stays inside.
        until(|| first.view().unwrap().live.len() == 2);
        assert_eq!(here.get(), 1);
        drop(here);
    });
    assert_eq!(near.read().unwrap().get(), 2);
}

#[test]
fn who_waits_for_a_condition_looks_again_when_news_of_it_died() {
    let cluster = Cluster::new("condvar", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made: Mutex<u64> = Mutex::create(&first.node(0), 0).unwrap();
    let condition = Condvar::create(&first.node(0)).unwrap();
    let there: Mutex<u64> = Mutex::attach(&second.node(1), made.addr()).unwrap();
    let near = Condvar::attach(&second.node(1), condition.addr()).unwrap();
    let dying: Mutex<u64> = Mutex::attach(&third.node(2), made.addr()).unwrap();
    let far = Condvar::attach(&third.node(2), condition.addr()).unwrap();
    std::thread::scope(|scope| {
        // One that waits where it dies is nobody's turn.
        let dead = scope.spawn(|| far.wait(dying.lock().unwrap()).err());
        until(|| condition.waiters().unwrap() == 1);
        let waits = scope.spawn(|| {
            let held = there.lock().unwrap();
            let held = near.wait_while(held, |value| value == 0).unwrap();
            held.get()
        });
        until(|| condition.waiters().unwrap() == 2);
        cluster.kill(Role::Node(2), third);
        assert!(dead.join().unwrap().is_some());
        until(|| first.view().unwrap().live.len() == 2);
        made.lock().unwrap().set(5);
        condition.notify_one().unwrap();
        assert_eq!(waits.join().unwrap(), 5);
    });
}

#[test]
fn what_was_brought_home_outlives_its_writer() {
    for fabric in ["udp", "shm"] {
        let cluster = Cluster::new("brought", fabric);
        let (_switch, [first, _second, third]) = cluster.start();
        let addr = first.node(0).alloc_bytes(RwLockArray::STRIDE).unwrap();
        let at = |node: Node| RwLockArray::attach(&node, addr, 1, 64).unwrap();
        let (here, there) = (at(first.node(0)), at(third.node(2)));
        there.write(0).unwrap().view_mut(8).set_u64(0, 7);
        there.bring_home(0).unwrap();
        drop(there);
        cluster.kill(Role::Node(2), third);
        let held = here.read(0).unwrap();
        assert_eq!(held.content(), Content::Current, "{fabric}");
        assert_eq!(held.view().u64(0), 7, "{fabric}");
    }
}

#[test]
fn a_lock_dies_with_its_home() {
    let cluster = Cluster::new("home", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made: Mutex<u64> = Mutex::create(&third.node(2), 1).unwrap();
    let [near, far] = [(&first, 0), (&second, 1)]
        .map(|(rack, id)| Mutex::<u64>::attach(&rack.node(id), made.addr()).unwrap());
    let lost = |error: Option<LockError>| {
        matches!(
            error,
            Some(LockError::Rack(RackError::NodeLost { node: 2 }))
        )
    };
    std::thread::scope(|scope| {
        let inside = near.lock().unwrap();
        let waits = scope.spawn(|| far.lock().err());
        until(|| far.waiting().threads == 1);
        cluster.kill(Role::Node(2), third);
        assert!(lost(waits.join().unwrap()));
        drop(inside);
    });
    // The other node may hear of it a little later.
    until(|| lost(near.try_lock().err()));
    assert!(lost(near.lock().err()));
    let again: Option<LockError> = Mutex::<u64>::attach(&first.node(0), made.addr()).err();
    assert!(lost(again));
}

#[test]
fn futures_end_when_the_home_dies() {
    let cluster = Cluster::new("futures", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made: Mutex<u64> = Mutex::create(&third.node(2), 1).unwrap();
    let value = third.node(2).alloc_isolated(1u64).unwrap();
    let shut = BlockLock::attach(&second.node(1), value.addr()).unwrap();
    let [near, far] = [(&first, 0), (&second, 1)]
        .map(|(rack, id)| Mutex::<u64>::attach(&rack.node(id), made.addr()).unwrap());
    let seen: Shared<u64> = first.node(0).attach(value.addr()).unwrap();
    second.node(1).store(value.addr(), 2).unwrap();
    let lost = RackError::NodeLost { node: 2 };
    let (inside, held) = (far.lock().unwrap(), shut.write().unwrap());
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| block_on(near.lock_async()).err());
        let read = scope.spawn(|| block_on(seen.read_async()));
        until(|| near.waiting().threads == 1);
        cluster.kill(Role::Node(2), third);
        assert_eq!(turn.join().unwrap(), Some(LockError::Rack(lost)));
        assert_eq!(read.join().unwrap(), Err(lost.into()));
    });
    drop((inside, held));
    assert_eq!(
        block_on(near.lock_async()).err(),
        Some(LockError::Rack(lost))
    );
}

#[test]
fn locks_stay_when_a_node_leaves() {
    let cluster = Cluster::new("leave", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made = [0; 100].map(|one| Mutex::<u64>::create(&first.node(0), one).unwrap());
    let read: RwLock<u64> = RwLock::create(&second.node(1), 7).unwrap();
    let far = |at: usize| Mutex::<u64>::attach(&third.node(2), made[at].addr()).unwrap();
    let held: Vec<_> = (0..100).map(far).collect();
    for (lock, value) in held.iter().zip(1..) {
        lock.lock().unwrap().set(value);
    }
    let there: RwLock<u64> = RwLock::attach(&third.node(2), read.addr()).unwrap();
    assert_eq!(there.read().unwrap().get(), 7);
    third.leave().unwrap();
    for (lock, value) in made.iter().zip(1..) {
        let inside = lock.lock().unwrap();
        assert_eq!((inside.get(), inside.content()), (value, Content::Current));
    }
    // Nobody waits for the reader that has gone.
    let mut inside = read.write().unwrap();
    assert_eq!((inside.get(), inside.content()), (7, Content::Current));
    inside.set(8);
}

#[test]
fn a_node_whose_threads_are_inside_does_not_leave() {
    // It waits so long for its threads to come out.
    let cluster = Cluster::patient("stay", "udp", Duration::from_secs(5));
    let (_switch, [first, _second, third]) = cluster.start();
    let made: Mutex<u64> = Mutex::create(&first.node(0), 1).unwrap();
    let far: Mutex<u64> = Mutex::attach(&third.node(2), made.addr()).unwrap();
    let _inside = far.lock().unwrap();
    assert!(matches!(
        third.leave(),
        Err(LeaveError::LocksInUse { node: 2 })
    ));
}

/// What a thread has seen inside.
struct Seen {
    node: u16,
    token: u64,
    value: u64,
    content: Content,
}

/// Counts by one lock until told to stop or until the node dies, and says what it sees each time.
fn tell(node: &Node, addr: u64, stop: &AtomicBool, seen: &Local<Vec<Seen>>) {
    let Ok(mutex) = Mutex::<u64>::attach(node, addr) else {
        return;
    };
    while !stop.load(SeqCst) {
        let Ok(mut held) = mutex.lock() else { return };
        let value = held.get();
        held.set(value + 1);
        seen.lock().unwrap().push(Seen {
            node: node.id(),
            token: held.token(),
            value,
            content: held.content(),
        });
        drop(held);
        // The record is to stay short while a node has the lock for itself.
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn nodes_that_die_one_after_the_other_leave_one_history() {
    let cluster = Cluster::new("history", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made: Mutex<u64> = Mutex::create(&first.node(0), 0).unwrap();
    let (stop, seen) = (AtomicBool::new(false), Local::new(Vec::new()));
    std::thread::scope(|scope| {
        let work = |node: Node| {
            let (addr, stop, seen) = (made.addr(), &stop, &seen);
            scope.spawn(move || tell(&node, addr, stop, seen));
        };
        let by = |node: u16| {
            let seen = seen.lock().unwrap();
            seen.iter().filter(|seen| seen.node == node).count()
        };
        let all_work = |before: [usize; 3]| {
            until(|| (0..3).all(|node| by(node) > before[usize::from(node)] + 30));
        };
        work(first.node(0));
        let mut racks = [(1, second), (2, third)].map(Some);
        for _ in 0..2 {
            for slot in &mut racks {
                let (id, rack) = slot.take().unwrap();
                work(rack.node(id));
                *slot = Some((id, rack));
            }
            all_work([0, 1, 2].map(by));
            for slot in &mut racks {
                let (id, rack) = slot.take().unwrap();
                cluster.kill(Role::Node(id as u16), rack);
                let before = by(0);
                until(|| by(0) > before + 30);
                *slot = Some((id, cluster.node(id)));
            }
        }
        stop.store(true, SeqCst);
    });
    let seen = seen.into_inner().unwrap();
    let mut last = &seen[0];
    let mut told = 0;
    for now in &seen[1..] {
        // Who was inside when its node died may tell of it late; it has been fenced.
        if now.token < last.token {
            assert_ne!(now.node, 0);
            continue;
        }
        match now.content {
            Content::Current => assert_eq!(now.value, last.value + 1, "not what was left"),
            content => {
                assert!(now.value <= last.value + 1, "{content:?}");
                told += 1;
            }
        }
        last = now;
    }
    eprintln!("{} entries, {told} of them told of a death", seen.len());
}

#[test]
fn locks_of_an_array_live_through_deaths_and_begin_anew_with_their_home() {
    for fabric in ["udp", "shm"] {
        let cluster = Cluster::new("array", fabric);
        let (_switch, [first, second, third]) = cluster.start();
        let nodes = [first.node(0), second.node(1), third.node(2)];
        let addr = nodes[0].alloc_bytes_on(1, 64).unwrap();
        let [here, _, there] = [0, 1, 2].map(|id: usize| {
            let attached = RwLockArray::attach(&nodes[id], addr, 4, 64);
            attached.unwrap()
        });
        let write = |locks: &RwLockArray, index: usize, value: u64| {
            let mut held = locks.write_within(index, LONG).unwrap().unwrap();
            let (content, old) = (held.content(), held.view().u64(0));
            held.view_mut(8).set_u64(0, value);
            (content, old)
        };
        for index in 0..4 {
            assert_eq!(write(&here, index, 1), (Content::Current, 0));
        }
        assert_eq!(write(&there, 0, 2), (Content::Current, 1));
        // This one is handed on; what is written to the first dies with its writer.
        assert_eq!(write(&there, 1, 2), (Content::Current, 1));
        assert_eq!(write(&here, 1, 3), (Content::Current, 2));
        cluster.kill(Role::Node(2), third);
        assert_eq!(write(&here, 0, 4), (Content::OwnerDied, 1));
        assert_eq!(write(&here, 0, 5), (Content::Current, 4));
        assert_eq!(write(&here, 1, 6), (Content::Current, 3));

        let before = nodes[0].incarnation_of(1);
        cluster.kill(Role::Node(1), second);
        until(|| {
            matches!(
                here.read_within(2, LONG),
                Err(LockError::Rack(RackError::NodeLost { node: 1 }))
            )
        });
        // Nobody has used this one there.
        assert!(matches!(
            here.read_within(3, LONG),
            Err(LockError::Rack(RackError::NodeLost { node: 1 }))
        ));
        let back = cluster.node(1);
        until(|| nodes[0].incarnation_of(1) > before && nodes[0].is_member(1));
        assert!(matches!(
            here.read_within(3, LONG),
            Err(LockError::Rack(RackError::NodeLost { node: 1 }))
        ));
        let addr = nodes[0].alloc_bytes_on(1, 64).unwrap();
        let here = RwLockArray::attach(&nodes[0], addr, 4, 64).unwrap();
        assert_eq!(write(&here, 3, 1), (Content::Current, 0));
        let there = RwLockArray::attach(&back.node(1), addr, 4, 64).unwrap();
        assert_eq!(write(&there, 3, 2), (Content::Current, 1));
    }
}

#[test]
fn a_node_that_leaves_does_not_take_along_that_another_has_died() {
    let cluster = Cluster::new("both", "udp");
    let (_switch, [first, second, third]) = cluster.start();
    let made: RwLock<u64> = RwLock::create(&first.node(0), 1).unwrap();
    let near: RwLock<u64> = RwLock::attach(&second.node(1), made.addr()).unwrap();
    let far: RwLock<u64> = RwLock::attach(&third.node(2), made.addr()).unwrap();
    near.write().unwrap().set(2);
    far.write().unwrap().set(3);
    cluster.kill(Role::Node(2), third);
    until(|| !first.node(0).is_member(2) && !second.node(1).is_member(2));
    // What the dead node was handed is here, and goes home.
    until(|| match second.node(1).metrics().rebuilds.done {
        0 => false,
        _ => first.node(0).metrics().rebuilds.done > 0,
    });
    second.leave().unwrap();
    let held = made.write().unwrap();
    assert_eq!((held.get(), held.content()), (2, Content::OwnerDied));
}

#[test]
fn what_had_a_name_and_died_with_its_home_is_made_anew_by_one_call() {
    for fabric in ["udp", "shm"] {
        let cluster = Cluster::new("renewed", fabric);
        let (_switch, [first, second, third]) = cluster.start();
        let (zero, two) = (first.node(0), third.node(2));
        let one = second.node(1);
        let counter: Mutex<u64> = Mutex::named(&one, "counter", 5).unwrap();
        counter.lock().unwrap().set(6);
        let _: RwLock<u64> = RwLock::named(&one, "table", 7).unwrap();
        Condvar::named(&one, "bell").unwrap();
        let (_, made) = one.region("region", 4096, 9).unwrap();
        let far: Mutex<u64> = Mutex::named(&zero, "counter", 0).unwrap();
        assert!(made && far.lock().unwrap().get() == 6);
        drop((counter, one));
        cluster.kill(Role::Node(1), second);
        // Whether its home is away, or back with other memory, is the same to what it had.
        let mut fresh = None;
        for round in 0..2u64 {
            let lost = |error: RegionError, name: &str| match error {
                RegionError::NameLost { name: lost, node } => {
                    assert_eq!((&*lost, node), (name, 1))
                }
                other => panic!("{other}"),
            };
            until(|| far.lock().is_err() && (round == 0 || zero.incarnation_of(1) == 2));
            assert!(matches!(
                far.lock().err(),
                Some(LockError::Rack(RackError::NodeLost { node: 1 }))
            ));
            if round == 0 {
                lost(
                    Mutex::named(&zero, "counter", 0u64).err().unwrap(),
                    "counter",
                );
                lost(RwLock::named(&zero, "table", 0u64).err().unwrap(), "table");
                lost(Condvar::named(&zero, "bell").err().unwrap(), "bell");
                lost(zero.region("region", 4096, 9).err().unwrap(), "region");
                // All at once: one makes it, and all have the same.
                std::thread::scope(|scope| {
                    for node in [&zero, &two, &zero, &two] {
                        scope.spawn(|| {
                            until(|| node.incarnation_of(1) != 1 || !node.is_member(1));
                            let counter = Mutex::renewed(node, "counter", 100u64).unwrap();
                            counter.lock().unwrap().update(|n| n + 1);
                            let table = RwLock::renewed(node, "table", 200u64).unwrap();
                            table.write().unwrap().update(|n| n + 1);
                        });
                    }
                });
                Condvar::renewed(&zero, "bell").unwrap();
                fresh = Some(cluster.node(1));
            }
            let nodes = [&zero, &two, &fresh.as_ref().unwrap().node(1)].map(Node::clone);
            for node in &nodes {
                let counter: Mutex<u64> = Mutex::named(node, "counter", 0).unwrap();
                assert_eq!(counter.lock().unwrap().get(), 104);
                assert_eq!(counter.lock().unwrap().content(), Content::Current);
                let table: RwLock<u64> = RwLock::renewed(node, "table", 0).unwrap();
                assert_eq!(table.read().unwrap().get(), 204);
                Condvar::named(node, "bell").unwrap();
            }
        }
        // Its home has been back for a while when somebody asks for this one.
        let node = fresh.as_ref().unwrap().node(1);
        assert!(matches!(
            two.region("region", 4096, 9),
            Err(RegionError::NameLost { node: 1, .. })
        ));
        let (addr, anew) = node.renewed_region("region", 4096, 9).unwrap();
        assert_eq!((anew, node.incarnation_at(addr)), (true, 2));
        assert_eq!(
            zero.renewed_region("region", 4096, 9).unwrap(),
            (addr, false)
        );
    }
}
