//! What a lock protects: a list of `(address, size)` pairs, kept at the blades (§3.1.2, §4.3).
//!
//! The directory knows nothing of it. With a grant the regions travel as if they lay behind one
//! another, in segments of whole [`SEGMENT`]s.

use crate::wire::{Copyset, Flags, Header};
use alloc::vec::Vec;

/// Regions of one lock at most.
pub const MAX_REGIONS: usize = 64;
/// Bytes that one lock protects at most.
pub const MAX_LOCKED: u32 = 64 * 1024;
/// What travels is cut at multiples of this many bytes.
pub const SEGMENT: u32 = 1024;

/// A run of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// Where it begins.
    pub addr: u64,
    /// Its length in bytes.
    pub len: u32,
}

/// Why a list is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionsError {
    /// More than [`MAX_REGIONS`].
    Many,
    /// More than [`MAX_LOCKED`] bytes in all.
    Long,
    /// A region of no bytes, or one that goes past the end of the address space.
    Bad,
    /// Two regions share a byte.
    Overlap,
}

/// The regions of a lock. None at all is a lock without data.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Regions {
    list: Vec<Region>,
    len: u32,
}

impl Regions {
    /// A list, in the order in which it was given.
    pub fn new(list: &[Region]) -> Result<Self, RegionsError> {
        if list.len() > MAX_REGIONS {
            return Err(RegionsError::Many);
        }
        let mut len = 0u32;
        for region in list {
            if region.len == 0 || region.addr.checked_add(region.len.into()).is_none() {
                return Err(RegionsError::Bad);
            }
            len = len.saturating_add(region.len);
        }
        if len > MAX_LOCKED {
            return Err(RegionsError::Long);
        }
        let mut sorted = list.to_vec();
        sorted.sort_by_key(|region| region.addr);
        let overlap = |w: &[Region]| w[0].addr + u64::from(w[0].len) > w[1].addr;
        if sorted.windows(2).any(overlap) {
            return Err(RegionsError::Overlap);
        }
        Ok(Regions {
            list: list.to_vec(),
            len,
        })
    }

    /// Bytes in all.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the lock protects nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The regions.
    pub fn iter(&self) -> impl Iterator<Item = &Region> {
        self.list.iter()
    }

    /// Where the bytes `offset..offset + len` of what travels lie: pieces in order,
    /// cut to what there is.
    pub fn pieces(&self, offset: u32, len: u32) -> impl Iterator<Item = Region> {
        let end = offset.saturating_add(len);
        let mut at = 0;
        self.list.iter().filter_map(move |region| {
            let (from, to) = (at, at + region.len);
            at = to;
            let (first, last) = (from.max(offset), to.min(end));
            (first < last).then(|| Region {
                addr: region.addr + u64::from(first - from),
                len: last - first,
            })
        })
    }
}

/// How many bytes of what a lock protects travel, of `len`: the rest is zeros. `None`:
/// it names more than there are.
///
/// A `Give` without bytes of a lock that protects some stands for zeros alone;
/// one that names none has them all.
pub fn used(header: &Header, len: u32) -> Option<u32> {
    match (header.flags.has(Flags::DATA), header.copyset.0) {
        (false, _) => Some(0),
        (true, 0) => Some(len),
        (true, used) => (used <= len).then_some(used),
    }
}

/// The same `Give`, of so many bytes before the zeros.
#[must_use]
pub fn with_used(mut header: Header, used: u32) -> Header {
    header.copyset = Copyset(used);
    if used == 0 {
        header.flags = header.flags.but(Flags::DATA);
    }
    header
}

/// Which segments of a lock's data have come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Arrival {
    /// The version that they were sent for.
    pub version: u64,
    segments: u64,
    /// Bytes that were sent.
    total: u32,
    came: bool,
}

impl Arrival {
    /// Takes note of `len` bytes at `offset` of `total`, sent for `version`. `false`:
    /// not to be stored.
    pub fn add(&mut self, version: u64, offset: u32, len: u32, total: u32) -> bool {
        let fits = offset.checked_add(len).is_some_and(|end| end <= total);
        let whole = offset.is_multiple_of(SEGMENT)
            && (len.is_multiple_of(SEGMENT) || offset.wrapping_add(len) == total);
        if !fits || !whole || (len == 0) != (total == 0) || version < self.version {
            return false;
        }
        if version > self.version || total != self.total {
            *self = Arrival {
                version,
                total,
                ..Arrival::default()
            };
        }
        self.came = true;
        for segment in offset / SEGMENT..(offset + len).div_ceil(SEGMENT) {
            self.segments |= 1 << (segment % u64::BITS);
        }
        true
    }

