//! Pages come and leave: what [`Table`] says, carried out.
//!
//! Threads of the program and the pager's do this alike: the first for calls that can fail, the
//! second for loads and stores, which cannot.

use super::table::{Table, Want};
use crate::error::AccessError;
use crate::faulting::page_file::PageFile;
use crate::faulting::userfault::{Fault, Faults};
use crate::node::Node;
use rackmem_fabric::Whole;
use rackmem_proto::abd::{Command, Layout};
use rackmem_proto::wire::Tag;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};

/// What a mapping has done.
///
/// ```no_run
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{PageCounts, Rack, RegionSpec};
///
/// let rack = Rack::local(3)?;
/// let log = rack.node(0).create_region(&RegionSpec::new("log", 1 << 20).line(4096).copies(3))?;
/// let pages = log.map_exclusive(16)?;
/// pages.words()[0].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
/// pages.flush()?;
/// let PageCounts { fetched, written, .. } = pages.counts();
/// assert_eq!((fetched, written), (1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageCounts {
    /// Loads and stores that found their page absent or protected.
    pub faults: u64,
    /// Pages that came from the copies.
    pub fetched: u64,
    /// Pages that were written back: by `flush`, or to make room.
    pub written: u64,
    /// Loads and stores that failed by a signal, since no majority had answered.
    pub failed: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    faults: AtomicU64,
    fetched: AtomicU64,
    written: AtomicU64,
    failed: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// A region's pages in this process.
pub(super) struct Buffer {
    node: Node,
    layout: Layout,
    first: Tag,
    /// The config with which the region began.
    began: u32,
    /// Bytes of a page: of the system's, or of a line, if that is longer.
    pub page: usize,
    pub file: PageFile,
    pub faults: Faults,
    table: Mutex<Table>,
    /// Something that was under way with a page is over.
    changed: Condvar,
    counters: Counters,
}

