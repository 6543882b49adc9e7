//! XPENDING, XCLAIM and XAUTOCLAIM: what was delivered and not acknowledged.

use super::group::missing;
use super::{Entries, Fallible, parse_bound, parse_id, view, write_id};
use crate::command::{Call, NOT_INTEGER, Outcome, SYNTAX};
use crate::error::Result;
use crate::memory::Memory;
use crate::number::parse_i64;
use crate::store::Kind;
use crate::store::collection::Collection;
use crate::store::collection::stream::{Consumer, Group, Id, Pending};

/// Entries that XAUTOCLAIM looks at for each that it may claim.
const ATTEMPTS: usize = 10;
/// What one XPENDING or XAUTOCLAIM may be asked for.
const LARGEST_COUNT: i64 = 1 << 24;
/// The largest COUNT that XAUTOCLAIM takes, as Redis has it.
const MOST_CLAIMED: i64 = i64::MAX / 16;

pub(in crate::command) fn xpending<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (key, name) = (call.word(1), call.word(2));
    if call.args.len() == 3 {
        return summary(call, key, name);
    }
    let (mut i, mut idle) = (3, 0);
    if call.args.is(3, "idle") {
        idle = call.integer(4)?.max(0) as u64;
        i = 5;
    }
    if !(i + 3..=i + 4).contains(&call.args.len()) {
        return Err(SYNTAX.into());
    }
    let bounds = (
        parse_bound(call.word(i), false)?,
        parse_bound(call.word(i + 1), true)?,
    );
    let most = call.integer(i + 2)?.clamp(0, LARGEST_COUNT) as usize;
    let (consumer, now) = (call.args.get(i + 3), call.db.now());
    let found = view(call, key, |stream| {
        let Some(group) = stream.group(name)? else {
            return Ok(None);
        };
        let mut found = Vec::new();
        stream.each_pending(&group, bounds, |id, pending| {
            let mine = consumer.is_none_or(|consumer| consumer == pending.consumer);
            if found.len() < most && mine && now.saturating_sub(pending.delivered) >= idle {
                found.push((id, pending));
            }
            found.len() < most
        })?;
        Ok(Some(found))
    })?;
    let found = found.flatten().ok_or_else(|| missing(key, name))?;
    call.reply.array(found.len());
    for (id, pending) in found {
        call.reply.array(4);
        write_id(&mut call.reply, id);
        call.reply.bulk(&pending.consumer);
        call.reply.int(now.saturating_sub(pending.delivered) as i64);
        call.reply.int(pending.times as i64);
    }
    Ok(())
}

fn summary<M: Memory>(call: &mut Call<'_, '_, M>, key: &[u8], name: &[u8]) -> Outcome {
    let found = view(call, key, |stream| {
        let Some(group) = stream.group(name)? else {
            return Ok(None);
        };
        let mut ends: Option<(Id, Id)> = None;
        stream.each_pending(&group, (Id::MIN, Id::MAX), |id, _| {
            ends = Some((ends.map_or(id, |(first, _)| first), id));
            true
        })?;
        Ok(Some((group, ends, stream.consumers(&group)?)))
    })?;
    let (group, ends, consumers) = found.flatten().ok_or_else(|| missing(key, name))?;
    call.reply.array(4);
    call.reply.int(group.pending as i64);
    let Some((first, last)) = ends else {
        call.reply.nil();
        call.reply.nil();
        call.reply.nil_array();
        return Ok(());
    };
    write_id(&mut call.reply, first);
    write_id(&mut call.reply, last);
    let busy = consumers
        .iter()
        .filter(|(_, consumer)| consumer.pending != 0);
    call.reply.array(busy.clone().count());
    for (name, consumer) in busy {
        call.reply.array(2);
        call.reply.bulk(name);
        call.reply.bulk(consumer.pending.to_string().as_bytes());
    }
    Ok(())
}

