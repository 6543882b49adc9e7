//! For programs that watch a rack, test one or look into its network: counters, packet kinds,
//! faults, the switch's resources.
//!
//! An application that only uses the memory needs nothing of this.
//! The examples show where each figure comes from.
//!
//! ```
//! # fn main() -> rackmem::Result<()> {
//! use rackmem::Rack;
//! use rackmem::diagnostics::{Kind, RackMetrics};
//!
//! let rack = Rack::local(2)?;
//! let shared = rack.node(0).alloc(1u64)?;
//! rack.node(1).attach::<u64>(shared.addr())?;         // a read miss of node 1
//! let metrics: RackMetrics = rack.metrics();
//! let sent = |kind| metrics.nodes[1].sent.0.iter().find(|row| row.0 == kind).map(|row| row.1);
//! assert_eq!(sent(Kind::ReadMiss), Some(1));
//! # Ok(())
//! # }
//! ```
//!
//! A network that loses packets, and a cable that is cut and mended:
//!
//! ```
//! # fn main() -> rackmem::Result<()> {
//! use rackmem::diagnostics::{BadFaults, End, FaultControl, FaultCounts, Faults};
//! use rackmem::{Fabric, Rack};
//!
//! let faults = Faults { loss: 0.05, ..Faults::default() };
//! let rack = Rack::builder(2).fabric(Fabric::Udp).faults(faults).build()?;
//! let shared = rack.node(0).alloc(7u64)?;
//! let control: &FaultControl = rack.faults().expect("it was built with faults");
//! control.part(&[End::Node(0)], &[End::Node(1)]);
//! control.heal();
//! assert_eq!(rack.node(1).attach::<u64>(shared.addr())?.read()?, 7);
//! let FaultCounts { packets, .. } = control.counts();
//! assert!(packets > 0);
//! let bad: Result<(), BadFaults> = Faults { loss: 2.0, ..faults }.check();
//! assert!(bad.is_err());
//! # Ok(())
//! # }
//! ```
//!
//! What the sockets have cost this process:
//!
//! ```
//! # fn main() -> rackmem::Result<()> {
//! use rackmem::diagnostics::Work;
//! use rackmem::{Fabric, Rack};
//!
//! let rack = Rack::builder(2).fabric(Fabric::Udp).build()?;
//! let before = Work::now();
//! rack.node(1).load(rack.node(0).alloc(7u64)?.addr())?;
//! let miss = Work::now() - before;
//! assert!(miss.datagrams_out >= 3 && miss.system_calls() >= miss.sends);
//! # Ok(())
//! # }
//! ```
//!
//! What the switch program would take of an ASIC, which the [`Resources`] of its tables tell:
//!
//! ```
//! # fn main() -> rackmem::Result<()> {
//! use rackmem::Rack;
//! use rackmem::diagnostics::Resources;
//!
//! let rack = Rack::local(2)?;
//! let resources: Resources = rack.switch().expect("an embedded rack has one").resources();
//! println!("{resources:?}");
//! # Ok(())
//! # }
//! ```

pub use crate::bytes::desk::KernelCacheCounts;
pub use crate::data_plane::kernel::reads::{
    KernelBlockCounts, KernelItemCounts, KernelLineCounts, KernelReadCounts,
};
pub use crate::data_plane::kernel::{KernelMetrics, KernelPlace};
pub use crate::host::families::{
    Metric, MetricKind, MetricUnit, NODE_METRICS, PROCESS_METRICS, SWITCH_METRICS,
};
pub use crate::host::hot::HotBlock;
pub use crate::host::metrics::{
    BoundedCounts, EventCounts, MemoryMetrics, NodeMetrics, ObjectCounts, RackMetrics,
    ShadowMetrics, SwitchMetrics,
};
pub use crate::host::rebuilding::RebuildMetrics;
pub use crate::host::replicated::CopyCounts;
pub use crate::host::told::{NodeReport, ToldFigures};
pub use crate::rack::inspecting::{
    inspect, inspect_figures, inspect_groups, inspect_hot, inspect_objects, inspect_regions,
};
pub use crate::rack::switch::SoftSwitch;
pub use rackmem_fabric::{BadFaults, End, FaultControl, FaultCounts, Faults, PacketCounts, Work};
pub use rackmem_proto::switch::{LockCounters, Resources};
pub use rackmem_proto::wire::{Kind, Reason};
