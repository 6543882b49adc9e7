//! Options of `rackmem bench kv`.

use super::often::Often;
use super::{BenchResult, Progress};
use crate::crew::{Crew, Start};
use crate::halt::{Halt, Played, wrong};
use crate::rack_args::{FabricArg, ModeArg, RackArgs, nodes};
use crate::stop::Stop;
use crate::wire_args::WireArgs;
use crate::{orphan, programs};
use clap::{Args, ValueEnum};
use rackmem_bench::recorded::HistoryFile;
use rackmem_bench::report::Report;
use rackmem_bench::run::kv_rack::{self, Cost, Served};
use rackmem_bench::run::{BenchError, kv};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the store is measured beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Versus {
    /// redis-server on this machine, with the same client and keys
    Redis,
    /// No comparison
    Nothing,
}

#[derive(Debug, Args)]
pub struct KvArgs {
    /// Compare with Redis or nothing [redis, where installed]
    #[arg(long, value_enum)]
    vs: Option<Versus>,
    /// Run N nodes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = nodes)]
    nodes: usize,
    /// Run N processes, each a node and its server, and one for the switch; nothing is embedded
    #[arg(long, value_name = "N", value_parser = nodes, conflicts_with = "nodes")]
    processes: Option<usize>,
    /// Choose how their packets travel
    #[arg(long, value_enum, default_value = "udp", requires = "processes")]
    fabric: FabricArg,
    /// Tell it beside a rack whose servers send no commands (`rackmem kv --no-ship`)
    #[arg(long, requires = "processes")]
    ship: bool,
    /// Use N keys with values of 128 bytes
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    keys: u64,
    #[command(flatten)]
    pub often: Often<1, 1000>,
    /// Run two more cases and record their operations in FILE, for `rackmem history check`
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
}

pub fn run(
    args: &KvArgs,
    round: usize,
    file: Option<&mut HistoryFile>,
    report: &mut Report,
    progress: Progress<'_>,
) -> BenchResult {
    let redis = match args.vs {
        Some(versus) => versus == Versus::Redis,
        None => programs::find("redis-server").is_some(),
    };
    if let Some(processes) = args.processes {
        let options = kv_rack::Options {
            keys: args.keys,
            duration: args.often.time(),
            redis,
            outside: programs::find("redis-benchmark").is_some(),
        };
        let kinds: &[bool] = if args.ship { &[false, true] } else { &[true] };
        let mut racks = Vec::new();
        for ship in kinds {
            racks.push(Processes::start(args, processes, *ship)?);
        }
        let mut racks: Vec<_> = racks
            .iter_mut()
            .map(|rack| rack as &mut dyn Served)
            .collect();
        return kv_rack::run(&options, round, &mut racks, file, report, progress);
    }
    let options = kv::Options {
        nodes: args.nodes,
        keys: args.keys,
        duration: args.often.time(),
        redis,
    };
    kv::run(&options, round, file, report, progress)
}

/// How long a process may take to serve.
const PATIENCE: Duration = Duration::from_secs(60);
/// A rack of processes, each of which serves the store.
struct Processes {
    crew: Crew,
    addrs: Vec<SocketAddr>,
    name: String,
    stop: Stop,
}

impl Processes {
    fn start(args: &KvArgs, nodes: usize, ship: bool) -> std::result::Result<Self, BenchError> {
        let lines = match args.fabric {
            // Alone it is a rack as it comes, whose servers send nothing there.
            FabricArg::Shm if args.ship => "fabric = \"shm\"\n[kv]\nship = true\n",
            FabricArg::Shm => "fabric = \"shm\"\n",
            FabricArg::Udp => "",
            FabricArg::Inline => {
                let why = "--fabric inline has all nodes in one process: leave out --processes";
                return Err(BenchError::Missing(why.into()));
            }
        };
        let fabric = rackmem::Fabric::from(args.fabric).name();
        let stop = Stop::default();
        let crew = Self::crew(nodes, args.fabric, lines, ship, &stop).map_err(explain)?;
        let ships = if ship { "" } else { "-no-ship" };
        let mut processes = Processes {
            crew,
            addrs: Vec::new(),
            name: format!("rackmem/{fabric}/processes-{nodes}{ships}"),
            stop,
        };
        let said = processes.crew.answers(&processes.stop).map_err(explain)?;
        let addr = |said: &Value| said["listening"][0].as_str()?.parse().ok();
        let addrs: Option<Vec<SocketAddr>> = said.iter().map(addr).collect();
        let bad = || {
            explain(wrong(format!(
                "the nodes do not say where they listen: {said:?}"
            )))
        };
        processes.addrs = addrs.ok_or_else(bad)?;
        Ok(processes)
    }

    fn crew(nodes: usize, fabric: FabricArg, lines: &str, ship: bool, stop: &Stop) -> Played<Crew> {
        let rack = RackArgs {
            nodes,
            fabric,
            mode: ModeArg::Switch,
            cache: 256 << 20,
            memory: 1 << 30,
            block_size: 4096,
            wires: WireArgs::default(),
        };
        let member = |file: &Path, node: usize| {
            let (file, node) = (file.to_string_lossy(), node.to_string());
            let args = [
                "kv",
                "--rack",
                &file,
                "--node",
                &node,
                "--listen",
                "127.0.0.1:0",
            ];
            args.into_iter()
                .chain((!ship).then_some("--no-ship"))
                .chain([orphan::OPTION])
                .map(String::from)
                .collect()
        };
        let start = Start {
            rack: &rack,
            lines,
            member: &member,
            patience: PATIENCE,
            next: "see its message above",
        };
        Crew::start(&start, stop)
    }
}

impl Served for Processes {
    fn addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn cost(&mut self) -> std::result::Result<Cost, BenchError> {
        let said = self.crew.everyone("work", &self.stop).map_err(explain)?;
        let mut sum = Cost::default();
        for said in said {
            let figure = |name: &str| said["work"][name].as_u64().unwrap_or_default();
            sum.system_calls += figure("system_calls");
            sum.datagrams += figure("datagrams_out");
            sum.sleeps += figure("sleeps");
        }
        Ok(sum)
    }
}

fn explain(halt: Halt) -> BenchError {
    match halt {
        Halt::Stopped => BenchError::Stopped,
        Halt::Failed(failure) => BenchError::Missing(failure.to_string()),
    }
}
