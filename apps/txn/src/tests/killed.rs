//! Members die while terminals work on a database that has copies.

use super::{Dying, have_order};
use crate::access::{get, update};
use crate::schema::Takings;
use crate::{
    Access, Cause, Copies, Counts, Deed, Done, Engine, Halt, Layout, Limit, Locks, Plan, Remote,
    Scale, TxnError, Unwatched, check, drive_since, load, load_for,
};
use rackmem::diagnostics::Faults;
use rackmem::membership::{self, Folder, Role};
use rackmem::{Config, Rack};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const NODES: usize = 4;
const THREADS: usize = 2;
const SEED: u64 = 3;
/// How long anything may take.
const LONG: Duration = Duration::from_secs(60);

/// Members of a rack, each with an engine of its own as processes have them.
struct Cluster {
    folder: PathBuf,
    config: Config,
    racks: Vec<Option<Rack>>,
    engines: Vec<Locks>,
}

/// A node's engine.
fn engine(rack: &Rack, id: usize) -> Locks {
    let scale = Scale {
        items: 40,
        customers: 12,
        room: 1_000,
        ..Scale::of(4)
    };
    let copies = Copies {
        copies: 3,
        terminals: THREADS,
    };
    let layout = Layout::new(scale, NODES).unwrap();
    Locks::with_copies(&[rack.node(id)], layout, &copies).unwrap()
}

