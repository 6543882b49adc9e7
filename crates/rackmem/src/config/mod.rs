//! How a rack is set up: defaults, and the file that describes a rack of processes.

mod address;
pub(crate) mod disks;
mod environment;
pub(crate) mod extras;
mod file;
mod kernel;
mod kv;
mod located;
pub(crate) mod migration;
mod size;
mod time;

pub use address::look_up;
pub use kernel::{KernelMode, KernelReads};
pub use kv::{KvCopies, check_kv_copies};
pub use size::Size;
pub use time::Time;

use crate::bytes::cache::Cache;
use crate::config::disks::Disks;
use crate::config::extras::Extras;
use crate::config::migration::Migration;
use crate::error::OpenError;
use crate::guest::{Guest, Guests};
use crate::membership;
use rackmem_fabric::Faults;
use rackmem_proto::CHUNK;
use rackmem_proto::abd::COPIES;
use rackmem_proto::flowcc::MakeAnswering;
use rackmem_proto::switch::SwitchConfig;
use rackmem_proto::wire::{MAX_BLOCK, MAX_NODES, MIN_BLOCK, Tag};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Which protocol keeps the rack's memory coherent.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Mode, Rack};
///
/// let rack = Rack::builder(2).mode(Mode::HomeOnly).build()?;
/// assert!(!rack.node(0).has_switch());
/// assert_eq!(Mode::Switch.name(), "switch");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// FlowCC, the switch owning the entries it has room for.
    #[default]
    Switch,
    /// FlowCC without a switch: home agents own every entry (the paper's Concordia-base).
    HomeOnly,
}

impl Mode {
    /// All of them, with the names used in files, commands and reports.
    pub const ALL: [(Mode, &'static str); 2] =
        [(Mode::Switch, "switch"), (Mode::HomeOnly, "home-only")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|row| row.0 == self)
            .map_or("", |row| row.1)
    }

    /// Whether requests go through a switch.
    pub fn has_switch(self) -> bool {
        self == Mode::Switch
    }
}

/// How packets move.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Fabric, Rack};
///
/// for (fabric, name) in Fabric::ALL {
///     let rack = Rack::builder(2).fabric(fabric).build()?;
///     assert_eq!(rack.node(1).alloc(7u64)?.read()?, 7, "{name}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fabric {
    /// A function call. Embedded racks only.
    #[default]
    Inline,
    /// Rings in memory that processes of one host share, with a thread for every agent and the
    /// switch.
    Shm,
    /// UDP, with a thread for every agent and the switch. Embedded racks use loopback.
    Udp,
}

impl Fabric {
    /// All of them, with the names used in files, commands and reports.
    pub const ALL: [(Fabric, &'static str); 3] = [
        (Fabric::Inline, "inline"),
        (Fabric::Shm, "shm"),
        (Fabric::Udp, "udp"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|row| row.0 == self)
            .map_or("", |row| row.1)
    }
}

/// What all parts of a rack agree on, and the sizes of one part.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// What tells racks apart in files that outlive them.
    pub rack: u64,
    pub epoch: u32,
    pub mode: Mode,
    pub block_size: usize,
    pub cache: usize,
    pub memory: u64,
    pub switch_entries: usize,
    pub patience: Duration,
    pub mtu: Option<usize>,
    pub extras: Extras,
    pub migration: Migration,
    /// Parts of a home; as many as the machine has cores by default.
    pub home_shards: Option<u32>,
    pub guests: Guests,
    pub answering: Option<MakeAnswering>,
    /// Nodes that keep the table of regions; 0: node 0 has it.
    pub copies: u8,
    /// Where durable copies are.
    pub store: Option<PathBuf>,
    pub disks: Disks,
    /// The kernel of the host answers reads of objects.
    pub kernel_reads: Option<KernelReads>,
    /// It invalidates cached copies as well, and gives them to readers.
    pub kernel_cache: bool,
    /// Blocks leave full sets of the cache before their room is needed.
    pub evict_ahead: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            rack: fastrand::u64(1..),
            epoch: 1,
            mode: Mode::Switch,
            block_size: 4096,
            cache: 256 << 20,
            memory: DEFAULT_MEMORY,
            switch_entries: 262_144,
            patience: Duration::from_secs(10),
            mtu: None,
            extras: Extras::default(),
            migration: Migration::default(),
            home_shards: None,
            guests: Guests::default(),
            answering: None,
            copies: 0,
            store: None,
            disks: Disks::default(),
            kernel_reads: None,
            kernel_cache: false,
            evict_ahead: true,
        }
    }
}

