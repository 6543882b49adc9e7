//! What becomes of the process, its threads, and how it is called.

use crate::inside::{Inside, is_inside};
use crate::next::next;
use crate::{member, settings};
use libc::{c_int, c_void, pid_t, pthread_attr_t, pthread_t};
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;

/// Numbers of processes that a host has.
const HOST: u32 = 1 << 22;

/// A process of this node, as the program is told its number: with the node's in it, if it is so
/// wanted, since programs that keep such numbers in files take them for unique.
pub fn told_pid(pid: u32) -> u32 {
    pid + node() * HOST
}

/// The node's number and one, or 0: it is not told.
fn node() -> u32 {
    static NODE: AtomicI64 = AtomicI64::new(-1);
    let known = NODE.load(Relaxed);
    if known >= 0 {
        return known as u32;
    }
    let settings = settings::get();
    let node = match settings.pids && settings.rack && settings.parent.is_none() {
        true => rackmem::Config::node_from_env().map_or(0, |node| node as i64 + 1),
        false => 0,
    };
    NODE.store(node, Relaxed);
    node as u32
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpid() -> pid_t {
    told_pid(member::pid()) as pid_t
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kill(pid: pid_t, signal: c_int) -> c_int {
    let host = HOST as pid_t;
    let base = node() as pid_t * host;
    // A process of another node cannot be reached, and looks as if it were not there.
    let pid = if base > 0 && pid >= base && pid < base + host {
        pid - base
    } else {
        pid
    };
    // SAFETY: the caller's.
    unsafe { next!(kill: unsafe extern "C" fn(pid_t, c_int) -> c_int)(pid, signal) }
}

/// Functions that end the process without its destructors.
macro_rules! ends {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(code: c_int) -> ! {
            member::leave();
            // SAFETY: the caller's.
            unsafe { next!($name: unsafe extern "C" fn(c_int) -> !)(code) }
        }
    )*};
}
ends!(_exit, _Exit);

type Start = extern "C" fn(*mut c_void) -> *mut c_void;

/// What a thread of the rack's is to do.
struct Begin(Start, *mut c_void);

/// A thread that the rack has started: the functions that it calls are the system's.
extern "C" fn of_the_rack(begin: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` has made it, for this call.
    let Begin(start, argument) = *unsafe { Box::from_raw(begin.cast::<Begin>()) };
    std::mem::forget(Inside::enter());
    start(argument)
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    type Create =
        unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void) -> c_int;
    let create = next!(pthread_create: Create);
    if !is_inside() {
        // SAFETY: the caller's.
        return unsafe { create(thread, attributes, start, argument) };
    }
    let begin = Box::into_raw(Box::new(Begin(start, argument)));
    // SAFETY: the caller's; `of_the_rack` is given what it takes.
    let done = unsafe { create(thread, attributes, of_the_rack, begin.cast()) };
    if done != 0 {
        // SAFETY: no thread has it.
        drop(unsafe { Box::from_raw(begin) });
    }
    done
}
