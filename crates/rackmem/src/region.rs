//! Named regions: a table in coherent memory at the beginning of node 0's memory, so that programs which
//! share no code find each other's data by name.
//!
//! A row is 128 bytes and never crosses a block: state, address, length, type, name. A row is claimed by one
//! atomic update of its block, which is what makes two creators agree; the loser waits for the winner.
//!
//! Rows share blocks, and whoever looks for a free row may end up with the only copy of one. So a row that is ready is
//! written home before anybody is told of it, and a block that has died with a node goes on with what its home has. Claims
//! may be gone then, and whoever comes first with a row that is ready is right.

use crate::backoff::Backoff;
use crate::error::{Error, Result};
use crate::node::Node;
use crate::view::{View, ViewMut};

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

/// A row's state word.
const EMPTY: u64 = 0;
const CLAIMED: u64 = 1;
const READY: u64 = 2;

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
    Claimed,
    Ready { addr: u64, len: u64, type_hash: u64 },
}

fn look(view: &View<'_>, name: &str) -> Row {
    if view.u64(STATE) == EMPTY {
        return Row::Empty;
    }
    if view.u64(NAME_LEN) != name.len() as u64 || !view.eq(NAME, name.as_bytes()) {
        return Row::Other;
    }
    match view.u64(STATE) {
        CLAIMED => Row::Claimed,
        _ => Row::Ready {
            addr: view.u64(ADDR),
            len: view.u64(LEN),
            type_hash: view.u64(TYPE),
        },
    }
}

fn claim(view: &mut ViewMut<'_>, name: &str, len: usize, type_hash: u64) {
    view.set_u64(STATE, CLAIMED);
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

/// See [`Node::region`].
pub(crate) fn open_or_create(
    node: &Node,
    home: u16,
    name: &str,
    len: usize,
    type_hash: u64,
) -> Result<(u64, bool)> {
    check(name)?;
    for row in rows(node.inner.table(), name) {
        let mut backoff = Backoff::new(node.inner.access.patience);
        loop {
            let mine = match see(node, row, name)? {
                Row::Empty => insist(node, || {
                    node.update(row, ROW, |view| {
                        let empty = view.u64(STATE) == EMPTY;
                        if empty {
                            claim(view, name, len, type_hash);
                        }
                        empty
                    })
                })?,
                Row::Other => break,
                Row::Claimed => {
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
                } if l == len as u64 && t == type_hash => {
                    return Ok((addr, false));
                }
                Row::Ready { .. } => return Err(Error::RegionMismatch { name: name.into() }),
            };
            if mine {
                match fill(node, home, row, name, len, type_hash)? {
                    Some(addr) => return Ok((addr, true)),
                    None => return open_or_create(node, home, name, len, type_hash),
                }
            }
        }
    }
    Err(Error::RegionTable {
        name: name.into(),
        why: "the table is full",
    })
}

/// Second half of a creation: memory, zeros, and the row is ready; or the row is free again. Nothing where somebody else
/// has been faster, since the claim died with another node.
fn fill(
    node: &Node,
    home: u16,
    row: u64,
    name: &str,
    len: usize,
    type_hash: u64,
) -> Result<Option<u64>> {
    let made = node
        .alloc_bytes_on(home, len)
        .and_then(|addr| zero(node, addr, len).map(|()| addr));
    let ours = insist(node, || {
        node.update(row, ROW, |view| match (look(view, name), &made) {
            (Row::Other | Row::Ready { .. }, _) => false,
            (Row::Empty | Row::Claimed, Ok(addr)) => {
                claim(view, name, len, type_hash);
                view.set_u64(ADDR, *addr);
                view.set_u64(STATE, READY);
                true
            }
            (Row::Empty | Row::Claimed, Err(_)) => {
                view.set_u64(STATE, EMPTY);
                false
            }
        })
    })?;
    let addr = made?;
    if ours {
        publish(node, row)?;
        return Ok(Some(addr));
    }
    node.free_bytes(addr, len)?;
    Ok(None)
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
            Row::Empty | Row::Claimed => break,
            Row::Other => {}
        }
    }
    Err(Error::NoSuchRegion { name: name.into() })
}
