//! Sets: members of a key, each once.

use super::{Call, Failure, MAX_REPLY, Outcome, SYNTAX, random, scanning};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::store::Kind;
use crate::store::collection::{Collection, hashed, unhashed};

/// The tree that members are in.
const MEMBERS: usize = 0;

fn view<M: Memory, R>(
    call: &mut Call<'_, '_, M>,
    f: impl FnMut(&Collection<'_, M>) -> Result<R>,
) -> std::result::Result<Option<R>, Failure> {
    let found = call.db.view(call.word(1), Kind::Set, f)?;
    call.found(found.is_some());
    Ok(found)
}

pub(super) fn sadd<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let members: Vec<_> = call.args.from(2).map(hashed).collect();
    let new = call.db.change(call.word(1), Kind::Set, |set| {
        let mut new = 0;
        for member in &members {
            new += usize::from(set.put(MEMBERS, member, &[])?.is_none());
        }
        Ok(new)
    })?;
    call.reply.count(new);
    Ok(())
}

pub(super) fn srem<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let members: Vec<_> = call.args.from(2).map(hashed).collect();
    let gone = call.db.change(call.word(1), Kind::Set, |set| {
        set.remove_all(MEMBERS, &members)
    })?;
    call.reply.count(gone);
    Ok(())
}

pub(super) fn sismember<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let member = hashed(call.word(2));
    let there = view(call, |set| Ok(set.rank(MEMBERS, &member)?.1))?;
    call.reply.flag(there.unwrap_or(false));
    Ok(())
}

pub(super) fn smismember<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let members: Vec<_> = call.args.from(2).map(hashed).collect();
    let there = view(call, |set| {
        let there = members.iter().map(|m| Ok(set.rank(MEMBERS, m)?.1));
        there.collect::<Result<Vec<bool>>>()
    })?;
    call.reply.array(members.len());
    for i in 0..members.len() {
        call.reply
            .flag(there.as_ref().is_some_and(|there| there[i]));
    }
    Ok(())
}

pub(super) fn scard<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let count = view(call, |set| Ok(set.count(MEMBERS)))?;
    call.reply.count(count.unwrap_or(0) as usize);
    Ok(())
}

pub(super) fn smembers<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let start = call.reply.out.len();
    let (key, reply, mut fits) = (call.args.at(1), &mut call.reply, true);
    let found = call.db.view(key, Kind::Set, |set| {
        reply.out.truncate(start);
        reply.set(set.count(MEMBERS) as usize);
        set.walk(MEMBERS, 0, |member, _| {
            reply.bulk(unhashed(member));
            fits = reply.out.len() - start <= MAX_REPLY;
            fits
        })
    })?;
    if !fits {
        return Err(Error::ReplyTooLong.into());
    }
    if found.is_none() {
        reply.set(0);
    }
    call.found(found.is_some());
    Ok(())
}

pub(super) fn spop<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let count = match call.args.len() {
        2 => None,
        3 => Some(call.integer(2)?),
        _ => return Err(SYNTAX.into()),
    };
    if count.is_some_and(|count| count < 0) {
        return Err("ERR value is out of range, must be positive".into());
    }
    let popped = call.db.change(call.word(1), Kind::Set, |set| {
        let chosen = random::entries(set, MEMBERS, count.unwrap_or(1))?;
        if chosen.len() as u64 == set.count(MEMBERS) {
            set.cut(MEMBERS, 0..u64::MAX)?;
        } else {
            for (member, _) in &chosen {
                set.remove(MEMBERS, member)?;
            }
        }
        Ok(chosen)
    })?;
    match count {
        None => call
            .reply
            .maybe(popped.first().map(|(member, _)| unhashed(member))),
        Some(_) => {
            call.reply.set(popped.len());
            for (member, _) in &popped {
                call.reply.bulk(unhashed(member));
            }
        }
    }
    Ok(())
}

pub(super) fn srandmember<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let count = match call.args.len() {
        2 => 1,
        3 => random::count(call.integer(2)?)?,
        _ => return Err(SYNTAX.into()),
    };
    let chosen = view(call, |set| random::entries(set, MEMBERS, count))?;
    let chosen = chosen.unwrap_or_default();
    if call.args.len() == 2 {
        call.reply
            .maybe(chosen.first().map(|(member, _)| unhashed(member)));
        return Ok(());
    }
    call.reply.array(chosen.len());
    for (member, _) in &chosen {
        call.reply.bulk(unhashed(member));
    }
    Ok(())
}

pub(super) fn smove<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (from, to, member) = (call.word(1), call.word(2), hashed(call.word(3)));
    let moved = call
        .db
        .together(&[from, to], crate::memory::Access::Write, |db| {
            let there = db.view(from, Kind::Set, |set| Ok(set.rank(MEMBERS, &member)?.1))?;
            let there = match there {
                None => return Ok(false),
                // The other key has to be a set, too, before anything is taken.
                Some(there) => {
                    db.view(to, Kind::Set, |_| Ok(()))?;
                    there
                }
            };
            if !there || from == to {
                return Ok(there);
            }
            db.change(to, Kind::Set, |set| set.put(MEMBERS, &member, &[]))?;
            db.change(from, Kind::Set, |set| set.remove(MEMBERS, &member))?;
            Ok(true)
        })?;
    call.reply.flag(moved);
    Ok(())
}

pub(super) fn sscan<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    scanning::scan(call, Kind::Set, MEMBERS, false)
}
