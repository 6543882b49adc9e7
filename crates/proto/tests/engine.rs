//! A node whose only protocol is that of locks: which part of it takes a packet, and when its part
//! in a new epoch is done.

mod locks;

use locks::Out;
use rackmem_proto::Output;
use rackmem_proto::call::Stream;
use rackmem_proto::engine::{
    AtHome, Change, Gcp, Host, LockHost, LockPart, NodeLock, Note, Part, Payload, Recovery, Told,
    packet, part,
};
use rackmem_proto::flowcc::{Members, Next, Rebuild};
use rackmem_proto::gcp::Regions;
use rackmem_proto::wire::{
    Contract, Copyset, Dest, GlobalStatus, Header, HomeId, Kind, NodeId, Record, RequesterId, Seq,
    Tag,
};
use std::collections::BTreeMap;

const ME: NodeId = 0;
const OTHER: NodeId = 1;
const EPOCH: u32 = 2;

/// What becomes of a lock that the node does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// It has forgotten it.
    Forgotten,
    /// It is made when it is first asked for.
    Implicit,
    /// There is none.
    None,
}

struct Node {
    unknown: Unknown,
    locks: BTreeMap<Tag, NodeLock<u8>>,
    out: Out,
    told: Told,
    recovery: Recovery<()>,
    sent: Vec<Output>,
    notes: Vec<Note>,
    elsewhere: Vec<Part>,
    ignored: u32,
}

impl Node {
    fn new(unknown: Unknown) -> Node {
        Node {
            unknown,
            locks: BTreeMap::new(),
            out: Out::default(),
            told: Told::default(),
            recovery: Recovery::new(4096, 10),
            sent: Vec::new(),
            notes: Vec::new(),
            elsewhere: Vec::new(),
            ignored: 0,
        }
    }

    fn make(&mut self, tag: Tag, is: Unknown) -> bool {
        let part = LockPart {
            node: ME,
            epoch: EPOCH,
            switch: false,
            cohort: 1,
            implicit: is == Unknown::Implicit,
            home: AtHome::Yes,
        };
        let makes = self.unknown == is;
        if makes {
            let lock = NodeLock::new(tag, Regions::default(), part, None);
            self.locks.insert(tag, lock);
        }
        makes
    }
}

impl Host for Node {
    type Protocols = (Gcp,);
    type Bytes = ();

    fn me(&self) -> NodeId {
        ME
    }
    fn epoch(&self) -> u32 {
        EPOCH
    }
    fn incarnation(&self, _: NodeId) -> u32 {
        0
    }
    fn recovery(&mut self, section: impl FnOnce(&mut Recovery<()>, &mut Self)) {
        let mut recovery = std::mem::replace(&mut self.recovery, Recovery::new(0, 0));
        section(&mut recovery, self);
        self.recovery = recovery;
    }
    fn body_len(&self) -> u32 {
        0
    }
    fn records(&self) -> Vec<Record> {
        Vec::new()
    }
    fn send(&mut self, output: &Output, _: Payload<'_, ()>) {
        self.sent.push(*output);
    }
    fn elsewhere(&mut self, part: Part, _: &Header) {
        self.elsewhere.push(part);
    }
    fn note(&mut self, note: Note) {
        self.notes.push(note);
    }
}

impl LockHost for Node {
    type Seat = u8;
    type Fx<'f> = Out;

    fn lock<R>(
        &mut self,
        tag: Tag,
        section: impl FnOnce(&mut NodeLock<u8>, &mut Out) -> R,
    ) -> Option<R> {
        let lock = self.locks.get_mut(&tag)?;
        Some(section(lock, &mut self.out))
    }
    fn each_lock(&mut self, mut section: impl FnMut(&mut NodeLock<u8>, &mut Out)) {
        let locks = self.locks.values_mut();
        locks.for_each(|lock| section(lock, &mut self.out));
    }
    fn told<R>(&mut self, section: impl FnOnce(&mut Told) -> R) -> R {
        section(&mut self.told)
    }
    fn recall(&mut self, tag: Tag) -> bool {
        self.make(tag, Unknown::Forgotten)
    }
    fn hear_of(&mut self, tag: Tag, _: u32) -> bool {
        self.make(tag, Unknown::Implicit)
    }
    fn remove(&mut self, tag: Tag) {
        self.locks.remove(&tag);
    }
    fn unknown(&mut self) {
        self.ignored += 1;
    }
}

