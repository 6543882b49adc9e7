//! Regions with copies. Their names are in the rack's groups and not in the table at node 0, so
//! that they outlive it.

use super::check;
use super::row::RegionInfo;
use super::spec::RegionSpec;
use crate::backoff::Backoff;
use crate::error::{AccessError, AllocError, MembershipError, RegionError};
use crate::host::groups::address as group_address;
use crate::host::names;
use crate::membership::{Asked, Group, Groups, KeptAs, Survives, Unchanged};
use crate::node::Node;
use rackmem_proto::abd::{COPIES, Durability, Layout};
use rackmem_proto::heap::Backing;
use rackmem_proto::sabre::bytes_without_rows;
use rackmem_proto::wire::{Contract, Tag};

/// A region with copies that was opened.
#[derive(Clone, Copy)]
pub(super) struct Copied {
    pub number: u16,
    pub layout: Layout,
    /// The config of its group with which it began.
    pub first: u32,
    /// Where it begins.
    pub addr: u64,
    /// By this call.
    pub created: bool,
}

/// The lines that a region is to have in this node's rack.
fn layout(node: &Node, spec: &RegionSpec) -> Result<Layout, RegionError> {
    spec.layout(node.inner.block as u32)
}

fn away(why: MembershipError) -> RegionError {
    match why {
        MembershipError::Fixed => RegionError::FixedMembers,
        why => RegionError::NoGroups { why: why.what() },
    }
}

/// Whether a group is the region that was wanted.
fn fits(
    node: &Node,
    spec: &RegionSpec,
    (number, group): (u16, &Group),
) -> Result<Copied, RegionError> {
    let name = || spec.name().to_owned();
    if group.copies != spec.copies {
        return Err(RegionError::OtherCopies {
            name: name(),
            has: group.copies,
        });
    }
    let same = group.durability == spec.durability && group.element == spec.element;
    if !same || group.home != spec.kept_as() || group.layout != layout(node, spec)? {
        return Err(RegionError::Mismatch { name: name() });
    }
    Ok(Copied {
        number,
        layout: group.layout,
        first: group.config.first,
        addr: group_address(number, group),
        created: false,
    })
}

/// A region that exists already.
pub(super) fn open(node: &Node, spec: &RegionSpec) -> Result<Copied, RegionError> {
    let name = spec.name();
    check(name)?;
    let groups = node.inner.access.groups.look().map_err(away)?;
    match groups.find(name) {
        Some(found) => fits(node, spec, found),
        None => {
            is_free(node, spec)?;
            Err(RegionError::NotFound { name: name.into() })
        }
    }
}

/// The table has nothing of this name; where that cannot be asked, nothing says that it
/// has.
fn is_free(node: &Node, spec: &RegionSpec) -> Result<(), RegionError> {
    let (name, wanted) = (spec.name(), spec.contract);
    match super::find(node, name) {
        Ok((_, ready)) if ready.what.contract == wanted => Err(RegionError::OtherCopies {
            name: name.into(),
            has: 0,
        }),
        Ok((_, ready)) => Err(RegionError::Access(AccessError::WrongContract {
            addr: ready.addr,
            wanted,
            is: ready.what.contract,
        })),
        Err(_) => Ok(()),
    }
}

/// The region of a name, made if nobody has yet. Of several who make it at one time one does.
pub(super) fn create(node: &Node, spec: &RegionSpec) -> Result<Copied, RegionError> {
    let (name, layout) = (spec.name(), layout(node, spec)?);
    check(name)?;
    let book = &node.inner.access.groups;
    let mut backoff = Backoff::new(node.inner.access.patience);
    let mut asked = false;
    loop {
        let groups = book.look().map_err(away)?;
        if let Some(found) = groups.find(name) {
            return fits(node, spec, found);
        }
        if !std::mem::replace(&mut asked, true) {
            is_free(node, spec)?;
        }
        let next = next(node, spec, layout, &groups)?;
        if book.propose(&next).map_err(away)? {
            book.hurry();
            if let Some(found) = next.find(name) {
                let copied = fits(node, spec, found)?;
                return Ok(Copied {
                    created: true,
                    ..copied
                });
            }
        }
        if !backoff.wait() {
            return Err(RegionError::Unfinished { name: name.into() });
        }
    }
}

