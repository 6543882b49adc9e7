//! Named regions: a table in coherent memory at the beginning of node 0's memory, so that programs which
//! share no code find each other's data by name.
//!
//! A row is 128 bytes and never crosses a block: state, address, length, type, name. A row is claimed by one
//! atomic update of its block, which is what makes two creators agree; the loser waits for the winner.
//!
//! Rows share blocks, and whoever looks for a free row may end up with the only copy of one. So a row that is ready is
//! written home before anybody is told of it, and a block that has died with a node goes on with what its home has. Claims
//! may be gone then, and whoever comes first with a row that is ready is right.
//!
//! A row names memory of one incarnation of its home, and dies with that: it may be claimed anew by who says so ([`Absent::Renew`]). A
//! claim names an address of the claimant's incarnation, and dies with it likewise.
//!
//! A lock's row is vacated when the lock is freed. It keeps the name, and may be claimed under it again, for anything.

mod naming;

use crate::backoff::Backoff;
use crate::bytes::view::{View, ViewMut};
use crate::error::{Error, Result};
use crate::node::{Node, places};
use rackmem_proto::wire::Tag;
use std::cmp::Ordering;

/// Bytes of a name at most.
const MAX_NAME: usize = 88;
/// Bytes of a row.
const ROW: usize = 128;
/// Rows of the table, and so regions of a rack.
const ROWS: usize = 2048;
/// Bytes of the table.
pub(crate) const TABLE: u64 = (ROWS * ROW) as u64;
/// Rows looked at before the table counts as full.
const PROBES: usize = 64;
/// Attempts at something in the table between which a loss was accepted.
const ATTEMPTS: usize = 8;

/// What to do about a region that has died with its home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Absent {
    /// Nothing: [`Error::NameLost`].
    Report,
    /// Make it anew.
    Renew,
}

/// What a region is for, and so where its memory comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// Anything.
    Bytes,
    /// A lock of this node.
    Lock,
}

/// A row's state word.
const EMPTY: u64 = 0;
const CLAIMED: u64 = 1;
const READY: u64 = 2;
const VACANT: u64 = 3;

const STATE: usize = 0;
const ADDR: usize = 8;
const LEN: usize = 16;
const TYPE: usize = 24;
const NAME_LEN: usize = 32;
const NAME: usize = 40;

/// What a look at a row tells.
enum Row {
    Empty,
    Other,
    /// What had this name has been freed.
    Vacant,
    /// By a process that has memory here.
    Claimed {
        by: u64,
    },
    Ready {
        addr: u64,
        len: u64,
        type_hash: u64,
    },
}

fn look(view: &View<'_>, name: &str) -> Row {
    if view.u64(STATE) == EMPTY {
        return Row::Empty;
    }
    if view.u64(NAME_LEN) != name.len() as u64 || !view.eq(NAME, name.as_bytes()) {
        return Row::Other;
    }
    match view.u64(STATE) {
        CLAIMED => Row::Claimed { by: view.u64(ADDR) },
        VACANT => Row::Vacant,
        _ => Row::Ready {
            addr: view.u64(ADDR),
            len: view.u64(LEN),
            type_hash: view.u64(TYPE),
        },
    }
}

fn claim(view: &mut ViewMut<'_>, by: u64, name: &str, len: usize, type_hash: u64) {
    view.set_u64(STATE, CLAIMED);
    view.set_u64(ADDR, by);
    view.set_u64(LEN, len as u64);
    view.set_u64(TYPE, type_hash);
    view.set_u64(NAME_LEN, name.len() as u64);
    view.write(NAME, name.as_bytes());
}

/// Rows in which a name may be, best first.
fn rows(table: u64, name: &str) -> impl Iterator<Item = u64> {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ b as u64).wrapping_mul(0x100_0000_01b3)
    });
    (0..PROBES).map(move |i| table + ((hash as usize + i) % ROWS * ROW) as u64)
}

fn check(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(Error::RegionTable {
            name: name.into(),
            why: "a name has 1 to 88 bytes",
        });
    }
    Ok(())
}

