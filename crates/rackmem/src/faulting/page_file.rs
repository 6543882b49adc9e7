//! The mapping: pages of a file in memory that nobody else has, mapped once.
//!
//! Who writes pages back reads them from the file and not from the mapping, so that nothing that a
//! program does to its mapping makes it wait for itself. Coherent pages are mapped a second time
//! for the same reason.

use crate::error::RegionError;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;

/// See the module. As long as it lives, its words do.
pub(crate) struct PageFile {
    file: File,
    at: *mut AtomicU64,
    len: usize,
}

// SAFETY: what is behind the pointer is atomics, unmapped by the one owner.
unsafe impl Send for PageFile {}
// SAFETY: the same.
unsafe impl Sync for PageFile {}

fn refused(tried: &'static str) -> RegionError {
    let error = io::Error::last_os_error();
    let os = error.raw_os_error().unwrap_or(0);
    RegionError::NoPaging { tried, os }
}

/// The file's pages at a second place, where none is ever absent: who touches a hole makes a page
/// of zeros of it.
pub(crate) struct Alias {
    at: *mut AtomicU64,
    len: usize,
}

// SAFETY: what is behind the pointer is atomics, unmapped by the one owner.
unsafe impl Send for Alias {}
// SAFETY: the same.
unsafe impl Sync for Alias {}

impl Alias {
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many bytes are mapped, aligned to a page, and all bytes are valid words.
        unsafe { std::slice::from_raw_parts(self.at, self.len / 8) }
    }
}

impl Drop for Alias {
    fn drop(&mut self) {
        // SAFETY: mapped by `PageFile::alias` with this length, and nothing borrows it any more.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

/// Maps the whole of a file that nobody else has. A child by `fork` has no handler for its faults,
/// and would read zeros: it has no mapping.
fn map(file: &File, len: usize) -> Result<*mut AtomicU64, RegionError> {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping, anywhere, of a file that is as long and that nobody else has.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(refused("mmap"));
    }
    // SAFETY: the whole of this mapping, which nobody uses yet.
    match unsafe { libc::madvise(at, len, libc::MADV_DONTFORK) } {
        0 => Ok(at.cast()),
        _ => {
            let error = refused("MADV_DONTFORK");
            // SAFETY: the same.
            unsafe { libc::munmap(at, len) };
            Err(error)
        }
    }
}

impl PageFile {
    /// So many bytes, whole pages, none of which is there yet.
    pub fn new(len: usize) -> Result<PageFile, RegionError> {
        // SAFETY: the name is a string that ends with zero, and the call gives a file.
        let fd = unsafe { libc::memfd_create(c"rackmem-pages".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(refused("memfd_create"));
        }
        // SAFETY: the kernel has just given it to this call, which owns it.
        let file: File = unsafe { OwnedFd::from_raw_fd(fd) }.into();
        file.set_len(len as u64).map_err(|_| refused("ftruncate"))?;
        let at = map(&file, len)?;
        Ok(PageFile { file, at, len })
    }

    /// Its pages at a second place.
    pub fn alias(&self) -> Result<Alias, RegionError> {
        let (at, len) = (map(&self.file, self.len)?, self.len);
        Ok(Alias { at, len })
    }

    pub fn as_ptr(&self) -> *mut u8 {
        self.at.cast()
    }

    pub fn address(&self) -> u64 {
        self.at as u64
    }

    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many bytes are mapped, aligned to a page, and all bytes are valid words. An
        // absent page comes when it is touched. Others who change them do so by atomics, or
        // through raw pointers, for which they answer.
        unsafe { std::slice::from_raw_parts(self.at, self.len / 8) }
    }

    /// The bytes of a page that is there.
    pub fn read(&self, at: usize, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, at as u64)
    }

    /// Writes to a page that is there.
    pub fn write(&self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at as u64)
    }

    /// Makes pages absent, and gives their memory back.
    pub fn discard(&self, at: usize, len: usize) -> io::Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (at, len) = (at as libc::off_t, len as libc::off_t);
        // SAFETY: it changes a file that is ours. What is mapped of it stays valid words: an absent
        // page comes with its content when it is touched.
        match unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What loads and stores of the mapping may do with these pages: `PROT_NONE` and the like. When
    /// it returns no processor does more.
    pub fn allow(&self, bytes: Range<usize>, access: libc::c_int) -> io::Result<()> {
        if bytes.end > self.len || bytes.start > bytes.end {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: pages of this mapping. Who touches one without the right has a fault, which is
        // handled.
        let done = unsafe {
            let first = self.at.cast::<u8>().add(bytes.start);
            libc::mprotect(first.cast(), bytes.len(), access)
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Takes pages out of the mapping, with what marks them there.
    pub fn unmap(&self, at: usize, len: usize) -> io::Result<()> {
        if at + len > self.len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: pages of this mapping; a load brings them back from the file, or as a fault.
        let done = unsafe {
            let first = self.at.cast::<u8>().add(at);
            libc::madvise(first.cast(), len, libc::MADV_DONTNEED)
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for PageFile {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nothing borrows it any more.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}
