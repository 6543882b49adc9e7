//! `rackmem kv`: the store, served from every node of an embedded rack,
//! or from one node of a rack of processes.

mod embedded;
mod import;
mod info;
mod joined;
mod leaving;
pub mod listen;
mod snapshots;

use self::snapshots::SnapshotArgs;
use crate::ended::Ended;
use crate::failure::{Failure, Result};
use crate::fence::FenceArgs;
use crate::rack_args::{RackArgs, node};
use crate::store::AtNode;
use crate::watching::MetricsArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use rackmem::Durability;
use rackmem_kv::{ServerConfig, Store, TlsConfig};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  rackmem kv                                       4 nodes on ports 7379 to 7382 of this machine
  redis-cli -p 7379 set greeting hello             write at node 0
  redis-cli -p 7381 get greeting                   read at node 2, from its own cache
  rackmem kv --nodes 2 --fabric udp --port 0       any free ports, packets over UDP
  rackmem kv --mode home-only                      the same without a switch
  rackmem kv --metrics 127.0.0.1:9400              for Prometheus: http://127.0.0.1:9400/metrics
  rackmem --json kv --port 0                       one line: {\"listening\":[...]}

Keys from Redis, and kept over restarts:
  redis-cli -p 6379 save                           writes dump.rdb in that server's folder
  rackmem kv --load dump.rdb                       the same keys at every node
  rackmem kv --load kept.rdb --save-to kept.rdb    what is there when it stops is there when it starts again
  rackmem kv import dump.rdb                       into a store that is in use (`rackmem kv import --help`)
  redis-cli -p 7379 bgsave                         while it is used: kept.rdb, which Redis 7 loads, too
SAVE is one moment for all keys, and the rack waits; BGSAVE is a moment for each key, and nobody waits. Nodes of
a rack of processes save when a client says so: tell one before you stop them, and give one of them --load.

One process per node; `rackmem switch --help` shows a rack.toml:
  rackmem kv --rack rack.toml --node 1 --listen 127.0.0.1:7380
  rackmem kv --rack rack.toml --node 1 --listen 10.0.0.2:7379 --password secret

With a `membership` in the file (`rackmem switch --help`) members may die and return; each change prints a line.
Keys of a dead node answer NODELOST until it returns, and are absent afterwards. A node that is told to end
(Ctrl-C, SIGTERM) moves its keys to the nodes that stay, and leaves. The names of regions and the store's root are node
0's, with which the store ends, unless the file has `copies = 3`: then three nodes keep them, and any one may die or
leave. With copies of the store itself, it outlives any node with all keys, answers wait while one dies,
and each change waits for a majority; half of `memory` is the store's. In rack.toml:
  [kv]
  copies = 3               # or 5, or 7; at most as many as nodes
  survives = \"writes\"      # the default, and all that there is: what was answered is with a majority
  durability = \"sync\"      # on disk, in the file's `store`: outlives the power of all; \"file\": the end of all
or at every node:
  rackmem kv --rack rack.toml --node 1 --listen 127.0.0.1:7380 --copies 3 --durability sync
All in one process, and what was answered is there when it starts again, whatever ended it:
  rackmem kv --nodes 3 --copies 3 --durability sync --store ./kept

Over UDP nodes send each other commands on keys that all of them write, unencrypted, over ports of their own
(docs/store.md). A node that is told --no-ship fetches such keys instead, and so do all with
  [kv]
  ship = false

An address other than loopback requires a password. Connections are encrypted with
  rackmem kv --tls-cert server.pem --tls-key server.key     and --tls-ca clients.pem: only clients with a certificate";

/// Options of `rackmem kv`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct KvArgs {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    rack_args: RackArgs,
    #[command(flatten)]
    join: JoinArgs,
}

/// What else there is to do than to serve.
#[derive(Debug, Subcommand)]
enum Task {
    /// Import a snapshot of Redis into a store that is in use, as a client of it
    #[command(after_help = import::EXAMPLES)]
    Import(import::ImportArgs),
}

/// How many copies a store may have; for clap.
fn copies(text: &str) -> std::result::Result<u8, String> {
    let copies = text
        .parse()
        .ok()
        .filter(|copies| [3, 5, 7].contains(copies));
    copies.ok_or_else(|| "a store has 3, 5 or 7 copies".into())
}

/// What its copies survive; for clap.
fn durability() -> impl TypedValueParser<Value = Durability> {
    let names = PossibleValuesParser::new(Durability::ALL.map(|(_, name)| name));
    names.map(|name| Durability::named(&name).unwrap_or_default())
}

