//! Lists from one member to another, in order and completely, over a network that loses,
//! duplicates and reorders.
//!
//! One part is under way to each peer at a time; it is sent until it is acknowledged, less and less
//! often while the peer says nothing: it may have no processor,
//! and what it has not read fills its queue.

use super::pace::Ticks;
use crate::wire::{Copyset, Header, Kind, NodeId, Record, RequesterId, Seq, Tag};
use crate::{Dest, Output};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What a list is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u16)]
pub enum Stream {
    /// The sender's events that the end of the epoch has cut off.
    Open = 0,
    /// The copies that the sender has of the receiver's blocks.
    Copies = 1,
    /// The entries that the switch has of the receiver's blocks.
    Entries = 2,
    /// Nothing: the sender is ready for the new epoch.
    Ready = 3,
}

impl Stream {
    /// All of them.
    pub const ALL: [Stream; 4] = [Stream::Open, Stream::Copies, Stream::Entries, Stream::Ready];
}

/// A member of the rack as a row: nodes by number, then the switch.
const SWITCH_ROW: usize = rackmem_wire::MAX_NODES;
const ROWS: usize = SWITCH_ROW + 1;

fn row(sender: NodeId) -> Option<usize> {
    match sender {
        crate::switch::SWITCH => Some(SWITCH_ROW),
        node => (usize::from(node) < SWITCH_ROW).then_some(usize::from(node)),
    }
}

#[derive(Clone, Hash, Debug)]
struct Part {
    stream: Stream,
    records: Vec<Record>,
    last: bool,
}

#[derive(Clone, Default, Hash, Debug)]
struct Outgoing {
    parts: VecDeque<Part>,
    /// Number of the part in front.
    number: u64,
    sent: bool,
    pace: Ticks,
}

/// The lists of one member to and from all others.
#[derive(Clone, Hash, Debug)]
pub struct Streams {
    me: NodeId,
    epoch: u32,
    fit: usize,
    out: Vec<Outgoing>,
    expected: Vec<u64>,
    /// By stream: whose has come completely, nodes as bits and the switch in the second.
    heard: [(Copyset, bool); Stream::ALL.len()],
}

/// A part that has come for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Of which list.
    pub stream: Stream,
    /// The acknowledgement, in any case.
    pub ack: Output,
    /// Whether its records are new.
    pub fresh: bool,
}

impl Streams {
    /// No lists yet. `fit` records go into a packet.
    pub fn new(me: NodeId, epoch: u32, fit: usize) -> Self {
        Streams {
            me,
            epoch,
            fit: fit.max(1),
            out: alloc::vec![Outgoing::default(); ROWS],
            expected: alloc::vec![0; ROWS],
            heard: Default::default(),
        }
    }

    /// Tells a member a list.
    pub fn tell(&mut self, to: NodeId, stream: Stream, records: &[Record]) {
        let Some(out) = row(to).and_then(|row| self.out.get_mut(row)) else {
            return;
        };
        let parts = records.len().div_ceil(self.fit).max(1);
        for part in 0..parts {
            let from = part * self.fit;
            let to = (from + self.fit).min(records.len());
            out.parts.push_back(Part {
                stream,
                records: records[from..to].to_vec(),
                last: part + 1 == parts,
            });
        }
    }

    /// Whether a list of every one of these has come.
    pub fn heard(&self, stream: Stream, nodes: Copyset, switch: bool) -> bool {
        let (from, from_switch) = self.heard[stream as usize];
        from.covers(nodes) && (from_switch || !switch)
    }

    /// Records that this member has its own report.
    pub fn hear_self(&mut self, stream: Stream) {
        let heard = &mut self.heard[stream as usize].0;
        *heard = heard.with(self.me);
    }

