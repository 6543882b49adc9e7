//! Options of `rackmem bench micro` on a rack of hosts, or as one node of a rack of processes.

use super::{BenchResult, Progress, explain};
use crate::commands::load;
use crate::failure::{Failure, Result};
use crate::rack_args::node;
use clap::{Args, ValueEnum};
use rackmem_bench::report::Report;
use rackmem_bench::run::micro::Options;
use rackmem_bench::run::micro_hosts::{self, Where};
use rackmem_bench::run::micro_member::{self, Part};
use rackmem_hosts::rack::Switch;
use std::path::PathBuf;

/// Which switch a rack of hosts has in mode `switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SwitchArg {
    /// A process behind a UDP socket
    User,
    /// A program in the kernel, in the driver
    XdpNative,
    /// A program in the kernel, in the network stack
    XdpSkb,
}

impl From<SwitchArg> for Switch {
    fn from(arg: SwitchArg) -> Switch {
        match arg {
            SwitchArg::User => Switch::User,
            SwitchArg::XdpNative => Switch::Xdp("native".into()),
            SwitchArg::XdpSkb => Switch::Xdp("skb".into()),
        }
    }
}

/// All that this build has.
const SWITCHES: &str = if cfg!(feature = "xdp") {
    "xdp-native,xdp-skb,user"
} else {
    "user"
};

#[derive(Debug, Args)]
#[command(next_help_heading = "On a rack of hosts")]
pub struct HostsArgs {
    /// Run on N hosts: network namespaces of this machine, a process each; needs root
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32))]
    #[arg(conflicts_with_all = ["nodes", "fabric", "history", "rack", "sim"])]
    pub hosts: Option<u16>,
    /// Measure these switches in mode `switch`
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = SWITCHES,
        requires = "hosts"
    )]
    switch: Vec<SwitchArg>,
    /// Run as one node of the rack in FILE (start one on each machine);
    /// only the first --sharing is used
    #[arg(long, value_name = "FILE", requires = "node")]
    pub rack: Option<PathBuf>,
    /// Run as node N
    #[arg(long, value_name = "N", requires = "rack", value_parser = node)]
    node: Option<usize>,
}

impl HostsArgs {
    /// Runs it on hosts.
    pub fn run(
        &self,
        options: Options,
        report: &mut Report,
        progress: Progress<'_>,
    ) -> BenchResult {
        let place = Where {
            program: std::env::current_exe()?,
            switches: self.switch.iter().map(|&arg| arg.into()).collect(),
        };
        micro_hosts::run(&options, &place, report, progress)
    }

    /// Does one node's part.
    pub fn member(&self, options: &Options) -> Result<Part> {
        let (Some(file), Some(node)) = (&self.rack, self.node) else {
            return Err(Failure::new(
                "--rack needs --node",
                "see `rackmem bench micro --help`",
            ));
        };
        micro_member::run(options, &load(file)?, node).map_err(explain)
    }
}
