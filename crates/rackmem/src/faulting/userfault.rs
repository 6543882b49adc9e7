//! Page faults that this process handles itself: Linux' userfaultfd.
//!
//! The calls are a handful of structs of words, so they are written down here: the crates that have
//! them lack the later ones, and would bring more code than this.

use crate::error::RegionError;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What a fault is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub address: u64,
    /// A store.
    pub writes: bool,
    /// The page is there, and its place in the mapping is empty.
    pub minor: bool,
}

/// The file whose reader handles faults.
pub(crate) struct Faults {
    file: File,
    /// Loads of a page can be made to fail.
    poison: bool,
    /// System calls that meet an absent page wait for it; otherwise they fail (`EFAULT`).
    pub of_system_calls: bool,
}

// `linux/userfaultfd.h`.
const API: u64 = 0xaa;
const PAGEFAULT: u8 = 0x12;
const FAULT_WRITE: u64 = 1;
const FAULT_PROTECTED: u64 = 1 << 1;
const FAULT_MINOR: u64 = 1 << 2;
const USER_MODE_ONLY: libc::c_int = 1;
const MESSAGE: usize = 32;

const FEATURE_MISSING_SHMEM: u64 = 1 << 5;
const FEATURE_SIGNAL: u64 = 1 << 7;
const FEATURE_MINOR_SHMEM: u64 = 1 << 10;
const FEATURE_PROTECT_SHMEM: u64 = 1 << 12;
const FEATURE_POISON: u64 = 1 << 14;
const FEATURES: u64 = FEATURE_MISSING_SHMEM | FEATURE_MINOR_SHMEM | FEATURE_PROTECT_SHMEM;

const REGISTER_MISSING: u64 = 1;
const REGISTER_PROTECT: u64 = 1 << 1;
const REGISTER_MINOR: u64 = 1 << 2;
const COPY_PROTECTED: u64 = 1 << 1;
const CONTINUE_PROTECTED: u64 = 1 << 1;
const PROTECT: u64 = 1;

const READ: u64 = 2;
const READ_WRITE: u64 = 3;

/// The number of a request whose argument has so many words.
const fn request(direction: u64, number: u64, words: u64) -> u64 {
    direction << 30 | (words * 8) << 16 | API << 8 | number
}

const UFFDIO_REGISTER: u64 = request(READ_WRITE, 0x00, 4);
const UFFDIO_WAKE: u64 = request(READ, 0x02, 2);
const UFFDIO_COPY: u64 = request(READ_WRITE, 0x03, 5);
const UFFDIO_WRITEPROTECT: u64 = request(READ_WRITE, 0x06, 3);
const UFFDIO_CONTINUE: u64 = request(READ_WRITE, 0x07, 4);
const UFFDIO_POISON: u64 = request(READ_WRITE, 0x08, 4);
const UFFDIO_API: u64 = request(READ_WRITE, 0x3f, 3);
/// Of the device, not of the file: makes one.
const USERFAULTFD_IOC_NEW: u64 = API << 8;

