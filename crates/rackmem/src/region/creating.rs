//! A region is created, or opened, or found to be another than was wanted.

use super::removing::take;
use super::row::{Mark, Ready, Row, claim, finish, look, vacate};
use super::spec::What;
use super::{await_table, change, check, copied, is_gone, name_lost, rows, see};
use crate::backoff::Backoff;
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
    let mut backoff = Backoff::new(node.inner.access.patience);
    loop {
        let row = match look_for(node, name, None)? {
            Found::Ready(row, ready) => {
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
                    true => Some((row, Row::Ready(ready))),
                }
            }
            Found::Claimed(row, by) if is_gone(node, by) => Some((row, Row::Claimed { by })),
            Found::Claimed(..) => None,
            Found::Nothing(Some(place)) => Some(place),
            Found::Nothing(None) => return Err(RegionError::TableFull { name: name.into() }),
        };
        // Of this process: its node's memory, as this incarnation has it.
        let me = node.call_address();
        if let Some((row, seen)) = row
            && claim_if(node, row, want, (seen, me))?
        {
            let alone = is_alone(node, name, row, &mut backoff);
            if !matches!(alone, Ok(true)) {
                // If it cannot be given up it is this process' until that ends.
                take(node, row, name, Row::Claimed { by: me })?;
            }
            if alone? && let Some(ready) = fill(node, row, want, me)? {
                return Ok(Opened {
                    row,
                    ready,
                    created: true,
                });
            }
        }
        if row.is_none() && !backoff.wait() {
            return Err(unfinished(name));
        }
    }
}

/// What there is of a name.
enum Found {
    Ready(u64, Ready),
    /// In this row, by a call of this number.
    Claimed(u64, u64),
    /// Nothing, and a row that it could have, as it was seen.
    Nothing(Option<(u64, Row)>),
}

/// Looks for a name in all rows that it may have, but the one of the caller's own claim. What is
/// ready is before what is claimed.
fn look_for(node: &Node, name: &str, but: Option<u64>) -> Result<Found, AccessError> {
    let (mut claimed, mut place) = (None, None);
    for row in rows(name).filter(|row| Some(*row) != but) {
        let seen = see(node, row, name)?;
        match seen {
            Row::Ready(ready) => return Ok(Found::Ready(row, ready)),
            Row::Claimed { by } => claimed = claimed.or(Some((row, by))),
            Row::Other => {}
            Row::Left { .. } | Row::Vacant { .. } | Row::Empty => {
                place = place.or(Some((row, seen)));
            }
        }
        if seen == Row::Empty {
            break;
        }
    }
    Ok(match claimed {
        Some((row, by)) => Found::Claimed(row, by),
        None => Found::Nothing(place),
    })
}

/// Whether this call may make the region whose row it has claimed.
/// Of two that have claimed rows for one name at a time one sees the other one, at least: each
/// looks after its own claim is there. Who sees one that is ready, or one in a row that comes
/// before its own, gives its own up. Who sees one that comes behind waits for what becomes of it:
/// that one goes on if it has not seen this one, and gives up if it has.
fn is_alone(node: &Node, name: &str, own: u64, backoff: &mut Backoff) -> Result<bool, RegionError> {
    let place = |row: u64| rows(name).position(|it| it == row);
    loop {
        match look_for(node, name, Some(own))? {
            Found::Nothing(_) => return Ok(true),
            Found::Claimed(row, by) if is_gone(node, by) => {
                take(node, row, name, Row::Claimed { by })?;
            }
            Found::Claimed(row, _) if place(row) > place(own) => {
                if !backoff.wait() {
                    return Err(unfinished(name));
                }
            }
            Found::Claimed(..) | Found::Ready(..) => return Ok(false),
        }
    }
}

pub(super) fn unfinished(name: &str) -> RegionError {
    RegionError::Unfinished { name: name.into() }
}

/// Claims a row, if it still is what it was. Of several who want it one does.
fn claim_if(
    node: &Node,
    row: u64,
    want: &Want<'_>,
    (seen, me): (Row, u64),
) -> Result<bool, AccessError> {
    let mine = change(node, row, |view| {
        let now = look(view, want.name);
        if now == seen {
            claim(view, me, want.name, &want.what);
        } else if now != (Row::Claimed { by: me }) {
            return None;
        }
        Some(((), Mark::of(view)))
    })?;
    Ok(mine.is_some())
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
/// Nothing where the claim is no more: others took this process for dead.
fn fill(node: &Node, row: u64, want: &Want<'_>, me: u64) -> Result<Option<Ready>, RegionError> {
    let made = memory(node, want);
    let ours = change(node, row, |view| match (look(view, want.name), &made) {
        (Row::Claimed { by }, Ok(addr)) if by == me => {
            let ready = finish(view, *addr, want.name, &want.what);
            Some((Some(ready), Mark::of(view)))
        }
        // It is there already: nobody else has this memory.
        (Row::Ready(ready), Ok(addr)) if ready.addr == *addr => Some((Some(ready), Mark::of(view))),
        (Row::Claimed { by }, Err(_)) if by == me => Some((None, vacate(view, want.name, me))),
        _ => None,
    })?;
    let addr = made?;
    if ours.is_none() {
        give_back(node, want, addr)?;
    }
    Ok(ours.flatten())
}
