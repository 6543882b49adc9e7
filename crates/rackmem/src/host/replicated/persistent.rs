//! The files of a store in persistent memory (`durability = dax`): mapped, written by stores, and
//! made durable by the processor instead of the system.
//!
//! A file begins with a page that says how much behind it counts. What is appended goes where
//! nothing counts yet; when that is durable, one word makes it count, and is made durable:
//!
//! ```text
//! append   bytes behind the end                     write back their cache lines
//! sync     fence; published = end (one word)        write back its cache line; fence
//! ```
//!
//! So a power failure leaves all of a batch or nothing of it, whatever lines have come to the
//! medium by themselves. Memory is taken before it is written (`fallocate`): a full medium is an
//! error and no signal. Files are read by the system: memory that it cannot read is an error too.

use rackmem_journal::{Disk, FRONT as FRONT_BYTES, Folder, PUBLISHED};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Bytes of the page in front.
const FRONT: usize = FRONT_BYTES as usize;
/// Bytes that a file grows by at least.
const STEP: usize = 1 << 20;
/// Bytes of a cache line.
const CACHE_LINE: usize = 64;

/// What makes stores to mapped memory durable.
pub(crate) trait Persist: Send {
    /// Flags of the mapping.
    fn flags(&self) -> libc::c_int;
    /// Begins to write these bytes of a mapping back.
    fn write_back(&mut self, bytes: &[u8]);
    /// What was begun is durable.
    fn fence(&mut self);
}

/// The processor, on a file system whose files are the medium itself.
pub(crate) struct Processor;

impl Processor {
    /// None: this processor has no instruction for it.
    pub fn new() -> Option<Self> {
        has_clwb().then_some(Processor)
    }
}

impl Persist for Processor {
    /// Where the file's place on the medium is not durable too, the system refuses.
    fn flags(&self) -> libc::c_int {
        libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC
    }

    fn write_back(&mut self, bytes: &[u8]) {
        bytes.chunks(CACHE_LINE).for_each(clwb);
        // The last line, where the bytes begin inside of one.
        if let Some(last) = bytes.last() {
            clwb(std::slice::from_ref(last));
        }
    }

    fn fence(&mut self) {
        sfence();
    }
}

#[cfg(target_arch = "x86_64")]
fn has_clwb() -> bool {
    // Structured extended features: bit 24 of ebx.
    std::arch::x86_64::__cpuid(0).eax >= 7
        && std::arch::x86_64::__cpuid_count(7, 0).ebx >> 24 & 1 == 1
}

#[cfg(target_arch = "x86_64")]
fn clwb(of: &[u8]) {
    // SAFETY: changes no memory and no flag; the address is that of a byte that can be read. Only a
    // processor that has the instruction comes here (`Processor::new`).
    unsafe { std::arch::asm!("clwb [{}]", in(reg) of.as_ptr(), options(nostack, preserves_flags)) }
}

#[cfg(target_arch = "x86_64")]
fn sfence() {
    // SAFETY: every processor of this architecture has it.
    unsafe { std::arch::x86_64::_mm_sfence() }
}

#[cfg(not(target_arch = "x86_64"))]
fn has_clwb() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn clwb(_: &[u8]) {}

#[cfg(not(target_arch = "x86_64"))]
fn sfence() {}

/// A piece of a file, mapped. Nobody else has it.
struct Piece {
    at: *mut u8,
    len: usize,
}

// SAFETY: the memory is this value's own, and it has no thread.
unsafe impl Send for Piece {}

impl Piece {
    fn of(file: &File, (offset, len): (usize, usize), flags: libc::c_int) -> io::Result<Piece> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (fd, offset) = (file.as_raw_fd(), offset as libc::off_t);
        // SAFETY: a new mapping at an address of the system's choice, of a file that is as long.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, offset) };
        match at == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Piece { at: at.cast(), len }),
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped to read and write, so long, and borrowed from its only owner.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: what `of` has mapped; nothing is borrowed from it.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

/// A file that is written to.
struct Mapped {
    file: File,
    front: Piece,
    /// What is behind the front page, piece by piece.
    pieces: Vec<Piece>,
    /// Bytes that these have.
    room: usize,
    /// Bytes that were appended.
    end: usize,
}

impl Mapped {
    fn new(file: File, persist: &mut dyn Persist) -> io::Result<Mapped> {
        take(&file, (0, FRONT))?;
        let mut front = Piece::of(&file, (0, FRONT), persist.flags())?;
        let page = front.bytes();
        page.fill(0);
        page[..8].copy_from_slice(PUBLISHED);
        persist.write_back(page);
        persist.fence();
        Ok(Mapped {
            file,
            front,
            pieces: Vec::new(),
            room: 0,
            end: 0,
        })
    }