/// How an entry changes its consumer.
struct Claim<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    /// Only what was delivered so long ago, in ms.
    idle: u64,
    now: u64,
    /// When it counts as delivered.
    delivered: u64,
    /// How often it counts as delivered; `None`: once more.
    times: Option<u64>,
    /// Also what nobody has to acknowledge.
    force: bool,
    only_ids: bool,
    last: Option<Id>,
}

/// What has become of an entry.
enum Claimed {
    Yes,
    No,
    /// It is in the stream no more, and needs no acknowledgement any more.
    Deleted,
}

impl Claim<'_> {
    fn claim<M: Memory>(
        &self,
        stream: &mut Collection<'_, M>,
        group: &Group,
        id: Id,
        found: &mut Entries,
    ) -> Result<Claimed> {
        let before = stream.pending(group, id)?;
        if before.is_none() && !self.force {
            return Ok(Claimed::No);
        }
        let Some(fields) = stream.entry(id)? else {
            stream.acknowledge(self.group, id)?;
            return Ok(Claimed::Deleted);
        };
        let age = |pending: &Pending| self.now.saturating_sub(pending.delivered);
        if before
            .as_ref()
            .is_some_and(|before| age(before) < self.idle)
        {
            return Ok(Claimed::No);
        }
        let times = before.map_or(0, |before| before.times);
        let pending = Pending {
            delivered: self.delivered,
            times: self.times.unwrap_or(times + u64::from(!self.only_ids)),
            consumer: self.consumer.to_vec(),
        };
        stream.set_pending(self.group, id, &pending)?;
        found.push(id, (!self.only_ids).then_some(&fields));
        Ok(Claimed::Yes)
    }

    /// Notes the consumer, which is made if there is none: whether there was.
    fn note<M: Memory>(
        &self,
        stream: &mut Collection<'_, M>,
        group: &Group,
        active: bool,
    ) -> Result<bool> {
        let found = stream.consumer(group, self.consumer)?;
        let was_known = found.is_some();
        let mut known = found.unwrap_or(Consumer::default());
        known.seen = self.now;
        if active {
            known.active = self.now;
        }
        stream.set_consumer(group, self.consumer, &known)?;
        Ok(was_known)
    }
}

