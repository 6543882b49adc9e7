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

/// Waits for datagrams: up to `spin` awake, then asleep until the socket's own timeout. Whether
/// there is one whose turn is next.
pub(crate) fn receive(socket: &UdpSocket, incoming: &mut Incoming, spin: Duration) -> bool {
    if incoming.has_next() {
        return true;
    }
    if !spin.is_zero() {
        let mut awake = Awake::begin(spin);
        loop {
            if incoming.look(socket, false) {
                return true;
            }
            if !awake.look_again(awake.waited()) {
                break;
            }
        }
    }
    incoming.look(socket, true)
}

/// Waits for datagrams: up to `spin` awake, then asleep, but no longer than `at_most` in all.
/// The socket's own timeout will not do for this: the kernel counts it in ticks of up to ten
/// milliseconds, and a lost packet should cost a few round trips.
pub(crate) fn receive_within(
    socket: &UdpSocket,
    incoming: &mut Incoming,
    spin: Duration,
    at_most: Duration,
) -> bool {
    if incoming.has_next() {
        return true;
    }
    let mut awake = Awake::begin(spin);
    loop {
        if incoming.look(socket, false) {
            return true;
        }
        let waited = awake.waited();
        if waited >= at_most {
            return false;
        }
        if !awake.look_again(waited) && !sleep_until_readable(socket, at_most - waited) {
            return false;
        }
    }
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
