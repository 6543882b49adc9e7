//! XINFO: what is known of a stream, its groups and their consumers.

use super::{Entries, parse_count, view, write_fields, write_id};
use crate::command::{Call, Failure, Outcome, SYNTAX, Subcommand, help};
use crate::error::Result;
use crate::memory::Memory;
use crate::resp::reply::Reply;
use crate::store::collection::Collection;
use crate::store::collection::stream::{Consumer, ENTRIES, Group, Id, Info, Pending};

pub(in crate::command) const fn of_xinfo<M: Memory>() -> &'static [Subcommand<M>] {
    const {
        &[
            ("stream", 3..=6, stream),
            ("groups", 3..=3, groups),
            ("consumers", 4..=4, consumers),
            ("help", 2..=2, help),
        ]
    }
}

/// Entries that XINFO STREAM FULL shows of each list if it is not told.
const FULL_COUNT: usize = 10;

/// How many entries were added up to and including one, where deletions leave that known.
pub(super) fn delivered<M: Memory>(
    stream: &Collection<'_, M>,
    info: &Info,
    id: Id,
) -> Result<Option<i64>> {
    let count = stream.count(ENTRIES);
    if info.added == 0 {
        return Ok(Some(0));
    }
    if count == 0 && id <= info.last || id == info.last {
        return Ok(Some(info.added as i64));
    }
    let first = stream.end(false)?.unwrap_or(Id::MAX);
    if id > info.last || info.deleted != Id::MIN && info.deleted >= first {
        return Ok(None);
    }
    let (lower, there) = stream.rank(ENTRIES, &id.bytes())?;
    let up_to = lower + u64::from(there);
    Ok(Some((info.added.saturating_sub(count) + up_to) as i64))
}

/// Entries that a group has yet to get.
fn lag<M: Memory>(stream: &Collection<'_, M>, info: &Info, group: &Group) -> Result<Option<i64>> {
    let gaps = stream.count(ENTRIES) != 0 && info.deleted != Id::MIN && group.last <= info.deleted;
    let read = match group.read {
        read if read >= 0 && !gaps => Some(read),
        _ => delivered(stream, info, group.last)?,
    };
    Ok(read.map(|read| (info.added as i64).saturating_sub(read)))
}

fn maybe_int(reply: &mut Reply<'_>, value: Option<i64>) {
    match value {
        Some(value) => reply.int(value),
        None => reply.nil(),
    }
}

/// What a look at a stream has found.
struct Seen {
    info: Info,
    count: u64,
    first: Entries,
    last: Entries,
    groups: Vec<SeenGroup>,
}

struct SeenGroup {
    name: Vec<u8>,
    group: Group,
    lag: Option<i64>,
    consumers: Vec<(Vec<u8>, Consumer)>,
    pending: Vec<(Id, Pending)>,
}

fn see_group<M: Memory>(
    stream: &Collection<'_, M>,
    info: &Info,
    (name, group): (Vec<u8>, Group),
    most: usize,
) -> Result<SeenGroup> {
    let mut pending = Vec::new();
    if most != 0 {
        stream.each_pending(&group, (Id::MIN, Id::MAX), |id, entry| {
            pending.push((id, entry));
            pending.len() < most
        })?;
    }
    Ok(SeenGroup {
        lag: lag(stream, info, &group)?,
        consumers: stream.consumers(&group)?,
        name,
        group,
        pending,
    })
}

/// Looks at a stream: at its first entries, at its last one, and at so much that is pending.
fn see<M: Memory>(
    call: &mut Call<'_, '_, M>,
    entries: usize,
    pending: usize,
) -> std::result::Result<Seen, Failure> {
    let key = call.word(2);
    let seen = view(call, key, |stream| {
        let info = stream.info()?;
        let (mut first, mut last) = (Entries::default(), Entries::default());
        stream.entries(Id::MIN, Id::MAX, |id, fields| {
            first.push(id, Some(fields)) && first.found.len() < entries
        })?;
        stream.entries_back(Id::MIN, Id::MAX, |id, fields| {
            last.push(id, Some(fields));
            false
        })?;
        let groups = stream.groups()?.into_iter();
        let groups = groups.map(|group| see_group(stream, &info, group, pending));
        Ok(Seen {
            info,
            count: stream.count(ENTRIES),
            first: first.checked()?,
            last: last.checked()?,
            groups: groups.collect::<Result<_>>()?,
        })
    })?;
    seen.ok_or_else(|| "ERR no such key".into())
}

