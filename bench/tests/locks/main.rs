//! Locks of every kind behind one handle, on real nodes.

mod counts;
mod endings;
mod exclusion;
mod store;

use rackmem::{Fabric, Rack};
use rackmem_bench::locks::{self, LockKind};
use rackmem_bench::system::System;

/// Node 0 is home of the locks, the others use them.
fn rack(fabric: Fabric, mode: System, kind: LockKind) -> Rack {
    mode.builder(3)
        .fabric(fabric)
        .guests(locks::guests(kind))
        .cache(4 << 20)
        .memory(64 << 20)
        .build()
        .expect("the rack starts")
}

/// All of them but GCP.
fn layered() -> impl Iterator<Item = LockKind> {
    let kinds = LockKind::ALL.map(|row| row.0).into_iter();
    kinds.filter(|kind| *kind != LockKind::Gcp)
}
