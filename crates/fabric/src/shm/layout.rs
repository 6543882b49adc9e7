//! Where things lie in a member's memory. Offsets and sizes are in words of eight bytes.
//!
//! ```text
//! header | inbox 0: bell, bits, lanes' ends | inbox 1 ... |
//!     data of inbox 0's lanes | data of inbox 1's ... |
//!     long packets of inbox 0's lanes | of inbox 1's ... |
//! ```
//!
//! Inbox 0 is the agents' (or the switch's), the others are requesters'.
//! An inbox has a lane for everyone who may send to it, so a lane has one sender, and which lane is
//! whose needs no agreement. Requesters do not send to other requesters. To itself one does: what
//! its own node serves, its thread answers.
//!
//! A lane is two rings. Packets whose body is longer than a block, those that bring several, go
//! through the second one, whose ends lie beside the first one's; its data gets memory with the
//! first such packet. So who moves no long ranges pays nothing for those who do, and short packets
//! stay in a few cache lines.

use rackmem_wire::{HEADER_LEN, MAX_BODY, MAX_NODES, MAX_REQUESTERS};
use std::ops::Range;

/// Inboxes for requesters, and for the few others who speak for a node.
pub(super) const PORTS: usize = MAX_REQUESTERS + 4;
/// Senders of a member that are no ports: its service thread, and what sends packets late.
pub(super) const SERVICES: usize = 2;
/// Senders of a member: services first, then its ports.
pub(super) const SENDERS: usize = SERVICES + PORTS;

/// Words that two processors do not fight over: a cache line and the one fetched along with it.
const APART: usize = 16;
/// Words of a page.
const PAGE: usize = 512;
/// The least that bodies have room for, so that lists travel well also where blocks are small.
const LEAST_BODY: usize = 4096;
/// What a lane between agents, or one from or to the switch, holds: packets of the largest size,
/// and words at least. All events of a rack may meet in it.
const DEEP: (usize, usize) = (16, 1 << 16);
/// The same of a requester's lane to an agent. A requester drives one event at a time.
const FROM_PORT: (usize, usize) = (4, 1 << 13);
/// The same of an agent's lane to a requester.
const TO_PORT: (usize, usize) = (4, 0);

/// Words of a ring of long packets, a power of two: one packet that is being used, one on its way,
/// and what is left over before the end of the ring. Who sends them waits for an answer to each.
const LONG: usize = (3 * record(MAX_BODY)).next_power_of_two();

/// Words of a record of a packet with so long a body: its length, the packet.
const fn record(body: usize) -> usize {
    1 + (HEADER_LEN + body).div_ceil(8)
}

/// What all members of a rack must agree on to share memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    nodes: usize,
    body: usize,
}

impl Geometry {
    /// Of a rack with so many nodes, [`MAX_NODES`] at most, and blocks of so many bytes.
    pub fn new(nodes: usize, block: usize) -> Geometry {
        Geometry {
            nodes: nodes.clamp(1, MAX_NODES),
            body: block.clamp(LEAST_BODY, MAX_BODY).next_power_of_two(),
        }
    }

    /// Bytes of body that a packet carries which is not long.
    pub fn body(&self) -> usize {
        self.body
    }

    /// Words of a lane's ring of long packets; none where no packet is longer than others.
    fn long(&self) -> usize {
        if self.body < MAX_BODY { LONG } else { 0 }
    }

    /// Nodes and the switch.
    pub(super) fn members(&self) -> usize {
        self.nodes + 1
    }

    /// In one word, for comparing.
    pub(super) fn word(&self) -> u64 {
        (self.nodes as u64) << 32 | self.body as u64
    }

    /// Words of a record with the largest packet that is not long.
    pub(super) fn record(&self) -> usize {
        record(self.body)
    }

    /// Which lane of an inbox of `to` is for a member's sender of this number. Requesters hear the
    /// services, and themselves; the agents hear everybody.
    pub(super) fn lane(
        &self,
        (to, inbox): (usize, usize),
        (member, sender): (usize, usize),
    ) -> Option<usize> {
        let services = self.members() * SERVICES;
        if to >= self.members() || member >= self.members() {
            None
        } else if sender < SERVICES {
            Some(member * SERVICES + sender)
        } else if inbox == 0 && sender < SENDERS {
            Some(services + member * PORTS + sender - SERVICES)
        } else if (to, inbox) == (member, own_inbox(sender)) {
            Some(services)
        } else {
            None
        }
    }

    /// Words of a lane's data, a power of two.
    fn capacity(&self, (packets, words): (usize, usize)) -> usize {
        (self.record().next_power_of_two() * packets).max(words)
    }
}

/// The inbox of who sends by this number: the agents' for services, a port's own.
pub(super) fn own_inbox(number: usize) -> usize {
    (number + 1).saturating_sub(SERVICES)
}

/// Where a member's inboxes lie.
#[derive(Debug)]
pub(super) struct Layout {
    pub geometry: Geometry,
    inboxes: Vec<InboxLayout>,
    /// Words before the data of lanes.
    pub front: usize,
    /// Words in all.
    pub len: usize,
}

/// Where an inbox lies.
#[derive(Clone, Debug, Default)]
pub(super) struct InboxLayout {
    /// The word on which its owner sleeps.
    pub bell: usize,
    /// A bit a lane: something may be there.
    pub bits: Range<usize>,
    /// How many lanes, those of services first.
    pub lanes: usize,
    services: usize,
    ends: usize,
    data: usize,
    /// Words of the data of a service's lane, and of a port's.
    capacity: [usize; 2],
    /// Where the data of long packets begins, and how many words a lane has of it.
    long: (usize, usize),
}

