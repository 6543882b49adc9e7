//! What OBJECT ENCODING says of a collection: what Redis 7.0 would, with its own settings.

use super::{Collection, unhashed};
use crate::error::Result;
use crate::layout::kind::Kind;
use crate::memory::Memory;
use crate::number::parse_i64;

/// Entries, and bytes in the longest part of one, of what Redis keeps packed.
const PACKED: (u64, usize) = (128, 64);
/// Integers of a set that Redis keeps as a sorted array.
const INTEGERS: u64 = 512;
/// Bytes of the score before a member.
const SCORE: usize = 8;

impl<M: Memory> Collection<'_, M> {
    /// The name, of a value of this kind and size.
    pub fn encoding(&self) -> Result<&'static str> {
        let (most, longest) = PACKED;
        Ok(match self.kind {
            Kind::String => "raw",
            Kind::List => "quicklist",
            Kind::Stream => "stream",
            Kind::Set => {
                let integer = |member: &[u8], _: &[u8]| parse_i64(unhashed(member)).is_some();
                match self.are_all(INTEGERS, integer)? {
                    true => "intset",
                    false => "hashtable",
                }
            }
            Kind::Hash => {
                let short = |field: &[u8], value: &[u8]| {
                    unhashed(field).len() <= longest && value.len() <= longest
                };
                match self.are_all(most, short)? {
                    true => "listpack",
                    false => "hashtable",
                }
            }
            Kind::SortedSet => {
                let short = |member: &[u8], _: &[u8]| member.len() <= SCORE + longest;
                match self.are_all(most, short)? {
                    true => "listpack",
                    false => "skiplist",
                }
            }
        })
    }

    /// Whether there are at most so many entries, and all are such.
    fn are_all(&self, most: u64, such: impl Fn(&[u8], &[u8]) -> bool) -> Result<bool> {
        let mut all = self.count(0) <= most;
        if all {
            self.walk(0, 0, |key, value| {
                all = such(key, value);
                all
            })?;
        }
        Ok(all)
    }
}
