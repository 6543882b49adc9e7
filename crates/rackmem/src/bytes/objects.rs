//! The memory of a home that has objects: slabs, and in front of them what class each slab is of,
//! so that whoever has this memory finds an object without asking anybody.

use super::pages::Pages;
use super::whole;
use rackmem_fabric::shm::{FRONT, Lent, Member, Published, Seen};
use rackmem_fabric::words;
use rackmem_proto::sabre::{HEADER, Meta, SLAB, Spot, class_bytes};
use rackmem_proto::wire::{Contract, HomeId, Tag};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Bytes of a page, which slabs begin at.
const PAGE: usize = 4096;
const SLAB_WORDS: usize = SLAB as usize / 8;

/// Words in front: what the file's own are ([`rackmem_fabric::shm`]), and ours behind them.
const BASE: usize = FRONT;
const SLABS: usize = FRONT + 1;
const IS_OURS: usize = FRONT + 2;
/// Written last.
const OURS: u64 = u64::from_be_bytes(*b"objects\x01");

/// Where the words are.
enum Held {
    /// In this process.
    Pages(Pages),
    /// In this process, and others of the host read them.
    Published(Published),
    /// In another process of the host.
    Seen(Seen),
    /// In this process, and a program in the kernel reads them.
    Lent(Arc<Lent>),
}

impl Held {
    fn words(&self) -> &[AtomicU64] {
        match self {
            Held::Pages(pages) => pages.words(),
            Held::Published(published) => published.words(),
            Held::Seen(seen) => seen.words(),
            Held::Lent(lent) => lent.words(),
        }
    }
}

/// See the module.
pub(crate) struct ObjectMemory {
    home: HomeId,
    /// The offset at which it begins: earlier lives of the home had what is below.
    base: u64,
    slabs: u32,
    /// Words before the first slab.
    front: usize,
    held: Held,
    /// The life of its home is over, and the rack knows.
    over: AtomicBool,
}

/// Words before the first slab: the front, and the classes of so many slabs.
const fn front(slabs: u32) -> usize {
    (PAGE + slabs as usize * 8).next_multiple_of(PAGE) / 8
}

/// The word of a slab's class.
const fn class_at(slab: usize) -> usize {
    PAGE / 8 + slab
}

/// Words of memory with so many slabs.
const fn words_of(slabs: u32) -> usize {
    front(slabs) + slabs as usize * SLAB_WORDS
}

/// What this host's processes call the memory of a home.
fn name_of(home: HomeId) -> String {
    format!("objects-{home}")
}

impl ObjectMemory {
    /// Of a home with so many slabs, none of which has a class. What is not touched costs nothing.
    /// Where processes share memory, others can read it.
    pub fn new(home: HomeId, base: u64, slabs: u32, host: Option<&Arc<Member>>) -> Self {
        let words = words_of(slabs);
        let publish = |member: &Arc<Member>| {
            let published = member.publish(&name_of(home), words as u64 * 8)?;
            published.reserve(0..front(slabs))?;
            std::io::Result::Ok(published)
        };
        // Without room for it, others ask by packets.
        let published = host.and_then(|member| publish(member).ok());
        let held = match published {
            Some(published) => Held::Published(published),
            None => Held::Pages(Pages::new(words * 8)),
        };
        let all = held.words();
        all[BASE].store(base, Relaxed);
        all[SLABS].store(slabs.into(), Relaxed);
        all[IS_OURS].store(OURS, Release);
        ObjectMemory {
            home,
            base,
            slabs,
            front: front(slabs),
            held,
            over: AtomicBool::new(false),
        }
    }

    /// The same in memory that a program in the kernel reads, zeros so far. What is in front of its
    /// slabs is as long as one.
    pub fn lent(home: HomeId, base: u64, slabs: u32, lent: Arc<Lent>) -> Self {
        ObjectMemory {
            home,
            base,
            slabs,
            front: SLAB_WORDS,
            held: Held::Lent(lent),
            over: AtomicBool::new(false),
        }
    }

    /// The memory of a home of another process of this host.
    pub fn of_other(home: HomeId, host: &Arc<Member>) -> Option<Self> {
        let seen = host.see(&name_of(home)).ok()?;
        let words = seen.words();
        if words.len() <= IS_OURS || words[IS_OURS].load(Acquire) != OURS {
            return None;
        }
        let slabs = u32::try_from(words[SLABS].load(Relaxed)).ok()?;
        let base = words[BASE].load(Relaxed);
        (words.len() >= words_of(slabs)).then_some(ObjectMemory {
            home,
            base,
            slabs,
            front: front(slabs),
            held: Held::Seen(seen),
            over: AtomicBool::new(false),
        })
    }

    /// Where it begins.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// The rack goes on without this life of its home.
    pub fn end(&self) {
        self.over.store(true, SeqCst);
    }

    /// Other processes find it no more. Those of this one still can use it.
    pub fn withdraw(&self) {
        if let Held::Published(published) = &self.held {
            published.withdraw();
        }
    }

    /// Whether another process of the host had it and is known to be dead.
    pub fn is_closed(&self) -> bool {
        matches!(&self.held, Held::Seen(seen) if seen.is_closed())
    }

    fn slab_of(&self, tag: Tag) -> Option<usize> {
        if !tag.is_under(Contract::Object) || tag.home() != self.home {
            return None;
        }
        let slab = tag.offset().checked_sub(self.base)? / SLAB;
        (slab < u64::from(self.slabs)).then_some(slab as usize)
    }

