//! `pthread_mutex_t` in files of the rack.
//!
//! A mutex is a lock of the rack that its holder has to write. Its kind lies in the lock's page,
//! and in the object's bytes where the C library has it, which is where statically initialized ones
//! have it at first.

use super::objects::{Held, WORDS, renew, thread};
use super::{Found, TRY, found, is_ours, ours, until};
use crate::answer::{Done, Errno, number, refuse};
use crate::files::File;
use crate::inside::Inside;
use crate::next::next;
use crate::settings;
use libc::{c_int, clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use rackmem::Wait;
use rackmem::locked::{Content, Writing};
use std::sync::atomic::Ordering::Relaxed;

/// Where the C library has a mutex' kind.
const KIND: usize = 16;
/// Bits of the kind, as the C library has them.
const TYPE: u64 = 3;
const RECURSIVE: u64 = 1;
const ERRORCHECK: u64 = 2;
const ROBUST: u64 = 16;
const SHARED: u32 = 128;
/// The kind is known, in the page of the lock.
const KNOWN: u64 = 1 << 32;
/// A robust mutex that nobody has made consistent.
const OVER: u64 = 1 << 33;

/// Its holder has ended without letting it go.
const ABANDONED: u64 = 1 << 34;

/// Where in the page the kind is.
const FLAGS: usize = 8;

unsafe extern "C" {
    fn pthread_mutexattr_gettype(attributes: *const pthread_mutexattr_t, kind: *mut c_int)
    -> c_int;
}

type Take = unsafe extern "C" fn(*mut pthread_mutex_t) -> c_int;

/// What the table of places has of a kind, which is never nothing.
const TOLD: u64 = 64;

/// The kind of a mutex whose lock's page does not know it: it was never initialized by a call, or
/// who has done that has died.
fn kind_elsewhere(found: &Found) -> u64 {
    let told = found.object.kind.load(Relaxed);
    if told & TOLD != 0 {
        return told & (TYPE | ROBUST);
    }
    let mut kind = [0; 4];
    match found.file.read(found.place as u64 + KIND as u64, &mut kind) {
        Ok(4) => u64::from(u32::from_ne_bytes(kind)) & (TYPE | ROBUST),
        // A block that died with its node: what it is by default.
        _ => 0,
    }
}

/// Holds it.
fn take(found: &Found, wait: Wait, busy: c_int) -> Done {
    let _inside = Inside::enter();
    let object = &found.object;
    if object.thread.load(Relaxed) == thread() {
        let mut held = object.held();
        match held.flags & TYPE {
            RECURSIVE => {
                held.again = held.again.checked_add(1).ok_or(Errno(libc::EAGAIN))?;
                return Ok(());
            }
            _ if wait == Wait::Never => return Err(Errno(libc::EBUSY)),
            ERRORCHECK => return Err(Errno(libc::EDEADLK)),
            // As of one machine: it waits for itself.
            _ => {}
        }
    }
    let locks = &found.file.locks;
    let mut entered = locks.enter::<Writing>(object.index, wait)?;
    if entered.is_none() && wait == Wait::Never {
        entered = locks.enter::<Writing>(object.index, TRY)?;
    }
    let mut entered = entered.ok_or(Errno(busy))?;
    let lost = entered.content() != Content::Current;
    let flags = {
        let mut view = locks.view_mut(&mut entered, WORDS * 8);
        renew(&mut view, found.file.life());
        if view.u64(FLAGS) & KNOWN == 0 {
            view.set_u64(FLAGS, KNOWN | kind_elsewhere(found));
        }
        let flags = view.u64(FLAGS);
        view.set_u64(FLAGS, flags & !ABANDONED);
        flags
    };
    let died = lost || flags & ABANDONED != 0;
    if flags & OVER != 0 {
        locks.leave(entered);
        return Err(Errno(libc::ENOTRECOVERABLE));
    }
    *object.held() = Held {
        writer: Some(entered),
        died,
        flags: flags & !ABANDONED,
        ..Held::default()
    };
    object.thread.store(thread(), Relaxed);
    match (died, flags & ROBUST) {
        (false, _) => Ok(()),
        (true, 0) => {
            crate::say::once(&format!(
                "{}: a node died that had the mutex at byte {}, perhaps inside; the mutex is not \
                 robust, so the program is not told (PTHREAD_MUTEX_ROBUST)",
                found.file.name, found.place
            ));
            Ok(())
        }
        _ => Err(Errno(libc::EOWNERDEAD)),
    }
}

/// Lets it go.
pub fn release(found: &Found) -> Done {
    let _inside = Inside::enter();
    let object = &found.object;
    let mine = object.thread.load(Relaxed) == thread();
    let mut held = object.held();
    if held.writer.is_none() || (!mine && held.flags & (TYPE | ROBUST) != 0) {
        return Err(Errno(libc::EPERM));
    }
    if held.again > 0 {
        held.again -= 1;
        return Ok(());
    }
    if settings::get().keep {
        found.file.keep()?;
    }
    let Some(mut entered) = held.writer.take() else {
        return Err(Errno(libc::EPERM));
    };
    let locks = &found.file.locks;
    if held.died && held.flags & ROBUST != 0 {
        let flags = held.flags | OVER;
        locks
            .view_mut(&mut entered, WORDS * 8)
            .set_u64(FLAGS, flags);
    }
    held.died = false;
    object.thread.store(0, Relaxed);
    drop(held);
    locks.leave(entered);
    Ok(())
}

impl File {
    /// This process ends: what it holds of the file's objects others may have, and are told so
    /// where they can be.
    pub fn abandon(&self) {
        for object in self.objects.all() {
            let mut held = object.held();
            for reader in std::mem::take(&mut held.readers) {
                self.locks.leave(reader);
            }
            let Some(mut entered) = held.writer.take() else {
                continue;
            };
            // Of a mutex; a lock for readers and writers has no flags.
            if held.flags & KNOWN != 0 {
                let flags = held.flags | ABANDONED;
                self.locks
                    .view_mut(&mut entered, WORDS * 8)
                    .set_u64(FLAGS, flags);
            }
            self.locks.leave(entered);
        }
    }
}

/// Lets it go for a wait: how often its holder has had it, to be given back by [`take_again`].
pub fn release_whole(found: &Found) -> Done<u32> {
    let again = std::mem::take(&mut found.object.held().again);
    release(found)?;
    Ok(again)
}

pub fn take_again(found: &Found, again: u32) -> Done {
    let done = take(found, Wait::Forever, libc::EBUSY);
    if matches!(done, Ok(()) | Err(Errno(libc::EOWNERDEAD))) {
        found.object.held().again = again;
    }
    done
}

/// # Safety
/// That of the C library's, as of all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    if !is_ours(mutex) {
        // SAFETY: the caller's.
        return unsafe { next!(pthread_mutex_lock: Take)(mutex) };
    }
    number(|| take(&ours(mutex)?, Wait::Forever, libc::EBUSY))
}

