//! `SIGBUS`: the rack's handler stands in front of the program's. No thread blocks it, or a fault
//! of its would end the process.

use crate::inside::is_inside;
use crate::next::next;
use crate::{ranges, say};
use libc::{c_int, c_void, sigaction as Act, siginfo_t, sigset_t};
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, OnceLock, PoisonError};

type SigAction = unsafe extern "C" fn(c_int, *const Act, *mut Act) -> c_int;

/// What the program wants done about `SIGBUS`.
static PROGRAMS: Mutex<Option<Action>> = Mutex::new(None);
static BEGUN: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Copy)]
struct Action(Act);

// SAFETY: numbers and addresses of functions.
unsafe impl Send for Action {}

fn default() -> Action {
    // SAFETY: all zeros are a valid `sigaction`: the default, no flags, nothing masked.
    Action(unsafe { MaybeUninit::zeroed().assume_init() })
}

/// Before the rack has its handler: what it passes on comes here, and from here to the program.
pub fn begin() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let mut ours = default().0;
        ours.sa_sigaction = not_the_racks as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO;
        let mut before = default().0;
        let sigaction = next!(sigaction: SigAction);
        // SAFETY: `not_the_racks` is a handler of this kind, and both structs are here.
        unsafe { sigaction(libc::SIGBUS, &ours, &mut before) };
        *PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Action(before));
        BEGUN.store(true, SeqCst);
        open_here();
    });
}

/// This thread gets the signal.
fn open_here() {
    let mut set = MaybeUninit::<sigset_t>::zeroed();
    type Mask = unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;
    let mask = next!(pthread_sigmask: Mask);
    // SAFETY: a set of signals that is emptied before anything is put there.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGBUS);
        mask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// A child by `fork` has no mappings: where it touches one, it says so.
pub fn begin_child() {
    let mut before = default().0;
    let sigaction = next!(sigaction: SigAction);
    // SAFETY: it asks.
    unsafe { sigaction(libc::SIGSEGV, std::ptr::null(), &mut before) };
    if before.sa_sigaction != libc::SIG_DFL {
        return;
    }
    let mut ours = default().0;
    ours.sa_sigaction = in_child as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO;
    // SAFETY: `in_child` is a handler of this kind.
    unsafe { sigaction(libc::SIGSEGV, &ours, std::ptr::null_mut()) };
}

extern "C" fn in_child(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the system gives handlers of this kind the struct.
    let at = unsafe { (*info).si_addr() } as usize;
    if ranges::has(at) {
        say::line(
            "a child by fork() has touched a file of the rack that its parent has mapped: it has \
             no mapping, and ends here; start it as a node of its own (`rackmem run --drop-in`)",
        );
    }
    by_default(signal);
}

/// The instruction is tried again, and then it ends the process.
fn by_default(signal: c_int) {
    let sigaction = next!(sigaction: SigAction);
    // SAFETY: the default.
    unsafe { sigaction(signal, &default().0, std::ptr::null_mut()) };
}

/// What the rack's handler could not do: it has said why, if the address is the rack's.
extern "C" fn not_the_racks(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives handlers of this kind the struct.
    let at = unsafe { (*info).si_addr() } as usize;
    if ranges::has(at) && crate::files::goes_on(at) {
        return;
    }
    let action = PROGRAMS
        .lock()
        .map_or(default(), |action| action.unwrap_or(default()));
    let handler = action.0.sa_sigaction;
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        return by_default(signal);
    }
    if action.0.sa_flags & libc::SA_SIGINFO == 0 {
        // SAFETY: the program has given it as a handler of this kind.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
        return handler(signal);
    }
    type Informed = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
    // SAFETY: the same.
    let handler: Informed = unsafe { std::mem::transmute(handler) };
    handler(signal, info, context);
}

/// # Safety
/// That of `sigaction`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(signal: c_int, wanted: *const Act, before: *mut Act) -> c_int {
    let next = next!(sigaction: SigAction);
    // SAFETY: the caller's.
    let mut wanted = unsafe { wanted.as_ref() }.copied();
    if signal == libc::SIGBUS && BEGUN.load(SeqCst) && !is_inside() {
        let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        if !before.is_null() {
            // SAFETY: the caller's.
            unsafe { *before = programs.unwrap_or(default()).0 };
        }
        if let Some(wanted) = wanted {
            *programs = Some(Action(wanted));
        }
        return 0;
    }
    if let Some(wanted) = &mut wanted {
        // A handler that touches the rack's memory has faults, too.
        // SAFETY: a set of signals.
        unsafe { libc::sigdelset(&mut wanted.sa_mask, libc::SIGBUS) };
    }
    let at = wanted
        .as_ref()
        .map_or(std::ptr::null(), |wanted| &raw const *wanted);
    // SAFETY: the caller's.
    unsafe { next(signal, at, before) }
}

/// Takes `SIGBUS` out of what is to be blocked.
unsafe fn without_bus(how: c_int, set: *const sigset_t) -> Option<sigset_t> {
    if how == libc::SIG_UNBLOCK {
        return None;
    }
    // SAFETY: the caller's: it is null, or a set.
    let mut set = unsafe { set.as_ref() }.copied()?;
    // SAFETY: a set of signals.
    unsafe { libc::sigdelset(&mut set, libc::SIGBUS) };
    Some(set)
}

macro_rules! masks {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            how: c_int,
            set: *const sigset_t,
            before: *mut sigset_t,
        ) -> c_int {
            let next = next!($name: unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int);
            // SAFETY: the caller's.
            let ours = unsafe { without_bus(how, set) };
            let set = ours.as_ref().map_or(set, |ours| &raw const *ours);
            // SAFETY: the caller's.
            unsafe { next(how, set, before) }
        }
    )*};
}
masks!(sigprocmask, pthread_sigmask);
