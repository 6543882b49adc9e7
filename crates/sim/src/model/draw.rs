//! Which place is next, a lock or a block: keys by Zipf's law, spread over the places.

use crate::world::Random;
use std::sync::Arc;

/// Chances of the places.
#[derive(Clone)]
pub struct Chances(Arc<[f64]>);

impl Chances {
    /// The k-th most popular key is drawn in proportion to `1 / k^theta`, and is in a place that
    /// chance decides; where there are no more keys than places, each has its own.
    pub fn new(places: u32, keys: u32, theta: f64) -> Self {
        let mut weights = vec![0.0; places.max(1) as usize];
        // The same for every seed: which keys share a place is not what a run is about.
        let mut random = Random::new(1);
        for key in 0..keys.max(1) {
            let place = match keys > places {
                true => random.below(weights.len() as u64) as usize,
                false => key as usize,
            };
            weights[place] += f64::from(key + 1).powf(-theta);
        }
        let mut sum = 0.0;
        for weight in &mut weights {
            sum += *weight;
            *weight = sum;
        }
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Chances(weights.into())
    }

    /// The next.
    pub fn draw(&self, random: &mut Random) -> u32 {
        let at = (random.draw() >> 11) as f64 / (1u64 << 53) as f64;
        let place = self.0.partition_point(|&sum| sum <= at);
        place.min(self.0.len() - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_keys_make_popular_places() {
        let chances = Chances::new(4, 4, 1.0);
        let mut random = Random::new(3);
        let mut seen = [0u32; 4];
        (0..100_000).for_each(|_| seen[chances.draw(&mut random) as usize] += 1);
        let harmonic = 1.0 + 0.5 + 1.0 / 3.0 + 0.25;
        for (rank, &count) in seen.iter().enumerate() {
            let expected = 1e5 / harmonic / (rank + 1) as f64;
            assert!((f64::from(count) / expected - 1.0).abs() < 0.03, "{seen:?}");
        }
    }
}
