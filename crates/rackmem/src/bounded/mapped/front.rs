//! What an arena's file holds, line by line, and its first line.
//!
//! ```text
//! front      one line: magic, version | domains | slots, rack, tick, bytes, ring, bound, CRC
//! board      rows and rings of domains (rackmem_proto::bi)
//! slots      a line each: a pointer that a program finds by its number
//! slabs      a domain's lines of words: what its slabs hold, 0 if they were never used
//! objects    slabs of 64 KiB, a domain's beside each other
//! ```
//!
//! No line is written by two domains, but slots and objects that are published: those are written
//! under a lock of the rack.

use super::lines::{Lines, WORDS};
use crate::error::ArenaError;
use rackmem_proto::abd::journal::crc32c;
use rackmem_proto::bi::{BoardLayout, Bound, LINE, MAX_DOMAINS, RING, SLAB_LINES};

/// What the first word of an arena is: `rackmemA`.
const MAGIC: u64 = u64::from_le_bytes(*b"rackmemA");
/// Of the layout.
const VERSION: u64 = 1;
/// Slots of an arena.
pub(super) const SLOTS: u64 = 64;
/// Bytes of an arena, at most: a ring's entries have 48 bits for a line.
const MOST: u64 = 1 << 44;

/// Where things are. All of it follows from what the first line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Front {
    pub rack: u64,
    /// Nanoseconds of a tick.
    pub tick: u64,
    pub bytes: u64,
    pub board: BoardLayout,
    pub bound: Bound,
    /// Slabs of a domain.
    pub slabs: u64,
}

impl Front {
    /// Of an arena of so many bytes, without slabs if it has no room for them.
    pub fn new((rack, bytes): (u64, u64), tick: u64, board: BoardLayout, bound: Bound) -> Self {
        let mut front = Front {
            rack,
            tick,
            bytes,
            board,
            bound,
            slabs: 0,
        };
        front.slabs = front.most_slabs();
        front
    }

    fn words(&self) -> [u64; WORDS] {
        let BoardLayout { domains, room } = self.board;
        let shape = VERSION << 32 | u64::from(domains) << 16 | SLOTS;
        let bound = self.bound.lag << 32 | self.bound.section;
        let [rack, tick, bytes] = [self.rack, self.tick, self.bytes];
        let mut words = [MAGIC, shape, rack, tick, bytes, room, bound, 0];
        words[WORDS - 1] = crc(&words);
        words
    }

    /// Writes it. The magic is last.
    pub fn write(&self, lines: &Lines) {
        for (at, word) in self.words().into_iter().enumerate().rev() {
            lines.store_through(at, word);
        }
    }

    /// Whether nothing was ever written here.
    pub fn is_blank(lines: &Lines) -> bool {
        (0..WORDS).all(|word| lines.load_past(word) == 0)
    }

    /// Its words, as they are there.
    fn load(lines: &Lines) -> Result<[u64; WORDS], ArenaError> {
        let mut is = [0; WORDS];
        for (at, word) in is.iter_mut().enumerate() {
            *word = lines.load_past(at);
        }
        let no = |why| Err(ArenaError::NoArena { why });
        if is[0] != MAGIC {
            return no("its first line is not an arena's");
        }
        if is[WORDS - 1] != crc(&is) {
            return no("its first line is damaged");
        }
        if is[1] >> 32 != VERSION {
            return no("it was made by another version");
        }
        Ok(is)
    }

    /// What is there.
    pub fn read(lines: &Lines) -> Result<Front, ArenaError> {
        let [_, shape, rack, tick, bytes, room, bound, _] = Self::load(lines)?;
        let board = BoardLayout {
            domains: (shape >> 16) as u8,
            room,
        };
        let (lag, section) = (bound >> 32, bound & u64::from(u32::MAX));
        let sound = (1..=MAX_DOMAINS).contains(&usize::from(board.domains))
            && (1..=RING).contains(&room)
            && bytes <= MOST
            && lag <= u64::from(u16::MAX);
        match sound {
            true => Ok(Front::new(
                (rack, bytes),
                tick,
                board,
                Bound { lag, section },
            )),
            false => Err(ArenaError::NoArena {
                why: "its first line says what cannot be",
            }),
        }
    }

    /// Compares what is there with this.
    pub fn check(&self, lines: &Lines) -> Result<(), ArenaError> {
        let (is, wanted) = (Self::load(lines)?, self.words());
        if is[2] != self.rack {
            return Err(ArenaError::OtherRack { rack: is[2] });
        }
        let names = [
            (1, "domains and slots"),
            (3, "nanoseconds of a tick"),
            (4, "bytes"),
            (5, "entries of a ring"),
            (6, "lag and longest section"),
        ];
        let other = names.into_iter().find(|(at, _)| is[*at] != wanted[*at]);
        match other {
            None => Ok(()),
            Some((at, what)) => Err(ArenaError::OtherShape {
                what,
                is: is[at],
                wanted: wanted[at],
            }),
        }
    }

