//! All nodes in one process: a send is a call, and the receiver's handler runs in the sender's
//! thread.
//!
//! Nothing is lost, doubled or late, nobody wakes anybody up, and a block is copied once,
//! from the provider's cache into the requester's. Handlers release their locks before they send,
//! so calls nest without deadlock.

use crate::{Body, Handler, Net, Port, Receiver};
use rackmem_wire::{Dest, Header};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The wires of an embedded rack.
#[derive(Default)]
pub struct Inline {
    switch: OnceLock<Arc<dyn Handler>>,
    agents: OnceLock<Vec<Arc<dyn Handler>>>,
}

impl Inline {
    /// Connects all ends; a second call changes nothing.
    pub fn plug(&self, switch: Option<Arc<dyn Handler>>, agents: Vec<Arc<dyn Handler>>) {
        if let Some(switch) = switch {
            let _ = self.switch.set(switch);
        }
        let _ = self.agents.set(agents);
    }
}

impl Net for Inline {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        let handler = match to {
            Dest::Requester(_) => return reply.receive(header, body),
            Dest::Switch => self.switch.get(),
            Dest::Agent(node) => self
                .agents
                .get()
                .and_then(|agents| agents.get(node as usize)),
            Dest::Agents { .. } | Dest::Home(_) => None,
        };
        if let Some(handler) = handler {
            handler.handle(self, header, body, reply);
        }
    }
}

/// A requester's end.
pub struct InlinePort(Arc<Inline>);

impl InlinePort {
    /// Of these wires.
    pub fn new(wires: Arc<Inline>) -> Self {
        InlinePort(wires)
    }
}

impl Net for InlinePort {
    #[inline]
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.0.send(to, header, body, reply);
    }
}

impl Port for InlinePort {
    fn wait(&mut self, _: Duration, _: &mut dyn Receiver) -> bool {
        // Everything that was to come came while sending.
        false
    }

    fn reply_port(&self) -> u16 {
        0
    }

    fn lossy(&self) -> bool {
        false
    }
}
