//! The form of the switch program that a switch runs: in this process, or in the kernel.

pub(crate) mod kernel;

use crate::data_plane::kernel::KernelMetrics;
use rackmem_fabric::{Body, PacketCounts};
use rackmem_proto::Outputs;
use rackmem_proto::switch::{
    Counted, LockCounters, Pipeline, Resources, SwitchCounters, SwitchProgram,
};
use rackmem_proto::wire::{Copyset, GlobalStatus, Header, Tag};

/// What a switch's process needs of its program beside what its part in the rack does. See
/// [`SwitchProgram`]'s methods of these names.
pub(crate) trait DataPlane: Pipeline + Send {
    /// Takes a packet that has come to the switch's socket and is not for its control plane.
    fn handle(&mut self, header: &Header, body: &Body<'_>) -> Outputs;
    fn inspect(&self, tag: Tag) -> Option<(u16, GlobalStatus, Copyset)>;
    fn entries(&self) -> usize;
    fn counters(&self) -> SwitchCounters;
    fn resources(&self) -> Resources;

    /// Whether it serves locks as well. Otherwise whoever has it does.
    fn serves_locks(&self) -> bool {
        false
    }

    /// What it has done for locks.
    fn lock_counters(&self) -> LockCounters {
        LockCounters::default()
    }

    /// Counts for a group of replicated memory from here on, or not any more.
    /// Says whether it is one that does; otherwise whoever has it counts.
    fn counts(&mut self, _group: u16, _counted: Option<Counted>) -> bool {
        false
    }

    /// This is the switch's incarnation: groups that name it let it choose stamps.
    fn lives(&mut self, _incarnation: u32) {}

    /// What it counts beyond that, if it is in the kernel: packets by kind, which no socket has
    /// seen, and its own figures.
    fn in_kernel(&self) -> Option<(PacketCounts, KernelMetrics)> {
        None
    }
}

impl DataPlane for SwitchProgram {
    fn handle(&mut self, header: &Header, body: &Body<'_>) -> Outputs {
        // Nothing that the program takes has a body.
        if !body.is_empty() {
            return Outputs::default();
        }
        self.handle(header)
    }

    fn inspect(&self, tag: Tag) -> Option<(u16, GlobalStatus, Copyset)> {
        self.inspect(tag)
    }

    fn entries(&self) -> usize {
        self.entries()
    }

    fn counters(&self) -> SwitchCounters {
        self.counters()
    }

    fn resources(&self) -> Resources {
        self.resources()
    }
}