    /// The line of a slot.
    pub fn slot(&self, nth: u64) -> u64 {
        self.board.words().div_ceil(WORDS as u64) + nth
    }

    /// Whether a line is a slot's.
    pub fn is_slot(&self, line: u64) -> bool {
        (self.slot(0)..self.slot(SLOTS)).contains(&line)
    }

    /// Lines of a domain's words about its slabs.
    fn lines_about(slabs: u64) -> u64 {
        slabs.div_ceil(WORDS as u64)
    }

    /// The word about a domain's slab.
    pub fn about(&self, domain: u8, nth: u64) -> u64 {
        let each = Self::lines_about(self.slabs) * WORDS as u64;
        self.slot(SLOTS) * WORDS as u64 + u64::from(domain) * each + nth
    }

    fn objects(&self, slabs: u64) -> u64 {
        let about = Self::lines_about(slabs) * u64::from(self.board.domains);
        (self.slot(SLOTS) + about).next_multiple_of(SLAB_LINES)
    }

    fn most_slabs(&self) -> u64 {
        let lines = self.bytes / LINE;
        let room = lines.saturating_sub(self.objects(0)) / SLAB_LINES;
        let most = room / u64::from(self.board.domains.max(1));
        // Words about them take some, which is a slab or two.
        let fit = |slabs: &u64| self.first(self.board.domains, *slabs) <= lines;
        (most.saturating_sub(2)..=most).rev().find(fit).unwrap_or(0)
    }

    fn first(&self, domain: u8, slabs: u64) -> u64 {
        self.objects(slabs) + u64::from(domain) * slabs * SLAB_LINES
    }

    /// The first line of a domain's slab.
    pub fn slab(&self, domain: u8, nth: u64) -> u64 {
        self.first(domain, self.slabs) + nth * SLAB_LINES
    }

    /// Whose slab a line is in, and which of them.
    pub fn slab_of(&self, line: u64) -> Option<(u8, u64)> {
        let slabs = self.slabs;
        let nth = line.checked_sub(self.slab(0, 0))? / SLAB_LINES;
        let domain = u8::try_from(nth.checked_div(slabs)?).ok()?;
        (domain < self.board.domains).then_some((domain, nth % slabs))
    }

    /// Whether it can be.
    pub fn is_sound(&self) -> Result<(), ArenaError> {
        let bad = |why| Err(ArenaError::BadSpec { why });
        if self.bytes > MOST {
            return bad("it has more than 16 TiB");
        }
        if self.slabs == 0 || self.board.room == 0 {
            return bad("it has no room for a slab of each node");
        }
        Ok(())
    }
}

fn crc(words: &[u64; WORDS]) -> u64 {
    let bytes: Vec<u8> = words[..WORDS - 1]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    u64::from(crc32c(0, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slab_is_its_domains_and_within_the_bytes() {
        for domains in [1, 2, 3, 7, 32] {
            for bytes in [1 << 20, 5_000_000, 8 << 20, 64 << 20, 1 << 30] {
                let room = 64;
                let board = BoardLayout { domains, room };
                let front = Front::new((7, bytes), 2_000_000, board, Bound::DEFAULT);
                if front.is_sound().is_err() {
                    assert!(
                        bytes < u64::from(domains) * (128 << 10) + (1 << 20),
                        "{bytes}"
                    );
                    continue;
                }
                let last = front.slabs - 1;
                assert!(front.slab(domains - 1, last) + SLAB_LINES <= bytes / LINE);
                assert!(front.about(domains - 1, last) < front.slab(0, 0) * WORDS as u64);
                assert!(front.about(0, last) < front.about(1, 0));
                for domain in 0..domains {
                    for nth in [0, last] {
                        let line = front.slab(domain, nth);
                        assert_eq!(front.slab_of(line), Some((domain, nth)));
                        assert_eq!(front.slab_of(line + SLAB_LINES - 1), Some((domain, nth)));
                    }
                }
                assert_eq!(front.slab_of(front.slot(0)), None);
                assert_eq!(front.slab_of(front.slab(domains, 0)), None);
                assert!(front.slab_of(u64::MAX >> 16).is_none());
                assert!(front.slot(0) * WORDS as u64 >= front.board.words());
            }
        }
    }
}
