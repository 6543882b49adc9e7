//! The options of an embedded rack, shared by the commands that make one.

use crate::failure::{Failure, Result};
use crate::size;
use crate::wire_args::WireArgs;
use clap::{Args, ValueEnum};
use rackmem::{Builder, Fabric, Rack};
use rackmem_bench::system::System;
use rackmem_proto::wire::MAX_NODES;

/// How packets move between the nodes of an embedded rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FabricArg {
    /// A function call: the receiver's handler runs in the sender's thread
    Inline,
    /// Shared memory: a thread for every agent and the switch
    Shm,
    /// UDP over loopback, a thread for every agent and the switch
    Udp,
}

/// Which protocol keeps the memory coherent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// FlowCC: the switch owns the directory entries it has room for
    Switch,
    /// FlowCC without a switch: home agents own every entry
    HomeOnly,
    /// A classic directory (baseline): the home collects the acknowledgements
    Directory,
}

/// How many nodes a rack has; for clap.
pub fn nodes(text: &str) -> std::result::Result<usize, String> {
    let number = text.parse::<usize>().ok();
    let number = number.filter(|number| (1..=MAX_NODES).contains(number));
    number.ok_or_else(|| format!("a rack has 1 to {MAX_NODES} nodes"))
}

/// The number of a node; for clap.
pub fn node(text: &str) -> std::result::Result<usize, String> {
    let number = text.parse::<usize>().ok();
    let number = number.filter(|number| *number < MAX_NODES);
    number.ok_or_else(|| format!("nodes have the numbers 0 to {}", MAX_NODES - 1))
}

/// Packets that agents of this process, and the switch if it is here, have received.
pub fn packets(rack: &Rack) -> u64 {
    let metrics = rack.metrics();
    let switch = metrics.switch.as_ref();
    metrics.agent_packets().total() + switch.map_or(0, |it| it.received.total())
}

impl From<FabricArg> for Fabric {
    fn from(fabric: FabricArg) -> Fabric {
        match fabric {
            FabricArg::Inline => Fabric::Inline,
            FabricArg::Shm => Fabric::Shm,
            FabricArg::Udp => Fabric::Udp,
        }
    }
}

impl From<ModeArg> for System {
    fn from(mode: ModeArg) -> System {
        match mode {
            ModeArg::Switch => System::Switch,
            ModeArg::HomeOnly => System::HomeOnly,
            ModeArg::Directory => System::Directory,
        }
    }
}

/// An embedded rack: all its nodes in this process.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The rack")]
pub struct RackArgs {
    /// Nodes, 1 to 32
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = nodes)]
    pub nodes: usize,
    /// Choose how packets travel
    #[arg(long, value_enum, default_value = "inline")]
    pub fabric: FabricArg,
    /// Choose the coherence protocol
    #[arg(long, value_enum, default_value = "switch")]
    pub mode: ModeArg,
    /// Cache SIZE bytes of blocks and remote locks at each node
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    pub cache: u64,
    /// Contribute SIZE bytes of memory per node, allocated on first use
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size::parse)]
    pub memory: u64,
    /// Keep blocks of SIZE bytes coherent: a power of two, 256 to 65536
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    pub block_size: u64,
    #[command(flatten)]
    pub wires: WireArgs,
}

impl RackArgs {
    /// Starts the rack.
    pub fn build(&self) -> Result<Rack> {
        self.build_with(|rack| rack)
    }

    /// The same, with something beside what options say.
    pub fn build_with(&self, with: impl FnOnce(Builder) -> Builder) -> Result<Rack> {
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        let rack = System::from(self.mode)
            .builder(self.nodes)
            .fabric(self.fabric.into())
            .cache(bytes(self.cache))
            .memory(self.memory)
            .block_size(bytes(self.block_size));
        Ok(with(self.wires.build(rack)).build()?)
    }

    /// Whether the rack has a switch.
    pub fn has_switch(&self) -> bool {
        self.mode == ModeArg::Switch
    }

    /// Whether processes can form such a rack: baselines exist in one process only.
    pub fn fits_processes(&self) -> bool {
        self.mode != ModeArg::Directory
    }

    /// What the file of a rack of processes says of the fabric: they use UDP where shared memory is
    /// not asked for.
    ///
    /// # Errors
    /// When processes cannot form such a rack.
    pub fn fabric_of_processes(&self) -> Result<&'static str> {
        if !self.fits_processes() {
            return Err(Failure::new(
                "--mode directory exists in one process only",
                "leave out --processes, or choose --mode switch or home-only",
            ));
        }
        Ok(match self.fabric {
            FabricArg::Shm => "fabric = \"shm\"\n",
            FabricArg::Inline | FabricArg::Udp => "",
        })
    }

    /// The rack in a few words.
    pub fn describe(&self) -> String {
        let fabric = Fabric::from(self.fabric);
        let nodes = if self.nodes == 1 { "node" } else { "nodes" };
        format!(
            "{} {nodes}, {} fabric, {} mode, blocks of {}",
            self.nodes,
            fabric.name(),
            System::from(self.mode).name(),
            size::show(self.block_size)
        )
    }
}
