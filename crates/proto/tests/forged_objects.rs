//! Packets to a home of objects, one by one: calls for room, and what no requester sends, segments
//! of one call that disagree.

use rackmem_proto::sabre::transaction::Entry;
use rackmem_proto::sabre::{
    Book, Bytes, Effects, Lane, Memory, Meta, Outcome, SLAB, Sabre, Spot, own,
};
use rackmem_proto::wire::{
    Contract, Dest, Header, HomeId, Kind, Own, Reason, RequesterId, Seq, Tag,
};
use std::ops::Range;

/// One object of a home.
#[derive(Default)]
struct Host {
    version: u64,
    meta: Meta,
    staged: usize,
    /// Bytes that a write has put, of those that had come.
    put: Option<(u32, usize)>,
    sent: Vec<Header>,
    segment: usize,
}

impl Memory for Host {
    fn version(&mut self, _: Tag) -> u64 {
        self.version
    }
    fn meta(&mut self, _: Tag) -> Meta {
        self.meta
    }
    fn version_now(&mut self, _: Tag) -> u64 {
        self.version
    }
    fn take(&mut self, _: Tag, version: u64) -> bool {
        let free = self.version == version;
        self.version += u64::from(free);
        free
    }
    fn set_meta(&mut self, _: Tag, meta: Meta) {
        self.meta = meta;
    }
    fn release(&mut self, _: Tag, version: u64) {
        self.version = version;
    }
    fn open_slab(&mut self, _: Spot) -> bool {
        true
    }
}

impl Effects for Host {
    fn copy(&mut self, _: Tag, _: u32, _: u32) {}
    fn stage(&mut self, _: RequesterId) {
        self.staged += self.segment;
    }
    fn put(&mut self, _: RequesterId, _: Tag, bytes: u32) {
        self.put = Some((bytes, self.staged));
    }
    fn stage_part(&mut self, _: RequesterId) {}
    fn entries(&mut self, _: RequesterId, _: u32) -> Option<Vec<(Entry, Range<usize>)>> {
        None
    }
    fn put_part(&mut self, _: RequesterId, _: Range<usize>, _: Tag) {}
    fn drop_part(&mut self, _: RequesterId) {}
    fn zero(&mut self, _: Tag, _: u32) {}
    fn gather(&mut self, _: Lane) {}
    fn send(&mut self, _: Dest, header: &Header, _: Own, _: Bytes) {
        self.sent.push(*header);
    }
    fn done(&mut self, _: Lane, _: Outcome) {}
    fn epoch(&self) -> u32 {
        1
    }
}

/// A segment of a call that says of itself that the value is longer than all others said: what has
/// come of the shorter one is no part of it, and nothing is written that has not come.
#[test]
fn segments_of_one_call_that_disagree_write_nothing() {
    let mut host = Host::default();
    let mut sabre = Sabre::new((0, 1), Book::new(HomeId::of(0), 0, 4));
    let region = sabre.home.book.reserve(SLAB).unwrap();
    let object = sabre.home.give(region, 3000, &mut host).unwrap();
    let requester = RequesterId { node: 1, slot: 0 };
    let mut write = |len: u32, offset: u32, bytes: u32| {
        let mut header = Header::request(Kind::ObjWrite, 1, object.tag, requester, Seq(7));
        (header.incarnation, header.offset, header.sender) = (1, offset, 1);
        host.segment = bytes as usize;
        sabre.packet(&header, &own(0, object.generation, len), bytes, &mut host);
        host.put.take()
    };
    // The first granule of two.
    assert_eq!(write(2048, 0, 1024), None);
    // Forged: of one byte, and of none with the granule that is here.
    assert_eq!(write(1, 0, 1), None);
    assert_eq!(write(1000, 0, 0), None);
    assert_eq!(write(3000, 2048, 952), None);
    assert_eq!(write(2048, 1024, 1024), Some((2048, 2048)));
}

/// One kind of packet asks for a region and for an object in one: how many bytes are to be reserved
/// says which.
#[test]
fn a_region_is_reserved_and_an_object_is_given_in_it() {
    let mut host = Host::default();
    let mut sabre = Sabre::new((0, 1), Book::new(HomeId::of(0), 0, 4));
    let requester = RequesterId { node: 1, slot: 0 };
    let mut ask = |seq, tag, what: Own| {
        let mut header = Header::request(Kind::ObjAlloc, 1, tag, requester, Seq(seq));
        header.incarnation = 1;
        sabre.packet(&header, &what, 0, &mut host);
        let ack = host.sent.pop().expect("an answer");
        assert_eq!(ack.reason, Reason::None);
        (ack.tag, host.meta)
    };
    let any = HomeId::of(0).start().under(Contract::Object);
    let (region, meta) = ask(1, any, own(SLAB, 0, 0));
    assert!(!meta.live);
    let (first, meta) = ask(2, region, own(0, 0, 100));
    assert_eq!((meta.live, meta.len), (true, 100));
    let (second, _) = ask(3, region, own(0, 0, 100));
    assert!(sabre.home.book.spot(first).is_ok() && sabre.home.book.spot(second).is_ok());
    assert_ne!(first, second);
}
