//! Places as numbers: 26 bits of latitude and 26 of longitude in turns, so that what is close
//! together has mostly numbers that are.

use std::ops::Range;

use super::Point;

/// Degrees from the equator: what is nearer to a pole has no number.
pub(super) const LAT_MAX: f64 = 85.05112878;
pub(super) const LON_MAX: f64 = 180.0;
/// Bits of each coordinate in a number.
pub(super) const STEPS: u32 = 26;
/// Characters of a geohash, and the bits each stands for.
const TEXT: usize = 11;
const TEXT_BITS: usize = 5;
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// Puts the bits of a number in even places.
fn spread(number: u32) -> u64 {
    (0..32).fold(0, |wide, bit| {
        wide | u64::from(number >> bit & 1) << (2 * bit)
    })
}

/// The bits in even places.
fn gather(wide: u64) -> u32 {
    (0..32).fold(0, |number, bit| {
        number | ((wide >> (2 * bit) & 1) as u32) << bit
    })
}

/// Which of `2^steps` parts of `-max..max` a coordinate is in.
fn part(degrees: f64, max: f64, steps: u32) -> u32 {
    ((degrees + max) / (2.0 * max) * f64::from(1u32 << steps)) as u32
}

/// The number of a point.
pub(super) fn number(point: Point) -> u64 {
    interleaved(point, LAT_MAX)
}

fn interleaved(point: Point, lat_max: f64) -> u64 {
    let (lat, lon) = (
        part(point.lat, lat_max, STEPS),
        part(point.lon, LON_MAX, STEPS),
    );
    spread(lat) | spread(lon) << 1
}

/// The middle of the area that has a number, which is a score.
pub(super) fn point(score: f64) -> Point {
    let number = score as u64;
    let middle = |part: u32, max: f64| {
        let edge = |part: f64| -max + part / f64::from(1u32 << STEPS) * (2.0 * max);
        let middle = (edge(f64::from(part)) + edge(f64::from(part) + 1.0)) / 2.0;
        middle.clamp(-max, max)
    };
    Point {
        lon: middle(gather(number >> 1), LON_MAX),
        lat: middle(gather(number), LAT_MAX),
    }
}

/// The geohash of a point: as text, and with latitudes up to the poles.
pub(super) fn text(point: Point) -> [u8; TEXT] {
    let number = interleaved(point, 90.0);
    let mut text = [ALPHABET[0]; TEXT];
    // The last character has no bits any more.
    for (i, character) in text[..TEXT - 1].iter_mut().enumerate() {
        let shift = 2 * STEPS as usize - (i + 1) * TEXT_BITS;
        *character = ALPHABET[(number >> shift & 31) as usize];
    }
    text
}

/// The scores in the cell of a grid of `2^steps` times `2^steps` cells that a point is in, and in
/// those around it.
pub(super) fn around(point: Point, steps: u32) -> Vec<Range<f64>> {
    const NEIGHBOURS: [(i64, i64); 9] = [
        (0, 0),
        (1, 0),
        (-1, 0),
        (0, 1),
        (0, -1),
        (1, 1),
        (1, -1),
        (-1, 1),
        (-1, -1),
    ];
    let cells = 1i64 << steps;
    let last = (cells - 1) as u32;
    let lat = part(point.lat, LAT_MAX, steps).min(last);
    let lon = part(point.lon, LON_MAX, steps).min(last);
    let mut found: Vec<Range<f64>> = Vec::new();
    for (up, right) in NEIGHBOURS {
        let lat = i64::from(lat) + up;
        // Around the earth one comes back; over the poles there is no way.
        let lon = (i64::from(lon) + right).rem_euclid(cells);
        if !(0..cells).contains(&lat) {
            continue;
        }
        let cell = spread(lat as u32) | spread(lon as u32) << 1;
        let shift = 2 * (STEPS - steps);
        let range = (cell << shift) as f64..((cell + 1) << shift) as f64;
        if !found.contains(&range) {
            found.push(range);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Point = Point {
        lon: 13.361389,
        lat: 38.115556,
    };

    #[test]
    fn numbers_are_those_of_redis() {
        assert_eq!(number(PALERMO), 3479099956230698);
        let back = point(3479099956230698.0);
        assert_eq!(format!("{:.17}", back.lon), "13.36138933897018433");
        assert_eq!(format!("{:.17}", back.lat), "38.11555639549629859");
        assert_eq!(&text(back), b"sqc8b49rny0");
    }

    #[test]
    fn cells_around_a_point_are_different_and_within_the_earth() {
        assert_eq!(around(PALERMO, 10).len(), 9);
        assert_eq!(around(PALERMO, 1).len(), 4);
        assert_eq!(around(PALERMO, 0).len(), 1);
        let north = Point {
            lon: 180.0,
            lat: LAT_MAX,
        };
        assert_eq!(around(north, 5).len(), 6);
        let number = number(PALERMO) as f64;
        for steps in 0..=STEPS {
            assert!(around(PALERMO, steps)[0].contains(&number));
        }
    }
}
