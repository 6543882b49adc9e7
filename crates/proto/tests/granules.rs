//! How a home is asked whose host's kernel answers reads: a packet a granule, and whole objects
//! where that does not help.

use rackmem_proto::sabre::transaction::Entry;
use rackmem_proto::sabre::{
    ANEW, BURST, Book, Bytes, Command, Effects, GRANULE, Known, Lane, MAX_BYTES, MISSES, Memory,
    Meta, Outcome, Ref, Sabre, Spot, own,
};
use rackmem_proto::wire::{
    Contract, Dest, Flags, Header, HomeId, Kind, Own, Reason, RequesterId, Tag,
};
use std::ops::Range;

/// A reader's node, which has no objects of its own.
#[derive(Default)]
struct Host {
    sent: Vec<(Header, Own, Bytes)>,
    done: Option<Outcome>,
}

impl Memory for Host {
    fn version(&mut self, _: Tag) -> u64 {
        0
    }
    fn meta(&mut self, _: Tag) -> Meta {
        Meta::default()
    }
    fn version_now(&mut self, _: Tag) -> u64 {
        0
    }
    fn take(&mut self, _: Tag, _: u64) -> bool {
        false
    }
    fn set_meta(&mut self, _: Tag, _: Meta) {}
    fn release(&mut self, _: Tag, _: u64) {}
    fn open_slab(&mut self, _: Spot) -> bool {
        false
    }
}

impl Effects for Host {
    fn copy(&mut self, _: Tag, _: u32, _: u32) {}
    fn stage(&mut self, _: RequesterId) {}
    fn put(&mut self, _: RequesterId, _: Tag, _: u32) {}
    fn stage_part(&mut self, _: RequesterId) {}
    fn entries(&mut self, _: RequesterId, _: u32) -> Option<Vec<(Entry, Range<usize>)>> {
        None
    }
    fn put_part(&mut self, _: RequesterId, _: Range<usize>, _: Tag) {}
    fn drop_part(&mut self, _: RequesterId) {}
    fn zero(&mut self, _: Tag, _: u32) {}
    fn gather(&mut self, _: Lane) {}
    fn send(&mut self, _: Dest, header: &Header, own: Own, bytes: Bytes) {
        self.sent.push((*header, own, bytes));
    }
    fn done(&mut self, _: Lane, outcome: Outcome) {
        self.done = Some(outcome);
    }
    fn epoch(&self) -> u32 {
        1
    }
}

const KERNEL: Flags = Flags(Flags::DATA.0 | Flags::BY_KERNEL.0 | Flags::BY_GRANULES.0);
const AGENT: Flags = Flags(Flags::DATA.0 | Flags::BY_GRANULES.0);

struct Reader {
    sabre: Sabre,
    host: Host,
    object: Ref,
}

impl Reader {
    fn new() -> Self {
        let book = Book::new(HomeId::of(1), 0, 4);
        let start = HomeId::of(0).start().under(Contract::Object);
        Reader {
            sabre: Sabre::new((1, 1), book),
            host: Host::default(),
            object: Ref {
                tag: start,
                generation: 3,
            },
        }
    }

    /// What it asks for, by granules or not.
    fn read(&mut self, len: u32) -> Vec<(Header, Own, Bytes)> {
        let known = Known { version: 0, len };
        let command = Command::Read(self.object, known);
        self.host.done = None;
        self.sabre.command(0, command, &mut self.host);
        self.asked()
    }

    fn asked(&mut self) -> Vec<(Header, Own, Bytes)> {
        std::mem::take(&mut self.host.sent)
    }

    /// A segment of an object of `len` bytes that answers this request.
    fn answer(&mut self, header: &Header, flags: Flags, version: u64, (bytes, len): (u32, u32)) {
        let mut answer = header.answer(Kind::ObjData, 0);
        answer.flags = flags;
        let own = own(version, self.object.generation, len);
        self.sabre.packet(&answer, &own, bytes, &mut self.host);
    }

    /// All granules of an object of `len` bytes, as the kernel or the agent sends them.
    fn answer_all(&mut self, asked: &[(Header, Own, Bytes)], flags: Flags, len: u32) {
        for (header, ..) in asked {
            let bytes = (len - header.offset).min(GRANULE);
            self.answer(header, flags, 2, (bytes, len));
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.host.done, Some(Outcome::Read { .. }))
    }

    /// A reader that has heard of the kernel.
    fn taught() -> Self {
        let mut reader = Reader::new();
        let asked = reader.read(8);
        assert_eq!((asked.len(), asked[0].2), (1, Bytes::Nothing));
        reader.answer(&asked[0].0, AGENT, 2, (8, 8));
        assert!(reader.is_done());
        reader
    }
}

