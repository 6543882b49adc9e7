//! Judging what went through streams and queues.
//!
//! A value is put in once and has a name of its own. So it is taken once, by one client, in the
//! order in which it came; and it is there in the end, unless it was taken, or lost with all that
//! was older: a flush takes the whole place, and the death of a node may, but never a part of it.

use super::record::{Ack, Id, Put, Record, Span, Taken};
use std::collections::{HashMap, HashSet};

/// What may take a place with all that is in it.
#[derive(Clone, Copy)]
pub struct Losses<'a> {
    pub flushes: &'a [Span],
    /// A node has died, and what it had last may be gone.
    pub death: bool,
}

impl Losses<'_> {
    /// Whether something that was put may be gone.
    fn excuse(&self, put: &Put) -> bool {
        let late = |span: &Span| span.ended.is_none_or(|ended| ended >= put.span.begun);
        self.death || self.flushes.iter().any(late)
    }
}

/// A place in the end, when nobody uses it.
#[derive(Default)]
pub struct Left {
    /// What is in it, the oldest first; with ids, of a stream.
    pub values: Vec<(Option<Id>, String)>,
    /// Of a stream: what was given to consumers who have not said that they are done: who, and how
    /// often it was given.
    pub pending: HashMap<Id, (String, i64)>,
}

/// A place, and all that is known of it.
pub struct Place<'a> {
    name: &'a str,
    puts: HashMap<&'a str, &'a Put>,
    taken: Vec<&'a Taken>,
    acks: Vec<&'a Ack>,
    left: &'a Left,
    /// Taken without an answer, at most.
    perhaps: usize,
    losses: Losses<'a>,
}

impl<'a> Place<'a> {
    pub fn new(name: &'a str, record: &'a Record, left: &'a Left, losses: Losses<'a>) -> Self {
        let puts = record.puts.iter().filter(|put| put.place == name);
        Place {
            name,
            puts: puts.map(|put| (&put.value[..], put)).collect(),
            taken: record.taken.iter().filter(|it| it.place == name).collect(),
            acks: record.acks.iter().filter(|it| it.place == name).collect(),
            left,
            perhaps: record.perhaps_taken(name),
            losses,
        }
    }

    fn wrong(&self, what: &str) -> Option<String> {
        Some(format!("{}: {what}", self.name))
    }

    /// What is wrong with it.
    pub fn judge(&self) -> Option<String> {
        match super::is_stream(self.name) {
            true => self.stream(),
            false => self.queue(),
        }
    }

    /// What is wrong with a queue.
    fn queue(&self) -> Option<String> {
        let left: HashSet<&str> = self.left.values.iter().map(|it| &it.1[..]).collect();
        let taken: HashSet<&str> = self.taken.iter().map(|it| &it.value[..]).collect();
        self.once()
            .or_else(|| self.in_order())
            .or_else(|| match left.intersection(&taken).next() {
                Some(value) => self.wrong(&format!("{value} was taken and is there")),
                None => None,
            })
            .or_else(|| self.holes(&left, &taken))
            .or_else(|| self.kept(&left, &taken))
    }

    /// What is wrong with a stream and its group.
    fn stream(&self) -> Option<String> {
        let left: HashSet<&str> = self.left.values.iter().map(|it| &it.1[..]).collect();
        let nothing = HashSet::new();
        self.ids()
            .or_else(|| self.once())
            .or_else(|| self.in_order())
            .or_else(|| self.holes(&left, &nothing))
            .or_else(|| self.kept(&left, &nothing))
            .or_else(|| self.delivered())
    }

    /// Everything was put in before it came out, and came out once.
    fn once(&self) -> Option<String> {
        let mut seen: HashMap<&str, &str> = HashMap::new();
        for taken in &self.taken {
            let Some(put) = self.puts.get(&taken.value[..]) else {
                return self.wrong(&format!("nobody has put in {}", taken.value));
            };
            if taken.span.is_before(&put.span) {
                return self.wrong(&format!("{} came out before it was put in", taken.value));
            }
            if let Some(first) = seen.insert(&taken.value, &taken.by) {
                let (value, by) = (&taken.value, &taken.by);
                return self.wrong(&format!("{value} was taken by {first} and by {by}"));
            }
        }
        let mut left = HashSet::new();
        for (_, value) in &self.left.values {
            if !self.puts.contains_key(&value[..]) {
                return self.wrong(&format!("nobody has put in {value}, which is there"));
            }
            if !left.insert(value) {
                return self.wrong(&format!("{value} is there twice"));
            }
        }
        None
    }

    /// What was put in earlier comes out earlier.
    fn in_order(&self) -> Option<String> {
        // By when they came out; the latest beginning of a `put` of those that are out.
        let mut by_end: Vec<&&Taken> = self.taken.iter().collect();
        by_end.sort_by_key(|taken| taken.span.ended);
        let mut by_begin = by_end.clone();
        by_begin.sort_by_key(|taken| taken.span.begun);
        let (mut out, mut newest) = (by_end.iter().peekable(), None::<&Put>);
        for taken in by_begin {
            while let Some(earlier) = out.next_if(|it| it.span.is_before(&taken.span)) {
                let put = self.puts.get(&earlier.value[..])?;
                if newest.is_none_or(|newest| put.span.begun > newest.span.begun) {
                    newest = Some(put);
                }
            }
            let put = self.puts.get(&taken.value[..])?;
            if let Some(newer) = newest.filter(|newer| put.span.is_before(&newer.span)) {
                let (value, newer) = (&taken.value, &newer.value);
                return self.wrong(&format!("{newer} came out before {value}, which is older"));
            }
        }
        None
    }