/// Something of each node, by a thread for each.
fn all<T: Send>(of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let of = &of;
        let each: Vec<_> = (0..NODES).map(|id| scope.spawn(move || of(id))).collect();
        each.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

impl Cluster {
    /// With a database that is loaded.
    fn new(name: &str) -> Cluster {
        Cluster::under(name, Faults::NONE)
    }

    /// The same where packets suffer that.
    fn under(name: &str, faults: Faults) -> Cluster {
        let cluster = Cluster::empty(name, faults);
        all(|id| load(&cluster.engines[id], SEED, &Unwatched).unwrap());
        cluster
    }

    /// With a database that nobody has loaded.
    fn empty(name: &str, faults: Faults) -> Cluster {
        let name = format!("rackmem-txn-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let addresses = rackmem_hosts::addresses(NODES);
        let quoted: Vec<String> = addresses.iter().map(|it| format!("\"{it}\"")).collect();
        // Members are declared dead, and not found so.
        let text = format!(
            "nodes = [{}]\nmembership = \"dir:{}\"\nlease = '20s'\npatience = '60s'\n\
             replace_after = '200ms'\n",
            quoted.join(", "),
            folder.display(),
        );
        let mut config = Config::parse(&text).unwrap();
        config.set_faults(faults);
        let racks = all(|id| Rack::join(&config, id).unwrap());
        let engines = all(|id| engine(&racks[id], id));
        Cluster {
            folder,
            config,
            racks: racks.into_iter().map(Some).collect(),
            engines,
        }
    }

    fn kill(&mut self, dead: usize) {
        self.racks[dead] = None;
        let store = Folder::open(&self.folder.join("rack")).unwrap();
        membership::remove(&store, Role::Node(dead as u16), LONG).unwrap();
    }

    /// A dead node is back, with an engine of its own.
    fn restart(&mut self, id: usize) {
        let rack = Rack::join(&self.config, id).unwrap();
        self.engines[id] = engine(&rack, id);
        self.racks[id] = Some(rack);
    }

    /// Waits until live nodes have all copies: then another node may die.
    fn is_whole(&self) {
        let lives = self.racks.iter().flatten().next().unwrap();
        let node = lives.nodes().first().cloned().unwrap();
        eventually(|| {
            let groups = node.groups();
            let mut copies = groups.iter().flat_map(|group| &group.copies);
            copies.all(|copy| copy.counts && copy.live)
        });
    }

    /// All conditions hold, and what the logs count is what terminals know of, with at most so many
    /// transactions of which they were not told the end.
    fn holds(&self, told: Counts, undecided: u64) {
        let engine = self.survivor();
        let counted = engine.counted(0).unwrap().unwrap();
        let report = check(engine, &counted).unwrap();
        assert!(report.holds(), "{report:?}");
        let sum = |it: Counts| it.orders + it.payments + it.delivered;
        let more = sum(counted) - sum(told);
        assert!(more <= undecided, "{told:?}, and there are {counted:?}");
    }

    fn survivor(&self) -> &Locks {
        let lives = self.racks.iter().position(Option::is_some);
        &self.engines[lives.unwrap()]
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn plan(limit: Limit, seed: u64) -> Plan {
    Plan {
        threads: THREADS,
        limit,
        remote: Remote::Share(40),
        seed,
        deeds: 20_000,
    }
}

/// Counts what terminals do, and ends it.
#[derive(Default)]
struct Counting(AtomicU64, AtomicBool);

impl Counting {
    /// Waits until so many more are done.
    fn more(&self, transactions: u64) {
        let enough = self.0.load(SeqCst) + transactions;
        eventually(|| self.0.load(SeqCst) >= enough);
    }
}

/// Ends what terminals do when it is dropped, also by a panic.
struct Ends<'c>(&'c Counting);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.1.store(true, SeqCst);
    }
}

/// Waits, not for ever.
fn eventually(holds: impl Fn() -> bool) {
    let end = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < end, "it does not come to pass");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl crate::Watch for Counting {
    fn ran(&self) {
        self.0.fetch_add(1, SeqCst);
    }

    fn stop(&self) -> bool {
        self.1.load(SeqCst)
    }
}

/// What is known of terminals after they have ended.
#[derive(Default)]
struct Known {
    counts: Counts,
    deeds: Vec<Deed>,
}

impl Known {
    fn add(&mut self, done: Done) {
        self.counts = self.counts.and(done.tally.counts());
        self.deeds.extend(done.tally.deeds);
    }
}

/// Terminals of all nodes work; two nodes die, one of them that which serves the memory.
#[test]
fn a_database_outlives_its_nodes_while_it_is_used() {
    outlives_nodes(Cluster::new("used"), 100);
}

/// The same, and all packets of the rack may be lost, doubled and late: those of commits to a
/// majority, of locks that go over to others, and of what is settled.
#[test]
fn a_database_outlives_its_nodes_where_packets_are_lost() {
    let faults = Faults {
        loss: 0.01,
        duplication: 0.01,
        delay: 0.01,
        seed: 3,
        ..Faults::NONE
    };
    outlives_nodes(Cluster::under("lossy", faults), 20);
}

/// Transactions between two deaths are `some`, and three times as many afterwards.
fn outlives_nodes(mut cluster: Cluster, some: u64) {
    let began = Instant::now();
    let watch = Counting::default();
    let mut known = Known::default();
    let engines = std::mem::take(&mut cluster.engines);
    std::thread::scope(|scope| {
        let ends = Ends(&watch);
        let drive = |engine| {
            let plan = plan(Limit::Transactions(u64::MAX), 9);
            let watch = &watch;
            scope.spawn(move || drive_since(engine, &plan, watch, began))
        };
        let runs: Vec<_> = engines.iter().map(drive).collect();
        for dead in [3, 0] {
            watch.more(some);
            cluster.is_whole();
            cluster.kill(dead);
        }
        watch.more(3 * some);
        drop(ends);
        for (id, run) in runs.into_iter().enumerate() {
            let (done, error) = run.join().unwrap();
            assert_eq!(error.is_some(), [0, 3].contains(&id), "{id}: {error:?}");
            known.add(done);
        }
    });
    cluster.engines = engines;
    cluster.holds(known.counts, 2 * THREADS as u64);
    let least = 4 * some as usize;
    assert!(known.deeds.len() > least, "{}", known.deeds.len());
    assert!(have_order(&known.deeds), "there is no serial order");
}

/// A node dies at a step of a commit, with all the locks that it has; the others go on, and so does
/// that node when it is back.
#[test]
fn others_go_on_where_a_commit_ends() {
    for (dead, step) in [(3, 0), (3, 3), (0, 2)] {
        let mut cluster = Cluster::new(&format!("step-{dead}-{step}"));
        let mut known = Known::default();
        let began = Instant::now();
        let mut dying = Dying::after(40 + step, 0);
        dying.stays_inside = true;
        cluster.engines[dead].dying = Some(dying);
        let run = |engine: &Locks, seed| {
            let plan = plan(Limit::Transactions(15), seed);
            drive_since(engine, &plan, &Unwatched, began)
        };
        let (done, error) = run(&cluster.engines[dead], 1);
        assert!(matches!(error, Some(TxnError::Broken { .. })), "{error:?}");
        known.add(done);
        cluster.kill(dead);
        let back = step > 0;
        match back {
            true => cluster.restart(dead),
            false => cluster.holds(known.counts, THREADS as u64),
        }
        for lives in (0..NODES).filter(|lives| back || *lives != dead) {
            let (done, error) = run(&cluster.engines[lives], 2);
            assert!(error.is_none(), "{error:?}");
            known.add(done);
        }
        cluster.holds(known.counts, THREADS as u64);
        assert!(have_order(&known.deeds), "there is no serial order");
    }
}

/// A thread that is in the middle of a transaction, and waits for a lock that a node dies with.
#[test]
fn what_a_dead_node_had_locked_is_settled_before_it_is_seen() {
    /// Runs until a thread waits as long for a lock as it ever does.
    const IMPATIENT: usize = 7;
    let mut cluster = Cluster::new("between");
    let mut engines = std::mem::take(&mut cluster.engines);
    let layout = engines[0].layout();
    let both = [layout.takings(1), layout.takings(2)];
    let set = |engine: &Locks, ytd| {
        let put = |it: &mut Takings| it.ytd = ytd;
        let body = &mut |access: &mut dyn Access| {
            let [one, other] = both.map(|cell| update(access, cell, put));
            one.and(other)
        };
        engine.transact(0, body)
    };
    set(&engines[1], 1).unwrap();
    // Its log is written, and the first of its cells.
    let mut dying = Dying::after(2, 0);
    dying.stays_inside = true;
    engines[3].dying = Some(dying);
    let node = engines[1].nodes()[0].clone();
    let mut runs = 0;
    let mut body = |access: &mut dyn Access| {
        runs += 1;
        if runs < IMPATIENT {
            return Err(Halt::Abort(Cause::Lock));
        }
        if runs == IMPATIENT {
            set(&engines[3], 2).unwrap_err();
            cluster.kill(3);
            eventually(|| !node.is_member(3));
        }
        let one: Takings = get(access, both[0])?;
        let other: Takings = get(access, both[1])?;
        Ok((one.ytd, other.ytd))
    };
    let seen = engines[1].transact(0, &mut body).unwrap().value;
    assert_eq!(seen, Some((2, 2)));
}

/// Ends loading after so many districts.
struct Cut(AtomicU64);

impl crate::Watch for Cut {
    fn loaded(&self, _: u64) {
        self.0.fetch_sub(1, SeqCst);
    }

    fn stop(&self) -> bool {
        self.0.load(SeqCst) == 0
    }
}

/// A node has made some of its rows, and has them nowhere but in its own cache, when it dies.
/// Another one makes all of them, and some that were made once more.
#[test]
fn what_a_node_was_loading_another_one_loads() {
    const DEAD: usize = 3;
    let mut cluster = Cluster::empty("loading", Faults::NONE);
    all(|id| match id {
        DEAD => load(&cluster.engines[id], SEED, &Cut(AtomicU64::new(4))).unwrap(),
        _ => load(&cluster.engines[id], SEED, &Unwatched).unwrap(),
    });
    cluster.kill(DEAD);
    let others = &cluster.engines[1];
    let is_whole = |engine| check(engine, &Counts::NONE).is_ok_and(|report| report.holds());
    assert!(!is_whole(others), "rows are missing that nobody has made");
    load_for(others, DEAD, SEED, &Unwatched).unwrap();
    load_for(others, 1, SEED, &Unwatched).unwrap();
    assert!(is_whole(&cluster.engines[2]));
    let run = |engine: &Locks| {
        let plan = plan(Limit::Transactions(15), 2);
        drive_since(engine, &plan, &Unwatched, Instant::now())
    };
    let (done, error) = run(&cluster.engines[2]);
    assert!(error.is_none(), "{error:?}");
    cluster.holds(done.tally.counts(), 0);
}
