//! Memory that is mapped by all nodes and that no hardware keeps coherent between them.
//!
//! What is decided is `rackmem_proto::bi`'s: the phases of a change, the acts of a quiescence,
//! whether a section may begin and be believed, which memory is free again. Here are its bytes.
//!
//! | question | answered in |
//! |---|---|
//! | which instructions write a line back, and drop it? | `instructions` |
//! | and where no cache is incoherent? | `emulated` |
//! | where does what stand? | `front` |
//! | which sections are open? | `open_sections` |
//! | what has a process to give out, and who has it next? | `estate` |

mod arena;
mod bytes;
mod chain;
mod counts;
mod emulated;
mod estate;
mod file;
mod front;
mod instructions;
mod lines;
mod list;
mod map;
mod open_sections;
mod pointer;
mod quiescing;
mod reading;
mod spec;
mod storing;
mod survey;

pub use crate::host::metrics::ArenaCounts;
pub use arena::Arena;
pub use counts::DomainStatus;
pub use instructions::{CacheOps, FoundOp, LineOp};
pub use list::List;
pub use map::Map;
pub use pointer::{ArenaSlot, Fresh, Pointer};
pub use rackmem_proto::bi::{Tick, Tracking};
pub use reading::ArenaSection;
pub use spec::ArenaSpec;
pub use storing::ArenaWriter;
pub use survey::{ArenaReport, DomainReport};
