//! The one source of chance in a world: splitmix64, so that a seed means the same run on every
//! machine.

/// How often a pause doubles at most.
const DOUBLINGS: u32 = 6;

/// A stream of draws that its seed decides.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`; zero when there is none.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.draw() % limit }
    }

    /// A pause before another attempt: twice the last one, and half of it chance, so that two who
    /// meet do not go on meeting.
    pub fn pause(&mut self, first: u64, attempt: u32) -> u64 {
        let half = (first << attempt.min(DOUBLINGS)) / 2;
        half + self.below(half)
    }

    /// Yes, so many times out of a thousand.
    pub fn per_mille(&mut self, rate: u32) -> bool {
        rate != 0 && self.below(1000) < u64::from(rate)
    }

    /// An independent stream.
    pub fn fork(&mut self) -> Self {
        Random(self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything() {
        let draws = |seed| {
            let mut random = Random::new(seed);
            [random.draw(), random.below(10), random.fork().draw()]
        };
        assert_eq!(draws(7), draws(7));
        assert_ne!(draws(7), draws(8));
    }

    #[test]
    fn rates_are_rates() {
        let mut random = Random::new(1);
        let hits = (0..100_000).filter(|_| random.per_mille(50)).count();
        assert!((4_000..6_000).contains(&hits), "{hits}");
        assert!(!(0..1000).any(|_| random.per_mille(0)));
        assert!((0..1000).all(|_| random.per_mille(1000)));
    }
}
