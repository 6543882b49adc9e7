//! The home that ships, as a program that packets can be played to.

use super::{Became, Event, Put, ReadHome, ReadsCase, ReadsImplementation, content};
use rackmem_proto::sabre::{
    Book, Defect, GRANULE, HEADER, Home, Memory, Meta, SLAB, Section, Sender, Spot, Values, Words,
    class_bytes,
};
use rackmem_proto::wire::{
    Contract, Flags, GlobalStatus, HomeId, Kind, OWN_LEN, Own, Reason, Tag, decode, encode,
};
use std::collections::BTreeMap;

/// Objects as the home's process has written them.
type Objects = BTreeMap<Tag, Put>;

/// See the module.
pub struct ReadsReference {
    home: Home,
    of: ReadHome,
    objects: Objects,
    epoch: u32,
    broken: Option<Defect>,
}

impl Default for ReadsReference {
    fn default() -> Self {
        let of = ReadHome {
            node: 0,
            base: 0,
            classes: Vec::new(),
        };
        ReadsReference {
            home: home(&of),
            of,
            objects: Objects::new(),
            epoch: 0,
            broken: None,
        }
    }
}

/// A home whose slabs have these classes.
fn home(of: &ReadHome) -> Home {
    let slabs = of.classes.len() as u32;
    let mut book = Book::new(HomeId::of(of.node), of.base, slabs);
    for class in &of.classes {
        let bytes = class_bytes(*class).unwrap_or(HEADER);
        // A region of one slab, which an object opens.
        let region = book.reserve(SLAB);
        let given = region.and_then(|region| book.give(region, bytes - HEADER));
        given.unwrap_or_else(|why| panic!("a slab of class {class}: {why:?}"));
    }
    let mut home = Home::new(book);
    home.kernel_reads = true;
    home
}

/// The address of a place.
pub(super) fn tag(of: &ReadHome, slab: u32, within: u64) -> Tag {
    let start = HomeId::of(of.node).start().under(Contract::Object);
    Tag(start.0 + of.base + u64::from(slab) * SLAB + within)
}

impl ReadsReference {
    /// With a rule broken on purpose.
    pub fn breaking(defect: Defect) -> Self {
        ReadsReference {
            broken: Some(defect),
            ..Self::default()
        }
    }

    /// What becomes of a packet.
    pub fn take(&mut self, bytes: &[u8]) -> Became {
        self.answer(bytes).map_or(Became::Agents, Became::Answer)
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (header, body) = decode(bytes).ok()?;
        // What no reader sends is the agent's.
        let plain = header.flags == Flags::default()
            && header.status == GlobalStatus::Unshared
            && header.reason == Reason::None
            && header.reply_port != 0;
        if !plain || header.kind != Kind::ObjRead || self.epoch == 0 || header.epoch != self.epoch {
            return None;
        }
        let (own, _) = Own::split(body)?;
        let sender = Sender {
            node: self.of.node,
            epoch: self.epoch,
            // More than a granule comes in several packets.
            room: OWN_LEN + GRANULE as usize,
            broken: self.broken,
        };
        let mut values = Values::default();
        let mut section = Section::new(Placed(&self.objects), &mut values, (0, &[]), sender);
        self.home.packet(&header, &own, 0, &mut section);
        let [parcel] = &section.sent[..] else {
            return None;
        };
        let mut answer = parcel.header;
        let said = matches!(answer.reason, Reason::None | Reason::NotModified);
        // An agent begins anew with an object that has become shorter.
        if !said || answer.offset != header.offset {
            return None;
        }
        answer.flags = answer.flags.and(Flags::BY_KERNEL);
        let (own, rest) = parcel.split();
        let mut bytes = encode(&answer, OWN_LEN + rest.len()).to_vec();
        bytes.extend(own.to_bytes());
        bytes.extend(rest);
        Some(bytes)
    }

    /// The case in which these happen, with what becomes of the packets.
    pub fn case((name, about): (&str, &str), home: &ReadHome, events: &[Event]) -> ReadsCase {
        let mut rust = ReadsReference::default();
        rust.start(home);
        let happens = |event: &Event| match event {
            Event::Serve(epoch) => {
                rust.epoch = *epoch;
                event.clone()
            }
            Event::Put(put) => {
                rust.write(put);
                event.clone()
            }
            Event::Packet(bytes, _) => Event::Packet(bytes.clone(), rust.take(bytes)),
        };
        ReadsCase {
            name: name.into(),
            about: about.into(),
            home: home.clone(),
            events: events.iter().map(happens).collect(),
        }
    }

    fn start(&mut self, of: &ReadHome) {
        (self.home, self.of) = (home(of), of.clone());
        (self.objects, self.epoch) = (Objects::new(), 0);
    }

    fn write(&mut self, put: &Put) {
        let at = tag(&self.of, put.slab, put.within.into());
        self.objects.insert(at, *put);
    }
}

impl ReadsImplementation for ReadsReference {
    fn begin(&mut self, home: &ReadHome) -> Result<(), String> {
        self.start(home);
        Ok(())
    }

    fn serve(&mut self, epoch: u32) -> Result<(), String> {
        self.epoch = epoch;
        Ok(())
    }

    fn put(&mut self, put: &Put) -> Result<(), String> {
        self.write(put);
        Ok(())
    }

    fn packet(&mut self, bytes: &[u8]) -> Result<Became, String> {
        Ok(self.take(bytes))
    }
}

/// The home's memory, of which nothing but reads are asked here.
struct Placed<'a>(&'a Objects);

impl Placed<'_> {
    fn at(&self, object: Tag) -> Option<&Put> {
        self.0.get(&object)
    }
}

impl Memory for Placed<'_> {
    fn version(&mut self, object: Tag) -> u64 {
        self.at(object).map_or(0, |put| put.version)
    }
    fn meta(&mut self, object: Tag) -> Meta {
        self.at(object).map_or(Meta::default(), |put| put.meta)
    }
    fn version_now(&mut self, object: Tag) -> u64 {
        self.version(object)
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

impl Words for Placed<'_> {
    fn copy_out(&mut self, object: Tag, from: u32, out: &mut [u8]) {
        let put = self.at(object);
        let bytes = put.map_or(Vec::new(), |put| content(put.meta.len, put.seed));
        let from = bytes.get(from as usize..).unwrap_or_default();
        (out.iter_mut().zip(from)).for_each(|(to, byte)| *to = *byte);
    }
    fn copy_in(&mut self, _: Tag, _: &[u8]) {}
    fn zero(&mut self, _: Tag, _: u32) {}
}
