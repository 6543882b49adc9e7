//! The way of packets out of a section, whose lock is not held any more.

use rackmem_proto::call::Parcel;
use rackmem_proto::wire::{Dest, Header, NodeId};
use std::cell::RefCell;
use std::collections::VecDeque;

/// An answer for a thread that listens goes there and wakes no other.
pub(crate) fn listening(to: Dest, header: &Header) -> Dest {
    let answers = to == Dest::Agent(header.requester.node) && !header.kind.asks_copies();
    match answers && header.reply_port != 0 {
        true => Dest::Requester(header.requester),
        false => to,
    }
}

thread_local! {
    /// Whether this thread sends, and what it has still to send.
    static QUEUE: RefCell<(bool, VecDeque<(NodeId, Parcel)>)> =
        const { RefCell::new((false, VecDeque::new())) };
}

/// Ends the sending of this thread also when a handler panics.
struct Sending;

impl Drop for Sending {
    fn drop(&mut self) {
        QUEUE.with_borrow_mut(|(sends, queue)| {
            *sends = false;
            // Nothing, unless a handler has panicked.
            queue.clear();
        });
    }
}

/// Sends what a node has to send. Where packets are calls, what they cause is sent by the same
/// thread when the call is over: the stack does not grow with the number of packets that follow
/// one another.
pub(crate) fn post(from: NodeId, parcels: Vec<Parcel>, mut send: impl FnMut(NodeId, Parcel)) {
    if parcels.is_empty() {
        return;
    }
    let sends = QUEUE.with_borrow_mut(|(sends, queue)| {
        queue.extend(parcels.into_iter().map(|parcel| (from, parcel)));
        std::mem::replace(sends, true)
    });
    if sends {
        return;
    }
    let _sending = Sending;
    let next = || QUEUE.with_borrow_mut(|(_, queue)| queue.pop_front());
    while let Some((from, parcel)) = next() {
        send(from, parcel);
    }
}

/// What this thread has still to send.
struct Outer((bool, VecDeque<(NodeId, Parcel)>));

impl Drop for Outer {
    fn drop(&mut self) {
        QUEUE.with_borrow_mut(|queue| *queue = std::mem::take(&mut self.0));
    }
}

/// Does something that waits for answers, in the middle of a call: what it causes is sent at once,
/// and not when the call is over.
pub(crate) fn apart<R>(act: impl FnOnce() -> R) -> R {
    let _outer = Outer(QUEUE.with_borrow_mut(std::mem::take));
    act()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::call::Behind;
    use rackmem_proto::wire::{Kind, RequesterId, Seq, Tag};

    fn parcels(count: u64) -> Vec<Parcel> {
        let who = RequesterId { node: 0, slot: 0 };
        let parcel = |seq| Parcel {
            to: Dest::Switch,
            header: Header::request(Kind::AbdStamp, 0, Tag(0), who, Seq(seq)),
            bytes: Behind::Own(Default::default()),
        };
        (0..count).map(parcel).collect()
    }

    #[test]
    fn what_a_packet_causes_is_sent_after_it_and_not_within() {
        let (mut sent, mut depth) = (Vec::new(), 0);
        post(7, parcels(2), |from, parcel| {
            depth += 1;
            sent.push((from, parcel.header.seq.0));
            if sent.len() < 1000 {
                post(8, parcels(1), |_, _| panic!("it would be within"));
            }
            depth -= 1;
        });
        assert_eq!((sent.len(), depth), (1001, 0));
        assert_eq!(sent[..3], [(7, 0), (7, 1), (8, 0)]);
    }

    #[test]
    fn a_thread_whose_handler_has_panicked_sends_again() {
        let sends = || {
            let mut sent = 0;
            post(0, parcels(3), |_, _| sent += 1);
            sent
        };
        let panics = std::panic::catch_unwind(|| post(0, parcels(3), |_, _| panic!("a handler")));
        assert!(panics.is_err());
        assert_eq!(sends(), 3);
    }
}