/// Of another node, about a lock of this one.
fn asks(kind: Kind) -> Header {
    let requester = RequesterId {
        node: OTHER,
        slot: 0,
    };
    let tag = Tag(HomeId::of(ME).start().0 | 0x40).under(Contract::Locked);
    let header = Header::request(kind, EPOCH, tag, requester, Seq(0));
    Header {
        status: GlobalStatus::Modified,
        ..header
    }
}

/// What no protocol of the node has is for a guest of its host, if it is of a guest's kinds, and
/// otherwise for nobody, which is noted.
#[test]
fn a_packet_that_no_protocol_has_is_a_guests_or_nobodys() {
    let mut guests = 0;
    for &kind in Kind::ALL {
        let header = asks(kind);
        if part(&header) != Part::Protocol || Gcp::takes(kind) {
            continue;
        }
        let mut node = Node::new(Unknown::None);
        packet(&mut node, &header);
        match kind {
            Kind::GuestAsk | Kind::GuestTell => {
                guests += 1;
                assert_eq!((node.elsewhere, node.notes), (vec![Part::Guest], vec![]));
            }
            _ => assert_eq!((node.elsewhere, node.notes), (vec![], vec![Note::OfNobody])),
        }
    }
    assert_eq!(guests, 2);
}

/// Nobody has to ask twice for a lock that its home has forgotten, or makes for who first asks.
#[test]
fn a_request_makes_a_lock_known_and_is_answered_by_it() {
    for (unknown, len) in [(Unknown::Forgotten, 0), (Unknown::Implicit, 16)] {
        let mut node = Node::new(unknown);
        let mut acquire = asks(Kind::Acquire);
        acquire.offset = len;
        packet(&mut node, &acquire);
        assert_eq!((node.locks.len(), node.ignored), (1, 0));
        let sent = &node.out.0;
        assert!(!sent.is_empty() && sent.iter().all(|(to, _)| *to == Dest::Agent(OTHER)));
    }
    let mut node = Node::new(Unknown::None);
    packet(&mut node, &asks(Kind::Acquire));
    assert_eq!((node.locks.len(), node.ignored), (0, 1));
    assert!(node.out.0.is_empty());
}

/// A node that leaves is waited for by nobody: it has gone on, and all that it told has come.
/// What it tells last is lost once.
#[test]
fn a_part_in_an_epoch_is_over_when_the_node_goes_on_and_has_told_all() {
    let members = Members {
        epoch: EPOCH,
        founders: Copyset::of(ME).with(OTHER),
        switch: false,
    };
    let change = Change {
        members,
        settled: 1,
        gone: Copyset::EMPTY,
        switch_lost: false,
    };
    let mut node = Node::new(Unknown::None);
    let mut other = Rebuild::node(OTHER, members, 4096, 10, &[]);
    let proceed = |node: &mut Node| node.recovery(|it, host| _ = it.proceed(host));
    let deliver = |node: &mut Node, other: &mut Rebuild, ready: bool| {
        for output in std::mem::take(&mut node.sent) {
            let last = output.header.requester.slot == Stream::Ready as u16;
            if output.header.kind == Kind::Rebuild && last && !ready {
                continue;
            }
            if let (_, Some(ack)) = other.handle(&output.header, 0) {
                packet(node, &ack.header);
            }
        }
    };
    node.recovery(|it, host| it.begin(change, [], host));
    for _ in 0..10 {
        proceed(&mut node);
        deliver(&mut node, &mut other, false);
        assert!(!node.recovery.all_told());
        match other.next() {
            Next::Collect => other.collect([], Vec::new()),
            Next::Settle => other.settled(),
            Next::Wait | Next::Done => {}
        }
        while let Some(output) = other.poll_output() {
            packet(&mut node, &output.header);
            deliver(&mut node, &mut other, false);
        }
        proceed(&mut node);
    }
    assert!(node.recovery.in_service());
    assert!(other.next() == Next::Wait && !node.recovery.all_told());
    for output in node.recovery.unacknowledged() {
        node.recovery(|it, host| it.send_one(&output, host));
    }
    deliver(&mut node, &mut other, true);
    assert!(other.next() == Next::Done && node.recovery.all_told());
}