#[test]
fn a_home_whose_kernel_answers_is_asked_by_granules_with_room_for_the_answers() {
    let mut reader = Reader::taught();
    let asked = reader.read(2500);
    let of = |row: &(Header, Own, Bytes)| (row.0.offset, row.1.b as u32, row.2);
    let expected = [
        (0, 1024, Bytes::Room(1024)),
        (1024, 1024, Bytes::Room(1024)),
        (2048, 452, Bytes::Room(452)),
    ];
    assert_eq!(asked.iter().map(of).collect::<Vec<_>>(), expected);
    reader.answer_all(&asked, KERNEL, 2500);
    assert!(reader.is_done());
    // Of one of unknown length the first granule tells it.
    let asked = reader.read(0);
    assert_eq!(asked.iter().map(of).collect::<Vec<_>>(), expected[..1]);
    reader.answer_all(&asked, KERNEL, 2500);
    let rest = reader.asked();
    assert_eq!(rest.iter().map(of).collect::<Vec<_>>(), expected[1..]);
    reader.answer_all(&rest, KERNEL, 2500);
    assert!(reader.is_done());
    // What is lost is asked for again, and nothing else is.
    let asked = reader.read(2500);
    reader.answer_all(&[asked[0], asked[2]], KERNEL, 2500);
    let again: Vec<_> = std::iter::repeat_with(|| {
        reader.sabre.tick(&mut reader.host);
        reader.asked()
    })
    .find(|asked| !asked.is_empty())
    .unwrap_or_default();
    assert_eq!(again.iter().map(of).collect::<Vec<_>>(), expected[1..2]);
    assert_eq!(reader.sabre.reads.kernel, 2);
}

#[test]
fn so_many_granules_are_under_way_as_a_socket_has_room_for() {
    let mut reader = Reader::taught();
    let mut asked = reader.read(MAX_BYTES);
    let mut packets = 0;
    while !reader.is_done() {
        assert!(!asked.is_empty() && asked.len() <= BURST as usize);
        packets += asked.len();
        let before_the_last = asked.len() - 1;
        reader.answer_all(&asked[..before_the_last], KERNEL, MAX_BYTES);
        assert_eq!(reader.asked(), []);
        reader.answer_all(&asked[before_the_last..], KERNEL, MAX_BYTES);
        asked = reader.asked();
    }
    assert_eq!(packets, 64);
    // A length that no object has is none.
    assert!(reader.read(u32::MAX).len() <= BURST as usize);
}

/// A writer that does not stop cannot keep a reader from the object: all of it is asked for.
#[test]
fn a_read_that_begins_anew_again_and_again_asks_for_all_at_once() {
    let mut reader = Reader::taught();
    let asked = reader.read(2048);
    for anew in 0..=u64::from(ANEW) {
        reader.answer(&asked[0].0, KERNEL, 2 + 2 * anew, (1024, 2048));
        let again = reader.asked();
        match anew {
            0 => assert_eq!(again, []),
            // The other granule, which is of the older version by now.
            _ if anew < u64::from(ANEW) => assert_eq!(again[0].2, Bytes::Room(1024)),
            _ => {
                let all = (again[0].0.offset, again[0].1.b as u32, again[0].2);
                assert_eq!((again.len(), all), (1, (0, 0, Bytes::Nothing)));
            }
        }
    }
    assert!(!reader.is_done());
}

/// Packets of a reader on the home's own host do not meet the kernel's program.
#[test]
fn a_reader_that_only_agents_answer_asks_for_whole_objects() {
    let mut reader = Reader::taught();
    let mut by_granules = Vec::new();
    for _ in 0..600 {
        let asked = reader.read(2048);
        by_granules.push(asked.len() == 2);
        match asked.len() {
            1 => reader.answer(&asked[0].0, AGENT, 2, (2048, 2048)),
            _ => reader.answer_all(&asked, AGENT, 2048),
        }
        assert!(reader.is_done());
    }
    // The first of them was the read that has told of the kernel.
    let misses = usize::from(MISSES) - 1;
    assert!(by_granules[..misses].iter().all(|by| *by));
    assert!(!by_granules[misses]);
    let tries = by_granules.iter().filter(|by| **by).count();
    assert!(
        (2 * usize::from(MISSES)..=3 * usize::from(MISSES)).contains(&tries),
        "{tries}"
    );
    assert_eq!(reader.sabre.reads.kernel, 0);
    // A home that comes back without the program says so.
    let mut reader = Reader::taught();
    let asked = reader.read(2048);
    let plain = Flags::DATA;
    reader.answer_all(&asked, plain, 2048);
    assert_eq!(reader.read(2048).len(), 1);
}

#[test]
fn a_refusal_ends_the_read_and_late_granules_are_nobodys() {
    let mut reader = Reader::taught();
    let asked = reader.read(2048);
    let refusal = asked[1].0.refuse(Kind::ObjData, 0, Reason::NotModified);
    reader
        .sabre
        .packet(&refusal, &Own::default(), 0, &mut reader.host);
    assert_eq!(
        reader.host.done,
        Some(Outcome::Refused(Reason::NotModified))
    );
    reader.host.done = None;
    reader.answer_all(&asked, KERNEL, 2048);
    assert_eq!(reader.host.done, None);
}
