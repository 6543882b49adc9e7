//! A member's memory: what others send to it lies here. Made anew by every process that takes the
//! member's place, so whatever was on its way to a predecessor is not on its way to the successor.

use super::bell::Bell;
use super::lane::Ring;
use super::layout::{InboxLayout, LONG_ENDS, Layout};
use super::map::{Mapping, reserve};
use super::system;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

/// First word of the memory, written last: layout and version.
const MAGIC: u64 = u64::from_be_bytes(*b"rackmem\x04");

const IS_MAGIC: usize = 0;
const GEOMETRY: usize = 1;
const CLOSED: usize = 2;
/// Words that all versions of this file can read.
pub(super) const START: usize = 8;

pub(super) struct Segment {
    mapping: Mapping,
    layout: Arc<Layout>,
    /// Whether this process receives here.
    own: bool,
}

impl Segment {
    /// Sets up a new file of the layout's length.
    pub fn create(file: File, layout: Arc<Layout>) -> io::Result<Segment> {
        // Lanes get memory when they get a sender.
        reserve(&file, 0, layout.front).map_err(|error| {
            io::Error::new(error.kind(), format!("no room for shared memory: {error}"))
        })?;
        let mapping = Mapping::of(file, layout.len)?;
        let words = mapping.words();
        words[GEOMETRY].store(layout.geometry.word(), Release);
        words[IS_MAGIC].store(MAGIC, Release);
        Ok(Segment {
            mapping,
            layout,
            own: true,
        })
    }

    /// Maps the memory of another process.
    pub fn attach(file: File, layout: Arc<Layout>) -> io::Result<Segment> {
        let other = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        let mapping = Mapping::of(file, layout.len)?;
        let words = mapping.words();
        if words[IS_MAGIC].load(Acquire) != MAGIC {
            return other("not a member's memory, or of another version");
        }
        if words[GEOMETRY].load(Acquire) != layout.geometry.word() {
            return other("a rack of another size");
        }
        Ok(Segment {
            mapping,
            layout,
            own: false,
        })
    }

    /// Says that nobody receives here any more. Only the owner, its successor,
    /// or who has seen it dead does.
    pub fn close(&self) {
        close(&self.mapping);
    }

    pub fn is_closed(&self) -> bool {
        self.mapping.words()[CLOSED].load(Acquire) != 0
    }

    /// Whether its owner lives. Costs a system call.
    pub fn is_alive(&self) -> bool {
        !self.is_closed() && (self.own || system::claimed(self.mapping.file()))
    }

    pub fn file(&self) -> &File {
        self.mapping.file()
    }

    pub fn inbox(&self, number: usize) -> Option<Inbox<'_>> {
        let layout = self.layout.inbox(number)?;
        Some(Inbox {
            words: self.mapping.words(),
            layout,
        })
    }

    /// Gives a lane memory. Without, a file system that is full would end whoever writes.
    pub fn reserve(&self, inbox: usize, lane: usize) -> io::Result<()> {
        let layout = self.layout.inbox(inbox).filter(|inbox| lane < inbox.lanes);
        let data = layout.ok_or(io::ErrorKind::InvalidInput)?.data(lane);
        reserve(self.mapping.file(), data.start, data.len())
    }

    /// Gives a lane memory for long packets.
    pub fn reserve_long(&self, inbox: usize, lane: usize) -> io::Result<()> {
        let layout = self.layout.inbox(inbox).filter(|inbox| lane < inbox.lanes);
        let data = layout.and_then(|inbox| inbox.long(lane));
        let data = data.ok_or(io::ErrorKind::InvalidInput)?;
        reserve(self.mapping.file(), data.start, data.len())
    }
}

/// Marks a file as closed, for all processes that map it.
pub(super) fn close(mapping: &Mapping) {
    mapping.words()[CLOSED].store(1, Release);
}

/// An inbox in mapped memory.
#[derive(Clone, Copy)]
pub(super) struct Inbox<'a> {
    words: &'a [AtomicU64],
    pub layout: &'a InboxLayout,
}

impl<'a> Inbox<'a> {
    pub fn lane(&self, lane: usize) -> Ring<'a> {
        Ring {
            head: &self.words[self.layout.head(lane)],
            tail: &self.words[self.layout.tail(lane)],
            data: &self.words[self.layout.data(lane)],
        }
    }

    /// A lane's ring of long packets, if the rack has such.
    pub fn long(&self, lane: usize) -> Option<Ring<'a>> {
        Some(Ring {
            head: &self.words[self.layout.head(lane) + LONG_ENDS],
            tail: &self.words[self.layout.tail(lane) + LONG_ENDS],
            data: &self.words[self.layout.long(lane)?],
        })
    }

    /// How its receiver is told of packets.
    pub fn bell(&self) -> Bell<'a> {
        Bell {
            word: &self.words[self.layout.bell],
            bits: &self.words[self.layout.bits.clone()],
        }
    }
}
