//! How objects lie in memory.
//!
//! | word | |
//! |---|---|
//! | 0 | version: even, the object is whole; odd, a writer is in. It only rises, also when the object is freed and another one takes its place |
//! | 1 | [`Meta`] |
//! | 2… | bytes |
//!
//! An object begins on a line of 64 bytes and lies in one *slab* of 64 KiB. A slab has objects of
//! one size for ever, so where a header was is always a header: a reader that is late reads that of
//! the object which is there now, and not its bytes.

use core::mem::size_of;

/// Bytes of an object's header.
pub const HEADER: u32 = 16;
/// Bytes of a slab.
pub const SLAB: u64 = 64 << 10;
/// Bytes that an object has at most.
pub const MAX_BYTES: u32 = SLAB as u32 - HEADER;
/// Objects begin at multiples of this.
pub const LINE: u32 = 64;
/// Segments of an object begin at multiples of this.
pub const GRANULE: u32 = 1024;

/// Bytes of objects, headers included, by class from 1 on; a slab that has none is of class 0.
const CLASSES: [u32; 33] = [
    64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072,
    3584, 4096, 5120, 6144, 7168, 8192, 10_240, 12_288, 14_336, 16_384, 20_480, 24_576, 28_672,
    32_768, 65_536,
];

/// The class of objects of so many bytes; none where that is too long.
pub fn class_of(len: u32) -> Option<u8> {
    let bytes = len.checked_add(HEADER)?;
    let at = CLASSES.iter().position(|class| *class >= bytes)?;
    Some(at as u8 + 1)
}

/// Bytes of an object of this class, header included; none where there is no such class.
#[inline]
pub fn class_bytes(class: u8) -> Option<u32> {
    CLASSES.get(usize::from(class).wrapping_sub(1)).copied()
}

/// The second word of an object's header. It changes only while the version is odd.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Meta {
    /// How many objects have been here before: it rises when one is freed.
    pub generation: u32,
    /// The class of its slab.
    pub class: u8,
    /// Whether there is an object.
    pub live: bool,
    /// Its bytes.
    pub len: u16,
}

const _: () = assert!(MAX_BYTES <= u16::MAX as u32 && size_of::<u64>() == 8);

impl Meta {
    /// As it is in memory.
    #[inline]
    pub const fn to_word(self) -> u64 {
        (self.generation as u64) << 32
            | (self.class as u64) << 24
            | (self.live as u64) << 16
            | self.len as u64
    }

    /// From memory.
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Meta {
            generation: (word >> 32) as u32,
            class: (word >> 24) as u8,
            live: word >> 16 & 1 == 1,
            len: word as u16,
        }
    }
}

/// Which granules of an object of `len` bytes a segment brings: nothing where it does not lie on
/// granules of it.
pub fn granules(offset: u32, bytes: u32, len: u32) -> Option<u64> {
    let end = offset.checked_add(bytes)?;
    let whole = bytes.is_multiple_of(GRANULE) || end == len;
    if end > len || len > MAX_BYTES || !offset.is_multiple_of(GRANULE) || !whole {
        return None;
    }
    let (first, count) = (offset / GRANULE, bytes.div_ceil(GRANULE));
    Some(all(count) << first)
}

/// Granules of an object of `len` bytes, all of them. One without bytes has none.
pub const fn all_granules(len: u32) -> u64 {
    all(len.div_ceil(GRANULE))
}

const fn all(count: u32) -> u64 {
    match count {
        0 => 0,
        count if count >= 64 => u64::MAX,
        count => (1 << count) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_rise_in_lines_and_the_largest_is_a_slab() {
        assert!(CLASSES.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(CLASSES.iter().all(|bytes| bytes.is_multiple_of(LINE)));
        assert_eq!(CLASSES.last(), Some(&(SLAB as u32)));
        assert_eq!(class_of(MAX_BYTES + 1), None);
        assert_eq!(class_of(u32::MAX), None);
        assert_eq!((class_bytes(0), class_bytes(34)), (None, None));
        for len in 0..=MAX_BYTES {
            let class = class_of(len).unwrap();
            let bytes = class_bytes(class).unwrap();
            assert!(bytes >= len + HEADER);
            let smaller = class_bytes(class - 1).unwrap_or(0);
            assert!(smaller < len + HEADER, "{len}");
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for (generation, class, live, len) in [(0, 0, false, 0), (u32::MAX, 33, true, u16::MAX)] {
            let meta = Meta {
                generation,
                class,
                live,
                len,
            };
            assert_eq!(Meta::from_word(meta.to_word()), meta);
        }
        assert_eq!(Meta::from_word(0), Meta::default());
    }

    #[test]
    fn segments_lie_on_granules_of_their_object() {
        assert_eq!(granules(0, 100, 100), Some(1));
        assert_eq!(granules(0, 0, 0), Some(0));
        assert_eq!(granules(0, 100, 200), None);
        assert_eq!(granules(1024, 1024, 4096), Some(2));
        assert_eq!(granules(1024, 1000, 2024), Some(2));
        assert_eq!(granules(512, 512, 1024), None);
        assert_eq!(granules(4096, 1024, 4096), None);
        assert_eq!(granules(u32::MAX, 2, 4096), None);
        assert_eq!(granules(0, MAX_BYTES, MAX_BYTES), Some(u64::MAX));
        assert_eq!(granules(0, MAX_BYTES + 16, MAX_BYTES + 16), None);
        assert_eq!(all_granules(MAX_BYTES), u64::MAX);
        assert_eq!(all_granules(1025), 3);
    }
}
