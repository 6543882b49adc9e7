//! The threads that serve agents and the switch, and an end that only sends.

use super::hub::Member;
use super::receiving::Receiving;
use super::sender::Sender;
use crate::poll::TICK;
use crate::service::Service;
use crate::serving::serve_until;
use crate::{Body, Counters, Handler, Net, Nobody, Receiver};
use rackmem_wire::{Dest, Header};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The numbers of a member's senders that are no ports.
pub(super) const SERVING: usize = 0;
const LATE: usize = 1;

/// Serves a member's first inbox in a thread of its own. The end of the service gives the member's
/// place up.
pub fn serve(name: &str, member: Arc<Member>, handler: Arc<dyn Handler>) -> io::Result<Service> {
    let counters = Arc::<Counters>::default();
    let receiving = Receiving::begin(member.segment().clone(), 0, counters.clone());
    let mut receiving = receiving.ok_or(io::ErrorKind::InvalidInput)?;
    let sender = Sender::new(member.clone(), SERVING, counters.clone());
    let counted = counters.clone();
    Service::start(name, counters, move |stop| {
        let _at_the_end = Leaving(member);
        answer(&mut receiving, &sender, &*handler, &counted, stop);
    })
}

/// Gives the place up also when the handler panics: there may be ports that keep the member for
/// long.
struct Leaving(Arc<Member>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave();
    }
}

fn answer(
    receiving: &mut Receiving,
    sender: &Sender,
    handler: &dyn Handler,
    counters: &Counters,
    stop: &AtomicBool,
) {
    let take = |spin| {
        let handle = |header: &Header, body: Body<'_>| {
            counters.received.fetch_add(1, Relaxed);
            handler.handle(sender, header, body, &mut Nobody);
        };
        receiving.receive((spin, TICK), handle).is_some()
    };
    serve_until(stop, take, || handler.tick(sender));
}

/// An end that only sends: for packets that were held back. A member has one.
pub struct Outlet(Sender);

impl Outlet {
    /// The one of this member.
    pub fn open(member: &Arc<Member>) -> Outlet {
        Outlet(Sender::new(member.clone(), LATE, Arc::default()))
    }
}

impl Net for Outlet {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.0.send(to, header, body, reply);
    }

    fn segment(&self, block: usize) -> usize {
        self.0.segment(block)
    }
}
