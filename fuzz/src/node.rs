//! A node's engine under a fuzzer: a site without bytes, and everything that it wants done is
//! written down.

use rackmem_proto::Output;
use rackmem_proto::engine::{self, Entries, Recovery};
use rackmem_proto::flowcc::{HomeConfig, LocalStatus, Members, Migration, ShadowConfig};
use rackmem_proto::gcp::Body;
use rackmem_proto::membership::View;
use rackmem_sim::site::{Bare, Cache, Deed, Load, LockDeed, Product, Site};
use rackmem_wire::{Copyset, Header, Record, Tag};

/// Records of a packet at most.
pub const FIT: usize = 8;
/// Blocks that a cache has room for.
const CACHED: usize = 64;

/// A node.
pub struct FuzzNode(pub Site<()>);

/// What a packet has caused.
#[derive(Default)]
pub struct Caused {
    /// Packets to send, and the records behind them.
    pub sent: Vec<(Output, Vec<Record>)>,
    /// The packet is for a requester of the node.
    pub passed: bool,
}

impl FuzzNode {
    /// A node that has handed out its first chunk; with `shadow`, beside a switch of so many ways
    /// and sets.
    pub fn new(config: HomeConfig, shadow: Option<(u8, usize)>) -> Self {
        let mut view = View::first(Copyset(u32::MAX), shadow.is_some());
        (view.epoch, view.shadow) = (config.epoch, Some(0));
        let mut site = Site::new(config, (1, 1, FIT), view, Cache::new(CACHED), Product);
        if let Some((ways, sets)) = shadow {
            let shadow = ShadowConfig::new(config.node, config.epoch, ways, sets);
            site.migrate(shadow, 16, FIT);
        }
        site.policy = shadow.map(|_| Migration::default());
        FuzzNode(site)
    }

    /// A thread gets a block, or loses it.
    pub fn have(&mut self, tag: Tag, status: LocalStatus) {
        let cache = &mut self.0.cache;
        let room = || cache.room(tag).map(|(at, _)| at);
        if let Some(at) = cache.find(tag).or_else(room) {
            cache.install(at, tag, status);
        }
    }

    /// Takes a packet with so many bytes, or with records, behind its header.
    pub fn packet(&mut self, header: &Header, bytes: u32, records: &[Record]) -> Caused {
        let records = records.to_vec();
        self.with(|site| site.take(header, Bare { bytes, records }))
    }

    /// A period of ownership migration ends, or only a tick.
    pub fn tick(&mut self, period_ended: bool) -> Caused {
        self.with(|site| engine::tick(site, period_ended))
    }

    /// Stops for a new epoch.
    pub fn stop(&mut self, members: Members) {
        self.0.view.epoch = members.epoch;
        engine::stop(&mut self.0, members);
    }

    /// Does something to its part in a rebuild.
    pub fn recover(&mut self, f: impl FnOnce(&mut Recovery<()>, &mut Site<()>)) -> Caused {
        self.with(|site| site.recover(f))
    }

    /// Does something with its site.
    pub fn with(&mut self, f: impl FnOnce(&mut Site<()>)) -> Caused {
        self.0.passed = false;
        f(&mut self.0);
        let mut caused = Caused {
            sent: Vec::new(),
            passed: self.0.passed,
        };
        for deed in std::mem::take(&mut self.0.deeds) {
            let (output, records) = match deed {
                Deed::Sent(output, Load::Records(records)) => (output, records),
                Deed::Sent(output, _) => (output, Vec::new()),
                Deed::Lock(_, LockDeed::Sent(to, header, body, _)) => match body {
                    Body::Queue(queue) => (Output::new(to, header), queue.records().collect()),
                    _ => (Output::new(to, header), Vec::new()),
                },
                _ => continue,
            };
            caused.sent.push((output, records));
        }
        caused
    }
}