fn parse_claim<'a, M: Memory>(call: &Call<'a, '_, M>) -> Fallible<(Claim<'a>, Vec<Id>)> {
    let now = call.db.now();
    let idle = parse_i64(call.word(4));
    let idle = idle.ok_or("ERR Invalid min-idle-time argument for XCLAIM")?;
    let mut claim = Claim {
        group: call.word(2),
        consumer: call.word(3),
        idle: idle.max(0) as u64,
        now,
        delivered: now,
        times: None,
        force: false,
        only_ids: false,
        last: None,
    };
    let (mut i, mut ids) = (5, Vec::new());
    while let Some(id) = call.args.get(i).and_then(|word| parse_id(word, 0).ok()) {
        ids.push(id);
        i += 1;
    }
    while i < call.args.len() {
        let number = |at: usize| call.args.get(at).and_then(parse_i64);
        if call.args.is(i, "force") {
            claim.force = true;
        } else if call.args.is(i, "justid") {
            claim.only_ids = true;
        } else if call.args.is(i, "idle") && i + 1 < call.args.len() {
            let idle = number(i + 1).ok_or("ERR Invalid IDLE option argument for XCLAIM")?;
            claim.delivered = now.saturating_sub(idle.max(0) as u64);
            i += 1;
        } else if call.args.is(i, "time") && i + 1 < call.args.len() {
            let at = number(i + 1).ok_or("ERR Invalid TIME option argument for XCLAIM")?;
            claim.delivered = (at.max(0) as u64).min(now);
            i += 1;
        } else if call.args.is(i, "retrycount") && i + 1 < call.args.len() {
            let times = number(i + 1).filter(|times| *times >= 0);
            let times = times.ok_or("ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
            claim.times = Some(times as u64);
            i += 1;
        } else if call.args.is(i, "lastid") && i + 1 < call.args.len() {
            claim.last = Some(parse_id(call.word(i + 1), 0)?);
            i += 1;
        } else {
            let mut text = b"ERR Unrecognized XCLAIM option '".to_vec();
            text.extend_from_slice(call.word(i));
            text.push(b'\'');
            return Err(text.into());
        }
        i += 1;
    }
    Ok((claim, ids))
}

fn write_claimed<M: Memory>(call: &mut Call<'_, '_, M>, found: &Entries, only_ids: bool) {
    if !only_ids {
        return found.write(&mut call.reply);
    }
    call.reply.array(found.found.len());
    for (id, _) in &found.found {
        write_id(&mut call.reply, *id);
    }
}

pub(in crate::command) fn xclaim<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let (claim, ids) = parse_claim(call)?;
    let key = call.word(1);
    let (found, known) = call.db.change(key, Kind::Stream, |stream| {
        let Some(mut group) = stream.group(claim.group)? else {
            return Ok(Err(missing(key, claim.group)));
        };
        if let Some(last) = claim.last.filter(|last| *last > group.last) {
            group.last = last;
            stream.set_group(claim.group, &group)?;
        }
        let mut found = Entries::default();
        let known = claim.note(stream, &group, false)?;
        for id in &ids {
            claim.claim(stream, &group, *id, &mut found)?;
        }
        if !found.found.is_empty() {
            claim.note(stream, &group, true)?;
        }
        Ok(Ok((found.checked()?, known)))
    })??;
    if !known {
        call.joined.push(key.to_vec());
    }
    write_claimed(call, &found, claim.only_ids);
    Ok(())
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT n] [JUSTID]`.
pub(in crate::command) fn xautoclaim<M: Memory>(call: &mut Call<'_, '_, M>) -> Outcome {
    let now = call.db.now();
    let idle = parse_i64(call.word(4));
    let idle = idle.ok_or("ERR Invalid min-idle-time argument for XAUTOCLAIM")?;
    let from = parse_bound(call.word(5), false)?;
    let (mut most, mut only_ids, mut i) = (100, false, 6);
    while i < call.args.len() {
        if call.args.is(i, "justid") {
            only_ids = true;
        } else if call.args.is(i, "count") && i + 1 < call.args.len() {
            let count = parse_i64(call.word(i + 1)).ok_or(NOT_INTEGER)?;
            if !(1..=MOST_CLAIMED).contains(&count) {
                return Err("ERR COUNT must be > 0".into());
            }
            most = count.min(LARGEST_COUNT) as usize;
            i += 1;
        } else {
            return Err(SYNTAX.into());
        }
        i += 1;
    }
    let claim = Claim {
        group: call.word(2),
        consumer: call.word(3),
        idle: idle.max(0) as u64,
        now,
        delivered: now,
        times: None,
        force: false,
        only_ids,
        last: None,
    };
    let key = call.word(1);
    let (next, found, deleted, known) = call.db.change(key, Kind::Stream, |stream| {
        let Some(group) = stream.group(claim.group)? else {
            return Ok(Err(missing(key, claim.group)));
        };
        let (mut looked, mut next) = (Vec::new(), Id::MIN);
        stream.each_pending(&group, (from, Id::MAX), |id, _| {
            let more = looked.len() < most.saturating_mul(ATTEMPTS);
            match more {
                true => looked.push(id),
                false => next = id,
            }
            more
        })?;
        let known = claim.note(stream, &group, false)?;
        let (mut found, mut deleted) = (Entries::default(), Vec::new());
        for id in looked {
            if found.found.len() + deleted.len() == most {
                next = id;
                break;
            }
            if let Claimed::Deleted = claim.claim(stream, &group, id, &mut found)? {
                deleted.push(id);
            }
        }
        if !found.found.is_empty() {
            claim.note(stream, &group, true)?;
        }
        Ok(Ok((next, found.checked()?, deleted, known)))
    })??;
    if !known {
        call.joined.push(key.to_vec());
    }
    call.reply.array(3);
    write_id(&mut call.reply, next);
    write_claimed(call, &found, only_ids);
    call.reply.array(deleted.len());
    for id in deleted {
        write_id(&mut call.reply, id);
    }
    Ok(())
}