    /// The next packet to send: its records are [`Streams::records`] of where it goes.
    pub fn poll_output(&mut self) -> Option<Output> {
        let row = (0..ROWS).find(|&row| {
            let out = &self.out[row];
            !out.sent && !out.parts.is_empty()
        })?;
        let out = &mut self.out[row];
        out.sent = true;
        let part = out.parts.front()?;
        let me = if self.me == crate::switch::SWITCH {
            0
        } else {
            self.me
        };
        let id = RequesterId {
            node: me,
            slot: part.stream as u16,
        };
        let mut header = Header::request(Kind::Rebuild, self.epoch, Tag(0), id, Seq(out.number));
        header.sender = self.me;
        header.offset = u32::from(part.last);
        let to = if row == SWITCH_ROW {
            Dest::Switch
        } else {
            Dest::Agent(row as NodeId)
        };
        Some(Output::with(to, header, crate::Data::Records))
    }

    /// The records of the packet that is under way to a member.
    pub fn records(&self, to: Dest) -> &[Record] {
        let row = match to {
            Dest::Switch => SWITCH_ROW,
            Dest::Agent(node) => usize::from(node),
            _ => ROWS,
        };
        let part = self.out.get(row).and_then(|out| out.parts.front());
        part.map_or(&[], |part| &part.records)
    }

    /// Sends again whatever is not acknowledged, at once.
    pub fn resend(&mut self) {
        self.out.iter_mut().for_each(|out| out.sent = false);
    }

    /// Sends again what has not been acknowledged for long: the host says so every few round trips.
    pub fn tick(&mut self) {
        let unanswered = self.out.iter_mut().filter(|out| out.sent);
        for out in unanswered.filter(|out| !out.parts.is_empty()) {
            out.sent = !out.pace.tick();
        }
    }

    /// Only these nodes are left. The others have heard all that they needed, and acknowledge
    /// nothing any more.
    pub fn keep(&mut self, nodes: Copyset) {
        for (node, out) in (0..).zip(&mut self.out[..SWITCH_ROW]) {
            if !nodes.contains(node) {
                out.parts.clear();
            }
        }
    }

    /// Whether all reports have been acknowledged.
    pub fn all_told(&self) -> bool {
        self.out.iter().all(|out| out.parts.is_empty())
    }

    /// A part has come.
    pub fn receive(&mut self, header: &Header) -> Option<Received> {
        let from = row(header.sender)?;
        let stream = *Stream::ALL.get(usize::from(header.requester.slot))?;
        let expected = &mut self.expected[from];
        if header.seq.0 > *expected {
            return None;
        }
        let fresh = header.seq.0 == *expected;
        if fresh {
            *expected += 1;
            self.out[from].pace.reset();
        }
        if fresh && header.offset != 0 {
            let heard = &mut self.heard[stream as usize];
            if from == SWITCH_ROW {
                heard.1 = true;
            } else {
                heard.0 = heard.0.with(header.sender);
            }
        }
        let to = if from == SWITCH_ROW {
            Dest::Switch
        } else {
            Dest::Agent(header.sender)
        };
        let ack = Output::new(to, header.answer(Kind::RebuildAck, self.me));
        Some(Received { stream, ack, fresh })
    }

