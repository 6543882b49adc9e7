//! Setting up a rack whose nodes are all in this process.

use crate::config::migration::Migration;
use crate::config::{Fabric, Mode, Settings};
use crate::error::OpenError;
use crate::guest::{Guest, Guests};
use crate::rack::Rack;
use rackmem_fabric::Faults;
use rackmem_proto::flowcc::MakeAnswering;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Sets up a rack whose nodes are all in this process.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Fabric, Mode, Rack};
/// use std::time::Duration;
///
/// let rack = Rack::builder(2)
///     .fabric(Fabric::Shm)
///     .mode(Mode::HomeOnly)
///     .cache(16 << 20)
///     .patience(Duration::from_secs(2))
///     .build()?;
/// assert_eq!(rack.nodes().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    nodes: usize,
    fabric: Fabric,
    settings: Settings,
}

impl Builder {
    pub(crate) fn new(nodes: usize) -> Self {
        Builder {
            nodes,
            fabric: Fabric::Inline,
            settings: Settings::default(),
        }
    }

    /// Over which fabric; [`Fabric::Inline`] by default.
    pub fn fabric(mut self, fabric: Fabric) -> Self {
        self.fabric = fabric;
        self
    }

    /// Which protocol; [`Mode::Switch`] by default.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.settings.mode = mode;
        self
    }

    /// Bytes of a block, a power of two from 256 to 65,536; 4,096 by default.
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.settings.block_size = bytes;
        self
    }

    /// Bytes of blocks each node's cache holds; 256 MiB by default. Used as it fills.
    /// Locks of other homes ([`crate::locked`]) may take what blocks leave of it,
    /// and a quarter of it in any case.
    pub fn cache(mut self, bytes: usize) -> Self {
        self.settings.cache = bytes;
        self
    }

    /// Bytes of global memory each node gives, in chunks of 32 MiB; 4 GiB by default.
    /// Used as it is touched.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.settings.memory = bytes;
        self
    }

    /// Lets homes answer in another way than FlowCC's: a baseline
    /// ([`Answering`](crate::guest::Answering)). With [`Mode::HomeOnly`].
    pub fn answering(mut self, make: MakeAnswering) -> Self {
        self.settings.answering = Some(make);
        self
    }

    /// Gives each node a [`Guest`](crate::guest::Guest); there are none by default.
    pub fn guests(mut self, make: impl Fn(u16) -> Arc<dyn Guest> + Send + Sync + 'static) -> Self {
        self.settings.guests = Guests::new(make);
        self
    }

    /// Which entries move to the switch and back.
    pub fn migration(mut self, migration: Migration) -> Self {
        self.settings.migration = migration;
        self
    }

    /// Parts of each node's home, whose blocks are served side by side: a power of two up to 16,
    /// the next one above the number of cores by default.
    pub fn home_shards(mut self, count: u32) -> Self {
        self.settings.home_shards = Some(count);
        self
    }

    /// Entries that the switch has room for; 262,144 by default.
    pub fn switch_entries(mut self, entries: usize) -> Self {
        self.settings.switch_entries = entries;
        self
    }

    /// How long an operation waits for others before it fails, from 1 ms to an hour;
    /// 10 s by default.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Whether blocks leave full sets of the cache before their room is needed, as they do by
    /// default. To measure what that is worth.
    pub fn evict_ahead(mut self, yes: bool) -> Self {
        self.settings.evict_ahead = yes;
        self
    }

    /// Bytes of packets that the network carries; found out from the address by default. UDP only.
    pub fn mtu(mut self, mtu: usize) -> Self {
        self.settings.mtu = Some(mtu);
        self
    }

    /// Where regions with durable copies are, in this folder, for the next rack that is built on
    /// it.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::{Durability, Rack, RegionSpec};
    ///
    /// let folder = std::env::temp_dir().join(format!("rackmem-doc-store-{}", std::process::id()));
    /// let spec = RegionSpec::new("ledger", 640).copies(3).durability(Durability::Sync);
    /// let rack = Rack::builder(3).store(&folder).build()?;
    /// let ledger = rack.node(0).create_region(&spec)?;
    /// ledger.replicated::<u64>(0)?.write(7)?; // two nodes have synced it
    /// drop(rack);
    /// let rack = Rack::builder(3).store(&folder).build()?;
    /// let ledger = rack.node(2).open_region(&spec)?;
    /// assert_eq!(ledger.replicated::<u64>(0)?.read()?, 7);
    /// # drop(rack);
    /// # let _ = std::fs::remove_dir_all(&folder);
    /// # Ok(())
    /// # }
    /// ```
    pub fn store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.store = Some(folder.into());
        self
    }

    /// What the network does to packets; [`Rack::faults`] adjusts it while the rack runs. Not for
    /// [`Fabric::Inline`]: its packets are calls, and a lost one is not retransmitted.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.settings.extras.faults = Some(faults);
        self
    }

    /// Writes all packets to a file for tcpdump and Wireshark, complete when the rack is dropped.
    pub fn capture(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.extras.capture = Some(file.into());
        self
    }

    /// Writes all packets to a file, a line each, complete when the rack is dropped.
    pub fn trace(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.extras.trace = Some(file.into());
        self
    }

    /// Starts it.
    pub fn build(self) -> Result<Rack, OpenError> {
        self.settings.check(self.nodes)?;
        self.settings.check_here()?;
        match self.fabric {
            Fabric::Inline => Rack::inline(self.nodes, &self.settings),
            fabric => Rack::networked(fabric, self.nodes, &self.settings),
        }
    }
}
