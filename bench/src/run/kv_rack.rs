//! `bench kv --processes`: the store of a rack of processes, over RESP at all its nodes, beside
//! redis-server; and what an operation costs the rack's processes.

use super::child::ends_with_us;
use super::kv::Redis;
use super::kv_recorded;
use super::resp::{self, Client};
use super::{BenchError, Progress, Result, stopped};
use crate::histogram::Histogram;
use crate::recorded::HistoryFile;
use crate::report::Report;
use crate::timing;
use crate::ycsb::{self, Mix};
use crate::zipf::{YCSB_THETA, Zipf};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keys; the values have 128 bytes.
    pub keys: u64,
    /// Time of one case.
    pub duration: Duration,
    /// Also run redis-server beside it.
    pub redis: bool,
    /// Whether redis-benchmark is there.
    pub outside: bool,
}

/// What all processes of a rack have done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// System calls of their fabrics.
    pub system_calls: u64,
    /// Datagrams that they have sent.
    pub datagrams: u64,
    /// How often a thread of theirs has slept and was woken.
    pub sleeps: u64,
}

/// A rack of processes that serves a store.
pub trait Served {
    /// Where clients connect, by node.
    fn addrs(&self) -> &[SocketAddr];
    /// Of all its processes, now.
    fn cost(&mut self) -> Result<Cost>;
    /// What it is, in a case's name.
    fn name(&self) -> &str;
}

const VALUE: usize = 128;
/// Clients, spread over the nodes.
const CONNECTIONS: usize = 8;
/// Keys of redis-benchmark, which a node has all after a while.
const CACHED: u64 = 1000;
/// Operations of redis-benchmark in a second of a case's time.
const OUTSIDE: f64 = 20_000.0;

/// Runs it. All are told beside Redis, or else beside the first rack. Which rack is measured first
/// is another one with every mix, and with every `round`: a machine is not always as fast.
pub fn run(
    options: &Options,
    round: usize,
    racks: &mut [&mut dyn Served],
    file: Option<&mut HistoryFile>,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    let redis = match options.redis {
        true => Some(Redis::start()?),
        false => None,
    };
    progress("loading");
    if let Some(redis) = &redis {
        load(&[redis.addr()], options.keys)?;
    }
    for rack in racks.iter() {
        load(rack.addrs(), options.keys)?;
    }
    progress("every node reads every key once");
    for addr in racks.iter().flat_map(|rack| rack.addrs()) {
        resp::for_each(*addr, 0..options.keys, |client, key| {
            client.command(&[b"GET", key]);
        })?;
    }
    for (nth, mix) in [Mix::C, Mix::B, Mix::A].into_iter().enumerate() {
        let shape = format!("ycsb-{mix}/connections-{CONNECTIONS}").to_lowercase();
        let mut baselines = None;
        if let Some(redis) = &redis {
            progress(&format!("redis {shape}"));
            let told = clients(&[redis.addr()], options, mix)?;
            baselines = Some(told.add(report, &format!("redis/{shape}"), None)?);
        }
        let mut found = Vec::new();
        for at in 0..racks.len() {
            let at = (at + nth + round) % racks.len();
            progress(&format!("{} {shape}", racks[at].name()));
            found.push((at, one(options, racks[at], mix)?));
        }
        found.sort_by_key(|(at, _)| *at);
        for (at, found) in found {
            let shape = format!("{}/{shape}", racks[at].name());
            let names = found.add(report, &shape, baselines.clone())?;
            baselines.get_or_insert(names);
        }
    }
    if options.outside {
        progress("redis-benchmark");
        let racks = racks.iter().map(|rack| (rack.name(), rack.addrs()[0]));
        let redis = redis.iter().map(|redis| ("redis", redis.addr()));
        outside(options, redis.chain(racks).collect(), report)?;
    }
    if let Some(file) = file {
        progress("recorded");
        for (nth, rack) in racks.iter().enumerate() {
            let keys = format!("resp-{nth}");
            let rate = kv_recorded::over_resp(&keys, rack.addrs(), options.duration, file)?;
            report.add(&format!("{}/recorded", rack.name()), rate, "ops/s")?;
        }
    }
    Ok(())
}

/// What a mix has cost one rack.
struct Found {
    told: Told,
    /// Of all processes' fabrics, and system calls of their servers.
    before: (Cost, u64),
    after: (Cost, u64),
}

