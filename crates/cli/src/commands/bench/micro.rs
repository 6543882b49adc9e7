//! Options of `rackmem bench micro`.

use super::micro_hosts::HostsArgs;
use super::micro_sim::SimArgs;
use super::often::Often;
use super::{BenchResult, Progress};
use crate::failure::Result;
use crate::rack_args::FabricArg;
use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser};
use rackmem_bench::recorded::HistoryFile;
use rackmem_bench::report::Report;
use rackmem_bench::run::{micro, micro_member, sim};
use rackmem_bench::system::System;
use std::path::PathBuf;
use std::time::Duration;

/// Nodes that a rack has at most.
const MAX_NODES: i64 = 32;
/// Nodes of a rack unless told otherwise.
const NODES: u16 = 4;

#[derive(Debug, Args)]
pub struct MicroArgs {
    /// Choose how packets travel
    #[arg(long, value_enum, default_value = "inline")]
    fabric: FabricArg,
    /// Measure these protocols [all]
    #[arg(long, value_delimiter = ',', value_parser = mode())]
    modes: Vec<System>,
    /// Run N nodes [4]; several: a rack of each size
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = nodes())]
    nodes: Vec<u16>,
    /// Run N threads on each node
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32))]
    threads: u16,
    /// Make PERCENT of operations touch data that all nodes share
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "0,20,60,100"
    )]
    #[arg(value_parser = percent())]
    sharing: Vec<u8>,
    /// Make PERCENT of operations reads
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = percent())]
    reads: u8,
    /// Make PERCENT of operations reuse the previous block
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = percent())]
    locality: u8,
    #[command(flatten)]
    pub often: Often<1, 0>,
    /// Record every operation in FILE, for `rackmem history check`
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    #[command(flatten)]
    hosts: HostsArgs,
    #[command(flatten)]
    sim: SimArgs,
}

fn percent() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(0..=100)
}

fn nodes() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..=MAX_NODES)
}

/// The names of modes, the baselines included.
fn mode() -> impl TypedValueParser<Value = System> {
    let by_name = |name: String| {
        System::ALL
            .iter()
            .find(|row| row.1 == name)
            .map(|row| row.0)
    };
    PossibleValuesParser::new(System::ALL.map(|row| row.1))
        .try_map(move |name| by_name(name).ok_or("no such mode"))
}

impl MicroArgs {
    /// Whether to simulate, and what.
    pub fn simulation(&self) -> Option<sim::Options> {
        self.sim.options(&self.nodes)
    }

    /// Whether this process is one node of a rack of processes.
    pub fn is_member(&self) -> bool {
        self.hosts.rack.is_some()
    }

    /// Does that node's part.
    pub fn member(&self) -> Result<micro_member::Part> {
        self.hosts.member(&self.options())
    }

    /// Between hosts an operation takes so long that it is seconds until hot entries are where they
    /// will stay.
    fn usual_duration(&self) -> Duration {
        match self.hosts.hosts {
            Some(_) => Duration::from_secs(5),
            None => micro::Options::default().duration,
        }
    }

    fn options(&self) -> micro::Options {
        let mut options = micro::Options {
            fabric: self.fabric.into(),
            threads: self.threads.into(),
            sharing: self.sharing.clone(),
            reads: self.reads,
            locality: self.locality,
            duration: self.often.duration.unwrap_or(self.usual_duration()),
            ..micro::Options::default()
        };
        if !self.modes.is_empty() {
            options.modes.clone_from(&self.modes);
        }
        options
    }
}

pub fn run(
    args: &MicroArgs,
    mut file: Option<&mut HistoryFile>,
    report: &mut Report,
    progress: Progress<'_>,
) -> BenchResult {
    let mut options = args.options();
    if let Some(hosts) = args.hosts.hosts {
        options.nodes = usize::from(hosts);
        return args.hosts.run(options, report, progress);
    }
    let usual = [NODES];
    let sizes = match args.nodes.as_slice() {
        [] => &usual[..],
        some => some,
    };
    for nodes in sizes {
        options.nodes = usize::from(*nodes);
        micro::run(&options, file.as_deref_mut(), report, progress)?;
    }
    Ok(())
}
