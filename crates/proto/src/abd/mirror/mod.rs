//! A member's lines once more, in words that a program in the kernel of its host reads while the
//! member stores: where each lies, and which group has room.
//!
//! ```text
//! front   one slab: a row of a line for each group
//!         name (the config in which the member's copies are read; 0: none), bytes of a line,
//!         bytes of all lines, first slab
//! slabs   of 64 KiB: lines of one group each, as many as fit, each with what is before it
//!         a line: version (odd: being written), stamp, bytes
//! ```
//!
//! All of it is written by one thread at a time, which has the member's section, and each store is
//! seen after those before it. What the words say is never the member's own knowledge: a group
//! without room here is read by packets to the agent.
//!
//! A member of a group in memory is one life of a process ([`super::Member`]), and so are these
//! words. Copies that outlive a process, and groups that epochs fence, have none here
//! ([`super::Abd::is_plain`]).

mod kernels;
mod rule;

pub use kernels::{Answerers, Kernels};
pub use rule::{MirrorPassed, answer, concerns};

use super::{Effect, GROUPS, Layout, ReplicatedMemory, Stamp, first_line};
use crate::wire::{OWN_LEN, Tag};
use crate::words::Words;
use alloc::vec::Vec;

/// Bytes of a slab, and of what is in front.
pub const MIRROR_SLAB: u64 = 1 << 16;
/// Words of a slab.
const SLAB_WORDS: usize = MIRROR_SLAB as usize / 8;
/// The longest line that is here: a packet carries it on any network.
pub const MIRROR_LINE: u32 = 1024;
/// Bytes of a row, and what lines with what is before them are made up to.
const UNIT: usize = 64;
/// Words before a line's bytes: as many as a packet has of its own, which come to lie there.
const HEADER_WORDS: usize = OWN_LEN / 8;
/// The second of them.
const STAMP: usize = 1;

/// Words of a row.
const NAME: usize = 0;
const LINE: usize = 1;
const BYTES: usize = 2;
const FIRST: usize = 3;
/// The same: name, bytes of a line, bytes of all lines, first slab.
pub const ROW: [usize; 4] = [NAME, LINE, BYTES, FIRST];

/// Which groups are here, and in which slabs.
#[derive(Clone, Debug, Default)]
pub struct Mirror {
    /// Which slabs are given.
    given: Vec<bool>,
    groups: [Group; GROUPS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    placed: Option<Placed>,
    /// The highest config that its row has named: none is named twice, so whoever finds one name
    /// at two looks knows that it has been there all the time.
    named: u32,
}

/// Where a group's lines are.
#[derive(Clone, Copy, Debug)]
struct Placed {
    layout: Layout,
    first: usize,
    slabs: usize,
}

/// Bytes of a line with what is before it.
const fn stride(line: u32) -> usize {
    (OWN_LEN + line as usize).next_multiple_of(UNIT)
}

/// Bytes behind what a question has of its own that make it as long as its answer.
pub(super) const fn room(line: u32) -> usize {
    match line <= MIRROR_LINE {
        true => stride(line) - OWN_LEN,
        false => 0,
    }
}

/// Lines of so many bytes in a slab.
const fn each(line: u32) -> usize {
    MIRROR_SLAB as usize / stride(line)
}

/// The row of a group.
const fn row(group: u16) -> usize {
    group as usize * UNIT / 8
}

/// The first word of a line of a group that begins with this slab.
const fn line_at(first: usize, line: u32, nth: u64) -> usize {
    let (slab, within) = (nth as usize / each(line), nth as usize % each(line));
    (1 + first + slab) * SLAB_WORDS + within * stride(line) / 8
}

impl Mirror {
    /// With so many slabs, all zeros, and a front of zeros.
    pub fn new(slabs: usize) -> Self {
        Mirror {
            given: alloc::vec![false; slabs],
            groups: [Group::default(); GROUPS],
        }
    }

    /// Words that so many slabs and what is in front have.
    pub const fn words(slabs: usize) -> usize {
        (1 + slabs) * SLAB_WORDS
    }

    /// Groups that are here, a bit each.
    pub fn groups(&self) -> u32 {
        let groups = self.groups.iter().enumerate();
        let here = groups.filter(|(_, group)| group.placed.is_some());
        here.fold(0, |set, (nth, _)| set | 1 << nth)
    }