/// The groups with this region.
fn next(
    node: &Node,
    spec: &RegionSpec,
    layout: Layout,
    groups: &Groups,
) -> Result<Groups, RegionError> {
    let access = &node.inner.access;
    let view = access.groups.view(access.standing.view()).map_err(away)?;
    let first = spec.home.map_or(node.inner.id, |home| home.0);
    let durability = spec.durability;
    if durability != Durability::Memory && !access.agents.replicas.stores.has_folder() {
        return Err(RegionError::NoStore { durability });
    }
    if durability == Durability::Dax
        && let Some(why) = access.agents.replicas.stores.is_not_persistent()
    {
        let why = why.to_string();
        return Err(RegionError::NotPersistent { why });
    }
    let asked = Asked {
        two_rounds: spec.two_rounds,
        held: spec.held,
        durability,
        home: spec.kept_as(),
        ..Asked::new(layout, spec.copies)
    };
    let named = (spec.name(), spec.element);
    let next = groups.create(named, asked, (&view, first));
    let next = next.map_err(|why| match why {
        Unchanged::Members(live) => RegionError::FewMembers {
            copies: spec.copies,
            live,
        },
        _ => RegionError::TableFull {
            name: spec.name().into(),
        },
    })?;
    let created = next.find(spec.name());
    let keeps = created.map(|(_, group)| group.config.nodes(u8::MAX));
    let mut keeps = keeps.iter().flat_map(|nodes| nodes.iter());
    match keeps.find(|node| next.bytes_at(*node) > access.room) {
        Some(node) => Err(AllocError::OutOfMemory { node }.into()),
        None if durability == Durability::Memory => Ok(next),
        None => Ok(next.numbered(fastrand::u64(1..))),
    }
}

/// What was removed.
pub(super) enum Removed {
    /// Nothing: there is none.
    Nothing,
    /// A region of lines.
    Lines,
    /// A home, of objects or coherent memory. An object at its beginning would have this address.
    Home(Tag),
}

/// Removes a region and its copies, on all nodes: one step of the groups, which is done or is not,
/// whoever dies. Each node gives back what it has when it hears.
pub(super) fn remove(node: &Node, name: &str) -> Result<Removed, RegionError> {
    check(name)?;
    let book = &node.inner.access.groups;
    let mut backoff = Backoff::new(node.inner.access.patience);
    loop {
        let groups = book.look().map_err(away)?;
        let Some((number, found)) = groups.find(name) else {
            return Ok(Removed::Nothing);
        };
        let what = match found.home {
            None => Removed::Lines,
            Some(_) => {
                let begin = Tag(group_address(number, found));
                Removed::Home(begin.under(Contract::Object))
            }
        };
        let Ok(next) = groups.remove(name) else {
            return Ok(Removed::Nothing);
        };
        if book.propose(&next).map_err(away)? {
            return Ok(what);
        }
        if !backoff.wait() {
            return Err(RegionError::Unfinished { name: name.into() });
        }
    }
}

/// Has a region keep more copies from now on.
pub(super) fn grow(node: &Node, name: &str, copies: u8) -> Result<(), RegionError> {
    check(name)?;
    if !COPIES.contains(&copies) {
        return Err(RegionError::BadCopies { copies });
    }
    let access = &node.inner.access;
    let book = &access.groups;
    let mut backoff = Backoff::new(access.patience);
    loop {
        let groups = book.look().map_err(away)?;
        let view = book.view(access.standing.view()).map_err(away)?;
        let next = groups.grow(name, copies, &view);
        let next = next.map_err(|why| match why {
            Unchanged::Copies(has) => RegionError::OtherCopies {
                name: name.into(),
                has,
            },
            Unchanged::Members(live) => RegionError::FewMembers { copies, live },
            _ => RegionError::NotFound { name: name.into() },
        })?;
        if book.propose(&next).map_err(away)? {
            book.hurry();
            return Ok(());
        }
        if !backoff.wait() {
            return Err(RegionError::Unfinished { name: name.into() });
        }
    }
}

/// The regions with copies, as this process knows them.
pub(super) fn infos(groups: &Groups) -> Vec<RegionInfo> {
    let info = |(number, group): (usize, &Group)| RegionInfo {
        spec: RegionSpec {
            name: group.name.clone(),
            len: match group.home {
                Some(KeptAs::Objects) => {
                    bytes_without_rows(group.layout.bytes, group.layout.line) as usize
                }
                _ => group.layout.bytes as usize,
            },
            element: group.element,
            contract: group.home.map_or(Contract::Replicated, KeptAs::contract),
            backing: Backing::Heap,
            home: None,
            renew: false,
            copies: group.copies,
            line: group.layout.line,
            two_rounds: group.two_rounds,
            held: group.held,
            durability: group.durability,
            survives: match group.home {
                Some(KeptAs::Blocks(survives)) => survives,
                _ => Survives::Rest,
            },
        },
        addr: group_address(number as u16, group),
        generation: group.config.first,
    };
    let rows = groups.rows.iter().enumerate();
    let there = |group: &Group| group.name != names::GROUP && !group.config.is_removed();
    let regions = rows.filter(|(_, group)| there(group));
    regions.map(info).collect()
}
