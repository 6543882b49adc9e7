//! The paper's controller at a destination (§4, §5): an R2P2 with LightSABRes.
//!
//! It reads whole objects out of the memory of its chip while cores write them. It loads the
//! blocks of an object in parallel with the block that has its version, and its stream buffers
//! notice the stores that this could miss. It is a value: packets of sources and events of the
//! chip's memory in, loads and replies out. One call is one action of one stage of the pipeline,
//! so that an explorer orders the actions and a model times them.
//!
//! | stage (Fig. 4) | call |
//! |---|---|
//! | register SABRe, count requests | [`Controller::accept`] |
//! | select transfer, unroll | [`Controller::issue`] |
//! | replies of the memory, snooped | [`Controller::returned`], [`Controller::invalidated`] |
//! | validate | [`Controller::validate`] |
//!
//! | event | window of vulnerability open | closed |
//! |---|---|---|
//! | unroll | next block that was asked for, if a slot and a consecutive page has it | next one |
//! | the base block returns | a writer is in: abort; else the version is kept, the window closes | – |
//! | another block returns | its bit is set, it is sent | it is sent |
//! | a block with its bit set is invalidated | abort | ignored: a writer must have taken the base first |
//! | the base is invalidated | ignored: it has not been read | the version is to be read again |
//! | all blocks have been sent | – | success; or, if the base was invalidated, by the version's comparison |
//! | abort | requests are answered empty, one by one, then the failure | the same |
//!
//! A source sends a registration and a request for each block ([`Transfer`]); it gets one reply for
//! each: the blocks, in any order, and the verdict last. The library does not use the controller:
//! between machines without such hardware `sabre::rule` does its work
//! (`docs/protocols/sabres.md`).

mod entry;
mod source;
mod stream;

pub use source::{Completed, Transfer, Unasked};

use alloc::vec::Vec;
use entry::{Entry, Phase};

/// Stream buffers, and entries of the table of active transfers (§5.1).
pub const ENTRIES: usize = 16;
/// Slots of a stream buffer (§5.1).
pub const DEPTH: u16 = 32;
/// The deepest stream buffer there can be.
pub const MAX_DEPTH: u16 = 64;
/// Blocks of the longest SABRe: 64 KiB.
pub const MAX_BLOCKS: u16 = 1024;
/// Bytes of an entry of the table, and of a stream buffer (§5.1).
pub const STATE_BYTES: [usize; 2] = [24, 11];

/// How objects are kept from being torn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// By their version: odd while a writer is in.
    Versions,
    /// By a count of readers beside the version, which keeps writers out.
    ReaderLock,
}

/// What a controller is built as.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Design {
    /// See [`Mode`].
    pub mode: Mode,
    /// Whether blocks are loaded before the version is known.
    pub speculates: bool,
    /// SABRes at once.
    pub entries: usize,
    /// Blocks of each that are loaded before its version is known, at most [`MAX_DEPTH`].
    pub depth: u16,
}

impl Design {
    /// The paper's (§5.1).
    pub const PAPER: Design = Design {
        mode: Mode::Versions,
        speculates: true,
        entries: ENTRIES,
        depth: DEPTH,
    };
}

/// A SABRe under way, as packets name it (§5.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SabreId {
    /// The node that asks.
    pub node: u16,
    /// Its request generation pipeline.
    pub pipeline: u8,
    /// The transfer of that.
    pub transfer: u8,
}

/// What a source sends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Request {
    /// A SABRe begins. In-order delivery: its other requests come behind this one.
    Register {
        /// Its name.
        id: SabreId,
        /// The physical block in which the object and its version begin.
        base: u64,
        /// Blocks of the object.
        blocks: u16,
        /// How many of them, from the base on, lie on consecutive pages.
        piece: u16,
    },
    /// One more block of it may be sent.
    Block(SabreId),
}

/// What goes back to a source: one for each request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// For a block that was asked for.
    Block {
        /// Of which SABRe.
        id: SabreId,
        /// Which block was loaded; nothing if the SABRe has been aborted.
        nth: Option<u16>,
    },
    /// For the registration, and the last of a SABRe.
    Verdict {
        /// Of which SABRe.
        id: SabreId,
        /// Why it failed, or all blocks are of one version.
        failed: Option<Abort>,
    },
}

/// Why a SABRe is aborted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Abort {
    /// A writer was in when the version was read.
    Locked,
    /// The object may have changed meanwhile.
    Torn,
}

/// A load of the chip's memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Load {
    /// For which entry of the table.
    pub entry: u8,
    /// Which block of its object. Who translates addresses knows where that is.
    pub nth: u16,
    /// What is done there.
    pub access: Access,
}