    /// A section of the node has left this, and nothing has been sent yet.
    pub fn follow(
        &mut self,
        memory: &ReplicatedMemory,
        effects: &[Effect],
        words: &mut impl Words,
    ) {
        // What was asked in a config that is over is not answered with what was stored since.
        for effect in effects {
            match *effect {
                Effect::Forgot(group) => self.remove(group, words),
                Effect::Adopted(group) => self.hide(group, words),
                _ => {}
            }
        }
        for effect in effects {
            if let Effect::Stored(tag, _) = *effect {
                self.write(memory, tag, words);
            }
        }
        for effect in effects {
            if let Effect::Adopted(group) = *effect {
                self.place(memory, group, words);
                self.show(memory, group, words);
            }
        }
    }

    fn at(&mut self, group: u16) -> Option<&mut Group> {
        self.groups.get_mut(usize::from(group))
    }

    /// Room for a group that this node begins to keep, if there is some: nothing of it has been
    /// stored.
    fn place(&mut self, memory: &ReplicatedMemory, group: u16, words: &mut impl Words) {
        let ReplicatedMemory { abd, lines } = memory;
        let layout = lines.layout(group).filter(|_| abd.is_plain(group));
        let layout = layout.filter(|_| lines.in_one(group).is_some_and(|it| it <= MIRROR_LINE));
        let replica = abd.replica(group);
        let is_empty = replica.is_some_and(|it| it.lines(first_line(group)).next().is_none());
        let Some(layout) = layout.filter(|_| is_empty) else {
            return;
        };
        if self.at(group).is_none_or(|group| group.placed.is_some()) {
            return;
        }
        let each = each(layout.line) as u64;
        let slabs = (layout.bytes / u64::from(layout.line))
            .div_ceil(each)
            .max(1);
        let slabs = usize::try_from(slabs).unwrap_or(usize::MAX);
        if slabs > self.given.len() {
            return;
        }
        let mut windows = self.given.windows(slabs);
        let Some(first) = windows.position(|window| !window.contains(&true)) else {
            return;
        };
        self.given[first..first + slabs].fill(true);
        self.groups[usize::from(group)].placed = Some(Placed {
            layout,
            first,
            slabs,
        });
        // Another group's lines.
        for word in (1 + first) * SLAB_WORDS..(1 + first + slabs) * SLAB_WORDS {
            words.store(word, 0);
        }
    }

    /// Its lines are read in the config that it is in, if they are.
    fn show(&mut self, memory: &ReplicatedMemory, number: u16, words: &mut impl Words) {
        let Some(group) = self.at(number) else {
            return;
        };
        let config = memory.abd.reads_in(number);
        let config = config.filter(|config| *config > group.named);
        let (Some(config), Some(placed)) = (config, group.placed) else {
            return;
        };
        group.named = config;
        let row = row(number);
        words.store(row + LINE, placed.layout.line.into());
        words.store(row + BYTES, placed.layout.bytes);
        words.store(row + FIRST, placed.first as u64);
        words.store(row + NAME, config.into());
    }

    /// Nobody reads its lines.
    fn hide(&mut self, group: u16, words: &mut impl Words) {
        if self.at(group).is_some() {
            words.store(row(group) + NAME, 0);
        }
    }

    /// A line is this.
    fn write(&mut self, memory: &ReplicatedMemory, tag: Tag, words: &mut impl Words) {
        let group = tag.home().0;
        let placed = self.at(group).and_then(|group| group.placed);
        let ReplicatedMemory { abd, lines } = memory;
        let (Some(placed), Some(replica)) = (placed, abd.replica(group)) else {
            return;
        };
        let value = lines.line(tag).unwrap_or_default();
        let Layout { line, .. } = placed.layout;
        if !placed.layout.has(group, tag) || value.len() != line as usize {
            return;
        }
        let Stamp(stamp) = replica.stamp(tag);
        let at = line_at(placed.first, line, tag.offset() / u64::from(line));
        let version = words.load(at);
        words.store(at, version | 1);
        words.store(at + STAMP, stamp);
        for (nth, eight) in value.as_chunks::<8>().0.iter().enumerate() {
            words.store(at + HEADER_WORDS + nth, u64::from_ne_bytes(*eight));
        }
        words.store(at, (version | 1).wrapping_add(1));
    }

    /// Its name goes before anything else of it.
    fn remove(&mut self, group: u16, words: &mut impl Words) {
        self.hide(group, words);
        let placed = self.at(group).and_then(|group| group.placed.take());
        if let Some(placed) = placed {
            self.given[placed.first..placed.first + placed.slabs].fill(false);
        }
    }
}
