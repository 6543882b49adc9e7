//! Receiving: briefly awake, then asleep.
//!
//! A thread that has just had a packet stays awake for the next one a little while ([`Awake`]),
//! and only then blocks.

use crate::awake::Awake;
use crate::burst::Incoming;
use crate::work::{self, What};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// How often an idle agent looks whether it should stop or send something again.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// Waits for datagrams: up to `spin` awake, then asleep until the socket's own timeout. The one
/// whose turn is next; `None` when none came.
pub(crate) fn receive<'a>(
    socket: &UdpSocket,
    incoming: &'a mut Incoming,
    spin: Duration,
) -> Option<&'a [u8]> {
    if !incoming.has_next() && !look_awake(socket, incoming, spin) {
        incoming.look(socket, true);
    }
    incoming.next()
}

/// Whether something has come while this thread stayed awake for it.
fn look_awake(socket: &UdpSocket, incoming: &mut Incoming, spin: Duration) -> bool {
    if spin.is_zero() {
        return false;
    }
    let mut awake = Awake::begin(spin);
    loop {
        if incoming.look(socket, false) {
            return true;
        }
        if !awake.look_again(awake.waited()) {
            return false;
        }
    }
}

/// Waits for datagrams: up to `spin` awake, then asleep, but no longer than `at_most` in all.
/// The socket's own timeout will not do for this: the kernel counts it in ticks of up to ten
/// milliseconds, and a lost packet should cost a few round trips.
pub(crate) fn receive_within<'a>(
    socket: &UdpSocket,
    incoming: &'a mut Incoming,
    spin: Duration,
    at_most: Duration,
) -> Option<&'a [u8]> {
    if !incoming.has_next() {
        let mut awake = Awake::begin(spin);
        while !incoming.look(socket, false) {
            let waited = awake.waited();
            if waited >= at_most {
                return None;
            }
            if !awake.look_again(waited) && !sleep_until_readable(socket, at_most - waited) {
                return None;
            }
        }
    }
    incoming.next()
}

/// Sleeps until there is a datagram, or something else to learn from the socket.
/// False when the time is up.
fn sleep_until_readable(socket: &UdpSocket, at_most: Duration) -> bool {
    let mut polled = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let time = libc::timespec {
        tv_sec: libc::time_t::try_from(at_most.as_secs()).unwrap_or(libc::time_t::MAX),
        // Always less than 10^9, which fits every definition of the type.
        tv_nsec: at_most.subsec_nanos() as libc::c_long,
    };
    work::count(What::Receives, 1);
    // SAFETY: both pointers are to locals that outlive the call, the count is that of `polled`,
    // and a null signal mask leaves signals as they are.
    let ready = unsafe { libc::ppoll(&raw mut polled, 1, &raw const time, std::ptr::null()) };
    ready > 0
}
