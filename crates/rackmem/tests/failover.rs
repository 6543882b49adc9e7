//! Members of a real rack, over UDP and through shared memory, die, restart,
//! come and leave while others work.

use rackmem::locked::BlockLock;
use rackmem::membership::Source;
use rackmem::{
    AccessError, AllocError, Config, LeaveError, Node, Rack, RackError, RegionError, RegionSpec,
    Shared,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Leases to try, in milliseconds. Members whose machine stands still for as long as one are
/// excluded, as they must be; so a claim that fails on such a machine is tried with a longer one.
const LEASES: [u64; 3] = [1_500, 6_000, 24_000];
/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

thread_local! {
    static LEASE: Cell<u64> = const { Cell::new(LEASES[0]) };
}

/// How long threads of this process did not get a processor, at the longest.
struct Stalls {
    longest: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Stalls {
    fn watch() -> Stalls {
        let stalls = Stalls {
            longest: Arc::default(),
            over: Arc::default(),
        };
        let (longest, over) = (stalls.longest.clone(), stalls.over.clone());
        std::thread::spawn(move || {
            while !over.load(SeqCst) {
                let began = Instant::now();
                std::thread::sleep(Duration::from_millis(5));
                longest.fetch_max(began.elapsed().as_millis() as u64, SeqCst);
            }
        });
        stalls
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
    }
}

/// Runs a claim with the first lease that the machine can keep.
fn with_a_lease_that_holds(claim: impl Fn()) {
    for lease in LEASES {
        LEASE.set(lease);
        let stalls = Stalls::watch();
        let Err(panic) = catch_unwind(AssertUnwindSafe(&claim)) else {
            return;
        };
        let stall = stalls.longest.load(SeqCst);
        // A member renews its lease five times in a lease: two of them missed are already a doubt.
        if stall < lease / 3 || lease == LEASES[2] {
            resume_unwind(panic);
        }
        eprintln!("threads stood still for {stall} ms, and a lease is {lease} ms: a longer one");
    }
}

struct Cluster {
    config: Config,
    folder: PathBuf,
}

impl Cluster {
    /// A rack of so many nodes and a switch that nobody has started yet.
    fn new(name: &str, fabric: &str, nodes: usize) -> Cluster {
        let name = format!("rackmem-{name}-{fabric}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let addresses: Vec<String> = rackmem_hosts::addresses(nodes + 1)
            .iter()
            .map(|address| format!("\"{address}\""))
            .collect();
        let lease = LEASE.get();
        let text = format!(
            "fabric = \"{fabric}\"\nnodes = [{}]\nswitch = {}\nmembership = \"dir:{}\"\nlease_ms = {lease}\n\
             memory = {}\ncache = {}\npatience_ms = {}",
            addresses[1..].join(", "),
            addresses[0],
            folder.display(),
            64 << 20,
            1 << 20,
            LONG.as_millis(),
        );
        Cluster {
            config: Config::parse(&text).unwrap(),
            folder,
        }
    }

    fn node(&self, id: usize) -> Rack {
        Rack::join(&self.config, id).unwrap()
    }

    /// So many nodes, whose racks can be taken away.
    fn nodes(&self, count: usize) -> (Vec<Option<Rack>>, Vec<Node>) {
        let racks: Vec<Rack> = (0..count).map(|id| self.node(id)).collect();
        let nodes = racks.iter().enumerate().map(|(id, rack)| rack.node(id));
        let nodes = nodes.collect();
        (racks.into_iter().map(Some).collect(), nodes)
    }

    fn switch(&self) -> Rack {
        Rack::serve_switch(&self.config).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn counters(node: &Node, count: usize) -> Vec<Shared<u64>> {
    (0..count)
        .map(|_| node.alloc_isolated(0).unwrap())
        .collect()
}

/// Ends the work of others also when this thread panics, so that the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Threads of these nodes add to counters until told to stop; how often each counter was added to.
struct Work {
    added: Vec<AtomicU64>,
    stop: AtomicBool,
}

impl Work {
    fn new(counters: usize) -> Work {
        Work {
            added: (0..counters).map(|_| AtomicU64::new(0)).collect(),
            stop: AtomicBool::new(false),
        }
    }

    fn run(&self, node: &Node, addresses: &[u64]) {
        let mine: Vec<Shared<u64>> = addresses
            .iter()
            .map(|addr| node.attach(*addr).unwrap())
            .collect();
        let mut at = usize::from(node.id());
        while !self.stop.load(SeqCst) {
            at += 1;
            let which = at % mine.len();
            mine[which].fetch_add(1).unwrap();
            self.added[which].fetch_add(1, SeqCst);
        }
    }

    fn total(&self) -> u64 {
        self.added.iter().map(|n| n.load(SeqCst)).sum()
    }

    fn progress(&self, what: &str) {
        let before = self.total();
        eventually(what, || self.total() > before + 200);
    }
}

fn work_goes_on_when_the_switch_dies_and_another_comes(fabric: &str) {
    let cluster = Cluster::new("switch", fabric, 3);
    let switch = cluster.switch();
    let racks: Vec<Rack> = (0..3).map(|id| cluster.node(id)).collect();
    let nodes: Vec<Node> = racks.iter().enumerate().map(|(i, r)| r.node(i)).collect();
    let mut all = Vec::new();
    for node in &nodes {
        all.extend(counters(node, 3));
    }
    let addresses: Vec<u64> = all.iter().map(Shared::addr).collect();
    let work = Work::new(addresses.len());
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for node in &nodes {
            let (work, addresses) = (&work, &addresses);
            threads.push(scope.spawn(move || work.run(node, addresses)));
        }
        let _stop = Stop(&work.stop);
        eventually("entries move to the switch", || {
            switch.metrics().switch.unwrap().entries > 0
        });
        work.progress("work with a switch");
        drop(switch);
        eventually("everyone is in an epoch without a switch", || {
            racks
                .iter()
                .all(|r| r.view().is_some_and(|v| v.switch.is_none()))
        });
        work.progress("work without a switch");
        let fresh = cluster.switch();
        eventually("hot entries are in the fresh switch", || {
            fresh.metrics().switch.unwrap().entries > 0
        });
        work.progress("work with the fresh switch");
        work.stop.store(true, SeqCst);
        // Requesters must not wait for it while they end.
        for thread in threads {
            thread.join().unwrap();
        }
        drop(fresh);
    });
    for (counter, added) in all.iter().zip(&work.added) {
        assert_eq!(counter.read().unwrap(), added.load(SeqCst));
    }
    let metrics = racks[0].metrics();
    assert!(metrics.nodes[0].rebuilds.done >= 2);
    assert_eq!(metrics.nodes[0].home.lost, 0);
}

fn a_dead_nodes_memory_is_lost_and_says_so_and_the_rest_goes_on(fabric: &str) {
    let cluster = Cluster::new("node", fabric, 3);
    let switch = cluster.switch();
    let (mut racks, nodes) = cluster.nodes(3);
    let kept = counters(&nodes[0], 2);
    let dirty: Shared<u64> = nodes[1].alloc_isolated(0).unwrap();
    let gone = counters(&nodes[2], 1);
    // The dead node will have the only copy of this one.
    let theirs: Shared<u64> = nodes[2].attach(dirty.addr()).unwrap();
    theirs.write(7).unwrap();
    let here: Shared<u64> = nodes[1].attach(gone[0].addr()).unwrap();
    here.write(5).unwrap();
    let addresses: Vec<u64> = kept.iter().map(Shared::addr).collect();
    let work = Work::new(2);
    std::thread::scope(|scope| {
        for node in &nodes[..2] {
            let (work, addresses) = (&work, &addresses);
            scope.spawn(move || work.run(node, addresses));
        }
        let _stop = Stop(&work.stop);
        work.progress("work of two");
        let before = [0, 1].map(|at| {
            let rack: &Rack = racks[at].as_ref().unwrap();
            rack.metrics().nodes[0].rebuilds.done
        });
        drop(racks[2].take());
        eventually("the others have gone on without it", || {
            let rebuilds = |at: usize| racks[at].as_ref().unwrap().metrics().nodes[0].rebuilds;
            rebuilds(0).done > before[0] && rebuilds(1).done > before[1]
        });
        work.progress("work without the dead");
        work.stop.store(true, SeqCst);
    });
    for (counter, added) in kept.iter().zip(&work.added) {
        assert_eq!(counter.read().unwrap(), added.load(SeqCst));
    }
    assert!(matches!(
        here.read(),
        Err(AccessError::Rack(RackError::NodeLost { node: 2 }))
    ));
    assert!(matches!(
        here.fetch_add(1),
        Err(AccessError::Rack(RackError::NodeLost { node: 2 }))
    ));
    let lost = |node: &Node| node.load(dirty.addr());
    assert!(matches!(lost(&nodes[0]), Err(AccessError::Lost { .. })));
    assert!(matches!(lost(&nodes[1]), Err(AccessError::Lost { .. })));
    // What it held before the dead node wrote to it is all there is.
    nodes[0].accept_loss(dirty.addr()).unwrap();
    assert_eq!(lost(&nodes[0]).unwrap(), 0);
    dirty.fetch_add(3).unwrap();
    assert_eq!(lost(&nodes[0]).unwrap(), 3);
    // The node comes back with new memory: old addresses are never used again.
    let again = cluster.node(2);
    let fresh = counters(&again.node(2), 1);
    assert_ne!(fresh[0].addr(), gone[0].addr());
    eventually("the others admit it", || {
        let view = racks[0].as_ref().unwrap().view().unwrap();
        view.live.contains(2)
    });
    let far: Shared<u64> = nodes[0].attach(fresh[0].addr()).unwrap();
    assert_eq!(far.fetch_add(1).unwrap(), 0);
    assert!(matches!(
        nodes[0].load(gone[0].addr()),
        Err(AccessError::Lost { .. })
    ));
    drop(switch);
}

/// A node goes through more than its cache holds, of two homes, one of which dies with blocks that
/// are leaving for it.
fn a_home_dies_whose_blocks_leave_ahead_of_need(fabric: &str) {
    const BLOCKS: usize = 300;
    let cluster = Cluster::new("leaving", fabric, 3);
    let switch = cluster.switch();
    let (mut racks, nodes) = cluster.nodes(3);
    let [kept, gone] = [1, 2].map(|home| {
        let base = nodes[home].alloc_bytes(BLOCKS * 4096).unwrap();
        let addrs: Vec<u64> = (0..BLOCKS as u64).map(|nth| base + nth * 4096).collect();
        addrs
    });
    let (scans, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let in_doubt = AtomicU64::new(0);
    let add = |addr| nodes[0].fetch_update(addr, |old| Some(old + 1));
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        let scanner = scope.spawn(|| {
            while !stop.load(SeqCst) {
                for (kept, gone) in kept.iter().zip(&gone) {
                    if add(*kept).is_err() {
                        in_doubt.fetch_add(1, SeqCst);
                    }
                    let _ = add(*gone);
                }
                scans.fetch_add(1, SeqCst);
            }
        });
        let ahead = || nodes[0].metrics().events.evicted_ahead;
        let goes_on = |what: &str| {
            let (before, seen) = (scans.load(SeqCst), ahead());
            eventually(what, || {
                scanner.is_finished() || scans.load(SeqCst) > before && ahead() > seen
            });
        };
        goes_on("blocks of both leave ahead of need");
        let rebuilds = || racks[0].as_ref().unwrap().metrics().nodes[0].rebuilds.done;
        let before = rebuilds();
        let dead = racks[2].take();
        drop(dead);
        let rebuilds = || racks[0].as_ref().unwrap().metrics().nodes[0].rebuilds.done;
        eventually("the others have gone on without it", || rebuilds() > before);
        goes_on("blocks of one do");
        stop.store(true, SeqCst);
        scanner.join().unwrap();
    });
    let (scans, in_doubt) = (scans.load(SeqCst), in_doubt.load(SeqCst));
    for addr in kept {
        // Of another node: none is locked, and nothing is lost.
        let added = nodes[1].load(addr).unwrap();
        assert!(scans - in_doubt <= added && added <= scans, "{added}");
    }
    drop(switch);
}

/// The table of names shares its blocks, so the only copy of one may be where nobody wanted it to
/// be.
fn names_live_through_the_death_of_who_had_them_last(fabric: &str) {
    const TABLE: u64 = 256 << 10;
    let cluster = Cluster::new("names", fabric, 3);
    let _switch = cluster.switch();
    let (mut racks, nodes) = cluster.nodes(3);
    let (theirs, made) = nodes[2].region_on(1, "theirs", 64, 1).unwrap();
    let (ours, _) = nodes[0].region("ours", 64, 1).unwrap();
    assert!(made);
    nodes[1].store(theirs, 7).unwrap();
    for at in (0..TABLE).step_by(nodes[2].block_size()) {
        nodes[2].fetch_add(at, 0).unwrap();
    }
    let before = racks[1].as_ref().unwrap().metrics().nodes[0].rebuilds.done;
    drop(racks[2].take());
    eventually("the others have gone on without it", || {
        racks[1].as_ref().unwrap().metrics().nodes[0].rebuilds.done > before
    });
    assert_eq!(nodes[1].find_region("ours", 1).unwrap(), (ours, 64));
    assert_eq!(
        nodes[1].region("theirs", 64, 1).unwrap(),
        (theirs, false),
        "nobody makes it anew"
    );
    assert_eq!(nodes[0].load(theirs).unwrap(), 7);
    let (later, made) = nodes[1].region("later", 64, 1).unwrap();
    assert!(made && later != theirs);
}

/// The remover had the only copies of the table's blocks, and dies before it can do anything more.
fn a_region_is_removed_by_who_dies_then(fabric: &str) {
    const TABLE: u64 = 256 << 10;
    let cluster = Cluster::new("removed", fabric, 3);
    let _switch = cluster.switch();
    let (mut racks, nodes) = cluster.nodes(3);
    let old = RegionSpec::new("theirs", 1 << 20).on(1);
    let handle = nodes[0].create_region(&old).unwrap();
    let hers = nodes[2]
        .create_region(&RegionSpec::new("hers", 64))
        .unwrap();
    let kept = nodes[1]
        .create_region(&RegionSpec::new("kept", 64))
        .unwrap();
    let given = |node: &Node| node.metrics().memory.given;
    let most = given(&nodes[1]);
    for at in (0..TABLE).step_by(nodes[2].block_size()) {
        nodes[2].fetch_add(at, 0).unwrap();
    }
    let before = racks[1].as_ref().unwrap().metrics().nodes[0].rebuilds.done;
    nodes[2].remove_region("theirs").unwrap();
    drop(racks[2].take());
    eventually("the others have gone on without it", || {
        racks[1].as_ref().unwrap().metrics().nodes[0].rebuilds.done > before
    });
    assert!(matches!(handle.check(), Err(RegionError::Removed { .. })));
    assert!(matches!(
        handle.write(0, &[1]),
        Err(RegionError::Removed { .. })
    ));
    assert!(matches!(
        nodes[0].open_region(&old),
        Err(RegionError::NotFound { .. })
    ));
    kept.check().unwrap();
    // Whether its memory came home before the remover died is not known.
    assert!(given(&nodes[1]) <= most);
    let new = RegionSpec::new("theirs", 4096).element(8);
    let new = nodes[1].create_region(&new).unwrap();
    assert!(new.is_new());
    // What died with its home is in the way of nobody.
    let spec = RegionSpec::new("hers", 128);
    let lost = nodes[0].open_region(&RegionSpec::new("hers", 64));
    assert!(matches!(lost, Err(RegionError::NameLost { node: 2, .. })));
    nodes[0].remove_region("hers").unwrap();
    let again = nodes[1].create_region(&spec).unwrap();
    assert!(again.is_new() && again.addr() != hers.addr());
    let listed = nodes[0].regions().unwrap();
    let names: Vec<_> = listed.iter().map(|region| region.spec.name()).collect();
    assert_eq!(names, ["hers", "kept", "theirs"]);
}

/// A node writes memory of another one, gives part of it back, and dies with the only copies.
fn what_died_with_a_node_is_handed_out_as_zeros(fabric: &str) {
    const RUN: usize = 100_000;
    let cluster = Cluster::new("zeros", fabric, 3);
    let _switch = cluster.switch();
    let (mut racks, nodes) = cluster.nodes(3);
    let run = nodes[1].alloc_bytes(RUN).unwrap();
    let small: Vec<u64> = (0..40)
        .map(|_| nodes[1].alloc_bytes(100).unwrap())
        .collect();
    nodes[2].write(run, &vec![1; RUN]).unwrap();
    for addr in &small {
        nodes[2].write(*addr, &[1; 100]).unwrap();
    }
    let before = racks[1].as_ref().unwrap().metrics().nodes[0].rebuilds.done;
    drop(racks[2].take());
    eventually("the others have gone on without it", || {
        racks[1].as_ref().unwrap().metrics().nodes[0].rebuilds.done > before
    });
    // Of each block of small objects some stay allocated, and lost.
    let (freed, stays) = small.split_at(20);
    for addr in freed {
        nodes[1].free_bytes(*addr, 100).unwrap();
    }
    nodes[1].free_bytes(run, RUN).unwrap();
    let zeros = |addr, len| {
        let mut bytes = vec![1; len];
        nodes[0].read(addr, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 0), "{len} at {addr:#x}");
    };
    for node in &nodes[..2] {
        let anew = node.alloc_bytes_on(1, RUN).unwrap();
        zeros(anew, RUN);
        for _ in 0..30 {
            zeros(node.alloc_bytes_on(1, 100).unwrap(), 100);
        }
    }
    for addr in stays {
        let read = nodes[0].read(*addr, &mut [0; 100]);
        assert!(matches!(read, Err(AccessError::Lost { .. })));
    }
}

fn a_node_that_gives_no_memory_leaves_without_a_pause(fabric: &str) {
    let cluster = Cluster::new("leave", fabric, 2);
    let first = cluster.node(0);
    let second = cluster.node(1);
    let counter: Shared<u64> = first.node(0).alloc(0).unwrap();
    let far: Shared<u64> = second.node(1).attach(counter.addr()).unwrap();
    far.fetch_add(5).unwrap();
    let epoch = first.view().unwrap().epoch;
    second.leave().unwrap();
    assert_eq!(counter.read().unwrap(), 5);
    eventually("it is gone", || !first.view().unwrap().live.contains(1));
    assert_eq!(first.view().unwrap().epoch, epoch, "nobody was fenced");
    assert!(matches!(
        far.read(),
        Err(AccessError::Rack(RackError::Closed))
    ));
    let back = cluster.node(1);
    let far: Shared<u64> = back.node(1).attach(counter.addr()).unwrap();
    assert_eq!(far.fetch_add(1).unwrap(), 5);
    counters(&back.node(1), 1);
    assert!(matches!(back.leave(), Err(LeaveError::InUse { node: 1 })));
}

fn a_node_leaves_memory_behind_that_nobody_needs(fabric: &str) {
    let cluster = Cluster::new("behind", fabric, 3);
    let (mut racks, nodes) = cluster.nodes(3);
    let counter: Shared<u64> = nodes[0].alloc(0).unwrap();
    let far: Shared<u64> = nodes[1].attach(counter.addr()).unwrap();
    let theirs = counters(&nodes[1], 4);
    let seen: Shared<u64> = nodes[2].attach(theirs[0].addr()).unwrap();
    seen.fetch_add(1).unwrap();
    nodes[1].withhold_memory(true);
    for node in &nodes {
        let more = node.alloc_bytes_on(1, 1 << 16);
        assert!(matches!(more, Err(AllocError::OutOfMemory { node: 1 })));
    }
    nodes[1].withhold_memory(false);
    assert!(nodes[2].alloc_bytes_on(1, 1 << 16).is_ok());
    far.fetch_add(5).unwrap();
    racks[1].take().unwrap().leave_memory_behind().unwrap();
    // What it had last is at home, and nobody waits for a lease.
    assert_eq!(counter.read().unwrap(), 5);
    let live = |rack: &Option<Rack>| rack.as_ref().unwrap().view().unwrap().live;
    // Each hears of it in its own time, and reads what it has cached until then.
    eventually("it is gone", || {
        !live(&racks[0]).contains(1) && !live(&racks[2]).contains(1)
    });
    let lost = seen.read();
    let gone = RackError::NodeLost { node: 1 };
    assert!(
        matches!(&lost, Err(AccessError::Rack(err)) if *err == gone),
        "{lost:?}"
    );
    let back = cluster.node(1);
    let far: Shared<u64> = back.node(1).attach(counter.addr()).unwrap();
    assert_eq!(far.fetch_add(1).unwrap(), 5);
    assert_eq!(nodes[2].blocks_lost(), 0);
}

fn a_new_shadow_reads_back_what_is_in_the_switch(fabric: &str) {
    let cluster = Cluster::new("shadow", fabric, 3);
    let switch = cluster.switch();
    let (mut racks, nodes) = cluster.nodes(3);
    let hot = counters(&nodes[1], 8);
    let far: Vec<Shared<u64>> = hot
        .iter()
        .map(|counter| nodes[2].attach(counter.addr()).unwrap())
        .collect();
    let entries = || switch.metrics().switch.unwrap().entries;
    eventually("all entries are in the switch", || {
        for (here, there) in hot.iter().zip(&far) {
            here.fetch_add(1).unwrap();
            there.fetch_add(1).unwrap();
        }
        entries() == hot.len()
    });
    let shadow = |rack: &Option<Rack>| rack.as_ref().unwrap().metrics().nodes[0].shadow;
    assert!(shadow(&racks[0]).is_some() && shadow(&racks[1]).is_none());
    let epoch = racks[1].as_ref().unwrap().view().unwrap().epoch;
    racks[0].take().unwrap().leave().unwrap();
    eventually("the new shadow knows them", || {
        shadow(&racks[1]).is_some_and(|shadow| shadow.blocks == hot.len())
    });
    assert_eq!(racks[1].as_ref().unwrap().view().unwrap().epoch, epoch);
    assert_eq!(entries(), hot.len(), "nobody had to stop");
    for (here, there) in hot.iter().zip(&far) {
        assert_eq!(here.read().unwrap(), there.read().unwrap());
    }
}

/// Blocks that are written at their home for others are there when the writer is told so,
/// whatever epochs end meanwhile.
fn bulk_writes_go_on_through_epochs_and_end_with_their_home(fabric: &str) {
    const LEN: usize = 1 << 18;
    let cluster = Cluster::new("bulk", fabric, 3);
    let switch = cluster.switch();
    let (mut racks, nodes) = cluster.nodes(3);
    let slice = nodes[0].alloc_slice::<u64>(LEN).unwrap();
    let there = nodes[1].attach_slice::<u64>(slice.addr(), LEN).unwrap();
    let doomed = nodes[2].alloc_slice::<u64>(LEN).unwrap();
    let doomed = nodes[1].attach_slice::<u64>(doomed.addr(), LEN).unwrap();
    let (rounds, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let round = |what: &str| {
        let before = rounds.load(SeqCst);
        eventually(what, || rounds.load(SeqCst) > before + 2);
    };
    let why = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !stop.load(SeqCst) {
                let value = rounds.fetch_add(1, SeqCst);
                there.write_from(0, &vec![value; LEN]).unwrap();
                let read = slice.to_vec(0..LEN).unwrap();
                assert!(read.iter().all(|found| *found == value), "round {value}");
            }
        });
        let _stop = Stop(&stop);
        round("writes with a switch");
        drop(switch);
        eventually("everyone is in an epoch without a switch", || {
            let views = racks.iter().flatten().map(|rack| rack.view().unwrap());
            views.into_iter().all(|view| view.switch.is_none())
        });
        round("writes without a switch");
        let _fresh = cluster.switch();
        let victim = scope.spawn(|| {
            let values = vec![7; LEN];
            loop {
                if let Err(why) = doomed.write_from(0, &values) {
                    return why;
                }
            }
        });
        let reader = scope.spawn(|| {
            let mut out = vec![0; LEN];
            loop {
                if let Err(why) = doomed.read_into(0, &mut out) {
                    return why;
                }
            }
        });
        round("writes with a fresh switch");
        drop(racks[2].take());
        let why = [victim.join().unwrap(), reader.join().unwrap()];
        round("writes without the dead");
        stop.store(true, SeqCst);
        writer.join().unwrap();
        why
    });
    let gone = AccessError::Rack(RackError::NodeLost { node: 2 });
    for why in why {
        let lost = matches!(why.error, AccessError::Lost { .. });
        assert!((why.error == gone || lost) && why.done < LEN, "{why}");
    }
}

