//! Coherent pages as the system has them: a file that is mapped twice. A program's loads and stores
//! go to the first mapping, where a page is absent, read-only or there; this library's copies go to
//! the second.

use super::page_file::{Alias, PageFile};
use super::signal::Served;
use super::userfault::Faults;
use crate::error::RegionError;
use rackmem_proto::pages::Act;
use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

pub(crate) struct View {
    /// Ends before the mapping does.
    served: Option<Served>,
    faults: Faults,
    user: PageFile,
    alias: Alias,
    /// Bytes of a page of the system's.
    page: usize,
}

impl View {
    /// So many bytes, whole pages, none of which is there.
    pub fn new(len: usize) -> Result<View, RegionError> {
        let faults = Faults::by_signal()?;
        let user = PageFile::new(len)?;
        let alias = user.alias()?;
        faults.register(user.address(), user.len())?;
        Ok(View {
            faults,
            user,
            alias,
            page: super::system_page(),
            served: None,
        })
    }

    /// Who brings what faults ask for, as long as it is mapped.
    pub fn served_by(mut self, served: Served) -> View {
        self.served = Some(served);
        self
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
    /// uses it any more; the bytes stay.
    pub fn act(&self, act: Act, bytes: Range<usize>) -> io::Result<()> {
        match act {
            Act::Place { stores } => {
                // A hole is no page that can be placed.
                for at in bytes.clone().step_by(self.page) {
                    let word = self.alias.words().get(at / 8);
                    word.map(|word| word.load(Relaxed));
                }
                self.faults.map_again(self.place(&bytes), !stores)
            }
            Act::Open => self.faults.unprotect(self.place(&bytes)),
            Act::Protect => self.faults.protect(self.place(&bytes)),
            Act::Hide => self.user.unmap(bytes.start, bytes.len()),
        }
    }

    /// The bytes go, too, and their memory with them.
    pub fn discard(&self, bytes: Range<usize>) -> io::Result<()> {
        self.user.discard(bytes.start, bytes.len())
    }
}
