//! What a home tells of a region's writes, as it travels.

use super::NAMED;
use crate::wire::Own;
use alloc::vec::Vec;

/// What a home tells of a region's writes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BiNews {
    /// All of them up to this one.
    pub upto: u64,
    /// How many there were after that: they are to be asked for.
    pub more: u32,
    /// Bytes of an item, and how many items there are.
    pub shape: (u32, u32),
    /// Which items; none: any.
    pub items: Option<Vec<u32>>,
    /// What the first of these are, as far as there is room: of each how many bytes in two, and
    /// these without the zeros at its end.
    pub values: Vec<u8>,
}

/// The first value, and what is behind it.
fn split_value(values: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = values.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_be_bytes(*len).into())
}

/// A value as it travels.
pub(super) fn pack_value(value: &[u8], into: &mut Vec<u8>) {
    let len = value
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    into.extend_from_slice(&(len as u16).to_be_bytes());
    into.extend_from_slice(&value[..len]);
}

impl BiNews {
    /// In place of the number of items that are named: any.
    const ANY: u32 = u32::MAX;

    /// The last write that there was: what items are now, they are since then at least.
    pub fn now(&self) -> u64 {
        self.upto.saturating_add(self.more.into())
    }

    /// What is known of each item that was modified, if they are named. Values have no zeros at
    /// their ends.
    pub fn each(&self) -> Option<impl Iterator<Item = (u32, Option<&[u8]>)>> {
        let mut values = &self.values[..];
        let items = self.items.as_ref()?.iter();
        Some(items.map(move |item| {
            let split = split_value(values);
            values = split.map_or(&[], |(_, rest)| rest);
            (*item, split.map(|(value, _)| value))
        }))
    }

    /// As it travels. The shape is in front of the items, and values are behind them.
    pub(super) fn encode(&self) -> (Own, Vec<u8>) {
        let count = self
            .items
            .as_ref()
            .map_or(BiNews::ANY, |all| all.len() as u32);
        let (a, b) = (self.upto, u64::from(self.more) << 32 | u64::from(count));
        let all = self.items.iter().flatten().copied();
        let words = [self.shape.0, self.shape.1].into_iter().chain(all);
        let mut bytes: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
        bytes.extend_from_slice(&self.values);
        (Own { a, b }, bytes)
    }

    /// From a packet.
    pub(super) fn decode(own: &Own, body: &[u8]) -> Option<BiNews> {
        let more = (own.b >> 32) as u32;
        let count = match own.b as u32 {
            BiNews::ANY => None,
            count => Some(count as usize)
                .filter(|count| *count <= NAMED)
                .map(Some)?,
        };
        let words = 4 * (2 + count.unwrap_or_default());
        let (words, values) = body.split_at_checked(words)?;
        let mut words = words
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| u32::from_be_bytes(*word));
        let shape = (words.next()?, words.next()?);
        let items = count.map(|_| words.collect::<Vec<u32>>());
        let mut left = values;
        for _ in 0..count.unwrap_or_default() {
            left = match split_value(left) {
                Some((value, rest)) if value.len() <= shape.0 as usize => rest,
                _ => break,
            };
        }
        left.is_empty().then(|| BiNews {
            upto: own.a,
            more,
            shape,
            items,
            values: values.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_read_as_they_were_written_and_nonsense_is_not() {
        for items in [None, Some(Vec::new()), Some(alloc::vec![1, 7])] {
            let news = BiNews {
                upto: 77,
                more: 5,
                shape: (8, 9),
                values: items.iter().flatten().flat_map(|_| [0, 2, 7, 7]).collect(),
                items,
            };
            let (own, body) = news.encode();
            assert_eq!(BiNews::decode(&own, &body), Some(news));
            assert_eq!(BiNews::decode(&own, &body[1..]), None);
            assert_eq!(BiNews::decode(&own, &[]), None);
            // More items than there are words, or more values than items.
            let more = Own {
                b: own.b & !0xffff_ffff | 9,
                ..own
            };
            assert_eq!(BiNews::decode(&more, &body), None);
            let body = [&body[..], &[0, 2, 7, 7]].concat();
            assert_eq!(BiNews::decode(&own, &body), None);
            // A value that is longer than items are.
            let one = [&body[..8], &[0; 4], &[0, 9], &[0; 9]].concat();
            assert_eq!(BiNews::decode(&Own { b: 1, ..own }, &one), None);
        }
        let many = alloc::vec![0; 8 + 4 * (NAMED + 1)];
        let own = Own {
            a: 1,
            b: NAMED as u64 + 1,
        };
        assert_eq!(BiNews::decode(&own, &many), None);
    }
}