/// Bytes that a node gives by default. They are taken as they are touched, so any
/// machine may promise them.
const DEFAULT_MEMORY: u64 = 4 << 30;
/// How long an operation waits for an answer. A process that waits longer is stuck, and the end of
/// what is longer still is in no clock.
const PATIENCE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);
/// The least a network must carry: a granule of the largest block and all headers.
const MIN_MTU: usize = 1280;
/// The most that a datagram carries.
const MAX_MTU: usize = 65_535;
/// Entries of a switch, at most: several times what the largest ASIC has room for.
const MAX_SWITCH_ENTRIES: usize = 1 << 24;
impl Settings {
    /// The switch's table: as many sets, a power of two, as have room for the entries that are
    /// asked for.
    pub fn geometry(&self) -> migration::Geometry {
        let ways = SwitchConfig::default().ways;
        let sets = (self.switch_entries / ways as usize).max(1);
        let sets = sets.next_power_of_two();
        migration::Geometry { ways, sets }
    }

    pub fn check(&self, nodes: usize) -> Result<(), OpenError> {
        let no = |why: String| Err(OpenError::Config(why));
        if nodes == 0 || nodes > MAX_NODES {
            return no(format!(
                "nodes: a rack has 1 to {MAX_NODES} nodes, not {nodes}"
            ));
        }
        if !self.block_size.is_power_of_two() || !(MIN_BLOCK..=MAX_BLOCK).contains(&self.block_size)
        {
            let size = self.block_size;
            return no(format!(
                "block_size is a power of two from {MIN_BLOCK} to {MAX_BLOCK} bytes, not {size}"
            ));
        }
        if !PATIENCE.contains(&self.patience) {
            return no(format!(
                "patience is from 1 ms to an hour, not {:?}",
                self.patience
            ));
        }
        if self.memory < CHUNK {
            return no(format!(
                "memory is at least one chunk of {CHUNK} bytes, not {}",
                self.memory
            ));
        }
        if self.memory / CHUNK > u32::MAX as u64 || self.memory >= Tag::SPACE {
            return no(format!(
                "memory is less than 2^45 bytes a node, not {}",
                self.memory
            ));
        }
        if self.cache < 8 * self.block_size {
            return no(format!(
                "cache is at least 8 blocks ({} bytes), not {}",
                8 * self.block_size,
                self.cache
            ));
        }
        let migration = self.migration;
        if migration.period < Duration::from_millis(1) || migration.tracked > 1 << 20 {
            return no(
                "migration: a period is at least 1 ms, and at most 1,048,576 blocks are tracked"
                    .into(),
            );
        }
        if self
            .mtu
            .is_some_and(|mtu| !(MIN_MTU..=MAX_MTU).contains(&mtu))
        {
            return no(format!("mtu is from {MIN_MTU} to {MAX_MTU} bytes"));
        }
        if self.switch_entries > MAX_SWITCH_ENTRIES {
            return no(format!(
                "switch_entries is at most {MAX_SWITCH_ENTRIES}, not {}",
                self.switch_entries
            ));
        }
        if self.copies > 0 && !COPIES.contains(&self.copies) {
            return no(format!("copies is 1, 3, 5 or 7, not {}", self.copies));
        }
        if usize::from(self.copies) > nodes {
            return no(format!(
                "copies: {} of them take as many nodes, and there are {nodes}",
                self.copies
            ));
        }
        if let Some(reads) = &self.kernel_reads {
            reads.check()?;
        }
        if self.kernel_cache && self.kernel_reads.is_none() {
            return no(
                "kernel_cache goes with `kernel_reads`, which names the interface of both".into(),
            );
        }
        if let Some(Err(bad)) = self.extras.faults.map(|faults| faults.check()) {
            return no(format!("faults: {bad}"));
        }
        Ok(())
    }

    /// Whether a node of this rack can run on this machine, which reading a configuration does not
    /// need.
    pub fn check_here(&self) -> Result<(), OpenError> {
        let most = host_memory().unwrap_or(u64::MAX).max(DEFAULT_MEMORY);
        if self.memory > most {
            return Err(OpenError::Config(format!(
                "memory: this machine has {}, and a node would give {}",
                Size(most),
                Size(self.memory)
            )));
        }
        match Cache::fits(self.cache, self.block_size) {
            true => Ok(()),
            false => Err(OpenError::Config(format!(
                "cache: this machine does not give a node {}",
                Size(self.cache as u64)
            ))),
        }
    }
}

