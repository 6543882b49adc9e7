//! Regions as memory of the process, for plain loads and stores.

use crate::handle::{Handle, give, of, opaque, take, tell};
use crate::region::rm_region;
use crate::status::{call, rm_status};
use std::ffi::c_void;
use std::ptr::null_mut;

/// A region's bytes at addresses of this process.
pub struct rm_pages(Handle<rackmem::CoherentPages>);
opaque!(rm_pages, rackmem::CoherentPages);

/// Maps a region of coherent memory: other nodes and processes may use it meanwhile, mapped or by
/// calls. Use atomics, or what else is right for memory that processes share. Where a page's block
/// has died with its node, a load or a store of it ends the process by SIGBUS,
/// as one of a file that was cut off does.
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
