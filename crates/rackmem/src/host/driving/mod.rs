//! A thread that has the events of a node's futures under way, several at a time.
//!
//! | what | where |
//! |---|---|
//! | what a future and this thread share | `task.rs` |
//! | what an order waits for next | `order.rs` |
//! | the thread: orders, events, threads' turns at locks | `driver.rs` |
//!
//! A future looks in the cache itself. What is not there becomes an order: the thread asks for the
//! block, as an operation of a thread does, and does what the future wants with it while the block
//! is here and nobody can take it away. So it is done once, whoever wants the block as well, and a
//! future that is dropped leaves nothing locked: its order ends when its event does.

pub(crate) mod driver;
mod order;
pub(crate) mod task;
