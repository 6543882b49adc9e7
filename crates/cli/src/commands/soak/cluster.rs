//! A rack of processes on this machine that can be killed and started again.
//! Everything ends with the value.

use super::etcd::Etcd;
use super::locks;
use crate::failure::{Failure, Result};
use crate::orphan;
use crate::programs;
use crate::stop::Stop;
use rackmem::Durability;
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a process may take until it serves: it waits for its predecessor's lease,
/// and for the others.
const START: Duration = Duration::from_secs(90);
/// How often a process that ends before it is up is started again, at most.
const TRIES: u32 = 5;
/// Between two looks whether to stop.
const STEP: Duration = Duration::from_millis(50);
/// Bytes of memory each node gives, and of its cache.
const MEMORY: u64 = 256 << 20;
const CACHE: u64 = 16 << 20;
/// The same where nodes have to give locks up all the time, and of a block:
/// eight blocks are the least.
const TIGHT: (u64, u64) = (8 << 10, 1 << 10);
/// Few buckets, so that keys share them.
const BUCKETS: usize = 64;
/// Bytes of memory that many keys need beside: a value too long for its page,
/// most of the time none.
const A_KEY: u64 = 2048;

/// Buckets of a store for so many keys: some keys to each, as a user would have it.
fn buckets(keys: usize) -> usize {
    (keys / 2).next_power_of_two().max(BUCKETS)
}

/// What takes a line that a process has said.
pub type Hears = dyn Fn(locks::Process, &str) + Send + Sync;

/// What nodes do in place of serving the store.
#[derive(Clone)]
pub struct Work {
    /// Options of `rackmem node`.
    pub options: Vec<String>,
    /// What a node says when it is up.
    pub sign: &'static str,
    /// Hears the lines that processes mark as theirs ([`locks::MARK`]).
    pub hears: Arc<Hears>,
}

/// What kind of rack.
#[derive(Clone)]
pub struct Plan {
    pub nodes: usize,
    pub switch: bool,
    pub fabric: &'static str,
    pub etcd: bool,
    pub lease_ms: u64,
    /// Keys of the store.
    pub keys: usize,
    /// Hardly any cache.
    pub tight: bool,
    /// Shares of packets to lose and to hold back.
    pub loss: f64,
    pub delay: f64,
    /// Otherwise they serve the store.
    pub work: Option<Work>,
    /// Copies of the store, if it has some.
    pub copies: Option<String>,
    /// What they survive.
    pub durability: Durability,
    /// Whether what `more` says has copies of the store's root.
    pub root_copies: bool,
    /// More of rack.toml.
    pub more: String,
}

impl Plan {
    /// What a node says when it is up.
    fn sign(&self) -> &'static str {
        self.work.as_ref().map_or("listening", |work| work.sign)
    }
}

/// Processes so far.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// Where what a node tells of its work goes.
#[derive(Clone)]
struct Record {
    node: usize,
    work: Work,
}

/// A process of ours; killed when dropped.
struct Process {
    child: Child,
    said: Receiver<Value>,
    /// How it was started, and how often it may be started again.
    args: Vec<String>,
    tries: u32,
    /// Where it writes what goes wrong.
    log: PathBuf,
    record: Option<Record>,
}

impl Process {
    fn start(args: &[&str], log: PathBuf, record: Option<Record>) -> Result<Process> {
        let (child, said) = spawn(args, &log, record.clone())?;
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Ok(Process {
            child,
            said,
            args,
            tries: TRIES,
            log,
            record,
        })
    }

    /// Why it is not there, as far as it told.
    fn failure(&self, what: &str) -> Failure {
        let told = std::fs::read_to_string(&self.log).unwrap_or_default();
        let told = told.trim().replace('\n', "; ");
        let name = self.args.join(" ");
        Failure::new(
            format!(
                "`rackmem {name}` {what}: {}",
                if told.is_empty() {
                    "it said nothing"
                } else {
                    &told
                }
            ),
            "run `rackmem doctor`; a busy machine needs a longer --lease-ms",
        )
    }

