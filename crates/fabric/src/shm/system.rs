//! What the system does for processes that share memory: sleep and wake, and tell who lives.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// What a word holds while someone sleeps on it: the same in both halves,
/// because the system looks at 32 bits.
pub(super) const ASLEEP: u64 = 1 << 32 | 1;

/// Sleeps while the word is [`ASLEEP`], until someone wakes it, but no longer than this.
pub(super) fn sleep(word: &AtomicU64, at_most: Duration) {
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(at_most.as_secs()).unwrap_or(libc::time_t::MAX),
        // Always less than 10^9, which fits every definition of the type.
        tv_nsec: at_most.subsec_nanos() as libc::c_long,
    };
    let none = std::ptr::null::<u32>();
    // SAFETY: the word outlives the call and is aligned for its half; the time is a local.
    // Whatever the reason for which the call returns, the caller looks again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr().cast::<u32>(),
            libc::FUTEX_WAIT,
            ASLEEP as u32,
            &raw const time,
            none,
            0,
        );
    }
}

/// Wakes who sleeps on the word.
pub(super) fn wake(word: &AtomicU64) {
    let none = std::ptr::null::<u32>();
    // SAFETY: the word outlives the call, which only uses its address.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr().cast::<u32>(),
            libc::FUTEX_WAKE,
            1,
            none,
            none,
            0,
        );
    }
}

/// The user whose rights this process has.
pub(super) fn user() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

fn whole_file() -> libc::flock {
    // SAFETY: a struct of integers, for all of which zero is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

/// Says with a lock on the file that its owner lives. The system takes it away when the last thread
/// of the process has ended, and not before. False when another process has it.
pub(super) fn claim(file: &File) -> io::Result<bool> {
    let lock = whole_file();
    // SAFETY: the descriptor is open and the struct outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
        0 => Ok(true),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            error => Err(error),
        },
    }
}

/// Takes the lock back.
pub(super) fn disclaim(file: &File) -> io::Result<()> {
    let mut lock = whole_file();
    lock.l_type = libc::F_UNLCK as libc::c_short;
    // SAFETY: the descriptor is open and the struct outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether somebody who opened the file for himself has said that he lives. Takes no lock,
/// so that asking is never mistaken for living.
pub(super) fn claimed(file: &File) -> bool {
    let mut lock = whole_file();
    // SAFETY: the descriptor is open, and the struct outlives the call, which writes into it.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    asked == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
}