/// A rack of processes: who listens where, and what all agree on.
/// The same file serves every process.
///
/// ```toml
/// # Agents, by node number; names are looked up when the file is read.
/// nodes = ["10.0.0.1:7401", "host2:7401"]
/// switch = "10.0.0.9:7400"                  # left out: no switch, home agents own every entry
/// fabric = "shm"                            # all on this host; left out: "udp"
/// block_size = 4096
/// # Each node: blocks, and locks of other homes in what they leave, or in a quarter of it.
/// cache = "256M"                            # bytes, or a number and K, M, G or T
/// memory = "4G"                             # each node
/// patience = "10s"                          # for an answer; a number and us, ms, s or m
/// membership = "etcd:http://10.0.0.5:2379"  # or "dir:/path", or left out: fixed
/// name = "rack"                             # where several racks share an etcd or a folder
/// lease = "1s"                              # a member that is silent for so long is declared dead
/// copies = 3                                # names of regions survive the death of one of three
/// kernel_reads = "eth0"                     # where the kernel answers reads, without the node
/// object_memory = "64M"                     # with it: memory for objects, taken at once
/// bounded_memory = "8M"                     # and for items of bounded memory
/// replicated_memory = "8M"                  # and for lines of regions with copies
/// coherent_memory = "8M"                    # and for blocks that the switch decides about
/// kernel_cache = true                       # with it: the kernel takes and gives cached copies
/// store = "/var/lib/rackmem"                # durable copies of regions, a folder for each node
///
/// [kv]                                      # the store that `rackmem kv` serves
/// copies = 3                                # each write is with two nodes of three, and survives
/// ship = true                               # without copies: commands go to keys that go round
///
/// [faults]                                  # for tests: what this process's packets suffer
/// loss = 0.01                               # shares of packets, as `duplication` and `delay`
/// delay = 0.05                              # held back for up to `delay_up_to`: 2 ms
/// ```
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Config, Fabric};
///
/// let text = "nodes = ['127.0.0.1:7401', '127.0.0.1:7402']\nfabric = 'shm'\ncache = '64M'";
/// let config = Config::parse(text)?;
/// assert_eq!((config.nodes.len(), config.fabric), (2, Fabric::Shm));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses of the agents, by node.
    pub nodes: Vec<SocketAddr>,
    /// Address of the switch.
    pub switch: Option<SocketAddr>,
    /// How packets move. On [`Fabric::Shm`] the addresses are only names: no socket listens there.
    pub fabric: Fabric,
    /// How the rack agrees on who is in it.
    pub membership: membership::Settings,
    pub(crate) settings: Settings,
    kv_copies: Option<KvCopies>,
    kv_ships: bool,
}

