//! Streams to and from Redis' files.

use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::rdb::{self, Body, StreamBody, StreamId, StreamTail};
use crate::store::collection::Collection;
use crate::store::collection::stream::{Consumer, Group, Id, Info, Pending, encode_fields, fields};

fn there(id: Id) -> StreamId {
    StreamId {
        ms: id.ms,
        seq: id.seq,
    }
}

fn here(id: StreamId) -> Id {
    Id {
        ms: id.ms,
        seq: id.seq,
    }
}

/// A stream as a file has it.
pub(super) fn export<M: Memory>(found: &Collection<'_, M>) -> Result<Body> {
    let mut body = StreamBody::default();
    found.entries(Id::MIN, Id::MAX, |id, words| {
        let mut words = fields(words).1;
        let pairs = std::iter::from_fn(|| Some((words.next()?, words.next()?)));
        body.entry(there(id), pairs);
        true
    })?;
    let info = found.info()?;
    let groups = found.groups()?;
    let groups = groups.iter().map(|(name, one)| group(found, name, one));
    Ok(body.finish(&StreamTail {
        last: there(info.last),
        max_deleted: there(info.deleted),
        added: info.added,
        groups: groups.collect::<Result<_>>()?,
    }))
}

fn group<M: Memory>(found: &Collection<'_, M>, name: &[u8], group: &Group) -> Result<rdb::Group> {
    let consumers = found.consumers(group)?;
    let mut pending = Vec::new();
    found.each_pending(group, (Id::MIN, Id::MAX), |id, one| {
        // They come by their names in order.
        let by_name = |(name, _): &(Vec<u8>, Consumer)| name.cmp(&one.consumer);
        if let Ok(consumer) = consumers.binary_search_by(by_name) {
            pending.push(rdb::Pending {
                id: there(id),
                consumer,
                delivered: one.delivered,
                deliveries: one.times,
            });
        }
        true
    })?;
    let consumer = |(name, consumer): (Vec<u8>, Consumer)| rdb::Consumer {
        name,
        seen: consumer.seen,
        active: Some(consumer.active).filter(|active| *active != 0),
    };
    Ok(rdb::Group {
        name: name.to_vec(),
        last: there(group.last),
        read: u64::try_from(group.read).ok(),
        pending,
        consumers: consumers.into_iter().map(consumer).collect(),
    })
}

/// Puts a part of a stream behind what is there.
pub(super) fn fill<M: Memory>(found: &mut Collection<'_, M>, part: &rdb::Stream) -> Result<()> {
    for entry in &part.entries {
        let words: Vec<&[u8]> = entry
            .fields
            .iter()
            .flat_map(|(name, value)| [name.as_slice(), value.as_slice()])
            .collect();
        let fields = encode_fields(words.into_iter());
        if fields.len() > crate::MAX_VALUE {
            return Err(Error::ValueTooLong);
        }
        found.add_entry(here(entry.id), &fields)?;
    }
    let Some(tail) = &part.tail else {
        return Ok(());
    };
    found.set_info(&Info {
        last: here(tail.last),
        deleted: here(tail.max_deleted),
        added: tail.added,
        groups: 0,
    })?;
    tail.groups
        .iter()
        .try_for_each(|group| fill_group(found, group))
}

fn fill_group<M: Memory>(found: &mut Collection<'_, M>, group: &rdb::Group) -> Result<()> {
    let read = group.read.and_then(|read| i64::try_from(read).ok());
    found.add_group(&group.name, here(group.last), read.unwrap_or(-1))?;
    let Some(made) = found.group(&group.name)? else {
        return Ok(());
    };
    for consumer in &group.consumers {
        let new = Consumer {
            seen: consumer.seen,
            active: consumer.active.unwrap_or(0),
            pending: 0,
        };
        found.set_consumer(&made, &consumer.name, &new)?;
    }
    for one in &group.pending {
        let Some(consumer) = group.consumers.get(one.consumer) else {
            continue;
        };
        let pending = Pending {
            delivered: one.delivered,
            times: one.deliveries,
            consumer: consumer.name.clone(),
        };
        found.set_pending(&group.name, here(one.id), &pending)?;
    }
    Ok(())
}