/// Whether the memory that an address is in has died with its node. A process that has not heard of that memory's incarnation
/// takes it for alive.
fn is_gone(node: &Node, addr: u64) -> bool {
    let home = Tag(addr).home();
    match node.incarnation_of(home).cmp(&node.incarnation_at(addr)) {
        Ordering::Less => false,
        Ordering::Equal => !node.is_member(home),
        Ordering::Greater => true,
    }
}

/// See [`Node::region`] and [`Node::renewed_region`].
pub(crate) fn open_or_create(
    node: &Node,
    home: u16,
    name: &str,
    what: (usize, u64),
    absent: Absent,
) -> Result<(u64, bool)> {
    open(node, home, name, what, (absent, Purpose::Bytes))
}

/// The memory of a lock of this name, at this node if it is the first to ask, which is told so.
pub(crate) fn lock(
    node: &Node,
    name: &str,
    what: (usize, u64),
    absent: Absent,
) -> Result<(u64, bool)> {
    node.cached("named regions")?;
    open(node, node.inner.id, name, what, (absent, Purpose::Lock))
}

fn open(
    node: &Node,
    home: u16,
    name: &str,
    (len, type_hash): (usize, u64),
    (absent, purpose): (Absent, Purpose),
) -> Result<(u64, bool)> {
    check(name)?;
    // Of this process: its node's memory, as this incarnation has it.
    let me = node.first_address();
    for row in rows(node.inner.table(), name) {
        let mut backoff = Backoff::new(node.inner.access.patience);
        loop {
            let mine = match see(node, row, name)? {
                Row::Empty => claim_if(node, row, me, (name, len, type_hash), |view| {
                    view.u64(STATE) == EMPTY
                })?,
                Row::Other => break,
                Row::Vacant => claim_if(node, row, me, (name, len, type_hash), |view| {
                    matches!(look(view, name), Row::Vacant)
                })?,
                Row::Claimed { by } if is_gone(node, by) => claim_if(
                    node,
                    row,
                    me,
                    (name, len, type_hash),
                    |view| matches!(look(view, name), Row::Claimed { by: still } if still == by),
                )?,
                Row::Claimed { .. } => {
                    if !backoff.wait() {
                        return Err(Error::RegionTable {
                            name: name.into(),
                            why: "its creator has not finished",
                        });
                    }
                    false
                }
                Row::Ready {
                    addr,
                    len: l,
                    type_hash: t,
                } if l == len as u64 && t == type_hash => match is_gone(node, addr) {
                    false => return Ok((addr, false)),
                    true if absent == Absent::Report => {
                        let (name, node) = (name.into(), Tag(addr).home());
                        return Err(Error::NameLost { name, node });
                    }
                    true => claim_if(
                        node,
                        row,
                        me,
                        (name, len, type_hash),
                        |view| matches!(look(view, name), Row::Ready { addr: still, .. } if still == addr),
                    )?,
                },
                Row::Ready { .. } => return Err(Error::RegionMismatch { name: name.into() }),
            };
            if mine {
                let what = (len, type_hash);
                match fill(node, home, row, name, what, purpose)? {
                    Some(addr) => return Ok((addr, true)),
                    None => return open(node, home, name, what, (absent, purpose)),
                }
            }
        }
    }
    Err(Error::RegionTable {
        name: name.into(),
        why: "the table is full",
    })
}

