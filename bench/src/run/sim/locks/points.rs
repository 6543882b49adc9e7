//! The points of all figures, each simulated once.

use super::super::points::{Speed, all};
use super::Outcome;
use super::figures::Point;
use crate::run::Progress;
use rackmem_sim::model::simulate;
use std::time::Instant;

/// All points.
pub struct Points {
    rows: Vec<(Point, Outcome)>,
    speed: Speed,
}

impl Points {
    /// Simulates what is wanted.
    pub fn simulate(
        wanted: impl Iterator<Item = Point>,
        seed: u64,
        progress: Progress<'_>,
    ) -> Self {
        let mut points: Vec<Point> = Vec::new();
        for point in wanted {
            if !points.contains(&point) {
                points.push(point);
            }
        }
        let experiments: Vec<_> = (points.iter())
            .map(|point| (*point, point.experiment(seed)))
            .collect();
        let began = Instant::now();
        let (outcomes, core_seconds) = all(
            &experiments,
            |(_, experiment)| simulate(experiment),
            |(point, _)| point.name(),
            progress,
        );
        let rows: Vec<_> = (points.into_iter().zip(outcomes))
            .filter_map(|(point, outcome)| Some((point, outcome?)))
            .collect();
        let speed = Speed::of(rows.iter().map(|row| &row.1), core_seconds, began);
        Points { rows, speed }
    }

    /// A point.
    pub fn get(&self, point: &Point) -> Option<&Outcome> {
        let found = self.rows.iter().find(|row| row.0 == *point);
        found.map(|row| &row.1)
    }

    /// All points in the order in which they were wanted.
    pub fn iter(&self) -> impl Iterator<Item = &(Point, Outcome)> {
        self.rows.iter()
    }

    /// What it took.
    pub fn speed(&self) -> Speed {
        self.speed
    }
}