    /// A slab has objects of this class from here on. Says whether there is memory for it.
    pub fn open_slab(&self, spot: Spot) -> bool {
        let Some(slab) = self.slab_of(spot.tag) else {
            return false;
        };
        if let Held::Published(published) = &self.held {
            let first = self.front + slab * SLAB_WORDS;
            if published.reserve(first..first + SLAB_WORDS).is_err() {
                return false;
            }
        }
        self.held.words()[class_at(slab)].store(spot.class.into(), Release);
        true
    }

    fn class_of(&self, slab: usize) -> Option<u8> {
        let class = self.held.words()[class_at(slab)].load(Acquire);
        u8::try_from(class).ok()
    }

    /// Which words an object has that begins there, if one can.
    fn span(&self, tag: Tag) -> Option<(usize, usize)> {
        let slab = self.slab_of(tag)?;
        let bytes = class_bytes(self.class_of(slab)?)? as usize;
        let within = (tag.offset() % SLAB) as usize;
        let fits = within.is_multiple_of(bytes) && within + bytes <= SLAB as usize;
        let at = self.front + slab * SLAB_WORDS + within / 8;
        fits.then_some((at, bytes / 8))
    }

    /// The words of an object that begins there, if one can.
    pub fn object(&self, tag: Tag) -> Option<&[AtomicU64]> {
        let (at, len) = self.span(tag)?;
        self.held.words().get(at..at + len)
    }
}

/// Where an object is, for who looks at it often.
#[derive(Clone)]
pub(crate) struct Place {
    memory: Arc<ObjectMemory>,
    first: *const AtomicU64,
    len: usize,
    class: u8,
}

// SAFETY: what is behind the pointer is atomics, of the memory that it has a share of.
unsafe impl Send for Place {}
// SAFETY: the same.
unsafe impl Sync for Place {}

impl Place {
    /// The place of an object that begins there, if one can.
    pub fn of(memory: &Arc<ObjectMemory>, tag: Tag) -> Option<Self> {
        let words = memory.object(tag)?;
        Some(Place {
            first: words.as_ptr(),
            len: words.len(),
            class: memory.class_of(memory.slab_of(tag)?)?,
            memory: memory.clone(),
        })
    }

    /// Its words.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words of memory that stays where it is as long as somebody has a share
        // of it, as this has.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }

    /// The header's second word while an object of this generation lives there, without bytes.
    pub fn meta(&self, generation: u32) -> u64 {
        let (class, live, len) = (self.class, true, 0);
        let meta = Meta {
            generation,
            class,
            live,
            len,
        };
        meta.to_word()
    }

    /// Whether the life of its home is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.memory.over.load(Relaxed)
    }

    /// Bytes that it has room for.
    pub fn room(&self) -> usize {
        self.len * 8 - HEADER as usize
    }
}

/// Copies the first bytes of an object out.
#[inline]
pub(crate) fn copy_out(out: &mut [u8], from: &[AtomicU64]) {
    let whole = out.len() / 8 * 8;
    let (head, tail) = out.split_at_mut(whole);
    words::read(head, from);
    if let (false, Some(last)) = (tail.is_empty(), from.get(whole / 8)) {
        let last = last.load(Relaxed);
        tail.copy_from_slice(&last.to_ne_bytes()[..tail.len()]);
    }
}

/// Copies bytes into an object, from its first one on. A writer is in.
#[inline]
pub(crate) fn copy_in(to: &[AtomicU64], bytes: &[u8]) {
    let whole = bytes.len() / 8 * 8;
    let (head, tail) = bytes.split_at(whole);
    words::write(to, head);
    if let (false, Some(last)) = (tail.is_empty(), to.get(whole / 8)) {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        last.store(u64::from_ne_bytes(word), Relaxed);
    }
}

/// Changes an object that this thread keeps writers out of; its version from then on.
pub(crate) fn change(object: &[AtomicU64], version: u64, bytes: &[u8]) -> u64 {
    let meta = whole::meta(object);
    let len = bytes.len() as u16;
    whole::set_meta(object, Meta { len, ..meta });
    if let Some(to) = object.get(whole::HEADER_WORDS..) {
        copy_in(to, bytes);
    }
    let next = rackmem_proto::sabre::rule::next(version);
    whole::release(object, next);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_objects_of_a_slabs_class_are_found() {
        let home = HomeId::of(3);
        let memory = ObjectMemory::new(home, 2 * SLAB, 4, None);
        let at = |offset: u64| Tag(home.start().0 + offset).under(Contract::Object);
        assert!(memory.object(at(2 * SLAB)).is_none());
        let tag = at(3 * SLAB);
        memory.open_slab(Spot { tag, class: 2 });
        assert_eq!(memory.object(tag).map(<[_]>::len), Some(16));
        assert!(memory.object(at(3 * SLAB + 128)).is_some());
        for offset in [3 * SLAB + 64, 2 * SLAB, 4 * SLAB, 6 * SLAB, SLAB, 0] {
            assert!(memory.object(at(offset)).is_none(), "{offset}");
        }
        assert!(memory.object(tag.under(Contract::Coherent)).is_none());
        assert!(memory.object(Tag(tag.0 ^ 1 << 48)).is_none());
        // A class that there is not.
        memory.open_slab(Spot {
            tag: at(4 * SLAB),
            class: 200,
        });
        assert!(memory.object(at(4 * SLAB)).is_none());
    }

    #[test]
    fn bytes_of_every_length_come_back() {
        let words: Vec<AtomicU64> = (0..32).map(|_| AtomicU64::new(u64::MAX)).collect();
        for len in 0..=256usize {
            let bytes: Vec<u8> = (0..len).map(|nth| nth as u8).collect();
            copy_in(&words, &bytes);
            let mut out = vec![9; len];
            copy_out(&mut out, &words);
            assert_eq!(out, bytes);
        }
    }
}
