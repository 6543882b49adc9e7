//! A program in the kernel reads words while their owner stores: every order of the two, and what
//! the owner's agent says meanwhile.

use rackmem_proto::wire::{Flags, Header, Own};
use rackmem_proto::words::Words;
use std::cell::{Cell, RefCell};

/// What an answer says.
pub type Said = (Header, Own, Vec<u8>);

/// Words whose stores are written down.
pub struct Memory {
    pub words: Vec<u64>,
    pub stores: Vec<(usize, u64)>,
}

impl Memory {
    /// So many zeros.
    pub fn new(words: usize) -> Memory {
        Memory {
            words: vec![0; words],
            stores: Vec::new(),
        }
    }
}

impl Words for Memory {
    fn load(&self, word: usize) -> u64 {
        self.words.get(word).copied().unwrap_or(0)
    }

    fn store(&mut self, word: usize, value: u64) {
        // One that changes nothing is none.
        if self.words[word] != value {
            self.words[word] = value;
            self.stores.push((word, value));
        }
    }
}

/// Looks at words as they are after so many stores, and after more of them from one load on.
pub struct Racing<'a> {
    words: RefCell<Vec<u64>>,
    stores: &'a [(usize, u64)],
    /// Stores that were made so far, and loads.
    made: Cell<usize>,
    loads: Cell<usize>,
    /// Before this load, stores up to that one are made.
    jump: (usize, usize),
}

impl Racing<'_> {
    fn make(&self, upto: usize) {
        let mut words = self.words.borrow_mut();
        for (word, value) in &self.stores[self.made.get()..upto] {
            words[*word] = *value;
        }
        self.made.set(upto);
    }
}

impl Words for Racing<'_> {
    fn load(&self, word: usize) -> u64 {
        if self.loads.get() == self.jump.0 {
            self.make(self.jump.1);
        }
        self.loads.set(self.loads.get() + 1);
        self.words.borrow().get(word).copied().unwrap_or(0)
    }

    fn store(&mut self, _: usize, _: u64) {}
}

/// A read between any of these stores, which from any load on sees what is there after any more of
/// them: how often it answered, and how often it passed. `says`: what the agent says, from so many
/// stores on; each but the first is what an act has made of it.
pub fn race(
    stores: (&[u64], &[(usize, u64)]),
    says: &[(usize, Option<Said>)],
    read: impl Fn(&Racing<'_>) -> Option<Said>,
) -> (u32, u32) {
    race_as(stores, says, by_agent, read)
}

/// The same of answers that the agent would have sent so.
pub fn race_as(
    (before, stores): (&[u64], &[(usize, u64)]),
    says: &[(usize, Option<Said>)],
    by_agent: impl Fn(Said) -> Said,
    read: impl Fn(&Racing<'_>) -> Option<Said>,
) -> (u32, u32) {
    let made: Vec<usize> = says.iter().map(|says| says.0).collect();
    let (mut answered, mut passed) = (0, 0);
    for first in 0..=stores.len() {
        for last in first..=stores.len() {
            for load in 0.. {
                let racing = Racing {
                    words: RefCell::new(before.to_vec()),
                    stores,
                    made: Cell::new(0),
                    loads: Cell::new(0),
                    jump: (load, last),
                };
                racing.make(first);
                match read(&racing) {
                    Some(said) => {
                        answered += 1;
                        let said = Some(by_agent(said));
                        // What an act makes of it is said from its first store on, and nothing
                        // else from its last one on.
                        let last = racing.made.get();
                        let could = says.iter().enumerate().any(|(nth, (_, says))| {
                            let has_begun = nth == 0 || last > made[nth - 1];
                            let is_over = made.get(nth + 1).is_some_and(|ends| *ends <= first);
                            *says == said && has_begun && !is_over
                        });
                        assert!(could, "{first} {last} {load}: {said:?}");
                    }
                    None => passed += 1,
                }
                if racing.loads.get() <= load {
                    break;
                }
            }
        }
    }
    (answered, passed)
}

/// As the agent would have sent it.
pub fn by_agent((mut header, own, body): Said) -> Said {
    assert!(header.flags.has(Flags::BY_KERNEL) && header.flags.has(Flags::BY_GRANULES));
    header.flags = header.flags.but(Flags::BY_KERNEL);
    (header, own, body)
}

pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
