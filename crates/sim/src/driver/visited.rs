//! The states that have been visited: their fingerprints in the order of discovery,
//! and an index to find them by.

/// An empty place of the index.
const EMPTY: u32 = u32::MAX;

/// A set of fingerprints that numbers its members.
pub struct Visited {
    prints: Vec<u128>,
    index: Vec<u32>,
}

impl Visited {
    /// An empty set.
    pub fn new() -> Self {
        Visited {
            prints: Vec::new(),
            index: vec![EMPTY; 1024],
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.prints.len()
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.prints.capacity() * size_of::<u128>() + self.index.len() * size_of::<u32>()
    }

    /// The number of a fingerprint, and whether it is new.
    pub fn insert(&mut self, print: u128) -> (u32, bool) {
        if self.prints.len() * 3 >= self.index.len() * 2 {
            self.grow();
        }
        let at = self.place(print);
        if self.index[at] != EMPTY {
            return (self.index[at], false);
        }
        let number = self.prints.len() as u32;
        self.index[at] = number;
        self.prints.push(print);
        (number, true)
    }

    /// Where a fingerprint is in the index, or belongs.
    fn place(&self, print: u128) -> usize {
        let mask = self.index.len() - 1;
        let mut at = print as usize & mask;
        while self.index[at] != EMPTY && self.prints[self.index[at] as usize] != print {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        self.index = vec![EMPTY; self.index.len() * 2];
        for number in 0..self.prints.len() {
            let at = self.place(self.prints[number]);
            self.index[at] = number as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fingerprint_has_one_number() {
        let print = |n: u128| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let mut visited = Visited::new();
        for n in 0..5000 {
            assert_eq!(visited.insert(print(n)), (n as u32, true));
        }
        for n in 0..5000 {
            assert_eq!(visited.insert(print(n)), (n as u32, false));
        }
        assert_eq!(visited.len(), 5000);
    }
}
