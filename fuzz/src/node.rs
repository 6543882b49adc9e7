//! A node's engine under a fuzzer: a site without bytes, of which everything is kept that it wants
//! to send.

use rackmem_proto::Output;
use rackmem_proto::engine::Entries;
use rackmem_proto::flowcc::{HomeConfig, LocalStatus, Migration, ShadowConfig};
use rackmem_proto::membership::View;
use rackmem_sim::site::{Bare, Cache, Product, Site};
use rackmem_wire::{Copyset, Header, Record, Tag};

/// Records of a packet at most.
pub const FIT: usize = 8;
/// Blocks that a cache has room for.
const CACHED: usize = 64;

/// A node.
pub type FuzzNode = Site<()>;

/// Packets to send, and the records behind them.
pub type Caused = Vec<(Output, Vec<Record>)>;

/// A node that has handed out its first chunk; with `shadow`, beside a switch of so many ways and
/// sets.
pub fn node(config: HomeConfig, shadow: Option<(u8, usize)>) -> FuzzNode {
    let mut view = View::first(Copyset(u32::MAX), shadow.is_some());
    (view.epoch, view.shadow) = (config.epoch, Some(0));
    let mut site = Site::new(config, (1, 1, FIT), view, Cache::new(CACHED), Product);
    if let Some((ways, sets)) = shadow {
        let shadow = ShadowConfig::new(config.node, config.epoch, ways, sets);
        site.migrate(shadow, 16, FIT);
    }
    site.policy = shadow.map(|_| Migration::default());
    site
}

/// A thread gets a block, or loses it.
pub fn have(node: &mut FuzzNode, tag: Tag, status: LocalStatus) {
    let cache = &mut node.cache;
    let room = || cache.room(tag).map(|(at, _)| at);
    if let Some(at) = cache.find(tag).or_else(room) {
        cache.install(at, tag, status);
    }
}

/// Takes a packet with so many bytes, or with records, behind its header.
pub fn take(node: &mut FuzzNode, header: &Header, bytes: u32, records: &[Record]) -> Caused {
    let records = records.to_vec();
    node.passed = false;
    with(node, |site| site.take(header, Bare { bytes, records }))
}

/// Does something with it.
pub fn with(node: &mut FuzzNode, f: impl FnOnce(&mut FuzzNode)) -> Caused {
    f(node);
    node.sent().collect()
}
