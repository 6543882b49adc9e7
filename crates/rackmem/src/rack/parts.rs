//! The parts that a process puts a rack together from.

use crate::bytes::cache::Cache;
use crate::bytes::desk::{Desk, SharedCache};
use crate::bytes::node_cache::NodeCache;
use crate::config::migration::Geometry;
use crate::config::{Config, Settings};
use crate::data_plane::kernel::{self, KernelSwitch};
use crate::error::OpenError;
use crate::host::agents::Agents;
use crate::host::bounded::BoundedItems;
use crate::host::locks::Locks;
use crate::host::names::Names;
use crate::host::objects::{Objects, Reachable};
use crate::host::rebuilding::Rebuilding;
use crate::host::replicated::{Replicas, Stores};
use crate::membership::View;
use crate::membership::current_view::CurrentView;
use crate::rack::switch::SoftSwitch;
use crate::region;
use rackmem_proto::CHUNK;
use rackmem_proto::engine::Migrating;
use rackmem_proto::flowcc::{HomeConfig, ShadowConfig, Shards};
use rackmem_proto::switch::{SwitchConfig, SwitchProgram};
use rackmem_proto::wire::{HomeId, NodeId, Tag, records_that_fit};
use std::num::NonZero;
use std::sync::Arc;

pub(crate) fn chunks(settings: &Settings) -> u32 {
    (settings.memory / CHUNK) as u32
}

pub(crate) fn soft_switch(settings: &Settings, body: usize, view: &View) -> SoftSwitch {
    let Geometry { ways, sets } = settings.geometry();
    let config = SwitchConfig {
        epoch: view.epoch,
        ways,
        sets,
        shadow: view.shadow,
        ..SwitchConfig::default()
    };
    SoftSwitch::over(Box::new(SwitchProgram::new(config)), body, None)
}

/// The program in the kernel, which serves nobody before it begins to live by a view.
pub(crate) fn switch_in_kernel(
    kernel: &KernelSwitch,
    config: &Config,
    body: usize,
) -> Result<SoftSwitch, OpenError> {
    let Geometry { ways, sets } = config.settings.geometry();
    let empty = SwitchConfig {
        epoch: 0,
        ways,
        sets,
        ..SwitchConfig::default()
    };
    let (plane, place) = kernel::attach(kernel, config, empty)?;
    Ok(SoftSwitch::over(plane, body, Some(place)))
}

fn migrating(node: NodeId, settings: &Settings, view: &View, fit: usize) -> Migrating {
    let (Geometry { ways, sets }, epoch) = (settings.geometry(), view.epoch);
    let config = ShadowConfig {
        patience: settings.migration.patience,
        leave: settings.migration.leave,
        ..ShadowConfig::new(node, epoch, ways, sets)
    };
    let mut migrating = Migrating::new(config, settings.migration.tracked, fit);
    migrating.set_shadow(view.shadow, epoch);
    migrating
}

/// A node's durable copies have a folder of their own: nodes of one host may share the file that
/// describes their rack.
fn stores(node: NodeId, settings: &Settings) -> Stores {
    let folder = settings.store.as_ref();
    let folder = folder.map(|folder| folder.join(format!("node-{node}")));
    Stores::new(folder, settings.disks.clone())
}

/// A node's cache, and what the kernel shares of it.
fn cache(settings: &Settings, shared: Option<SharedCache>) -> (NodeCache, Option<Desk>) {
    let size = (settings.cache, settings.block_size);
    match shared {
        None => (NodeCache::new(size.0, size.1), None),
        Some(SharedCache {
            desk,
            tags,
            controls,
            blocks,
        }) => {
            let sets = Cache::shared(size, (tags, controls), blocks);
            (NodeCache::over(sets), Some(desk))
        }
    }
}

pub(crate) fn agents(
    (node, nodes): (NodeId, usize),
    settings: &Settings,
    lossy: bool,
    (body, reachable, shared): (usize, &Reachable, Option<SharedCache>),
    view: &View,
) -> Agents {
    let config = HomeConfig {
        node,
        epoch: view.epoch,
        block: settings.block_size as u32,
        chunks: chunks(settings),
        incarnation: view.incarnations[usize::from(node)],
        migration: view
            .switch
            .filter(|_| settings.mode.has_switch())
            .map(|_| settings.migration.policy()),
        answering: settings.answering,
        seed: 0,
    };
    let fit = records_that_fit(body);
    let migrating = settings
        .mode
        .has_switch()
        .then(|| migrating(node, settings, view, fit));
    let rebuilding = Rebuilding::new(config.block, fit, *view);
    let standing = Arc::new(CurrentView::new(nodes, view));
    let locks = Locks::new(
        node,
        body,
        u64::from(chunks(settings)) * CHUNK,
        standing.clone(),
    );
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let count = (settings.home_shards).unwrap_or_else(|| cores().next_power_of_two() as u32);
    let mut agents = Agents::new(
        (config, Shards::new(count, config.block)),
        cache(settings, shared),
        lossy,
        (migrating, settings.migration),
        standing,
        rebuilding,
        (
            locks,
            Replicas::new(
                (node, config.incarnation),
                body,
                (view.epoch, stores(node, settings)),
                reachable.kernel().cloned(),
            ),
            Objects::new(
                (node, config.incarnation),
                config.chunks,
                body,
                reachable.clone(),
            ),
            BoundedItems::new(
                (node, config.incarnation),
                u64::from(config.chunks) * CHUNK,
                reachable.kernel().cloned(),
            ),
        ),
    );
    agents.guest = settings.guests.of(node);
    agents.twins = reachable.kernel().and_then(|kernel| kernel.take_twins());
    // The table of regions: there before anyone can ask for memory, and so the first.
    if node == 0 || settings.copies > 0 {
        agents.books(|home| home.reserve(region::TABLE));
    }
    if settings.copies > 0 {
        let first = Tag(HomeId::of(node).start().0 | agents.memory.first());
        let names = Names::new(
            settings.copies,
            (first, region::TABLE),
            (config.block, u64::from(config.chunks) * CHUNK),
        );
        agents.names = Some(names);
    }
    agents
}
