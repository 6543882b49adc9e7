//! XREAD and XREADGROUP: what has come to several streams, waited for if need be.

use super::{BAD_ID, Entries, Fallible, no_group, parse_count, parse_id};
use crate::command::{Call, Failure, Otherwise, Outcome, SYNTAX, Wait};
use crate::error::Result;
use crate::memory::{Access, Memory};
use crate::number::parse_i64;
use crate::resp::reply::{Protocol, Reply};
use crate::store::collection::Collection;
use crate::store::collection::stream::{Consumer, Group, Id, Info, Pending};
use crate::store::{Db, Kind};
use std::time::Duration;

/// From where on a stream is read.
#[derive(Clone, Copy, Debug)]
enum From {
    /// What comes behind this entry.
    Behind(Id),
    /// What comes from now on.
    Now,
    /// What the group has not delivered.
    New,
}

/// The words of a read.
struct Request<'a> {
    /// The group and the consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    most: usize,
    acknowledged: bool,
    /// How long to wait, in ms; 0 for ever.
    wait: Option<u64>,
    keys: Vec<&'a [u8]>,
    from: Vec<From>,
    /// Where the first of `from` stands among the words.
    from_at: usize,
}

fn parse<'a, M: Memory>(call: &Call<'a, '_, M>) -> Fallible<Request<'a>> {
    let for_group = call.args.is(0, "xreadgroup");
    let mut request = Request {
        group: None,
        most: usize::MAX,
        acknowledged: false,
        wait: None,
        keys: Vec::new(),
        from: Vec::new(),
        from_at: 0,
    };
    let mut i = 1;
    while !call.args.is(i, "streams") {
        let value = call.args.get(i + 1);
        if call.args.is(i, "noack") && for_group {
            request.acknowledged = true;
            i += 1;
            continue;
        }
        let value = value.ok_or(SYNTAX)?;
        if call.args.is(i, "count") {
            request.most = match parse_count(value)? {
                0 => usize::MAX,
                count => count,
            };
        } else if call.args.is(i, "block") {
            let wait = parse_i64(value).ok_or("ERR timeout is not an integer or out of range")?;
            let wait = u64::try_from(wait).map_err(|_| "ERR timeout is negative")?;
            request.wait = Some(wait);
        } else if call.args.is(i, "group") && for_group {
            request.group = Some((value, call.args.get(i + 2).ok_or(SYNTAX)?));
            i += 1;
        } else {
            return Err(SYNTAX.into());
        }
        i += 2;
    }
    let words = call.args.len() - i - 1;
    if words == 0 || !words.is_multiple_of(2) {
        let name = if for_group { "XREADGROUP" } else { "XREAD" };
        let any = if for_group { '>' } else { '$' };
        return Err(format!(
            "ERR Unbalanced {name} list of streams: for each stream key an ID or '{any}' must be \
             specified."
        )
        .into());
    }
    if for_group && request.group.is_none() {
        return Err("ERR Missing GROUP option for XREADGROUP".into());
    }
    request.keys = call.args.from(i + 1).take(words / 2).collect();
    request.from_at = i + 1 + words / 2;
    let from = call.args.from(request.from_at);
    request.from = from
        .map(|word| parse_from(word, for_group))
        .collect::<Fallible<_>>()?;
    Ok(request)
}

fn parse_from(word: &[u8], for_group: bool) -> Fallible<From> {
    match (word, for_group) {
        (b"$", false) => Ok(From::Now),
        (b"$", true) => Err(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the \
             history of this consumer by specifying a proper ID, or use the > ID to get new \
             messages. The $ ID would just return an empty result set."
                .into(),
        ),
        (b">", true) => Ok(From::New),
        (b">", false) => Err(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
             <group> <consumer> option."
                .into(),
        ),
        (word, _) => match parse_id(word, 0) {
            Ok(id) => Ok(From::Behind(id)),
            Err(_) => Err(BAD_ID.into()),
        },
    }
}

/// What a stream had for the reader, under the stream's position among the keys.
type Found = Vec<(usize, Entries)>;

