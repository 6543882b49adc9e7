//! Any bytes as a packet.

use rackmem_wire::{Flags, Header, Kind, RequesterId, Seq, Tag, decode, encode};

/// What decodes must encode to the bytes it came from: no two packets mean the same.
pub fn fuzz(input: &[u8]) {
    let Ok((header, body)) = decode(input) else {
        return;
    };
    let mut packet = encode(&header, body.len()).to_vec();
    packet.extend_from_slice(body);
    assert_eq!(packet, input);
    assert!(header.requester.index() < RequesterId::COUNT);
    assert!(header.tag.home().can_be());
}

/// A packet of every kind, with and without a body.
pub fn seeds() -> Vec<Vec<u8>> {
    let packet = |kind: Kind, body: &[u8]| {
        let requester = RequesterId { node: 3, slot: 1 };
        let mut header = Header::request(kind, 1, Tag(0x0001_0000_0000_2000), requester, Seq(9));
        header.flags = Flags::IN_SWITCH.and(Flags::GRANTED);
        let mut packet = encode(&header, body.len()).to_vec();
        packet.extend_from_slice(body);
        packet
    };
    (Kind::ALL.iter())
        .flat_map(|&kind| [packet(kind, &[]), packet(kind, &[7; 64])])
        .collect()
}