impl Config {
    /// What tells the racks of a host apart: everything by which their processes would find each
    /// other.
    pub(crate) fn number(&self) -> u64 {
        let text = format!(
            "{} {:?} {:?}",
            self.membership.name, self.nodes, self.switch
        );
        // FNV-1a.
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Ways and sets of the switch's table of entries.
    pub fn switch_geometry(&self) -> (u8, usize) {
        let crate::config::migration::Geometry { ways, sets } = self.settings.geometry();
        (ways, sets)
    }

    /// Lets this node's home answer in another way than FlowCC's: see
    /// [`Builder::answering`](crate::Builder::answering). All nodes of a rack do, or none.
    #[must_use]
    pub fn answering(mut self, make: MakeAnswering) -> Config {
        self.settings.answering = Some(make);
        self
    }

    /// Gives this node a guest: see [`Builder::guests`](crate::Builder::guests).
    #[must_use]
    pub fn guests(
        mut self,
        make: impl Fn(u16) -> Arc<dyn Guest> + Send + Sync + 'static,
    ) -> Config {
        self.settings.guests = Guests::new(make);
        self
    }

    /// How many nodes keep the table of regions, so that a majority of them has it; 0: node 0 does,
    /// and it dies with that.
    pub fn copies(&self) -> u8 {
        self.settings.copies
    }

    /// Where durable copies of regions are: below it, each node has a folder of its own.
    pub fn store(&self) -> Option<&Path> {
        self.settings.store.as_deref()
    }

    /// Puts durable copies there, whatever the file says.
    pub fn set_store(&mut self, folder: PathBuf) {
        self.settings.store = Some(folder);
    }

    /// Which protocol the rack runs.
    pub fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// What the network does to this process's packets, if the file says.
    pub fn faults(&self) -> Option<Faults> {
        self.settings.extras.faults
    }

    /// Lets the network do this to this process's packets, whatever the file says.
    pub fn set_faults(&mut self, faults: Faults) {
        self.settings.extras.faults = Some(faults);
    }

    /// Writes this process's packets to a file for tcpdump and Wireshark.
    pub fn set_capture(&mut self, file: PathBuf) {
        self.settings.extras.capture = Some(file);
    }

    /// Writes this process's packets to a file, a line each.
    pub fn set_trace(&mut self, file: PathBuf) {
        self.settings.extras.trace = Some(file);
    }

    pub(crate) fn check(&self) -> Result<(), OpenError> {
        self.settings.check(self.nodes.len())?;
        if self.fabric == Fabric::Inline {
            return Err(OpenError::Config(
                "fabric: a rack of processes has \"udp\" or \"shm\"".into(),
            ));
        }
        if self.settings.mode.has_switch() != self.switch.is_some() {
            return Err(OpenError::Config(
                "mode: a `switch` address goes with mode \"switch\", and only with it".into(),
            ));
        }
        self.check_kv()?;
        let no = |why: String| Err(OpenError::Config(why));
        if self.settings.kernel_reads.is_some() && self.fabric != Fabric::Udp {
            return no(
                "kernel_reads goes with fabric \"udp\": elsewhere readers map the memory".into(),
            );
        }
        if self.settings.copies > 0 && !self.membership.can_change() {
            return no("copies goes with a `membership` of \"dir:...\" or \"etcd:...\"".into());
        }
        let mut all: Vec<(String, SocketAddr)> = Vec::new();
        let nodes = self.nodes.iter().enumerate();
        let nodes = nodes.map(|(nth, addr)| (format!("nodes[{nth}]"), *addr));
        let switch = self.switch.map(|addr| ("switch".to_owned(), addr));
        for (name, addr) in nodes.chain(switch) {
            if addr.port() == 0 {
                return no(format!(
                    "{name}: {addr} has no port at which others find it"
                ));
            }
            let ip = addr.ip();
            if ip.is_unspecified() || ip.is_multicast() || is_broadcast(ip) {
                return no(format!("{name}: {addr} is not the address of one host"));
            }
            if let Some((first, _)) = all.iter().find(|row| row.1 == addr) {
                return no(format!(
                    "{name}: {addr} is used twice: it is {first}'s already"
                ));
            }
            all.push((name, addr));
        }
        Ok(())
    }
}

/// Bytes of memory and swap space of this machine, if its kernel says.
fn host_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let row = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some((row("MemTotal:")? + row("SwapTotal:").unwrap_or(0)) << 10)
}