/// How clients are served.
#[derive(Debug, Args)]
#[command(next_help_heading = "Serving")]
struct ServeArgs {
    /// Listen on PORT at node 0, PORT+1 at node 1 and so on; 0: any free ports
    #[arg(long, value_name = "PORT", default_value_t = 7379)]
    port: u16,
    /// Require this password (AUTH); RACKMEM_PASSWORD keeps it out of process listings
    #[arg(long)]
    password: Option<String>,
    /// Read users from FILE if the rack has none yet: a line each, `user NAME RULE...`
    #[arg(long, value_name = "FILE")]
    aclfile: Option<PathBuf>,
    #[command(flatten)]
    secure: TlsArgs,
    /// Serve clients of each node with W threads, and up to 31 more each while commands wait
    #[arg(long, value_name = "W", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// Create the store with B buckets, which become more when they are full: a power of two,
    /// the same at every node
    #[arg(long, value_name = "B", default_value_t = 1 << 10)]
    buckets: usize,
    /// Keep N copies of the store, the same at every node; left out: what the rack's FILE says
    #[arg(long, value_name = "N", value_parser = copies)]
    copies: Option<u8>,
    /// What the copies survive beside the death of few; left out: what the rack's FILE says
    #[arg(long, value_name = "WHAT", value_parser = durability())]
    durability: Option<Durability>,
    /// Keep durable copies in FOLDER; a rack's FILE says it by `store`
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with = "rack",
        requires = "durability"
    )]
    store: Option<PathBuf>,
    /// Keep at most SIZE bytes of the store in the whole rack, 0: no limit; left out: as it is
    #[arg(long, value_name = "SIZE", value_parser = crate::size::parse)]
    maxmemory: Option<u64>,
    /// Fetch keys that go round between nodes, instead of sending commands to where they are
    #[arg(long)]
    no_ship: bool,
    #[command(flatten)]
    snapshots: SnapshotArgs,
}

impl ServeArgs {
    /// The server of one node by these options; `rack`: where other nodes reach it, if they are to.
    fn config<M: AtNode>(
        &self,
        store: &Store<M>,
        addr: SocketAddr,
        rack: Option<IpAddr>,
    ) -> ServerConfig {
        ServerConfig {
            links: rack.filter(|_| !self.no_ship),
            sections: vec![info::section(store)],
            ..self.listening(addr)
        }
    }

    /// The same before there is a store.
    fn listening(&self, addr: SocketAddr) -> ServerConfig {
        let from_environment = || std::env::var("RACKMEM_PASSWORD").ok();
        ServerConfig {
            addr,
            password: self.password.clone().or_else(from_environment),
            acl_file: self.aclfile.clone(),
            tls: self.secure.config(0),
            workers: self.workers.into(),
            max_memory: self.maxmemory,
            snapshot: self.snapshots.file(),
            ..ServerConfig::default()
        }
    }
}

/// TLS, for clients.
#[derive(Debug, Args)]
struct TlsArgs {
    /// Serve TLS with the certificate in FILE (PEM, with those between it and its authority)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// And the private key in FILE
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let in only clients with a certificate of an authority in FILE
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Listen for TLS on PORT, at node 1 on PORT+1 and so on, beside plain text; left out: TLS only
    #[arg(long, value_name = "PORT", requires = "tls_cert")]
    tls_port: Option<u16>,
}

impl TlsArgs {
    /// What the `nth` node of this process serves.
    fn config(&self, nth: usize) -> Option<TlsConfig> {
        let (cert, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        let nth = u16::try_from(nth).unwrap_or(u16::MAX);
        let port = self.tls_port.map(|port| match port {
            0 => 0,
            port => port.saturating_add(nth),
        });
        let ca = self.tls_ca.clone();
        Some(TlsConfig {
            cert,
            key,
            ca,
            port,
        })
    }
}

/// This process as one node of a rack of processes.
#[derive(Debug, Args)]
#[command(next_help_heading = "One node of a rack of processes")]
struct JoinArgs {
    /// Read the rack's description from FILE
    #[arg(long, value_name = "FILE", requires_all = ["node", "listen"])]
    #[arg(conflicts_with_all = ["nodes", "fabric", "mode", "cache", "memory", "block_size", "port"])]
    rack: Option<PathBuf>,
    /// Run as node N of the rack, counted from 0
    #[arg(long, value_name = "N", requires = "rack", value_parser = node)]
    node: Option<usize>,
    /// Listen for clients on NAME:PORT or ADDRESS:PORT
    #[arg(
        long,
        value_name = "ADDR",
        requires = "rack",
        overrides_with = "listen",
        value_parser = |text: &str| rackmem::look_up("--listen", text).map_err(|error| error.what())
    )]
    listen: Option<SocketAddr>,
    /// Let the kernel answer reads of what this node has at IFACE, IFACE/native or IFACE/skb
    #[arg(long, value_name = "IFACE", requires = "rack")]
    kernel_reads: Option<String>,
    /// Let the kernel invalidate and give this node's cached copies, too (with --kernel-reads)
    #[arg(long, requires = "rack")]
    kernel_cache: bool,
    #[command(flatten)]
    leave: leaving::LeaveArgs,
    #[command(flatten)]
    fence: FenceArgs,
}

/// Serves until told to stop.
pub fn run(args: &KvArgs, json: bool) -> Result<Ended> {
    if let Some(Task::Import(args)) = &args.task {
        return import::run(args, json).map(|()| Ended::Done);
    }
    let (serve, join) = (&args.serve, &args.join);
    match (&join.rack, join.node, join.listen) {
        (Some(rack), Some(node), Some(listen)) => {
            let place = joined::Place {
                file: rack,
                number: node,
                addr: listen,
                fence: join.fence,
                leave: join.leave,
                kernel_reads: join.kernel_reads.as_deref(),
                kernel_cache: join.kernel_cache,
                metrics: &args.metrics,
            };
            joined::run(&place, serve, &args.rack_args.wires, json)
        }
        (None, ..) => embedded::run(&args.rack_args, serve, &args.metrics, json),
        _ => Err(Failure::new(
            "--rack needs --node and --listen",
            "see `rackmem kv --help`",
        )),
    }
}
