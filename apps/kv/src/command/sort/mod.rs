//! SORT: the elements of a list or set in an order, or what other keys have for them.
//!
//! All of it is one step, also where the keys to be read are known only once the elements are: the
//! elements are read, their keys held, and the elements read again. If that made other keys
//! necessary, these are held next.

mod options;
mod order;
mod patterns;

use std::collections::HashSet;

use self::options::Options;
use self::patterns::Pattern;
use super::{Call, Failure, MAX_REPLY, Outcome};
use crate::acl::may_read_all;
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};
use crate::store::collection::unhashed;
use crate::store::{Db, Kind};

/// Bytes of the score before a member of a sorted set.
const SCORE: usize = 8;

pub(super) use options::reads_elsewhere;

pub(super) fn sort<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut options = Options::parse(call.args, true)?;
    options.scripted = call.session.scripted;
    run(call, &options)
}

pub(super) fn sort_ro<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut options = Options::parse(call.args, false)?;
    options.scripted = call.session.scripted;
    run(call, &options)
}

fn run<M: Memory>(call: &mut Call<'_, '_, M>, options: &Options<'_>) -> Outcome {
    // Other keys are for those who may read all.
    if !may_read_all(call.shared, call.session, call.command, call.args) {
        options.name_no_keys()?;
    }
    let sorted = one_step(&call.db, call.word(1), options)??;
    match options.store {
        Some(_) => call.reply.count(sorted.len()),
        None => {
            call.reply.array(sorted.len());
            for value in &sorted {
                call.reply.maybe(value.as_deref());
            }
        }
    }
    Ok(())
}

/// What SORT answers.
type Sorted = Vec<Option<Vec<u8>>>;

fn one_step<M: Memory>(
    db: &Db<'_, M>,
    key: &[u8],
    options: &Options<'_>,
) -> Result<std::result::Result<Sorted, Failure>> {
    let mut more = HashSet::new();
    loop {
        let keys: Vec<&[u8]> = [key]
            .into_iter()
            .chain(options.store)
            .chain(more.iter().map(Vec::as_slice))
            .collect();
        let attempt = |db: Db<'_, M>| {
            let source = Source::read(&db, key)?;
            let needed = options.keys(&source.elements);
            if !needed.is_subset(&more) {
                return Ok(Err(needed));
            }
            source.sort(&db, options).map(Ok)
        };
        let done = match options.store {
            Some(_) => db.together(&keys, Access::Write, attempt)?,
            None => db.together_to_read(&keys, attempt)?,
        };
        match done {
            Ok(sorted) => return Ok(sorted),
            Err(needed) => more = needed,
        }
    }
}

/// What is to be sorted.
struct Source {
    kind: Kind,
    elements: Vec<Vec<u8>>,
}

impl Source {
    fn read<M: Memory>(db: &Db<'_, M>, key: &[u8]) -> Result<Source> {
        let kind = db.meta(key)?.map_or(Kind::List, |meta| meta.kind);
        if !matches!(kind, Kind::List | Kind::Set | Kind::SortedSet) {
            return Err(Error::WrongType);
        }
        let elements = db.view(key, kind, |found| {
            let mut elements = Vec::new();
            found.walk(0, 0, |key, value| {
                let element = match kind {
                    Kind::Set => unhashed(key),
                    Kind::SortedSet => key.get(SCORE..).unwrap_or_default(),
                    _ => value,
                };
                elements.push(element.to_vec());
                true
            })?;
            Ok(elements)
        })?;
        Ok(Source {
            kind,
            elements: elements.unwrap_or_default(),
        })
    }

    /// Sorts, chooses, looks up and stores.
    fn sort<M: Memory>(
        self,
        db: &Db<'_, M>,
        options: &Options<'_>,
    ) -> Result<std::result::Result<Sorted, Failure>> {
        let ordered = match order::ordered(db, self.kind, self.elements, options)? {
            Ok(ordered) => ordered,
            Err(failure) => return Ok(Err(failure)),
        };
        let chosen = options.limit(ordered.len());
        let (mut sorted, mut bytes) = (Sorted::new(), 0);
        for element in &ordered[chosen] {
            for pattern in options.shown() {
                let value = pattern.look(db, element)?;
                bytes += value.as_ref().map_or(0, Vec::len) + 16;
                if bytes > MAX_REPLY {
                    return Err(Error::ReplyTooLong);
                }
                sorted.push(value);
            }
        }
        if let Some(target) = options.store {
            db.replace(target, Kind::List, |list| {
                for (i, value) in sorted.iter().enumerate() {
                    list.insert(0, i as u64, value.as_deref().unwrap_or_default())?;
                }
                Ok(())
            })?;
        }
        Ok(Ok(sorted))
    }
}