fn is_broadcast(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.is_broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_is_wrong_with_it() {
        let why = |text: &str| Config::parse(text).unwrap_err().to_string();
        assert!(why("nodes = []").contains("1 to 32 nodes"));
        assert!(why("nodes = ['127.0.0.1:1', '127.0.0.1:1']").contains("used twice"));
        assert!(why("nodes = ['127.0.0.1:1']\nblock_size = 1000").contains("power of two"));
        assert!(why("nodes = ['127.0.0.1:1']\nblok = 1").contains("blok"));
        assert!(
            why("nodes = ['127.0.0.1:1']\nfabric = 'inline'").contains("a rack of processes has")
        );
        assert!(why("nodes = ['127.0.0.1:1']\nfabric = 'rdma'").contains("rdma"));
        assert!(why("nodes = ['127.0.0.1:1']\nmode = 'switch'").contains("switch"));
        assert!(why("nodes = ['127.0.0.1:1']\nmemory = 5").contains("chunk"));
        assert!(why("nodes = ['127.0.0.1:1']\n[faults]\nloss = 2").contains("loss is a share"));
        assert!(why("nodes = ['127.0.0.1:0']").contains("no port"));
        let copies = |more: &str| why(&format!("nodes = ['127.0.0.1:1']\n{more}"));
        assert!(copies("copies = 2").contains("1, 3, 5 or 7"));
        assert!(copies("copies = 3").contains("there are 1"));
        assert!(copies("copies = 1").contains("goes with"));
        let numbers = [
            ("patience_ms", "0"),
            ("patience_ms", "18446744073709551615"),
            ("switch_entries", "1000000000000"),
            ("switch_entries", "9223372036854775807"),
            ("mtu", "100"),
            ("mtu", "100000000"),
        ];
        for (name, number) in numbers {
            let text = why(&format!("nodes = ['127.0.0.1:1']\n{name} = {number}"));
            assert!(text.contains(name), "{number}: {text}");
        }
        assert!(why("nodes = ['127.0.0.1:1']\n[faults]\nlos = 0.1").contains("los"));
        assert!(
            Config::load(Path::new("/nonexistent/rack.toml"))
                .unwrap_err()
                .to_string()
                .contains("rack.toml")
        );
    }

    #[test]
    fn memory_that_this_machine_has_not_is_an_error() {
        let giving = |memory| Settings {
            memory,
            ..Settings::default()
        };
        let error = giving(Tag::SPACE / 2).check_here().unwrap_err().to_string();
        assert!(error.contains("memory: this machine has"), "{error}");
        giving(DEFAULT_MEMORY).check_here().unwrap();
    }

    #[test]
    fn errors_name_the_line_and_what_was_meant() {
        let why = |text: &str| Config::parse(text).unwrap_err().to_string();
        let cases = [
            (
                "blok_size = 1",
                "line 2 (blok_size = 1): unknown key `blok_size`; did you mean `block_size`?",
            ),
            (
                "pigeons = 1",
                "line 2 (pigeons = 1): unknown key `pigeons`; there are nodes, switch",
            ),
            (
                "epoch = 'x'",
                "line 2 (epoch = 'x'): invalid type: string \"x\", expected a whole number",
            ),
            (
                "cache = 5",
                "line 2 (cache = 5): cache is at least 8 blocks",
            ),
            (
                "fabric = 'rdma'",
                "line 2 (fabric = 'rdma'): there is no `rdma`",
            ),
            (
                "switch = 'x'",
                "line 2 (switch = 'x'): switch = \"x\": the port is missing",
            ),
            (
                "switch = '127.0.0.1:99999'",
                "line 2 (switch = '127.0.0.1:99999')",
            ),
            (
                "switch = '127.0.0.1:1'",
                "line 2 (switch = '127.0.0.1:1'): switch: 127.0.0.1:1 is used twice: it is nodes[0]'s",
            ),
            (
                "switch = '0.0.0.0:7'",
                "switch: 0.0.0.0:7 is not the address of one host",
            ),
            ("cache = 1\ncache = 2", "line 3"),
            (
                "lease = '2s'",
                "line 2 (lease = '2s'): lease goes with a `membership`",
            ),
            (
                "patience = '2 hours'",
                "line 2 (patience = '2 hours'): `2 hours` is not a time",
            ),
            ("patience = '2h'\n", "line 2 (patience = '2h')"),
            (
                "patience = '0s'",
                "line 2 (patience = '0s'): patience is from 1 ms",
            ),
            (
                "patience = '2s'\npatience_ms = 5",
                "patience is given twice",
            ),
            (
                "membership = 'zoo'",
                "line 2 (membership = 'zoo'): `membership` is",
            ),
            (
                "[faults]\nloss = 2",
                "line 3 (loss = 2): faults: loss is a share",
            ),
            ("[migration]\nperiod = '1us'", "migration: a period"),
            ("= 5", "line 2 (= 5)"),
        ];
        for (text, expected) in cases {
            let told = why(&format!("nodes = ['127.0.0.1:1']\n{text}"));
            assert!(told.contains(expected), "{text}: {told}");
        }
        let told = why("nodes = [\n '127.0.0.1:1',\n '127.0.0.1:1']");
        assert!(
            told.contains("line 3 ('127.0.0.1:1']): nodes[1]: 127.0.0.1:1 is used twice"),
            "{told}"
        );
    }

    #[test]
    fn times_have_units_or_the_unit_in_their_name() {
        let read = |text: &str| Config::parse(&format!("nodes = ['127.0.0.1:1']\n{text}")).unwrap();
        let ms = Duration::from_millis;
        let told = read("patience = '1500ms'\nmembership = 'dir:/tmp/x'\nlease = '2s'");
        assert_eq!(
            (told.settings.patience, told.membership.lease),
            (ms(1500), ms(2000))
        );
        let told = read("patience_ms = 1500\nmembership = 'dir:/tmp/x'\nlease_ms = 2000");
        assert_eq!(
            (told.settings.patience, told.membership.lease),
            (ms(1500), ms(2000))
        );
        let told = read("[migration]\nperiod = '5ms'\n[faults]\ndelay = 0.1\ndelay_up_to = '3ms'");
        assert_eq!(told.settings.migration.period, ms(5));
        assert_eq!(told.faults().unwrap().delay_up_to, ms(3));
    }

    #[test]
    fn what_is_not_a_file_is_refused_at_once() {
        let why = |path: &str| Config::load(Path::new(path)).unwrap_err().to_string();
        assert!(why("/dev/zero").contains("/dev/zero: is a device"));
        assert!(why("/").contains("is a directory"));
        assert!(why("/nonexistent/rack.toml").contains("No such file"));
        let text = std::env::temp_dir().join(format!("rackmem-bytes-{}", std::process::id()));
        std::fs::write(&text, b"nodes = []\n\xff\xfe").unwrap();
        let told = why(text.to_str().unwrap());
        std::fs::remove_file(&text).unwrap();
        assert!(told.contains("line 2: not a text"), "{told}");
    }

    #[test]
    fn a_cache_that_no_machine_has_is_an_error() {
        for cache in [1 << 55, usize::MAX / 2, usize::MAX] {
            let settings = Settings {
                cache,
                ..Settings::default()
            };
            assert!(settings.check(2).is_ok());
            let error = settings.check_here().unwrap_err().to_string();
            assert!(error.contains("this machine does not give"), "{error}");
        }
        Settings::default().check_here().unwrap();
    }

    #[test]
    fn faults_are_read_and_those_left_out_are_none() {
        let text = "nodes = ['127.0.0.1:1']\n[faults]\nloss = 0.01\ndelay_up_to_us = 300";
        let faults = Config::parse(text).unwrap().faults().unwrap();
        assert_eq!((faults.loss, faults.duplication), (0.01, 0.0));
        assert_eq!(faults.delay_up_to, Duration::from_micros(300));
        let text = "nodes = ['127.0.0.1:1']";
        assert_eq!(Config::parse(text).unwrap().faults(), None);
    }

    #[test]
    fn what_is_left_out_of_migration_is_as_usual() {
        let read = |table: &str| Config::parse(&format!("nodes = ['127.0.0.1:1']\n{table}"));
        let config = read("[migration]\nperiod_ms = 50\ntop = 3").unwrap();
        let expected = Migration {
            period: Duration::from_millis(50),
            top: 3,
            ..Migration::default()
        };
        assert_eq!(config.settings.migration, expected);
        let why = |table: &str| read(table).unwrap_err().to_string();
        assert!(why("[migration]\nperiod_ms = 0").contains("1 ms"));
        assert!(why("[migration]\nhottest = 3").contains("hottest"));
    }

    #[test]
    fn sizes_have_suffixes_and_hosts_have_names() {
        let text = "nodes = ['localhost:7401']\nblock_size = '4K'\ncache = '64M'\nmemory = '1GiB'";
        let config = Config::parse(text).unwrap();
        assert!(config.nodes[0].ip().is_loopback() && config.nodes[0].port() == 7401);
        let settings = &config.settings;
        let sizes = (settings.block_size, settings.cache, settings.memory);
        assert_eq!(sizes, (4096, 64 << 20, 1 << 30));
        let why = |text: &str| Config::parse(text).unwrap_err().to_string();
        let size = why("nodes = ['127.0.0.1:1']\n\ncache = 'lots'");
        assert!(
            size.contains("line 3") && size.contains("lots") && size.contains("256M"),
            "{size}"
        );
        let odd = why("nodes = ['127.0.0.1:1']\ncache = 1.5");
        assert!(
            odd.contains("line 2") && odd.contains("a number of bytes"),
            "{odd}"
        );
        let port = why("nodes = ['127.0.0.1:1', 'host7']");
        assert!(
            port.contains("nodes[1]") && port.contains("host7") && port.contains("port"),
            "{port}"
        );
        let nowhere = why("nodes = ['127.0.0.1:1']\nswitch = 'no.such.host.invalid:7400'");
        assert!(
            nowhere.contains("switch = ") && nowhere.contains("no.such.host"),
            "{nowhere}"
        );
    }

    #[test]
    fn a_switch_is_used_when_there_is_one() {
        let with = Config::parse("nodes = ['127.0.0.1:1']\nswitch = '127.0.0.1:2'").unwrap();
        assert_eq!(with.mode(), Mode::Switch);
        let without = Config::parse("nodes = ['127.0.0.1:1']").unwrap();
        assert_eq!(without.mode(), Mode::HomeOnly);
    }
}
