//! The program that reads objects, items of bounded memory and lines of replicated memory, and the
//! one behind it that gives blocks.

use super::KernelPlace;
use super::plane::{interface_mode, v4};
use super::reads::{
    KernelBlockCounts, KernelItemCounts, KernelLineCounts, KernelReadCounts, ReadProgram,
    ReadsInKernel,
};
use crate::bytes::cache::{Cache, Control, WAYS};
use crate::bytes::desk::{Desk, SharedCache, as_it_comes};
use crate::bytes::pages::Pages;
use crate::bytes::table::Table;
use crate::bytes::twins::LentTwins;
use crate::config::{Config, KernelMode, KernelReads};
use crate::error::OpenError;
use rackmem_fabric::shm::Lent;
use rackmem_fabric::udp;
use rackmem_proto::abd::mirror::{MIRROR_SLAB, Mirror};
use rackmem_proto::bi::cached::shelf::{SHELF_SLAB, Shelf};
use rackmem_proto::flowcc::desk;
use rackmem_proto::flowcc::twin::{TWIN_SLAB, Twins};
use rackmem_proto::sabre::SLAB;
use rackmem_proto::wire::{NodeId, segment_len};
use rackmem_xdp::{BlockReads, ObjectReads, Served, Sizes};
use std::net::SocketAddrV4;
use std::path::Path;

/// Words of what an entry of the cache has.
const CONTROL_WORDS: usize = size_of::<Control>() / 8;

struct Program {
    reads: ObjectReads,
    blocks: Option<BlockReads>,
    served: Served,
}

/// Loads and attaches it.
pub(super) fn attach(
    reads: &KernelReads,
    config: &Config,
    node: NodeId,
) -> Result<(ReadsInKernel, Option<SharedCache>), OpenError> {
    let agent = config.nodes.get(usize::from(node));
    let agent = agent.ok_or_else(|| OpenError::Config(format!("there is no node {node}")))?;
    let served = Served {
        agent: v4(agent)?,
        node,
        epoch: 0,
        base: 0,
    };
    let slabs = (reads.memory / SLAB) as u32;
    let settings = &config.settings;
    let sets = match config.kernel_cache() {
        true => Cache::sets_of(settings.cache, settings.block_size),
        false => 0,
    };
    let items = (reads.bounded / SHELF_SLAB) as u32;
    let lines = (reads.replicated / MIRROR_SLAB) as u32;
    let sizes = Sizes {
        slabs,
        sets: sets as u32,
        cached: (config.kernel_copies() / desk::CACHE_SLAB) as u32,
        items,
        lines,
    };
    let (mut program, mut no_copies) = loaded(sizes)?;
    let cache = match sets {
        0 => None,
        sets => Some(cache(&program, config, (node, sets))?),
    };
    // A slab in front says what the others have.
    let words = (slabs as usize + 1) * (SLAB as usize / 8);
    let memory = Lent::map(program.memory()?, words)?;
    let items = items as usize;
    let shelf = Lent::map(program.items()?, Shelf::words(items))?;
    let lines = lines as usize;
    let mirror = Lent::map(program.lines()?, Mirror::words(lines))?;
    let mode = program.attach(&reads.interface, interface_mode(preferred(reads)))?;
    if let Some(cache) = cache.as_ref().filter(|cache| cache.blocks.is_some()) {
        match program.attach_gives(&reads.interface) {
            Ok(()) => cache.desk.give(settings.block_size, segment(config, node)?),
            Err(error) => no_copies = Some(error.to_string()),
        }
    }
    let (given, no_blocks) = match given(reads, config, node) {
        Ok(given) => (given, None),
        Err(OpenError::Kernel { why, .. }) => (None, Some(why)),
        Err(error) => return Err(error),
    };
    let (blocks, twins) = given.unzip();
    let place = KernelPlace {
        mode: mode.to_string(),
        fell_back: None,
        interfaces: vec![reads.interface.clone()],
        no_blocks,
        no_copies,
    };
    let program = Box::new(Program {
        reads: program,
        blocks,
        served,
    });
    let (items, lines) = ((shelf, items), (mirror, lines));
    let reads = ReadsInKernel::new(program, (memory, slabs), items, lines, twins, place);
    Ok((reads, cache))
}

/// The program, without memory for the cache's blocks where the kernel has none: then why.
fn loaded(sizes: Sizes) -> Result<(ObjectReads, Option<String>), OpenError> {
    match ObjectReads::load_sized(sizes) {
        Ok(program) => Ok((program, None)),
        Err(why) if sizes.cached > 0 => {
            let less = Sizes { cached: 0, ..sizes };
            Ok((ObjectReads::load_sized(less)?, Some(why.to_string())))
        }
        Err(error) => Err(error.into()),
    }
}