fn behind<M: Memory>(stream: &Collection<'_, M>, id: Id, most: usize) -> Result<Entries> {
    let mut found = Entries::default();
    if let Some(from) = id.next() {
        stream.entries(from, Id::MAX, |id, fields| {
            found.push(id, Some(fields)) && found.found.len() < most
        })?;
    }
    found.checked()
}

fn write<M: Memory>(call: &mut Call<'_, '_, M>, request: &Request<'_>, found: &Found) {
    let Reply { protocol, .. } = call.reply;
    match protocol {
        Protocol::Resp3 => call.reply.map(found.len()),
        Protocol::Resp2 => call.reply.array(found.len()),
    }
    for (i, entries) in found {
        if protocol == Protocol::Resp2 {
            call.reply.array(2);
        }
        call.reply.bulk(request.keys[*i]);
        entries.write(&mut call.reply);
    }
}

pub(in crate::command) fn xread<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let mut request = parse(call)?;
    let (keys, from) = (request.keys.clone(), request.from.clone());
    let read = call.db.together_to_read(&keys, |db| {
        let (mut found, mut ends) = (Found::new(), Vec::new());
        for (i, key) in keys.iter().enumerate() {
            let read = db.view(key, Kind::Stream, |stream| {
                let last = stream.info()?.last;
                let from = match from[i] {
                    From::Behind(id) => id,
                    From::Now | From::New => last,
                };
                Ok((behind(stream, from, request.most)?, last))
            })?;
            let (entries, last) = read.unwrap_or_default();
            ends.push(last);
            if !entries.found.is_empty() {
                found.push((i, entries));
            }
        }
        Ok((found, ends))
    });
    let (found, ends) = read?;
    if !found.is_empty() {
        write(call, &request, &found);
        return Ok(());
    }
    for (from, end) in request.from.iter_mut().zip(ends) {
        if let From::Now = from {
            *from = From::Behind(end);
        }
    }
    wait(call, &request)
}

/// Nothing is there: waits, if the client wants to.
fn wait<M: Memory>(call: &mut Call<'_, '_, M>, request: &Request<'_>) -> Outcome {
    let Some(ms) = request.wait else {
        call.reply.nil_array();
        return Ok(());
    };
    let mut words = Vec::new();
    for (i, from) in request.from.iter().enumerate() {
        if let From::Behind(id) = from {
            words.push((request.from_at + i, id.to_string().into_bytes()));
        }
    }
    Err(Failure::Block(Wait {
        keys: request.keys.iter().map(|key| key.to_vec()).collect(),
        timeout: (ms != 0).then(|| Duration::from_millis(ms)),
        otherwise: Otherwise::NilArray,
        takes: false,
        words,
    }))
}

/// Whether a group has nothing new for a consumer that it knows. One that waits finds out without
/// changing the stream: others wait for its changes.
fn has_nothing<M: Memory>(stream: &Collection<'_, M>, request: &Request<'_>) -> Result<bool> {
    let (name, _) = request.group.unwrap_or_default();
    let last = stream.group(name)?.unwrap_or_default().last;
    Ok(is_known(stream, request)? && behind(stream, last, 1)?.found.is_empty())
}

pub(in crate::command) fn xreadgroup<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let request = parse(call)?;
    let now = call.db.now();
    let (found, joined) = call.db.together(&request.keys, Access::Write, |db| {
        deliver(&db, &request, now)
    })??;
    let joined = joined.iter().map(|i| request.keys[*i].to_vec());
    call.joined.extend(joined);
    if found.is_empty() {
        return wait(call, &request);
    }
    write(call, &request, &found);
    Ok(())
}

