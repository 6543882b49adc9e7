//! A node's counters: how many keys it added, less those it removed, per database that clients see.
//!
//! ```text
//! per db    0 flushed: u32     the flush the counts began after, modulo 2^32
//!           4 nearer: u32      how often a bucket's first expiry has come nearer, modulo 2^32
//!           8 keys: u32        modulo 2^32, as are sums over the nodes: one node may add what
//!                              another removes
//!          12 expires: u32     of those, keys with an expiry
//! ```

use rackmem::window::{Window, WindowMut};

use crate::DATABASES;

const SLOT: usize = 16;
/// Bytes of a node's counters.
pub(crate) const BYTES: usize = SLOT * DATABASES;

const _: () = assert!(BYTES <= 256);

/// A change to, or a sum of, one database's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub keys: u32,
    pub expires: u32,
    /// Not of keys: a bucket's first expiry has come, or is nearer than it was. Nothing takes from
    /// it, so who sees the same sum again has missed none.
    pub nearer: u32,
}

impl Counts {
    /// A bucket's first expiry has come nearer, or has not.
    pub fn nearer(is: bool) -> Self {
        Self {
            nearer: u32::from(is),
            ..Self::default()
        }
    }

    /// One record more or fewer.
    pub fn record(added: bool, expires: bool) -> Self {
        let one = if added { 1u32 } else { 1u32.wrapping_neg() };
        Self {
            keys: one,
            expires: if expires { one } else { 0 },
            nearer: 0,
        }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            keys: self.keys.wrapping_add(other.keys),
            expires: self.expires.wrapping_add(other.expires),
            nearer: self.nearer.wrapping_add(other.nearer),
        }
    }

    /// What takes this back.
    pub fn negative(self) -> Self {
        Self {
            keys: self.keys.wrapping_neg(),
            expires: self.expires.wrapping_neg(),
            // Who swept in between may look once more.
            nearer: 0,
        }
    }

    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// Nobody asks how many keys the servers keep for themselves.
pub(crate) fn is_uncounted(db: u8) -> bool {
    usize::from(db) >= DATABASES
}

/// The counts of `db`, none when they began before its last flush.
pub(crate) fn load(view: &Window<'_>, db: u8, flushed: u64) -> Counts {
    let at = usize::from(db) * SLOT;
    if is_uncounted(db) || view.u32(at) != flushed as u32 {
        return Counts::default();
    }
    Counts {
        keys: view.u32(at + 8),
        expires: view.u32(at + 12),
        nearer: view.u32(at + 4),
    }
}

/// Adds `change`, which was made when the last flush known was `flushed`.
pub(crate) fn add(view: &mut WindowMut<'_>, db: u8, flushed: u64, change: Counts) {
    let at = usize::from(db) * SLOT;
    let ahead = view.u32(at).wrapping_sub(flushed as u32) as i32;
    if ahead > 0 {
        return; // what was changed has been flushed since
    }
    let counts = load(view, db, flushed).plus(change);
    view.set_u32(at, flushed as u32);
    view.set_u32(at + 4, counts.nearer);
    view.set_u32(at + 8, counts.keys);
    view.set_u32(at + 12, counts.expires);
}
