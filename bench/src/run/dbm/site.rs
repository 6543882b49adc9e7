//! A rack with a loaded database.

use super::lock::Taken;
use super::{OneLock, Options, Point, Way};
use crate::locks::{self, AnyLock, Pthread};
use crate::run::{BenchError, Result};
use rackmem::{Node, Rack, Region, RegionSpec};
use rackmem_dbm::{Called, Database, Mapped, Memory, PAGE};

/// Records of one section while it is loaded.
const BATCH: u32 = 200;
/// Bytes of a record beside its value, with what pages are not filled: half of a hash is for what
/// its buckets have no room for.
const BESIDE: usize = 40;
const SPARE: usize = 4;

type Shared = Database<Box<dyn Memory + Send>, Taken>;

/// See the module.
pub(super) struct Site {
    // Dropped before the rack whose memory they use.
    databases: Vec<Shared>,
    rack: Rack,
}

/// The key of a record: those that follow each other are far apart in order, too.
pub(super) fn key(record: u32) -> [u8; 8] {
    let mixed = u64::from(record + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()
}

fn memory(way: Way, node: &Node, region: &Region) -> Result<Box<dyn Memory + Send>> {
    Ok(match way {
        Way::Calls => Box::new(Called::new(node, region)),
        Way::Mapped => Box::new(Mapped::new(region)?),
    })
}

/// Coherence transactions so far, of blocks and of locks.
pub(super) fn transactions(rack: &Rack) -> u64 {
    let nodes = rack.nodes().iter();
    let granted: u64 = nodes.map(|node| node.lock_metrics().granted).sum();
    rack.metrics().events().misses() + granted
}

/// The lock as each node has it. Node 0 is its home.
pub(super) fn lock(which: OneLock, rack: &Rack) -> Result<Vec<Taken>> {
    let nodes = rack.nodes().iter();
    match which {
        OneLock::Pthread => {
            let lock = Pthread::create();
            Ok(nodes.map(|_| Taken::Process(lock.clone())).collect())
        }
        OneLock::Rack(_) => {
            let made = AnyLock::create(&rack.node(0), 8)?;
            let attach = |node: &Node| AnyLock::attach(node, made.addr()).map(Taken::Rack);
            Ok(nodes.map(attach).collect::<locks::Result<_>>()?)
        }
    }
}

impl Site {
    /// Node 0 is home of the database and its lock, and loads it.
    pub fn load(options: &Options, point: &Point) -> Result<Site> {
        let bytes = options.records as usize * (options.value + BESIDE) * SPARE;
        let bytes = (bytes + 64 * PAGE).next_multiple_of(PAGE);
        let rack = options.mode.builder(point.nodes).fabric(options.fabric);
        // Nothing is evicted: what moves, moves because another node wants it.
        let rack = rack.block_size(PAGE).cache(4 * bytes.max(16 << 20));
        let rack = rack.memory(2 * (bytes as u64).max(32 << 20));
        let guests = locks::guests(point.lock.of_rack());
        let rack = rack.guests(guests).build()?;
        let spec = RegionSpec::new("dbm", bytes).on(0);
        let mut databases = Vec::new();
        for (node, lock) in rack.nodes().iter().zip(lock(point.lock, &rack)?) {
            let region = node.create_region(&spec)?;
            let memory = memory(point.way, node, &region)?;
            databases.push(match databases.is_empty() {
                true => Database::create(memory, lock, point.kind)?,
                false => Database::open(memory, lock)?,
            });
        }
        let site = Site { databases, rack };
        let value = vec![0; options.value];
        for from in (0..options.records).step_by(BATCH as usize) {
            site.databases[0].change(|section| {
                for record in from..options.records.min(from + BATCH) {
                    section.set(&key(record), &value)?;
                }
                Ok(())
            })?;
        }
        Ok(site)
    }

    pub fn nodes(&self) -> usize {
        self.databases.len()
    }

    /// The database as a node has it.
    pub fn database(&self, node: usize) -> &Shared {
        &self.databases[node]
    }

    /// See [`transactions`].
    pub fn transactions(&self) -> u64 {
        transactions(&self.rack)
    }

    /// That it is whole.
    pub fn check(&self, records: u32) -> Result<()> {
        let found = self.databases[0].check()?.records;
        match found == u64::from(records) {
            true => Ok(()),
            false => Err(BenchError::Broken(format!(
                "{found} records are there of {records}"
            ))),
        }
    }
}