fn an_applications_lock_outlives_the_switch(fabric: &str) {
    let cluster = Cluster::new("lock", fabric, 2);
    let switch = cluster.switch();
    let racks: Vec<Rack> = (0..2).map(|id| cluster.node(id)).collect();
    let lock = BlockLock::create(&racks[0].node(0)).unwrap();
    let same = BlockLock::attach(&racks[1].node(1), lock.addr()).unwrap();
    let held = lock.write().unwrap();
    assert!(same.try_read().unwrap().is_none());
    drop(switch);
    eventually("the rack goes on without a switch", || {
        let done = |rack: &Rack| rack.view().is_some_and(|view| view.switch.is_none());
        racks.iter().all(done)
    });
    assert!(
        same.read_within(Duration::from_millis(50))
            .unwrap()
            .is_none()
    );
    drop(held);
    eventually("it is free", || same.try_write().unwrap().is_some());
}

/// One member cannot look at the store of members while another one comes, tells it an address by
/// other ways, and waits: longer than the second that it once had until it said that the other one
/// was lost. Its lease is long: what is late here is what it hears, and not what it tells.
#[test]
fn who_hears_late_of_a_member_waits_and_does_not_call_it_lost() {
    LEASE.set(LEASES[2]);
    for fabric in ["udp", "shm"] {
        let cluster = Cluster::new("late", fabric, 3);
        let mirror = cluster.folder.join("mirror");
        let shows = || std::os::unix::fs::symlink(&cluster.folder, &mirror).unwrap();
        shows();
        let mut sees_the_mirror = cluster.config.clone();
        sees_the_mirror.membership.source = Source::Folder(mirror.clone());
        let _first = cluster.node(0);
        let second = Rack::join(&sees_the_mirror, 1).unwrap();
        let late = second.node(1);
        std::fs::remove_file(&mirror).unwrap();
        let third = cluster.node(2);
        let counter = third.node(2).alloc_isolated(7u64).unwrap();
        std::thread::scope(|scope| {
            let read = scope.spawn(|| late.load(counter.addr()));
            std::thread::sleep(Duration::from_millis(1_500));
            assert!(!read.is_finished(), "it says {:?}", read.join());
            shows();
            assert_eq!(read.join().unwrap(), Ok(7));
        });
    }
}

/// The same claims on every fabric that connects processes.
macro_rules! over {
    ($fabric:ident: $($claim:ident)*) => {
        mod $fabric {
            $(#[test]
            fn $claim() {
                super::with_a_lease_that_holds(|| super::$claim(stringify!($fabric)));
            })*
        }
    };
    ($($fabric:ident)*) => {
        $(over! { $fabric:
            work_goes_on_when_the_switch_dies_and_another_comes
            a_dead_nodes_memory_is_lost_and_says_so_and_the_rest_goes_on
            a_home_dies_whose_blocks_leave_ahead_of_need
            a_node_that_gives_no_memory_leaves_without_a_pause
            a_node_leaves_memory_behind_that_nobody_needs
            a_region_is_removed_by_who_dies_then
            what_died_with_a_node_is_handed_out_as_zeros
            a_new_shadow_reads_back_what_is_in_the_switch
            an_applications_lock_outlives_the_switch
            bulk_writes_go_on_through_epochs_and_end_with_their_home
            names_live_through_the_death_of_who_had_them_last
        })*
    };
}

over! { shm udp }
