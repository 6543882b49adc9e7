//! Reads of a home's objects, of its items of bounded memory, and of a member's lines of replicated
//! memory, answered in the kernel of its host (`switch/xdp/objects.bpf.c`, `items.h`, `lines.h`).
//!
//! The home's memory for objects is a map of the program, which the home's process maps
//! ([`ObjectReads::memory`]) and writes as it writes any memory. What the program does not answer
//! passes to the home's agent. The same program answers orders to invalidate copies of the cache,
//! whose control words it shares (`switch/xdp/cache.h`), since an interface has one program. Behind
//! the driver another one of the same memory gives the cache's blocks to readers
//! (`switch/xdp/given.h`).

use crate::attach::Mode;
use crate::behind;
use crate::error::{Error, Result};
use crate::load::{program, take};
use crate::run::{Ran, run, run_behind_driver};
use aya::maps::{Array, Map, MapData, PerCpuArray};
use aya::programs::xdp::XdpMode;
use aya::programs::{SchedClassifier, Xdp};
use aya::{Ebpf, EbpfLoader};
use rackmem_proto::sabre::SLAB;
use rackmem_wire::NodeId;
use std::fs::File;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/objects.bpf.o"));

const PROGRAM: &str = "objects";
const GIVES: &str = "given";

/// Slabs that a program has at most: as many as one slab has room to say the class of, in front
/// of them.
pub const MOST_SLABS: u32 = (SLAB as u32 - 4096) / 8;

/// What became of reads of items, and of questions for news, that came to the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ItemReadCounts {
    /// Items that were sent.
    pub answered: u64,
    /// Who asked for news was told that there are none.
    pub unchanged: u64,
    /// Passed to the agent: the item was being written.
    pub locked: u64,
    /// It was written, or its region removed, while it was copied.
    pub torn: u64,
    /// There were news.
    pub news: u64,
    /// No region that is here, or no item of it.
    pub elsewhere: u64,
    /// The frame could not be made longer.
    pub no_room: u64,
}

/// What became of questions for lines of replicated memory, and for their stamps, that came to the
/// program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LineReadCounts {
    /// Lines that were sent.
    pub answered: u64,
    /// Stamps that were told without a line.
    pub stamps: u64,
    /// Passed to the agent: the line was being written.
    pub locked: u64,
    /// It was written, or its group's config changed, while it was copied.
    pub torn: u64,
    /// No group that is here in the question's config, or no line of it.
    pub elsewhere: u64,
    /// The frame could not be made longer.
    pub no_room: u64,
}

/// How much memory a program has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Slabs of objects.
    pub slabs: u32,
    /// Sets of a cache, whose control words it shares ([`ObjectReads::cache`]).
    pub sets: u32,
    /// Slabs of a cache's blocks ([`ObjectReads::cached`]). Without any it gives none.
    pub cached: u32,
    /// Slabs of items of bounded memory.
    pub items: u32,
    /// Slabs of lines of replicated memory.
    pub lines: u32,
}

/// Whose objects they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Where the home's agent listens.
    pub agent: SocketAddrV4,
    /// The home.
    pub node: NodeId,
    /// The epoch that it serves.
    pub epoch: u32,
    /// The offset at which its addresses begin.
    pub base: u64,
}

/// What became of reads that came to the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadCounts {
    /// Answered here.
    pub answered: u64,
    /// Passed to the agent: a writer was in.
    pub locked: u64,
    /// The object moved while it was copied.
    pub torn: u64,
    /// It is another one, or none.
    pub gone: u64,
    /// The reader has its version.
    pub known: u64,
    /// Longer than a granule.
    pub long: u64,
    /// No object's address.
    pub elsewhere: u64,
    /// The frame could not be made longer.
    pub no_room: u64,
}

/// The program, loaded, and the memory that it reads. Dropping it detaches it.
pub struct ObjectReads {
    ebpf: Ebpf,
    objects: MapData,
    items: MapData,
    lines: MapData,
    cache: [MapData; 3],
    cached: (MapData, u32),
    home: Home,
    counters: PerCpuArray<MapData, [u64; 8]>,
    item_counters: PerCpuArray<MapData, [u64; 7]>,
    line_counters: PerCpuArray<MapData, [u64; 6]>,
    slabs: u32,
}

/// Who is served (`struct home` in `switch/xdp/serve.h`).
pub(crate) struct Home(Array<MapData, [u8; 24]>);

impl Home {
    pub(crate) fn of(ebpf: &mut Ebpf) -> Result<Self> {
        Ok(Home(Array::try_from(take(ebpf, "HOME")?)?))
    }