/// The ends of a lane's ring of long packets lie so many words behind those of the other.
pub(super) const LONG_ENDS: usize = 1;

impl InboxLayout {
    /// The word up to which a lane has been read.
    pub fn head(&self, lane: usize) -> usize {
        self.ends + lane * 2 * APART
    }

    /// The word up to which a lane has been written.
    pub fn tail(&self, lane: usize) -> usize {
        self.head(lane) + APART
    }

    pub fn data(&self, lane: usize) -> Range<usize> {
        let [deep, shallow] = self.capacity;
        let (before, len) = match lane.checked_sub(self.services) {
            None => (lane * deep, deep),
            Some(lane) => (self.services * deep + lane * shallow, shallow),
        };
        self.data + before..self.data + before + len
    }

    /// The data of a lane's long packets, if there are such.
    pub fn long(&self, lane: usize) -> Option<Range<usize>> {
        let (first, len) = self.long;
        let start = first + lane * len;
        (len > 0).then_some(start..start + len)
    }
}

impl Layout {
    pub fn new(geometry: Geometry) -> Layout {
        let mut at = APART;
        let mut take = |words: usize| {
            let first = at;
            at += words.next_multiple_of(APART);
            first
        };
        let mut inboxes: Vec<InboxLayout> = Vec::new();
        for inbox in 0..=PORTS {
            let (ports, to_service) = match inbox {
                0 => (geometry.members() * PORTS, DEEP),
                _ => (1, TO_PORT),
            };
            let services = geometry.members() * SERVICES;
            let lanes = services + ports;
            let bell = take(1);
            let words = lanes.div_ceil(64);
            let bits = take(words);
            inboxes.push(InboxLayout {
                bell,
                bits: bits..bits + words,
                lanes,
                services,
                ends: take(lanes * 2 * APART),
                data: 0,
                capacity: [geometry.capacity(to_service), geometry.capacity(FROM_PORT)],
                long: (0, geometry.long()),
            });
        }
        let front = at.next_multiple_of(PAGE);
        let mut len = front;
        for inbox in &mut inboxes {
            inbox.data = len;
            len = inbox.data(inbox.lanes).start;
        }
        for inbox in &mut inboxes {
            inbox.long.0 = len;
            len += inbox.lanes * inbox.long.1;
        }
        Layout {
            geometry,
            inboxes,
            front,
            len,
        }
    }

    /// An inbox, 0 to [`PORTS`].
    pub fn inbox(&self, inbox: usize) -> Option<&InboxLayout> {
        self.inboxes.get(inbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_lanes_fill_pages() {
        for (nodes, block) in [(1, 256), (4, 4096), (4, 16_384), (32, 65_536)] {
            let layout = Layout::new(Geometry::new(nodes, block));
            let mut ranges = Vec::new();
            ranges.push(0..APART);
            for inbox in &layout.inboxes {
                ranges.push(inbox.bell..inbox.bell + 1);
                ranges.push(inbox.bits.clone());
                for lane in 0..inbox.lanes {
                    for end in [inbox.head(lane), inbox.tail(lane)] {
                        ranges.push(end..end + 1);
                        ranges.push(end + LONG_ENDS..end + LONG_ENDS + 1);
                    }
                    if let Some(long) = inbox.long(lane) {
                        assert!(long.start % PAGE == 0 && long.len().is_power_of_two());
                        assert!(long.len() >= 3 * record(MAX_BODY));
                        ranges.push(long);
                    }
                    let data = inbox.data(lane);
                    assert!(data.start % PAGE == 0 && data.len() % PAGE == 0);
                    assert!(data.start >= layout.front && data.len().is_power_of_two());
                    assert!(data.len() >= 2 * layout.geometry.record());
                    ranges.push(data);
                }
            }
            ranges.sort_by_key(|range| range.start);
            assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
            assert!(ranges.last().unwrap().end <= layout.len);
        }
    }

    #[test]
    fn a_body_takes_a_block_where_a_packet_can() {
        assert_eq!(Geometry::new(4, 4096).body(), 4096);
        assert_eq!(Geometry::new(4, 256).body(), LEAST_BODY);
        assert_eq!(Geometry::new(4, 65_536).body(), MAX_BODY);
        // Addresses: memory is what lanes in use have of it.
        assert!(Layout::new(Geometry::new(4, 4096)).len * 8 < 256 << 20);
    }

    #[test]
    fn nobody_shares_a_lane() {
        let geometry = Geometry::new(3, 4096);
        let layout = Layout::new(geometry);
        let all = (0..4).flat_map(|member| (0..SENDERS).map(move |sender| (member, sender)));
        for to in 0..4 {
            for inbox in [0, 1, PORTS] {
                let senders = all.clone();
                let mut lanes: Vec<usize> = senders
                    .filter_map(|from| geometry.lane((to, inbox), from))
                    .collect();
                lanes.sort_unstable();
                assert!(lanes.into_iter().eq(0..layout.inboxes[inbox].lanes));
            }
        }
        assert_eq!(geometry.lane((4, 0), (0, 0)), None);
        assert_eq!(geometry.lane((0, 0), (4, 0)), None);
        assert_eq!(geometry.lane((0, 0), (0, SENDERS)), None);
        let other = SERVICES + 1;
        assert_eq!(geometry.lane((0, 1), (0, other)), None, "another requester");
        assert_eq!(
            geometry.lane((1, 1), (0, SERVICES)),
            None,
            "of another node"
        );
    }
}
