//! Memory with copies whose processes are killed or held back: what was at rest stays, and nobody
//! is told that something is lost while a majority of the copies lives.

use crate::process::{Running, TempFile, run, stdout};
use crate::resp::{Answer, Client};
use rackmem::membership::{GroupConfig, Roster, Store};
use rackmem::{AccessError, Config, Rack, Region, RegionSpec, Shared, Survives};
use rackmem_hosts::addresses;
use rackmem_sim::history::{Call, Operation, Recorder, Reply};
use rackmem_sim::linear::{Limits, check};
use serde_json::Value;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(120);
const LEASE: Duration = Duration::from_secs(2);
const NODES: usize = 4;
const FABRICS: [&str; 2] = ["udp", "shm"];
/// Keys that are written once.
const AT_REST: usize = 120;
/// Keys that clients change all the time.
const HOT: [&str; 3] = ["a", "b", "c"];
/// Between two operations of a client: histories stay short.
const PAUSE: Duration = Duration::from_millis(4);

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Scene {
    file: TempFile,
    folder: PathBuf,
}

impl Scene {
    fn new(name: &str, fabric: &str) -> Scene {
        let name = format!("rackmem-cli-deaths-{name}-{fabric}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let nodes: Vec<String> = addresses(NODES).iter().map(|a| format!("'{a}'")).collect();
        let file = TempFile::new(&format!(
            "fabric = '{fabric}'\nnodes = [{}]\nmembership = 'dir:{}'\nlease_ms = {}\n\
             memory = '64M'\ncache = '8M'\npatience = '60s'\nreplace_after = '200ms'\n",
            nodes.join(", "),
            folder.display(),
            LEASE.as_millis(),
        ));
        Scene { file, folder }
    }

    fn config(&self) -> Config {
        Config::parse(&self.file.text()).unwrap()
    }

    fn store(&self) -> Arc<dyn Store> {
        let config = self.config();
        let settings = &config.membership;
        settings.source.open(&settings.name).unwrap().unwrap()
    }

    fn roster(&self) -> Option<Roster> {
        self.store().load(LONG).unwrap().roster
    }

    /// The life of a node that is a member.
    fn life(&self, node: usize) -> Option<u64> {
        let roster = self.roster()?;
        let life = roster.view.incarnation(node as u16)?;
        Some(life.into())
    }

    /// Waits until live processes have all copies of all regions.
    fn whole(&self) {
        let store = self.store();
        let has_all = |config: &GroupConfig, view: &rackmem::membership::View| {
            let mut members = config.members.iter().flatten();
            let live = members.all(|it| view.incarnation(it.node).map(u64::from) == Some(it.life));
            live && config.filling().is_none() && config.counting.count_ones() == 3
        };
        eventually("live processes have all copies", || {
            let groups = store.groups(LONG).unwrap().unwrap_or_default();
            let Some(roster) = store.load(LONG).unwrap().roster else {
                return false;
            };
            let mut rows = groups.rows.iter();
            rows.all(|group| has_all(&group.config, &roster.view))
        });
    }

    /// Whether the node that serves a region has been through all of it, as it is shown.
    fn is_swept(&self, region: &str) -> bool {
        let shown = run(&["inspect", "--json", "--groups", "--rack", self.file.path()]);
        let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
        let mut groups = shown["groups"].as_array().unwrap().iter();
        let group = groups.find(|group| group["region"] == region).unwrap();
        let (swept, all) = (&group["swept_blocks"], &group["blocks_to_sweep"]);
        all.is_u64() && swept == all && group["repaired_blocks"].is_u64()
    }

    fn serve(&self, node: usize) -> Running {
        let node = node.to_string();
        let rack = ["kv", "--rack", self.file.path(), "--node", &node];
        let store = ["--listen", "127.0.0.1:0", "--buckets", "8", "--copies", "3"];
        Running::start(&[&rack[..], &store[..]].concat())
    }

    fn give(&self, node: usize) -> Running {
        let node = node.to_string();
        let mut process = Running::start(&["node", "--rack", self.file.path(), "--node", &node]);
        process.line();
        process
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// In a page, in a chain of pages, in memory of its own.
fn at_rest(key: usize) -> (String, String) {
    let len = [3, 200, 1_000, 6_000][key % 4];
    let text = (0..len).map(|at| char::from(b'a' + ((key + at) % 26) as u8));
    (format!("rest:{key}"), text.collect())
}

/// An error that a client may be told while a majority lives: it has to ask again, or elsewhere.
/// Nothing in it says that something is lost.
fn may_be_told(error: &str) -> bool {
    let busy = error.starts_with("MASTERDOWN") || error.starts_with("ERR bucket busy");
    let again = ["no answer about memory of node", "the rack changed during"];
    busy || error.starts_with("ERR memory") && again.iter().any(|part| error.contains(part))
}

/// The processes of a store, and clients that work on all of them.
struct Serving {
    scene: Scene,
    processes: Vec<Running>,
    addrs: Mutex<Vec<SocketAddr>>,
    /// Answers that each node's client has had.
    answered: Vec<AtomicUsize>,
    /// What each has been told last that was none.
    refused: Vec<Mutex<String>>,
    stop: AtomicBool,
}

impl Serving {
    fn new(name: &str, fabric: &str) -> Serving {
        let scene = Scene::new(name, fabric);
        let mut processes: Vec<Running> = (0..NODES).map(|node| scene.serve(node)).collect();
        let addrs = processes.iter_mut().flat_map(Running::listening).collect();
        let serving = Serving {
            scene,
            processes,
            addrs: Mutex::new(addrs),
            answered: (0..NODES).map(|_| AtomicUsize::new(0)).collect(),
            refused: (0..NODES).map(|_| Mutex::default()).collect(),
            stop: AtomicBool::new(false),
        };
        // Each node has written some of what is at rest.
        let mut clients: Vec<Client> = (0..NODES).map(|node| serving.client(node)).collect();
        for nth in 0..AT_REST {
            let (key, value) = at_rest(nth);
            insist(&mut clients[nth % NODES], &["SET", &key, &value]);
        }
        serving.scene.whole();
        serving
    }

    fn addr(&self, node: usize) -> SocketAddr {
        self.addrs.lock().unwrap()[node]
    }

    fn client(&self, node: usize) -> Client {
        Client::over(TcpStream::connect(self.addr(node)).unwrap())
    }

    /// All that was written once is there, as every node says.
    fn check(&self) {
        for node in 0..NODES {
            let mut client = self.client(node);
            for nth in 0..AT_REST {
                let (key, value) = at_rest(nth);
                let found = insist(&mut client, &["GET", &key]);
                assert_eq!(found, Answer::Text(value), "{key} at node {node}");
            }
        }
    }

    /// Works on a node until told to stop, also when the node's process is another one.
    fn work(&self, node: usize, recorder: &Recorder) {
        let mut rng = fastrand::Rng::with_seed(node as u64);
        let (mut at, mut client) = (self.addr(node), None);
        // A client that does not know whether a command was done is another one afterwards.
        let mut number = node as u32;
        let mut log = recorder.client(number);
        while !self.stop.load(SeqCst) {
            std::thread::sleep(PAUSE);
            if at != self.addr(node) {
                (at, client) = (self.addr(node), None);
            }
            let refused = |why: String| *self.refused[node].lock().unwrap() = why;
            let Some(asked) = client.as_mut() else {
                match TcpStream::connect(at) {
                    Ok(stream) => client = Some(Client::over(stream)),
                    Err(error) => refused(format!("at {at}: {error}")),
                }
                continue;
            };
            let key = HOT[rng.usize(..HOT.len())];
            let (call, words) = draw(&mut rng, key);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ticket = log.begin(key, call.clone()).expect("room");
            let told = asked.try_call(&words);
            match told {
                Ok(Answer::Error(error)) => {
                    assert!(may_be_told(&error), "node {node} to {call}: {error}");
                    refused(error);
                    number += NODES as u32;
                    log = recorder.client(number);
                }
                Ok(answer) => {
                    log.ok(ticket, reply(&call, answer));
                    self.answered[node].fetch_add(1, SeqCst);
                }
                // Its process is dead, or held back for longer than this waits.
                Err(error) => {
                    refused(format!("{call}: {error}"));
                    client = None;
                    number += NODES as u32;
                    log = recorder.client(number);
                }
            }
        }
    }

    /// Waits until the clients of these nodes have had some more answers.
    fn goes_on(&self, nodes: impl Iterator<Item = usize> + Clone) {
        let before: Vec<usize> = self.answered.iter().map(|it| it.load(SeqCst)).collect();
        let more = |node: usize| self.answered[node].load(SeqCst) >= before[node] + 10;
        let end = Instant::now() + LONG;
        while let Some(node) = nodes.clone().find(|node| !more(*node)) {
            assert!(
                Instant::now() < end,
                "node {node} does not answer any more: {}; members {:?}",
                self.refused[node].lock().unwrap(),
                self.scene.roster().map(|roster| roster.view)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Something happens to the processes while clients of all nodes work; what these were told
    /// could have come from one memory.
    fn while_they_work(&mut self, mut happens: impl FnMut(&Serving, &mut [Running])) {
        let mut processes = std::mem::take(&mut self.processes);
        let recorder = Recorder::new(1 << 20);
        std::thread::scope(|scope| {
            let (serving, recorder) = (&*self, &recorder);
            for node in 0..NODES {
                scope.spawn(move || serving.work(node, recorder));
            }
            let stop = StopAtEnd(&serving.stop);
            serving.goes_on(0..NODES);
            happens(serving, &mut processes);
            serving.goes_on(0..NODES);
            drop(stop);
        });
        self.processes = processes;
        self.check();
        let history: Vec<Operation> = recorder.into_history();
        let verdict = check(&history, Limits::default());
        assert!(verdict.is_linearizable(), "{verdict}");
    }
}

/// Also when a thread fails, so that the others end.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Asks until there is an answer, and no error that says that something is lost.
fn insist(client: &mut Client, words: &[&str]) -> Answer {
    let end = Instant::now() + LONG;
    loop {
        match client.call(words) {
            Answer::Error(error) => {
                assert!(may_be_told(&error), "{words:?}: {error}");
                assert!(Instant::now() < end, "{words:?}: {error}");
                std::thread::sleep(Duration::from_millis(20));
            }
            answer => return answer,
        }
    }
}

fn draw(rng: &mut fastrand::Rng, key: &str) -> (Call, Vec<String>) {
    let value = rng.u32(..1_000_000).to_string();
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match rng.u8(..100) {
        0..40 => (Call::Get, words(&["GET", key])),
        40..65 => {
            let said = words(&["SET", key, &value]);
            (Call::Set { value }, said)
        }
        65..90 => (Call::Incr { by: 3 }, words(&["INCRBY", key, "3"])),
        _ => (Call::Del, words(&["DEL", key])),
    }
}

fn reply(call: &Call, answer: Answer) -> Reply {
    match (call, answer) {
        (Call::Set { .. }, Answer::Text(ok)) if ok == "OK" => Reply::Nil,
        (Call::Get, Answer::Text(value)) => Reply::Text(value),
        (Call::Get, Answer::Nil) => Reply::Nil,
        (Call::Incr { .. }, Answer::Int(number)) => Reply::Int(number),
        (Call::Del, Answer::Int(done)) => Reply::Bool(done == 1),
        (call, answer) => panic!("{call} is answered with {answer:?}"),
    }
}

fn others(than: usize) -> impl Iterator<Item = usize> + Clone {
    (0..NODES).filter(move |node| *node != than)
}

/// Each process of a store in turn is killed while clients work, node 0 first, and comes back.
#[test]
fn any_process_of_a_store_is_killed_and_no_key_is_lost() {
    for fabric in FABRICS {
        let mut serving = Serving::new("store", fabric);
        serving.while_they_work(|serving, processes| {
            for (victim, process) in processes.iter_mut().enumerate() {
                let life = serving.scene.life(victim);
                process.send("KILL");
                serving.goes_on(others(victim));
                eventually("the death is noticed", || {
                    serving.scene.life(victim) != life
                });
                serving.goes_on(others(victim));
                serving.scene.whole();
                *process = serving.scene.serve(victim);
                let addr = process.listening()[0];
                serving.addrs.lock().unwrap()[victim] = addr;
                serving.goes_on(0..NODES);
            }
        });
    }
}

/// A process of a store is held back under load, for less than its lease and for longer: then the
/// rack goes on without it, and it comes back as another one.
#[test]
fn a_process_of_a_store_that_is_held_back_loses_no_key() {
    for fabric in FABRICS {
        let mut serving = Serving::new("held-back", fabric);
        serving.while_they_work(|serving, processes| {
            for victim in [0, 2] {
                for (held, excluded) in [(LEASE / 5, false), (LEASE * 2, true)] {
                    let life = serving.scene.life(victim);
                    let process = &mut processes[victim];
                    process.send("STOP");
                    let began = Instant::now();
                    while began.elapsed() < held {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    if excluded {
                        eventually("it is excluded", || serving.scene.life(victim) != life);
                        serving.goes_on(others(victim));
                    }
                    process.send("CONT");
                    if excluded {
                        let again = process.listening_again();
                        serving.addrs.lock().unwrap()[victim] = again[0];
                    }
                    serving.goes_on(0..NODES);
                    serving.scene.whole();
                }
            }
        });
    }
}

const BLOCK: usize = 4096;
const COUNTERS: usize = 4;
const PAGES: usize = 8;

fn shared(survives: Survives) -> RegionSpec {
    let spec = RegionSpec::new("shared", (COUNTERS + PAGES) * BLOCK).copies(3);
    spec.survives(survives)
}

fn page(region: &Region, nth: usize) -> u64 {
    let mut bytes = [0; 8];
    region.read((COUNTERS + nth) * BLOCK, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// Coherent memory with copies: the process that serves it is killed while another one counts in
/// it, then each of the rest. Counts are exact, and what was at rest is there.
#[test]
fn any_process_of_coherent_memory_is_killed_and_nothing_at_rest_is_lost() {
    for fabric in FABRICS {
        for survives in [Survives::Rest, Survives::Writes] {
            let scene = Scene::new(&format!("shared-{}", survives.name()), fabric);
            let user = NODES - 1;
            let mut processes: Vec<Running> = (0..user).map(|node| scene.give(node)).collect();
            let rack = Rack::join(&scene.config(), user).unwrap();
            let node = rack.node(user);
            eventually("all are there", || {
                (0..user as u16).all(|other| node.is_member(other))
            });
            let region = node.create_region(&shared(survives)).unwrap();
            for nth in 0..PAGES {
                let at = (COUNTERS + nth) * BLOCK;
                region.write(at, &(nth as u64 + 70).to_le_bytes()).unwrap();
                node.evict(region.addr() + at as u64).unwrap();
            }
            scene.whole();
            let stop = AtomicBool::new(false);
            let (done, doubtful) = (AtomicU64::new(0), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for thread in 0..2 {
                    let (node, stop) = (&node, &stop);
                    let (done, doubtful) = (&done, &doubtful);
                    scope.spawn(move || {
                        let region = node.open_region(&shared(survives)).unwrap();
                        let counters: Vec<Shared<u64>> = (0..COUNTERS)
                            .map(|nth| region.shared(nth * BLOCK / 8).unwrap())
                            .collect();
                        for nth in thread.. {
                            if stop.load(SeqCst) {
                                return;
                            }
                            match counters[nth % COUNTERS].fetch_add(1) {
                                Ok(_) => done.fetch_add(1, SeqCst),
                                Err(AccessError::Interrupted { .. }) => {
                                    doubtful.fetch_add(1, SeqCst)
                                }
                                Err(error) => panic!("{fabric}: {error}"),
                            };
                            // It goes home, where copies are, and not only when a cache is full.
                            let at = region.addr() + (nth % COUNTERS * BLOCK) as u64;
                            node.evict(at).unwrap();
                        }
                    });
                }
                let stop = StopAtEnd(&stop);
                let counts_on = || {
                    let before = done.load(SeqCst);
                    eventually("they count", || done.load(SeqCst) > before + 20);
                };
                for (victim, process) in processes.iter_mut().enumerate() {
                    counts_on();
                    let life = scene.life(victim);
                    process.send("KILL");
                    eventually("the death is noticed", || scene.life(victim) != life);
                    counts_on();
                    for nth in 0..PAGES {
                        assert_eq!(page(&region, nth), nth as u64 + 70, "{fabric}: {nth}");
                    }
                    // What nobody asks for is repaired by the way.
                    if fabric == "udp" {
                        eventually("all of it is swept", || scene.is_swept("shared"));
                    }
                    *process = scene.give(victim);
                    scene.whole();
                }
                drop(stop);
            });
            let counters = (0..COUNTERS).map(|nth| region.shared::<u64>(nth * BLOCK / 8));
            let sum: u64 = counters
                .map(|counter| counter.unwrap().read().unwrap())
                .sum();
            let (done, doubtful) = (done.load(SeqCst), doubtful.load(SeqCst));
            assert!(
                (done..=done + doubtful).contains(&sum),
                "{fabric}: {done} + {doubtful} made {sum}"
            );
        }
    }
}
