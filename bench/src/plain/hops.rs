//! What the hops do.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::datagram::{Header, MAX_DATAGRAM_BYTES};
use super::{PATIENCE, Wait};

/// How long a sleeping hop takes to notice that the measurement is over.
const NAP: Duration = Duration::from_millis(20);
/// Hops that spin at once.
const HOPS: usize = 3;

/// A socket and the way to wait at it.
pub(super) struct Link {
    socket: UdpSocket,
    wait: Wait,
    patience: u32,
    in_vain: u32,
    buffer: Box<[u8; MAX_DATAGRAM_BYTES]>,
}

/// What was received.
pub(super) enum Received {
    /// A datagram, now in the link's buffer.
    Part(Header),
    /// Nothing yet.
    Nothing,
}

impl Link {
    pub fn new(socket: UdpSocket, wait: Wait) -> io::Result<Link> {
        match wait {
            Wait::Block => socket.set_read_timeout(Some(NAP))?,
            Wait::Spin => socket.set_nonblocking(true)?,
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Link {
            socket,
            wait,
            patience: PATIENCE[usize::from(cores >= HOPS)],
            in_vain: 0,
            buffer: Box::new([0; MAX_DATAGRAM_BYTES]),
        })
    }

    /// Sends a part of so many bytes.
    pub fn send(&mut self, header: Header, bytes: usize, to: SocketAddr) -> io::Result<()> {
        header.write(&mut self.buffer);
        self.socket.send_to(&self.buffer[..bytes], to).map(drop)
    }

    /// Waits for a datagram, sleeping or having asked once. What has no header is nothing.
    pub fn receive(&mut self) -> io::Result<Received> {
        let Some(bytes) = self.receive_bytes()? else {
            return Ok(Received::Nothing);
        };
        let header = Header::read(&self.buffer[..bytes]);
        Ok(header.map_or(Received::Nothing, Received::Part))
    }

    fn receive_bytes(&mut self) -> io::Result<Option<usize>> {
        match self.socket.recv_from(&mut self.buffer[..]) {
            Ok((bytes, _)) => {
                self.in_vain = 0;
                Ok(Some(bytes))
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    self.rest();
                    Ok(None)
                }
                _ => Err(error),
            },
        }
    }

    fn rest(&mut self) {
        if self.wait == Wait::Block {
            return;
        }
        self.in_vain += 1;
        if self.in_vain < self.patience {
            std::hint::spin_loop();
        } else {
            self.in_vain = 0;
            std::thread::yield_now();
        }
    }
}

/// The forwarder: sends on what comes. Errors end it; the client then misses its answer and says
/// so.
pub(super) fn forward(mut link: Link, to: SocketAddr, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let sent = link.receive_bytes().and_then(|bytes| match bytes {
            Some(bytes) => link.socket.send_to(&link.buffer[..bytes], to).map(drop),
            None => Ok(()),
        });
        if sent.is_err() {
            return;
        }
    }
}

/// The server: answers a request when all its parts have come.
pub(super) fn serve(
    mut link: Link,
    client: SocketAddr,
    requests: usize,
    answer: &[usize],
    stop: &AtomicBool,
) {
    let (mut current, mut come) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let round = match link.receive() {
            Ok(Received::Part(header)) => header.round,
            Ok(Received::Nothing) => continue,
            Err(_) => return,
        };
        come = if round == current { come + 1 } else { 1 };
        current = round;
        if come < requests {
            continue;
        }
        come = 0;
        for (part, &bytes) in (0..).zip(answer) {
            if link.send(Header { round, part }, bytes, client).is_err() {
                return;
            }
        }
    }
}