/// One mix on one rack.
fn one(options: &Options, rack: &mut dyn Served, mix: Mix) -> Result<Found> {
    // First every node fetches what it goes on reading, and locks go where they are used.
    clients(rack.addrs(), options, mix)?;
    let before = cost(rack)?;
    let told = clients(rack.addrs(), options, mix)?;
    let after = cost(rack)?;
    Ok(Found {
        told,
        before,
        after,
    })
}

impl Found {
    /// Adds all of it; the names of rates and times.
    fn add(
        &self,
        report: &mut Report,
        shape: &str,
        beside: Option<[String; 3]>,
    ) -> Result<[String; 3]> {
        let Found {
            told,
            before,
            after,
        } = self;
        let names = told.add(report, shape, beside)?;
        let each = |now: u64, before: u64| (now - before) as f64 / told.operations.max(1) as f64;
        for (what, value) in [
            (
                "system-calls",
                each(after.0.system_calls, before.0.system_calls),
            ),
            ("server-calls", each(after.1, before.1)),
            ("packets", each(after.0.datagrams, before.0.datagrams)),
            ("wake-ups", each(after.0.sleeps, before.0.sleeps)),
        ] {
            report.add(&format!("{shape}/{what}"), value, "per op")?;
        }
        Ok(names)
    }
}

/// Of the rack's processes, and system calls of its servers.
fn cost(rack: &mut dyn Served) -> Result<(Cost, u64)> {
    let mut servers = 0;
    for addr in rack.addrs() {
        let mut client = Client::connect(*addr)?;
        client.command(&[b"INFO", b"stats"]);
        client.flush(|text| servers += calls(text.unwrap_or_default()))?;
    }
    Ok((rack.cost()?, servers))
}

/// What INFO says.
fn calls(text: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(text);
    let mut found = text
        .lines()
        .filter_map(|line| line.strip_prefix("total_system_calls:"));
    found
        .next()
        .and_then(|n| n.trim().parse().ok())
        .unwrap_or(0)
}

