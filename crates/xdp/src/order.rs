//! Orders: packets that the program asks the control plane to send, since the ports cannot.
//!
//! That is a receiver whose port is not known yet, several receivers of a multicast behind one
//! port, and what the faults say. The packet comes to the control plane's socket as it shall leave;
//! its body says to whom.

use rackmem_proto::Output;
use rackmem_wire::{Copyset, Dest, Header};

/// Bytes of an order, which are a packet's body (`struct order` in `switch/xdp/deliver.h`).
const ORDER_LEN: usize = 12;

/// A packet to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order(pub Output);

impl Order {
    /// The order in a packet, if it is one of the program that has this nonce.
    pub fn read(header: &Header, body: &[u8], nonce: u32) -> Option<Order> {
        let body: &[u8; ORDER_LEN] = body.try_into().ok()?;
        let word =
            |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        if word(0) != nonce {
            return None;
        }
        let (nodes, provider) = (Copyset(word(4)), Copyset(word(8)));
        let to = if nodes.is_empty() {
            Dest::Requester(header.requester)
        } else {
            Dest::Agents {
                nodes,
                provider: provider.iter().next(),
            }
        };
        Some(Order(Output::new(to, *header)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_wire::{Kind, RequesterId, Seq, Tag};

    #[test]
    fn an_order_says_to_whom_and_nobody_else_can_give_one() {
        let requester = RequesterId { node: 1, slot: 2 };
        let header = Header::request(Kind::ReadMiss, 1, Tag(0), requester, Seq(1));
        let body = |nonce: u32, nodes: u32, provider: u32| {
            [
                nonce.to_be_bytes(),
                nodes.to_be_bytes(),
                provider.to_be_bytes(),
            ]
            .concat()
        };
        let to = |body: &[u8]| Order::read(&header, body, 9).map(|order| order.0.to);
        let agents = Dest::Agents {
            nodes: Copyset(6),
            provider: Some(2),
        };
        assert_eq!(to(&body(9, 6, 4)), Some(agents));
        assert_eq!(to(&body(9, 0, 0)), Some(Dest::Requester(requester)));
        assert_eq!(to(&body(8, 6, 4)), None);
        assert_eq!(to(&body(9, 6, 4)[1..]), None);
        assert_eq!(to(&[]), None);
    }
}
