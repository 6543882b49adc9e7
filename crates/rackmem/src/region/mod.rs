//! Named regions: a table in coherent memory at the beginning of node 0's memory, or, where a group
//! has copies of it ([`Config::copies`](crate::Config::copies)), of the node that keeps it in this
//! epoch, so that programs which share no code find each other's data by name.
//!
//! A row ([`row`]) is claimed by one atomic update of its block. A name may be in any of the rows
//! that [`rows`] says, up to the first empty one, and rows that are left are anybody's; so who has
//! claimed one looks at the others before it goes on ([`creating`]), which is what makes two
//! creators agree.
//!
//! Rows share blocks, and whoever looks for a free row may end up with the only copy of one.
//! So a row that is claimed or ready is written home before anything rests on it, and a block that
//! has died with a node goes on with what its home has.
//!
//! A row names memory of one incarnation of its home, and dies with that: it may be claimed anew by
//! who says so ([`Absent::Renew`]). A claim names an address of the claimant's incarnation,
//! and dies with it likewise.
//!
//! Where a group has copies of the table, its place changes with the epoch, and what was not yet
//! written home is gone. So a row is a number here, what is done about it is done again when the
//! epoch has changed meanwhile ([`insist`]), and a change says of itself whether it is there
//! already ([`change`]).
//!
//! A region with copies has no row: see [`copies`].
//!
//! A region's row is vacated when the region is removed ([`removing`]), and a lock's when the lock
//! is freed. It may be claimed again then, under any name and for anything.

mod copies;
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
use crate::backoff::Backoff;
use crate::bytes::window::WindowMut;
use crate::error::{AccessError, RackError, RegionError};
use crate::host::names;
use crate::host::rows::ROWS;
use crate::node::Node;
use rackmem_proto::wire::{Contract, Tag};
use std::cmp::Ordering;

/// Bytes of the table.
pub(crate) const TABLE: u64 = (ROWS * ROW) as u64;
/// Rows looked at before the table counts as full.
const PROBES: usize = 64;
/// Attempts at something in the table between which a loss was accepted.
const ATTEMPTS: usize = 8;

/// Rows in which a name may be, best first: how far each is behind the beginning of the table.
fn rows(name: &str) -> impl Iterator<Item = u64> {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ b as u64).wrapping_mul(0x100_0000_01b3)
    });
    (0..PROBES).map(move |i| ((hash as usize + i) % ROWS * ROW) as u64)
}

