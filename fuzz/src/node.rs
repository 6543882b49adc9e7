//! A node's engine under a fuzzer: a site without bytes, of which everything is kept that it wants
//! to send.

use rackmem_proto::flowcc::{HomeConfig, Migration, ShadowConfig};
use rackmem_proto::membership::View;
use rackmem_sim::site::{Cache, Product, Site};
use rackmem_wire::Copyset;

/// Records of a packet at most.
pub const FIT: usize = 8;

/// A node.
pub type FuzzNode = Site<()>;

/// A node that has handed out its first chunk; with `shadow`, beside a switch of so many ways and
/// sets.
pub fn node(config: HomeConfig, shadow: Option<(u8, usize)>) -> FuzzNode {
    let mut view = View::first(Copyset(u32::MAX), shadow.is_some());
    (view.epoch, view.shadow) = (config.epoch, Some(0));
    let mut site = Site::new(config, (1, 1, FIT), view, Cache::new(0), Product);
    if let Some((ways, sets)) = shadow {
        let shadow = ShadowConfig::new(config.node, config.epoch, ways, sets);
        site.migrate(shadow, 16, FIT);
    }
    site.policy = shadow.map(|_| Migration::default());
    site
}
