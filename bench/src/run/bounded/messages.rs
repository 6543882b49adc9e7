//! The same items without shared memory: each node has all values, and whoever writes one tells
//! every other node by a message. Nobody knows how old what he reads is, and a message that is lost
//! is lost.

use super::super::{BenchError, Result};
use rackmem::Fabric;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a receiver waits before it looks whether all is over.
const LOOK: Duration = Duration::from_millis(20);
/// The number of an item, and its value.
const MESSAGE: usize = 16;

/// Nodes that tell each other.
pub(super) struct Peers {
    shared: Arc<Told>,
    receivers: Vec<JoinHandle<()>>,
}

struct Told {
    /// By node.
    values: Vec<Vec<AtomicU64>>,
    /// By node; none where a message is a call.
    sockets: Vec<(UdpSocket, SocketAddr)>,
    sent: AtomicU64,
    over: AtomicBool,
}

impl Peers {
    pub fn new(nodes: usize, items: usize, fabric: Fabric) -> Result<Peers> {
        let values = || (0..items).map(|_| AtomicU64::new(0)).collect();
        let sockets = match fabric {
            Fabric::Udp => (0..nodes).map(|_| socket()).collect::<std::io::Result<_>>(),
            _ => Ok(Vec::new()),
        };
        let shared = Arc::new(Told {
            values: (0..nodes).map(|_| values()).collect(),
            sockets: sockets.map_err(|error| BenchError::Missing(error.to_string()))?,
            sent: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        let receivers = (0..shared.sockets.len()).map(|node| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.listen(node))
        });
        let receivers = receivers.collect();
        Ok(Peers { shared, receivers })
    }

    pub fn read(&self, node: usize, item: usize) -> u64 {
        self.shared.values[node][item].load(Relaxed)
    }

    /// Whether all that there is to send was sent.
    pub fn write(&self, node: usize, item: usize, value: u64) -> bool {
        let Told {
            values, sockets, ..
        } = &*self.shared;
        values[node][item].store(value, Relaxed);
        let mut message = [0; MESSAGE];
        message[..8].copy_from_slice(&(item as u64).to_le_bytes());
        message[8..].copy_from_slice(&value.to_le_bytes());
        let mut sent = 0;
        for other in (0..values.len()).filter(|other| *other != node) {
            let told = match sockets.get(other) {
                Some((_, to)) => sockets[node].0.send_to(&message, to).is_ok(),
                None => {
                    values[other][item].store(value, Relaxed);
                    true
                }
            };
            sent += u64::from(told);
        }
        self.shared.sent.fetch_add(sent, Relaxed);
        sent as usize == values.len() - 1
    }

    /// Messages so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Relaxed)
    }
}

impl Told {
    fn listen(&self, node: usize) {
        let mut message = [0; MESSAGE];
        while !self.over.load(Relaxed) {
            // Nothing has come, or something else.
            let Ok(MESSAGE) = self.sockets[node].0.recv(&mut message) else {
                continue;
            };
            let word = |at: usize| {
                let bytes = message[at..at + 8].try_into();
                bytes.map_or(0, u64::from_le_bytes)
            };
            if let Some(value) = self.values[node].get(word(0) as usize) {
                value.store(word(8), Relaxed);
            }
        }
    }
}

fn socket() -> std::io::Result<(UdpSocket, SocketAddr)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(LOOK))?;
    let addr = socket.local_addr()?;
    Ok((socket, addr))
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.shared.over.store(true, Relaxed);
        for receiver in self.receivers.drain(..) {
            // One that panicked has ended too.
            let _ = receiver.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn what_one_node_writes_all_have() {
        for fabric in [Fabric::Inline, Fabric::Udp] {
            let peers = Peers::new(3, 4, fabric).unwrap();
            assert!(peers.write(1, 2, 7));
            assert_eq!((peers.sent(), peers.read(1, 2)), (2, 7));
            let began = Instant::now();
            while (0..3).any(|node| peers.read(node, 2) != 7) {
                // Another one, in case that one was lost.
                peers.write(1, 2, 7);
                assert!(began.elapsed() < Duration::from_secs(60));
            }
            assert_eq!(peers.read(0, 1), 0);
        }
    }
}
