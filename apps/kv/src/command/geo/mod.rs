//! Places on earth, as members of sorted sets whose scores say where they are.

mod hash;
mod place;
mod query;
mod search;
mod shape;

pub(crate) use self::place::{geoadd, geodist, geohash, geopos};
pub(crate) use self::search::{
    georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore,
};

use super::{Call, Failure};
use crate::double;
use crate::memory::Memory;
use crate::resp::args::Args;
use crate::resp::reply::Reply;

/// Longitude and latitude, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    lon: f64,
    lat: f64,
}

/// Units of length, in meters.
const UNITS: [(&str, f64); 4] = [("m", 1.0), ("km", 1000.0), ("ft", 0.3048), ("mi", 1609.34)];

/// The unit that a word names, in meters.
fn unit(args: Args<'_>, at: usize) -> Result<f64, Failure> {
    let found = UNITS.iter().find(|(name, _)| args.is(at, name));
    let unit = found.map(|(_, meters)| *meters);
    unit.ok_or("ERR unsupported unit provided. please use M, KM, FT, MI".into())
}

/// The point that two words say.
fn point(args: Args<'_>, at: usize) -> Result<Point, Failure> {
    let number = |i| double::parse(args.at(i)).ok_or("ERR value is not a valid float");
    let (lon, lat) = (number(at)?, number(at + 1)?);
    let within = lon.abs() <= hash::LON_MAX && lat.abs() <= hash::LAT_MAX;
    match within {
        true => Ok(Point { lon, lat }),
        false => Err(format!("ERR invalid longitude,latitude pair {lon:.6},{lat:.6}").into()),
    }
}

impl Reply<'_> {
    fn point(&mut self, point: Point) {
        self.array(2);
        for degrees in [point.lon, point.lat] {
            let text = format!("{degrees:.17}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            self.number(text.as_bytes());
        }
    }

    /// A length, in units.
    fn length(&mut self, length: f64) {
        self.bulk(format!("{length:.4}").as_bytes());
    }
}

impl<M: Memory> Call<'_, '_, M> {
    /// Where the members are that the words from `at` on name. `None`: there is no such key.
    fn places(&self, at: usize) -> Result<Option<Vec<Option<Point>>>, Failure> {
        self.sorted_set(self.word(1), |set| {
            let scores = self.args.from(at).map(|member| set.score(member));
            scores
                .map(|score| Ok(score?.map(hash::point)))
                .collect::<crate::error::Result<_>>()
        })
    }
}
