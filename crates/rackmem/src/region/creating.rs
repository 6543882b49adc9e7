//! A region is created, or opened, or found to be another than was wanted.

use super::row::{EMPTY, ROW, Ready, Row, STATE, claim, finish, look, vacate};
use super::spec::What;
use super::{check, insist, is_gone, name_lost, publish, rows, see};
use crate::backoff::Backoff;
use crate::bytes::window::Window;
use crate::error::{AccessError, AllocError, RegionError};
use crate::node::{Node, places};
use rackmem_proto::heap::Backing;
use rackmem_proto::wire::{Contract, HomeId, Tag};

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
    for row in rows(node.inner.table(), name) {
        let mut backoff = Backoff::new(node.inner.access.patience);
        loop {
            let seen = see(node, row, name)?;
            let mine = match seen {
                Row::Empty => claim_if(node, row, want, |view| view.u64(STATE) == EMPTY)?,
                Row::Other => break,
                Row::Vacant => claim_if(node, row, want, |view| look(view, name) == seen)?,
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
    let me = node.first_address();
    insist(node, || {
        node.update(row, ROW, |view| {
            let mine = still(view);
            if mine {
                claim(view, me, want.name, &want.what);
            }
            mine
        })
    })
}

/// Memory for a region, as zeros.
fn memory(node: &Node, want: &Want<'_>) -> Result<u64, AllocError> {
    let len = want.what.len as usize;
    match want.purpose {
        Purpose::Bytes { home } => {
            let (view, first) = (&node.inner.access.standing, home.start());
            let host = view
                .host(home)
                .ok_or_else(|| AccessError::gone(first, None))?;
            let addr = node.alloc_bytes_on(host, len)?;
            Ok(Tag(addr).under(want.what.contract).0)
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
        Purpose::Lock => places::give_place_back(node, len, addr),
    }
}

/// Second half of a creation: memory, and the row is ready; or the name is free again.
/// Nothing where somebody else has been faster, since the claim died with another node.
fn fill(node: &Node, row: u64, want: &Want<'_>) -> Result<Option<Ready>, RegionError> {
    let made = memory(node, want);
    let ours = insist(node, || {
        node.update(row, ROW, |view| {
            let free = match look(view, want.name) {
                Row::Empty | Row::Vacant | Row::Claimed { .. } => true,
                // The claim died with another node, and what it was to replace is back.
                Row::Ready(ready) => is_gone(node, ready.addr),
                Row::Other => false,
            };
            match &made {
                Ok(addr) if free => Some(finish(view, *addr, want.name, &want.what)),
                Err(_) if free => {
                    vacate(view, want.name);
                    None
                }
                _ => None,
            }
        })
    })?;
    let addr = made?;
    match ours {
        Some(_) => publish(node, row)?,
        None => give_back(node, want, addr)?,
    }
    Ok(ours)
}
