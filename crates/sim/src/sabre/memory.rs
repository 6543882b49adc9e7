//! The words of objects, as a section of the home acts by them.

use super::judge::Watch;
use rackmem_proto::sabre::{GRANULE, Memory, Meta, Spot, Words};
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;

/// Granules of an object.
pub const GRANULES: usize = 2;
/// Which write each granule is of.
pub type Value = [u16; GRANULES];
/// Bytes of an object.
pub const LEN: u32 = GRANULES as u32 * GRANULE;

/// One place of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ObjectPlace {
    pub version: u64,
    pub meta: u64,
    pub value: Value,
}

/// The home's memory.
pub type Places = BTreeMap<Tag, ObjectPlace>;

/// See the module.
pub struct HomeWords<'a, J> {
    pub places: &'a mut Places,
    pub judge: &'a mut J,
    /// A writer of the home's process that comes before the last granule of a copy, with its write.
    pub meets: Option<u16>,
}

/// Bytes of a write: all of them say which.
pub fn bytes_of(write: u16, bytes: u32) -> Vec<u8> {
    write.to_le_bytes().repeat(bytes as usize / 2)
}

/// Which writes the granules of these bytes are of.
pub fn writes_of(bytes: &[u8]) -> impl Iterator<Item = u16> {
    let granules = bytes.chunks(GRANULE as usize);
    granules.map(|granule| u16::from_le_bytes([granule[0], granule[1]]))
}

impl<J: Watch> HomeWords<'_, J> {
    fn at(&mut self, object: Tag) -> &mut ObjectPlace {
        self.places.entry(object).or_default()
    }

    /// The writer that comes between: all of its write.
    fn meet(&mut self, object: Tag) {
        let Some(write) = self.meets.take() else {
            return;
        };
        let place = self.at(object);
        if place.version & 1 == 0 && Meta::from_word(place.meta).live {
            let before = place.version;
            (place.value, place.version) = ([write; GRANULES], before + 2);
            let now = *place;
            self.judge.changed(object);
            self.judge.put(write);
            self.judge.released(object, before, &now);
        }
    }
}

impl<J: Watch> Memory for HomeWords<'_, J> {
    fn version(&mut self, object: Tag) -> u64 {
        self.at(object).version
    }

    fn meta(&mut self, object: Tag) -> Meta {
        Meta::from_word(self.at(object).meta)
    }

    fn version_now(&mut self, object: Tag) -> u64 {
        self.at(object).version
    }

    fn take(&mut self, object: Tag, version: u64) -> bool {
        let place = self.at(object);
        let free = place.version == version && version & 1 == 0;
        place.version += u64::from(free);
        free
    }

    fn set_meta(&mut self, object: Tag, meta: Meta) {
        self.at(object).meta = meta.to_word();
        self.judge.changed(object);
    }

    fn release(&mut self, object: Tag, version: u64) {
        let place = self.at(object);
        let before = place.version - 1;
        place.version = version;
        let now = *place;
        self.judge.released(object, before, &now);
    }

    fn open_slab(&mut self, _: Spot) -> bool {
        true
    }
}

impl<J: Watch> Words for HomeWords<'_, J> {
    fn copy_out(&mut self, object: Tag, from: u32, out: &mut [u8]) {
        let all = out.len().div_ceil(GRANULE as usize);
        for (nth, granule) in out.chunks_mut(GRANULE as usize).enumerate() {
            if nth + 1 == all {
                self.meet(object);
            }
            let write = self.at(object).value[(from / GRANULE) as usize + nth];
            granule.copy_from_slice(&bytes_of(write, granule.len() as u32));
        }
    }

    fn copy_in(&mut self, object: Tag, bytes: &[u8]) {
        let place = self.at(object);
        (place.value.iter_mut().zip(writes_of(bytes))).for_each(|(to, write)| *to = write);
        let first = place.value[0];
        self.judge.put(first);
    }

    fn zero(&mut self, object: Tag, _: u32) {
        self.at(object).value = [0; GRANULES];
    }
}
