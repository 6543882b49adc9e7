//! What a node tells a tool outside the rack of the copies that it keeps.

use super::{CopyStore, Kept};
use crate::host::agents::Agents;
use crate::host::rows;
use rackmem_fabric::{Net, Receiver};
use rackmem_proto::abd::GROUPS;
use rackmem_proto::wire::Header;

/// In an INSPECT's `offset`: copies are asked for. Its tag is the first group that is.
pub(crate) const ASK_GROUPS: u32 = 3;
/// Bytes of one record: group, config, lines, while it fills how far and how many lines, what its
/// store is, and bytes of that.
pub(crate) const RECORD: usize = 56;
/// In place of how far: it does not fill.
const WHOLE: u64 = u64::MAX;

/// Answers with as many groups as a packet of `room` bytes has room for.
pub(crate) fn inspect(
    agents: &Agents,
    room: usize,
    net: &dyn Net,
    header: &Header,
    reply: &mut dyn Receiver,
) {
    let first = usize::try_from(header.tag.0).unwrap_or(GROUPS);
    let records = (first..GROUPS).filter_map(|group| {
        let kept = agents.replicas.kept(group as u16)?;
        let (at, fetched) = kept.filling.unwrap_or((WHOLE, 0));
        let (store, bytes) = match kept.store {
            CopyStore::Memory => (0, 0),
            CopyStore::Journal(bytes) => (1, bytes),
            CopyStore::Ended => (2, 0),
            CopyStore::Missing => (3, 0),
        };
        let words = [
            group as u64,
            kept.config.into(),
            kept.lines,
            at,
            fetched,
            store,
            bytes,
        ];
        Some(words.map(u64::to_be_bytes).concat())
    });
    rows::answer(agents.node, records, room, net, header, reply);
}

/// The number of a group, and what the node has of it.
pub(crate) fn decode(record: &[u8]) -> Option<(u16, Kept)> {
    if record.len() != RECORD {
        return None;
    }
    let mut words = record
        .as_chunks::<8>()
        .0
        .iter()
        .map(|b| u64::from_be_bytes(*b));
    let mut word = || words.next();
    let group = u16::try_from(word()?).ok()?;
    let config = u32::try_from(word()?).ok()?;
    let (lines, at, fetched) = (word()?, word()?, word()?);
    let kept = Kept {
        config,
        lines,
        filling: (at != WHOLE).then_some((at, fetched)),
        whole: false,
        store: match (word()?, word()?) {
            (0, _) => CopyStore::Memory,
            (1, bytes) => CopyStore::Journal(bytes),
            (2, _) => CopyStore::Ended,
            _ => CopyStore::Missing,
        },
    };
    (usize::from(group) < GROUPS).then_some((group, kept))
}