    /// A part has been acknowledged.
    pub fn acknowledged(&mut self, header: &Header) {
        if let Some(out) = row(header.sender).and_then(|row| self.out.get_mut(row))
            && header.seq.0 == out.number
            && out.sent
            && out.parts.pop_front().is_some()
        {
            out.number += 1;
            out.sent = false;
            out.pace.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(n: u64) -> Vec<Record> {
        let record = |i| Record {
            tag: Tag(i << 12),
            word: i,
        };
        (0..n).map(record).collect()
    }

    #[test]
    fn a_list_arrives_once_however_often_its_parts_do() {
        let (mut a, mut b) = (Streams::new(0, 2, 3), Streams::new(1, 2, 3));
        let told = list(7);
        a.tell(1, Stream::Copies, &told);
        a.tell(1, Stream::Ready, &[]);
        let mut got = Vec::new();
        for round in 0..60 {
            a.resend();
            let Some(output) = a.poll_output() else {
                break;
            };
            // Every third packet is lost, all others come twice; every other acknowledgement is
            // lost.
            if round % 3 == 0 {
                continue;
            }
            for _ in 0..2 {
                let records = a.records(output.to).to_vec();
                if let Some(received) = b.receive(&output.header) {
                    if received.fresh {
                        got.extend(records);
                    }
                    let ack = received.ack.header;
                    if round % 2 == 0 {
                        a.acknowledged(&ack);
                    }
                }
            }
        }
        assert!(a.all_told());
        assert_eq!(got, told);
        assert!(b.heard(Stream::Copies, Copyset::of(0), false));
        assert!(b.heard(Stream::Ready, Copyset::of(0), false));
        assert!(!b.heard(Stream::Open, Copyset::of(0), false));
    }

    #[test]
    fn who_has_left_is_told_nothing_any_more() {
        let mut a = Streams::new(0, 2, 3);
        a.tell(1, Stream::Ready, &[]);
        a.tell(2, Stream::Ready, &list(7));
        a.keep(Copyset::of(0).with(1));
        assert_eq!(a.poll_output().unwrap().to, Dest::Agent(1));
        a.resend();
        let last = a.poll_output().unwrap();
        assert!(last.to == Dest::Agent(1) && a.poll_output().is_none());
        a.acknowledged(&last.header.answer(Kind::RebuildAck, 1));
        assert!(a.all_told());
    }

    #[test]
    fn the_switch_is_a_member_too() {
        let mut switch = Streams::new(crate::switch::SWITCH, 5, 10);
        let mut node = Streams::new(31, 5, 10);
        switch.tell(31, Stream::Entries, &list(2));
        let output = switch.poll_output().unwrap();
        assert_eq!(output.to, Dest::Agent(31));
        let received = node.receive(&output.header).unwrap();
        assert_eq!(received.ack.to, Dest::Switch);
        assert!(node.heard(Stream::Entries, Copyset::EMPTY, true));
        switch.acknowledged(&received.ack.header);
        assert!(switch.all_told());
    }

    #[test]
    fn a_peer_that_says_nothing_is_told_less_and_less_often() {
        let (mut a, mut b) = (Streams::new(0, 2, 3), Streams::new(1, 2, 3));
        a.tell(1, Stream::Ready, &[]);
        let copies = |a: &mut Streams, ticks: u32| -> Vec<u32> {
            let sent = |at: &u32| {
                a.tick();
                a.poll_output().map(|_| *at)
            };
            (1..=ticks)
                .collect::<Vec<_>>()
                .iter()
                .filter_map(sent)
                .collect()
        };
        let first = a.poll_output().unwrap();
        assert_eq!(copies(&mut a, 200), [1, 3, 7, 15, 31, 63, 127, 191]);
        // It has something to say itself: it has a processor again.
        b.tell(0, Stream::Open, &[]);
        let news = b.poll_output().unwrap();
        a.receive(&news.header).unwrap();
        assert_eq!(copies(&mut a, 8), [1, 3, 7]);
        // Something old is no news.
        a.receive(&news.header).unwrap();
        assert_eq!(copies(&mut a, 6), []);
        let ack = b.receive(&first.header).unwrap().ack;
        a.acknowledged(&ack.header);
        assert!(a.all_told());
        assert_eq!(copies(&mut a, 200), []);
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut node = Streams::new(1, 5, 10);
        let id = RequesterId { node: 0, slot: 9 };
        let header = Header::request(Kind::Rebuild, 5, Tag(0), id, Seq(0));
        assert_eq!(node.receive(&header), None);
        let far = Header {
            sender: 77,
            ..header
        };
        assert_eq!(node.receive(&far), None);
        node.acknowledged(&far);
    }
}
