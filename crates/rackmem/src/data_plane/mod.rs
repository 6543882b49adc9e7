//! The form of the switch program that a switch runs: in this process, or in the kernel.

pub(crate) mod kernel;

use crate::data_plane::kernel::KernelMetrics;
use rackmem_fabric::{Body, PacketCounts};
use rackmem_proto::Outputs;
use rackmem_proto::gcp::Entry;
use rackmem_proto::switch::{LockCounters, Resources, SwitchCounters, SwitchProgram};
use rackmem_proto::wire::{Copyset, GlobalStatus, Header, HomeId, NodeId, Record, Tag};

/// What the control plane of a switch needs of its program. See [`SwitchProgram`]'s methods of
/// these names.
pub(crate) trait DataPlane: Send {
    /// Takes a packet that has come to the switch's socket and is not for its control plane.
    fn handle(&mut self, header: &Header, body: &Body<'_>) -> Outputs;
    fn epoch(&self) -> u32;
    fn frozen(&self) -> bool;
    fn freeze(&mut self);
    fn reset(&mut self, epoch: u32, shadow: Option<NodeId>);
    fn set_shadow(&mut self, shadow: Option<NodeId>);
    fn tags(&self, from: usize, room: usize) -> (Vec<Record>, usize);
    fn entries_of(&self, home: HomeId) -> Vec<Record>;
    fn inspect(&self, tag: Tag) -> Option<(u16, GlobalStatus, Copyset)>;
    fn entries(&self) -> usize;
    fn counters(&self) -> SwitchCounters;
    fn resources(&self) -> Resources;

    /// Whether it serves locks as well. Otherwise whoever has it does.
    fn serves_locks(&self) -> bool {
        false
    }

    /// Serves locks in another epoch, none so far; says what it has served in the last one.
    fn next_locks(&mut self, _epoch: u32) -> Vec<(Tag, Entry)> {
        Vec::new()
    }

    /// What it has done for locks.
    fn lock_counters(&self) -> LockCounters {
        LockCounters::default()
    }

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

    fn epoch(&self) -> u32 {
        self.epoch()
    }

    fn frozen(&self) -> bool {
        self.frozen()
    }

    fn freeze(&mut self) {
        self.freeze();
    }

    fn reset(&mut self, epoch: u32, shadow: Option<NodeId>) {
        self.reset(epoch, shadow);
    }

    fn set_shadow(&mut self, shadow: Option<NodeId>) {
        self.set_shadow(shadow);
    }

    fn tags(&self, from: usize, room: usize) -> (Vec<Record>, usize) {
        self.tags(from, room)
    }

    fn entries_of(&self, home: HomeId) -> Vec<Record> {
        self.entries_of(home)
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
