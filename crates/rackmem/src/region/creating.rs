//! A region is created, or opened, or found to be another than was wanted.

use super::row::{EMPTY, Mark, ROW, Ready, Row, STATE, claim, finish, look, vacate};
use super::spec::What;
use super::{await_table, change, check, copied, insist, is_gone, name_lost, rows, see};
use crate::backoff::Backoff;
use crate::bytes::window::Window;
use crate::error::{AccessError, AllocError, RegionError};
use crate::node::{Node, places};
use rackmem_proto::heap::Backing;
use rackmem_proto::wire::{Contract, HomeId, NodeId, Tag};

/// What to do about a region that has died with its home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Absent {
    /// Nothing: [`RegionError::NameLost`].
    Report,
    /// Make it anew.
    Renew,
}

/// Where a region's memory comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Memory of this node.
    Bytes { home: HomeId },
    /// Memory for objects of this node.
    Objects { home: HomeId },
    /// Items of this node: bytes of each, and how many.
    Items { home: HomeId, shape: (u32, u32) },
    /// A lock of the creating one.
    Lock,
}

/// What is to be had under a name.
#[derive(Clone, Copy)]
pub(super) struct Want<'a> {
    pub name: &'a str,
    pub what: What,
    pub absent: Absent,
    pub purpose: Purpose,
}

/// A region that was opened.
#[derive(Clone, Copy)]
pub(super) struct Opened {
    pub row: u64,
    pub ready: Ready,
    /// By this call.
    pub created: bool,
}

/// The memory of a lock of this name, at this node if it is the first to ask, which is told so.
pub(crate) fn lock(
    node: &Node,
    name: &str,
    (len, element): (usize, u64),
    absent: Absent,
) -> Result<(u64, bool), RegionError> {
    node.open()?;
    let what = What {
        len: len as u64,
        element,
        contract: Contract::Locked,
        backing: Backing::Heap,
    };
    let want = Want {
        name,
        what,
        absent,
        purpose: Purpose::Lock,
    };
    let opened = open(node, &want)?;
    Ok((opened.ready.addr, opened.created))
}

/// Whether a region is what was wanted, apart from whether its home lives.
pub(super) fn fits(name: &str, wanted: &What, found: &Ready) -> Result<(), RegionError> {
    let is = found.what.contract;
    if is != wanted.contract {
        return Err(RegionError::Access(AccessError::WrongContract {
            addr: found.addr,
            wanted: wanted.contract,
            is,
        }));
    }
    match found.what == *wanted {
        true => Ok(()),
        false => Err(RegionError::Mismatch { name: name.into() }),
    }
}

pub(super) fn open(node: &Node, want: &Want<'_>) -> Result<Opened, RegionError> {
    let name = want.name;
    check(name)?;
    copied(node, name, want.what.contract)?;
    await_table(node)?;
    for row in rows(name) {
        let mut backoff = Backoff::new(node.inner.access.patience);
        loop {
            let seen = see(node, row, name)?;
            let mine = match seen {
                Row::Empty => claim_if(node, row, want, |view| view.u64(STATE) == EMPTY)?,
                Row::Other => break,
                Row::Vacant { .. } => claim_if(node, row, want, |view| look(view, name) == seen)?,
                Row::Claimed { by } if is_gone(node, by) => {
                    claim_if(node, row, want, |view| look(view, name) == seen)?
                }
                Row::Claimed { .. } => {
                    if !backoff.wait() {
                        return Err(unfinished(name));
                    }
                    false
                }
                Row::Ready(ready) => {
                    fits(name, &want.what, &ready)?;
                    match is_gone(node, ready.addr) {
                        false => {
                            return Ok(Opened {
                                row,
                                ready,
                                created: false,
                            });
                        }
                        true if want.absent == Absent::Report => {
                            return Err(name_lost(node, name, ready.addr));
                        }
                        true => claim_if(node, row, want, |view| look(view, name) == seen)?,
                    }
                }
            };
            if mine {
                return match fill(node, row, want)? {
                    Some(ready) => Ok(Opened {
                        row,
                        ready,
                        created: true,
                    }),
                    None => open(node, want),
                };
            }
        }
    }
    Err(RegionError::TableFull { name: name.into() })
}