fn write_head(reply: &mut Reply<'_>, seen: &Seen) {
    let info = &seen.info;
    // Redis has a key for each hundred entries.
    let keys = seen.count.div_ceil(100) as i64;
    for (name, value) in [
        ("length", seen.count as i64),
        ("radix-tree-keys", keys),
        ("radix-tree-nodes", keys + 1),
    ] {
        reply.bulk(name.as_bytes());
        reply.int(value);
    }
    reply.bulk(b"last-generated-id");
    write_id(reply, info.last);
    reply.bulk(b"max-deleted-entry-id");
    write_id(reply, info.deleted);
    reply.bulk(b"entries-added");
    reply.int(info.added as i64);
    reply.bulk(b"recorded-first-entry-id");
    write_id(
        reply,
        seen.first.found.first().map_or(Id::MIN, |(id, _)| *id),
    );
}

fn stream<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    if call.args.len() > 3 {
        return full(call);
    }
    let seen = see(call, 1, 0)?;
    let reply = &mut call.reply;
    reply.map(10);
    write_head(reply, &seen);
    reply.bulk(b"groups");
    reply.count(seen.groups.len());
    for (name, entries) in [("first-entry", &seen.first), ("last-entry", &seen.last)] {
        reply.bulk(name.as_bytes());
        match entries.found.first() {
            Some((id, fields)) => {
                reply.array(2);
                write_id(reply, *id);
                write_fields(reply, fields.as_deref().unwrap_or_default());
            }
            None => reply.nil(),
        }
    }
    Ok(())
}

fn full<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let most = match call.args.len() {
        4 if call.args.is(3, "full") => FULL_COUNT,
        6 if call.args.is(3, "full") && call.args.is(4, "count") => {
            match parse_count(call.word(5))? {
                0 => usize::MAX,
                count => count,
            }
        }
        _ => return Err(SYNTAX.into()),
    };
    let seen = see(call, most, most)?;
    let reply = &mut call.reply;
    reply.map(9);
    write_head(reply, &seen);
    reply.bulk(b"entries");
    seen.first.write(reply);
    reply.bulk(b"groups");
    reply.array(seen.groups.len());
    for group in &seen.groups {
        write_full_group(reply, group);
    }
    Ok(())
}

fn write_full_group(reply: &mut Reply<'_>, seen: &SeenGroup) {
    reply.map(7);
    reply.bulk(b"name");
    reply.bulk(&seen.name);
    reply.bulk(b"last-delivered-id");
    write_id(reply, seen.group.last);
    reply.bulk(b"entries-read");
    maybe_int(reply, (seen.group.read >= 0).then_some(seen.group.read));
    reply.bulk(b"lag");
    maybe_int(reply, seen.lag);
    reply.bulk(b"pel-count");
    reply.int(seen.group.pending as i64);
    reply.bulk(b"pending");
    reply.array(seen.pending.len());
    for (id, pending) in &seen.pending {
        reply.array(4);
        write_id(reply, *id);
        reply.bulk(&pending.consumer);
        reply.int(pending.delivered as i64);
        reply.int(pending.times as i64);
    }
    reply.bulk(b"consumers");
    reply.array(seen.consumers.len());
    for (name, consumer) in &seen.consumers {
        let mine = || seen.pending.iter().filter(|(_, p)| p.consumer == *name);
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"seen-time");
        reply.int(consumer.seen as i64);
        reply.bulk(b"pel-count");
        reply.int(consumer.pending as i64);
        reply.bulk(b"pending");
        reply.array(mine().count());
        for (id, pending) in mine() {
            reply.array(3);
            write_id(reply, *id);
            reply.int(pending.delivered as i64);
            reply.int(pending.times as i64);
        }
    }
}

fn groups<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let seen = see(call, 1, 0)?;
    let reply = &mut call.reply;
    reply.array(seen.groups.len());
    for group in &seen.groups {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(&group.name);
        reply.bulk(b"consumers");
        reply.count(group.consumers.len());
        reply.bulk(b"pending");
        reply.int(group.group.pending as i64);
        reply.bulk(b"last-delivered-id");
        write_id(reply, group.group.last);
        reply.bulk(b"entries-read");
        maybe_int(reply, (group.group.read >= 0).then_some(group.group.read));
        reply.bulk(b"lag");
        maybe_int(reply, group.lag);
    }
    Ok(())
}

fn consumers<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (key, name, now) = (call.word(2), call.word(3), call.db.now());
    let found = view(call, key, |stream| {
        let group = stream.group(name)?;
        group.map(|group| stream.consumers(&group)).transpose()
    })?;
    let found = found.ok_or("ERR no such key")?.ok_or_else(|| {
        let mut text = b"NOGROUP No such consumer group '".to_vec();
        text.extend_from_slice(name);
        text.extend_from_slice(b"' for key name '");
        text.extend_from_slice(key);
        text.push(b'\'');
        Failure::from(text)
    })?;
    let reply = &mut call.reply;
    reply.array(found.len());
    for (name, consumer) in &found {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"pending");
        reply.int(consumer.pending as i64);
        reply.bulk(b"idle");
        reply.int(now.saturating_sub(consumer.seen) as i64);
    }
    Ok(())
}