    /// The next thing it says that has this field; none when told to stop.
    /// One that ends before is started again, as whoever keeps services would: on a busy machine it
    /// may have lost its lease while it came up.
    fn hears(&mut self, field: &str, stop: &Stop) -> Result<Option<Value>> {
        let end = Instant::now() + START;
        while !stop.requested() {
            match self.said.recv_timeout(STEP) {
                Ok(said) if !said[field].is_null() => return Ok(Some(said)),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if Instant::now() < end => {}
                Err(RecvTimeoutError::Disconnected) if self.tries > 0 => {
                    self.again()?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.failure("ended")),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.failure("did not come up in time"));
                }
            }
        }
        Ok(None)
    }

    fn again(&mut self) -> Result<()> {
        self.tries -= 1;
        self.kill();
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        (self.child, self.said) = spawn(&args, &self.log, self.record.clone())?;
        Ok(())
    }

    fn kill(&mut self) {
        // Gone already is as good as killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(args: &[&str], log: &Path, record: Option<Record>) -> Result<(Child, Receiver<Value>)> {
    let program = std::env::current_exe()?;
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let mut child = Command::new(program)
        .args(args)
        .args(["--json", orphan::OPTION])
        // Held until this process ends.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()?;
    let (tell, said) = channel();
    let out = child.stdout.take();
    std::thread::spawn(move || {
        let lines = out.into_iter().flat_map(|out| BufReader::new(out).lines());
        // What nobody waits for any more is read all the same, or the process would have to wait.
        let process = STARTED.fetch_add(1, Relaxed);
        for line in lines.map_while(std::result::Result::ok) {
            if let Some(record) = record.as_ref().filter(|_| line.starts_with(locks::MARK)) {
                (record.work.hears)((record.node, process), &line);
                continue;
            }
            let _ = tell.send(serde_json::from_str(&line).unwrap_or(Value::Null));
        }
    });
    Ok((child, said))
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The rack.
pub struct Cluster {
    plan: Plan,
    folder: PathBuf,
    etcd: Option<Etcd>,
    switch: Option<Process>,
    nodes: Vec<Option<Process>>,
    /// Where clients connect, by node.
    addrs: Vec<SocketAddr>,
}

impl Cluster {
    /// Starts all processes; none when told to stop.
    pub fn start(plan: Plan, stop: &Stop) -> Result<Option<Cluster>> {
        let number = fastrand::u64(..);
        let folder = scratch().join(format!("rackmem-soak-{number:016x}"));
        std::fs::create_dir_all(folder.join("members"))?;
        let mut cluster = Cluster {
            nodes: (0..plan.nodes).map(|_| None).collect(),
            addrs: Vec::new(),
            plan,
            folder,
            etcd: None,
            switch: None,
        };
        let membership = cluster.membership()?;
        cluster.write_file(&membership)?;
        let nodes: Vec<usize> = (0..cluster.plan.nodes).collect();
        let switch = cluster.plan.switch;
        Ok(cluster.restart(switch, &nodes, stop)?.then_some(cluster))
    }

    fn membership(&mut self) -> Result<String> {
        if !self.plan.etcd {
            return Ok(format!("dir:{}", self.folder.join("members").display()));
        }
        if programs::find("etcd").is_none() {
            return Err(Failure::new(
                "etcd is not installed",
                "as root: apt-get install etcd-server, or leave out --membership etcd",
            ));
        }
        let (etcd, endpoint) = Etcd::start(&self.folder)?;
        self.etcd = Some(etcd);
        Ok(format!("etcd:{endpoint}"))
    }

    /// The rack's description.
    pub fn file(&self) -> PathBuf {
        self.folder.join("rack.toml")
    }

    fn write_file(&self, membership: &str) -> Result<()> {
        let plan = &self.plan;
        let addresses = rackmem_hosts::addresses(plan.nodes + 1);
        let ports: Vec<String> = addresses
            .iter()
            .map(|address| format!("\"{address}\""))
            .collect();
        let (cache, block) = if plan.tight { TIGHT } else { (CACHE, 4096) };
        let mut text = format!(
            "nodes = [{}]\nfabric = \"{}\"\nmembership = \"{membership}\"\nlease_ms = {}\nmemory = {}\ncache = {cache}\nblock_size = {block}\n\
             patience_ms = 20000\n{}",
            ports[1..].join(", "),
            plan.fabric,
            plan.lease_ms,
            MEMORY + plan.keys as u64 * A_KEY,
            plan.more.replace("FOLDER", &self.folder.to_string_lossy()),
        );
        if plan.switch {
            text.push_str(&format!("switch = {}\n", ports[0]));
        }
        if plan.loss > 0.0 || plan.delay > 0.0 {
            let (loss, delay) = (plan.loss, plan.delay);
            text.push_str(&format!("[faults]\nloss = {loss:?}\ndelay = {delay:?}\n"));
        }
        Ok(std::fs::write(self.file(), text)?)
    }

    /// SIGKILL to the switch, if told so, and to these nodes.
    pub fn kill(&mut self, switch: bool, nodes: &[usize]) {
        if switch {
            self.switch = None;
        }
        for &node in nodes {
            self.nodes[node] = None;
        }
    }

    /// Starts what was killed, and returns when it serves; `false` when told to stop.
    pub fn restart(&mut self, switch: bool, nodes: &[usize], stop: &Stop) -> Result<bool> {
        let file = self.file();
        let file = file.to_string_lossy();
        let buckets = buckets(self.plan.keys).to_string();
        let durability = self.plan.durability.to_string();
        if switch {
            self.switch = Some(Process::start(
                &["switch", "--rack", &file],
                self.folder.join("switch.log"),
                None,
            )?);
        }
        for &node in nodes {
            let number = node.to_string();
            let join = ["--rack", &file, "--node", &number];
            let work = self.plan.work.clone();
            let options = work.iter().flat_map(|work| &work.options);
            let options: Vec<&str> = options.map(String::as_str).collect();
            let args = match work {
                Some(_) => [&["node"], &join[..], &options].concat(),
                None => {
                    let serve = ["--listen", "127.0.0.1:0", "--buckets", &buckets];
                    let copies = self.plan.copies.iter();
                    let copies: Vec<&str> = copies
                        .flat_map(|it| ["--copies", it, "--durability", &durability])
                        .collect();
                    [&["kv"], &join[..], &serve, &copies].concat()
                }
            };
            self.nodes[node] = Some(Process::start(
                &args,
                self.folder.join(format!("node-{node}.log")),
                work.clone().map(|work| Record { node, work }),
            )?);
        }
        if let Some(process) = self.switch.as_mut().filter(|_| switch)
            && process.hears("switch", stop)?.is_none()
        {
            return Ok(false);
        }
        let nobody = SocketAddr::from(([127, 0, 0, 1], 0));
        self.addrs.resize(self.plan.nodes, nobody);
        for &node in nodes {
            let Some(process) = &mut self.nodes[node] else {
                continue;
            };
            let up = self.plan.sign();
            let Some(said) = process.hears(up, stop)? else {
                return Ok(false);
            };
            let addr = said[up][0].as_str().and_then(|text| text.parse().ok());
            self.addrs[node] = addr.unwrap_or(nobody);
        }
        Ok(true)
    }

    /// Starts nodes again that have ended by themselves: on a busy machine one may have lost its
    /// lease.
    pub fn revive(&mut self, stop: &Stop) -> Result<()> {
        let up = self.plan.sign();
        if self.first_has_ended() {
            return Err(Failure::new(
                "node 0 was declared dead, and its memory is lost",
                "a busy machine needs a longer --lease-ms",
            ));
        }
        for process in self.nodes.iter_mut().flatten() {
            if matches!(process.child.try_wait(), Ok(Some(_))) {
                if process.tries == 0 {
                    return Err(process.failure("ended"));
                }
                process.again()?;
                process.hears(up, stop)?;
            }
        }
        Ok(())
    }

    /// The nodes whose processes have ended by themselves.
    pub fn ended(&mut self) -> Vec<usize> {
        let nodes = self.nodes.iter_mut().enumerate();
        let ended = nodes.filter_map(|(node, process)| {
            let process = process.as_mut()?;
            (!matches!(process.child.try_wait(), Ok(None))).then_some(node)
        });
        ended.collect()
    }

    /// The number of a node's process.
    pub fn process(&self, node: usize) -> Option<u32> {
        self.nodes.get(node)?.as_ref().map(|it| it.child.id())
    }

    /// Whether the first node has ended by itself: what all share was in its memory.
    pub fn first_has_ended(&mut self) -> bool {
        let first = self.nodes.first_mut().and_then(Option::as_mut);
        first.is_some_and(|process| !matches!(process.child.try_wait(), Ok(None)))
    }

    /// Whether the store has copies.
    pub fn has_copies(&self) -> bool {
        self.plan.copies.is_some()
    }

    /// Whether the store is there again when all nodes have died.
    pub fn is_durable(&self) -> bool {
        self.has_copies() && self.plan.durability != Durability::Memory
    }

    /// Whether the store's root has copies, and its keys have none.
    pub fn has_root_copies(&self) -> bool {
        self.plan.root_copies
    }

    /// Where clients connect, by node.
    pub fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }
}

/// Where the files of a rack for a while go: into memory where that is possible,
/// for a disk that is busy with something else makes an etcd miss its own deadlines.
pub fn scratch() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory.into()
    } else {
        std::env::temp_dir()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.switch = None;
        self.nodes.clear();
        self.etcd = None;
        // What cannot be removed is in the system's folder for such things.
        let _ = std::fs::remove_dir_all(&self.folder);
        // Killed processes leave their memory behind.
        if self.plan.fabric == "shm" {
            let _ = rackmem_fabric::shm::sweep();
        }
    }
}
