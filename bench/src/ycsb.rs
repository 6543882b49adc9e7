//! YCSB's workloads A, B and C (Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC
//! 2010) over anything that gets and sets: reads and updates of keys drawn by Zipf's law.

use std::fmt;
use std::str::FromStr;

use crate::zipf::{YCSB_THETA, Zipf};

/// A store under test, as one client sees it.
pub trait KeyValue {
    /// What may go wrong.
    type Error;

    /// Appends the value of a key to `value`; `false` where there is none.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Self::Error>;

    /// Stores a value.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;
}

/// The share of reads and updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Half reads, half updates.
    A,
    /// 95% reads.
    B,
    /// Only reads.
    C,
}

impl Mix {
    /// All three, in order.
    pub const ALL: [Mix; 3] = [Mix::A, Mix::B, Mix::C];

    /// Reads in a hundred operations.
    pub fn read_percent(self) -> u8 {
        match self {
            Mix::A => 50,
            Mix::B => 95,
            Mix::C => 100,
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A letter that is no workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownMix;

impl fmt::Display for UnknownMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a workload: A, B or C")
    }
}

impl std::error::Error for UnknownMix {}

impl FromStr for Mix {
    type Err = UnknownMix;

    fn from_str(letter: &str) -> Result<Self, UnknownMix> {
        let mix = Mix::ALL.into_iter();
        mix.into_iter()
            .find(|mix| letter.eq_ignore_ascii_case(&mix.to_string()))
            .ok_or(UnknownMix)
    }
}

/// The longest key, as `user` and the digits of a 64-bit number.
pub const MAX_KEY_BYTES: usize = 24;

/// The records of a run.
#[derive(Clone, Copy, Debug)]
pub struct Records {
    /// How many there are.
    pub count: u64,
    /// The size of each value; YCSB's own records are ten fields of 100 bytes.
    pub value_bytes: usize,
}

impl Records {
    /// Stores the `part`-th of `parts` equal parts of all records: clients can load together.
    pub fn load<K: KeyValue>(self, store: &mut K, part: u64, parts: u64) -> Result<u64, K::Error> {
        let parts = parts.max(1);
        let mut value = vec![0; self.value_bytes];
        let mut key = Key::default();
        let mut stored = 0;
        let mut record = part;
        while record < self.count {
            fill(&mut value, record);
            store.set(key.of(record), &value)?;
            stored += 1;
            record += parts;
        }
        Ok(stored)
    }
}

/// Fills a value so that it tells what wrote it.
fn fill(value: &mut [u8], stamp: u64) {
    let bytes = stamp.to_le_bytes();
    for (place, byte) in value.iter_mut().enumerate() {
        *byte = bytes[place % bytes.len()];
    }
}

/// The key of a record, without allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Key {
    text: [u8; MAX_KEY_BYTES],
}

impl Key {
    /// `user` and the record's number in decimal.
    pub fn of(&mut self, record: u64) -> &[u8] {
        use std::io::Write;
        let mut rest = &mut self.text[..];
        // 4 + 20 digits always fit.
        let _ = write!(rest, "user{record}");
        let length = MAX_KEY_BYTES - rest.len();
        &self.text[..length]
    }
}

/// What one operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A read that found its key.
    Hit,
    /// A read that did not, which after a complete load is a fault of the store.
    Missing,
    /// An update.
    Updated,
}

/// One client: its own random numbers, its own buffers.
#[derive(Clone, Debug)]
pub struct Client {
    mix: Mix,
    keys: Zipf,
    rng: fastrand::Rng,
    key: Key,
    value: Vec<u8>,
    read: Vec<u8>,
}

impl Client {
    /// A client of the standard skew; equal seeds make equal operations.
    pub fn new(mix: Mix, records: Records, seed: u64) -> Self {
        Client::with_keys(
            mix,
            Zipf::new(records.count, YCSB_THETA),
            records.value_bytes,
            seed,
        )
    }

    /// A client with a generator made before: making one takes time proportional to its keys.
    pub fn with_keys(mix: Mix, keys: Zipf, value_bytes: usize, seed: u64) -> Self {
        Client {
            mix,
            keys,
            rng: fastrand::Rng::with_seed(seed),
            key: Key::default(),
            value: vec![0; value_bytes],
            read: Vec::with_capacity(value_bytes),
        }
    }

    /// Does one operation.
    pub fn step<K: KeyValue>(&mut self, store: &mut K) -> Result<Done, K::Error> {
        let key = self.key.of(self.keys.scrambled(&mut self.rng));
        if self.rng.u8(0..100) < self.mix.read_percent() {
            self.read.clear();
            let found = store.get(key, &mut self.read)?;
            std::hint::black_box(&self.read);
            return Ok(if found { Done::Hit } else { Done::Missing });
        }
        fill(&mut self.value, self.rng.u64(..));
        store.set(key, &self.value)?;
        Ok(Done::Updated)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::convert::Infallible;

    use super::*;

    #[derive(Default)]
    struct Map {
        values: HashMap<Vec<u8>, Vec<u8>>,
        touched: HashMap<Vec<u8>, u64>,
    }

    impl KeyValue for Map {
        type Error = Infallible;

        fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Infallible> {
            *self.touched.entry(key.to_vec()).or_default() += 1;
            let found = self.values.get(key);
            value.extend_from_slice(found.map_or(&[], Vec::as_slice));
            Ok(found.is_some())
        }

        fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Infallible> {
            self.values.insert(key.to_vec(), value.to_vec());
            Ok(())
        }
    }

    const RECORDS: Records = Records {
        count: 500,
        value_bytes: 100,
    };

    #[test]
    fn parts_load_all_records() {
        let mut map = Map::default();
        let stored: u64 = (0..3)
            .map(|part| RECORDS.load(&mut map, part, 3).unwrap())
            .sum();
        assert_eq!(stored, 500);
        assert_eq!(map.values.len(), 500);
        assert_eq!(map.values[&b"user499"[..]].len(), 100);
    }

    #[test]
    fn mixes_read_as_often_as_they_should() {
        for mix in Mix::ALL {
            let mut map = Map::default();
            RECORDS.load(&mut map, 0, 1).unwrap();
            let mut client = Client::new(mix, RECORDS, 1);
            let reads = (0..20_000)
                .map(|_| client.step(&mut map).unwrap())
                .inspect(|done| assert_ne!(*done, Done::Missing))
                .filter(|done| *done == Done::Hit)
                .count();
            let percent = reads as f64 / 200.0;
            assert!(
                (percent - f64::from(mix.read_percent())).abs() < 1.5,
                "{mix}: {percent}"
            );
            assert_eq!(map.values.len(), 500);
        }
    }

    #[test]
    fn a_few_keys_get_most_of_the_reads() {
        let mut map = Map::default();
        let mut client = Client::new(Mix::C, RECORDS, 1);
        (0..50_000).for_each(|_| assert_eq!(client.step(&mut map), Ok(Done::Missing)));
        let mut touched: Vec<u64> = map.touched.into_values().collect();
        touched.sort_unstable_by(|a, b| b.cmp(a));
        let top: u64 = touched.iter().take(50).sum();
        assert!(top > 50_000 * 6 / 10, "{top}");
    }

    #[test]
    fn letters_name_mixes() {
        assert_eq!("b".parse(), Ok(Mix::B));
        assert_eq!("D".parse::<Mix>(), Err(UnknownMix));
        assert_eq!(Key::default().of(u64::MAX).len(), MAX_KEY_BYTES);
    }
}
