//! Making locks, and finding those that others have made.

use super::descriptor::{self, Descriptor, Found, Name};
use super::freeing::{self, FOR_A_PLACE, TRIES};
use super::handle::{Handle, MOST, locks};
use crate::error::{AllocError, LockError, LockShape, RegionError};
use crate::host::locks::table::Origin;
use crate::node::{Node, places};
use crate::region::{self, Absent};
use rackmem_proto::gcp::{Access, Life, MAX_LOCKED};
use rackmem_proto::wire::Tag;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Times that a name is looked up while what has it is freed and made anew.
const LOOKS: usize = 16;

impl Handle {
    /// A new lock, whose home is this node.
    pub fn create(
        node: &Node,
        what: Descriptor,
        fill: impl Fn(&[AtomicU64]),
    ) -> Result<Self, LockError> {
        check(node, &what)?;
        let room = descriptor::room(what.regions.len());
        for attempt in 0..2 * TRIES {
            let addr = match attempt {
                0..TRIES => places::place(node, room)?,
                _ => places::lock_at(node.alloc_bytes(room)?),
            };
            match Handle::make(node, addr, &what, Name::NONE, &fill) {
                Ok(made) => return Ok(made),
                Err(error) => {
                    places::give_place_back(node, room, addr)?;
                    // Somebody with an old handle is inside, or the memory is a lock's that was
                    // given back as memory.
                    if !matches!(error, LockError::Busy { .. } | LockError::NoLock { .. }) {
                        return Err(error);
                    }
                }
            }
        }
        Err(LockError::Alloc(AllocError::OutOfMemory {
            node: node.inner.id,
        }))
    }

    /// Makes a lock where none is.
    fn make(
        node: &Node,
        addr: u64,
        what: &Descriptor,
        name: Name,
        fill: impl Fn(&[AtomicU64]),
    ) -> Result<Self, LockError> {
        let cell = locks(node).open(Tag(addr), MAX_LOCKED as usize, Origin::Made)?;
        let mut handle = Handle::new(node, cell, what.len, Life::NONE, name);
        let place = handle.place();
        let inside = place.enter(Access::Write, FOR_A_PLACE)?;
        let inside = inside.ok_or(LockError::Busy { addr })?;
        let next = handle.cell.life().next();
        handle.life = next.ok_or(LockError::NoLock { addr })?;
        // Who reads this from here on waits until the lock is made.
        let described = what.write(node, addr, handle.life, name);
        described.map_err(|bulk| bulk.error)?;
        handle.cell.content.renew(handle.words as usize);
        fill(handle.words());
        handle.set_life(handle.life);
        let room = descriptor::room(what.regions.len());
        handle.cell.room.store(room.ilog2() as u8, Relaxed);
        handle.cell.told_len.store(handle.len, Relaxed);
        drop(inside);
        locks(node).places.made(addr);
        Ok(handle)
    }

    /// A lock that exists.
    pub fn attach(node: &Node, addr: u64, wanted: &Descriptor) -> Result<Self, LockError> {
        Handle::known(node, addr, &Descriptor::read(node, addr)?, wanted)
    }

    /// Any lock of this kind that exists, and what it is.
    pub fn attach_any(
        node: &Node,
        addr: u64,
        kind: descriptor::Kind,
    ) -> Result<(Self, Descriptor), LockError> {
        let found = Descriptor::read(node, addr)?;
        let what = Descriptor {
            kind,
            ..found.what.clone()
        };
        let handle = Handle::known(node, addr, &found, &what)?;
        Ok((handle, what))
    }

    fn known(
        node: &Node,
        addr: u64,
        found: &Found,
        wanted: &Descriptor,
    ) -> Result<Self, LockError> {
        let Descriptor { kind, len, of, .. } = found.what;
        if (kind, len) != (wanted.kind, wanted.len) || len > MOST || !found.life.is_live() {
            return Err(LockError::NoLock { addr });
        }
        if of != wanted.of {
            return Err(LockError::WrongType { addr });
        }
        let locks = locks(node);
        let origin = match Tag(addr).home().is_own() {
            true => Origin::Made,
            // The node that serves it hears of it from those who want it.
            false => Origin::Heard,
        };
        let cell = locks.open(Tag(addr), MAX_LOCKED as usize, origin)?;
        // As far as it has been here since it was freed; otherwise who enters is told.
        if locks.look(&cell, |_| cell.life()) > found.life {
            return Err(LockError::Freed { addr });
        }
        cell.told_len.store(len as u32, Relaxed);
        Ok(Handle::new(node, cell, len, found.life, found.name))
    }

    /// The lock of this name, made by whoever asks first, with its home there.
    pub fn named(
        node: &Node,
        name: &str,
        what: Descriptor,
        fill: impl Fn(&[AtomicU64]),
    ) -> Result<Self, RegionError> {
        Handle::at(node, name, Absent::Report, &what, fill)
    }

    /// The same; if it has died with its home, or has been freed, whoever asks first makes it anew.
    pub fn renewed(
        node: &Node,
        name: &str,
        what: Descriptor,
        fill: impl Fn(&[AtomicU64]),
    ) -> Result<Self, RegionError> {
        let mut last = Err(RegionError::NotFound { name: name.into() });
        for _ in 0..LOOKS {
            last = Handle::at(node, name, Absent::Renew, &what, &fill);
            match &last {
                Err(RegionError::Lock(LockError::Freed { addr })) => {
                    Handle::forget_name(node, *addr)?
                }
                Ok(handle) if handle.is_gone()? => {}
                _ => return last,
            }
        }
        last
    }

    /// The lock of a name has been freed, by a node that has died before it took the name away,
    /// perhaps.
    fn forget_name(node: &Node, addr: u64) -> Result<(), LockError> {
        let found = Descriptor::read(node, addr)?;
        let cell = locks(node).open(Tag(addr), MAX_LOCKED as usize, Origin::Made)?;
        Handle::new(node, cell, found.what.len, found.life, found.name).take_name_away()?;
        Ok(())
    }

    fn at(
        node: &Node,
        name: &str,
        absent: Absent,
        what: &Descriptor,
        fill: impl Fn(&[AtomicU64]),
    ) -> Result<Self, RegionError> {
        check(node, what)?;
        let hash = Name::of(name);
        for _ in 0..LOOKS {
            let (addr, mine) =
                region::lock(node, name, (freeing::room(), what.type_hash()), absent)?;
            if mine {
                let made = Handle::make(node, addr, what, hash, &fill);
                if made.is_err() {
                    region::vacate(node, addr, &|other| other == name)?;
                    places::give_place_back(node, freeing::room(), addr)?;
                }
                return Ok(made?);
            }
            let found = Descriptor::await_at(node, addr)?;
            if found.name == hash {
                return Ok(Handle::known(node, addr, &found, what)?);
            }
            // It has been freed since the name was looked up, and the place is another lock's.
        }
        Err(RegionError::NotFound { name: name.into() })
    }
}

fn check(node: &Node, what: &Descriptor) -> Result<(), LockError> {
    node.open()?;
    if what.len > MOST {
        let why = LockShape::TooLong { most: MOST };
        return Err(LockError::BadShape { why });
    }
    Ok(())
}
