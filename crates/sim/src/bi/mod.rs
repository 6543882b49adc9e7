//! Memory that is stale for a bounded time, judged: domains with caches that know nothing of each
//! other, visited whole.
//!
//! The shipped values run: rings, changes, quiescences, sections and the roll of
//! [`rackmem_proto::bi`], over the shipped layout of what stands in shared memory. Modelled are
//! caches, which fill, drop and (where a scenario says so) evict and fetch lines by themselves.
//!
//! There is one word that leads to an object; a writer in domain 0 puts new objects in its place
//! and reuses the memory of old ones. Each object's line says which one it is,
//! and so does the word.
//!
//! | promise | where |
//! |---|---|
//! | what a section reads was current within the bound before it (P2) | `judge` |
//! | no object behind a pointer is of a later life of its memory (P3) | `judge` |
//! | nor is it given out while a cache has it, or a section may read it (P3) | `world` |
//! | an object is whole when its pointer is seen (P4) | `judge` |
//! | a lazy lookup, and one after a quiescence on demand, see what was there before | `judge` |
//! | what a domain says it has quiesced never falls | `world` |
//! | all memory comes back, and nothing waits for the dead | [`driver`](crate::driver) |
//!
//! Ticks are moves, as many as there are: no live domain falls behind others by more
//! than a scenario says.
//!
//! Less is one step where a thread that stops in between only makes the other threads' past longer:
//! a clock that is read at once shows the least, and a quiescence that is said later is older.

pub mod cached;
mod catalogue;
pub mod crowd;
mod judge;
mod scenario;
mod system;
pub mod walk;
mod world;

pub use catalogue::SCENARIOS;
pub use scenario::{Events, Op, Scenario};
pub use system::SUITE;
