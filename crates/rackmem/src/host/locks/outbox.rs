//! What a step of a lock leaves to do when the lock's own lock is let go of: packets to send,
//! threads to wake.

use super::seat::Seat;
use crate::membership::current_view::CurrentView;
use rackmem_fabric::{Body, Net, Receiver};
use rackmem_proto::gcp::SEGMENT;
use rackmem_proto::wire::{Dest, Header};
use std::sync::Arc;

/// The bytes that go with a packet.
#[derive(Clone)]
pub(crate) enum Payload {
    None,
    /// What a lock protects, in as many segments as the network needs.
    Data(Arc<[u8]>),
    /// One body.
    Records(Vec<u8>),
}

/// See the module. Bounded by what one input causes: a packet for each node and a few,
/// and the threads that wait.
#[derive(Default)]
pub(crate) struct Outbox {
    packets: Vec<(Dest, Header, Payload)>,
    wake: Vec<Arc<Seat>>,
    /// Nothing is kept of the lock any more.
    pub dropped: bool,
}

impl Outbox {
    pub fn packet(&mut self, to: Dest, header: Header, payload: Payload) {
        self.packets.push((to, header, payload));
    }

    pub fn wake(&mut self, seat: Arc<Seat>) {
        self.wake.push(seat);
    }

    pub fn dropped(&mut self) {
        self.dropped = true;
    }

    pub fn has_packets(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Sends; bodies have at most `room` bytes.
    pub fn send(
        &mut self,
        net: &dyn Net,
        room: usize,
        view: &CurrentView,
        reply: &mut dyn Receiver,
    ) {
        for (to, header, payload) in self.packets.drain(..) {
            let Some(to) = to.hosted(|home| view.host(home)) else {
                continue;
            };
            match payload {
                Payload::None => net.send(to, &header, Body::None, reply),
                Payload::Records(bytes) => net.send(to, &header, Body::Bytes(&bytes), reply),
                Payload::Data(bytes) if bytes.is_empty() => {
                    net.send(to, &header, Body::None, reply);
                }
                Payload::Data(bytes) => {
                    for (nth, part) in bytes.chunks(segment(room)).enumerate() {
                        let mut header = header;
                        header.offset = (nth * segment(room)) as u32;
                        net.send(to, &header, Body::Bytes(part), reply);
                    }
                }
            }
        }
    }

    /// Wakes those who have been let in or sent away. Packets that nobody could send are lost by
    /// then.
    pub fn finish(self) {
        self.wake.iter().for_each(|seat| seat.wake());
    }
}

/// Bytes that one packet carries: whole segments.
fn segment(room: usize) -> usize {
    let each = SEGMENT as usize;
    (room / each).max(1) * each
}
