//! What a node tells a tool outside the rack of its objects, and of the ways its reads go.

use crate::data_plane::kernel::reads::KernelReadCounts;
use crate::host::agents::Agents;
use crate::host::metrics::ObjectCounts;
use crate::host::rows;
use rackmem_fabric::{Net, Receiver};
use rackmem_proto::wire::Header;

/// In an INSPECT's `offset`: objects are asked for. Its tag is how many records to skip.
pub(crate) const ASK_OBJECTS: u32 = 4;
/// Words of the one record that there is.
const WORDS: usize = 24;
/// Its bytes.
pub(crate) const RECORD: usize = WORDS * 8;

/// Answers with the node's counts.
pub(crate) fn inspect(
    agents: &Agents,
    room: usize,
    net: &dyn Net,
    header: &Header,
    reply: &mut dyn Receiver,
) {
    let all = (header.tag.0 == 0).then(|| encode(&agents.objects.metrics()));
    rows::answer(agents.node, all.into_iter(), room, net, header, reply);
}

fn encode(counts: &ObjectCounts) -> Vec<u8> {
    let kernel = counts.in_kernel.unwrap_or_default();
    let words: [u64; WORDS] = [
        counts.live,
        counts.slabs.into(),
        counts.here,
        counts.mapped,
        counts.elsewhere,
        counts.asked,
        counts.rounds,
        counts.fallbacks,
        counts.torn,
        counts.locked,
        counts.exclusive,
        counts.not_modified,
        counts.conflicts,
        counts.by_kernel,
        counts.by_agent,
        // Nothing, or a program that does not answer at this time, or one that does.
        counts
            .in_kernel
            .map_or(0, |kernel| 1 + u64::from(kernel.serves)),
        kernel.answered,
        kernel.not_modified,
        kernel.locked,
        kernel.torn,
        kernel.gone,
        kernel.long,
        kernel.elsewhere,
        kernel.no_room,
    ];
    words.map(u64::to_be_bytes).concat()
}

/// From such a record.
pub(crate) fn decode(record: &[u8]) -> Option<ObjectCounts> {
    if record.len() != RECORD {
        return None;
    }
    let mut words = record.as_chunks::<8>().0.iter();
    let mut word = || words.next().map(|word| u64::from_be_bytes(*word));
    Some(ObjectCounts {
        live: word()?,
        slabs: u32::try_from(word()?).ok()?,
        here: word()?,
        mapped: word()?,
        elsewhere: word()?,
        asked: word()?,
        rounds: word()?,
        fallbacks: word()?,
        torn: word()?,
        locked: word()?,
        exclusive: word()?,
        not_modified: word()?,
        conflicts: word()?,
        by_kernel: word()?,
        by_agent: word()?,
        in_kernel: match (word()?, &mut word) {
            (0, _) => None,
            (state, word) => Some(KernelReadCounts {
                serves: state == 2,
                answered: word()?,
                not_modified: word()?,
                locked: word()?,
                torn: word()?,
                gone: word()?,
                long: word()?,
                elsewhere: word()?,
                no_room: word()?,
            }),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut words: Vec<u64> = (1..=WORDS as u64).collect();
        for state in [1, 2] {
            words[15] = state;
            let record: Vec<u8> = words.iter().copied().flat_map(u64::to_be_bytes).collect();
            let counts = decode(&record).unwrap();
            assert_eq!((counts.live, counts.slabs, counts.conflicts), (1, 2, 13));
            let kernel = counts.in_kernel.unwrap();
            assert_eq!((kernel.serves, kernel.no_room), (state == 2, WORDS as u64));
            assert_eq!(encode(&counts), record);
        }
        words[15..].fill(0);
        let record: Vec<u8> = words.iter().copied().flat_map(u64::to_be_bytes).collect();
        let counts = decode(&record).unwrap();
        assert_eq!((counts.by_agent, counts.in_kernel), (15, None));
        assert_eq!(encode(&counts), record);
        assert_eq!(decode(&record[1..]), None);
    }
}
