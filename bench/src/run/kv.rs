//! `bench kv`: the store embedded and over RESP, beside redis-server,
//! with the same client and the same keys.

use super::child::ends_with_us;
use super::kv_memory;
use super::kv_recorded;
use super::resp::{self, Client};
use super::{BenchError, Progress, Result, stopped};
use crate::histogram::Histogram;
use crate::recorded::HistoryFile;
use crate::report::Report;
use crate::timing;
use crate::ycsb::{self, KeyValue, Mix, Records};
use crate::zipf::{YCSB_THETA, Zipf};
use rackmem::{Node, Rack};
use rackmem_kv::{Server, ServerConfig, Store};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Nodes of the rack.
    pub nodes: usize,
    /// Keys; the values have 128 bytes.
    pub keys: u64,
    /// Time of one case.
    pub duration: Duration,
    /// Also run redis-server beside it.
    pub redis: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            nodes: 4,
            keys: 100_000,
            duration: Duration::from_secs(1),
            redis: true,
        }
    }
}

const VALUE: usize = 128;
/// Keys are loaded in so many parts.
const LOADS: u64 = 64;
/// Connections and pipeline depth of the cases over RESP.
const SHAPES: [(usize, usize); 3] = [(1, 1), (8, 1), (8, 16)];

/// Runs it for the time of number `round`. With a file, there are two cases more,
/// whose clients record what they do and are told.
pub fn run(
    options: &Options,
    round: usize,
    file: Option<&mut HistoryFile>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    // Later this process has memory of the runs before.
    if round == 1 {
        kv_memory::run(report, options.nodes, options.redis, progress)?;
    }
    let redis = match options.redis {
        true => Some(Redis::start()?),
        false => None,
    };
    let rack = Rack::local(options.nodes)?;
    let store = |node: Node| Store::open(node, Default::default()).map_err(store_error);
    let stores = rack
        .nodes()
        .iter()
        .cloned()
        .map(store)
        .collect::<Result<Vec<_>>>()?;
    let config = ServerConfig {
        addr: (Ipv4Addr::LOCALHOST, 0).into(),
        ..ServerConfig::default()
    };
    let server =
        Server::bind(stores[0].clone(), config).map_err(|e| BenchError::Missing(e.to_string()))?;
    let bench = Bench {
        options,
        records: Records {
            count: options.keys,
            value_bytes: VALUE,
        },
    };

    progress("loading");
    for part in 0..LOADS {
        stopped()?;
        let records = &bench.records;
        records
            .load(&mut Embedded(&stores[0]), part, LOADS)
            .map_err(store_error)?;
    }
    if let Some(redis) = &redis {
        bench.load_over_resp(redis.addr)?;
    }
    for mix in [Mix::C, Mix::B, Mix::A] {
        for (connections, pipeline) in SHAPES {
            let shape = format!("resp/ycsb-{mix}/connections-{connections}/pipeline-{pipeline}")
                .to_lowercase();
            let mut baseline = None;
            if let Some(redis) = &redis {
                progress(&format!("redis {shape}"));
                let name = format!("redis/{shape}");
                report.add(
                    &name,
                    bench.over_resp(redis.addr, mix, connections, pipeline)?,
                    "ops/s",
                )?;
                baseline = Some(name);
            }
            progress(&format!("rackmem {shape}"));
            let rate = bench.over_resp(server.local_addr(), mix, connections, pipeline)?;
            add(
                report,
                &format!("rackmem/{shape}"),
                rate,
                baseline.as_deref(),
            )?;
        }
        progress(&format!("embedded YCSB-{mix}"));
        bench.embedded(report, &stores, mix, redis.is_some())?;
    }
    server.shutdown();
    if let Some(file) = file {
        kv_recorded::run(report, &stores, options.duration, file, progress)?;
    }
    Ok(())
}

fn add(report: &mut Report, name: &str, rate: f64, baseline: Option<&str>) -> Result<()> {
    match baseline {
        Some(baseline) => report.add_against(name, rate, "ops/s", baseline)?,
        None => report.add(name, rate, "ops/s")?,
    }
    Ok(())
}

pub(super) fn store_error(error: rackmem_kv::Error) -> BenchError {
    BenchError::Missing(error.to_string())
}

/// The store without a network, as one client sees it.
struct Embedded<'a>(&'a Store<Node>);

impl KeyValue for Embedded<'_> {
    type Error = rackmem_kv::Error;

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> std::result::Result<bool, Self::Error> {
        self.0.get(key, value)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> std::result::Result<(), Self::Error> {
        self.0.set(key, value)
    }
}

struct Bench<'a> {
    options: &'a Options,
    records: Records,
}

