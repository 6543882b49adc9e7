//! `fcntl` and `flock`: tables of locked bytes, in pages of locks of the rack. What a dead node had
//! locked is free.

use crate::answer::{Done, Errno, answer, refuse};
use crate::fds::{self, Open};
use crate::files::File;
use crate::inside::Inside;
use crate::next::next;
use crate::spans::{self, Span, VERSION};
use libc::{c_int, c_short, flock as Flock};
use rackmem::Wait;
use std::sync::PoisonError;
use std::time::Duration;

/// The locks of a file that have the tables.
const BYTES: usize = 1;
const WHOLE: usize = 2;
/// A node may have died with what another waits for: who waits looks again.
const PATIENCE: Duration = Duration::from_millis(250);

/// What `fcntl` is to do about locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    does: Does,
    /// They are the descriptor's, and not the process'.
    of_open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    Ask,
    Try,
    Wait,
}

const COMMANDS: &[(c_int, Does, bool)] = &[
    (libc::F_GETLK, Does::Ask, false),
    (libc::F_SETLK, Does::Try, false),
    (libc::F_SETLKW, Does::Wait, false),
    (libc::F_OFD_GETLK, Does::Ask, true),
    (libc::F_OFD_SETLK, Does::Try, true),
    (libc::F_OFD_SETLKW, Does::Wait, true),
];

/// The command of a number of `fcntl`'s, if it is about locks.
pub fn command(number: c_int) -> Option<Command> {
    let row = COMMANDS.iter().find(|row| row.0 == number)?;
    Some(Command {
        does: row.1,
        of_open: row.2,
    })
}

/// The owner of a process' locks, or of a descriptor's.
fn owner(open: &Open, of_open: bool) -> (u64, u32) {
    let number = if of_open { open.number } else { 0 };
    (open.file.member.life(), number)
}

/// The bytes that a program means.
fn span(open: &Open, wanted: &Flock, of_open: bool) -> Done<Span> {
    let base = match c_int::from(wanted.l_whence) {
        libc::SEEK_SET => 0,
        libc::SEEK_CUR => *open.at.lock().unwrap_or_else(PoisonError::into_inner) as i64,
        libc::SEEK_END => open.file.row()?.size as i64,
        _ => return Err(Errno(libc::EINVAL)),
    };
    let invalid = Errno(libc::EINVAL);
    let mut start = base.checked_add(wanted.l_start).ok_or(invalid)?;
    let mut len = wanted.l_len;
    if len < 0 {
        start = start.checked_add(len).ok_or(invalid)?;
        len = -len;
    }
    let start = u64::try_from(start).map_err(|_| invalid)?;
    Ok(Span {
        start,
        end: if len == 0 {
            u64::MAX
        } else {
            start + len as u64
        },
        alone: c_int::from(wanted.l_type) == libc::F_WRLCK,
        owner: owner(open, of_open),
        pid: open.file.member.told_pid(),
    })
}

/// Locks, or unlocks, as soon as that can be.
fn set(file: &File, table: usize, wanted: &Span, (locks, waits): (bool, bool)) -> Done {
    loop {
        let version = {
            let mut held = file.locks.write(table)?;
            let before = spans::load(&held.view(), file.life());
            let live = |span: &Span| !file.member.is_dead(span.owner.0);
            let now: Vec<Span> = before.into_iter().filter(live).collect();
            if !locks || spans::in_the_way(&now, wanted).is_none() {
                let now = spans::changed(&now, wanted, locks);
                if spans::store(&mut held.view_mut(0), file.life(), &now) {
                    file.has_locked();
                    return Ok(());
                }
                let text = format!(
                    "{}: {} parts of it are locked, which is as many as can be",
                    file.name,
                    spans::MOST
                );
                return refuse(libc::ENOLCK, &text);
            }
            held.view().u64(VERSION)
        };
        if !waits {
            return Err(Errno(libc::EAGAIN));
        }
        let changed = |page: &rackmem::Window<'_>| (page.u64(VERSION) != version).then_some(());
        file.locks.await_page(table, Wait::For(PATIENCE), changed)?;
    }
}

/// Who has what is wanted.
fn ask(file: &File, wanted: &Span) -> Done<Option<Span>> {
    let spans = spans::load(&file.locks.read(BYTES)?.view(), file.life());
    let live = spans
        .into_iter()
        .filter(|span| !file.member.is_dead(span.owner.0));
    let live: Vec<Span> = live.collect();
    Ok(spans::in_the_way(&live, wanted).copied())
}

