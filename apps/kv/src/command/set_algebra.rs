//! SINTER, SUNION, SDIFF and what stores their result: sets of several keys at one moment.

use std::collections::BTreeSet;

use super::{Call, MAX_REPLY, Outcome, SYNTAX};
use crate::error::{Error, Result};
use crate::memory::{Access, Memory};
use crate::store::collection::unhashed;
use crate::store::{Db, Kind};

/// The tree that members are in.
const MEMBERS: usize = 0;

#[derive(Clone, Copy)]
enum Rule {
    Intersection,
    Union,
    Difference,
}

/// Members with their hashes, in that order.
type Members = BTreeSet<Vec<u8>>;

fn members<M: Memory>(db: &Db<'_, M>, key: &[u8]) -> Result<Members> {
    let found = db.view(key, Kind::Set, |set| {
        let (mut members, mut bytes) = (Members::new(), 0);
        set.walk(MEMBERS, 0, |member, _| {
            bytes += member.len() + 32;
            members.insert(member.to_vec());
            bytes <= MAX_REPLY
        })?;
        match bytes <= MAX_REPLY {
            true => Ok(members),
            false => Err(Error::ReplyTooLong),
        }
    });
    Ok(found?.unwrap_or_default())
}

/// Keeps the members that are in a set, or those that are not.
fn keep<M: Memory>(db: &Db<'_, M>, key: &[u8], members: &mut Members, there: bool) -> Result<()> {
    let kept = db.view(key, Kind::Set, |set| {
        let mut kept = Members::new();
        for member in members.iter() {
            if set.rank(MEMBERS, member)?.1 == there {
                kept.insert(member.clone());
            }
        }
        Ok(kept)
    })?;
    match kept {
        Some(kept) => *members = kept,
        None if there => members.clear(),
        None => {}
    }
    Ok(())
}

/// What a rule makes of the sets of held keys.
fn combine<M: Memory>(db: &Db<'_, M>, rule: Rule, keys: &[&[u8]]) -> Result<Members> {
    // All of them have to be sets, also those that the result does not depend on.
    let mut sizes = Vec::with_capacity(keys.len());
    for key in keys {
        let size = db.view(key, Kind::Set, |set| Ok(set.count(MEMBERS)))?;
        sizes.push((size.unwrap_or(0), *key));
    }
    match rule {
        Rule::Intersection => {
            sizes.sort_unstable_by_key(|(size, _)| *size);
            let mut all = members(db, sizes[0].1)?;
            for (_, key) in &sizes[1..] {
                if all.is_empty() {
                    break;
                }
                keep(db, key, &mut all, true)?;
            }
            Ok(all)
        }
        Rule::Union => {
            let mut all = Members::new();
            for key in keys {
                all.append(&mut members(db, key)?);
            }
            Ok(all)
        }
        Rule::Difference => {
            let mut all = members(db, keys[0])?;
            for key in &keys[1..] {
                keep(db, key, &mut all, false)?;
            }
            Ok(all)
        }
    }
}

fn show<M: Memory>(call: &mut Call<'_, '_, M>, rule: Rule) -> Outcome {
    let keys = call.keys();
    let members = call
        .db
        .together_to_read(&keys, |db| combine(&db, rule, &keys))?;
    call.reply.set(members.len());
    for member in &members {
        call.reply.bulk(unhashed(member));
    }
    Ok(())
}

fn store<M: Memory>(call: &mut Call<'_, '_, M>, rule: Rule) -> Outcome {
    let keys = call.keys();
    let count = call.db.together(&keys, Access::Write, |db| {
        let members = combine(&db, rule, &keys[1..])?;
        db.replace(keys[0], Kind::Set, |set| {
            for member in &members {
                set.put(MEMBERS, member, &[])?;
            }
            Ok(members.len())
        })
    })?;
    call.reply.count(count);
    Ok(())
}

pub(super) fn sinter<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    show(call, Rule::Intersection)
}

pub(super) fn sunion<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    show(call, Rule::Union)
}

pub(super) fn sdiff<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    show(call, Rule::Difference)
}

pub(super) fn sinterstore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    store(call, Rule::Intersection)
}

pub(super) fn sunionstore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    store(call, Rule::Union)
}

pub(super) fn sdiffstore<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    store(call, Rule::Difference)
}

pub(super) fn sintercard<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let named = call.integer(1).ok().filter(|count| *count > 0);
    let named = named.ok_or("ERR numkeys should be greater than 0")? as usize;
    if named > call.args.len() - 2 {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    let limit = match call.args.len() - 2 - named {
        0 => 0,
        2 if call.args.is(2 + named, "limit") => {
            let limit = call.integer(3 + named).ok().filter(|limit| *limit >= 0);
            limit.ok_or("ERR LIMIT can't be negative")? as usize
        }
        _ => return Err(SYNTAX.into()),
    };
    let keys: Vec<_> = call.args.from(2).take(named).collect();
    let members = call
        .db
        .together_to_read(&keys, |db| combine(&db, Rule::Intersection, &keys))?;
    let most = if limit == 0 { usize::MAX } else { limit };
    call.reply.count(members.len().min(most));
    Ok(())
}
