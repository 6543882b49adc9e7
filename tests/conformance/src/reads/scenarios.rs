//! The cases: what the program answers, and each reason why it does not.

use super::reference::tag;
use super::{Became, Event, Put, ReadHome, ReadsCase, ReadsReference};
use rackmem_proto::sabre::{GRANULE, LINE, Meta, SLAB, class_of, own};
use rackmem_proto::wire::{
    Contract, Flags, GlobalStatus, HEADER_LEN, Header, HomeId, Kind, OWN_LEN, Reason, RequesterId,
    Seq, Tag, encode,
};

/// What the file is about.
pub const ABOUT: &str = "Reads of objects in the kernel of their home's host";

/// The epoch that the home serves in.
pub(super) const EPOCH: u32 = 7;
/// Who asks.
const WHO: RequesterId = RequesterId { node: 1, slot: 9 };
/// Bytes of the longest object in each slab of [`home`].
pub(super) const LENGTHS: [u32; 4] = [48, 1024, 2500, 65_520];
/// Where objects of [`LENGTHS`] lie in their slab.
const SHORT: u64 = 64;

/// The home of all cases.
pub(super) fn home() -> ReadHome {
    ReadHome {
        node: 3,
        base: 5 * SLAB,
        classes: LENGTHS.iter().filter_map(|len| class_of(*len)).collect(),
    }
}

/// An object of generation 4.
pub(super) fn put(slab: u32, within: u64, version: u64, len: u32) -> Put {
    let meta = Meta {
        generation: 4,
        class: home().classes[slab as usize],
        live: true,
        len: len as u16,
    };
    Put {
        slab,
        within: within as u32,
        version,
        meta,
        seed: version as u8 ^ slab as u8,
    }
}

/// A read on its way: what differs from packet to packet.
#[derive(Clone, Copy)]
pub(super) struct Read {
    pub tag: Tag,
    pub epoch: u32,
    pub known: u64,
    pub generation: u32,
    pub offset: u32,
    pub wanted: u32,
    /// Bytes of an object that there is room for.
    pub room: u32,
    pub seq: u64,
}

impl Read {
    /// Of all of an object, whatever its version.
    pub fn of(slab: u32, within: u64) -> Self {
        Read {
            tag: tag(&home(), slab, within),
            epoch: EPOCH,
            known: 0,
            generation: 4,
            offset: 0,
            wanted: 0,
            room: 0,
            seq: 77,
        }
    }

    /// Of one granule, with room for it.
    fn granule(slab: u32, nth: u32, bytes: u32) -> Self {
        Read {
            offset: nth * GRANULE,
            wanted: bytes,
            room: bytes,
            ..Read::of(slab, 0)
        }
    }

    fn header(&self) -> Header {
        Header {
            incarnation: 2,
            offset: self.offset,
            reply_port: 50_123,
            ..Header::request(Kind::ObjRead, self.epoch, self.tag, WHO, Seq(self.seq))
        }
    }

    /// As a datagram's payload, with this header.
    fn under(&self, header: &Header) -> Vec<u8> {
        let lines = (OWN_LEN + self.room as usize).next_multiple_of(LINE as usize);
        let body = if self.room == 0 { OWN_LEN } else { lines };
        let mut bytes = encode(header, body).to_vec();
        bytes.extend(own(self.known, self.generation, self.wanted).to_bytes());
        bytes.resize(HEADER_LEN + body, 0);
        bytes
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.under(&self.header())
    }

    pub fn comes(&self) -> Event {
        comes(self.bytes())
    }
}

/// What becomes of it is filled in by the reference.
fn comes(bytes: Vec<u8>) -> Event {
    Event::Packet(bytes, Became::Agents)
}

/// All cases.
pub fn all() -> Vec<ReadsCase> {
    [answered(), left_to_the_agent(), epochs_and_forms()].concat()
}

fn case(name: &str, about: &str, events: impl IntoIterator<Item = Event>) -> ReadsCase {
    let events: Vec<Event> = [Event::Serve(EPOCH)].into_iter().chain(events).collect();
    ReadsReference::case((name, about), &home(), &events)
}