/// Bytes of a block that a packet carries.
fn segment(config: &Config, node: NodeId) -> Result<u32, OpenError> {
    let at = v4(&config.nodes[usize::from(node)])?;
    let mtu = config.settings.mtu;
    let mtu = mtu.unwrap_or_else(|| udp::path_mtu((*at.ip()).into()));
    let block = config.settings.block_size as u32;
    Ok(segment_len(block, udp::body_room(mtu) as u32))
}

/// The program that gives blocks, attached, and the memory that it reads them in; none where the
/// rack has no use for it.
fn given(
    reads: &KernelReads,
    config: &Config,
    node: NodeId,
) -> Result<Option<(BlockReads, LentTwins)>, OpenError> {
    let slabs = (config.kernel_blocks() / TWIN_SLAB) as usize;
    if slabs == 0 {
        return Ok(None);
    }
    let nodes: Vec<SocketAddrV4> = config.nodes.iter().map(v4).collect::<Result<_, _>>()?;
    let (block, segment) = (config.settings.block_size, segment(config, node)?);
    let mut program = BlockReads::load(slabs as u32)?;
    let words = Lent::map(program.memory()?, Twins::words(slabs))?;
    let addresses = nodes.iter().map(|addr| as_it_comes(*addr.ip()));
    let twins = LentTwins::new((block, slabs), words, (node, segment), addresses);
    program.attach(&reads.interface)?;
    Ok(Some((program, twins)))
}

/// The tables of a node's cache, as the program has them.
fn cache(
    program: &ObjectReads,
    config: &Config,
    (node, sets): (NodeId, usize),
) -> Result<SharedCache, OpenError> {
    let addresses: Vec<SocketAddrV4> = config.nodes.iter().map(v4).collect::<Result<_, _>>()?;
    let agent = addresses[usize::from(node)];
    let [desk, tags, controls] = program.cache()?;
    let nodes = addresses.iter().copied();
    let words = Lent::map(desk, desk::WORDS)?;
    let blocks = match program.gives() {
        0 => None,
        slabs => {
            let words = slabs as usize * desk::CACHE_SLAB as usize / 8;
            Some(Pages::lent(Lent::map(program.cached()?, words)?))
        }
    };
    Ok(SharedCache {
        desk: Desk::new(words, (node, agent), nodes, sets),
        tags: Table::lent(Lent::map(tags, sets * WAYS)?),
        controls: Table::lent(Lent::map(controls, sets * WAYS * CONTROL_WORDS)?),
        blocks,
    })
}

/// The mode to begin with: see [`KernelReads::mode`].
fn preferred(reads: &KernelReads) -> KernelMode {
    let device = Path::new("/sys/class/net")
        .join(&reads.interface)
        .join("device");
    match reads.mode {
        KernelMode::Auto if !device.exists() => KernelMode::Skb,
        mode => mode,
    }
}

impl ReadProgram for Program {
    fn serve(&mut self, base: u64, epoch: u32) -> bool {
        let served = Served {
            base,
            epoch,
            ..self.served
        };
        let gives = (self.blocks.as_mut()).is_none_or(|blocks| blocks.serve(&served).is_ok());
        self.reads.serve(&served).is_ok() && gives
    }

    fn stop(&mut self) -> bool {
        let gives_none = (self.blocks.as_mut()).is_none_or(|blocks| blocks.stop().is_ok());
        self.reads.stop().is_ok() && gives_none
    }

    fn counts(&self) -> KernelReadCounts {
        let counts = self.reads.counts().unwrap_or_default();
        KernelReadCounts {
            serves: false,
            answered: counts.answered,
            not_modified: counts.known,
            locked: counts.locked,
            torn: counts.torn,
            gone: counts.gone,
            long: counts.long,
            elsewhere: counts.elsewhere,
            no_room: counts.no_room,
        }
    }

    fn item_counts(&self) -> KernelItemCounts {
        let counts = self.reads.item_counts().unwrap_or_default();
        KernelItemCounts {
            regions: 0,
            answered: counts.answered,
            unchanged: counts.unchanged,
            locked: counts.locked,
            torn: counts.torn,
            news: counts.news,
            elsewhere: counts.elsewhere,
            no_room: counts.no_room,
        }
    }

    fn block_counts(&self) -> KernelBlockCounts {
        let counts = (self.blocks.as_ref()).map(|blocks| blocks.counts().unwrap_or_default());
        let counts = counts.unwrap_or_default();
        KernelBlockCounts {
            blocks: 0,
            answered: counts.answered,
            elsewhere: counts.elsewhere,
            locked: counts.locked,
            not_of_now: counts.not_of_now,
            no_way: counts.no_way,
            torn: counts.torn,
            no_room: counts.no_room,
        }
    }

    fn line_counts(&self) -> KernelLineCounts {
        let counts = self.reads.line_counts().unwrap_or_default();
        KernelLineCounts {
            groups: 0,
            answered: counts.answered,
            stamps: counts.stamps,
            locked: counts.locked,
            torn: counts.torn,
            elsewhere: counts.elsewhere,
            no_room: counts.no_room,
        }
    }
}