/// Stores all records, a client a node.
fn load(addrs: &[SocketAddr], keys: u64) -> Result<()> {
    let clients = addrs.len() as u64;
    let part = |nth: usize| {
        let mine = (0..keys).skip(nth).step_by(clients as usize);
        resp::for_each(addrs[nth], mine, |client, key| {
            client.command(&[b"SET", key, &[7; VALUE]]);
        })
    };
    std::thread::scope(|scope| {
        let part = &part;
        let parts: Vec<_> = (0..addrs.len())
            .map(|nth| scope.spawn(move || part(nth)))
            .collect();
        parts.into_iter().try_for_each(|part| match part.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// What clients have seen.
struct Told {
    operations: u64,
    rate: f64,
    times: Histogram,
}

impl Told {
    /// Adds the rate and two times; the names that others may be compared with.
    fn add(
        &self,
        report: &mut Report,
        name: &str,
        beside: Option<[String; 3]>,
    ) -> Result<[String; 3]> {
        let us = |percent| self.times.percentile(percent) as f64 / 1000.0;
        let rows = [
            (name.to_owned(), self.rate, "ops/s"),
            (format!("{name}/p50"), us(50.0), "µs"),
            (format!("{name}/p99"), us(99.0), "µs"),
        ];
        for (nth, (name, value, unit)) in rows.iter().enumerate() {
            match &beside {
                Some(beside) => report.add_against(name, *value, unit, &beside[nth])?,
                None => report.add(name, *value, unit)?,
            }
        }
        Ok(rows.map(|row| row.0))
    }
}

/// Clients of all nodes, one operation after the other each.
fn clients(addrs: &[SocketAddr], options: &Options, mix: Mix) -> Result<Told> {
    let zipf = Zipf::new(options.keys, YCSB_THETA);
    let clients = (0..CONNECTIONS)
        .map(|nth| Client::connect(addrs[nth % addrs.len()]).map(|client| Mutex::new(Some(client))))
        .collect::<std::io::Result<Vec<_>>>()?;
    let (times, failed) = (Mutex::new(Histogram::new()), Mutex::new(None));
    let done = timing::run(CONNECTIONS, options.duration, |nth| {
        let mut client = clients[nth]
            .lock()
            .ok()
            .and_then(|mut client| client.take());
        let mut rng = fastrand::Rng::with_seed(nth as u64 + 1);
        let (mut key, value) = (ycsb::Key::default(), [9; VALUE]);
        let (times, failed) = (&times, &failed);
        move || {
            let Some(open) = client.as_mut() else {
                std::thread::yield_now();
                return 0;
            };
            let (began, name) = (Instant::now(), key.of(zipf.scrambled(&mut rng)));
            let reads = rng.u8(0..100) < mix.read_percent();
            match reads {
                true => open.command(&[b"GET", name]),
                false => open.command(&[b"SET", name, &value]),
            }
            let mut found = !reads;
            let sent = open.flush(|value| found = value.is_some());
            if let Err(error) = sent.and_then(|()| match found {
                true => Ok(()),
                false => Err(std::io::Error::other("a key is not there")),
            }) {
                client = None;
                failed
                    .lock()
                    .ok()
                    .and_then(|mut failed| failed.replace(error));
                return 0;
            }
            let took = began.elapsed().as_nanos() as u64;
            if let Ok(mut times) = times.lock() {
                times.record(took);
            }
            1
        }
    });
    stopped()?;
    if let Some(error) = failed.into_inner().ok().flatten() {
        return Err(error.into());
    }
    Ok(Told {
        operations: done.operations(),
        rate: done.per_second(),
        times: times.into_inner().unwrap_or_default(),
    })
}

/// redis-benchmark at one node of each, on keys that the node has.
fn outside(options: &Options, servers: Vec<(&str, SocketAddr)>, report: &mut Report) -> Result<()> {
    let mut baselines: [Option<[String; 2]>; 2] = [None, None];
    for (who, addr) in servers {
        // The first round fills.
        benchmark(addr, options)?;
        for (nth, row) in benchmark(addr, options)?.into_iter().enumerate() {
            let case = format!("{who}/redis-benchmark/{}", row.test);
            let names = [case.clone(), format!("{case}/p50")];
            match &baselines[nth] {
                Some([rate, p50]) => {
                    report.add_against(&names[0], row.rate, "ops/s", rate)?;
                    report.add_against(&names[1], row.p50, "µs", p50)?;
                }
                None => {
                    report.add(&names[0], row.rate, "ops/s")?;
                    report.add(&names[1], row.p50, "µs")?;
                }
            }
            baselines[nth].get_or_insert(names);
        }
    }
    Ok(())
}

/// A line of redis-benchmark.
#[derive(Debug, PartialEq)]
struct Row {
    test: String,
    rate: f64,
    p50: f64,
}

fn benchmark(addr: SocketAddr, options: &Options) -> Result<[Row; 2]> {
    stopped()?;
    let operations = (options.duration.as_secs_f64() * OUTSIDE).max(1000.0) as u64;
    let (host, port) = (addr.ip().to_string(), addr.port().to_string());
    let (count, keys) = (operations.to_string(), CACHED.to_string());
    let (clients, bytes) = (CONNECTIONS.to_string(), VALUE.to_string());
    let args = [
        "-h", &host, "-p", &port, "-n", &count, "-r", &keys, "-c", &clients, "-d", &bytes,
    ];
    let mut command = Command::new("redis-benchmark");
    let told = ends_with_us(command.args(args).args(["-t", "set,get", "--csv"])).output()?;
    let text = String::from_utf8_lossy(&told.stdout);
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    <[Row; 2]>::try_from(rows).map_err(|_| {
        BenchError::Missing(format!(
            "redis-benchmark says nothing of SET and GET: {text}"
        ))
    })
}

/// `"SET","61349.70","0.107",...`: the fifth is the median in milliseconds.
fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line
        .split(',')
        .map(|field| field.trim_matches('"'))
        .collect();
    let test = fields.first()?.to_lowercase();
    Some(Row {
        rate: fields.get(1)?.parse().ok()?,
        p50: fields.get(4)?.parse::<f64>().ok()? * 1000.0,
        test,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_redis_benchmark_are_read_and_its_header_is_not() {
        let head =
            r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms""#;
        assert_eq!(row(head), None);
        let found = row(r#""SET","61349.70","0.107","0.032","0.103","0.183","0.279","0.639""#);
        let expected = Row {
            test: "set".into(),
            rate: 61349.70,
            p50: 103.0,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(row(""), None);
    }

    #[test]
    fn system_calls_are_found_in_info() {
        assert_eq!(calls(b"# Stats\r\ntotal_system_calls:71\r\nx:1\r\n"), 71);
        assert_eq!(calls(b"# Stats\r\n"), 0);
    }
}
