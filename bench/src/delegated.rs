//! Memory without caches: operations travel to the data (Grappa-style),
//! by guests of a rack's nodes.
//!
//! Each node's guest has words of its own, named by addresses like those of the rack's memory:
//! a node, and an offset.

use rackmem::guest::wire::{Copyset, Kind, Tag};
use rackmem::guest::{Body, Dest, Guest, Header, Net, Receiver};
use rackmem::{AccessError, Node};
use rackmem_baselines::delegate::{Operation, Words};
use rackmem_fabric::Whole;
use std::sync::{Arc, Mutex, MutexGuard};

/// A node's words.
struct Home {
    me: u16,
    words: Mutex<Words>,
}

impl Home {
    fn words(&self) -> MutexGuard<'_, Words> {
        self.words.lock().whole()
    }
}

impl Guest for Home {
    fn packet(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        let Body::Bytes(bytes) = body else { return };
        let Some((operation, nth)) = Operation::from_bytes(bytes) else {
            return;
        };
        let by = header.requester;
        let result = self.words().execute(by, header.seq, nth, operation);
        if let Some(result) = result {
            let answer = header.answer(Kind::GuestTell, self.me);
            // What is a kind's own takes 16 bytes.
            let mut body = [0; 16];
            body[..8].copy_from_slice(&result.to_ne_bytes());
            net.send(Dest::Requester(by), &answer, Body::Bytes(&body), reply);
        }
    }

    fn gone(&self, nodes: Copyset) {
        self.words().forget(|by| nodes.contains(by.node));
    }
}

/// Gives each node of a rack words for offsets below `bytes`: for [`rackmem::Builder::guests`].
pub fn guests(bytes: usize) -> impl Fn(u16) -> Arc<dyn Guest> + Send + Sync + 'static {
    move |me| {
        let words = Mutex::new(Words::new(bytes / 8));
        Arc::new(Home { me, words })
    }
}

fn execute(node: &Node, addr: u64, operation: Operation) -> Result<u64, AccessError> {
    let tag = Tag(addr);
    let home = node.host_of(addr).ok_or(AccessError::BadAddress { addr })?;
    node.ask(home, &operation.to_bytes(tag.offset() / 8))
}

/// The word at an address that is a multiple of eight.
///
/// # Errors
/// Those of [`Node::ask`].
pub fn load(node: &Node, addr: u64) -> Result<u64, AccessError> {
    execute(node, addr, Operation::Read)
}

/// Stores to the word at an address that is a multiple of eight.
///
/// # Errors
/// Those of [`Node::ask`].
pub fn store(node: &Node, addr: u64, value: u64) -> Result<(), AccessError> {
    execute(node, addr, Operation::Write(value)).map(|_| ())
}

/// Adds to the word at an address that is a multiple of eight; what was there before.
///
/// # Errors
/// Those of [`Node::ask`].
pub fn fetch_add(node: &Node, addr: u64, n: u64) -> Result<u64, AccessError> {
    execute(node, addr, Operation::Add(n))
}
