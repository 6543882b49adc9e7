//! Random numbers as the specification wants them (2.1.6, 4.3.2).

use crate::last_name::last_name;
use crate::scale::Scale;
use fastrand::Rng;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// By how much the constants of loading and of running differ for last names (2.1.6.1).
const APART: [u8; 53] = {
    let (mut all, mut nth, mut apart) = ([0; 53], 0, 65);
    while apart <= 119 && nth < all.len() {
        if apart != 96 && apart != 112 {
            all[nth] = apart;
            nth += 1;
        }
        apart += 1;
    }
    all
};

/// The constants of NURand: those of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constants {
    name: u32,
    customer: u32,
    item: u32,
}

impl Constants {
    /// Those with which a database is loaded.
    pub fn to_load(seed: u64) -> Constants {
        let mut rng = Rng::with_seed(seed ^ 0x10ad);
        Constants {
            name: rng.u32(0..=255),
            customer: rng.u32(0..=1023),
            item: rng.u32(0..=8191),
        }
    }

    /// Those with which it is used then: the difference of the last names' is one that the
    /// specification allows.
    pub fn to_run(seed: u64) -> Constants {
        let load = Constants::to_load(seed);
        let mut rng = Rng::with_seed(seed ^ 0x0213);
        let apart = u32::from(APART[rng.usize(0..APART.len())]);
        let name = match load.name >= apart {
            true => load.name - apart,
            false => load.name + apart,
        };
        Constants {
            name,
            customer: rng.u32(0..=1023),
            item: rng.u32(0..=8191),
        }
    }
}

/// A stream of random numbers.
#[derive(Debug)]
pub struct Random {
    rng: Rng,
    constants: Constants,
}

impl Random {
    /// One stream of many.
    pub fn new(seed: u64, stream: u64, constants: Constants) -> Random {
        let seed = seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let rng = Rng::with_seed(seed);
        Random { rng, constants }
    }

    /// A number of a range, both ends included.
    pub fn within(&mut self, low: u32, high: u32) -> u32 {
        self.rng.u32(low..=high)
    }

    /// True so many times out of a hundred.
    pub fn percent(&mut self, share: u32) -> bool {
        self.rng.u32(0..100) < share
    }

    /// All numbers from 1 on, in a random order.
    pub fn permutation(&mut self, count: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (1..=count).collect();
        self.rng.shuffle(&mut all);
        all
    }

    /// Which customer of a district.
    pub fn customer(&mut self, scale: &Scale) -> u32 {
        let c = self.constants.customer;
        self.uneven(1023, c, 1, scale.customers)
    }

    /// Which item.
    pub fn item(&mut self, scale: &Scale) -> u32 {
        let c = self.constants.item;
        self.uneven(8191, c, 1, scale.items)
    }

    /// A customer's last name.
    pub fn last_name(&mut self, scale: &Scale) -> [u8; 16] {
        let c = self.constants.name;
        let names = scale.names();
        last_name(self.uneven(255, c, 0, names - 1))
    }

    /// NURand(A, x, y), with the constant C.
    fn uneven(&mut self, a: u32, c: u32, x: u32, y: u32) -> u32 {
        let both = self.within(0, a) | self.within(x, y);
        (both + c) % (y - x + 1) + x
    }

    /// Letters and digits, of a random length.
    pub fn letters(&mut self, low: usize, high: usize) -> Vec<u8> {
        let len = self.rng.usize(low..=high);
        let letter = |_| LETTERS[self.rng.usize(0..LETTERS.len())];
        (0..len).map(letter).collect()
    }

    /// Digits.
    pub fn digits(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| b'0' + self.rng.u8(0..10)).collect()
    }

    /// Brand information: a tenth of all have `ORIGINAL` in it.
    pub fn brand(&mut self) -> Vec<u8> {
        let mut data = self.letters(26, 50);
        if self.percent(10) {
            let at = self.rng.usize(0..=data.len() - ORIGINAL.len());
            data[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        }
        data
    }
}

/// What a tenth of all items have in their brand information.
pub const ORIGINAL: &[u8] = b"ORIGINAL";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_for_last_names_differ_as_they_may() {
        for seed in 0..500 {
            let (load, run) = (Constants::to_load(seed), Constants::to_run(seed));
            let apart = load.name.abs_diff(run.name);
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112);
            assert!(run.name <= 255, "{run:?}");
        }
    }

    #[test]
    fn uneven_numbers_are_in_range_and_uneven() {
        let scale = Scale::of(1);
        let mut random = Random::new(7, 0, Constants::to_run(7));
        let mut seen = vec![0_u32; 3001];
        for _ in 0..60_000 {
            seen[random.customer(&scale) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        let (least, most) = (seen[1..].iter().min(), seen[1..].iter().max());
        assert!(most.copied() > least.map(|it| it * 4), "{least:?} {most:?}");
    }

    #[test]
    fn a_permutation_has_each_number_once() {
        let mut random = Random::new(7, 0, Constants::to_load(7));
        let mut all = random.permutation(300);
        all.sort_unstable();
        assert!(all.into_iter().eq(1..=300));
    }
}
