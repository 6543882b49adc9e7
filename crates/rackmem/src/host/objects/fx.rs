//! The words of this home's objects, as a section acts by them.

use super::{Kept, Objects};
use crate::bytes::objects::{copy_in, copy_out};
use crate::bytes::whole;
use rackmem_proto::sabre::{Memory, Meta, Section, Spot, Words};
use rackmem_proto::wire::Tag;
use std::sync::atomic::AtomicU64;

/// What a section acts by.
pub(crate) type Fx<'f> = Section<'f, HomeWords<'f>>;

/// See the module.
pub(crate) struct HomeWords<'f>(pub &'f Objects, pub(super) &'f Kept);

impl<'f> HomeWords<'f> {
    fn words(&self, object: Tag) -> &'f [AtomicU64] {
        let memory = match object.home().group() {
            None => Some(&**self.0.memory()),
            Some(group) => self.1.get(usize::from(group)).and_then(Option::as_ref),
        };
        let words = memory.and_then(|memory| memory.object(object));
        words.unwrap_or_default()
    }
}

impl Memory for HomeWords<'_> {
    fn version(&mut self, object: Tag) -> u64 {
        whole::version(self.words(object))
    }

    fn meta(&mut self, object: Tag) -> Meta {
        whole::meta(self.words(object))
    }

    fn version_now(&mut self, object: Tag) -> u64 {
        whole::version_now(self.words(object))
    }

    fn take(&mut self, object: Tag, version: u64) -> bool {
        whole::take(self.words(object), version)
    }

    fn set_meta(&mut self, object: Tag, meta: Meta) {
        whole::set_meta(self.words(object), meta);
    }

    fn release(&mut self, object: Tag, version: u64) {
        whole::release(self.words(object), version);
    }

    fn open_slab(&mut self, spot: Spot) -> bool {
        self.0.memory().open_slab(spot)
    }
}

impl Words for HomeWords<'_> {
    fn copy_out(&mut self, object: Tag, from: u32, out: &mut [u8]) {
        let at = whole::HEADER_WORDS + from as usize / 8;
        copy_out(out, self.words(object).get(at..).unwrap_or_default());
    }

    fn copy_in(&mut self, object: Tag, bytes: &[u8]) {
        if let Some(to) = self.words(object).get(whole::HEADER_WORDS..) {
            copy_in(to, bytes);
        }
    }

    fn zero(&mut self, object: Tag, bytes: u32) {
        let words = self.words(object).get(whole::HEADER_WORDS..);
        let count = bytes.div_ceil(8) as usize;
        let bytes = words.and_then(|words| words.get(..count));
        bytes.into_iter().for_each(rackmem_fabric::words::zero);
    }
}
