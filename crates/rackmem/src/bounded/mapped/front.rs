//! What an arena's file holds, line by line, and its first line.
//!
//! ```text
//! front      one line: magic, version | domains | slots, rack, tick, bytes, number of the arena,
//!            ring | bound, CRC
//! board      rows and rings of domains (rackmem_proto::bi)
//! slots      a line each: a pointer that a program finds by its number
//! a domain   which life of each other one it has taken over
//!            a word a slab of all domains: of what size objects it has begun to use it for, or 0
//!            two lines a slab: a bit for the first line of each object that it has to give out
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
const VERSION: u64 = 2;
/// Slots of an arena.
pub(super) const SLOTS: u64 = 64;
/// Words of a slab's bits.
pub(super) const BITS: u64 = SLAB_LINES / 64;
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
    /// Which of all arenas it is. Who opens it learns that there.
    pub number: u64,
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
            number: 0,
        };
        front.slabs = front.most_slabs();
        front
    }

    fn words(&self) -> [u64; WORDS] {
        let BoardLayout { domains, room } = self.board;
        let shape = VERSION << 32 | u64::from(domains) << 16 | SLOTS;
        let bound = room << 48 | self.bound.lag << 32 | self.bound.section;
        let [rack, tick, bytes] = [self.rack, self.tick, self.bytes];
        let mut words = [MAGIC, shape, rack, tick, bytes, self.number, bound, 0];
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
        let [_, shape, rack, tick, bytes, number, bound, _] = Self::load(lines)?;
        let board = BoardLayout {
            domains: (shape >> 16) as u8,
            room: bound >> 48,
        };
        let (lag, section) = (bound >> 32 & 0xffff, bound & u64::from(u32::MAX));
        let sound = (1..=MAX_DOMAINS).contains(&usize::from(board.domains))
            && (1..=RING).contains(&board.room)
            && bytes <= MOST;
        match sound {
            true => Ok(Front {
                number,
                ..Front::new((rack, bytes), tick, board, Bound { lag, section })
            }),
            false => Err(ArenaError::NoArena {
                why: "its first line says what cannot be",
            }),
        }
    }

    /// Compares what is there with this, but its number, which is there.
    pub fn check(&self, lines: &Lines) -> Result<u64, ArenaError> {
        let (is, wanted) = (Self::load(lines)?, self.words());
        if is[2] != self.rack {
            return Err(ArenaError::OtherRack { rack: is[2] });
        }
        let parts = |words: &[u64; WORDS]| {
            [
                ("domains and slots", words[1]),
                ("nanoseconds of a tick", words[3]),
                ("bytes", words[4]),
                ("entries of a ring", words[6] >> 48),
                ("lag and longest section", words[6] & ((1 << 48) - 1)),
            ]
        };
        let mut both = parts(&is).into_iter().zip(parts(&wanted));
        let other = both.find(|(is, wanted)| is != wanted);
        match other {
            None => Ok(is[5]),
            Some(((what, is), (_, wanted))) => Err(ArenaError::OtherShape { what, is, wanted }),
        }
    }

    /// The line of a slot.
    pub fn slot(&self, nth: u64) -> u64 {
        self.board.words().div_ceil(WORDS as u64) + nth
    }

    /// Lines of a domain about lives that it has taken over.
    const TAKEN: u64 = MAX_DOMAINS as u64 / WORDS as u64;

    /// Slabs of all domains.
    pub fn all_slabs(&self) -> u64 {
        self.slabs * u64::from(self.board.domains)
    }

    /// Lines of a domain about all slabs, and its first one.
    fn about(&self, domain: u8, all: u64) -> (u64, u64) {
        let each = Self::TAKEN + all.div_ceil(WORDS as u64) + all * (BITS / WORDS as u64);
        (each, self.slot(SLOTS) + u64::from(domain) * each)
    }

    /// The word of a domain about lives of another one.
    pub fn taken(&self, by: u8, domain: u8) -> u64 {
        self.about(by, self.all_slabs()).1 * WORDS as u64 + u64::from(domain)
    }

    /// The word of a domain about what a slab is used for: the nth of all.
    pub fn class(&self, by: u8, nth: u64) -> u64 {
        let first = self.about(by, self.all_slabs()).1 + Self::TAKEN;
        first * WORDS as u64 + nth
    }

    /// The first word of a domain's bits of a slab.
    pub fn bits(&self, by: u8, nth: u64) -> u64 {
        let classes = self.all_slabs().next_multiple_of(WORDS as u64);
        self.class(by, 0) + classes + nth * BITS
    }

    fn objects(&self, slabs: u64) -> u64 {
        let (_, end) = self.about(self.board.domains, slabs * u64::from(self.board.domains));
        end.next_multiple_of(SLAB_LINES)
    }

    fn most_slabs(&self) -> u64 {
        let lines = self.bytes / LINE;
        let domains = u64::from(self.board.domains.max(1));
        let room = lines.saturating_sub(self.objects(0));
        // A slab's lines, and what each domain has about it.
        let each = SLAB_LINES * WORDS as u64 + domains * (BITS + 1);
        let most = room * WORDS as u64 / each / domains + 1;
        let fit = |slabs: &u64| self.first(self.board.domains, *slabs) <= lines;
        (most.saturating_sub(3)..=most).rev().find(fit).unwrap_or(0)
    }

    fn first(&self, domain: u8, slabs: u64) -> u64 {
        self.objects(slabs) + u64::from(domain) * slabs * SLAB_LINES
    }

    /// The first line of a domain's slab.
    pub fn slab(&self, domain: u8, nth: u64) -> u64 {
        self.first(domain, self.slabs) + nth * SLAB_LINES
    }

    /// Which of all slabs a line is in.
    pub fn slab_of(&self, line: u64) -> Option<u64> {
        let nth = line.checked_sub(self.slab(0, 0))? / SLAB_LINES;
        (nth < self.all_slabs()).then_some(nth)
    }

    /// Domains in the order in which they are believed about a slab: whose share it is comes last.
    /// It may be a process that is only slow, and another domain has taken over from it.
    pub fn users(&self, nth: u64) -> impl Iterator<Item = u8> {
        let own = nth.checked_div(self.slabs).map_or(0, |own| own as u8);
        let domains = self.board.domains;
        (0..domains).filter(move |by| *by != own).chain([own])
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
                // No room for another one is left.
                assert!(front.first(domains, front.slabs + 1) > bytes / LINE);
                let all = front.all_slabs();
                assert!(front.bits(domains - 1, all - 1) + BITS <= front.slab(0, 0) * WORDS as u64);
                let line = |word: u64| word / WORDS as u64;
                let slots = front.slot(0)..front.slot(SLOTS);
                for by in 0..domains {
                    assert!(slots.contains(&(line(front.taken(by, 0)) - 1)) || by > 0);
                    assert!(line(front.taken(by, 31)) < line(front.class(by, 0)));
                    assert!(line(front.class(by, all - 1)) < line(front.bits(by, 0)));
                    let next = front.taken(by + 1, 0);
                    assert!(line(front.bits(by, all - 1) + BITS - 1) < line(next));
                }
                for domain in 0..domains {
                    for nth in [0, last] {
                        let line = front.slab(domain, nth);
                        let of_all = u64::from(domain) * front.slabs + nth;
                        assert_eq!(front.slab_of(line), Some(of_all));
                        assert_eq!(front.slab_of(line + SLAB_LINES - 1), Some(of_all));
                        assert_eq!(front.users(of_all).last(), Some(domain));
                        assert_eq!(front.users(of_all).count(), usize::from(domains));
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
