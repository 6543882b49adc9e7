//! Addresses on the loopback network for processes that are told where to listen.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Linux gives ports from 32768 on to sockets that ask for any.
const FIRST: u16 = 16_384;
const PORTS: u16 = 16_384;

/// So many addresses, with ports in a row, that no other process is given,
/// neither by this function nor by the kernel: an IP address of 127.64.0.0/10 for each process that
/// asks, and ports below those that the kernel gives. A port that was only free a moment ago may be
/// another socket's when its process starts, or restarts.
pub fn addresses(count: usize) -> Vec<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // Process numbers of Linux have 22 bits.
    let ip = Ipv4Addr::new(127, 64 | high & 63, middle, low);
    // At once, so that they are in a row while other threads ask too.
    let first = NEXT.fetch_add(count as u16, Relaxed);
    (0..count as u16)
        .map(|i| FIRST + first.wrapping_add(i) % PORTS)
        .map(|port| SocketAddr::from((ip, port)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn addresses_differ_and_can_be_listened_on() {
        let all: Vec<SocketAddr> = [addresses(3), addresses(4)].concat();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 7);
        let sockets = all.iter().map(|addr| UdpSocket::bind(addr).unwrap());
        let listeners = all.iter().map(|addr| TcpListener::bind(addr).unwrap());
        assert_eq!((sockets.count(), listeners.count()), (7, 7));
        assert!(all.iter().all(|addr| addr.ip().is_loopback()));
    }
}
