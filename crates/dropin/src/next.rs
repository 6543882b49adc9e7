//! The functions that this library stands in front of.

use std::ffi::{CStr, c_void};
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

/// The next function of a name, of this type: the C library's, unless there is another library in
/// between. Looked up once.
macro_rules! next {
    ($name:ident: $type:ty) => {{
        static AT: ::std::sync::atomic::AtomicPtr<::std::ffi::c_void> =
            ::std::sync::atomic::AtomicPtr::new(::std::ptr::null_mut());
        const NAME: &::std::ffi::CStr = match ::std::ffi::CStr::from_bytes_with_nul(
            concat!(stringify!($name), "\0").as_bytes(),
        ) {
            Ok(name) => name,
            Err(_) => c"",
        };
        $crate::next::find_as::<$type>(&AT, NAME)
    }};
}
pub(crate) use next;

/// A function as one of its type, which is that of the C library's function of this name.
#[inline]
pub fn find_as<F: Copy>(at: &AtomicPtr<c_void>, name: &CStr) -> F {
    const {
        assert!(
            size_of::<F>() == size_of::<*mut c_void>(),
            "a pointer to a function"
        )
    };
    let at = find(at, name);
    // SAFETY: the macro names the type that the manual of the C library has.
    unsafe { std::mem::transmute_copy(&at) }
}

/// Where a function is. Ends the process where there is none: the program could not have been
/// linked with it.
fn find(at: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = at.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name is a string that ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        let name = name.to_string_lossy();
        crate::say::line(&format!(
            "the C library has no `{name}`: it is older than glibc 2.33"
        ));
        // SAFETY: a system call, which does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, 127) };
    }
    at.store(found, Relaxed);
    found
}