fn check(name: &str) -> Result<(), RegionError> {
    if name.is_empty() || name.len() > MAX_NAME || name == names::GROUP {
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

/// Whether a group has copies of the table.
fn has_copies(node: &Node) -> bool {
    node.inner.access.agents.names.is_some()
}

/// Waits until there is a table: its copies take as many live nodes.
fn await_table(node: &Node) -> Result<(), RegionError> {
    let access = &node.inner.access;
    let Some(names) = &access.agents.names else {
        return Ok(());
    };
    let mut backoff = Backoff::new(access.patience);
    while access.groups.known().find(names::GROUP).is_none() {
        if access.groups.look().is_err() || !backoff.wait() {
            return Err(RegionError::FewMembers {
                copies: names.copies(),
                live: access.standing.view().live.len() as u8,
            });
        }
    }
    Ok(())
}

/// Sees to it that a row's home has it.
fn publish(node: &Node, row: u64) -> Result<(), AccessError> {
    if has_copies(node) {
        // A copy that this node gives up is home's: until home has it, nobody is granted that.
        return insist(node, row, |addr| {
            let mut backoff = Backoff::new(node.inner.access.patience);
            while !node.evict(addr)? {
                node.snapshot(addr, ROW, |_| ())?;
                if !backoff.wait() {
                    return Err(AccessError::Busy { addr });
                }
            }
            Ok(())
        });
    }
    match node.evict(node.inner.table()?.first + row) {
        Err(error) => Err(error),
        // Somebody may have taken it before it could be written back: whoever is read from writes
        // back.
        Ok(_) => insist(node, row, |addr| node.snapshot(addr, ROW, |_| ())),
    }
}

/// Changes a row, and sees to it that its home has it if `f` says what has been made of it. Where
/// an epoch that has ended took the change along it is made again: `f` may find that it is there.
fn change<R>(
    node: &Node,
    row: u64,
    f: impl Fn(&mut WindowMut<'_>) -> Option<(R, row::Mark)>,
) -> Result<Option<R>, AccessError> {
    let mut backoff = Backoff::new(node.inner.access.patience);
    loop {
        let changed = insist(node, row, |addr| node.update(addr, ROW, &f))?;
        let Some((result, mark)) = changed else {
            return Ok(None);
        };
        publish(node, row)?;
        let stays = !has_copies(node)
            || insist(node, row, |addr| {
                node.snapshot(addr, ROW, |view| mark.is_in(view))
            })?;
        if stays {
            return Ok(Some(result));
        }
        if !backoff.wait() {
            let addr = node.inner.table()?.first + row;
            return Err(AccessError::Interrupted { addr });
        }
    }
}

fn see(node: &Node, row: u64, name: &str) -> Result<Row, AccessError> {
    insist(node, row, |addr| {
        node.snapshot(addr, ROW, |view| look(view, name))
    })
}

/// Does something with a row of the table, again with what its home has if the last content has
/// died with a node, and again where the table has moved meanwhile.
fn insist<R>(
    node: &Node,
    row: u64,
    f: impl Fn(u64) -> Result<R, AccessError>,
) -> Result<R, AccessError> {
    if has_copies(node) {
        return insist_on_copies(node, row, f);
    }
    let addr = node.inner.table()?.first + row;
    for _ in 0..ATTEMPTS {
        match f(addr) {
            Err(AccessError::Lost { addr }) => node.accept_loss(addr)?,
            done => return done,
        }
    }
    f(addr)
}

fn insist_on_copies<R>(
    node: &Node,
    row: u64,
    f: impl Fn(u64) -> Result<R, AccessError>,
) -> Result<R, AccessError> {
    let mut backoff = Backoff::new(node.inner.access.patience);
    loop {
        let table = node.inner.table()?;
        let done = f(table.first + row);
        let stayed = node.epoch() == table.epoch;
        let again = match done {
            // Its node is dead, and this process hears of that next.
            Err(
                AccessError::Lost { .. }
                | AccessError::Interrupted { .. }
                | AccessError::Rack(RackError::NodeLost { .. }),
            ) => true,
            _ => !stayed,
        };
        if !again || !backoff.wait() {
            return done;
        }
    }
}

/// The name is none of a region with copies, as far as this process has heard.
fn copied(node: &Node, name: &str, wanted: Contract) -> Result<(), RegionError> {
    match node.inner.access.groups.address_of(name) {
        Some((_, is, has)) if is == wanted => Err(RegionError::OtherCopies {
            name: name.into(),
            has,
        }),
        Some((addr, is, _)) => Err(AccessError::WrongContract { addr, wanted, is }.into()),
        None => Ok(()),
    }
}

/// The region of a name, and where its row is.
fn find(node: &Node, name: &str) -> Result<(u64, Ready), RegionError> {
    check(name)?;
    await_table(node)?;
    for row in rows(name) {
        match see(node, row, name)? {
            Row::Ready(ready) => return Ok((row, ready)),
            Row::Empty => break,
            Row::Other | Row::Left { .. } | Row::Vacant { .. } | Row::Claimed { .. } => {}
        }
    }
    Err(RegionError::NotFound { name: name.into() })
}

/// Every row of the table.
fn all_rows() -> impl Iterator<Item = u64> {
    (0..ROWS as u64).map(|nth| nth * ROW as u64)
}
