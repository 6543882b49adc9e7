//! Regions as memory of the process, for plain loads and stores.

use crate::handle::{Handle, give, of, opaque, take, tell};
use crate::region::rm_region;
use crate::status::{Failed, call, rm_status};
use rackmem::{FaultMode, OnLost};
use std::ffi::c_void;
use std::ptr::null_mut;

/// A region's bytes at addresses of this process.
pub struct rm_pages(Handle<rackmem::CoherentPages>);
opaque!(rm_pages, rackmem::CoherentPages);

/// How faults of mapped memory come to the library.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum rm_faults {
    /// As SIGBUS to the thread that has one: the fastest.
    RM_FAULTS_SIGNAL = 0,
    /// To threads of the library: threads may block signals, and where the process may have faults
    /// of system calls these wait for pages.
    RM_FAULTS_THREAD = 1,
    /// As SIGSEGV to the thread that has one, where there is no userfaultfd.
    RM_FAULTS_MPROTECT = 2,
}

/// Says what becomes of a load or a store whose block cannot be had: where in the region, whether
/// it is a store, and why, as rm_why() says too. true: it is tried again; false: the reason is
/// printed, and the thread gets the signal. It runs in the thread that loads or stores, or in one
/// of the library (RM_FAULTS_THREAD), may call this library, and must not touch the mapping.
pub type rm_lost = Option<
    unsafe extern "C" fn(context: *mut c_void, at: usize, stores: bool, why: rm_status) -> bool,
>;

/// Maps a region of coherent memory: other nodes and processes may use it meanwhile, mapped or by
/// calls. Use atomics, or what else is right for memory that processes share. Where a page's block
/// has died with its node, a load or a store of it ends the process by SIGBUS,
/// as one of a file that was cut off does; rm_on_lost asks the program.
///
/// # Safety
/// `region` is a handle, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_map(region: *const rm_region, out: *mut *mut rm_pages) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (_, region) = of(region)?;
        give(out, || Ok(region.map()?))
    })
}

/// The same with faults that come in one of the ways of rm_faults. A region that a node has mapped
/// once keeps its way.
///
/// # Safety
/// `region` is a handle, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_map_with(
    region: *const rm_region,
    faults: i32,
    out: *mut *mut rm_pages,
) -> rm_status {
    const MODES: [(rm_faults, FaultMode); 3] = [
        (rm_faults::RM_FAULTS_SIGNAL, FaultMode::Signal),
        (rm_faults::RM_FAULTS_THREAD, FaultMode::Thread),
        (rm_faults::RM_FAULTS_MPROTECT, FaultMode::Mprotect),
    ];
    // SAFETY: the caller's.
    call(|| unsafe {
        let (_, region) = of(region)?;
        let mode = MODES.iter().find(|row| row.0 as i32 == faults);
        let mode = mode.ok_or_else(|| Failed::argument("faults is none of rm_faults"))?;
        give(out, || Ok(region.map_with(mode.1)?))
    })
}

/// Where the first byte is, and in `len`, unless NULL, how many there are. NULL where `pages` is
/// none.
///
/// # Safety
/// `pages` is NULL or a handle; `len` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_pages_at(pages: *const rm_pages, len: *mut usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe {
        let Ok(pages) = of(pages) else {
            tell(len, 0);
            return null_mut();
        };
        tell(len, pages.len());
        pages.as_ptr().cast()
    }
}

/// Brings pages of bytes, for stores too if wanted: system calls that follow find them, unless
/// another node takes them first.
///
/// # Safety
/// `pages` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_pages_touch(
    pages: *const rm_pages,
    at: usize,
    len: usize,
    stores: bool,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        of(pages)?.touch(at..at.saturating_add(len), stores)?;
        Ok(rm_status::RM_OK)
    })
}

/// Brings pages of bytes, for stores too if wanted, and keeps them, so that system calls find them:
/// other nodes wait, for a second at most from the first pin of a page on. So pin for one call at a
/// time, and undo it with rm_unpin. RM_OTHER with the code "too-many-pinned": nothing is pinned.
///
/// # Safety
/// `pages` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_pin(
    pages: *const rm_pages,
    at: usize,
    len: usize,
    stores: bool,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let pinned = of(pages)?.pin(at..at.saturating_add(len), stores)?;
        std::mem::forget(pinned);
        Ok(rm_status::RM_OK)
    })
}

/// Undoes one rm_pin of the same bytes, with the same `stores`.
///
/// # Safety
/// `pages` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_unpin(
    pages: *const rm_pages,
    at: usize,
    len: usize,
    stores: bool,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        of(pages)?.unpin(at..at.saturating_add(len), stores)?;
        Ok(rm_status::RM_OK)
    })
}

/// What a handler is called with.
struct Context(*mut c_void);

// SAFETY: it is the program's, who is told which threads call the handler with it.
unsafe impl Send for Context {}
// SAFETY: the same.
unsafe impl Sync for Context {}

impl Context {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// From now on `handler` is asked about loads and stores of this mapping whose block cannot be had,
/// by any handle on it. NULL: nobody is.
///
/// # Safety
/// `pages` is a handle. Until the rack is closed or another handler takes its place, `handler` may
/// be called with `context` in any thread that loads or stores there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_on_lost(
    pages: *const rm_pages,
    handler: rm_lost,
    context: *mut c_void,
) -> rm_status {
    let context = Context(context);
    // SAFETY: the caller's.
    call(|| unsafe {
        of(pages)?.on_lost(move |at, stores, why| {
            let Some(handler) = handler else {
                return OnLost::Signal;
            };
            let why = call(|| Err((*why).into()));
            match handler(context.get(), at, stores, why) {
                true => OnLost::Retry,
                false => OnLost::Signal,
            }
        });
        Ok(rm_status::RM_OK)
    })
}

/// Ends the mapping: what was changed goes home. Nobody may use its addresses any more.
///
/// # Safety
/// `pages` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_unmap(pages: *mut rm_pages) -> rm_status {
    call(|| {
        // SAFETY: the caller's.
        drop(unsafe { take(pages) });
        Ok(rm_status::RM_OK)
    })
}
