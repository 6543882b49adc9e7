//! Racks and their nodes.

use crate::handle::{Handle, give, name, of, opaque, take};
use crate::status::{call, rm_status};
use std::ffi::c_char;
use std::path::Path;

/// A rack in this process, or this process' part of one.
pub struct rm_rack(Handle<rackmem::Rack>);
opaque!(rm_rack, rackmem::Rack);

/// A node of a rack: what memory is used through.
pub struct rm_node(Handle<rackmem::Node>);
opaque!(rm_node, rackmem::Node);

/// A rack of so many nodes, all in this process, each with `memory` bytes for the rack and `cache`
/// bytes of cache; 0: as many as it has by default.
///
/// # Safety
/// `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_local(
    nodes: usize,
    memory: u64,
    cache: usize,
    out: *mut *mut rm_rack,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        give(out, || {
            let mut builder = rackmem::Rack::builder(nodes);
            if memory > 0 {
                builder = builder.memory(memory);
            }
            if cache > 0 {
                builder = builder.cache(cache);
            }
            Ok(builder.build()?)
        })
    })
}

/// Joins the rack that a file describes, as one of its nodes.
///
/// # Safety
/// `config` is a string that ends with a zero; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_join(
    config: *const c_char,
    node: usize,
    out: *mut *mut rm_rack,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let config = name(config)?;
        give(out, || {
            let config = rackmem::Config::load(Path::new(config))?;
            Ok(rackmem::Rack::join(&config, node)?)
        })
    })
}

/// Joins as the environment says: RACKMEM_CONFIG is the rack's file, and RACKMEM_NODE the node, or
/// the rank that Slurm, MPI or an indexed job of Kubernetes has given, or the ordinal at the end of
/// the host's name.
///
/// # Safety
/// `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_from_env(out: *mut *mut rm_rack) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe { give(out, || Ok(rackmem::Rack::from_env()?)) })
}

/// Leaves the rack: what this process has changed goes home first, and locks that it has used;
/// memory that others have of it is lost. The rack is closed whatever this returns,
/// and handles of it that are still there say RM_CLOSED.
///
/// # Safety
/// `rack` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_close(rack: *mut rm_rack) -> rm_status {
    call(|| {
        // SAFETY: the caller's.
        if let Some(rack) = unsafe { take(rack) } {
            rack.close()?;
        }
        Ok(rm_status::RM_OK)
    })
}

/// A node that lives in this process.
///
/// # Safety
/// `rack` is a handle; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_node_open(
    rack: *const rm_rack,
    id: usize,
    out: *mut *mut rm_node,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let rack = of(rack)?;
        give(out, || Ok(rack.try_node(id)?))
    })
}

/// The node that this process is; of a rack that is all in this process, the first.
///
/// # Safety
/// `rack` is a handle; `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_node_own(rack: *const rm_rack, out: *mut *mut rm_node) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let rack = of(rack)?;
        let own = rack.nodes().first().cloned();
        // A rack has one, at least.
        give(out, || Ok(own.ok_or(rackmem::RackError::Closed)?))
    })
}

/// Ends the handle, not the node.
///
/// # Safety
/// `node` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_node_free(node: *mut rm_node) {
    // SAFETY: the caller's.
    drop(unsafe { take(node) });
}

/// Which node of the rack it is, or -1 where `node` is none.
///
/// # Safety
/// `node` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_node_id(node: *const rm_node) -> i32 {
    // SAFETY: the caller's.
    unsafe { of(node) }.map_or(-1, |node| node.id().into())
}

/// How many nodes the rack has, or -1 where `node` is none.
///
/// # Safety
/// `node` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_node_count(node: *const rm_node) -> i32 {
    // SAFETY: the caller's.
    unsafe { of(node) }.map_or(-1, |node| node.nodes() as i32)
}
