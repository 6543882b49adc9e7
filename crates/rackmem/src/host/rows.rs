//! Rows of the table of named regions as its home has them, for tools outside the rack.
//!
//! What a row means is the room `region`'s; what is told of it is told by its home, whose memory
//! has each row as it was last published.

use super::agents::Agents;
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Net, Receiver};
use rackmem_proto::wire::{Dest, Flags, Header, Kind, NodeId};
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a row.
pub(crate) const ROW: usize = 128;
/// Rows of the table, and so regions of a rack.
pub(crate) const ROWS: usize = 2048;
/// The first word of a row whose region is there.
pub(crate) const READY: u64 = 2;
/// In an INSPECT's `offset`: rows are asked for, and not locks. Its tag is how many rows to skip.
pub(crate) const ASK_ROWS: u32 = 2;
/// Before each row in the answer: its number.
pub(crate) const NUMBERED: usize = 8 + ROW;

/// Answers with as many rows as a packet of `room` bytes has room for.
/// A node that is not the table's home has none.
pub(crate) fn inspect(
    agents: &Agents,
    room: usize,
    net: &dyn Net,
    header: &Header,
    reply: &mut dyn Receiver,
) {
    let skip = usize::try_from(header.tag.0).unwrap_or(ROWS);
    let here = match &agents.names {
        Some(names) => names.is_open(agents),
        None => agents.node == 0,
    };
    let rows = if here { skip..ROWS } else { 0..0 };
    let rows = rows.filter_map(|number| {
        let row = row(agents, number)?;
        Some([&(number as u64).to_be_bytes()[..], &row].concat())
    });
    answer(agents.node, rows, room, net, header, reply);
}

/// Answers an INSPECT with as many of these records as a packet of `room` bytes has room for.
pub(super) fn answer(
    me: NodeId,
    records: impl Iterator<Item = Vec<u8>>,
    room: usize,
    net: &dyn Net,
    header: &Header,
    reply: &mut dyn Receiver,
) {
    let mut answer = header.answer(Kind::Inspected, me);
    let mut bytes = Vec::new();
    for record in records {
        if bytes.len() + record.len() > room {
            // More follow.
            answer.flags = Flags::DATA;
            break;
        }
        bytes.extend(record);
    }
    let body = match bytes.is_empty() {
        true => Body::None,
        false => Body::Bytes(&bytes),
    };
    net.send(Dest::Requester(header.requester), &answer, body, reply);
}

/// The words of a record of so many. `None` for one of another length.
pub(super) fn words<const N: usize>(record: &[u8]) -> Option<[u64; N]> {
    let (words, rest) = record.as_chunks::<8>();
    let words: &[[u8; 8]; N] = words.try_into().ok().filter(|_| rest.is_empty())?;
    Some(words.map(u64::from_be_bytes))
}

fn row(agents: &Agents, number: usize) -> Option<[u8; ROW]> {
    // Whole: while this home is held, nothing is stored in its memory.
    let block = agents.cache.block_bytes();
    let at = number * ROW;
    let tag = agents.cache.tag_of(agents.memory.first() + at as u64);
    let _whole = agents.homes[agents.shards.of(tag)].lock().whole();
    let words = agents.memory.block(tag)?;
    let words = words.get(at % block / 8..)?.get(..ROW / 8)?;
    if u64::from_le(words[0].load(Relaxed)) != READY {
        return None;
    }
    let mut out = [0; ROW];
    for (bytes, word) in out.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    Some(out)
}
