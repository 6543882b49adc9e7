//! A name is taken away, and the memory behind it goes home.
//!
//! The one step that removes a region is the update of its row, which is what makes two removers
//! agree, and a remover and a creator. The memory is given back afterwards. If the remover dies
//! between these, the name is free and the memory stays allocated until its home starts anew:
//! nobody else can know whether it was given back already.

use super::creating::unfinished;
use super::row::{self, ADDR, Mark, READY, ROW, Ready, Row, STATE, look};
use super::{all_rows, await_table, change, check, insist, is_gone, rows, see};
use crate::backoff::Backoff;
use crate::bytes::window::Window;
use crate::error::{AccessError, AllocError, RegionError};
use crate::node::Node;
use rackmem_proto::wire::{Contract, Tag};

/// See [`Node::remove_region`].
pub(super) fn remove(node: &Node, name: &str) -> Result<(), RegionError> {
    check(name)?;
    let none = || RegionError::NotFound { name: name.into() };
    await_table(node)?;
    for row in rows(name) {
        let mut backoff = Backoff::new(node.inner.access.patience);
        loop {
            let seen = see(node, row, name)?;
            match seen {
                Row::Other | Row::Left { .. } | Row::Vacant { .. } => break,
                Row::Empty => return Err(none()),
                Row::Claimed { by } if is_gone(node, by) => {
                    take(node, row, name, seen)?;
                }
                Row::Claimed { .. } => {
                    if !backoff.wait() {
                        return Err(unfinished(name));
                    }
                }
                Row::Ready(ready) => {
                    if remove_row(node, row, name, ready)? {
                        return Ok(());
                    }
                }
            }
        }
    }
    Err(none())
}

/// Removes the region that this row had. Says whether it has it still.
pub(super) fn remove_row(
    node: &Node,
    row: u64,
    name: &str,
    ready: Ready,
) -> Result<bool, RegionError> {
    if !is_removable(ready.what.contract) {
        return Err(RegionError::NotRemovable {
            name: name.into(),
            contract: ready.what.contract,
        });
    }
    if !take(node, row, name, Row::Ready(ready))? {
        return Ok(false);
    }
    if !is_gone(node, ready.addr) {
        give_back(node, &ready).map_err(|why| RegionError::NotFreed {
            name: name.into(),
            why,
        })?;
    }
    Ok(true)
}

/// Whether regions under a contract can be removed by their name.
fn is_removable(contract: Contract) -> bool {
    matches!(
        contract,
        Contract::Coherent | Contract::Object | Contract::Bounded
    )
}

/// Nobody finds the region any more.
fn give_back(node: &Node, ready: &Ready) -> Result<(), AllocError> {
    match ready.what.contract {
        Contract::Object => Ok(node.inner.access.remove_objects(Tag(ready.addr))?),
        Contract::Bounded => Ok(node.inner.access.remove_items(Tag(ready.addr))?),
        _ => node.free_bytes(ready.addr, ready.what.len as usize),
    }
}

/// Takes the name away, if the row still is what it was. Says whether it was.
pub(super) fn take(node: &Node, row: u64, name: &str, seen: Row) -> Result<bool, AccessError> {
    let by = node.call_address();
    // Whoever finds the row at its home must not find what it was.
    let ours = change(node, row, |view| {
        let now = look(view, name);
        if now == (Row::Vacant { by }) {
            return Some(((), Mark::of(view)));
        }
        (now == seen).then(|| ((), row::vacate(view, name, by)))
    })?;
    Ok(ours.is_some())
}

/// Nothing has this address any more under a name of which `is_it` says yes. The name is free.
pub(crate) fn vacate(
    node: &Node,
    addr: u64,
    is_it: &dyn Fn(&str) -> bool,
) -> Result<(), AccessError> {
    let has = |view: &Window<'_>| {
        let ready = view.u64(STATE) == READY && view.u64(ADDR) == addr;
        row::name(view).filter(|name| ready && is_it(name))
    };
    let by = node.call_address();
    for row in all_rows() {
        let seen = insist(node, row, |addr| node.snapshot(addr, ROW, has))?;
        let Some(name) = seen else {
            continue;
        };
        let vacated = change(node, row, |view| {
            if look(view, &name) == (Row::Vacant { by }) {
                return Some(((), Mark::of(view)));
            }
            has(view).map(|_| ((), row::vacate(view, &name, by)))
        });
        return vacated.map(drop);
    }
    Ok(())
}
