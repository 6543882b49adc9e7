//! What a node tells a tool outside the rack of the copies that it keeps.

use super::{CopyStore, Kept};
use crate::host::agents::Agents;
use crate::host::rows;
use rackmem_fabric::{Net, Receiver};
use rackmem_proto::abd::GROUPS;
use rackmem_proto::engine::keeping::Sweep;
use rackmem_proto::wire::Header;

/// In an INSPECT's `offset`: copies are asked for. Its tag is the first group that is.
pub(crate) const ASK_GROUPS: u32 = 3;
/// Bytes of one record: group, config, lines, while it fills how far and how many lines, what its
/// store is, and bytes of that; of the sweep, how many blocks it has been through, of how many, and
/// how many it has repaired.
pub(crate) const RECORD: usize = 80;
/// In place of how far: it does not fill. In place of how many blocks: it does not sweep.
const WHOLE: u64 = u64::MAX;
/// In place of a store: the node has no copy.
const NO_COPY: u64 = 4;

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
        let kept = agents.replicas.kept(group as u16);
        let sweep = agents.kept.sweep_of(agents, group as u16);
        if kept.is_none() && sweep.is_none() {
            return None;
        }
        let (at, fetched) = kept.and_then(|kept| kept.filling).unwrap_or((WHOLE, 0));
        let (store, bytes) = match kept.map(|kept| kept.store) {
            Some(CopyStore::Memory) => (0, 0),
            Some(CopyStore::Journal(bytes)) => (1, bytes),
            Some(CopyStore::Ended) => (2, 0),
            Some(CopyStore::Missing) => (3, 0),
            None => (NO_COPY, 0),
        };
        let (config, lines) = kept.map_or((0, 0), |kept| (kept.config, kept.lines));
        let none = Sweep {
            of: WHOLE,
            ..Sweep::default()
        };
        let sweep = sweep.unwrap_or(none);
        let words = [
            group as u64,
            config.into(),
            lines,
            at,
            fetched,
            store,
            bytes,
            sweep.through,
            sweep.of,
            sweep.repaired,
        ];
        Some(words.map(u64::to_be_bytes).concat())
    });
    rows::answer(agents.node, records, room, net, header, reply);
}

/// The number of a group, the copy that the node has of it, and the node's sweep of its home.
pub(crate) fn decode(record: &[u8]) -> Option<(u16, Option<Kept>, Option<Sweep>)> {
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
    let (store, bytes) = (word()?, word()?);
    let kept = Kept {
        config,
        lines,
        filling: (at != WHOLE).then_some((at, fetched)),
        whole: false,
        store: match store {
            0 => CopyStore::Memory,
            1 => CopyStore::Journal(bytes),
            2 => CopyStore::Ended,
            _ => CopyStore::Missing,
        },
    };
    let sweep = Sweep {
        through: word()?,
        of: word()?,
        repaired: word()?,
    };
    let told = (
        group,
        (store != NO_COPY).then_some(kept),
        (sweep.of != WHOLE).then_some(sweep),
    );
    (usize::from(group) < GROUPS).then_some(told)
}
