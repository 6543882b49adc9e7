//! Operations as futures: one thread of a program has many under way.
//!
//! | as a future | as a call |
//! |---|---|
//! | [`Shared::read_async`], [`write_async`](Shared::write_async), [`update_async`](Shared::update_async) | [`Shared::read`], `write`, `update` |
//! | [`SharedSlice::get_async`], [`set_async`](SharedSlice::set_async), [`update_async`](SharedSlice::update_async), [`read_async`](SharedSlice::read_async), [`write_async`](SharedSlice::write_async) | [`SharedSlice::get`], `set`, `update`, `to_vec`, `write_from` |
//! | [`Node::snapshot_async`], [`Node::update_async`] | [`Node::snapshot`], [`Node::update`] |
//! | [`Object::read_async`], [`read_versioned_async`](Object::read_versioned_async), [`read_if_newer_async`](Object::read_if_newer_async), [`write_async`](Object::write_async), [`write_if_async`](Object::write_if_async), [`update_async`](Object::update_async) | [`Object::read`], `read_versioned`, `read_if_newer`, `write`, `write_if`, `update` |
//! | [`Region::alloc_async`], [`alloc_bytes_async`](Region::alloc_bytes_async), [`Object::free_async`] | [`Region::alloc`], `alloc_bytes`, [`Object::free`] |
//! | [`Node::read_many_async`] | [`Node::read_many`] |
//! | [`Map::get_async`], [`get_many_async`](Map::get_many_async), [`insert_async`](Map::insert_async), [`remove_async`](Map::remove_async), [`update_async`](Map::update_async) | [`Map::get`], `get_many`, `insert`, `remove`, `update` |
//! | [`Entries::next_async`](crate::object::Entries::next_async) of [`Map::entries`] | `next` |
//! | [`Node::transaction_async`], [`Transaction::read_async`] | [`Node::transaction`], [`Transaction::read`] |
//! | [`Replicated::read_async`], [`write_async`](Replicated::write_async) | [`Replicated::read`], `write` |
//! | [`Domain::read_async`], [`set_async`](Domain::set_async), [`quiesce_async`](Domain::quiesce_async), [`enter_async`](Domain::enter_async), [`writer_async`](Domain::writer_async) | [`Domain::read`], `set`, `quiesce`, `enter`, `writer` |
//! | [`Pinned::get_async`], [`DomainWriter::get_async`], [`set_async`](DomainWriter::set_async), [`update_async`](DomainWriter::update_async) | [`Pinned::get`], [`DomainWriter::get`], `set`, `update` |
//! | [`Mutex::lock_async`], [`RwLock::read_async`], [`RwLock::write_async`] | [`Mutex::lock`], [`RwLock::read`], `write` |
//!
//! Any executor drives them: they need no runtime and no timer of one. Each does what its call
//! does, promises what that does (it is linearizable, or as old as the bound allows), and has its
//! errors.
//!
//! ```
//! # use std::future::Future;
//! # use std::sync::Arc;
//! # use std::task::{Context, Poll, Wake, Waker};
//! # struct Unpark(std::thread::Thread);
//! # impl Wake for Unpark {
//! #     fn wake(self: Arc<Self>) {
//! #         self.0.unpark();
//! #     }
//! # }
//! # /// Your executor's.
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     let mut future = std::pin::pin!(future);
//! #     let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
//! #     loop {
//! #         match future.as_mut().poll(&mut Context::from_waker(&waker)) {
//! #             Poll::Ready(done) => return done,
//! #             Poll::Pending => std::thread::park(),
//! #         }
//! #     }
//! # }
//! # fn main() -> rackmem::Result<()> {
//! use rackmem::locked::Mutex;
//! use rackmem::{Rack, Shared};
//!
//! let rack = Rack::local(2)?;
//! let (here, there) = (rack.node(0), rack.node(1));
//! let hits: Shared<u64> = here.alloc(1)?;
//! let seen: Shared<u64> = there.attach(hits.addr())?;
//! let stock = Mutex::create(&here, 100u64)?;
//!
//! let left = block_on(async {
//!     seen.update_async(|n| n + 1).await?;
//!     let mut held = stock.lock_async().await?;
//!     *held -= seen.read_async().await?;
//!     Ok::<u64, rackmem::Error>(*held)
//! })?;
//! assert_eq!(left, 98);
//! # Ok(())
//! # }
//! ```
//!
//! - **Nothing happens before the first poll.** What is in this node's cache, a lock that rests
//!   here, or an object in memory that this process has (the home's own writes as well), is ready
//!   then, without another thread. For the rest a thread of the node's, `rackmem-futures`,
//!   has up to sixteen events and questions under way at a time. It begins with the first future
//!   that needs it and ends with the rack.
//! - **Order** is that of calls by as many threads: futures that are under way together take effect
//!   in any order. Await one before the next where that matters.
//! - **Objects and lines** of others are asked for by packets: whole objects whose turn has come at
//!   the same time go together, as with [`Node::read_many`], each with an end of its own; a write,
//!   and an operation on a line (ABD's rounds), has a requester of its own. A read that meets a
//!   writer is made again, as [`Retry`](crate::object::Retry) says (SABRes §5.1),
//!   and where the home dies the future ends as the call does: by an error, or,
//!   for objects with copies, by the answer of whoever serves them next.
//!   Making an object takes a round trip for its place and one for its content,
//!   if that is not zeros.
//! - **Bounded memory**: an item of which there is a copy, in a domain that has heard lately enough
//!   of its home, is ready at the first poll. Otherwise the home is asked, for the item or for what
//!   was written; many that find the node late ask once or a few times, not each
//!   (BI §3.3). A read by a future is a section of its own. One of
//!   [`enter_async`](Domain::enter_async) goes on while the task awaits other things,
//!   and is as long as any: a task that is not polled in time is told so by
//!   [`AccessError::Stale`](crate::AccessError::Stale), and nobody waits for it.
//! - **Maps**: a lookup is ready at the first poll where this process has the bucket's memory,
//!   and so is a change at its home which needs no new tail. A change takes a round trip for each
//!   object of the bucket that it reads, makes, writes or frees (SABRes §6),
//!   and no poll between them.
//! - **Transactions**: an async closure, which the task runs, and nothing is locked while it does.
//!   What a run has read is made one step with what it writes by that thread. If others came first
//!   the closure runs again, after a pause in which no thread waits. Any number of tasks of one
//!   thread may meet on the same objects: one of those that meet is put off, and all end.
//! - **Dropping a future** leaves nothing locked. A lock that came at that moment goes on to the
//!   next one. An operation on a block, an object, a line or an item has taken effect, all of it,
//!   or it has not, and nobody says which; of a line or an item it may later.
//!   A change that had not begun is not made. A transaction that had begun to be committed is ended
//!   by the node, a little later.
//!   An object that was being made, or that was ready and not taken, is freed by it,
//!   and counts against the bound until then.
//!   One of a map that has begun to make a tail goes on to its end without anybody, and counts
//!   against the bound until then: no object is left that no bucket names.
//! - **What a future does with a value** (`f` of `update_async`) is done by that thread if the
//!   block has to come or an object's home is asked. It must be short and must not use the rack, as
//!   with the call. If it panics, whoever awaits the future does.
//! - **Locks**: a guard may be held over an `.await`; it is a lock all the while, and whoever waits
//!   for it on a thread of the same executor may keep the holder from going on. Tasks and threads
//!   stand in one line.
//! - **When something fails** the future ends by the call's error, in the call's time:
//!   a closed rack ends all of them, and `patience` is counted from the first poll.
//!   A question to the home of an object or item or to those that have copies of a line has so long
//!   to wait for its turn, and as long for its answer.
//!   A poll blocks for a moment in three cases only:
//!   a lock in a region with copies whose last holder has died, leaving a lock whose writes
//!   survive, and the first writer of a domain, who looks for the lock by its name.
//! - **Bounds**: 4,096 operations on blocks, objects, maps, lines,
//!   items and transactions at a time, and as many tasks that wait at locks, for each node; then
//!   [`AccessError::TooManyAsked`](crate::AccessError::TooManyAsked).
//!   They are begun in the order in which they were polled first.
//! - **Not here**: making and freeing of maps have calls only.
//!   An [arena](crate::bounded::Arena) has nothing to wait for: what is read there is in memory
//!   that this process has mapped.

#[cfg(doc)]
use crate::bounded::{Domain, DomainWriter, Pinned};
#[cfg(doc)]
use crate::coherent::shared::Shared;
#[cfg(doc)]
use crate::coherent::slice::SharedSlice;
#[cfg(doc)]
use crate::locked::{Mutex, RwLock};
#[cfg(doc)]
use crate::node::Node;
#[cfg(doc)]
use crate::object::{Map, Object, Transaction};
#[cfg(doc)]
use crate::region::Region;
#[cfg(doc)]
use crate::replicated::Replicated;