impl Bench<'_> {
    fn zipf(&self) -> Zipf {
        Zipf::new(self.options.keys, YCSB_THETA)
    }

    fn load_over_resp(&self, addr: SocketAddr) -> Result<()> {
        resp::for_each(addr, 0..self.options.keys, |client, key| {
            client.command(&[b"SET", key, &[7; VALUE]]);
        })
    }

    /// Operations a second of all connections together.
    fn over_resp(
        &self,
        addr: SocketAddr,
        mix: Mix,
        connections: usize,
        pipeline: usize,
    ) -> Result<f64> {
        let zipf = self.zipf();
        let clients = (0..connections)
            .map(|_| Client::connect(addr))
            .collect::<std::io::Result<Vec<_>>>()?;
        let clients: Vec<_> = clients
            .into_iter()
            .map(|c| std::sync::Mutex::new(Some(c)))
            .collect();
        let failed = AtomicU64::new(0);
        let done = timing::run(connections, self.options.duration, |i| {
            let mut client = clients[i].lock().ok().and_then(|mut c| c.take());
            let (zipf, failed) = (zipf, &failed);
            let mut rng = fastrand::Rng::with_seed(i as u64 + 1);
            let mut key = ycsb::Key::default();
            let value = [9; VALUE];
            move || {
                let Some(client) = client.as_mut() else {
                    return 0;
                };
                for _ in 0..pipeline {
                    let name = key.of(zipf.scrambled(&mut rng));
                    match rng.u8(0..100) < mix.read_percent() {
                        true => client.command(&[b"GET", name]),
                        false => client.command(&[b"SET", name, &value]),
                    }
                }
                let sent = client.flush(|found| {
                    if found.is_none() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                });
                if sent.is_err() {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
                pipeline as u64
            }
        });
        match failed.load(Ordering::Relaxed) {
            0 => Ok(done.per_second()),
            n => Err(BenchError::Missing(format!(
                "{n} operations failed or found nothing"
            ))),
        }
    }

    /// One thread a node, each at its own node.
    fn embedded(
        &self,
        report: &mut Report,
        stores: &[Store<Node>],
        mix: Mix,
        redis: bool,
    ) -> Result<()> {
        let zipf = self.zipf();
        let baseline = format!("redis/resp/ycsb-{mix}/connections-8/pipeline-1").to_lowercase();
        // One, and as many as there are nodes, if those are more.
        let threads = [1, stores.len()];
        for &threads in &threads[..stores.len().min(2)] {
            let times = std::sync::Mutex::new(Histogram::new());
            let failed = AtomicU64::new(0);
            let go = || {
                timing::run(threads, self.options.duration, |i| {
                    let mut client = ycsb::Client::with_keys(mix, zipf, VALUE, i as u64 + 1);
                    let mut store = Embedded(&stores[i]);
                    let (times, failed) = (
                        Sampled {
                            all: &times,
                            mine: Histogram::new(),
                        },
                        &failed,
                    );
                    let mut times = times;
                    move || {
                        let start = Instant::now();
                        for _ in 0..64 {
                            if client.step(&mut store).is_err() {
                                failed.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        times.mine.record(start.elapsed().as_nanos() as u64 / 64);
                        64
                    }
                })
            };
            // First every node fetches what it will go on reading.
            go();
            if let Ok(mut times) = times.lock() {
                *times = Histogram::new();
            }
            let done = go();
            if failed.load(Ordering::Relaxed) > 0 {
                return Err(BenchError::Missing(
                    "operations on the embedded store failed".into(),
                ));
            }
            let name = format!("rackmem/embedded/ycsb-{mix}/nodes-{threads}").to_lowercase();
            add(
                report,
                &name,
                done.per_second(),
                redis.then_some(baseline.as_str()),
            )?;
            let p50 = times
                .lock()
                .map(|times| times.percentile(50.0))
                .unwrap_or_default();
            report.add(&format!("{name}/p50"), p50 as f64, "ns")?;
        }
        Ok(())
    }
}

/// A thread's times, which join the others' at its end.
struct Sampled<'a> {
    all: &'a std::sync::Mutex<Histogram>,
    mine: Histogram,
}

impl Drop for Sampled<'_> {
    fn drop(&mut self) {
        if let Ok(mut all) = self.all.lock() {
            all.merge(&self.mine);
        }
    }
}

/// A redis-server of our own, without persistence, on a free port of loopback; ends when dropped.
pub(super) struct Redis {
    process: Child,
    addr: SocketAddr,
}

impl Redis {
    pub fn start() -> Result<Redis> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let port = free.port().to_string();
        let args = [
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            // A replica writes down what it is sent, where it was started.
            "--rdb-del-sync-files",
            "yes",
            "--appendonly",
            "no",
            "--daemonize",
            "no",
        ];
        let process = ends_with_us(Command::new("redis-server").args(args))
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let process = process.map_err(|_| {
            BenchError::Missing("redis-server is not installed: apt-get install redis-server, or leave out --vs redis".into())
        })?;
        let redis = Redis {
            process,
            addr: free,
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        while Client::connect(free).is_err() {
            if Instant::now() > deadline {
                return Err(BenchError::Missing("redis-server does not answer".into()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(redis)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Gone already is as good as killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