    /// Nothing is gone of which something older is there.
    fn holes(&self, left: &HashSet<&str>, taken: &HashSet<&str>) -> Option<String> {
        let there = left.iter().filter_map(|value| self.puts.get(value));
        let oldest = there.min_by_key(|put| put.span.ended.unwrap_or(u64::MAX))?;
        let gone = |put: &&&Put| {
            let value = &put.value[..];
            put.span.ended.is_some() && !left.contains(value) && !taken.contains(value)
        };
        let hole = self.puts.values().filter(gone);
        let hole = hole
            .filter(|put| oldest.span.is_before(&put.span))
            .min_by_key(|it| it.span.begun)?;
        let (value, older) = (&hole.value, &oldest.value);
        self.wrong(&format!(
            "{value} is gone, and {older} is there, which is older"
        ))
    }

    /// Nothing is gone without a reason.
    fn kept(&self, left: &HashSet<&str>, taken: &HashSet<&str>) -> Option<String> {
        let unexplained = |put: &&&Put| {
            let value = &put.value[..];
            let here = left.contains(value) || taken.contains(value);
            put.span.ended.is_some() && !here && !self.losses.excuse(put)
        };
        let gone: Vec<&str> = self
            .puts
            .values()
            .filter(unexplained)
            .map(|it| &it.value[..])
            .collect();
        // Nothing is taken from a stream.
        let most = if super::is_stream(self.name) {
            0
        } else {
            self.perhaps
        };
        if gone.len() <= most {
            return None;
        }
        let first = gone.iter().min()?;
        let count = gone.len();
        self.wrong(&format!(
            "{count} values are gone, {first} for one, and {most} may be taken"
        ))
    }

    /// Ids grow, and are what their writers and readers were told.
    fn ids(&self) -> Option<String> {
        let mut last = None;
        for (id, value) in &self.left.values {
            if last >= Some(*id) {
                return self.wrong(&format!("{value} has the id {id:?} behind {last:?}"));
            }
            last = Some(*id);
        }
        let ids: HashMap<&str, Option<Id>> = self
            .left
            .values
            .iter()
            .map(|(id, value)| (&value[..], *id))
            .collect();
        // In the order in which they were asked for, each is newer than those answered before.
        let mut puts: Vec<&&Put> = self.puts.values().filter(|it| it.id.is_some()).collect();
        puts.sort_by_key(|put| put.span.begun);
        let mut ended: Vec<&&Put> = puts
            .iter()
            .filter(|it| ids.contains_key(&it.value[..]))
            .copied()
            .collect();
        ended.sort_by_key(|put| put.span.ended);
        let (mut ended, mut newest) = (ended.into_iter().peekable(), None::<&Put>);
        for put in puts {
            let Some(id) = ids.get(&put.value[..]) else {
                continue;
            };
            if *id != put.id {
                let (value, told) = (&put.value, put.id);
                return self.wrong(&format!("{value} was told {told:?} and is {id:?}"));
            }
            while let Some(earlier) = ended.next_if(|it| it.span.is_before(&put.span)) {
                if newest.is_none_or(|newest| earlier.id > newest.id) {
                    newest = Some(earlier);
                }
            }
            if let Some(earlier) = newest.filter(|earlier| earlier.id >= *id) {
                let (new, old) = ((&put.value, put.id), (&earlier.value, earlier.id));
                return self.wrong(&format!("{new:?} was added after {old:?}"));
            }
        }
        let told = self.taken.iter().find(|it| {
            let id = ids.get(&it.value[..]);
            id.is_some_and(|id| *id != it.id)
        })?;
        self.wrong(&format!("{} was delivered as {:?}", told.value, told.id))
    }

    /// Of what is there, everything was delivered once, and is pending until it was acknowledged.
    fn delivered(&self) -> Option<String> {
        let taken: HashMap<&str, &Taken> =
            self.taken.iter().map(|it| (&it.value[..], *it)).collect();
        let mut acks: HashMap<&str, (i64, bool)> = HashMap::new();
        for ack in &self.acks {
            let (sum, known) = acks.entry(&ack.value).or_insert((0, true));
            *sum += ack.count.unwrap_or(0);
            *known &= ack.count.is_some();
        }
        let mut unheard = 0;
        for (id, value) in &self.left.values {
            let pending = id.and_then(|id| self.left.pending.get(&id));
            let (sum, known) = acks.get(&value[..]).copied().unwrap_or((0, true));
            if sum > 1 {
                return self.wrong(&format!("{value} was acknowledged {sum} times"));
            }
            match (taken.get(&value[..]), pending) {
                (_, Some((by, times))) if *times != 1 => {
                    return self.wrong(&format!("{value} was given to {by} {times} times"));
                }
                (Some(taken), Some((by, _))) if taken.by != *by => {
                    let first = &taken.by;
                    return self.wrong(&format!("{value} was told {first} and belongs to {by}"));
                }
                (_, Some(_)) if sum == 1 => {
                    return self.wrong(&format!("{value} was acknowledged and is pending"));
                }
                (Some(_), None) if sum == 0 && known => {
                    return self.wrong(&format!(
                        "{value} is not pending, and nobody is done with it"
                    ));
                }
                (None, None) => return self.wrong(&format!("{value} was never delivered")),
                (None, Some((by, _))) if by != super::LAST => unheard += 1,
                _ => {}
            }
        }
        if unheard > self.perhaps {
            let most = self.perhaps;
            return self.wrong(&format!(
                "{unheard} were given to consumers who have heard of {most} at most"
            ));
        }
        None
    }
}
