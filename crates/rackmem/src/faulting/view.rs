//! Coherent pages as the system has them: a file that is mapped twice. A program's loads and stores
//! go to the first mapping, where a page is absent, read-only or there; this library's copies go to
//! the second.

use super::handlers::Handlers;
use super::page_file::{Alias, PageFile};
use super::signal::{Bring, Served};
use super::userfault::Faults;
use super::{FaultMode, protection};
use crate::error::RegionError;
use rackmem_proto::pages::Act;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

pub(crate) struct View {
    /// Who brings what faults ask for; they end before the mapping does.
    _signals: Option<Served>,
    _threads: Option<Handlers>,
    how: How,
    user: Arc<PageFile>,
    alias: Alias,
    /// Bytes of a page of the system's.
    page: usize,
    mode: FaultMode,
    /// How often the process had as many mappings as it may, and this one was hidden.
    crowded: AtomicUsize,
}

/// What says which rights a page has.
enum How {
    Userfault(Arc<Faults>),
    Protection,
}

impl View {
    /// So many bytes, whole pages, none of which is there.
    pub fn new(len: usize, mode: FaultMode) -> Result<View, RegionError> {
        let how = match mode {
            FaultMode::Signal => How::Userfault(Arc::new(Faults::by_signal()?)),
            FaultMode::Thread => How::Userfault(Arc::new(Faults::open()?)),
            FaultMode::Mprotect => How::Protection,
        };
        let user = Arc::new(PageFile::new(len)?);
        let alias = user.alias()?;
        match &how {
            How::Userfault(faults) => faults.register(user.address(), user.len())?,
            How::Protection => protection::hide(&user, 0..len)
                .map_err(|error| protection::refused("mprotect", &error))?,
        }
        Ok(View {
            how,
            user,
            alias,
            page: super::system_page(),
            _signals: None,
            _threads: None,
            mode,
            crowded: AtomicUsize::new(0),
        })
    }

    /// Who brings what faults ask for, as long as it is mapped. `None`: there are as many mappings
    /// as there can be.
    pub fn served_by(mut self, bring: Bring) -> Result<Option<View>, RegionError> {
        let range = (self.user.address() as usize, self.user.len());
        let signal = match self.mode {
            FaultMode::Mprotect => libc::SIGSEGV,
            _ => libc::SIGBUS,
        };
        match (self.mode, &self.how) {
            (FaultMode::Thread, How::Userfault(faults)) => {
                let threads = Handlers::start(faults, &self.user, bring);
                let threads = threads.map_err(|error| protection::refused("a thread", &error))?;
                self._threads = Some(threads);
            }
            _ => self._signals = Served::begin(signal, range, bring),
        }
        let served = self._signals.is_some() || self._threads.is_some();
        Ok(served.then_some(self))
    }

    /// How its faults come to this library.
    pub fn mode(&self) -> FaultMode {
        self.mode
    }

    /// How often the process had as many mappings as it may, and all pages were hidden.
    pub fn crowded(&self) -> u64 {
        self.crowded.load(Relaxed) as u64
    }

    /// Where a program's loads and stores go.
    pub fn user(&self) -> &PageFile {
        &self.user
    }

    /// The words of the second mapping.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        self.alias.words()
    }

    fn place(&self, bytes: &Range<usize>) -> (u64, usize) {
        (self.user.address() + bytes.start as u64, bytes.len())
    }

    /// Does this to the mapping of these bytes. What takes a right away returns when no processor
    /// uses it any more; the bytes stay. Whether the mapping is now as the act says by itself:
    /// a page that is placed and was there already is as it was.
    pub fn act(&self, act: Act, bytes: Range<usize>) -> io::Result<bool> {
        match &self.how {
            How::Userfault(faults) => self.by_userfault(faults, act, bytes),
            How::Protection => self.by_protection(act, bytes).map(|()| true),
        }
    }

    fn by_userfault(&self, faults: &Faults, act: Act, bytes: Range<usize>) -> io::Result<bool> {
        match act {
            Act::Place { stores } => {
                // A hole is no page that can be placed.
                for at in bytes.clone().step_by(self.page) {
                    let word = self.alias.words().get(at / 8);
                    word.map(|word| word.load(Relaxed));
                }
                let placed = faults.map_again(self.place(&bytes), !stores)?;
                // Who waits to store is woken when it is opened.
                if !placed && !stores {
                    faults.wake(self.place(&bytes))?;
                }
                Ok(placed)
            }
            Act::Open => faults.unprotect(self.place(&bytes)).map(|()| true),
            Act::Protect => faults.protect(self.place(&bytes)).map(|()| true),
            Act::Hide => self.user.unmap(bytes.start, bytes.len()).map(|()| true),
        }
    }

    /// Runs of pages with one right are one mapping for the system, of which a process may have so
    /// many. Where it has, all pages are hidden, which makes one of them: they come again by faults
    /// that find their blocks here. So what is to be taken away always is.
    fn by_protection(&self, act: Act, bytes: Range<usize>) -> io::Result<()> {
        let done = protection::act(&self.user, act, bytes.clone());
        match done {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                self.crowded.fetch_add(1, Relaxed);
                protection::hide(&self.user, 0..self.user.len())?;
                match act {
                    Act::Place { .. } | Act::Open => protection::act(&self.user, act, bytes),
                    Act::Protect | Act::Hide => Ok(()),
                }
            }
            done => done,
        }
    }

    /// The bytes go, too, and their memory with them.
    pub fn discard(&self, bytes: Range<usize>) -> io::Result<()> {
        self.user.discard(bytes.start, bytes.len())
    }
}