pub(super) fn unfinished(name: &str) -> RegionError {
    RegionError::Unfinished { name: name.into() }
}

/// Claims a row, if it still is what it was. Of several who want it one does.
fn claim_if(
    node: &Node,
    row: u64,
    want: &Want<'_>,
    still: impl Fn(&Window<'_>) -> bool,
) -> Result<bool, AccessError> {
    // Of this process: its node's memory, as this incarnation has it.
    let me = node.call_address();
    insist(node, row, |addr| {
        node.update(addr, ROW, |view| {
            if look(view, want.name) == (Row::Claimed { by: me }) {
                return true;
            }
            let mine = still(view);
            if mine {
                claim(view, me, want.name, &want.what);
            }
            mine
        })
    })
}

/// The node whose own memory a home is. What groups keep is not handed out in pieces.
fn owner(node: &Node, home: HomeId) -> Result<NodeId, AccessError> {
    let host = node.inner.access.standing.host(home);
    host.filter(|_| home.is_own())
        .ok_or_else(|| AccessError::gone(home.start(), None))
}

/// Memory for a region, as zeros.
fn memory(node: &Node, want: &Want<'_>) -> Result<u64, AllocError> {
    let len = want.what.len as usize;
    match want.purpose {
        Purpose::Bytes { home } => {
            let addr = node.alloc_bytes_on(owner(node, home)?, len)?;
            Ok(Tag(addr).under(want.what.contract).0)
        }
        Purpose::Objects { home } => {
            let first = home.start().under(Contract::Object);
            owner(node, home)?;
            Ok(node.inner.access.reserve_objects(first, len as u64)?.0)
        }
        Purpose::Items { home, shape } => {
            let there = home.start().under(Contract::Bounded);
            let owner = owner(node, home)?;
            node.inner.access.reserve_items((there, owner), shape)
        }
        Purpose::Lock => {
            // Where another lock was before, perhaps.
            let addr = places::place(node, len)?;
            let zeroed = node.zero(places::memory_of(addr), len);
            if zeroed.is_err() {
                give_back(node, want, addr)?;
            }
            zeroed?;
            Ok(addr)
        }
    }
}

fn give_back(node: &Node, want: &Want<'_>, addr: u64) -> Result<(), AllocError> {
    let len = want.what.len as usize;
    match want.purpose {
        Purpose::Bytes { .. } => node.free_bytes(places::memory_of(addr), len),
        Purpose::Objects { .. } => Ok(node.inner.access.remove_objects(Tag(addr))?),
        Purpose::Items { .. } => Ok(node.inner.access.remove_items(Tag(addr))?),
        Purpose::Lock => places::give_place_back(node, len, addr),
    }
}

/// Second half of a creation: memory, and the row is ready; or the name is free again.
/// Nothing where somebody else has been faster, since the claim died with another node.
fn fill(node: &Node, row: u64, want: &Want<'_>) -> Result<Option<Ready>, RegionError> {
    let made = memory(node, want);
    let ours = change(node, row, want.name, |view| {
        let free = match look(view, want.name) {
            Row::Empty | Row::Vacant { .. } | Row::Claimed { .. } => true,
            // It is there already: nobody else has this memory.
            Row::Ready(ready) if Ok(ready.addr) == made => {
                return Some((Some(ready), Mark::of(view)));
            }
            // The claim died with another node, and what it was to replace is back.
            Row::Ready(ready) => is_gone(node, ready.addr),
            Row::Other => false,
        };
        match &made {
            Ok(addr) if free => {
                let ready = finish(view, *addr, want.name, &want.what);
                Some((Some(ready), Mark::of(view)))
            }
            Err(_) if free => Some((None, vacate(view, want.name, 0))),
            _ => None,
        }
    })?;
    let addr = made?;
    if ours.is_none() {
        give_back(node, want, addr)?;
    }
    Ok(ours.flatten())
}