    /// How many parts have come.
    pub fn count(&self) -> u32 {
        u32::from(self.came) + self.segments.count_ones()
    }

    /// Whether everything that was sent for that version is there.
    pub fn complete(&self) -> bool {
        let count = self.total.div_ceil(SEGMENT);
        let all = if count >= u64::BITS {
            u64::MAX
        } else {
            (1 << count) - 1
        };
        self.came && self.segments & all == all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Kind, RequesterId, Seq, Tag};

    const fn region(addr: u64, len: u32) -> Region {
        Region { addr, len }
    }

    #[test]
    fn what_travels_is_cut_into_pieces() {
        let regions = Regions::new(&[region(0xf0, 32), region(0x0a, 8)]).unwrap();
        assert_eq!(regions.len(), 40);
        let pieces: Vec<_> = regions.pieces(30, 6).collect();
        assert_eq!(pieces, [region(0x10e, 2), region(0x0a, 4)]);
        assert_eq!(regions.pieces(40, 5).count(), 0);
        assert_eq!(regions.pieces(0, u32::MAX).count(), 2);
    }

    #[test]
    fn a_list_that_is_none_says_why() {
        let new = |list: &[Region]| Regions::new(list).unwrap_err();
        assert_eq!(new(&[region(0, 0)]), RegionsError::Bad);
        assert_eq!(new(&[region(u64::MAX, 2)]), RegionsError::Bad);
        assert_eq!(new(&[region(0, MAX_LOCKED + 1)]), RegionsError::Long);
        assert_eq!(new(&[region(8, 8), region(0, 9)]), RegionsError::Overlap);
        assert_eq!(new(&[region(0, 1); MAX_REGIONS + 1]), RegionsError::Many);
        assert!(Regions::new(&[region(0, MAX_LOCKED)]).is_ok());
    }

    #[test]
    fn data_is_complete_when_all_of_one_version_has_come() {
        let mut arrival = Arrival::default();
        assert!(arrival.add(3, 1024, 500, 1524));
        assert!(!arrival.complete());
        assert!(arrival.add(4, 0, 1024, 1524), "a newer version starts over");
        assert!(!arrival.complete());
        assert!(!arrival.add(3, 1024, 500, 1524), "and the older is late");
        assert!(arrival.add(4, 1024, 500, 1524));
        assert!(arrival.complete());
        for (offset, len) in [(1, 1024), (0, 1000), (1024, 501), (u32::MAX, 1), (0, 0)] {
            assert!(!arrival.add(4, offset, len, 1524));
        }
        let mut nothing = Arrival::default();
        assert!(!nothing.complete());
        assert!(nothing.add(1, 0, 0, 0) && nothing.complete());
    }

    #[test]
    fn only_what_is_used_travels() {
        let (requester, seq) = (RequesterId { node: 1, slot: 0 }, Seq(0));
        let mut give = Header::request(Kind::Give, 1, Tag(0x10), requester, seq);
        assert_eq!(used(&give, 0), Some(0), "a lock without data");
        give.flags = Flags::DATA;
        assert_eq!(used(&give, 1524), Some(1524), "who names none sends all");
        assert_eq!(used(&with_used(give, 24), 1524), Some(24));
        assert_eq!(used(&with_used(give, 1525), 1524), None);
        let empty = with_used(give, 0);
        assert_eq!(used(&empty, 1524), Some(0));
        assert!(!empty.flags.has(Flags::DATA));
        // What is sent again after it has grown or shrunk replaces what has come,
        // and is not mixed with it.
        let mut arrival = Arrival::default();
        assert!(arrival.add(3, 0, 1024, 1524));
        assert!(arrival.add(3, 0, 24, 24) && arrival.complete());
        assert!(arrival.add(3, 1024, 500, 1524) && !arrival.complete());
    }
}
