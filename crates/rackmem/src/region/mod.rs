//! Named regions: a table in coherent memory at the beginning of node 0's memory,
//! so that programs which share no code find each other's data by name.
//!
//! A row ([`row`]) is claimed by one atomic update of its block, which is what makes two creators
//! agree; the loser waits for the winner.
//!
//! Rows share blocks, and whoever looks for a free row may end up with the only copy of one.
//! So a row that is ready is written home before anybody is told of it, and a block that has died
//! with a node goes on with what its home has. Claims may be gone then, and whoever comes first
//! with a row that is ready is right.
//!
//! A row names memory of one incarnation of its home, and dies with that: it may be claimed anew by
//! who says so ([`Absent::Renew`]). A claim names an address of the claimant's incarnation,
//! and dies with it likewise.
//!
//! A region's row is vacated when the region is removed ([`removing`]), and a lock's when the lock
//! is freed. It keeps the name, and may be claimed under it again, for anything.

mod creating;
mod handle;
mod naming;
mod removing;
mod row;
mod spec;

pub(crate) use self::creating::{Absent, lock};
pub use self::handle::Region;
pub(crate) use self::removing::vacate;
pub use self::row::RegionInfo;
pub use self::spec::RegionSpec;

use self::row::{MAX_NAME, ROW, Ready, Row, look};
use crate::error::{AccessError, RegionError};
use crate::host::rows::ROWS;
use crate::node::Node;
use rackmem_proto::wire::Tag;
use std::cmp::Ordering;

/// Bytes of the table.
pub(crate) const TABLE: u64 = (ROWS * ROW) as u64;
/// Rows looked at before the table counts as full.
const PROBES: usize = 64;
/// Attempts at something in the table between which a loss was accepted.
const ATTEMPTS: usize = 8;

/// Rows in which a name may be, best first.
fn rows(table: u64, name: &str) -> impl Iterator<Item = u64> {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ b as u64).wrapping_mul(0x100_0000_01b3)
    });
    (0..PROBES).map(move |i| table + ((hash as usize + i) % ROWS * ROW) as u64)
}

fn check(name: &str) -> Result<(), RegionError> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(RegionError::BadName { name: name.into() });
    }
    Ok(())
}

/// Whether the memory that an address is in has died with its node. A process that has not heard of
/// that memory's incarnation takes it for alive.
fn is_gone(node: &Node, addr: u64) -> bool {
    let Some(home) = node.inner.access.standing.host(Tag(addr).home()) else {
        return true;
    };
    match node.incarnation_of(home).cmp(&node.incarnation_at(addr)) {
        Ordering::Less => false,
        Ordering::Equal => !node.is_member(home),
        Ordering::Greater => true,
    }
}

/// What to say of a name whose memory [`is_gone`].
fn name_lost(node: &Node, name: &str, addr: u64) -> RegionError {
    match node.inner.access.standing.host(Tag(addr).home()) {
        Some(node) => RegionError::NameLost {
            name: name.into(),
            node,
        },
        None => RegionError::Access(AccessError::BadAddress { addr }),
    }
}

/// Sees to it that a row's home has it.
fn publish(node: &Node, row: u64) -> Result<(), AccessError> {
    match node.evict(row) {
        Err(error) => Err(error),
        // Somebody may have taken it before it could be written back: whoever is read from writes
        // back.
        Ok(_) => insist(node, || node.snapshot(row, ROW, |_| ())),
    }
}

fn see(node: &Node, row: u64, name: &str) -> Result<Row, AccessError> {
    insist(node, || node.snapshot(row, ROW, |view| look(view, name)))
}

/// Does something in the table, again with what its home has if the last content has died with a
/// node.
fn insist<R>(node: &Node, f: impl Fn() -> Result<R, AccessError>) -> Result<R, AccessError> {
    for _ in 0..ATTEMPTS {
        match f() {
            Err(AccessError::Lost { addr }) => node.accept_loss(addr)?,
            done => return done,
        }
    }
    f()
}

/// The region of a name, and where its row is.
fn find(node: &Node, name: &str) -> Result<(u64, Ready), RegionError> {
    check(name)?;
    for row in rows(node.inner.table(), name) {
        match see(node, row, name)? {
            Row::Ready(ready) => return Ok((row, ready)),
            Row::Empty | Row::Vacant | Row::Claimed { .. } => break,
            Row::Other => {}
        }
    }
    Err(RegionError::NotFound { name: name.into() })
}

/// Every row of the table.
fn all_rows(node: &Node) -> impl Iterator<Item = u64> {
    let table = node.inner.table();
    (0..ROWS).map(move |nth| table + (nth * ROW) as u64)
}
