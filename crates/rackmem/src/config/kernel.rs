//! What runs in the kernel of a host.

use super::{Config, Size};
use crate::bytes::cache::{Cache, WAYS};
use crate::error::OpenError;
use rackmem_proto::flowcc::desk::CACHE_SLAB;
use rackmem_proto::flowcc::twin::{TWIN_BLOCK, Twins};
use rackmem_proto::sabre::SLAB;

/// Where in the kernel.
///
/// ```
/// use rackmem::KernelMode;
///
/// assert_eq!("skb".parse(), Ok(KernelMode::Skb));
/// assert!("fast".parse::<KernelMode>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelMode {
    /// In the driver, before there is a socket buffer.
    Native,
    /// In the network stack, with any driver ("generic").
    Skb,
    /// In the driver where all interfaces' drivers can, otherwise in the network stack.
    #[default]
    Auto,
}

impl std::str::FromStr for KernelMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "native" => Ok(KernelMode::Native),
            "skb" | "generic" => Ok(KernelMode::Skb),
            "auto" => Ok(KernelMode::Auto),
            _ => Err(format!("`{text}` is neither native, skb nor auto")),
        }
    }
}

/// Reads of a node's objects, of its items of bounded memory, of the lines of replicated memory
/// that it keeps copies of, and of blocks of its home that the switch decides about,
/// that the kernel of its host answers: no thread of the node is woken, and it may compute,
/// sleep or be stopped meanwhile. Over UDP, with root and a build with the
/// feature `xdp`. `docs/xdp.md` tells more.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Config, KernelMode, KernelReads};
///
/// let text = "nodes = ['10.0.0.1:7401']\nkernel_reads = 'eth0'\n\
///     object_memory = '256M'\nbounded_memory = '1M'\nreplicated_memory = '2M'\n\
///     coherent_memory = '4M'";
/// let mut config = Config::parse(text)?;
/// assert_eq!(config.kernel_reads().unwrap().memory, 256 << 20);
/// config.set_kernel_reads("eth1/skb")?;
/// let expected = KernelReads {
///     interface: "eth1".into(),
///     mode: KernelMode::Skb,
///     memory: 256 << 20,
///     bounded: 1 << 20,
///     replicated: 2 << 20,
///     coherent: 4 << 20,
/// };
/// assert_eq!(config.kernel_reads(), Some(&expected));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelReads {
    /// The interface of the host by which readers come.
    pub interface: String,
    /// In the driver, in the network stack, or wherever it can. [`KernelMode::Auto`] is the stack
    /// where the interface is virtual: the other end of a virtual cable takes a frame that a driver
    /// sends it only if it polls, and nobody would be told.
    pub mode: KernelMode,
    /// Bytes of memory for objects, which the kernel takes at once, and which are all that this
    /// node has for objects.
    pub memory: u64,
    /// Bytes of memory for items of bounded memory, which the kernel takes at once. Regions for
    /// which there is no room there are read by packets to the node's agent.
    pub bounded: u64,
    /// Bytes of memory for lines of replicated memory, which the kernel takes at once. Groups for
    /// which there is no room there are read by packets to the node's agent.
    pub replicated: u64,
    /// Bytes of memory for blocks of at most 8 KiB whose entries the switch has, which the kernel
    /// takes at once in a rack with a switch and such blocks. Blocks for which there is no room
    /// there are asked for by packets to the node's agent.
    pub coherent: u64,
}

/// Bytes of memory that a program has: for objects, items, lines and blocks, as far as somebody has
/// said.
pub(crate) type Sizes<T> = (Option<T>, Option<T>, Option<T>, Option<T>);

/// Memory for objects in the kernel unless told otherwise.
const DEFAULT_OBJECTS: u64 = 64 << 20;
/// For items of bounded memory.
const DEFAULT_BOUNDED: u64 = 8 << 20;
/// For lines of replicated memory.
const DEFAULT_REPLICATED: u64 = 8 << 20;
/// For blocks that the switch decides about.
const DEFAULT_COHERENT: u64 = 8 << 20;
/// The most: as many slabs as the program has room to say the size of.
const MOST_OBJECTS: u64 = (SLAB - 4096) / 8 * SLAB;
/// Bytes of an interface's name at most.
const MAX_NAME: usize = 15;

impl KernelReads {
    /// Of `IFACE`, or `IFACE/native` or `IFACE/skb`.
    pub(crate) fn parse(
        text: &str,
        (memory, bounded, replicated, coherent): Sizes<u64>,
    ) -> Result<Self, OpenError> {
        let no = |why: String| OpenError::Config(format!("kernel_reads: {why}"));
        let (interface, mode) = text.split_once('/').unwrap_or((text, "auto"));
        let mode = mode.parse().map_err(no)?;
        let named = |c: char| c.is_ascii_graphic() && c != ':';
        if interface.is_empty() || interface.len() > MAX_NAME || !interface.chars().all(named) {
            return Err(no(format!("`{interface}` is no name of an interface")));
        }
        Ok(KernelReads {
            interface: interface.to_owned(),
            mode,
            memory: memory.unwrap_or(DEFAULT_OBJECTS),
            bounded: bounded.unwrap_or(DEFAULT_BOUNDED),
            replicated: replicated.unwrap_or(DEFAULT_REPLICATED),
            coherent: coherent.unwrap_or(DEFAULT_COHERENT),
        })
    }

