//! Keys as popular as Zipf's law has it: the k-th most popular is drawn in proportion to `1 / k^θ`.
//!
//! The method is that of Gray et al., "Quickly generating billion-record synthetic databases"
//! (SIGMOD 1994), which YCSB uses too: exact for the two most popular ranks, and a closed form
//! for the others that follows the law within a few percent. Sums over all keys are taken once;
//! a draw costs one power.

/// The skew of YCSB's standard workloads.
pub const YCSB_THETA: f64 = 0.99;

/// Draws ranks, 0 the most popular. Cheap to copy, so that every thread may have its own.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    items: u64,
    alpha: f64,
    eta: f64,
    /// The sum of all weights.
    zeta: f64,
    /// The sum of the first two weights.
    zeta_two: f64,
}

impl Zipf {
    /// Over a number of items, at least 1, with a skew between 0 (none) and 1, exclusive; what is
    /// outside is moved to the nearest bound.
    pub fn new(items: u64, theta: f64) -> Self {
        let items = items.max(1);
        let theta = theta.clamp(0.0, 0.999);
        let zeta: f64 = (1..=items).map(|rank| weight(rank, theta)).sum();
        let zeta_two = weight(1, theta) + weight(2, theta);
        let tail = (2.0 / items as f64).powf(1.0 - theta);
        Zipf {
            items,
            alpha: 1.0 / (1.0 - theta),
            eta: if items > 2 {
                (1.0 - tail) / (1.0 - zeta_two / zeta)
            } else {
                0.0
            },
            zeta,
            zeta_two,
        }
    }

    /// How many items there are.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The next rank, below [`Zipf::items`].
    pub fn rank(&self, rng: &mut fastrand::Rng) -> u64 {
        self.rank_at(rng.f64())
    }

    /// The next item where popular ones are not neighbours: ranks through a fixed permutation.
    /// (YCSB hashes ranks, which drops some items; a permutation keeps every one.)
    pub fn scrambled(&self, rng: &mut fastrand::Rng) -> u64 {
        scramble(self.rank(rng), self.items)
    }

    /// The rank at a point of the unit interval.
    fn rank_at(&self, u: f64) -> u64 {
        let weighted = u * self.zeta;
        if weighted < 1.0 || self.items == 1 {
            return 0;
        }
        if weighted < self.zeta_two || self.items == 2 {
            return 1;
        }
        let share = (self.eta * u - self.eta + 1.0).powf(self.alpha);
        ((self.items as f64 * share) as u64).min(self.items - 1)
    }
}

fn weight(rank: u64, theta: f64) -> f64 {
    (rank as f64).powf(-theta)
}

/// A permutation of `0..items` that leaves no order to be seen: one of the next power of two, taken
/// again until it lands inside, which is less than twice on average.
pub fn scramble(rank: u64, items: u64) -> u64 {
    let bits = 64 - items.saturating_sub(1).leading_zeros();
    if bits == 0 {
        return 0;
    }
    let mask = u64::MAX >> (64 - bits);
    let mut item = rank & mask;
    loop {
        // Multiplying by an odd number and folding the high half down are each reversible.
        item = item.wrapping_add(0x632B_E59B_D9B4_E019) & mask;
        for factor in [0x9E37_79B9_7F4A_7C15_u64, 0xD1B5_4A32_D192_ED03] {
            item = item.wrapping_mul(factor) & mask;
            item ^= item >> bits.div_ceil(2);
        }
        if item < items {
            return item;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chance of each rank by the law itself.
    fn law(items: u64, theta: f64) -> Vec<f64> {
        let sum: f64 = (1..=items).map(|rank| weight(rank, theta)).sum();
        (1..=items).map(|rank| weight(rank, theta) / sum).collect()
    }

    fn counts(items: u64, theta: f64, draws: u64) -> Vec<u64> {
        let zipf = Zipf::new(items, theta);
        let mut rng = fastrand::Rng::with_seed(7);
        let mut counts = vec![0; items as usize];
        for _ in 0..draws {
            counts[zipf.rank(&mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn two_items_follow_the_law_by_chi_square() {
        const DRAWS: u64 = 1_000_000;
        for theta in [0.0, 0.5, YCSB_THETA] {
            let chances = law(2, theta);
            let statistic: f64 = counts(2, theta, DRAWS)
                .iter()
                .zip(&chances)
                .map(|(&count, chance)| {
                    let expected = chance * DRAWS as f64;
                    (count as f64 - expected).powi(2) / expected
                })
                .sum();
            // One degree of freedom: beyond 10.8 once in a thousand seeds.
            assert!(statistic < 10.8, "theta {theta}: {statistic}");
        }
    }

    #[test]
    fn draws_follow_the_generators_own_distribution_by_chi_square() {
        // The chance of a rank is the length of the part of the unit interval that maps to it,
        // measured on a fine grid, independent of the random generator.
        const ITEMS: u64 = 20;
        const GRID: u64 = 4_000_000;
        const DRAWS: u64 = 500_000;
        let zipf = Zipf::new(ITEMS, YCSB_THETA);
        let mut lengths = [0u64; ITEMS as usize];
        for point in 0..GRID {
            lengths[zipf.rank_at((point as f64 + 0.5) / GRID as f64) as usize] += 1;
        }
        let statistic: f64 = counts(ITEMS, YCSB_THETA, DRAWS)
            .iter()
            .zip(lengths)
            .map(|(&count, length)| {
                let expected = length as f64 / GRID as f64 * DRAWS as f64;
                (count as f64 - expected).powi(2) / expected
            })
            .sum();
        // 19 degrees of freedom: beyond 43.8 once in a thousand seeds.
        assert!(statistic < 43.8, "{statistic}");
    }

    #[test]
    fn the_approximation_stays_near_the_law() {
        for items in [3, 20, 1000] {
            const DRAWS: u64 = 1_000_000;
            let distance: f64 = counts(items, YCSB_THETA, DRAWS)
                .iter()
                .zip(law(items, YCSB_THETA))
                .map(|(&count, chance)| (count as f64 / DRAWS as f64 - chance).abs())
                .sum();
            assert!(distance / 2.0 < 0.06, "{items} items: {distance}");
        }
    }

    #[test]
    fn every_draw_is_an_item() {
        let mut rng = fastrand::Rng::with_seed(3);
        for items in [1, 2, 3, 7, 100] {
            let zipf = Zipf::new(items, YCSB_THETA);
            assert!((0..10_000).all(|_| zipf.scrambled(&mut rng) < items));
            assert!(zipf.rank_at(1.0) < items && zipf.rank_at(0.0) == 0);
        }
        assert_eq!(Zipf::new(0, 5.0).rank(&mut rng), 0);
    }

    #[test]
    fn scrambling_is_a_permutation_that_parts_neighbours() {
        for items in [1, 2, 3, 64, 1000] {
            let mut seen: Vec<u64> = (0..items).map(|rank| scramble(rank, items)).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..items), "{items}");
        }
        let near =
            (0..999).filter(|&rank| scramble(rank, 1000).abs_diff(scramble(rank + 1, 1000)) < 10);
        assert!(near.count() < 60);
    }
}
