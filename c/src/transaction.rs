//! Several objects, read and written as one step.

use crate::handle::{bytes, copy_out, of, tell};
use crate::object::rm_object;
use crate::rack::rm_node;
use crate::status::{Failed, call, rm_status};
use rackmem::TransactionError;
use rackmem::object::Transaction;
use std::ffi::c_void;

/// A run of a transaction, as long as its body runs, and in its thread.
#[repr(transparent)]
pub struct rm_transaction(Transaction<'static>);

/// What a transaction does, with the context that rm_transact was given. RM_OK: it is to take
/// effect. Anything else: it is given up. It may run several times, if others come first: what it
/// changes beside objects it has to change anew each time. It must return, not jump or throw.
pub type rm_body =
    Option<unsafe extern "C" fn(run: *mut rm_transaction, context: *mut c_void) -> rm_status>;

/// Runs `body` until all that it reads and writes is one step among all nodes' transactions and
/// reads, or gives up: what `body` returned last, or why it has not taken effect. RM_NO_ANSWER with
/// the code "conflict": others came first each time, for as long as the rack's patience.
///
/// # Safety
/// `node` is a handle; `body` may be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_transact(
    node: *const rm_node,
    body: rm_body,
    context: *mut c_void,
) -> rm_status {
    let mut told = rm_status::RM_OK;
    // SAFETY: the caller's.
    let node = || unsafe { of(node) };
    call(|| {
        let body = body.ok_or_else(|| Failed::argument("the body is NULL"))?;
        let done = node()?.transaction(|run| {
            let run: *mut Transaction<'_> = run;
            // SAFETY: the body's pointer ends with it, and the type is this one's but for its life.
            told = unsafe { body(run.cast(), context) };
            match told {
                rm_status::RM_OK => Ok(()),
                _ => Err(TransactionError::Cancelled),
            }
        });
        match done {
            Err(TransactionError::Cancelled) if told != rm_status::RM_OK => Ok(told),
            done => Ok(done.map(|()| rm_status::RM_OK)?),
        }
    })
}

/// Reads an object as it was when this run read it first, or as this run has written it; `len` and
/// `version` as of rm_object_read. `version` is 0 when the run has only written it.
///
/// # Safety
/// `run` is what the body got; the rest as for rm_object_read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_transaction_read(
    run: *mut rm_transaction,
    object: *const rm_object,
    into: *mut c_void,
    len: *mut usize,
    version: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (run, object) = (running(run)?, of(object)?);
        let read = run.read(object)?;
        copy_out(&read, into, len)?;
        tell(version, run.version_of(object).unwrap_or(0));
        Ok(rm_status::RM_OK)
    })
}

/// Replaces an object when the transaction takes effect, and not before. A transaction has at most
/// 64 objects, and writes at most a MiB, and of that at most 63,984 bytes to objects with copies.
///
/// # Safety
/// `run` is what the body got; `object` is a handle; `len` bytes may be read at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_transaction_write(
    run: *mut rm_transaction,
    object: *const rm_object,
    from: *const c_void,
    len: usize,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        running(run)?.write_bytes(of(object)?, bytes(from, len)?)?;
        Ok(rm_status::RM_OK)
    })
}

/// The run of a body.
///
/// # Safety
/// `run` is null, or what a body has got that has not returned; nobody uses it beside.
unsafe fn running<'a>(run: *mut rm_transaction) -> Result<&'a mut Transaction<'static>, Failed> {
    // SAFETY: it is such a run.
    let run = unsafe { run.as_mut() };
    run.map(|run| &mut run.0)
        .ok_or_else(|| Failed::argument("the transaction is NULL"))
}