/// What is done to a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// It is read.
    Read,
    /// The count of readers is raised if no writer is in, and the block is read.
    TakeLock,
    /// Only its version is looked at.
    Compare,
}

/// What a stage of the pipeline puts out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// A load, which [`Controller::returned`] is to be told of.
    Load(Load),
    /// A packet.
    Reply(Reply),
    /// The count of readers of this entry's object is lowered.
    ReleaseLock(u8),
}

/// Why a request is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NotTaken {
    /// No entry is free: it waits, with all of its source behind it.
    Full,
    /// No blocks, more than [`MAX_BLOCKS`], or none at the base.
    Length,
    /// A SABRe of this name is under way already.
    Known,
    /// No SABRe of this name is under way, or all of its blocks have been asked for.
    Unknown,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Controller {
    design: Design,
    table: Vec<Option<Entry>>,
    /// The entry that is being unrolled.
    unrolled: usize,
    defect: Option<Defect>,
}

impl Controller {
    /// One without SABRes.
    pub fn new(design: Design) -> Self {
        let depth = design.depth.clamp(1, MAX_DEPTH);
        let entries = design.entries.clamp(1, usize::from(u8::MAX));
        let mut table = Vec::new();
        table.resize_with(entries, || None);
        Controller {
            design: Design {
                depth,
                entries,
                ..design
            },
            table,
            unrolled: 0,
            defect: None,
        }
    }

    /// One that breaks a rule.
    #[must_use]
    pub fn with_defect(mut self, defect: Option<Defect>) -> Self {
        self.defect = defect;
        self
    }

    /// What it is built as.
    pub fn design(&self) -> Design {
        self.design
    }

    /// SABRes under way.
    pub fn active(&self) -> usize {
        self.table.iter().flatten().count()
    }

    /// The SABRe of an entry.
    pub fn id_of(&self, entry: u8) -> Option<SabreId> {
        self.table.get(usize::from(entry))?.map(|entry| entry.id)
    }

    fn breaks(&self, rule: Defect) -> bool {
        self.defect == Some(rule)
    }

    fn find(&mut self, id: SabreId) -> Option<&mut Entry> {
        let mut entries = self.table.iter_mut().flatten();
        entries.find(|entry| entry.id == id)
    }

    /// Stage "register SABRe": a request comes.
    pub fn accept(&mut self, request: &Request) -> Result<(), NotTaken> {
        match *request {
            Request::Register {
                id,
                base,
                blocks,
                piece,
            } => {
                if blocks == 0 || blocks > MAX_BLOCKS || piece == 0 {
                    return Err(NotTaken::Length);
                }
                if self.find(id).is_some() {
                    return Err(NotTaken::Known);
                }
                let free = self.table.iter_mut().find(|entry| entry.is_none());
                *free.ok_or(NotTaken::Full)? = Some(Entry::new(id, base, blocks, piece));
            }
            Request::Block(id) => {
                let entry = self.find(id).filter(|entry| entry.requests < entry.blocks);
                entry.ok_or(NotTaken::Unknown)?.requests += 1;
            }
        }
        Ok(())
    }

    /// Stages "select transfer" and "unroll": the next block of the SABRe that is being unrolled,
    /// or of the next one that may go on. Of an aborted one, an empty reply.
    pub fn issue(&mut self) -> Option<Action> {
        let entries = self.table.len();
        let order = (0..entries).map(|nth| (self.unrolled + nth) % entries);
        let at = order.into_iter().find(|at| self.may_issue(*at))?;
        self.unrolled = at;
        let mode = self.design.mode;
        let entry = self.table[at].as_mut()?;
        let nth = entry.issued;
        entry.issued += 1;
        if let Phase::Aborted(_) = entry.phase {
            return Some(Action::Reply(entry.replied(None)));
        }
        let access = match (nth, mode) {
            (0, Mode::ReaderLock) => Access::TakeLock,
            _ => Access::Read,
        };
        let entry = at as u8;
        Some(Action::Load(Load { entry, nth, access }))
    }

    fn may_issue(&self, at: usize) -> bool {
        let Some(entry) = &self.table[at] else {
            return false;
        };
        let next = entry.issued;
        let asked = next < entry.requests || self.breaks(Defect::AnswerUnasked);
        let ready = match entry.phase {
            Phase::Window => {
                let consecutive = next < entry.piece || self.breaks(Defect::CrossPages);
                let tracked = next < self.design.depth && consecutive;
                next == 0 || (self.design.speculates && tracked)
            }
            Phase::Aborted(_) => !self.breaks(Defect::SilentAfterAbort),
            Phase::Known | Phase::Compared | Phase::Whole => true,
        };
        next < entry.blocks && asked && ready
    }