    pub(crate) fn serve(&mut self, served: &Served, slabs: u32) -> Result<()> {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&served.agent.ip().octets());
        bytes[4..6].copy_from_slice(&served.agent.port().to_be_bytes());
        bytes[6..8].copy_from_slice(&served.node.to_ne_bytes());
        bytes[8..12].copy_from_slice(&served.epoch.to_ne_bytes());
        bytes[12..16].copy_from_slice(&slabs.to_ne_bytes());
        bytes[16..].copy_from_slice(&served.base.to_ne_bytes());
        Ok(self.0.set(0, bytes, 0)?)
    }

    pub(crate) fn stop(&mut self) -> Result<()> {
        Ok(self.0.set(0, [0; 24], 0)?)
    }
}

/// The programs have no barriers between their loads.
pub(crate) fn keeps_loads_in_order() -> Result<()> {
    if cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    let why = "reads in the kernel need a processor that keeps loads in order (x86-64)";
    Err(Error::Rack(why.into()))
}

pub(crate) fn file(map: &MapData) -> Result<File> {
    let fd = map.fd().as_fd().try_clone_to_owned();
    fd.map(File::from)
        .map_err(|error| Error::Map(error.to_string()))
}

impl ObjectReads {
    /// Loads it with zeroed memory of so many slabs, which the kernel takes at once.
    ///
    /// # Errors
    /// Whatever makes the kernel refuse it; [`Error::Rack`] beyond [`MOST_SLABS`], and on
    /// processors that swap loads.
    pub fn load(slabs: u32) -> Result<Self> {
        ObjectReads::load_sized(Sizes {
            slabs,
            sets: 1,
            cached: 0,
            items: 0,
            lines: 0,
        })
    }

    /// The same with memory for all that the program answers.
    ///
    /// # Errors
    /// See [`ObjectReads::load`].
    pub fn load_sized(sizes: Sizes) -> Result<Self> {
        ObjectReads::load_object(OBJECT, sizes)
    }

    /// The same of another object: tests load programs with planted differences.
    ///
    /// # Errors
    /// See [`ObjectReads::load`].
    pub fn load_object(object: &[u8], sizes: Sizes) -> Result<Self> {
        let Sizes {
            slabs,
            sets,
            cached,
            items,
            lines,
        } = sizes;
        keeps_loads_in_order()?;
        if !(1..=MOST_SLABS).contains(&slabs) {
            let why = format!("it reads 1 to {MOST_SLABS} slabs of 64 KiB, not {slabs}");
            return Err(Error::Rack(why));
        }
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("OBJECTS", slabs + 1)
            .map_max_entries("ITEMS", items.saturating_add(1))
            .map_max_entries("LINES", lines.saturating_add(1))
            .map_max_entries("TAGS", sets.max(1))
            .map_max_entries("CONTROLS", sets.max(1))
            .map_max_entries("CACHED", cached.max(1))
            .load(object)?;
        program(&mut ebpf, PROGRAM)?
            .load()
            .map_err(Error::of_load)?;
        if cached > 0 {
            let gives: &mut SchedClassifier = behind::program(&mut ebpf, GIVES)?;
            gives.load().map_err(Error::of_load)?;
        }
        let mut array = |name: &str| match take(&mut ebpf, name)? {
            Map::Array(data) => Ok(data),
            _ => Err(Error::Map(format!("{name} is no array"))),
        };
        let objects = array("OBJECTS")?;
        let items = array("ITEMS")?;
        let lines = array("LINES")?;
        let cache = [array("DESK")?, array("TAGS")?, array("CONTROLS")?];
        let cached = (array("CACHED")?, cached);
        Ok(ObjectReads {
            objects,
            items,
            lines,
            cache,
            cached,
            home: Home::of(&mut ebpf)?,
            counters: PerCpuArray::try_from(take(&mut ebpf, "COUNTERS")?)?,
            item_counters: PerCpuArray::try_from(take(&mut ebpf, "ITEM_COUNTERS")?)?,
            line_counters: PerCpuArray::try_from(take(&mut ebpf, "LINE_COUNTERS")?)?,
            ebpf,
            slabs,
        })
    }

    /// Its slabs.
    pub fn slabs(&self) -> u32 {
        self.slabs
    }

