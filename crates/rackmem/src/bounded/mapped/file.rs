//! A file or device that several machines, or processes, have mapped; and memory of this process
//! alone, which is a cache where there is none to be managed.

use crate::error::ArenaError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// Pages of `/dev/dax`.
const DEVICE_PAGE: usize = 2 << 20;

/// Words that stay mapped as long as the value lives.
///
/// Whatever another process does to them, they have some value. It could cut the file short, and
/// so end those who have mapped it: it has the rights to do worse.
pub(super) struct MappedFile {
    at: *mut AtomicU64,
    len: usize,
}

// SAFETY: what is behind the pointer is atomics, unmapped by the one owner.
unsafe impl Send for MappedFile {}
// SAFETY: the same.
unsafe impl Sync for MappedFile {}

/// What the system has said to this.
pub(super) fn no_file(tried: &'static str, error: &io::Error) -> ArenaError {
    let os = error.raw_os_error().unwrap_or(0);
    ArenaError::NoFile { tried, os }
}

/// Opens what is there, to read and write.
pub(super) fn open(path: &Path) -> Result<File, ArenaError> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map_err(|error| no_file("open", &error))
}

/// So many bytes of memory become the file's, so that using them cannot fail later.
pub(super) fn reserve(file: &File, bytes: u64) -> Result<(), ArenaError> {
    let len = libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
    // SAFETY: no pointers; the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
        0 => Ok(()),
        os => Err(ArenaError::NoFile {
            tried: "fallocate",
            os,
        }),
    }
}

impl MappedFile {
    /// The first bytes of a file, which has as many, or of a device.
    pub fn shared(file: &File, bytes: usize) -> Result<Self, ArenaError> {
        Self::of(file, bytes, libc::PROT_READ | libc::PROT_WRITE)
    }

    /// The same, to look at: a store there ends this process.
    pub fn read_only(file: &File, bytes: usize) -> Result<Self, ArenaError> {
        Self::of(file, bytes, libc::PROT_READ)
    }

    fn of(file: &File, bytes: usize, access: libc::c_int) -> Result<Self, ArenaError> {
        let meta = file.metadata().map_err(|error| no_file("stat", &error))?;
        let device = meta.file_type().is_char_device();
        if !device && meta.len() < bytes as u64 {
            let tried = "it is shorter than an arena of this size";
            return Err(ArenaError::NoFile { tried, os: 0 });
        }
        // The kernel maps whole pages of a device, and not more of them than there are.
        let len = if device {
            bytes.next_multiple_of(DEVICE_PAGE)
        } else {
            bytes
        };
        Self::map(len, access, (libc::MAP_SHARED, file.as_raw_fd()))
    }

    /// Zeros of this process alone, which take memory when they are written.
    pub fn private(bytes: usize) -> Result<Self, ArenaError> {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Self::map(bytes, libc::PROT_READ | libc::PROT_WRITE, (kind, -1))
    }

    fn map(
        len: usize,
        access: libc::c_int,
        (kind, fd): (libc::c_int, libc::c_int),
    ) -> Result<Self, ArenaError> {
        // SAFETY: a new mapping at an address of the system's choice, of a file that is as long,
        // of a device, which the kernel knows the length of, or of no file.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(no_file("mmap", &io::Error::last_os_error()));
        }
        let at = at.cast();
        Ok(MappedFile { at, len })
    }

    /// All words.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many bytes are mapped, aligned to a page, for as long as `self` lives, and
        // every pattern of bits is a word. Others change them by whole words or by lines.
        unsafe { std::slice::from_raw_parts(self.at, self.len / 8) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and nothing borrowed from it is left.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}
