//! Domains that are nodes: each has copies of items that their home serves, and asks what was
//! modified (BI §3.3–§3.5, where memory is not mapped).
//!
//! An *item* is what is read and written whole. Its home has numbered the writes of its region: the
//! number is what copies are compared by. A member asks its home what was modified since the
//! number that it has heard of. The answer says what to drop, and the moment *before the question*
//! is that of the quiescence, by the member's own clock: what was acknowledged by then is in the
//! answer. So no two clocks have to agree, and nothing waits for a member.
//!
//! | question | answered in |
//! |---|---|
//! | what does a home keep of a region, and tell of it? | [`Stock`] |
//! | may a copy stay, may a late one come in? | [`HeldItem`], [`Question`] |
//! | what does a thread ask, how often, and what is it told? | [`Bi`] |
//! | what may the kernel of a home's host answer? | [`shelf`] |
//! | may a section begin, and may what it has read be believed? | [`super::ReadSection`] |

use super::clock::Tick;
use super::section::Bound;

mod asking;
mod held;
mod news;
mod outbox;
pub mod shelf;
mod stock;

pub use asking::{Answerers, Bi, BiAsk, BiReply};
pub use held::{Hearing, HeldItem, Question};
pub use news::BiNews;
pub use outbox::BiOut;
pub use stock::Stock;

/// Bytes of an item, at most: it travels in one packet.
pub const MAX_ITEM: u32 = 1024;
/// Items of a region, at most: each member keeps a place for each.
pub const MAX_ITEMS: u32 = 1 << 20;
/// Regions that a home has at a time.
pub const MAX_REGIONS: usize = 1024;
/// Writes that a home remembers the items of, by region. Who has heard of none of them drops
/// everything.
pub const REMEMBERED: usize = 4096;
/// Items that an answer names, at most; where there are more, there are more answers.
pub const NAMED: usize = 256;
/// Bytes of an answer that name items and say what they are, at most: with its headers it is a
/// packet of 3.5 KiB, which every switch passes on whole.
pub const NEWS_BYTES: usize = 3328;
/// Of a member, whose ticks are no questions: fine ones cost nothing, and of the bound less is lost
/// at the ends of ticks.
pub const MEMBER_BOUND: Bound = Bound {
    lag: 18,
    section: 20,
};

/// Whether a member that is read asks again: early enough that its sections seldom wait for the
/// answer, and no earlier.
pub const fn asks_again(now: Tick, quiesced: Tick, bound: Bound) -> bool {
    3 * now.since(quiesced) >= 2 * bound.lag
}

defects! {
    "A rule of members and homes that is broken.":
    /// A copy that was read before news, and comes after it, is kept.
    InstallLateCopy,
    /// The quiescence is of the moment at which the answer has come.
    CountFromAnswer,
    /// A home that does not remember all that a member has missed names what it remembers.
    NameTheRest,
    /// A copy of a write is executed as if it were another one.
    WriteTwice,
    /// What the member has written itself is not put into its own copy, which stays.
    KeepOwnOld,
    /// A quiescence ends with the first part of what was modified.
    EndWithPart,
    /// A value in news is put in place of a newer one that the member has written.
    RefreshOwnNew,
    /// A section begins however long ago its domain has quiesced.
    BeginLate,
    /// What a section has read is believed however long it has lasted.
    BelieveLate,
}
