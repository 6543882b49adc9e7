//! What one step of a part of the rack does to everything else.

use super::layout::Layout;
use super::packet::{ExplorerPacket, Value, packets};
use super::witness::Witnesses;
pub use crate::driver::Complaint;
use crate::site::Load;
use rackmem_proto::Output;
use rackmem_proto::wire::{NodeId, Tag};

/// What a thread saw of a block, or made of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observation {
    /// It read this.
    Read(u8, Value),
    /// It found the first and left the second.
    Wrote(u8, Value, Value),
    /// It goes on with this, in place of what died.
    Accepted(u8, Value),
    /// It was told that there is no such memory.
    NoMemory(u8),
}

/// Everything that leaves a part.
pub struct Effects<'a> {
    /// Where everything is.
    pub layout: &'a Layout,
    /// Packets.
    pub sent: Vec<ExplorerPacket>,
    /// What threads saw and did.
    pub observed: Vec<Observation>,
    /// What happened to copies, for stories.
    pub notes: Vec<(NodeId, u8, &'static str)>,
    /// What else was seen.
    pub seen: Witnesses,
    /// The first promise that was broken.
    pub complaint: Option<Complaint>,
}

impl<'a> Effects<'a> {
    /// None yet.
    pub fn new(layout: &'a Layout) -> Self {
        Effects {
            layout,
            sent: Vec::new(),
            observed: Vec::new(),
            notes: Vec::new(),
            seen: Witnesses::default(),
            complaint: None,
        }
    }

    /// Something has happened to a copy.
    pub fn tell(&mut self, node: NodeId, tag: Tag, text: &'static str) {
        let block = self.layout.block(tag);
        self.notes.extend(block.map(|block| (node, block, text)));
    }

    /// Sends what a role wants sent.
    pub fn send(&mut self, output: &Output, load: &Load<Value>) {
        packets(output, load, self.layout.scenario.segments, &mut self.sent);
    }

    /// Sends these, with nothing behind them.
    pub fn send_all(&mut self, outputs: impl IntoIterator<Item = Output>) {
        let outputs = outputs.into_iter();
        outputs.for_each(|output| self.send(&output, &Load::Nothing));
    }
}
