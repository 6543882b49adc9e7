//! A service's thread divides its time between packets and ticks: over sockets.

use rackmem_fabric::udp::{Outlet, Peers, bind, serve};
use rackmem_fabric::{Body, Handler, Net, Nobody, Receiver};
use rackmem_wire::{Dest, Header, Kind, RequesterId, Seq, Tag};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Packets that go round: far fewer than any socket holds.
const GOING_ROUND: usize = 32;
/// Packets after which a tick that has not come will not.
const ENOUGH: u64 = 2_000_000;

/// Sends every packet to itself again, so that one is always waiting.
#[derive(Default)]
struct Saturated {
    handled: AtomicU64,
    /// Packets before each tick.
    ticks: Mutex<Vec<u64>>,
    tick_takes: Duration,
}

impl Handler for Saturated {
    fn handle(&self, net: &dyn Net, header: &Header, _: Body<'_>, reply: &mut dyn Receiver) {
        self.handled.fetch_add(1, SeqCst);
        net.send(Dest::Agent(0), header, Body::None, reply);
    }

    fn tick(&self, _: &dyn Net) {
        std::thread::sleep(self.tick_takes);
        let handled = self.handled.load(SeqCst);
        self.ticks.lock().unwrap().push(handled);
    }
}

/// Packets handled before each of so many ticks.
fn ticks(count: usize, tick_takes: Duration) -> Vec<u64> {
    let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let peers = Arc::new(Peers {
        switch: None,
        agents: vec![address],
        mtu: 1500,
    });
    let handler = Arc::new(Saturated {
        tick_takes,
        ..Saturated::default()
    });
    let outlet = Outlet::open(address.ip(), peers.clone()).unwrap();
    let id = RequesterId { node: 0, slot: 0 };
    let header = Header::request(Kind::Ping, 1, Tag(0), id, Seq(1));
    for _ in 0..GOING_ROUND {
        outlet.send(Dest::Agent(0), &header, Body::None, &mut Nobody);
    }
    let service = serve("saturated", socket, peers, handler.clone()).unwrap();
    loop {
        let seen = handler.ticks.lock().unwrap().len();
        if seen >= count || handler.handled.load(SeqCst) >= ENOUGH {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(service);
    let ticks = handler.ticks.lock().unwrap();
    ticks.clone()
}

#[test]
fn a_socket_that_is_never_empty_does_not_keep_ticks_away() {
    let seen = ticks(10, Duration::ZERO);
    assert!(seen.len() >= 10, "{} ticks in {ENOUGH} packets", seen.len());
}

#[test]
fn a_slow_tick_does_not_leave_one_packet_between_two() {
    let seen = ticks(10, Duration::from_millis(12));
    assert!(seen.len() >= 10);
    let shares: Vec<u64> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A kernel that is kept from its processor may leave the socket empty for a moment:
    // then a tick comes early.
    assert!(shares.iter().any(|share| *share >= 32), "{shares:?}");
}