impl Buffer {
    pub fn new(
        node: &Node,
        (first, layout, began): (Tag, Layout, u32),
        (page, most): (usize, usize),
        (file, faults): (PageFile, Faults),
    ) -> Self {
        Buffer {
            node: node.clone(),
            layout,
            first,
            began,
            page,
            file,
            faults,
            table: Mutex::new(Table::new(most)),
            changed: Condvar::new(),
            counters: Counters::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().whole()
    }

    pub fn counts(&self) -> PageCounts {
        let Counters {
            faults,
            fetched,
            written,
            failed,
        } = &self.counters;
        PageCounts {
            faults: faults.load(Relaxed),
            fetched: fetched.load(Relaxed),
            written: written.load(Relaxed),
            failed: failed.load(Relaxed),
        }
    }

    /// Pages in the buffer.
    pub fn len(&self) -> usize {
        self.table().len()
    }

    /// Where a page is in the mapping.
    fn place(&self, page: usize) -> (u64, usize) {
        (self.file.address() + (page * self.page) as u64, self.page)
    }

    fn addr(&self, page: usize) -> u64 {
        self.first.0 + (page * self.page) as u64
    }

    fn not_mapped(&self, page: usize) -> impl Fn(io::Error) -> AccessError {
        let addr = self.addr(page);
        move |error| AccessError::NotMapped {
            addr,
            os: error.raw_os_error().unwrap_or(0),
        }
    }

    /// Lines of a page: their addresses, and where each begins in it. What lies behind the end of
    /// the region is of no line.
    fn lines(&self, page: usize) -> impl Iterator<Item = (Tag, usize)> + use<> {
        let line = self.layout.line as usize;
        let (from, bytes) = (page * self.page, self.layout.bytes as usize);
        let (first, page) = (self.first.0, self.page);
        let places = (0..page).step_by(line).map(move |at| (from + at, at));
        places
            .take_while(move |(offset, _)| *offset < bytes)
            .map(move |(offset, at)| (Tag(first + offset as u64), at))
    }

    fn load(&self, page: usize) -> Result<Vec<u8>, AccessError> {
        let access = &self.node.inner.access;
        let mut bytes = Vec::new();
        for (line, at) in self.lines(page) {
            let content = access.operate_pages(self.began, Command::Read(line), Vec::new())?;
            match at {
                0 => bytes = content,
                _ => bytes.extend_from_slice(&content),
            }
        }
        bytes.resize(self.page, 0);
        count(&self.counters.fetched);
        Ok(bytes)
    }

    fn store(&self, page: usize, bytes: &[u8]) -> Result<(), AccessError> {
        let access = &self.node.inner.access;
        let len = self.layout.line as usize;
        for (line, at) in self.lines(page) {
            let value = bytes.get(at..at + len).unwrap_or_default().to_vec();
            access.operate_pages(self.began, Command::Write(line), value)?;
        }
        count(&self.counters.written);
        Ok(())
    }

    /// Brings a page, for reading or for writing. It may leave again at any time. Whether it has
    /// come by this, so that those go on that wait for it.
    pub fn bring(&self, page: usize, writes: bool) -> Result<bool, AccessError> {
        self.node.to_lines()?;
        let mut table = self.table();
        loop {
            match table.want(page, writes) {
                Want::Here => return Ok(false),
                Want::Unprotect => {
                    let done = self.faults.unprotect(self.place(page));
                    return done.map(|()| true).map_err(self.not_mapped(page));
                }
                Want::Wait => table = self.changed.wait(table).whole(),
                Want::Fetch => {
                    drop(table);
                    return self.fetch(page, writes).map(|()| true);
                }
                Want::Evict { page, dirty } => {
                    drop(table);
                    self.evict(page, dirty)?;
                    table = self.table();
                }
            }
        }
    }

    fn fetch(&self, page: usize, writes: bool) -> Result<(), AccessError> {
        let fetched = self.load(page).and_then(|bytes| {
            self.heal();
            let filled = self.faults.fill(self.place(page).0, &bytes, !writes);
            filled.map_err(self.not_mapped(page))
        });
        let mut table = self.table();
        match fetched {
            Ok(()) => table.came(page, writes),
            Err(_) => table.gone(page),
        }
        drop(table);
        self.changed.notify_all();
        fetched
    }

    fn evict(&self, page: usize, dirty: bool) -> Result<(), AccessError> {
        let written = if dirty { self.write_back(page) } else { Ok(()) };
        let gone = written.and_then(|()| {
            let gone = self.file.discard(page * self.page, self.page);
            gone.map_err(self.not_mapped(page))
        });
        if gone.is_err() {
            // It is dirty, or as good as that.
            let _ = self.faults.unprotect(self.place(page));
        }
        let mut table = self.table();
        match gone {
            Ok(()) => table.gone(page),
            Err(_) => table.stays(page),
        }
        drop(table);
        self.changed.notify_all();
        gone
    }

    /// First no store goes on, then its content is read: what is stored is what is written back.
    fn write_back(&self, page: usize) -> Result<(), AccessError> {
        let protected = self.faults.protect(self.place(page));
        protected.map_err(self.not_mapped(page))?;
        let mut bytes = vec![0; self.page];
        let read = self.file.read(page * self.page, &mut bytes);
        read.map_err(self.not_mapped(page))?;
        self.store(page, &bytes)?;
        self.heal();
        Ok(())
    }

    /// Writes all pages back that were dirty when this began, and keeps them.
    pub fn flush(&self) -> Result<(), AccessError> {
        self.node.to_lines()?;
        let unsaved = self.table().unsaved();
        unsaved.into_iter().try_for_each(|page| self.save(page))
    }

    fn save(&self, page: usize) -> Result<(), AccessError> {
        let mut table = self.table();
        loop {
            match table.save(page) {
                Some(true) => break,
                Some(false) => return Ok(()),
                None => table = self.changed.wait(table).whole(),
            }
        }
        drop(table);
        let saved = self.write_back(page);
        if saved.is_err() {
            let _ = self.faults.unprotect(self.place(page));
        }
        self.table().saved(page, saved.is_ok());
        self.changed.notify_all();
        saved
    }

    /// Does something with the bytes of a page that is there and stays for so long.
    pub fn with(
        &self,
        page: usize,
        writes: bool,
        mut act: impl FnMut(&PageFile) -> io::Result<()>,
    ) -> Result<(), AccessError> {
        loop {
            self.bring(page, writes)?;
            let table = self.table();
            // Otherwise it has left again, or is being saved.
            if table.here(page).is_some_and(|dirty| dirty || !writes) {
                return act(&self.file).map_err(self.not_mapped(page));
            }
        }
    }

    /// A majority answers: loads that have failed may go on.
    fn heal(&self) {
        let failed = self.table().heal();
        for page in failed {
            // What cannot be healed now fails again, as it did.
            let _ = self.file.unmap(page * self.page, self.page);
        }
    }

    /// A load or a store waits. False: it goes on waiting.
    pub fn handle(&self, fault: Fault) -> bool {
        let page = (fault.address.saturating_sub(self.file.address()) / self.page as u64) as usize;
        count(&self.counters.faults);
        let brought = self.bring(page, fault.writes);
        let place = self.place(page);
        let mut table = self.table();
        match (brought, table.here(page)) {
            (Ok(true), _) => true,
            // It was there: the program or the system has taken it out of the mapping.
            (Ok(false), Some(dirty)) if fault.minor => {
                let placed = self.faults.map_again(place, !dirty);
                placed.is_ok_and(|placed| placed || self.faults.wake(place).is_ok())
            }
            (Ok(false), Some(true)) if fault.writes => self.faults.unprotect(place).is_ok(),
            // Another thread was faster, or it has left again: the next look shows it.
            (Ok(false), _) => self.faults.wake(place).is_ok(),
            (Err(_), _) if table.is_absent(page) && self.faults.fail(place) => {
                table.fails(page);
                count(&self.counters.failed);
                true
            }
            (Err(_), _) => false,
        }
    }
}
