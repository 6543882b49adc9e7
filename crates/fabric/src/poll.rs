//! Receiving: briefly awake, then asleep.
//!
//! Waking a sleeping thread on another processor costs more than everything else in a miss, and a thread that
//! is woken on the sender's processor takes it from the sender. So whoever has just had a packet stays awake for
//! the next one a little while, giving the processor away between looks, and only then blocks.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Waits for one datagram: up to `spin` awake, then asleep until the socket's own timeout. Its length; `None`
/// when none came.
pub(crate) fn receive(socket: &UdpSocket, packet: &mut [u8], spin: Duration) -> Option<usize> {
    if !spin.is_zero() {
        let began = Instant::now();
        loop {
            if let Ok(len) = look(socket, packet) {
                return Some(len);
            }
            if began.elapsed() >= spin {
                break;
            }
            std::thread::yield_now();
        }
    }
    socket.recv(packet).ok()
}

/// A datagram that is there already.
fn look(socket: &UdpSocket, packet: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length describe `packet`, which is ours alone for the length of the call.
    let len = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            packet.as_mut_ptr().cast(),
            packet.len(),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(len).map_err(|_| io::Error::last_os_error())
}