    /// A load returns. `version` is what the object's header says; only loads of block 0 need it.
    /// With [`Access::TakeLock`] an even one means that the count of readers has been raised.
    pub fn returned(&mut self, load: &Load, version: u64) -> Option<Reply> {
        let (blind, accepts_odd) = (
            self.breaks(Defect::OverlapWithoutWindow),
            self.breaks(Defect::AcceptLocked),
        );
        let entry = self.table.get_mut(usize::from(load.entry))?.as_mut()?;
        let locked = version & 1 == 1 && !accepts_odd;
        match (load.access, load.nth, entry.phase) {
            (Access::Compare, ..) => {
                let same = version == entry.version;
                entry.phase = if same {
                    Phase::Whole
                } else {
                    Phase::Aborted(Abort::Torn)
                };
                return None;
            }
            (access, 0, phase) => {
                entry.locked = access == Access::TakeLock && version & 1 == 0;
                if phase == Phase::Window {
                    entry.know(version, locked);
                }
            }
            (_, nth, Phase::Window) if !blind => entry.buffer.mark(nth),
            _ => {}
        }
        let aborted = matches!(entry.phase, Phase::Aborted(_));
        Some(entry.replied((!aborted).then_some(load.nth)))
    }

    /// A block that the controller has loaded is invalidated: a core is about to store to it, or
    /// it was evicted from the chip. Every stream buffer is asked (§4.1).
    pub fn invalidated(&mut self, block: u64) {
        let (depth, deaf) = (self.design.depth, self.breaks(Defect::IgnoreSnoopInWindow));
        let trusts = self.breaks(Defect::TrustBaseInvalidation);
        let versions = self.design.mode == Mode::Versions;
        for entry in self.table.iter_mut().flatten() {
            let slot = entry.buffer.slot_of(block, depth);
            match (entry.phase, slot) {
                (Phase::Window, Some(slot)) if entry.buffer.has(slot) && !deaf => {
                    entry.phase = Phase::Aborted(Abort::Torn);
                }
                (Phase::Known, Some(0)) if trusts && versions => {
                    entry.phase = Phase::Aborted(Abort::Torn);
                }
                (Phase::Known, Some(0)) => entry.buffer.base_valid = false,
                _ => {}
            }
        }
    }

    /// Stage "validate": what is due for a SABRe all of whose blocks have been answered.
    pub fn validate(&mut self) -> Option<Action> {
        let skips = self.breaks(Defect::SkipValidation);
        let leaks = self.breaks(Defect::ReaderLockLeaksOnAbort);
        let mode = self.design.mode;
        let whole = |entry: &Entry| entry.replies == entry.blocks;
        for (at, row) in self.table.iter_mut().enumerate() {
            let Some(entry) = row.as_mut().filter(|entry| whole(entry)) else {
                continue;
            };
            let failed = match entry.phase {
                Phase::Window | Phase::Compared => continue,
                Phase::Known if mode == Mode::Versions && !entry.buffer.base_valid && !skips => {
                    entry.phase = Phase::Compared;
                    return Some(Action::Load(Load {
                        entry: at as u8,
                        nth: 0,
                        access: Access::Compare,
                    }));
                }
                Phase::Known | Phase::Whole => None,
                Phase::Aborted(why) => Some(why),
            };
            if entry.locked && !(leaks && failed.is_some()) {
                entry.locked = false;
                return Some(Action::ReleaseLock(at as u8));
            }
            let id = entry.id;
            *row = None;
            return Some(Action::Reply(Reply::Verdict { id, failed }));
        }
        None
    }
}

defects! {
    "A rule of the controller that can be broken, to see that checkers notice.":
    /// Blocks are loaded beside the version, and stream buffers track none of them (Fig. 2).
    OverlapWithoutWindow,
    /// Blocks that are invalidated while the window is open do not abort their SABRe.
    IgnoreSnoopInWindow,
    /// A base that is invalidated aborts its SABRe, also by an eviction.
    TrustBaseInvalidation,
    /// A base that is invalidated is not read again.
    SkipValidation,
    /// A header that says that a writer is in is taken like any other.
    AcceptLocked,
    /// An aborted SABRe does not give back the count of readers that it has taken.
    ReaderLockLeaksOnAbort,
    /// Stream buffers go on over the end of consecutive pages.
    CrossPages,
    /// Blocks are sent before they are asked for.
    AnswerUnasked,
    /// Requests of an aborted SABRe are not answered.
    SilentAfterAbort,
}

#[cfg(test)]
mod tests;
