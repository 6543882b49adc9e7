//! `sendmsg` and `recvmsg` of mapped memory: its bytes go through memory of the process.

use super::io::{MOST, bring, give, meets};
use crate::next::next;
use libc::{c_int, iovec, msghdr, ssize_t};

/// The pieces of a message, if some of them are the rack's.
///
/// # Safety
/// That of `sendmsg`.
unsafe fn mapped<'a>(message: *const msghdr) -> Option<(&'a msghdr, &'a [iovec])> {
    // SAFETY: the caller's: it may be read, or is null.
    let message = unsafe { message.as_ref() }?;
    if message.msg_iov.is_null() {
        return None;
    }
    // SAFETY: the caller's: there are so many pieces.
    let pieces = unsafe { std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen) };
    meets(pieces).then_some((message, pieces))
}

/// Of each piece as much as a call takes in all.
fn shares(pieces: &[iovec]) -> impl Iterator<Item = (*mut u8, usize)> {
    let mut left = MOST;
    pieces.iter().map(move |piece| {
        let len = piece.iov_len.min(left);
        left -= len;
        (piece.iov_base.cast(), len)
    })
}

/// The same message with its bytes in one piece.
fn of_one(message: &msghdr, piece: &mut iovec) -> msghdr {
    msghdr {
        msg_iov: piece,
        msg_iovlen: 1,
        ..*message
    }
}

fn piece(bytes: &mut [u8]) -> iovec {
    iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    type Send = unsafe extern "C" fn(c_int, *const msghdr, c_int) -> ssize_t;
    // SAFETY: the caller's.
    let call = |message: *const msghdr| unsafe { next!(sendmsg: Send)(fd, message, flags) };
    // SAFETY: the caller's.
    let Some((whole, pieces)) = (unsafe { mapped(message) }) else {
        return call(message);
    };
    let mut bytes: Vec<u8> = shares(pieces)
        .flat_map(|(from, len)| bring(from, len))
        .collect();
    call(&of_one(whole, &mut piece(&mut bytes)))
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    type Receive = unsafe extern "C" fn(c_int, *mut msghdr, c_int) -> ssize_t;
    // SAFETY: the caller's.
    let call = |message: *mut msghdr| unsafe { next!(recvmsg: Receive)(fd, message, flags) };
    // SAFETY: the caller's.
    let Some((whole, pieces)) = (unsafe { mapped(message) }) else {
        return call(message);
    };
    let mut bytes = vec![0; shares(pieces).map(|(_, len)| len).sum()];
    let mut piece = piece(&mut bytes);
    let mut one = of_one(whole, &mut piece);
    let n = call(&mut one);
    let mut rest = &bytes[..usize::try_from(n).unwrap_or(0).min(bytes.len())];
    for (to, len) in shares(pieces) {
        let (part, others) = rest.split_at(len.min(rest.len()));
        give(part, to);
        rest = others;
    }
    // SAFETY: the caller's: what the system says of the message is written there.
    unsafe {
        *message = msghdr {
            msg_iov: (*message).msg_iov,
            msg_iovlen: (*message).msg_iovlen,
            ..one
        };
    }
    n
}
