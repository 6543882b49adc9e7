//! Handles: what a pointer of C's leads to, and what comes by pointers.

use crate::status::{Done, Failed, rm_status};
use std::ffi::{CStr, c_char, c_void};

/// What is behind a handle, with the process that made it. A child by `fork` has copies whose
/// threads, sockets and mappings are its parent's.
pub struct Handle<T> {
    inner: T,
    process: u32,
}

/// A type of handle, as C knows it.
pub trait Opaque: Sized {
    /// What is behind it.
    type Inner;
    fn new(handle: Handle<Self::Inner>) -> Self;
    fn handle(&self) -> &Handle<Self::Inner>;
    fn into_handle(self) -> Handle<Self::Inner>;
}

/// Makes a type of one field a type of handle. (The types stand where C's header finds them.)
macro_rules! opaque {
    ($name:ident, $inner:ty) => {
        impl $crate::handle::Opaque for $name {
            type Inner = $inner;

            fn new(handle: $crate::handle::Handle<$inner>) -> Self {
                $name(handle)
            }

            fn handle(&self) -> &$crate::handle::Handle<$inner> {
                &self.0
            }

            fn into_handle(self) -> $crate::handle::Handle<$inner> {
                self.0
            }
        }
    };
}
pub(crate) use opaque;

/// A new handle, put where the caller wants it.
///
/// # Safety
/// `out` is null, or may be written.
pub unsafe fn give<O: Opaque>(out: *mut *mut O, make: impl FnOnce() -> Done<O::Inner>) -> Done {
    if out.is_null() {
        return Err(Failed::argument("there is no place for the handle (NULL)"));
    }
    let handle = O::new(Handle {
        inner: make()?,
        process: std::process::id(),
    });
    // SAFETY: it may be written.
    unsafe { *out = Box::into_raw(Box::new(handle)) };
    Ok(rm_status::RM_OK)
}

/// What is behind a handle.
///
/// # Safety
/// `handle` is null, or came from [`give`] and has not been freed.
pub unsafe fn of<'a, O: Opaque + 'a>(handle: *const O) -> Done<&'a O::Inner> {
    // SAFETY: it is one of ours that is alive, or null.
    let handle = unsafe { handle.as_ref() };
    let handle = handle.ok_or_else(|| Failed::argument("a handle is NULL"))?;
    let handle = handle.handle();
    if handle.process == std::process::id() {
        return Ok(&handle.inner);
    }
    let text = "this process is a child by fork() of the one that the handle is of; \
                nothing has changed; open the rack in the child, as a node of its own";
    Err(Failed::new(rm_status::RM_FORKED, "forked", text))
}

/// Ends a handle. A child by `fork` frees nothing: all of it is its parent's.
///
/// # Safety
/// As for [`of`]; nobody uses it beside this or afterwards.
pub unsafe fn take<O: Opaque>(handle: *mut O) -> Option<O::Inner> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: it came from `Box::into_raw`, and this is the last use.
    let handle = unsafe { Box::from_raw(handle) }.into_handle();
    if handle.process != std::process::id() {
        std::mem::forget(handle);
        return None;
    }
    Some(handle.inner)
}

/// A name.
///
/// # Safety
/// `text` is null, or a string that ends with a zero and lasts for `'a`.
pub unsafe fn name<'a>(text: *const c_char) -> Done<&'a str> {
    if text.is_null() {
        return Err(Failed::argument("a name is NULL"));
    }
    // SAFETY: it is such a string.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    text.map_err(|_| Failed::argument("a name is not UTF-8"))
}

/// Bytes that any memory has at most.
const LONGEST: usize = isize::MAX as usize;

/// Bytes that are read.
///
/// # Safety
/// So many bytes may be read at `at` for `'a`, which nobody changes meanwhile; or there are none.
pub unsafe fn bytes<'a>(at: *const c_void, len: usize) -> Done<&'a [u8]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failed::argument("bytes are NULL")),
        (false, _) if len > LONGEST => Err(Failed::argument("so many bytes no process has")),
        // SAFETY: the caller's.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) }),
    }
}

/// Bytes that are written.
///
/// # Safety
/// So many bytes may be written at `at` for `'a`, which nobody uses meanwhile; or there are none.
pub unsafe fn bytes_mut<'a>(at: *mut c_void, len: usize) -> Done<&'a mut [u8]> {
    match (at.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Failed::argument("bytes are NULL")),
        (false, _) if len > LONGEST => Err(Failed::argument("so many bytes no process has")),
        // SAFETY: the caller's. What is there need not be set: it is only written.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(at.cast(), len) }),
    }
}

/// Copies what was read. `len` is how much room there is, and then how much there is to have.
///
/// # Safety
/// `*len` bytes may be written at `into`; `len` is null, or may be read and written.
pub unsafe fn copy_out(read: &[u8], into: *mut c_void, len: *mut usize) -> Done<()> {
    // SAFETY: the caller's.
    let len = unsafe { len.as_mut() };
    let len = len.ok_or_else(|| Failed::argument("there is no place for the length (NULL)"))?;
    let room = std::mem::replace(len, read.len());
    if room < read.len() {
        let text = format!("{room} bytes of room for an object of {}", read.len());
        return Err(Failed::argument(&text));
    }
    // SAFETY: it has room.
    unsafe { bytes_mut(into, read.len())? }.copy_from_slice(read);
    Ok(())
}

/// Puts a value where the caller wants it, if he does.
///
/// # Safety
/// `out` is null, or may be written.
pub unsafe fn tell<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: it may be written.
        unsafe { out.write(value) };
    }
}