fn answered() -> Vec<ReadsCase> {
    let last = SLAB - 64;
    let whole = [
        Event::Put(put(0, 0, 2, 8)),
        Event::Put(put(0, last, 4, 48)),
        Event::Put(put(1, 0, 6, 1024)),
        Read::of(0, 0).comes(),
        Read::of(0, last).comes(),
        Read::of(1, 0).comes(),
    ];
    let granules = [(0, 1024), (1, 1024), (2, 452)];
    let granules = granules.map(|(nth, bytes)| Read::granule(2, nth, bytes).comes());
    let last_of_64 = Read::granule(3, 63, 1008);
    let known = |known| Read {
        known,
        ..Read::of(0, SHORT)
    };
    let roomy = Read {
        known: 8,
        ..Read::granule(2, 1, 1024)
    };
    let part = |offset, wanted| Read {
        offset,
        wanted,
        ..Read::of(2, 0)
    };
    vec![
        case(
            "whole-objects",
            "One packet, at the start and at the end of a slab: the version and all bytes",
            whole,
        ),
        case(
            "no-bytes",
            "An object without bytes is its version",
            [Event::Put(put(0, 0, 2, 0)), Read::of(0, 0).comes()],
        ),
        case(
            "granules",
            "A packet a granule, each as long as its answer; the object's length is in all",
            [Event::Put(put(2, 0, 8, 2500))].into_iter().chain(granules),
        ),
        case(
            "last-granule-of-a-slab",
            "The last granule of the longest object ends with its slab",
            [Event::Put(put(3, 0, 8, 65_520)), last_of_64.comes()],
        ),
        case(
            "part-of-a-granule",
            "Whoever asks for one byte gets the granule, and for nothing the rest, if it is one granule",
            [
                Event::Put(put(2, 0, 8, 2048)),
                part(1024, 1).comes(),
                part(1024, 0).comes(),
                part(1024, 1025).comes(),
                part(1024, u32::MAX).comes(),
                part(2048, 1024).comes(),
            ],
        ),
        case(
            "not-modified",
            "A reader that has the version gets no bytes, whatever it asks for",
            [
                Event::Put(put(0, SHORT, 8, 48)),
                Event::Put(put(2, 0, 8, 2500)),
                known(8).comes(),
                roomy.comes(),
                known(6).comes(),
                known(10).comes(),
            ],
        ),
    ]
}

