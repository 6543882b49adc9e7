//! A name is taken away, and the memory behind it goes home.
//!
//! The one step that removes a region is the update of its row, which is what makes two removers
//! agree, and a remover and a creator. The memory is given back afterwards. If the remover dies
//! between these, the name is free and the memory stays allocated until its home starts anew:
//! nobody else can know whether it was given back already.

use super::creating::unfinished;
use super::row::{self, ADDR, READY, ROW, Row, STATE, look};
use super::{all_rows, check, insist, is_gone, publish, rows, see};
use crate::backoff::Backoff;
use crate::bytes::window::Window;
use crate::error::{AccessError, RegionError};
use crate::node::Node;
use rackmem_proto::wire::Contract;

/// See [`Node::remove_region`].
pub(super) fn remove(node: &Node, name: &str) -> Result<(), RegionError> {
    check(name)?;
    let none = || RegionError::NotFound { name: name.into() };
    for row in rows(node.inner.table(), name) {
        let mut backoff = Backoff::new(node.inner.access.patience);
        loop {
            let seen = see(node, row, name)?;
            match seen {
                Row::Other => break,
                Row::Empty | Row::Vacant => return Err(none()),
                Row::Claimed { by } if is_gone(node, by) => {
                    take(node, row, name, seen)?;
                    return Err(none());
                }
                Row::Claimed { .. } => {
                    if !backoff.wait() {
                        return Err(unfinished(name));
                    }
                }
                Row::Ready(ready) if ready.what.contract != Contract::Coherent => {
                    return Err(RegionError::NotRemovable {
                        name: name.into(),
                        contract: ready.what.contract,
                    });
                }
                Row::Ready(ready) => {
                    if take(node, row, name, seen)? {
                        if is_gone(node, ready.addr) {
                            return Ok(());
                        }
                        let freed = node.free_bytes(ready.addr, ready.what.len as usize);
                        return freed.map_err(|why| RegionError::NotFreed {
                            name: name.into(),
                            why,
                        });
                    }
                }
            }
        }
    }
    Err(none())
}

/// Takes the name away, if the row still is what it was. Says whether it was.
fn take(node: &Node, row: u64, name: &str, seen: Row) -> Result<bool, AccessError> {
    let ours = insist(node, || {
        node.update(row, ROW, |view| {
            let ours = look(view, name) == seen;
            if ours {
                row::vacate(view, name);
            }
            ours
        })
    })?;
    if ours {
        // Whoever finds the row at its home must not find what it was.
        publish(node, row)?;
    }
    Ok(ours)
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
    for row in all_rows(node) {
        let Some(name) = insist(node, || node.snapshot(row, ROW, has))? else {
            continue;
        };
        insist(node, || {
            node.update(row, ROW, |view| {
                if has(view).is_some() {
                    row::vacate(view, &name);
                }
            })
        })?;
        return publish(node, row);
    }
    Ok(())
}