    fn grow(&mut self, more: usize, persist: &dyn Persist) -> io::Result<()> {
        let len = more.div_ceil(STEP) * STEP;
        let offset = FRONT + self.room;
        take(&self.file, (offset, len))?;
        self.pieces
            .push(Piece::of(&self.file, (offset, len), persist.flags())?);
        self.room += len;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8], persist: &mut dyn Persist) -> io::Result<usize> {
        if self.end + bytes.len() > self.room {
            self.grow(self.end + bytes.len() - self.room, persist)?;
        }
        let (mut rest, mut skip) = (bytes, self.end);
        for piece in &mut self.pieces {
            let Some(free) = piece
                .bytes()
                .get_mut(skip..)
                .filter(|free| !free.is_empty())
            else {
                skip -= piece.len;
                continue;
            };
            let (now, later) = rest.split_at(rest.len().min(free.len()));
            free[..now.len()].copy_from_slice(now);
            persist.write_back(&free[..now.len()]);
            (rest, skip) = (later, 0);
            if rest.is_empty() {
                break;
            }
        }
        self.end += bytes.len();
        Ok(bytes.len())
    }

    fn publish(&mut self, persist: &mut dyn Persist) {
        persist.fence();
        let word = &mut self.front.bytes()[8..16];
        let at = word.as_mut_ptr().cast::<u64>();
        // SAFETY: eight bytes of a page, at a multiple of eight: one store, which a power failure
        // does not tear.
        unsafe { at.write_volatile((self.end as u64).to_le()) };
        persist.write_back(word);
        persist.fence();
    }
}

/// The medium's memory for these bytes of a file, taken durably: stores that follow need none.
fn take(file: &File, (offset, len): (usize, usize)) -> io::Result<()> {
    let (at, len) = (offset as libc::off_t, len as libc::off_t);
    // SAFETY: a call about an open file, without memory of this process.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), at, len) } {
        0 => file.sync_all(),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// A folder of a store whose files are written so. Names, and who has the folder, are the file
/// system's.
pub(crate) struct PersistentFolder<P> {
    names: Folder,
    path: PathBuf,
    open: HashMap<String, Mapped>,
    persist: P,
}

impl<P: Persist> PersistentFolder<P> {
    /// Of this folder, which is at that path. The error of a file system whose files are not the
    /// medium is the system's.
    pub fn new(names: Folder, path: PathBuf, mut persist: P) -> io::Result<Self> {
        let probe = path.join("probe");
        let options = |path| {
            OpenOptions::new()
                .create(true)
                .truncate(true)
                .read(true)
                .write(true)
                .open(path)
        };
        let mapped = options(&probe).and_then(|file| Mapped::new(file, &mut persist));
        let _ = std::fs::remove_file(&probe);
        mapped?;
        Ok(PersistentFolder {
            names,
            path,
            open: HashMap::new(),
            persist,
        })
    }

    /// The files as a medium has them that is asked for each cache line by its address.
    #[cfg(test)]
    pub fn on_the_medium(
        self,
        mut line: impl FnMut(usize) -> [u8; CACHE_LINE],
    ) -> Vec<(String, Vec<u8>)> {
        let files = self.open.into_iter();
        let file = |(name, mapped): (String, Mapped)| {
            let pieces = std::iter::once(&mapped.front).chain(&mapped.pieces);
            let lines = pieces.flat_map(|piece| {
                (0..piece.len)
                    .step_by(CACHE_LINE)
                    .map(|at| piece.at.addr() + at)
            });
            (name, lines.flat_map(&mut line).collect())
        };
        files.map(file).collect()
    }

    fn at(&mut self, name: &str) -> io::Result<(&mut Mapped, &mut P)> {
        let mapped = self.open.get_mut(name);
        // A store writes to files that it has made.
        Ok((mapped.ok_or(io::ErrorKind::NotFound)?, &mut self.persist))
    }
}

impl<P: Persist> Disk for PersistentFolder<P> {
    fn place(&self) -> String {
        self.names.place()
    }

    fn names(&mut self) -> io::Result<Vec<String>> {
        self.names.names()
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path.join(name))?;
        let mut front = [0; 16];
        file.read_exact(&mut front)?;
        let (magic, published) = front.split_at(8);
        let published = published
            .try_into()
            .map(u64::from_le_bytes)
            .unwrap_or(u64::MAX);
        let there = file.metadata()?.len().saturating_sub(FRONT as u64);
        if magic != PUBLISHED || published > there {
            let wrong = "its first page is not that of a file in persistent memory";
            return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
        }
        file.seek(SeekFrom::Start(FRONT as u64))?;
        let mut bytes = Vec::new();
        file.take(published).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).read(true).write(true);
        let file = options.open(self.path.join(name))?;
        let mapped = Mapped::new(file, &mut self.persist)?;
        self.open.insert(name.to_owned(), mapped);
        Ok(())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<usize> {
        let (mapped, persist) = self.at(name)?;
        mapped.append(bytes, persist)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let (mapped, persist) = self.at(name)?;
        mapped.publish(persist);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.names.rename(from, to)?;
        if let Some(mapped) = self.open.remove(from) {
            self.open.insert(to.to_owned(), mapped);
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.open.remove(name);
        self.names.remove(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.names.sync_names()
    }
}