/// Claims a row, if it still is what it was. Of several who want it one does.
fn claim_if(
    node: &Node,
    row: u64,
    me: u64,
    (name, len, type_hash): (&str, usize, u64),
    still: impl Fn(&View<'_>) -> bool,
) -> Result<bool> {
    insist(node, || {
        node.update(row, ROW, |view| {
            let mine = still(view);
            if mine {
                claim(view, me, name, len, type_hash);
            }
            mine
        })
    })
}

/// Second half of a creation: memory, zeros, and the row is ready; or the row is free again. Nothing where somebody else
/// has been faster, since the claim died with another node.
fn fill(
    node: &Node,
    home: u16,
    row: u64,
    name: &str,
    (len, type_hash): (usize, u64),
    purpose: Purpose,
) -> Result<Option<u64>> {
    let memory = match purpose {
        Purpose::Bytes => node.alloc_bytes_on(home, len),
        Purpose::Lock => places::place(node, len),
    };
    let made = memory.and_then(|addr| zero(node, places::memory_of(addr), len).map(|()| addr));
    let ours = insist(node, || {
        node.update(row, ROW, |view| {
            let free = match look(view, name) {
                Row::Empty | Row::Vacant | Row::Claimed { .. } => true,
                // The claim died with another node, and what it was to replace is back.
                Row::Ready { addr, .. } => is_gone(node, addr),
                Row::Other => false,
            };
            match &made {
                Ok(addr) if free => {
                    claim(view, *addr, name, len, type_hash);
                    view.set_u64(STATE, READY);
                    true
                }
                Err(_) if free => {
                    view.set_u64(STATE, EMPTY);
                    false
                }
                _ => false,
            }
        })
    })?;
    let addr = made?;
    if ours {
        publish(node, row)?;
        return Ok(Some(addr));
    }
    match purpose {
        Purpose::Bytes => node.free_bytes(addr, len)?,
        Purpose::Lock => places::give_place_back(node, len, addr)?,
    }
    Ok(None)
}

/// Nothing has this address any more under a name of which `is_it` says yes. The name is free.
pub(crate) fn vacate(node: &Node, addr: u64, is_it: &dyn Fn(&str) -> bool) -> Result<()> {
    let has = |view: &View<'_>| {
        let mut name = [0; MAX_NAME];
        let len = (view.u64(NAME_LEN) as usize).min(MAX_NAME);
        view.read(NAME, &mut name[..len]);
        let ready = view.u64(STATE) == READY && view.u64(ADDR) == addr;
        ready && std::str::from_utf8(&name[..len]).is_ok_and(is_it)
    };
    for row in (0..ROWS).map(|nth| node.inner.table() + (nth * ROW) as u64) {
        if !insist(node, || node.snapshot(row, ROW, has))? {
            continue;
        }
        insist(node, || {
            node.update(row, ROW, |view| {
                if has(view) {
                    view.set_u64(STATE, VACANT);
                }
            })
        })?;
        // Whoever finds the row at its home must not find what it was.
        return publish(node, row);
    }
    Ok(())
}

/// Sees to it that a row's home has it.
fn publish(node: &Node, row: u64) -> Result<()> {
    match node.evict(row) {
        // Nothing is cached in this mode.
        Err(Error::Unsupported(_)) => Ok(()),
        Err(error) => Err(error),
        // Somebody may have taken it before it could be written back: whoever is read from writes back.
        Ok(_) => insist(node, || node.snapshot(row, ROW, |_| ())),
    }
}

fn see(node: &Node, row: u64, name: &str) -> Result<Row> {
    insist(node, || node.snapshot(row, ROW, |view| look(view, name)))
}

/// Does something in the table, again with what its home has if the last content has died with a node.
fn insist<R>(node: &Node, f: impl Fn() -> Result<R>) -> Result<R> {
    for _ in 0..ATTEMPTS {
        match f() {
            Err(Error::Lost { addr }) => node.accept_loss(addr)?,
            done => return done,
        }
    }
    f()
}

fn zero(node: &Node, addr: u64, len: usize) -> Result<()> {
    let zeros = vec![0; node.block_size()];
    for at in (0..len).step_by(zeros.len()) {
        node.write(addr + at as u64, &zeros[..zeros.len().min(len - at)])?;
    }
    Ok(())
}

/// See [`Node::find_region`].
pub(crate) fn find(node: &Node, name: &str, type_hash: u64) -> Result<(u64, usize)> {
    check(name)?;
    for row in rows(node.inner.table(), name) {
        match see(node, row, name)? {
            Row::Ready {
                addr,
                len,
                type_hash: t,
            } if t == type_hash => return Ok((addr, len as usize)),
            Row::Ready { .. } => return Err(Error::RegionMismatch { name: name.into() }),
            Row::Empty | Row::Vacant | Row::Claimed { .. } => break,
            Row::Other => {}
        }
    }
    Err(Error::NoSuchRegion { name: name.into() })
}
