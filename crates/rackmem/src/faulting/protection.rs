//! Rights of pages by `mprotect(2)`, where userfaultfd is not allowed.

use super::page_file::PageFile;
use crate::error::RegionError;
use rackmem_proto::pages::Act;
use std::io;
use std::ops::Range;

/// Does this to the mapping of these bytes.
pub fn act(file: &PageFile, act: Act, bytes: Range<usize>) -> io::Result<()> {
    let access = match act {
        Act::Place { stores: false } | Act::Protect => libc::PROT_READ,
        Act::Place { stores: true } | Act::Open => libc::PROT_READ | libc::PROT_WRITE,
        Act::Hide => libc::PROT_NONE,
    };
    file.allow(bytes, access)
}

/// Nobody loads or stores there.
pub fn hide(file: &PageFile, bytes: Range<usize>) -> io::Result<()> {
    file.allow(bytes, libc::PROT_NONE)
}

/// What the system has refused.
pub fn refused(tried: &'static str, error: &io::Error) -> RegionError {
    let os = error.raw_os_error().unwrap_or(0);
    RegionError::NoPaging { tried, os }
}
