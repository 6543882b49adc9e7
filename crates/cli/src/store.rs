//! Opening the store at the nodes of a rack.

use crate::failure::{Failure, Result};
use crate::stop::Stop;
use rackmem::{KvCopies, Node};
use rackmem_kv::memory::{CopiedMemory, Memory, MemoryError};
use rackmem_kv::{Error, Options, Store};
use std::time::{Duration, Instant};

/// The store as one node of a rack has it open.
pub type NodeStore = Store<Node>;

/// A store's memory, at one node of a rack.
pub trait AtNode: Memory {
    /// The node.
    fn at(&self) -> &Node;
}

impl AtNode for Node {
    fn at(&self) -> &Node {
        self
    }
}

impl AtNode for CopiedMemory {
    fn at(&self) -> &Node {
        self.node()
    }
}

/// How long a process waits for the others of its rack to be started.
const WAIT: Duration = Duration::from_secs(120);
/// Between two looks whether an attempt is over.
const STEP: Duration = Duration::from_millis(20);
/// An attempt that takes longer is one that waits for others.
const QUICK: Duration = Duration::from_secs(1);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);
/// The region that has a store with copies.
const COPIED: &str = "kv/copied";

/// Opens the store of so many buckets at one node.
pub fn open(node: Node, buckets: usize) -> Result<NodeStore> {
    Ok(Store::open(node, options(buckets))?)
}

/// Opens it in a rack whose other processes may not have been started yet.
/// `None` when told to stop.
pub fn open_when_ready(node: &Node, buckets: usize, stop: &Stop) -> Result<Option<NodeStore>> {
    let node = node.clone();
    open_in(move || Ok(node.clone()), buckets, stop)
}

/// Opens it in memory of which so many nodes have copies: half of what a node gives.
pub fn open_copied(node: &Node, copies: KvCopies, buckets: usize) -> Result<Store<CopiedMemory>> {
    let (bytes, buckets) = room(node, buckets);
    let memory = CopiedMemory::open(node, COPIED, bytes, copies);
    Ok(Store::open(memory.map_err(Error::from)?, options(buckets))?)
}

/// The same in a rack whose other processes may not have been started yet.
pub fn open_copied_when_ready(
    node: &Node,
    copies: KvCopies,
    buckets: usize,
    stop: &Stop,
) -> Result<Option<Store<CopiedMemory>>> {
    let (bytes, buckets) = room(node, buckets);
    let node = node.clone();
    let memory = move || CopiedMemory::open(&node, COPIED, bytes, copies);
    open_in(memory, buckets, stop)
}

/// Bytes of a store with copies, and its buckets: their pages take half of these at most.
fn room(node: &Node, buckets: usize) -> (usize, usize) {
    let bytes = node.metrics().memory.size as usize / 2;
    let bytes = bytes - bytes % node.block_size();
    let most = bytes / 2 / (node.block_size() + 64);
    (bytes, buckets.min(1 << most.max(1).ilog2()))
}

fn open_in<M: Memory>(
    memory: impl Fn() -> std::result::Result<M, MemoryError> + Clone + Send + 'static,
    buckets: usize,
    stop: &Stop,
) -> Result<Option<Store<M>>> {
    let end = Instant::now() + WAIT;
    let mut said = false;
    while let Some(opened) = attempt(memory.clone(), buckets, stop, &mut said) {
        match opened {
            Ok(store) => return Ok(Some(store)),
            // The rack goes on without this process: what it waits for does not come.
            Err(error @ Error::Memory(MemoryError::Fenced)) => return Err(error.into()),
            // One that has not come yet, as far as anybody can say, or has died and may come back.
            Err(Error::Memory(
                cause @ (MemoryError::Other(_) | MemoryError::NodeLost(_) | MemoryError::NoLease),
            )) => {
                if Instant::now() > end {
                    return Err(nobody_came(&cause.to_string()));
                }
                if !std::mem::replace(&mut said, true) {
                    eprintln!("waiting for the rack: {cause}");
                }
            }
            Err(error) => return Err(error.into()),
        }
        stop.sleep(PAUSE);
    }
    Ok(None)
}

/// Tries once. An attempt may take as long as the rack is patient,
/// too long for somebody who wants to stop: then its thread is left to the end of the process.
fn attempt<M: Memory>(
    memory: impl Fn() -> std::result::Result<M, MemoryError> + Send + 'static,
    buckets: usize,
    stop: &Stop,
    said: &mut bool,
) -> Option<rackmem_kv::Result<Store<M>>> {
    let open = move || Store::open(memory()?, options(buckets));
    let opener = std::thread::spawn(open);
    let quick = Instant::now() + QUICK;
    while !opener.is_finished() {
        if !*said && Instant::now() > quick {
            *said = true;
            eprintln!("waiting for the switch and the other nodes of the rack");
        }
        if !stop.sleep(STEP) {
            return None;
        }
    }
    match opener.join() {
        Ok(opened) => (!stop.requested()).then_some(opened),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn options(buckets: usize) -> Options {
    Options {
        buckets,
        ..Options::default()
    }
}

fn nobody_came(cause: &str) -> Failure {
    Failure::new(
        format!("the rack did not start in {} s: {cause}", WAIT.as_secs()),
        "start the switch and all nodes of the file, then try again",
    )
}
