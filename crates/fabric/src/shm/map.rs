//! Memory that several processes have mapped, as atomic words.
//!
//! Whatever another process does to such memory, its words have some value:
//! nothing here reads it as anything but atomic words, so a corrupt peer can tell lies, but not
//! break the language's rules. It could still cut the file short and so end those who have mapped
//! it; only the same user may open the file, and could kill them anyway.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::AtomicU64;

/// A file in memory, mapped whole.
pub(super) struct Mapping {
    words: *const AtomicU64,
    len: usize,
    file: File,
}

// SAFETY: the memory is only reached as atomic words, and the mapping lives as long as the value.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing in it changes but through atomics.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` words of a file that has at least as many.
    pub fn of(file: File, len: usize) -> io::Result<Mapping> {
        Mapping::with(file, len, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// The same, to read only: a store there ends this process.
    pub fn read_only(file: File, len: usize) -> io::Result<Mapping> {
        Mapping::with(file, len, libc::PROT_READ)
    }

    fn with(file: File, len: usize, access: libc::c_int) -> io::Result<Mapping> {
        let bytes = len.checked_mul(8).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a file of another layout",
            ));
        }
        Mapping::whole(file, bytes, access)
    }

    /// Maps memory of the kernel's, which has a descriptor and no length: the kernel refuses to map
    /// more than there is.
    pub fn of_kernel(file: File, len: usize) -> io::Result<Mapping> {
        let bytes = len.checked_mul(8).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        Mapping::whole(file, bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    fn whole(file: File, bytes: usize, access: libc::c_int) -> io::Result<Mapping> {
        // SAFETY: a new mapping at an address of the system's choice; the file is as long as what
        // is mapped, or the kernel refuses what is longer.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping {
            words: start.cast(),
            len: bytes / 8,
            file,
        })
    }

    /// All words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is readable, page-aligned, `len` words long, and lives as long as
        // `self`. Every pattern of bits is a value of a word. Where it is not writable, who has it
        // only loads words, which are no wider than what the processor loads at once.
        unsafe { std::slice::from_raw_parts(self.words, self.len) }
    }

    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what `of` mapped, and nothing borrowed from it is left.
        // It can only fail for a range that is none.
        unsafe { libc::munmap(self.words.cast_mut().cast(), self.len * 8) };
    }
}

/// A file of this length without a name, in memory.
pub(super) fn nameless(bytes: u64) -> io::Result<File> {
    // SAFETY: the name is a string that ends with a zero byte.
    let fd = unsafe { libc::memfd_create(c"rackmem".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor with no other owner.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(bytes)?;
    Ok(file)
}

/// Has the system set aside memory for a range of words, so that using it cannot fail later.
pub(super) fn reserve(file: &File, first: usize, words: usize) -> io::Result<()> {
    let fit =
        |words: usize| i64::try_from(words as u64 * 8).map_err(|_| io::ErrorKind::InvalidInput);
    // SAFETY: no pointers; the descriptor is open.
    let result = unsafe { libc::posix_fallocate(file.as_raw_fd(), fit(first)?, fit(words)?) };
    match result {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
