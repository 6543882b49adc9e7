//! Memory of the rack as memory of a process. Coherent memory is in `coherent.rs` and `pinned.rs`;
//! the rest is replicated memory, for one process at a time: the paper's memory controller (CNVMM
//! §III-A). Loads and stores are plain instructions; a page that is absent comes from a majority of
//! the copies, and a dirty one is written back to a majority before it makes room.
//!
//! | what | where |
//! |---|---|
//! | which page comes, leaves, is written back | `table.rs`, its table on top |
//! | carrying that out | `buffer.rs` |
//! | the system's page faults and mappings, all that is unsafe | [`crate::faulting`] |
//! | the thread that handles faults | `pager.rs` |
//! | one process at a time | `claim.rs`, its table on top |

mod buffer;
mod claim;
mod coherent;
mod pager;
mod pinned;
mod table;

pub use crate::bytes::mapped::OnLost;
pub use buffer::PageCounts;
pub use coherent::{CoherentPages, FaultCounts};
pub use pinned::Pinned;

use crate::error::{AccessError, RegionError};
use crate::faulting::page_file::PageFile;
use crate::faulting::system_page;
use crate::faulting::userfault::Faults;
use crate::node::Node;
use buffer::Buffer;
use claim::Claim;
use pager::Pager;
use rackmem_proto::abd::{Layout, first_line};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use table::LEAST;

/// A region with copies, mapped: its bytes are at addresses of this process, for loads and stores.
/// [`Region::map_exclusive`](crate::Region::map_exclusive) makes one.
///
/// Of its pages so many as its buffer has room for are in this process. Another one comes when it
/// is touched, from a majority of the copies; the one that came first makes room, and if it is
/// dirty a majority has it before. **What is stored is in the copies after [`Mapped::flush`]**, or
/// when its page has made room; until then it dies with the process.
///
/// Until the handle is dropped no other process can map the region, nor this one a second time.
/// Lines can still be read and written ([`Replicated`](crate::Replicated)): a read sees what has
/// been flushed, and what is written to a line whose page is in the buffer is seen when the page
/// comes the next time, or lost when it is written back.
///
/// **When no majority answers**, a call waits for the configuration's `patience` and returns
/// [`AccessError::NoQuorum`]. A load or a store has nothing to return: it waits as long, and then
/// its thread gets `SIGBUS`, as where a mapped file cannot be read. Nothing in the buffer is lost:
/// a program that handles the signal, or touches memory by calls only, can try again, and once a
/// majority answers again so do loads. A program that must not end this way calls [`Mapped::touch`]
/// first, or [`Mapped::read`] and [`Mapped::write`]. (Before Linux 6.6 a load waits on.)
///
/// System calls may be given these addresses where [`Mapped::takes_system_calls`]; otherwise they
/// fail with `EFAULT` on absent pages. Operations of this library must not be: copy first. A child
/// by `fork` does not have the mapping: it ends by `SIGSEGV` where it touches it.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, RegionError, RegionSpec};
/// use std::sync::atomic::Ordering::Relaxed;
///
/// let rack = Rack::local(3)?;
/// let spec = RegionSpec::new("counts", 1 << 20).line(4096).copies(3);
/// let region = rack.node(0).create_region(&spec)?;
/// let pages = match region.map_exclusive(16) {
///     Err(RegionError::NoPaging { .. }) => return Ok(()), // the system does not allow it
///     pages => pages?,
/// };
/// for word in pages.words() {
///     word.fetch_add(1, Relaxed);
/// }
/// pages.close()?;
/// let mut first = [0; 8];
/// rack.node(2).open_region(&spec)?.read(0, &mut first)?;
/// assert_eq!(first, 1u64.to_ne_bytes());
/// # Ok(())
/// # }
/// ```
pub struct Mapped {
    /// None: it is closed. Ends before the others.
    pager: Option<Pager>,
    buffer: Arc<Buffer>,
    claim: Option<Claim>,
    name: String,
    len: usize,
    pages: usize,
    /// A child by `fork` has a copy of this handle, and nothing of what it names.
    process: u32,
}

impl std::fmt::Debug for Mapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapped")
            .field("region", &self.name)
            .field("bytes", &self.len)
            .field("at", &self.as_ptr())
            .field("buffer", &self.pages)
            .finish()
    }
}

impl Mapped {
    /// `pages`: the buffer.
    pub(crate) fn new(
        node: &Node,
        (group, layout, began): (u16, Layout, u32),
        name: &str,
        pages: usize,
    ) -> Result<Mapped, RegionError> {
        if pages < LEAST {
            let least = LEAST;
            return Err(RegionError::SmallBuffer { pages, least });
        }
        node.to_lines()?;
        let faults = Faults::open()?;
        let page = system_page().max(layout.line as usize);
        let len = layout.bytes as usize;
        let file = PageFile::new(len.next_multiple_of(page))?;
        faults.register(file.address(), file.len())?;
        let claim = Claim::take(node, (group, name))?;
        let place = (first_line(group), layout, began);
        let buffer = Arc::new(Buffer::new(node, place, (page, pages), (file, faults)));
        let pager = Pager::start(&buffer);
        let pager = pager.map_err(|error| RegionError::NoPaging {
            tried: "a thread",
            os: error.raw_os_error().unwrap_or(0),
        })?;
        Ok(Mapped {
            pager: Some(pager),
            buffer,
            claim: Some(claim),
            name: name.into(),
            len,
            pages,
            process: std::process::id(),
        })
    }

