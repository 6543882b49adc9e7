//! Sorted sets: members in the order of their scores, and where a member's score is found.
//!
//! An entry of tree 0 is a score, as eight bytes that sort as scores do, and a member. -0 is kept
//! as 0. Tree 1 is there while tree 0 has more than one leaf: then looking for a member in tree 0
//! would be looking through all of it.

use std::ops::Range;

use super::{Collection, hashed, unhashed};
use crate::error::{Error, Result};
use crate::memory::Memory;

/// Bytes of a score in front of a member.
const SCORE: usize = 8;
/// The tree in the order of scores.
pub(crate) const BY_SCORE: usize = 0;
const BY_MEMBER: usize = 1;
const SIGN: u64 = 1 << 63;
/// Bytes that a member counts beside its own towards a limit.
const OVERHEAD: usize = 16;

/// A member and its score.
pub(crate) type Scored = (Vec<u8>, f64);

/// A place before, between or behind members.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edge {
    /// Before the first.
    Start,
    /// Behind the last.
    End,
    /// Before the first with this score or a higher one, or `behind` the last with it or a lower
    /// one.
    Score { score: f64, behind: bool },
    /// The same by member, among members that all have the same score.
    Member { member: Vec<u8>, behind: bool },
}

/// A number that rises with the score.
fn rising(score: f64) -> u64 {
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn key(rising: u64, member: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(SCORE + member.len());
    key.extend_from_slice(&rising.to_be_bytes());
    key.extend_from_slice(member);
    key
}

/// The member and score of a key of tree 0.
pub(crate) fn entry(key: &[u8]) -> (&[u8], f64) {
    let (score, member) = key.split_at(key.len().min(SCORE));
    let rising = score.try_into().map_or(SIGN, u64::from_be_bytes);
    let bits = match rising & SIGN {
        0 => !rising,
        _ => rising ^ SIGN,
    };
    (member, f64::from_bits(bits))
}

impl<M: Memory> Collection<'_, M> {
    fn has_index(&self) -> bool {
        self.count(BY_MEMBER) != 0
    }

    /// Members.
    pub fn members(&self) -> u64 {
        self.count(BY_SCORE)
    }

    /// The score of a member.
    pub fn score(&self, member: &[u8]) -> Result<Option<f64>> {
        if self.has_index() {
            let bits = self.get(BY_MEMBER, &hashed(member))?;
            let bits = bits.and_then(|bits| bits.try_into().ok());
            return Ok(bits.map(f64::from_le_bytes));
        }
        let mut found = None;
        self.span(0..self.members(), false, |other, score| {
            found = (other == member).then_some(score);
            found.is_none()
        })?;
        Ok(found)
    }

    /// Members before one that has this score.
    pub fn position_of(&self, member: &[u8], score: f64) -> Result<u64> {
        Ok(self.rank(BY_SCORE, &key(rising(score), member))?.0)
    }

    /// Members before an edge.
    pub fn position(&self, edge: &Edge) -> Result<u64> {
        let key = match edge {
            Edge::Start => return Ok(0),
            Edge::End => return Ok(self.members()),
            Edge::Score { score, behind } => key(rising(*score) + u64::from(*behind), b""),
            Edge::Member { member, behind } => {
                let last = self.members().saturating_sub(1);
                let ends = self.member_at(0)?.zip(self.member_at(last)?);
                let Some(((_, score), (_, highest))) = ends else {
                    return Ok(0);
                };
                if score != highest {
                    return self.position_by_member(member, *behind);
                }
                let mut key = key(rising(score), member);
                key.extend_from_slice(if *behind { b"\0" } else { b"" });
                key
            }
        };
        Ok(self.rank(BY_SCORE, &key)?.0)
    }

    /// The same for a member among scores that differ, where the order of the members is not that
    /// of the set: what a search finds that goes by them all the same, as in Redis.
    fn position_by_member(&self, member: &[u8], behind: bool) -> Result<u64> {
        let (mut start, mut end) = (0, self.members());
        while start < end {
            let middle = start + (end - start) / 2;
            let before = self
                .member_at(middle)?
                .is_some_and(|(other, _)| other.as_slice() < member || (behind && other == member));
            match before {
                true => start = middle + 1,
                false => end = middle,
            }
        }
        Ok(start)
    }

    /// The member at a position, and its score.
    pub fn member_at(&self, index: u64) -> Result<Option<Scored>> {
        let found = self.at(BY_SCORE, index)?;
        Ok(found.map(|(key, _)| {
            let (member, score) = entry(&key);
            (member.to_vec(), score)
        }))
    }

    /// Shows `f` the members at these positions and their scores, upwards or downwards, until it
    /// says `false`.
    pub fn span(
        &self,
        range: Range<u64>,
        down: bool,
        mut f: impl FnMut(&[u8], f64) -> bool,
    ) -> Result<()> {
        let mut left = range.end.min(self.members()).saturating_sub(range.start);
        if left == 0 {
            return Ok(());
        }
        let last = range.start + left - 1;
        let show = |key: &[u8], _: &[u8]| {
            left -= 1;
            let (member, score) = entry(key);
            f(member, score) && left != 0
        };
        match down {
            false => self.walk(BY_SCORE, range.start, show),
            true => self.walk_back(BY_SCORE, last, show),
        }
    }

    /// The members at these positions, of `limit` bytes at most.
    pub fn copy_span(&self, range: Range<u64>, down: bool, limit: usize) -> Result<Vec<Scored>> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        self.span(range, down, |member, score| {
            bytes += member.len() + OVERHEAD;
            found.push((member.to_vec(), score));
            bytes <= limit
        })?;
        match bytes <= limit {
            true => Ok(found),
            false => Err(Error::ReplyTooLong),
        }
    }

    /// Up to `count` members from a cursor on, which is a part of their hashes, and more as long as
    /// they have the same; with the cursor for the next. 0 is the first and the last cursor.
    /// While there is no tree 1, these are all members.
    pub fn scan(&self, cursor: u64, count: u64, mut f: impl FnMut(&[u8], f64)) -> Result<u64> {
        if !self.has_index() {
            self.span(0..self.members(), false, |member, score| {
                f(member, score);
                true
            })?;
            return Ok(0);
        }
        let Ok(first) = u32::try_from(cursor) else {
            return Ok(0);
        };
        let (from, _) = self.rank(BY_MEMBER, &first.to_be_bytes())?;
        let (mut seen, mut last, mut next) = (0, None, 0);
        self.walk(BY_MEMBER, from, |key, value| {
            let hash = key.first_chunk().map(|hash| u32::from_be_bytes(*hash));
            if seen >= count && hash != last {
                next = u64::from(hash.unwrap_or_default());
                return false;
            }
            (seen, last) = (seen + 1, hash);
            if let Ok(bits) = value.try_into() {
                f(unhashed(key), f64::from_le_bytes(bits));
            }
            true
        })?;
        Ok(next)
    }

    /// Gives a member, which had the score `old`, another one.
    pub fn set_score(&mut self, member: &[u8], old: Option<f64>, new: f64) -> Result<()> {
        self.put(BY_SCORE, &key(rising(new), member), b"")?;
        if let Some(old) = old.filter(|old| *old != new) {
            self.remove(BY_SCORE, &key(rising(old), member))?;
        }
        if self.keeps_index()? {
            let kept = new + 0.0; // -0 becomes 0
            self.put(BY_MEMBER, &hashed(member), &kept.to_le_bytes())?;
        }
        Ok(())
    }

    /// Takes a member out; says the score it had.
    pub fn remove_member(&mut self, member: &[u8]) -> Result<Option<f64>> {
        let Some(score) = self.score(member)? else {
            return Ok(None);
        };
        self.remove(BY_SCORE, &key(rising(score), member))?;
        if self.keeps_index()? {
            self.remove(BY_MEMBER, &hashed(member))?;
        }
        Ok(Some(score))
    }

    /// Takes out the members at these positions; says how many.
    pub fn cut_members(&mut self, range: Range<u64>) -> Result<u64> {
        let range = range.start..range.end.min(self.members());
        if range.is_empty() {
            return Ok(0);
        }
        let mut gone = Vec::new();
        let all = range == (0..self.members());
        if self.has_index() && !all {
            self.span(range.clone(), false, |member, _| {
                gone.push(hashed(member));
                true
            })?;
        }
        self.cut(BY_SCORE, range.clone())?;
        if self.keeps_index()? {
            for key in gone {
                self.remove(BY_MEMBER, &key)?;
            }
        }
        Ok(range.end - range.start)
    }

    /// Makes or drops tree 1 as tree 0 now wants it; says whether it is to follow what was changed.
    fn keeps_index(&mut self) -> Result<bool> {
        let wanted = self.level(BY_SCORE) != 0;
        match (self.has_index(), wanted) {
            (false, true) => {
                let mut all = Vec::new();
                self.span(0..self.members(), false, |member, score| {
                    all.push((hashed(member), score.to_le_bytes()));
                    true
                })?;
                for (key, bits) in all {
                    self.put(BY_MEMBER, &key, &bits)?;
                }
            }
            (true, false) => self.cut(BY_MEMBER, 0..self.count(BY_MEMBER))?,
            _ => {}
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_scores_do() {
        let scores = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.0,
            -f64::MIN_POSITIVE,
            0.0,
            f64::MIN_POSITIVE,
            0.5,
            1.0,
            f64::MAX,
            f64::INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(rising(pair[0]) < rising(pair[1]), "{pair:?}");
        }
        assert_eq!(rising(-0.0), rising(0.0));
        for score in scores {
            assert_eq!(entry(&key(rising(score), b"m")), (&b"m"[..], score));
        }
    }
}