    /// What is to be mapped: a slab in front with the classes of the others, and the others.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn memory(&self) -> Result<File> {
        file(&self.objects)
    }

    /// The same of items of bounded memory: rows of regions, as long as a slab, and slabs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn items(&self) -> Result<File> {
        file(&self.items)
    }

    /// The same of lines of replicated memory: rows of groups, as long as a slab, and slabs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn lines(&self) -> Result<File> {
        file(&self.lines)
    }

    /// What is to be mapped of a cache: its desk (`rackmem_proto::flowcc::desk`), tags and control
    /// words, by sets.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn cache(&self) -> Result<[File; 3]> {
        let [desk, tags, controls] = &self.cache;
        Ok([file(desk)?, file(tags)?, file(controls)?])
    }

    /// The same of the cache's blocks: whole slabs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn cached(&self) -> Result<File> {
        file(&self.cached.0)
    }

    /// Slabs of the cache's blocks.
    pub fn gives(&self) -> u32 {
        self.cached.1
    }

    /// Gives blocks of the cache behind the driver of an interface.
    ///
    /// # Errors
    /// Whatever the kernel says about it: one older than 6.6 has no such links.
    pub fn attach_gives(&mut self, interface: &str) -> Result<()> {
        behind::attach(&mut self.ebpf, GIVES, interface)
    }

    /// Runs what gives blocks, as [`crate::BlockReads::run`] does.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn run_gives(&self, frame: &[u8], ifindex: u32) -> Result<Ran> {
        run_behind_driver(behind::loaded(&self.ebpf, GIVES)?, frame, ifindex)
    }

    /// Answers for this home from now on.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn serve(&mut self, served: &Served) -> Result<()> {
        self.home.serve(served, self.slabs)
    }

    /// Answers nothing any more.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn stop(&mut self) -> Result<()> {
        self.home.stop()
    }

    /// Attaches it to the interface that requests come by, and says in which mode.
    ///
    /// # Errors
    /// Whatever the kernel says about it.
    pub fn attach(&mut self, interface: &str, mode: Mode) -> Result<Mode> {
        let program = program(&mut self.ebpf, PROGRAM)?;
        let modes: &[(Mode, XdpMode)] = match mode {
            Mode::Native => &[(Mode::Native, XdpMode::Driver)],
            Mode::Skb => &[(Mode::Skb, XdpMode::Skb)],
            Mode::Auto => &[(Mode::Native, XdpMode::Driver), (Mode::Skb, XdpMode::Skb)],
        };
        let mut refused = Error::NoInterface(interface.to_owned());
        for &(mode, xdp) in modes {
            match program.attach(interface, xdp) {
                Ok(_) => return Ok(mode),
                Err(error) => refused = Error::of_attach(error, interface, mode),
            }
            if !matches!(refused, Error::Driver { .. }) {
                break;
            }
        }
        Err(refused)
    }

    /// What it has counted.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn counts(&self) -> Result<ReadCounts> {
        let processors = self.counters.get(&0, 0)?;
        let sum = |at: usize| processors.iter().map(|one| one[at]).sum();
        let [
            answered,
            locked,
            torn,
            gone,
            known,
            long,
            elsewhere,
            no_room,
        ] = std::array::from_fn(sum);
        Ok(ReadCounts {
            answered,
            locked,
            torn,
            gone,
            known,
            long,
            elsewhere,
            no_room,
        })
    }

    /// What it has counted of items.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn item_counts(&self) -> Result<ItemReadCounts> {
        let processors = self.item_counters.get(&0, 0)?;
        let sum = |at: usize| processors.iter().map(|one| one[at]).sum();
        let [answered, unchanged, locked, torn, news, elsewhere, no_room] =
            std::array::from_fn(sum);
        Ok(ItemReadCounts {
            answered,
            unchanged,
            locked,
            torn,
            news,
            elsewhere,
            no_room,
        })
    }

    /// What it has counted of lines.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn line_counts(&self) -> Result<LineReadCounts> {
        let processors = self.line_counters.get(&0, 0)?;
        let sum = |at: usize| processors.iter().map(|one| one[at]).sum();
        let [answered, stamps, locked, torn, elsewhere, no_room] = std::array::from_fn(sum);
        Ok(LineReadCounts {
            answered,
            stamps,
            locked,
            torn,
            elsewhere,
            no_room,
        })
    }

    /// Runs it on a frame, so often, without sending anything.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn run(&self, frame: &[u8], times: u32) -> Result<Ran> {
        let program = self.ebpf.program(PROGRAM);
        let program = program.ok_or_else(|| Error::Kernel(format!("no `{PROGRAM}`")))?;
        let program: &Xdp = program.try_into().map_err(Error::of_load)?;
        run(program, frame, times)
    }
}
