//! The locks that GCP is compared with (Soul, §5 "Compared systems"): locks that programs lay over
//! memory that is coherent already, and a service of locks beside it.
//!
//! Each is a [`Machine`], one for every thread that uses the lock: it hands out one operation at a
//! time on words of coherent memory, is given the result, and is inside in the end. Who executes
//! the operations is not its business: the library does on real nodes, the simulator in virtual
//! time, the tests one after the other in every order. So what is compared is in each of these the
//! same.
//!
//! | lock | file | who |
//! |---|---|---|
//! | queue of threads that spin on words of their own (mutual exclusion only) | `mcs` | Mellor-Crummey and Scott 1991 |
//! | centralized reader-writer lock: one word | `central` | Mellor-Crummey and Scott 1991, reader preference, as `pthread_rwlock` has |
//! | an indicator of readers at each node; a writer takes them all | `per_node` | Linux's big-reader lock |
//! | cohort lock for writers, writers first, an indicator of readers at each node | `cohort` | Calciu et al. 2013, C-RW-WP over C-PTL-TKT |
//! | a manager with a wait queue, asked by messages | `service` | Keleher et al. 1994, TreadMarks |
//!
//! **Blocks.** What an algorithm keeps in cache lines of its own, so that the way of one word does
//! not disturb another, is here in blocks of their own ([`At`]), a block being what a rack moves
//! and invalidates at once. Words that it keeps in one line share a block.
//! [`Algorithm::home`] says near whom a block should be.
//!
//! **Order.** Operations are atomic and take effect in one order for all, and a machine's next one
//! comes after the result of the last: what coherent memory promises.
//!
//! **Deaths.** None of these knows of any, and none lets a thread that waits give up, but for the
//! service: a thread that dies inside or in a queue stops all others for good. That is how they
//! are; GCP's answer is [`rackmem_proto::gcp`].

mod central;
mod cohort;
mod machine;
mod mcs;
mod op;
mod per_node;
mod service;

pub use cohort::BATCH;
pub use machine::{Algorithm, Machine};
pub use op::{At, Home, Op, Request, Shape, Step, ThreadPlace, Until};
pub use rackmem_proto::gcp::Access;
pub use service::{Manager, Reply};