    /// Where it stands in a file with the memory that it takes.
    pub(crate) fn read(text: Option<&str>, memory: Sizes<Size>) -> Result<Option<Self>, OpenError> {
        let bytes = |size: Option<Size>| size.map(|size| size.0);
        let sizes = (
            bytes(memory.0),
            bytes(memory.1),
            bytes(memory.2),
            bytes(memory.3),
        );
        let no = |why: &str| Err(OpenError::Config(why.into()));
        match (text, memory) {
            (Some(text), _) => KernelReads::parse(text, sizes).map(Some),
            (None, (Some(_), ..)) => no(
                "object_memory goes with `kernel_reads`: elsewhere objects take memory as they are made",
            ),
            (None, (_, Some(_), ..)) => no(
                "bounded_memory goes with `kernel_reads`: elsewhere items take memory as they are written",
            ),
            (None, (.., Some(_))) => no(
                "coherent_memory goes with `kernel_reads`: elsewhere blocks have the home's memory alone",
            ),
            (None, (.., Some(_), _)) => no(
                "replicated_memory goes with `kernel_reads`: elsewhere lines take memory as they are written",
            ),
            (None, (None, None, None, None)) => Ok(None),
        }
    }

    fn sizes(&self) -> Sizes<u64> {
        let KernelReads {
            memory,
            bounded,
            replicated,
            coherent,
            ..
        } = *self;
        (
            Some(memory),
            Some(bounded),
            Some(replicated),
            Some(coherent),
        )
    }

    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if !(SLAB..=MOST_OBJECTS).contains(&self.memory) {
            return Err(OpenError::Config(format!(
                "object_memory is from {} to {} of memory in the kernel, not {}",
                Size(SLAB),
                Size(MOST_OBJECTS),
                Size(self.memory)
            )));
        }
        for (name, bytes) in [
            ("bounded_memory", self.bounded),
            ("replicated_memory", self.replicated),
            ("coherent_memory", self.coherent),
        ] {
            if bytes > MOST_OBJECTS {
                return Err(OpenError::Config(format!(
                    "{name} is {} of memory in the kernel at most, not {}",
                    Size(MOST_OBJECTS),
                    Size(bytes)
                )));
            }
        }
        Ok(())
    }
}

impl Config {
    /// Whether the kernel of a node's host answers reads of the node's objects, items, copies and
    /// blocks.
    pub fn kernel_reads(&self) -> Option<&KernelReads> {
        self.settings.kernel_reads.as_ref()
    }

    /// Bytes of memory that the kernel of a node's host has for blocks of the node's home: none
    /// where it answers no reads, where no switch asks home for blocks, and where a block is longer
    /// than those that the program has places for.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::Config;
    ///
    /// let text = "nodes = ['10.0.0.1:7401']\nswitch = '10.0.0.9:7400'\nkernel_reads = 'eth0'";
    /// let of_blocks = |block| Config::parse(&format!("{text}\nblock_size = {block}"));
    /// assert_eq!(of_blocks(4096)?.kernel_blocks(), 8 << 20);
    /// assert_eq!(of_blocks(16_384)?.kernel_blocks(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kernel_blocks(&self) -> u64 {
        let fits = Twins::new(self.settings.block_size as u32, 1).has_room();
        let reads = self
            .kernel_reads()
            .filter(|_| fits && self.switch.is_some());
        reads.map_or(0, |reads| reads.coherent)
    }

    /// Bytes of memory that it has for the blocks of the node's cache, of which it gives readers
    /// what they miss: none where it does not invalidate copies, and where a block is longer than
    /// those that it sends.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::Config;
    ///
    /// let text = "nodes = ['10.0.0.1:7401']\ncache = '1M'\nkernel_reads = 'eth0'";
    /// let more = |block| format!("{text}\nkernel_cache = true\nblock_size = {block}");
    /// let of_copies = |block| Config::parse(&more(block));
    /// assert_eq!(of_copies(4096)?.kernel_copies(), 1 << 20);
    /// assert_eq!(of_copies(16_384)?.kernel_copies(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn kernel_copies(&self) -> u64 {
        let (cache, block) = (self.settings.cache, self.settings.block_size);
        let gives = self.kernel_cache() && (64..=TWIN_BLOCK as usize).contains(&block);
        let bytes = (Cache::sets_of(cache, block) * WAYS * block) as u64;
        if gives {
            bytes.next_multiple_of(CACHE_SLAB)
        } else {
            0
        }
    }

    /// Lets it, at this interface, whatever the file says: `IFACE`, or `IFACE/native` or
    /// `IFACE/skb`.
    ///
    /// # Errors
    /// [`OpenError::Config`] where that is none, or the rack's fabric is not UDP.
    pub fn set_kernel_reads(&mut self, interface: &str) -> Result<(), OpenError> {
        let reads = self.kernel_reads();
        let sizes = reads.map_or_else(Sizes::default, KernelReads::sizes);
        self.settings.kernel_reads = Some(KernelReads::parse(interface, sizes)?);
        self.check()
    }

    /// Whether the kernel of a node's host invalidates copies of the node's cache, at the
    /// interface of [`Config::kernel_reads`], and gives readers what the cache has: a node that
    /// others' writes take a copy from, or others read from, is not woken. `docs/xdp.md` tells
    /// which copies.
    pub fn kernel_cache(&self) -> bool {
        self.settings.kernel_cache
    }

    /// Lets it, whatever the file says.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::Config;
    ///
    /// let mut config = Config::parse("nodes = ['10.0.0.1:7401']\nkernel_reads = 'eth0'")?;
    /// config.set_kernel_cache()?;
    /// assert!(config.kernel_cache());
    /// assert!(Config::parse("nodes = ['10.0.0.1:7401']\nkernel_cache = true").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OpenError::Config`] where the kernel answers no reads.
    pub fn set_kernel_cache(&mut self) -> Result<(), OpenError> {
        self.settings.kernel_cache = true;
        self.check()
    }
}
