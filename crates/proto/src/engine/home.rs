//! A node's home: its home agent, and what a packet's bytes do to its memory.

use super::Defect;
use crate::Outputs;
use crate::flowcc::{HomeAction, HomeAgent, Operating, Storing};
use crate::wire::{Header, Kind, Record, Tag};
use alloc::vec::Vec;

/// In an ACCEPT-LOSS's `offset`: the block begins anew, empty, and whatever home still had of it is
/// gone.
pub const ACCEPT_EMPTY: u32 = 1;

/// A home's memory, and the bytes of the packet at hand.
pub trait Memory {
    /// A block's bytes, kept apart.
    type Bytes;
    /// Puts the packet's bytes at its tag and offset; what lies outside the memory is left out.
    fn store(&mut self, header: &Header);
    /// Puts a whole block in place.
    fn put(&mut self, tag: Tag, bytes: &Self::Bytes);
    /// Makes a block zeroes.
    fn clear(&mut self, tag: Tag);
    /// Puts a block's bytes behind those that are gathered for the answer to the packet at hand.
    /// False: there is no room.
    fn gather(&mut self, tag: Tag) -> bool;
    /// Puts the nth of the whole blocks that the packet at hand brings in place.
    fn scatter(&mut self, tag: Tag, nth: u16);
    /// Whether the packet at hand says what is to be done to a word of this block.
    fn can_operate(&self, tag: Tag) -> bool;
    /// Does it; what the word was before.
    fn operate(&mut self, tag: Tag) -> u64;
    /// The switch decides about this block from now on, so that home is only asked for its bytes:
    /// where the kernel answers that, it has them from here on, and what is put in place of them.
    fn show(&mut self, _tag: Tag) {}
    /// It does not any more: the kernel has them no longer when this returns.
    fn hide(&mut self, _tag: Tag) {}
    /// The same of all blocks: the epoch is over.
    fn hide_all(&mut self) {}
}

/// What has become of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Bytes of the packet are in memory.
    pub stored: bool,
    /// The loss of the block has been accepted.
    pub accepted: bool,
}

/// See the module.
#[derive(Clone)]
pub struct Home {
    /// The home agent.
    pub agent: HomeAgent,
}

impl Home {
    /// The home of this agent.
    pub fn new(agent: HomeAgent) -> Self {
        Home { agent }
    }

    /// Takes a packet with so many bytes behind its header, or with the objects that go back; what
    /// to send goes to `outputs`. Bytes change before anyone can be granted the block again.
    pub fn packet(
        &mut self,
        header: &Header,
        (len, objects): (u32, Vec<Record>),
        memory: &mut impl Memory,
        defect: Option<Defect>,
        outputs: &mut Outputs,
    ) -> Served {
        let lost = header.kind == Kind::AcceptLoss && self.agent.lost(header.tag);
        let action = match header.kind {
            Kind::Free => {
                *outputs = self.agent.free(header, objects.into_iter());
                HomeAction::None
            }
            _ => self.agent.serve(header, len, outputs),
        };
        if matches!(header.kind, Kind::AddAck | Kind::RemoveAck) {
            match self.agent.is_away(header.tag) {
                true => memory.show(header.tag),
                false if defect == Some(Defect::ShowReturned) => {}
                false => memory.hide(header.tag),
            }
        }
        let accepted = lost && !self.agent.lost(header.tag);
        if accepted && header.offset == ACCEPT_EMPTY {
            memory.clear(header.tag);
        }
        let stale = defect == Some(Defect::StoreStaleData) && header.kind == Kind::WriteBack;
        let stored = action == HomeAction::Store || stale;
        if stored {
            memory.store(header);
        }
        Served { stored, accepted }
    }

    /// Puts a block of a `Store` in place, the nth of those that it brings,
    /// if that is what is to happen.
    pub fn store(
        &mut self,
        header: &Header,
        (tag, nth): (Tag, u16),
        memory: &mut impl Memory,
        defect: Option<Defect>,
    ) -> Storing {
        let storing = self.step(header, (tag, nth), defect);
        if storing == Storing::Write {
            memory.scatter(tag, nth);
        }
        storing
    }

    /// What is to happen about the nth block of a packet that changes home's memory.
    fn step(&mut self, header: &Header, (tag, nth): (Tag, u16), defect: Option<Defect>) -> Storing {
        if defect == Some(Defect::ForgetStores) {
            self.agent.forget_stores();
        }
        match self.agent.store(header, tag, nth) {
            Storing::Refuse if defect == Some(Defect::StoreShared) => Storing::Write,
            storing => storing,
        }
    }

    /// Does what a packet says to a word, if that is what is to happen; whether it has, now or when
    /// an earlier copy of the packet came, or why not.
    pub fn operate(
        &mut self,
        header: &Header,
        memory: &mut impl Memory,
        defect: Option<Defect>,
        outputs: &mut Outputs,
    ) -> Storing {
        let storing = match memory.can_operate(header.tag) {
            true => self.step(header, (header.tag, 0), defect),
            false => Storing::Ignore,
        };
        let what = match storing {
            Storing::Write => {
                let old = memory.operate(header.tag);
                if defect != Some(Defect::ForgetOld) {
                    *self.agent.operated_on(header) = old;
                }
                Operating::Done(old)
            }
            Storing::Written => Operating::Done(*self.agent.operated_on(header)),
            Storing::Refuse => Operating::Refused,
            Storing::Ignore => Operating::Ignored,
        };
        self.agent.operated(header, what, outputs);
        storing
    }

    /// Bytes of a block come that home may not have. They belong nowhere if the block is not of
    /// coherent memory here.
    pub fn rescue(&mut self, header: &Header, memory: &mut impl Memory) {
        if self.agent.has(header.tag) {
            memory.store(header);
        }
    }
}
