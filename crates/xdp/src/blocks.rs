//! Blocks of a home that the switch has granted, given in the kernel of the home's host
//! (`switch/xdp/blocks.bpf.c`).
//!
//! It is a program of its own, in the network stack behind the driver and behind whatever XDP
//! program the interface has: there one packet can become several. It is attached by a link, which
//! ends with the process.

use crate::behind;
use crate::error::{Error, Result};
use crate::load::take;
use crate::objects::{Home, Served, file, keeps_loads_in_order};
use crate::run::{Ran, run_behind_driver};
use aya::maps::{Map, MapData, PerCpuArray};
use aya::programs::tc::{SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader};
use std::fs::File;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/blocks.bpf.o"));

const PROGRAM: &str = "blocks";

/// What became of requests for blocks that came to the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockReadCounts {
    /// Blocks that were sent.
    pub answered: u64,
    /// Passed to the agent: the block is not here.
    pub elsewhere: u64,
    /// It was being written.
    pub locked: u64,
    /// Of another epoch or life of a node.
    pub not_of_now: u64,
    /// Where its requester is reached is not known.
    pub no_way: u64,
    /// It was written, or came home, while it was copied.
    pub torn: u64,
    /// There was no memory to put the answer together in.
    pub no_room: u64,
}

/// The program, loaded, and the memory that it reads. Dropping it detaches it.
pub struct BlockReads {
    ebpf: Ebpf,
    blocks: MapData,
    home: Home,
    counters: PerCpuArray<MapData, [u64; 7]>,
}

impl BlockReads {
    /// Loads it with zeroed memory of so many slabs, which the kernel takes at once.
    ///
    /// # Errors
    /// Whatever makes the kernel refuse it; [`Error::Rack`] on processors that swap loads.
    pub fn load(slabs: u32) -> Result<Self> {
        BlockReads::load_object(OBJECT, slabs)
    }

    /// The same of another object: tests load programs with planted differences.
    ///
    /// # Errors
    /// See [`BlockReads::load`].
    pub fn load_object(object: &[u8], slabs: u32) -> Result<Self> {
        keeps_loads_in_order()?;
        let mut ebpf = EbpfLoader::new()
            .map_max_entries("BLOCKS", slabs.saturating_add(1))
            .load(object)?;
        let program = behind::program(&mut ebpf, PROGRAM)?;
        program.load().map_err(Error::of_load)?;
        let Map::Array(blocks) = take(&mut ebpf, "BLOCKS")? else {
            return Err(Error::Map("BLOCKS is no array".into()));
        };
        Ok(BlockReads {
            blocks,
            home: Home::of(&mut ebpf)?,
            counters: PerCpuArray::try_from(take(&mut ebpf, "BLOCK_COUNTERS")?)?,
            ebpf,
        })
    }

    /// What is to be mapped: what all blocks have in common, as long as a slab, and slabs.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn memory(&self) -> Result<File> {
        file(&self.blocks)
    }

    /// Answers for this home from now on.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn serve(&mut self, served: &Served) -> Result<()> {
        self.home.serve(served, 0)
    }

    /// Answers nothing any more.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn stop(&mut self) -> Result<()> {
        self.home.stop()
    }

    /// Attaches it to the interface that requests come by.
    ///
    /// # Errors
    /// Whatever the kernel says about it: one older than 6.6 has no such links.
    pub fn attach(&mut self, interface: &str) -> Result<()> {
        behind::attach(&mut self.ebpf, PROGRAM, interface)
    }

    /// How many programs of whoever are attached behind the driver of an interface.
    ///
    /// # Errors
    /// Whatever the kernel says about the interface.
    pub fn at(interface: &str) -> Result<usize> {
        let found = SchedClassifier::query_tcx(interface, TcAttachType::Ingress);
        found
            .map(|(_, programs)| programs.len())
            .map_err(|error| Error::of_link(error, interface))
    }

    /// What it has counted.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn counts(&self) -> Result<BlockReadCounts> {
        let processors = self.counters.get(&0, 0)?;
        let sum = |at: usize| processors.iter().map(|one| one[at]).sum();
        let [
            answered,
            elsewhere,
            locked,
            not_of_now,
            no_way,
            torn,
            no_room,
        ] = std::array::from_fn(sum);
        Ok(BlockReadCounts {
            answered,
            elsewhere,
            locked,
            not_of_now,
            no_way,
            torn,
            no_room,
        })
    }

    /// Runs it on a frame as if it came by the interface of this number, by which all packets of an
    /// answer leave but the last one: that one is what the frame has become.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn run(&self, frame: &[u8], ifindex: u32) -> Result<Ran> {
        run_behind_driver(behind::loaded(&self.ebpf, PROGRAM)?, frame, ifindex)
    }
}
