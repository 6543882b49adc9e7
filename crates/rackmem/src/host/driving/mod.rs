//! A thread that has the events and questions of a node's futures under way, several at a time.
//!
//! | what | where |
//! |---|---|
//! | what a future of a block and this thread share | `task.rs` |
//! | the same of a future that asks others, and what it has in common with its call | `errand.rs` |
//! | what an order waits for next | `order.rs`; of a block, `block.rs` |
//! | events and questions that are under way | `asked.rs` |
//! | several futures as one | `several.rs` |
//! | what futures ask for, and how much of it there may be | `driver.rs` |
//! | the thread: orders, events, questions, tasks' turns at locks | `desk.rs` |
//!
//! A future looks in the cache itself. What is not there becomes an order: the thread asks for the
//! block, as an operation of a thread does, and does what the future wants with it while the block
//! is here and nobody can take it away. So it is done once, whoever wants the block as well, and a
//! future that is dropped leaves nothing locked: its order ends when its event does.

mod asked;
mod block;
mod desk;
pub(crate) mod driver;
pub(crate) mod errand;
pub(crate) mod order;
pub(crate) mod several;
pub(crate) mod task;
