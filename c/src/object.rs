//! Objects: read and written as wholes.

use crate::handle::{Handle, bytes, copy_out, give, of, opaque, take, tell};
use crate::rack::rm_node;
use crate::region::rm_region;
use crate::status::{Failed, call, rm_status};
use rackmem::object::{Object, ObjectRef};
use std::ffi::c_void;

/// An object in a region under RM_OBJECT.
pub struct rm_object(Handle<Object<[u8]>>);
opaque!(rm_object, Object<[u8]>);

/// What another node finds an object by. Any program may keep it, in memory or on disk.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct rm_object_ref {
    /// Where it is.
    pub addr: u64,
    /// Which of those that have been there.
    pub generation: u32,
}

/// A new object with these bytes, and room for as many as `room`, at most 65520.
///
/// # Safety
/// `region` is a handle, `len` bytes may be read at `from`, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_object_new(
    region: *const rm_region,
    from: *const c_void,
    len: usize,
    room: usize,
    out: *mut *mut rm_object,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (_, region) = of(region)?;
        let bytes = bytes(from, len)?;
        give(out, || Ok(region.alloc_bytes(bytes, room.max(len))?))
    })
}

/// An object that some node has made.
///
/// # Safety
/// `node` is a handle, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_object_attach(
    node: *const rm_node,
    at: rm_object_ref,
    out: *mut *mut rm_object,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let node = of(node)?;
        let at = ObjectRef::new(at.addr, at.generation);
        give(out, || Ok(node.attach_object::<[u8]>(at)?))
    })
}

/// What another node finds it by.
///
/// # Safety
/// `object` is a handle; `at` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_object_at(
    object: *const rm_object,
    at: *mut rm_object_ref,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let found = of(object)?.at();
        let (addr, generation) = (found.addr(), found.generation());
        tell(at, rm_object_ref { addr, generation });
        Ok(rm_status::RM_OK)
    })
}

/// Reads all of it, from one write. `len` is how many bytes have room at `into`, and then how many
/// it has: with fewer of room this fails by RM_ARGUMENT, and `len` says how many are needed.
/// `version`, unless NULL, gets a number that rises with every write.
///
/// # Safety
/// `object` is a handle; `*len` bytes may be written at `into`; `len` may be read and written;
/// `version` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_object_read(
    object: *const rm_object,
    into: *mut c_void,
    len: *mut usize,
    version: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let object = of(object)?;
        let (found, read) = object.read_versioned()?;
        copy_out(&read, into, len)?;
        tell(version, found);
        Ok(rm_status::RM_OK)
    })
}

/// Replaces it. `version`, unless NULL, gets the version that it has then.
///
/// # Safety
/// `object` is a handle; `len` bytes may be read at `from`; `version` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_object_write(
    object: *const rm_object,
    from: *const c_void,
    len: usize,
    version: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let written = of(object)?.write(bytes(from, len)?)?;
        tell(version, written);
        Ok(rm_status::RM_OK)
    })
}

/// Replaces it if it has this version still, and tells the new one. RM_NOT_NOW: it has another one,
/// which `version` gets.
///
/// # Safety
/// `object` is a handle; `len` bytes may be read at `from`; `version` may be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_object_write_if(
    object: *const rm_object,
    version: *mut u64,
    from: *const c_void,
    len: usize,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let object = of(object)?;
        let version = version.as_mut();
        let version = version.ok_or_else(|| Failed::argument("the version is NULL"))?;
        let (now, status) = match object.write_if(*version, bytes(from, len)?)? {
            Ok(now) => (now, rm_status::RM_OK),
            Err(other) => (other, rm_status::RM_NOT_NOW),
        };
        *version = now;
        Ok(status)
    })
}

/// Frees the object for all nodes, whose handles say RM_LOST then, and ends this handle.
///
/// # Safety
/// `object` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_object_remove(object: *mut rm_object) -> rm_status {
    call(|| {
        // SAFETY: the caller's.
        if let Some(object) = unsafe { take(object) } {
            object.free()?;
        }
        Ok(rm_status::RM_OK)
    })
}

/// Ends the handle, not the object.
///
/// # Safety
/// `object` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_object_free(object: *mut rm_object) {
    // SAFETY: the caller's.
    drop(unsafe { take(object) });
}