    /// Its bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Pages that its buffer has room for, of [`Mapped::page`] bytes each.
    pub fn buffer(&self) -> usize {
        self.pages
    }

    /// Bytes that come and leave together: a page of the system's, or a line, if that is longer.
    pub fn page(&self) -> usize {
        self.buffer.page
    }

    /// Pages that are in the buffer just now, or on their way.
    pub fn resident(&self) -> usize {
        self.buffer.len()
    }

    /// What it has done.
    pub fn counts(&self) -> PageCounts {
        self.buffer.counts()
    }

    /// Where its first byte is. What is done through the pointer its user answers for: not behind
    /// [`Mapped::len`] bytes, not after the handle is dropped, and no references to what a write
    /// to the region's lines may change.
    pub fn as_ptr(&self) -> *mut u8 {
        self.buffer.file.as_ptr()
    }

    /// Its bytes as words that threads share, whole words only.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        let words = self.buffer.file.words();
        &words[..self.len / 8]
    }

    /// Whether system calls may be given its addresses. It takes privilege, the setting
    /// `vm.unprivileged_userfaultfd`, or the right to open `/dev/userfaultfd`.
    pub fn takes_system_calls(&self) -> bool {
        self.buffer.faults.of_system_calls
    }

    /// Pages that these bytes are in, by number and with the part of each.
    fn parts(&self, bytes: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let page = self.buffer.page;
        let pages = match bytes.is_empty() {
            true => 0..0,
            false => bytes.start / page..(bytes.end - 1) / page + 1,
        };
        pages.map(move |nth| {
            let (from, to) = (nth * page, (nth + 1) * page);
            (nth, bytes.start.max(from)..bytes.end.min(to))
        })
    }

    fn within(&self, at: usize, len: usize) -> Result<Range<usize>, RegionError> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(at..end),
            _ => Err(RegionError::OutOfBounds {
                name: self.name.clone(),
                at,
                len,
            }),
        }
    }

    /// Brings the pages of these bytes, so that loads need not. More pages than the buffer has room
    /// for do not stay, and others make room for these.
    ///
    /// # Errors
    /// [`RegionError::OutOfBounds`], [`AccessError::NoQuorum`] when no majority answers,
    /// [`RackError::Fenced`](crate::RackError::Fenced) when the rack goes on without this process.
    pub fn touch(&self, at: usize, len: usize) -> Result<(), RegionError> {
        for (page, _) in self.parts(self.within(at, len)?) {
            self.buffer.bring(page, false)?;
        }
        Ok(())
    }

    /// Reads from a byte of it on, as loads would, and can fail.
    ///
    /// # Errors
    /// Those of [`Mapped::touch`].
    pub fn read(&self, at: usize, out: &mut [u8]) -> Result<(), RegionError> {
        for (page, part) in self.parts(self.within(at, out.len())?) {
            let into = &mut out[part.start - at..part.end - at];
            let read = |file: &PageFile| file.read(part.start, into);
            self.buffer.with(page, false, read)?;
        }
        Ok(())
    }

    /// Writes from a byte of it on, as stores would, and can fail. It is in the copies after
    /// [`Mapped::flush`].
    ///
    /// # Errors
    /// Those of [`Mapped::touch`].
    pub fn write(&self, at: usize, bytes: &[u8]) -> Result<(), RegionError> {
        for (page, part) in self.parts(self.within(at, bytes.len())?) {
            let from = &bytes[part.start - at..part.end - at];
            let write = |file: &PageFile| file.write(part.start, from);
            self.buffer.with(page, true, write)?;
        }
        Ok(())
    }

    /// Writes all dirty pages back. When this returns a majority of the copies has what was stored
    /// before it was called. What other threads store meanwhile may be part of it or not.
    ///
    /// # Errors
    /// [`AccessError::NoQuorum`] when no majority answers: some may have been written back, and
    /// nothing in the buffer is lost. [`RackError::Fenced`](crate::RackError::Fenced) when the rack
    /// goes on without this process: what is in the buffer will not be written back by anyone.
    pub fn flush(&self) -> Result<(), AccessError> {
        self.buffer.flush()
    }

    /// Flushes, and gives the pages up, so that another process may map them.
    ///
    /// # Errors
    /// Those of [`Mapped::flush`], and then what was not written back is lost;
    /// [`RegionError::NoGroups`] when it cannot be written down that they are free: this node can
    /// map them again, others when it has left.
    pub fn close(mut self) -> Result<(), RegionError> {
        let flushed = self.buffer.flush();
        self.pager = None;
        let released = self.claim.as_mut().map_or(Ok(()), Claim::release);
        flushed?;
        released
    }

    fn is_copy_of_a_child(&self) -> bool {
        self.process != std::process::id()
    }
}

impl Drop for Mapped {
    /// As [`Mapped::close`]; what cannot be done is not said.
    fn drop(&mut self) {
        if self.is_copy_of_a_child() {
            // Its thread, its mapping and its place in the rack are the parent's.
            std::mem::forget(self.pager.take());
            std::mem::forget(self.claim.take());
            std::mem::forget(self.buffer.clone());
            return;
        }
        if self.pager.is_some() {
            let _ = self.buffer.flush();
        }
    }
}
