//! Page faults that are signals: `SIGBUS` (of userfaultfd) or `SIGSEGV` (of rights) comes to the
//! thread that has loaded or stored, and the handler does for it what a call of this library would
//! do. A thread of its own would be one switch there and one back.
//!
//! The handler locks and allocates, which handlers must not do that interrupt a thread anywhere.
//! This one interrupts an instruction of the program's that touches a page of a mapping, and no
//! other: whoever is inside this library, or inside an allocator, touches none.

use crate::error::AccessError;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Ranges of addresses whose faults are handled here, at most, in all racks of a process.
const RANGES: usize = 1024;

/// Who brings the page that an offset of a range is in: whether it is there now.
pub(crate) type Bring = Box<dyn Fn(usize, bool) -> Result<(), AccessError> + Send + Sync>;

struct Range {
    /// Zero: nobody's.
    start: AtomicUsize,
    len: AtomicUsize,
    bring: AtomicPtr<Bring>,
}

static SERVED: [Range; RANGES] = [const {
    Range {
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        bring: AtomicPtr::new(std::ptr::null_mut()),
    }
}; RANGES];

/// What the program did about both signals before; there is one handler of each in a process.
static BEFORE: [OnceLock<Before>; 2] = [const { OnceLock::new() }; 2];
static CHANGES: Mutex<()> = Mutex::new(());

struct Before(libc::sigaction);

// SAFETY: numbers and addresses of functions.
unsafe impl Send for Before {}
// SAFETY: the same.
unsafe impl Sync for Before {}

/// As long as it lives, faults of its range are handled.
pub(crate) struct Served(&'static Range);

impl Served {
    /// `signal` is `SIGBUS` or `SIGSEGV`. `None`: there are as many as there can be. What brings
    /// pages is kept for ever: a thread may be in it.
    pub fn begin(
        signal: libc::c_int,
        (start, len): (usize, usize),
        bring: Bring,
    ) -> Option<Served> {
        let turn = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
        let range = SERVED.iter().find(|range| range.start.load(Relaxed) == 0)?;
        range.bring.store(Box::into_raw(Box::new(bring)), Relaxed);
        range.len.store(len, Relaxed);
        before(signal).get_or_init(|| install(signal));
        range.start.store(start, Release);
        drop(turn);
        Some(Served(range))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.start.store(0, Release);
    }
}

fn before(signal: libc::c_int) -> &'static OnceLock<Before> {
    &BEFORE[usize::from(signal == libc::SIGSEGV)]
}

fn install(signal: libc::c_int) -> Before {
    // SAFETY: all zeros are a valid `sigaction`: no flags, no signals masked.
    let (mut ours, mut before): (libc::sigaction, libc::sigaction) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    ours.sa_sigaction = on_fault as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO;
    // SAFETY: `on_fault` is a handler of this kind and returns where it was called, and both
    // structs live for the length of the call.
    unsafe { libc::sigaction(signal, &ours, &mut before) };
    Before(before)
}

/// Whether the instruction that faulted stores.
///
/// # Safety
/// `context` is what a handler of signals was given.
unsafe fn stores(context: *mut libc::c_void) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        const WRITE: libc::greg_t = 1 << 1;
        // SAFETY: see above.
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        context.uc_mcontext.gregs[libc::REG_ERR as usize] & WRITE != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // The right to store is a right to load.
        let _ = context;
        true
    }
}

extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the system gives handlers of this kind both, and each thread has its `errno`.
    let (errno, address, stores) = unsafe {
        let errno = libc::__errno_location();
        (errno, (*info).si_addr() as usize, stores(context))
    };
    // SAFETY: this thread's.
    let saved = unsafe { *errno };
    let found = SERVED.iter().find_map(|range| {
        let start = range.start.load(Acquire);
        let at = address.checked_sub(start).filter(|_| start != 0)?;
        (at < range.len.load(Relaxed)).then_some((range.bring.load(Relaxed), at))
    });
    if let Some((bring, at)) = found {
        // SAFETY: it was made by `Served::begin` and is never freed.
        let bring = unsafe { &*bring };
        match bring(at, stores) {
            Ok(()) => {
                // SAFETY: this thread's.
                unsafe { *errno = saved };
                return;
            }
            Err(error) => say(&error, stores),
        }
    }
    pass_on(signal, info, context);
}

pub(super) fn say(error: &AccessError, stores: bool) {
    let what = if stores { "store" } else { "load" };
    eprintln!("rackmem: a {what} in mapped memory failed: {error}");
}

/// What would have been done without this handler.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = before(signal).get().map(|before| &before.0);
    match before.map(|before| (before, before.sa_sigaction)) {
        Some((before, handler)) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            match before.sa_flags & libc::SA_SIGINFO {
                0 => {
                    // SAFETY: the program has given it as a handler of this kind.
                    let handler: extern "C" fn(libc::c_int) =
                        unsafe { std::mem::transmute(handler) };
                    handler(signal);
                }
                _ => {
                    type Informed =
                        extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                    // SAFETY: the same.
                    let handler: Informed = unsafe { std::mem::transmute(handler) };
                    handler(signal, info, context);
                }
            }
        }
        // The instruction is tried again, and then it ends the process.
        _ => {
            // SAFETY: it takes two numbers.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}
