//! Protocols that are no part of the rack and live at its nodes: baselines to measure it against,
//! and protocols on trial.
//!
//! A rack that is built with [`Builder::guests`](crate::Builder::guests) gives each node one. Its
//! packets are of the kinds
//! [`Kind::GuestAsk`] and [`Kind::GuestTell`], and it says what they mean: a body has 16 bytes at
//! least, which are the kind's own. Threads of a node reach its guest through
//! [`Node::guest`](crate::Node::guest); [`Node::ask`](crate::Node::ask) sends a question until it
//! is answered.

pub use rackmem_fabric::{Body, Net, Nobody, Receiver};
pub use rackmem_proto::flowcc::{Answering, MakeAnswering};
pub use rackmem_proto::membership::host;
pub use rackmem_proto::wire;
#[cfg(doc)]
use rackmem_proto::wire::Kind;
use rackmem_proto::wire::NodeId;
pub use rackmem_proto::{Dest, wire::Header};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use wire::Copyset;

/// A protocol's part at one node. Packets come from several threads at once, and may be lost,
/// doubled and late where the fabric's may.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::guest::{Body, Guest, Header, Net, Receiver};
/// use std::sync::Arc;
///
/// struct Deaf;
/// impl Guest for Deaf {
///     fn packet(&self, _: &dyn Net, _: &Header, _: Body<'_>, _: &mut dyn Receiver) {}
/// }
///
/// let rack = Rack::builder(2).guests(|_| Arc::new(Deaf)).build()?;
/// assert!(rack.node(0).guest::<Deaf>().is_some());
/// # Ok(())
/// # }
/// ```
pub trait Guest: Any + Send + Sync {
    /// Takes a packet of the present epoch, and sends what it causes through `net`.
    fn packet(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver);

    /// Called every few milliseconds on fabrics that can lose packets.
    fn tick(&self, net: &dyn Net, epoch: u32) {
        let _ = (net, epoch);
    }

    /// These nodes are dead.
    fn gone(&self, nodes: Copyset) {
        let _ = nodes;
    }
}

/// Makes the guest of each node.
type Make = dyn Fn(NodeId) -> Arc<dyn Guest> + Send + Sync;

/// Whether there are guests, and which.
#[derive(Clone, Default)]
pub(crate) struct Guests(Option<Arc<Make>>);

impl Guests {
    pub fn new(make: impl Fn(NodeId) -> Arc<dyn Guest> + Send + Sync + 'static) -> Self {
        Guests(Some(Arc::new(make)))
    }

    /// That of a node.
    pub fn of(&self, node: NodeId) -> Option<Arc<dyn Guest>> {
        self.0.as_ref().map(|make| make(node))
    }
}

impl fmt::Debug for Guests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "guests" } else { "none" })
    }
}
