//! Opening a store: the first node sets it up, the others find it, all agree on its settings.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Store;
use super::buckets::{Buckets, Slab, Slabs};
use super::bus::Bus;
use super::core::Core;
use super::grow::Growth;
use super::leave::Leaving;
use super::lock::Patience;
use super::mend::insist;
use super::right::LastRight;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::layout::page::Geometry;
use crate::layout::superblock::{LAYOUT, MOST_DEPTH, Map, SETTINGS_BYTES, Settings, State};
use crate::memory::{Memory, MemoryError};

/// Most buckets, a power of two: a node has room for so many locks, and for as many again.
pub(crate) const MOST_BUCKETS: usize = 1 << MOST_DEPTH;
/// Buckets in a slab at most, where each takes a block.
const SLAB_OF_BLOCKS: usize = 64;
/// What the named region is.
const REGION_TYPE: u64 = 0x6b76_2d73_746f_7265;

/// How a store is made or found.
#[derive(Clone)]
pub struct Options {
    /// Its name in the rack.
    pub name: String,
    /// Buckets to begin with: a power of two, at most 2^20. The same at every node.
    /// A node that has used a bucket keeps some 500 bytes and what is in use of its page.
    pub buckets: usize,
    /// Buckets at most: a power of two, from `buckets` to 2^20. A bucket with much in it is split
    /// until there are so many; then its pages become more.
    pub most_buckets: usize,
    /// How long an operation waits for the lock of a bucket.
    pub patience: Duration,
    /// Where the time of day comes from.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "default".into(),
            buckets: 1 << 10,
            most_buckets: MOST_BUCKETS,
            patience: Duration::from_secs(5),
            clock: Clock::system(),
        }
    }
}

impl<M: Memory> Store<M> {
    /// Opens the store called `options.name`, which the first to open it sets up.
    /// Members that come and go meanwhile are waited for, as long as an operation waits for a
    /// bucket: a store is set up with memory of every node.
    pub fn open(memory: M, options: Options) -> Result<Self> {
        let (first, most) = (options.buckets, options.most_buckets);
        let powers = first.is_power_of_two() && most.is_power_of_two();
        if !powers || first > MOST_BUCKETS || most > MOST_BUCKETS {
            return Err(Error::BadOption(
                "buckets must be a power of two, at most 2^20",
            ));
        }
        let slab = match memory.pages_survive() {
            true => SLAB_OF_BLOCKS,
            false => MOST_BUCKETS,
        };
        let map = Map::new(memory.block_size(), memory.nodes(), first, slab);
        let found = waiting_for_members(options.patience, || Found::look(&memory, &options, &map))?;
        let saves = !memory.pages_survive();
        let growth = Growth::new(most.ilog2() as u8, found.geometry.page, saves);
        let core = Core {
            memory,
            growth,
            clock: options.clock,
            patience: options.patience,
            geometry: found.geometry,
            map,
            base: found.base,
            seed: found.seed,
            buckets: Buckets::new(found.slabs),
            right: LastRight::default(),
            replacing: Mutex::default(),
            bus: Bus::default(),
            leaving: Leaving::default(),
            expired: AtomicU64::new(0),
        };
        // An earlier life of this node may have left.
        core.stay()?;
        // Those who open the store first spread its buckets over all nodes, together.
        for slab in 0..map.root_slabs() {
            let make = || core.make_slab_at(slab, || core.first_home(slab));
            waiting_for_members(core.patience, make)?;
        }
        waiting_for_members(core.patience, || core.make_right())?;
        // A node that is back brings memory for its buckets.
        core.replace_all()?;
        Ok(Self {
            core: Arc::new(core),
        })
    }
}

/// Tries again while a node that it takes is away, and says so when it is for longer.
pub(super) fn waiting_for_members<R>(
    patience: Duration,
    mut f: impl FnMut() -> Result<R>,
) -> Result<R> {
    let mut patience = Patience::new(patience);
    loop {
        match f() {
            Err(error) if error.is_node_lost() => patience.pause().map_err(|_| error)?,
            done => return done,
        }
    }
}

/// A store that is set up.
struct Found<M: Memory> {
    base: u64,
    seed: u64,
    geometry: Geometry,
    slabs: Slabs<M>,
}

impl<M: Memory> Found<M> {
    /// Looks for the store, and sets it up where there is none.
    fn look(memory: &M, options: &Options, map: &Map) -> Result<Self> {
        let name = format!("kv/{}", options.name);
        let base = match memory.region(&name, map.region_len(), REGION_TYPE) {
            Err(MemoryError::Mismatch(_)) => return Err(Self::explain(memory, &name, map)),
            base => base?,
        };
        let settings = agree(memory, map, base)?;
        for (what, have, want) in [
            ("layout", settings.layout, LAYOUT),
            ("bucket count", settings.roots, options.buckets as u64),
        ] {
            if have != want {
                return Err(Error::Settings { what, have, want });
            }
        }
        let load = || load_slabs(memory, map, base);
        let entries = load().or_else(|error| insist(memory, error, &mut { load }))?;
        let geometry = Geometry::new(memory.page_bytes(), settings.magic);
        let slab = |(slab, entry)| match entry {
            0 => Ok(None),
            entry => Slab::new(memory, map, geometry.page, (slab, entry)).map(Some),
        };
        let slabs = entries.into_iter().enumerate().map(slab);
        let slabs = slabs.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Found {
            base,
            seed: settings.seed,
            geometry,
            slabs: Slabs::new(slabs, map.root_depth()),
        })
    }

    /// The region's size tells the bucket count of the store that is there.
    fn explain(memory: &M, name: &str, map: &Map) -> Error {
        let mut buckets = 1;
        while buckets <= MOST_BUCKETS {
            let other = map.with_roots(buckets);
            let same_size = other.region_len() != map.region_len();
            if same_size && memory.region(name, other.region_len(), REGION_TYPE).is_ok() {
                return Error::Settings {
                    what: "bucket count",
                    have: buckets as u64,
                    want: map.roots as u64,
                };
            }
            buckets *= 2;
        }
        MemoryError::Mismatch(format!("{name} is not a store")).into()
    }
}

/// The store's settings, which the first to ask decides.
fn agree<M: Memory>(memory: &M, map: &Map, base: u64) -> Result<Settings> {
    let addr = map.settings(base);
    let look = || {
        memory.snapshot(addr, SETTINGS_BYTES, |view| {
            (Settings::state(view), Settings::load(view))
        })
    };
    let known = look().or_else(|error| insist(memory, error, &mut { look }))?;
    if let (State::Ready, settings) = known {
        return Ok(settings);
    }
    // Odd, so never 0, which is what untouched memory shows.
    let magic = fastrand::u64(..) | 1;
    let mine = Settings {
        layout: LAYOUT,
        roots: map.roots as u64,
        seed: fastrand::u64(..),
        magic,
    };
    let decide = || memory.update(addr, SETTINGS_BYTES, |view| mine.store_if_new(view));
    let settings = decide().or_else(|error| insist(memory, error, &mut { decide }))?;
    // Nobody goes by what its writer could take along.
    memory.publish(addr)?;
    Ok(settings)
}

fn load_slabs<M: Memory>(
    memory: &M,
    map: &Map,
    base: u64,
) -> std::result::Result<Vec<u64>, MemoryError> {
    let mut table = vec![0; map.root_slabs() * 8];
    memory.read(map.entry(base, 0), &mut table)?;
    Ok(table
        .chunks_exact(8)
        .map(|c| u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]))
        .collect())
}
