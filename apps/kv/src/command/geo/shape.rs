//! What is looked for: a circle, or a box, around a point.

use std::ops::Range;

use super::Point;
use super::hash::{LAT_MAX, LON_MAX, STEPS, around};

/// Meters.
const EARTH_RADIUS: f64 = 6372797.560856;

/// In meters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

/// Meters between two points, over the earth's surface.
pub(super) fn distance(one: Point, two: Point) -> f64 {
    let (lat1, lat2) = (one.lat.to_radians(), two.lat.to_radians());
    let u = ((lat2 - lat1) / 2.0).sin();
    let v = ((two.lon.to_radians() - one.lon.to_radians()) / 2.0).sin();
    if v == 0.0 {
        return along_meridian(one, two);
    }
    2.0 * EARTH_RADIUS * (u * u + lat1.cos() * lat2.cos() * v * v).sqrt().asin()
}

fn along_meridian(one: Point, two: Point) -> f64 {
    EARTH_RADIUS * (two.lat.to_radians() - one.lat.to_radians()).abs()
}

impl Shape {
    /// Meters from the middle to a point, if that is inside.
    pub fn reaches(self, middle: Point, point: Point) -> Option<f64> {
        let inside = |distance| match self {
            Self::Circle { radius } => distance <= radius,
            Self::Box { width, height } => {
                let level = Point {
                    lon: middle.lon,
                    lat: point.lat,
                };
                along_meridian(middle, point) <= height / 2.0
                    && self::distance(point, level) <= width / 2.0
            }
        };
        let distance = distance(middle, point);
        inside(distance).then_some(distance)
    }

    /// Scores among which those of all points inside are.
    pub fn scores(self, middle: Point) -> Vec<Range<f64>> {
        // No point of a box is farther than over its sides.
        let reach = match self {
            Self::Circle { radius } => radius,
            Self::Box { width, height } => (width + height) / 2.0,
        };
        let angle = reach / EARTH_RADIUS;
        let lat = angle.to_degrees();
        let pole = middle.lat.abs() + lat >= 90.0;
        let lon = match pole {
            true => LON_MAX,
            false => (angle.sin() / middle.lat.to_radians().cos())
                .min(1.0)
                .asin()
                .to_degrees(),
        };
        let covers = |steps: &u32| {
            let cells = f64::from(1u32 << steps);
            2.0 * LAT_MAX / cells > lat && 2.0 * LON_MAX / cells > lon
        };
        // Four cells, of which each has the others around it, are all there is.
        around(middle, (1..=STEPS).rev().find(covers).unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::number;
    use super::*;

    #[test]
    fn every_point_inside_has_one_of_the_scores() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut inside = 0;
        for _ in 0..20_000 {
            let mut point = || Point {
                lon: (rng.f64() - 0.5) * 2.0 * LON_MAX,
                lat: (rng.f64() - 0.5) * 2.0 * LAT_MAX,
            };
            let middle = point();
            let size = 10f64.powf(rng.f64() * 4.0 + 3.5);
            let shape = match rng.bool() {
                true => Shape::Circle { radius: size },
                false => Shape::Box {
                    width: size * rng.f64() * 2.0,
                    height: size,
                },
            };
            let degrees = size / EARTH_RADIUS * 57.3;
            let near = Point {
                lon: (middle.lon + (rng.f64() - 0.5) * 4.0 * degrees + 540.0).rem_euclid(360.0)
                    - 180.0,
                lat: (middle.lat + (rng.f64() - 0.5) * 2.0 * degrees).clamp(-85.0, 85.0),
            };
            if shape.reaches(middle, near).is_some() {
                inside += 1;
                let score = number(near) as f64;
                let scores = shape.scores(middle);
                assert!(
                    scores.iter().any(|range| range.contains(&score)),
                    "{shape:?} {middle:?} {near:?}"
                );
            }
        }
        assert!(inside > 2000, "{inside}");
    }
}