fn os(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

/// `words`: the argument's. What it says of memory is true (see the callers).
fn call<const WORDS: usize>(file: RawFd, request: u64, words: &mut [u64; WORDS]) -> io::Result<()> {
    // SAFETY: the request's number has the length of its argument, which is `words`, alive and
    // ours alone for the length of the call. Memory that it names is a `PageFile`'s, whose content
    // Rust code sees through atomics and raw pointers only.
    let done = unsafe { libc::ioctl(file, request as libc::Ioctl, words.as_mut_ptr()) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The file of a number that a call has just given.
fn owned(number: libc::c_long) -> io::Result<File> {
    match RawFd::try_from(number) {
        // SAFETY: the kernel has just given it to this call, which owns it.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn by_system_call(flags: libc::c_int) -> io::Result<File> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: it takes flags and gives a file, nothing else.
    owned(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })
}

fn by_device() -> io::Result<File> {
    let device = File::options()
        .read(true)
        .write(true)
        .open("/dev/userfaultfd")?;
    let flags = (libc::O_CLOEXEC | libc::O_NONBLOCK) as libc::c_ulong;
    let new = USERFAULTFD_IOC_NEW as libc::Ioctl;
    // SAFETY: the argument of this request is its flags, and it gives a file.
    owned(unsafe { libc::ioctl(device.as_raw_fd(), new, flags) }.into())
}

impl Faults {
    /// The widest that this process may have: with faults of system calls by privilege or by the
    /// device, and otherwise those of its own instructions.
    pub fn open() -> Result<Faults, RegionError> {
        let whole = by_system_call(0).or_else(|_| by_device());
        let of_system_calls = whole.is_ok();
        Faults::agree(whole, of_system_calls, 0)
    }

    /// Each is a signal (`SIGBUS`) to its thread, and nobody reads this file.
    /// It takes no privilege.
    pub fn by_signal() -> Result<Faults, RegionError> {
        Faults::agree(by_system_call(USER_MODE_ONLY), false, FEATURE_SIGNAL)
    }

    fn agree(
        file: io::Result<File>,
        of_system_calls: bool,
        more: u64,
    ) -> Result<Faults, RegionError> {
        let file = file.or_else(|_| by_system_call(USER_MODE_ONLY));
        let file = file.map_err(|error| refused("userfaultfd", &error))?;
        let fd = file.as_raw_fd();
        let agree = |features| call(fd, UFFDIO_API, &mut [API, features | more, 0]);
        let poison = agree(FEATURES | FEATURE_POISON).is_ok();
        if !poison {
            let agreed = agree(FEATURES);
            agreed.map_err(|error| refused("UFFDIO_API: write protection of files", &error))?;
        }
        Ok(Faults {
            file,
            poison,
            of_system_calls,
        })
    }

    /// From now on faults in this mapping are handled here.
    pub fn register(&self, at: u64, len: usize) -> Result<(), RegionError> {
        let modes = REGISTER_MISSING | REGISTER_PROTECT | REGISTER_MINOR;
        let done = self.call(UFFDIO_REGISTER, &mut [at, len as u64, modes, 0]);
        done.map_err(|error| refused("UFFDIO_REGISTER", &error))
    }

    fn call<const WORDS: usize>(&self, request: u64, words: &mut [u64; WORDS]) -> io::Result<()> {
        call(self.file.as_raw_fd(), request, words)
    }

    /// The next fault, if there is one.
    pub fn next(&self) -> Option<Fault> {
        let mut message = [0; MESSAGE];
        let len = (&self.file).read(&mut message).ok()?;
        parse(message.get(..len)?)
    }

    /// Sleeps until there is a fault, or `stop` is closed: false.
    pub fn wait(&self, stop: &impl AsRawFd) -> bool {
        let mut polled = [self.file.as_raw_fd(), stop.as_raw_fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: the pointer and the count are those of `polled`.
        unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) };
        polled[1].revents == 0
    }

    /// Fills an absent page and lets those go on that wait for it.
    pub fn fill(&self, at: u64, bytes: &[u8], protected: bool) -> io::Result<()> {
        let mode = if protected { COPY_PROTECTED } else { 0 };
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            let from = rest.as_ptr() as u64;
            let mut words = [at + done as u64, from, rest.len() as u64, mode, 0];
            match self.call(UFFDIO_COPY, &mut words) {
                Ok(()) => return Ok(()),
                // The process' mappings have changed meanwhile; a part may be done.
                Err(error) if os(&error) == libc::EAGAIN => {
                    done += usize::try_from(words[4] as i64).unwrap_or(0);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Maps pages that are there in the file, and those that wait for them go on. Where they are
    /// mapped already they stay as they are (false), and nobody is woken.
    pub fn map_again(&self, (at, len): (u64, usize), protected: bool) -> io::Result<bool> {
        let mode = if protected { CONTINUE_PROTECTED } else { 0 };
        let done = self.again(UFFDIO_CONTINUE, &mut [at, len as u64, mode, 0]);
        match done {
            Err(error) if os(&error) == libc::EEXIST => Ok(false),
            done => done.map(|()| true),
        }
    }

    /// From now on the first store is a fault. When this returns no store that another thread has
    /// begun is under way.
    pub fn protect(&self, (at, len): (u64, usize)) -> io::Result<()> {
        self.again(UFFDIO_WRITEPROTECT, &mut [at, len as u64, PROTECT])
    }

    /// Stores are none any more, and those that wait go on.
    pub fn unprotect(&self, (at, len): (u64, usize)) -> io::Result<()> {
        self.again(UFFDIO_WRITEPROTECT, &mut [at, len as u64, 0])
    }

    /// Those that wait look again.
    pub fn wake(&self, (at, len): (u64, usize)) -> io::Result<()> {
        self.call(UFFDIO_WAKE, &mut [at, len as u64])
    }

    /// Loads of these pages fail by a signal (`SIGBUS`) from here on. False: this kernel cannot.
    pub fn fail(&self, (at, len): (u64, usize)) -> bool {
        let mut words = [at, len as u64, 0, 0];
        self.poison && self.again(UFFDIO_POISON, &mut words).is_ok()
    }

    /// While the process' mappings change the kernel asks to be asked again.
    fn again<const WORDS: usize>(&self, request: u64, words: &mut [u64; WORDS]) -> io::Result<()> {
        let asked = *words;
        loop {
            match self.call(request, words) {
                Err(error) if os(&error) == libc::EAGAIN => *words = asked,
                done => return done,
            }
        }
    }
}

fn refused(tried: &'static str, error: &io::Error) -> RegionError {
    let os = os(error);
    RegionError::NoPaging { tried, os }
}

fn parse(message: &[u8]) -> Option<Fault> {
    let word = |at: usize| message.get(at..at + 8)?.try_into().ok();
    let flags = u64::from_ne_bytes(word(8)?);
    let address = u64::from_ne_bytes(word(16)?);
    (*message.first()? == PAGEFAULT).then_some(Fault {
        address,
        writes: flags & (FAULT_WRITE | FAULT_PROTECTED) != 0,
        minor: flags & FAULT_MINOR != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_kernels_numbers() {
        assert_eq!(UFFDIO_API, 0xc018_aa3f);
        assert_eq!(UFFDIO_REGISTER, 0xc020_aa00);
        assert_eq!(UFFDIO_WAKE, 0x8010_aa02);
        assert_eq!(UFFDIO_COPY, 0xc028_aa03);
        assert_eq!(UFFDIO_WRITEPROTECT, 0xc018_aa06);
        assert_eq!(UFFDIO_CONTINUE, 0xc020_aa07);
        assert_eq!(UFFDIO_POISON, 0xc020_aa08);
    }

    #[test]
    fn a_message_is_a_fault_or_nothing() {
        let mut message = [0; MESSAGE];
        message[0] = PAGEFAULT;
        message[8..16].copy_from_slice(&(FAULT_MINOR | FAULT_WRITE).to_ne_bytes());
        message[16..24].copy_from_slice(&0x7000_u64.to_ne_bytes());
        let fault = Fault {
            address: 0x7000,
            writes: true,
            minor: true,
        };
        assert_eq!(parse(&message), Some(fault));
        assert_eq!(parse(&message[..20]), None);
        assert_eq!(parse(&[]), None);
        message[0] = 0x15;
        assert_eq!(parse(&message), None);
    }
}
