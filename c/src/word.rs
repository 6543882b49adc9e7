//! Words of coherent memory, one atomic step each.

use crate::handle::{of, tell};
use crate::region::rm_region;
use crate::status::{Done, Failed, call, rm_status};

/// The node, and the address of an aligned word of a region.
///
/// # Safety
/// `region` is null or a handle.
unsafe fn word<'a>(region: *const rm_region, at: usize) -> Done<(&'a rackmem::Node, u64)> {
    // SAFETY: the caller's.
    let (node, region) = unsafe { of(region) }?;
    let len = region.bytes();
    if !at.is_multiple_of(8) || at.checked_add(8).is_none_or(|end| end > len) {
        let text = format!("byte {at} of a region of {len} bytes is no aligned word of it");
        return Err(Failed::argument(&text));
    }
    Ok((node, region.addr() + at as u64))
}

/// The word at byte `at`, a multiple of 8.
///
/// # Safety
/// `region` is a handle; `value` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_load(
    region: *const rm_region,
    at: usize,
    value: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, addr) = word(region, at)?;
        tell(value, node.load(addr)?);
        Ok(rm_status::RM_OK)
    })
}

/// Stores a word.
///
/// # Safety
/// `region` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_store(region: *const rm_region, at: usize, value: u64) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, addr) = word(region, at)?;
        node.store(addr, value)?;
        Ok(rm_status::RM_OK)
    })
}

/// Adds to a word, wrapping; `before`, unless NULL, gets what it was.
///
/// # Safety
/// `region` is a handle; `before` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_fetch_add(
    region: *const rm_region,
    at: usize,
    n: u64,
    before: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, addr) = word(region, at)?;
        tell(before, node.fetch_add(addr, n)?);
        Ok(rm_status::RM_OK)
    })
}

/// Puts `desired` where `*expected` is. RM_NOT_NOW: there is something else,
/// which `*expected` gets.
///
/// # Safety
/// `region` is a handle; `expected` may be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_compare_exchange(
    region: *const rm_region,
    at: usize,
    expected: *mut u64,
    desired: u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, addr) = word(region, at)?;
        let expected = expected.as_mut();
        let expected = expected.ok_or_else(|| Failed::argument("what is expected is NULL"))?;
        let old = *expected;
        let was = node.fetch_update(addr, |now| (now == old).then_some(desired))?;
        *expected = was;
        Ok(match was == old {
            true => rm_status::RM_OK,
            false => rm_status::RM_NOT_NOW,
        })
    })
}