/// # Safety
/// See [`pthread_mutex_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    if !is_ours(mutex) {
        // SAFETY: the caller's.
        return unsafe { next!(pthread_mutex_trylock: Take)(mutex) };
    }
    number(|| take(&ours(mutex)?, Wait::Never, libc::EBUSY))
}

/// # Safety
/// See [`pthread_mutex_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_timedlock(
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    if !is_ours(mutex) {
        type Timed = unsafe extern "C" fn(*mut pthread_mutex_t, *const timespec) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(pthread_mutex_timedlock: Timed)(mutex, time) };
    }
    number(|| {
        take(
            &ours(mutex)?,
            until(libc::CLOCK_REALTIME, time)?,
            libc::ETIMEDOUT,
        )
    })
}

/// # Safety
/// See [`pthread_mutex_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_clocklock(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    if !is_ours(mutex) {
        type Timed =
            unsafe extern "C" fn(*mut pthread_mutex_t, clockid_t, *const timespec) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(pthread_mutex_clocklock: Timed)(mutex, clock, time) };
    }
    number(|| take(&ours(mutex)?, until(clock, time)?, libc::ETIMEDOUT))
}

/// # Safety
/// See [`pthread_mutex_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    if !is_ours(mutex) {
        // SAFETY: the caller's.
        return unsafe { next!(pthread_mutex_unlock: Take)(mutex) };
    }
    number(|| release(&ours(mutex)?))
}

/// # Safety
/// See [`pthread_mutex_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_consistent(mutex: *mut pthread_mutex_t) -> c_int {
    if !is_ours(mutex) {
        // SAFETY: the caller's.
        return unsafe { next!(pthread_mutex_consistent: Take)(mutex) };
    }
    number(|| {
        let found = ours(mutex)?;
        let mut held = found.object.held();
        if held.writer.is_none() || !held.died || held.flags & ROBUST == 0 {
            return Err(Errno(libc::EINVAL));
        }
        held.died = false;
        Ok(())
    })
}

/// The kind that attributes ask for.
fn wanted(attributes: *const pthread_mutexattr_t) -> Done<u64> {
    if attributes.is_null() {
        return Ok(0);
    }
    let (mut kind, mut robust, mut shared, mut protocol) = (0, 0, 0, 0);
    // SAFETY: attributes that the caller has initialized, and numbers that may be written.
    unsafe {
        pthread_mutexattr_gettype(attributes, &mut kind);
        libc::pthread_mutexattr_getrobust(attributes, &mut robust);
        libc::pthread_mutexattr_getpshared(attributes, &mut shared);
        libc::pthread_mutexattr_getprotocol(attributes, &mut protocol);
    }
    if protocol != libc::PTHREAD_PRIO_NONE {
        return refuse(
            libc::ENOTSUP,
            "mutexes that inherit priorities, or protect them, are not to be had between hosts",
        );
    }
    let robust = u64::from(robust == libc::PTHREAD_MUTEX_ROBUST) * ROBUST;
    Ok(robust | kind as u64 & TYPE)
}

/// # Safety
/// See [`pthread_mutex_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_init(
    mutex: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    if !is_ours(mutex) {
        type Init = unsafe extern "C" fn(*mut pthread_mutex_t, *const pthread_mutexattr_t) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(pthread_mutex_init: Init)(mutex, attributes) };
    }
    number(|| {
        let (found, kind) = (ours(mutex)?, wanted(attributes)?);
        let _inside = Inside::enter();
        found.file.change_object(&found.object, |view| {
            view.set_u64(FLAGS, KNOWN | kind);
        })?;
        found
            .file
            .set_kind(found.place, &found.object, TOLD | kind)?;
        let mut bytes = [0; size_of::<pthread_mutex_t>()];
        bytes[KIND..KIND + 4].copy_from_slice(&(kind as u32 | SHARED).to_ne_bytes());
        found.file.write(found.place as u64, &bytes).map(drop)
    })
}

/// # Safety
/// See [`pthread_mutex_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    if !is_ours(mutex) {
        // SAFETY: the caller's.
        return unsafe { next!(pthread_mutex_destroy: Take)(mutex) };
    }
    number(|| {
        let Some(found) = found(mutex)? else {
            return Ok(());
        };
        let _inside = Inside::enter();
        if found.object.held().writer.is_some() {
            return Err(Errno(libc::EBUSY));
        }
        found.file.change_object(&found.object, |view| {
            view.set_u64(FLAGS, 0);
        })
    })
}
