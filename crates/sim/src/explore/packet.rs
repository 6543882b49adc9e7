//! Packets in flight, and blocks as explorers see them: two words for the bytes,
//! so that one can be torn.

use crate::site::{Form, Load};
use rackmem_proto::membership::host;
use rackmem_proto::wire::{Dest, Header, HomeId, Kind, Record, RequesterId, Seq};
use rackmem_proto::{CHUNK, Output};

/// Bytes of a block. One block is a whole chunk, so that a home's directory has one entry for each.
pub const BLOCK_BYTES: u32 = CHUNK as u32;
/// Words that stand for them.
pub const WORDS: usize = 2;
/// Bytes that a word stands for: half of the granules.
pub const WORD_BYTES: u32 = BLOCK_BYTES / WORDS as u32;

/// Records that fit into a packet of a rebuild: few, so that lists come in parts.
pub const FIT: usize = 2;

/// A block's words. A write stores its own number in both.
pub type Value = [u8; WORDS];

/// What a packet carries behind its header: so many words.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Body {
    words: Value,
    len: u8,
    /// What a packet of a rebuild tells.
    records: [Record; FIT],
    told: u8,
}

impl Form for Value {
    type Body = Body;

    fn zeroes() -> Self {
        [0; WORDS]
    }

    fn put(&mut self, offset: u32, body: &Body) {
        let at = (offset / WORD_BYTES) as usize;
        let words = &body.words[..usize::from(body.len)];
        if let Some(part) = self.get_mut(at..at + words.len()) {
            part.copy_from_slice(words);
        }
    }

    fn operate(&mut self, body: &Body) -> u64 {
        let found = self[0];
        self.put(0, body);
        found.into()
    }

    fn len(body: &Body) -> u32 {
        u32::from(body.len) * WORD_BYTES
    }

    fn records(body: &Body) -> Vec<Record> {
        body.records[..usize::from(body.told)].to_vec()
    }
}

/// One packet on its way to one receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExplorerPacket {
    /// To whom; never a multicast.
    pub to: Dest,
    /// What.
    pub header: Header,
    /// With which words.
    pub body: Body,
}

impl ExplorerPacket {
    /// The requester that takes it as an answer to an event, if one does.
    pub fn answers(&self) -> Option<(RequesterId, Seq)> {
        match self.to {
            Dest::Requester(id) => Some((id, self.header.seq)),
            Dest::Agent(_) if self.header.kind == Kind::WriteBackAck => {
                Some((self.header.requester, self.header.seq))
            }
            _ => None,
        }
    }
}

/// The packet of a rebuild that tells these records.
pub fn telling(output: &Output, records: &[Record]) -> ExplorerPacket {
    let mut body = Body::default();
    for (to, from) in body.records.iter_mut().zip(records) {
        *to = *from;
    }
    body.told = records.len().min(FIT) as u8;
    let Output { to, header, .. } = *output;
    ExplorerPacket { to, header, body }
}

/// The packets that an output stands for, with a block's words in so many segments. One that is
/// stored travels whole, and its offset is not where it belongs.
pub fn packets(output: &Output, load: &Load<Value>, segments: u8, into: &mut Vec<ExplorerPacket>) {
    if let Load::Records(records) = load {
        return into.push(telling(output, records));
    }
    let segments = match output.header.kind {
        Kind::Store | Kind::Operate => 1,
        _ => segments.clamp(1, WORDS as u8),
    };
    // Node 0 keeps what groups keep.
    let served_by = |home: HomeId| host(home).or(Some(0));
    for (to, header) in output.copies(served_by) {
        let Load::Block(words) = load else {
            let body = Body::default();
            into.push(ExplorerPacket { to, header, body });
            continue;
        };
        let len = WORDS / usize::from(segments);
        for (nth, part) in words.chunks(len).enumerate() {
            let mut body = Body::default();
            body.words[..part.len()].copy_from_slice(part);
            body.len = part.len() as u8;
            let offset = header.offset + (nth * len) as u32 * WORD_BYTES;
            let header = Header { offset, ..header };
            into.push(ExplorerPacket { to, header, body });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::wire::{Copyset, Tag};

    #[test]
    fn segments_make_a_block_again() {
        let id = RequesterId { node: 1, slot: 0 };
        let header = Header::request(Kind::Ack, 1, Tag(0), id, Seq(1));
        let output = Output::new(Dest::Requester(id), header);
        let mut sent = Vec::new();
        packets(&output, &Load::Block([3, 4]), 2, &mut sent);
        assert_eq!(sent.len(), 2);
        let mut block = [0, 0];
        for packet in sent.iter().rev() {
            assert_eq!(Value::len(&packet.body), WORD_BYTES);
            block.put(packet.header.offset, &packet.body);
        }
        assert_eq!(block, [3, 4]);
        assert_eq!(sent[0].answers(), Some((id, Seq(1))));
    }

    #[test]
    fn a_multicast_is_a_packet_for_each() {
        let id = RequesterId { node: 0, slot: 0 };
        let header = Header::request(Kind::WriteMiss, 1, Tag(0), id, Seq(1));
        let nodes = Copyset(0b110);
        let to = Dest::Agents {
            nodes,
            provider: Some(2),
        };
        let mut sent = Vec::new();
        packets(&Output::new(to, header), &Load::Nothing, 1, &mut sent);
        let to: Vec<Dest> = sent.iter().map(|packet| packet.to).collect();
        assert_eq!(to, [Dest::Agent(1), Dest::Agent(2)]);
    }
}
