//! A switch whose program runs in the Linux kernel, as XDP, and reads that a program there answers.

#[cfg(feature = "xdp")]
mod objects;
#[cfg(feature = "xdp")]
mod plane;
pub(crate) mod reads;

#[cfg(feature = "xdp")]
pub(crate) use plane::attach;

use crate::config::KernelMode;

/// Where the program shall run.
///
/// ```no_run
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Config, KernelMode, KernelSwitch, Rack};
///
/// let config = Config::load("rack.toml".as_ref())?;
/// let kernel = KernelSwitch { interfaces: vec!["eth0".into()], mode: KernelMode::Auto };
/// let switch = Rack::serve_switch_in_kernel(&config, &kernel)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSwitch {
    /// The interfaces behind which the rack's hosts are.
    pub interfaces: Vec<String>,
    /// In the driver, in the network stack, or wherever it can.
    pub mode: KernelMode,
}

/// Where it does run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlace {
    /// `native` or `generic (skb)`.
    pub mode: String,
    /// The interface that refused native mode, and what it said, if that was tried.
    pub fell_back: Option<(String, String)>,
    /// The interfaces.
    pub interfaces: Vec<String>,
    /// What keeps the kernel of a node's host from giving blocks, where it answers other reads.
    pub no_blocks: Option<String>,
    /// What keeps it from giving copies of the node's cache, where it invalidates them.
    pub no_copies: Option<String>,
}

/// What a switch in the kernel counts beyond what every switch does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelMetrics {
    /// Datagrams for the switch that were no packets; they were dropped.
    pub malformed: u64,
    /// Packets passed to the control plane.
    pub control: u64,
    /// Packets that the control plane has sent, since the ports could not:
    /// a receiver not heard of yet, for one.
    pub orders: u64,
    /// Packets lost on purpose.
    pub lost: u64,
    /// Packets that should have met the program and came to the socket: an interface is missing.
    pub missed: u64,
    /// Accesses to the program's maps that failed.
    pub errors: u64,
}

/// Why this build has no such switch.
#[cfg(not(feature = "xdp"))]
pub(crate) fn attach(
    _: &KernelSwitch,
    _: &crate::config::Config,
    _: rackmem_proto::switch::SwitchConfig,
) -> Result<(Box<dyn crate::data_plane::DataPlane>, KernelPlace), crate::error::OpenError> {
    Err(crate::error::OpenError::Kernel {
        code: "not-built",
        why: "this rackmem was built without the switch in the kernel".into(),
    })
}