fn left_to_the_agent() -> Vec<ReadsCase> {
    let generation = |generation| Read {
        generation,
        ..Read::of(0, SHORT)
    };
    let freed = Put {
        meta: Meta {
            live: false,
            generation: 5,
            ..put(0, SHORT, 4, 8).meta
        },
        ..put(0, SHORT, 4, 8)
    };
    let reused = Put {
        meta: Meta {
            generation: 5,
            ..put(0, SHORT, 6, 16).meta
        },
        ..put(0, SHORT, 6, 16)
    };
    let part = |offset, wanted| Read {
        offset,
        wanted,
        ..Read::of(2, 0)
    };
    let at = |tag: Tag| Read {
        tag,
        ..Read::of(0, 0)
    };
    let (own_tag, other) = (tag(&home(), 0, 0), HomeId::of(4).start());
    let offset = own_tag.offset();
    vec![
        case(
            "a-writer-is-in",
            "An odd version, also one that the reader says it has",
            [
                Event::Put(put(0, SHORT, 9, 8)),
                Read::of(0, SHORT).comes(),
                Read {
                    known: 9,
                    ..Read::of(0, SHORT)
                }
                .comes(),
            ],
        ),
        case(
            "generations",
            "Freed and reused: the program never says that an object is gone",
            [
                Event::Put(put(0, SHORT, 2, 8)),
                generation(3).comes(),
                generation(u32::MAX).comes(),
                generation(4).comes(),
                Event::Put(freed),
                generation(4).comes(),
                generation(5).comes(),
                Event::Put(reused),
                generation(4).comes(),
                generation(5).comes(),
            ],
        ),
        case(
            "lengths",
            "More than a granule, from within one, from behind the end",
            [
                Event::Put(put(2, 0, 2, 2500)),
                part(0, 0).comes(),
                part(0, 1025).comes(),
                part(1024, 0).comes(),
                part(512, 512).comes(),
                part(3072, 1024).comes(),
                part(u32::MAX, 1).comes(),
                part(0xffff_fc00, 1024).comes(),
                // The same place with fewer bytes.
                Event::Put(put(2, 0, 4, 8)),
                part(1024, 1024).comes(),
                part(0, 1024).comes(),
            ],
        ),
        case(
            "addresses",
            "Between objects, in and behind slabs, of other homes and contracts",
            [
                Event::Put(put(0, 0, 2, 48)),
                at(Tag(own_tag.0 + 1)).comes(),
                at(Tag(own_tag.0 + 32)).comes(),
                // No object has been there.
                at(Tag(own_tag.0 + 64)).comes(),
                Read::of(2, 64).comes(),
                Read::of(4, 0).comes(),
                at(Tag(own_tag.0 - 64)).comes(),
                at(Tag(own_tag.0 - offset)).comes(),
                at(Tag(own_tag.0 | ((1 << 45) - 64))).comes(),
                at(Tag(other.under(Contract::Object).0 + offset)).comes(),
                at(Tag(HomeId::of(3).start().0 + offset)).comes(),
                at(Tag(u64::MAX)).comes(),
                at(own_tag).comes(),
            ],
        ),
    ]
}

fn epochs_and_forms() -> Vec<ReadsCase> {
    let there = Event::Put(put(0, 0, 2, 48));
    let read = Read::of(0, 0);
    let in_epoch = |epoch| Read { epoch, ..read }.comes();
    let (header, good) = (read.header(), read.bytes());
    let under = |header: Header| comes(read.under(&header));
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        comes(bytes)
    };
    let kinds = [
        Kind::ObjData,
        Kind::ObjReadLocked,
        Kind::ObjWrite,
        Kind::ObjAlloc,
        Kind::ObjFree,
        Kind::TxLock,
        Kind::ReadMiss,
    ];
    let kinds = kinds.map(|kind| under(Header { kind, ..header }));
    let short = (0..3).map(|cut| comes(good[..good.len() - 16 * cut - 1].to_vec()));
    let long = comes([&good[..], &[0]].concat());
    let odd_ones = [
        under(Header {
            flags: Flags::DATA,
            ..header
        }),
        under(Header {
            flags: Flags::BY_KERNEL,
            ..header
        }),
        under(Header {
            status: GlobalStatus::Modified,
            ..header
        }),
        under(Header {
            reason: Reason::Torn,
            ..header
        }),
        under(Header {
            reply_port: 0,
            ..header
        }),
        // The magic, the version, a node and a slot that nobody has.
        with(0, 0),
        with(2, 3),
        with(32, 255),
        with(33, 255),
    ];
    vec![
        case(
            "epochs",
            "It answers in the epoch that the home serves in, and in no other",
            [
                there.clone(),
                in_epoch(0),
                in_epoch(EPOCH - 1),
                in_epoch(EPOCH + 1),
                in_epoch(u32::MAX),
                in_epoch(EPOCH),
                Event::Serve(0),
                in_epoch(EPOCH),
                in_epoch(0),
                Event::Serve(EPOCH + 1),
                in_epoch(EPOCH),
                in_epoch(EPOCH + 1),
            ],
        ),
        case(
            "other-kinds",
            "All but a read is the agent's",
            [there.clone()].into_iter().chain(kinds),
        ),
        case(
            "forms",
            "What no reader sends is the agent's, who may refuse it",
            [there]
                .into_iter()
                .chain(short)
                .chain([long])
                .chain(odd_ones)
                .chain([read.comes()]),
        ),
    ]
}