/// Carries out a command of `fcntl`.
///
/// # Safety
/// `lock` is null or may be read and written.
pub unsafe fn act(open: &Open, command: Command, lock: *mut Flock) -> Done<c_int> {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    let lock = unsafe { lock.as_mut() }.ok_or(Errno(libc::EFAULT))?;
    let wanted = span(open, lock, command.of_open)?;
    let locks = match c_int::from(lock.l_type) {
        libc::F_UNLCK => false,
        libc::F_RDLCK | libc::F_WRLCK => true,
        _ => return Err(Errno(libc::EINVAL)),
    };
    if command.does != Does::Ask {
        set(
            &open.file,
            BYTES,
            &wanted,
            (locks, command.does == Does::Wait),
        )?;
        return Ok(0);
    }
    match ask(&open.file, &wanted)? {
        None => lock.l_type = libc::F_UNLCK as c_short,
        Some(span) => {
            lock.l_type = if span.alone {
                libc::F_WRLCK
            } else {
                libc::F_RDLCK
            } as c_short;
            lock.l_whence = libc::SEEK_SET as c_short;
            lock.l_start = span.start as i64;
            lock.l_len = if span.end == u64::MAX {
                0
            } else {
                (span.end - span.start) as i64
            };
            lock.l_pid = if span.owner.1 == 0 {
                span.pid as i32
            } else {
                -1
            };
        }
    }
    Ok(0)
}

/// All of a file, for an owner.
fn all(open: &Open, of_open: bool, alone: bool) -> Span {
    Span {
        start: 0,
        end: u64::MAX,
        alone,
        owner: owner(open, of_open),
        pid: open.file.member.told_pid(),
    }
}

/// A descriptor is closed: the process' locks of the file go, and with the `last` one those that
/// descriptors have.
pub fn close(open: &Open, last: bool) -> Done {
    if !open.file.is_locked() {
        return Ok(());
    }
    let unlock = (false, false);
    set(&open.file, BYTES, &all(open, false, false), unlock)?;
    if last {
        set(&open.file, BYTES, &all(open, true, false), unlock)?;
        set(&open.file, WHOLE, &all(open, true, false), unlock)?;
    }
    Ok(())
}

impl File {
    /// All that this node has locked is free.
    pub fn release_locks(&self) -> Done {
        if !self.is_locked() {
            return Ok(());
        }
        for table in [BYTES, WHOLE] {
            let mut held = self.locks.write(table)?;
            let spans = spans::load(&held.view(), self.life());
            let ours = self.member.life();
            let others: Vec<Span> = spans
                .into_iter()
                .filter(|span| span.owner.0 != ours)
                .collect();
            spans::store(&mut held.view_mut(0), self.life(), &others);
        }
        Ok(())
    }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flock(fd: c_int, how: c_int) -> c_int {
    let Some(open) = fds::get(fd) else {
        // SAFETY: the caller's.
        return unsafe { next!(flock: unsafe extern "C" fn(c_int, c_int) -> c_int)(fd, how) };
    };
    answer(-1, || {
        let _inside = Inside::enter();
        let waits = how & libc::LOCK_NB == 0;
        let (locks, alone) = match how & !libc::LOCK_NB {
            libc::LOCK_SH => (true, false),
            libc::LOCK_EX => (true, true),
            libc::LOCK_UN => (false, false),
            _ => return Err(Errno(libc::EINVAL)),
        };
        set(&open.file, WHOLE, &all(&open, true, alone), (locks, waits))?;
        Ok(0)
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockf(fd: c_int, how: c_int, len: libc::off_t) -> c_int {
    let Some(open) = fds::get(fd) else {
        type Lock = unsafe extern "C" fn(c_int, c_int, libc::off_t) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(lockf: Lock)(fd, how, len) };
    };
    answer(-1, || {
        // SAFETY: numbers, for all of which zero is one.
        let mut lock: Flock = unsafe { std::mem::zeroed() };
        lock.l_whence = libc::SEEK_CUR as c_short;
        lock.l_len = len;
        let (kind, number) = match how {
            libc::F_ULOCK => (libc::F_UNLCK, libc::F_SETLK),
            libc::F_LOCK => (libc::F_WRLCK, libc::F_SETLKW),
            libc::F_TLOCK => (libc::F_WRLCK, libc::F_SETLK),
            libc::F_TEST => (libc::F_WRLCK, libc::F_GETLK),
            _ => return Err(Errno(libc::EINVAL)),
        };
        lock.l_type = kind as c_short;
        let command = command(number).ok_or(Errno(libc::EINVAL))?;
        // SAFETY: `lock` is here.
        unsafe { act(&open, command, &mut lock) }?;
        let free = how != libc::F_TEST || c_int::from(lock.l_type) == libc::F_UNLCK;
        free.then_some(0).ok_or(Errno(libc::EACCES))
    })
}
