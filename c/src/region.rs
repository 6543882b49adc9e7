//! Regions by name, and their bytes by calls.

use crate::handle::{Handle, bytes, bytes_mut, give, name, of, opaque, take};
use crate::rack::rm_node;
use crate::status::{Done, Failed, call, rm_status};
use rackmem::{Contract, Durability, RegionSpec, Survives};
use std::ffi::{c_char, c_void};

/// A named region.
pub struct rm_region(Handle<(rackmem::Node, rackmem::Region)>);
opaque!(rm_region, (rackmem::Node, rackmem::Region));

/// What a region's memory promises.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum rm_contract {
    /// Every load sees the last store, of whichever node: FlowCC.
    RM_COHERENT = 0,
    /// Whole objects are read and written: SABRes.
    RM_OBJECT = 2,
    /// A majority of copies has every line that was written: ABD.
    RM_REPLICATED = 4,
}

/// What copies survive.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum rm_durability {
    /// The end of fewer than half of them.
    RM_MEMORY = 0,
    /// The end of all processes, and no restart of a machine.
    RM_FILE = 1,
    /// Power failures of all machines.
    RM_SYNC = 2,
}

/// A region as a program wants it. Zeros mean what is usual; `bytes` and `name` must be there.
#[repr(C)]
pub struct rm_region_spec {
    /// 1 to 88 bytes.
    pub name: *const c_char,
    /// Bytes.
    pub bytes: usize,
    /// What its elements are, in any number that all who use it agree on.
    pub element: u64,
    /// One of rm_contract.
    pub contract: i32,
    /// 1 to 7 nodes that keep a copy, an odd number. 0: one.
    pub copies: u8,
    /// Coherent memory with copies: a write returns when a majority has it.
    pub writes_survive: bool,
    /// One of rm_durability, where it has copies.
    pub durability: i32,
    /// RM_REPLICATED: bytes of a line, a power of two from 64 to 65536. 0: 4096.
    pub line: u32,
}

/// # Safety
/// `spec` is null or may be read, and so may its name.
unsafe fn wanted(spec: *const rm_region_spec) -> Done<RegionSpec> {
    // SAFETY: the caller's.
    let spec = unsafe { spec.as_ref() }.ok_or_else(|| Failed::argument("the region is NULL"))?;
    // SAFETY: the caller's.
    let name = unsafe { name(spec.name) }?;
    let contract = match spec.contract {
        0 => Contract::Coherent,
        2 => Contract::Object,
        4 => Contract::Replicated,
        _ => return Err(Failed::argument("the contract is none of rm_contract")),
    };
    let durability = match spec.durability {
        0 => Durability::Memory,
        1 => Durability::File,
        2 => Durability::Sync,
        _ => return Err(Failed::argument("the durability is none of rm_durability")),
    };
    let mut wanted = RegionSpec::new(name, spec.bytes).element(spec.element);
    if spec.copies > 0 {
        wanted = wanted.copies(spec.copies);
    }
    if spec.line > 0 {
        wanted = wanted.line(spec.line);
    }
    if durability != Durability::Memory {
        wanted = wanted.durability(durability);
    }
    wanted = wanted.contract(contract);
    if spec.writes_survive {
        wanted = wanted.survives(Survives::Writes);
    }
    Ok(wanted)
}

/// The region of this name, made if there is none. One that is there must be as it is wanted, or
/// this fails by RM_MISMATCH. `created`, unless NULL, tells whether it was made.
///
/// # Safety
/// `node` is a handle, `spec` may be read, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_region_create(
    node: *const rm_node,
    spec: *const rm_region_spec,
    created: *mut bool,
    out: *mut *mut rm_region,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, wanted) = (of(node)?, wanted(spec)?);
        give(out, || {
            let region = node.create_region(&wanted)?;
            crate::handle::tell(created, region.is_new());
            Ok((node.clone(), region))
        })
    })
}

/// The region of this name, which must be there, as it is wanted.
///
/// # Safety
/// As for rm_region_create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_region_open(
    node: *const rm_node,
    spec: *const rm_region_spec,
    out: *mut *mut rm_region,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, wanted) = (of(node)?, wanted(spec)?);
        give(out, || Ok((node.clone(), node.open_region(&wanted)?)))
    })
}

/// Ends the handle, not the region.
///
/// # Safety
/// `region` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_region_free(region: *mut rm_region) {
    // SAFETY: the caller's.
    drop(unsafe { take(region) });
}

/// Removes the region of this name: its memory is free, and handles of all nodes say RM_LOST.
///
/// # Safety
/// `node` is a handle, `region` a string that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_region_remove(
    node: *const rm_node,
    region: *const c_char,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        of(node)?.remove_region(name(region)?)?;
        Ok(rm_status::RM_OK)
    })
}

/// Address of the region's first byte in the rack, the same at all nodes; 0 where `region` is none.
///
/// # Safety
/// `region` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_region_addr(region: *const rm_region) -> u64 {
    // SAFETY: the caller's.
    unsafe { of(region) }.map_or(0, |(_, region)| region.addr())
}

/// Its bytes; 0 where `region` is none.
///
/// # Safety
/// `region` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_region_bytes(region: *const rm_region) -> usize {
    // SAFETY: the caller's.
    unsafe { of(region) }.map_or(0, |(_, region)| region.bytes())
}

/// Reads `len` bytes from byte `at` of the region on. What lies in one block is of one moment, and
/// with copies what lies in one line.
///
/// # Safety
/// `region` is a handle, and `len` bytes may be written at `into`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_read(
    region: *const rm_region,
    at: usize,
    into: *mut c_void,
    len: usize,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        of(region)?.1.read(at, bytes_mut(into, len)?)?;
        Ok(rm_status::RM_OK)
    })
}

/// Writes `len` bytes from byte `at` of the region on; with RM_REPLICATED whole lines.
///
/// # Safety
/// `region` is a handle, and `len` bytes may be read at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_write(
    region: *const rm_region,
    at: usize,
    from: *const c_void,
    len: usize,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        of(region)?.1.write(at, bytes(from, len)?)?;
        Ok(rm_status::RM_OK)
    })
}
