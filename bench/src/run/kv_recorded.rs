//! The recorded part of `bench kv`: clients at every node, embedded and over RESP, on few keys,
//! whose record `rackmem history check` judges.

use super::resp::Client;
use super::{BenchError, Progress, Result};
use crate::recorded::{self, HistoryFile};
use crate::report::Report;
use crate::timing;
use rackmem::Node;
use rackmem_kv::{Server, ServerConfig, Store};
use rackmem_sim::history::{Call, ClientLog, Reply};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Keys of each case: few, so that clients meet.
const KEYS: usize = 64;
/// Clients of each node.
const CLIENTS: usize = 2;
/// Integers that are stored, since clients also add to values.
const VALUES: i64 = 1 << 40;

/// Executes a command and returns its result.
trait Perform {
    fn perform(&mut self, key: &str, call: &Call) -> std::result::Result<Reply, String>;
}

impl Perform for Store<Node> {
    fn perform(&mut self, key: &str, call: &Call) -> std::result::Result<Reply, String> {
        let key = key.as_bytes();
        let told = match call {
            Call::Set { value } => self.set(key, value.as_bytes()).map(|()| Reply::Nil),
            Call::Incr { by } => self.increment(key, *by).map(Reply::Int),
            Call::Del => self.remove(key).map(Reply::Bool),
            _ => {
                let mut value = Vec::new();
                let found = self.get(key, &mut value);
                found.map(|found| text(found.then_some(&value)))
            }
        };
        told.map_err(|error| error.to_string())
    }
}

impl Perform for Client {
    fn perform(&mut self, key: &str, call: &Call) -> std::result::Result<Reply, String> {
        let key = key.as_bytes();
        match call {
            Call::Set { value } => self.command(&[b"SET", key, value.as_bytes()]),
            Call::Incr { by } => self.command(&[b"INCRBY", key, by.to_string().as_bytes()]),
            Call::Del => self.command(&[b"DEL", key]),
            _ => self.command(&[b"GET", key]),
        }
        let mut told = None;
        let sent = self.flush(|answer| told = Some(answer.map(<[u8]>::to_vec)));
        sent.map_err(|error| error.to_string())?;
        let number = |told: Option<Vec<u8>>| {
            let text = String::from_utf8(told.unwrap_or_default()).unwrap_or_default();
            text.parse::<i64>()
                .map_err(|_| format!("{text:?} is no number"))
        };
        Ok(match (call, told) {
            (Call::Incr { .. }, Some(told)) => Reply::Int(number(told)?),
            (Call::Del, Some(told)) => Reply::Bool(number(told)? == 1),
            (Call::Get, Some(told)) => text(told.as_ref()),
            _ => Reply::Nil,
        })
    }
}

fn text(value: Option<&Vec<u8>>) -> Reply {
    value.map_or(Reply::Nil, |value| {
        Reply::Text(String::from_utf8_lossy(value).into_owned())
    })
}

/// Runs both cases and adds their rates and their records.
pub fn run(
    report: &mut Report,
    stores: &[Store<Node>],
    duration: Duration,
    file: &mut HistoryFile,
    progress: Progress<'_>,
) -> Result<()> {
    progress("recorded, embedded");
    let rate = case("embedded", stores.len(), duration, file, |node| {
        Ok(stores[node].clone())
    })?;
    let name = |kind: &str| format!("rackmem/recorded/{kind}/nodes-{}", stores.len());
    report.add(&name("embedded"), rate, "ops/s")?;

    progress("recorded, over RESP");
    let bind = |store: &Store<Node>| {
        let config = ServerConfig {
            addr: (Ipv4Addr::LOCALHOST, 0).into(),
            ..ServerConfig::default()
        };
        Server::bind(store.clone(), config).map_err(|e| BenchError::Missing(e.to_string()))
    };
    let servers = stores.iter().map(bind).collect::<Result<Vec<Server>>>()?;
    let addrs: Vec<SocketAddr> = servers.iter().map(Server::local_addr).collect();
    let rate = over_resp("resp", &addrs, duration, file);
    servers.into_iter().for_each(Server::shutdown);
    report.add(&name("resp"), rate?, "ops/s")?;
    Ok(())
}

/// Clients over RESP at these nodes alone; `name`: of their keys, which no other rack's are.
pub(super) fn over_resp(
    name: &str,
    addrs: &[SocketAddr],
    duration: Duration,
    file: &mut HistoryFile,
) -> Result<f64> {
    case(name, addrs.len(), duration, file, |node| {
        Ok(Client::connect(addrs[node])?)
    })
}

/// Operations a second of all clients together.
fn case<C: Perform + Send>(
    name: &str,
    nodes: usize,
    duration: Duration,
    file: &mut HistoryFile,
    connect: impl Fn(usize) -> Result<C>,
) -> Result<f64> {
    let clients = (0..nodes * CLIENTS)
        .map(|client| Ok(Mutex::new(Some(connect(client % nodes)?))))
        .collect::<Result<Vec<_>>>()?;
    let recorder = recorded::recorder();
    let failures = AtomicU64::new(0);
    let done = timing::run(clients.len(), duration, |index| {
        let mut client = clients[index]
            .lock()
            .ok()
            .and_then(|mut client| client.take());
        let mut log = recorder.client(index as u32);
        let mut rng = fastrand::Rng::with_seed(index as u64 + 1);
        let failures = &failures;
        move || match client
            .as_mut()
            .map(|client| step(client, name, &mut log, &mut rng))
        {
            Some(Some(true)) => 1,
            Some(Some(false)) => {
                // Its operation is one of unknown outcome, so it must not go on as if it knew.
                failures.fetch_add(1, Ordering::Relaxed);
                client = None;
                0
            }
            _ => {
                std::thread::yield_now();
                0
            }
        }
    });
    file.add(&recorder.into_history())?;
    match failures.into_inner() {
        0 => Ok(done.per_second()),
        n => Err(BenchError::Missing(format!("{n} recorded clients failed"))),
    }
}

/// One operation on one key, both at random. `None` where there is no room to record it;
/// else whether it worked.
fn step(
    client: &mut impl Perform,
    case: &str,
    log: &mut ClientLog<'_>,
    rng: &mut fastrand::Rng,
) -> Option<bool> {
    let key = format!("recorded:{case}:{}", rng.usize(..KEYS));
    let call = match rng.u8(..100) {
        0..45 => Call::Get,
        45..75 => Call::Set {
            value: rng.i64(..VALUES).to_string(),
        },
        75..92 => Call::Incr { by: rng.i64(1..10) },
        _ => Call::Del,
    };
    let ticket = log.begin(&key, call.clone()).ok()?;
    let told = client.perform(&key, &call).ok();
    let worked = told.is_some();
    if let Some(reply) = told {
        log.ok(ticket, reply);
    }
    Some(worked)
}