/// Delivers to a consumer what each of the streams has for it. Also which of them did not know it.
fn deliver<M: Memory>(
    db: &Db<'_, M>,
    request: &Request<'_>,
    now: u64,
) -> Result<Fallible<(Found, Vec<usize>)>> {
    let (group, _) = request.group.unwrap_or_default();
    // All groups have to be there before anything is delivered.
    for key in &request.keys {
        let there = db.view(key, Kind::Stream, |stream| stream.group(group))?;
        if there.flatten().is_none() {
            let hint = " in XREADGROUP with GROUP option";
            return Ok(Err(no_group(key, group, hint)));
        }
    }
    let (mut found, mut joined) = (Found::new(), Vec::new());
    for (i, key) in request.keys.iter().enumerate() {
        let from = request.from[i];
        if matches!(from, From::New) && request.wait.is_some() {
            let nothing = db.view(key, Kind::Stream, |stream| has_nothing(stream, request))?;
            if nothing.unwrap_or(false) {
                continue;
            }
        }
        let (entries, known) = db.change(key, Kind::Stream, |stream| {
            let known = is_known(stream, request)?;
            let entries = match from {
                From::Behind(id) => history(stream, request, id, now),
                From::New | From::Now => new(stream, request, now),
            };
            Ok((entries?, known))
        })?;
        if !known {
            joined.push(i);
        }
        let history = matches!(from, From::Behind(_));
        if history || !entries.found.is_empty() {
            found.push((i, entries));
        }
    }
    Ok(Ok((found, joined)))
}

/// Whether the group knows the consumer.
fn is_known<M: Memory>(stream: &Collection<'_, M>, request: &Request<'_>) -> Result<bool> {
    let (name, consumer) = request.group.unwrap_or_default();
    let group = stream.group(name)?.unwrap_or_default();
    Ok(stream.consumer(&group, consumer)?.is_some())
}

/// The group, and the consumer, which is made if there is none.
fn reader<M: Memory>(
    stream: &mut Collection<'_, M>,
    request: &Request<'_>,
    now: u64,
    active: bool,
) -> Result<Group> {
    let (name, consumer) = request.group.unwrap_or_default();
    let group = stream.group(name)?.unwrap_or_default();
    let mut known = stream
        .consumer(&group, consumer)?
        .unwrap_or(Consumer::default());
    known.seen = now;
    if active {
        known.active = now;
    }
    stream.set_consumer(&group, consumer, &known)?;
    Ok(group)
}

/// What the consumer got before and has not acknowledged.
fn history<M: Memory>(
    stream: &mut Collection<'_, M>,
    request: &Request<'_>,
    behind: Id,
    now: u64,
) -> Result<Entries> {
    let group = reader(stream, request, now, false)?;
    let (_, consumer) = request.group.unwrap_or_default();
    let mut found = Entries::default();
    let Some(from) = behind.next() else {
        return Ok(found);
    };
    for id in stream.owned(&group, consumer, from, request.most)? {
        if !found.push(id, stream.entry(id)?.as_deref()) {
            break;
        }
    }
    found.checked()
}

/// What the group has not delivered to any consumer.
fn new<M: Memory>(
    stream: &mut Collection<'_, M>,
    request: &Request<'_>,
    now: u64,
) -> Result<Entries> {
    let (name, consumer) = request.group.unwrap_or_default();
    let last = stream.group(name)?.unwrap_or_default().last;
    let found = behind(stream, last, request.most)?;
    reader(stream, request, now, !found.found.is_empty())?;
    let Some((last, _)) = found.found.last() else {
        return Ok(found);
    };
    let mut group = stream.group(name)?.unwrap_or_default();
    group.last = *last;
    let info = stream.info()?;
    let behind = has_gaps(&info, group.last).then_some(());
    group.read = match (group.read, behind) {
        (read, None) if read >= 0 => read + found.found.len() as i64,
        _ => super::info::delivered(stream, &info, group.last)?.unwrap_or(-1),
    };
    stream.set_group(name, &group)?;
    if !request.acknowledged {
        for (id, _) in &found.found {
            let pending = Pending {
                delivered: now,
                times: 1,
                consumer: consumer.to_vec(),
            };
            stream.set_pending(name, *id, &pending)?;
        }
    }
    Ok(found)
}

/// Whether entries behind this one have been deleted.
fn has_gaps(info: &Info, from: Id) -> bool {
    info.deleted != Id::MIN && from <= info.deleted
}
