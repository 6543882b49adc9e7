//! What a node tells a tool outside the rack of what it counts.

use crate::bytes::desk::Desk;
use crate::data_plane::kernel::reads::KernelBlockCounts;
use crate::host::agents::Agents;
use crate::host::families::{Metric, NODE_METRICS};
use crate::host::locks::table::LockMetrics;
use crate::host::metrics::{MemoryMetrics, NodeMetrics, ShadowMetrics};
use crate::host::rows;
use rackmem_fabric::{Net, Receiver};
use rackmem_proto::wire::{Header, MAX_NODES, NodeId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// In an INSPECT's `offset`: figures are asked for. Its tag is the place of the first.
pub(crate) const ASK_FIGURES: u32 = 5;
/// Bytes of one record: the table's mark, the figure's place in the table, its value.
pub(crate) const RECORD: usize = 16;

/// What a node counts, of which [`NODE_METRICS`] are made.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::diagnostics::NodeReport;
///
/// let NodeReport { members, .. } = Rack::local(2)?.node(1).report();
/// assert_eq!(members, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct NodeReport {
    /// What it has done.
    pub metrics: NodeMetrics,
    /// What its locks have cost.
    pub locks: LockMetrics,
    /// The epoch that it lives in.
    pub epoch: u32,
    /// Members of the rack.
    pub members: u32,
    /// Whether the rack has a switch.
    pub has_switch: bool,
}

impl Agents {
    /// All that needs no look at requesters, which threads hold while they wait.
    pub fn metrics(&self) -> NodeMetrics {
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let home = self.home_counters();
        let shadow = self.shadow();
        let kernel_cache = self.desk.as_ref().map(Desk::invalidated);
        let kernel_copies = self.desk.as_ref().and_then(Desk::given);
        let kernel = self.objects.kernel().zip(self.twins.as_ref());
        let kernel_blocks = kernel.map(|(kernel, twins)| KernelBlockCounts {
            blocks: twins.shown() as u64,
            ..kernel.block_counts()
        });
        NodeMetrics {
            events: self.events.events(),
            invalidated: load(&self.counters.invalidated)
                + kernel_cache.map_or(0, |counts| counts.answered),
            kernel_cache,
            kernel_copies,
            kernel_blocks,
            provided: load(&self.counters.provided)
                + kernel_copies.map_or(0, |counts| counts.answered),
            ignored: load(&self.counters.ignored) + home.ignored,
            home,
            home_shards: self.shards.count(),
            at_home: load(&self.counters.at_home),
            chunks: self.chunks(),
            memory: self.books(|home| MemoryMetrics {
                size: home.heap().size(),
                given: home.heap().live(),
                used: home.heap().used(),
                longest_free: home.longest_free(),
            }),
            received: self.packets.snapshot(),
            rebuilds: self.rebuilding.metrics(),
            objects: self.objects.metrics(),
            bounded: self.bounded.metrics(),
            arenas: self.bounded.arenas.counts(),
            shadow: shadow.map(|(counters, blocks)| ShadowMetrics { counters, blocks }),
            cache_blocks: self.cache.capacity(),
            copies: self.replicas.counts(),
            ..NodeMetrics::default()
        }
    }

    /// Likewise, and without a look at each lock.
    pub fn report(&self) -> NodeReport {
        let live = (0..MAX_NODES as NodeId).filter(|&node| self.standing.live(node));
        NodeReport {
            metrics: self.metrics(),
            locks: self.locks.memory(),
            epoch: self.standing.epoch(),
            members: live.count() as u32,
            has_switch: self.standing.switch(),
        }
    }
}

/// Answers with the figures that are not zero, from a place in the table on.
pub(crate) fn inspect(
    agents: &Agents,
    room: usize,
    net: &dyn Net,
    header: &Header,
    reply: &mut dyn Receiver,
) {
    let mark = u64::from(mark(NODE_METRICS)) << 32;
    let report = agents.report();
    let records = places(&report)
        .filter(|(place, value)| u64::from(*place) >= header.tag.0 && *value != 0)
        .map(|(place, value)| {
            [mark | u64::from(place), value]
                .map(u64::to_be_bytes)
                .concat()
        });
    rows::answer(agents.node, records, room, net, header, reply);
}

/// From a record: the figure's place, and the figure. `None` from a node with another table.
pub(crate) fn decode(record: &[u8]) -> Option<(u32, u64)> {
    let [head, value] = rows::words(record)?;
    ((head >> 32) as u32 == mark(NODE_METRICS)).then_some((head as u32, value))
}

/// The figures that nodes are asked for, with their places.
fn places(report: &NodeReport) -> impl Iterator<Item = (u32, u64)> {
    let told = NODE_METRICS.iter().enumerate().filter(|(_, it)| it.told);
    told.flat_map(|(metric, it)| {
        let samples = it.samples(report).into_iter().enumerate();
        samples.map(move |(row, (_, value))| ((metric << 8 | row) as u32, value))
    })
}

/// Tells tables of different versions apart.
fn mark<T: Default>(metrics: &[Metric<T>]) -> u32 {
    let of = T::default();
    let names = metrics.iter().flat_map(|metric| {
        let labels = metric.samples(&of).into_iter().map(|sample| sample.0);
        std::iter::once(metric.name).chain(labels).chain([";"])
    });
    // FNV-1a.
    let mix = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    names.flat_map(str::bytes).fold(0x811c_9dc5, mix)
}

/// What a node has told of itself: those of [`NODE_METRICS`] that take no lock which its threads
/// hold while they wait.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::diagnostics::ToldFigures;
///
/// let told = ToldFigures::of(&Rack::local(2)?.node(1).report());
/// assert_eq!(told.get("members", ""), Some(2));
/// assert_eq!(told.get("misses", "read"), Some(0));
/// assert_eq!(told.get("retransmissions", ""), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldFigures(BTreeMap<u32, u64>);

impl ToldFigures {
    /// What the node would tell.
    pub fn of(report: &NodeReport) -> Self {
        ToldFigures(places(report).filter(|(_, value)| *value != 0).collect())
    }

    pub(crate) fn from_places(told: Vec<(u32, u64)>) -> Self {
        ToldFigures(told.into_iter().collect())
    }

    /// One figure, by the names of its metric and of the value of its label.
    pub fn get(&self, name: &str, label: &str) -> Option<u64> {
        let mut all = self.all();
        let found = all.find(|(metric, value, _)| metric.name == name && *value == label)?;
        Some(found.2)
    }

    /// All figures of one metric together.
    pub fn sum(&self, name: &str) -> u64 {
        let all = self.all().filter(|(metric, ..)| metric.name == name);
        all.map(|(.., value)| value).sum()
    }

    /// Everything that was told, in the order of the table: the metric, the value of its label, the
    /// figure.
    pub fn all(&self) -> impl Iterator<Item = (&'static Metric<NodeReport>, &'static str, u64)> {
        let table = NODE_METRICS.iter().enumerate().filter(|(_, it)| it.told);
        let zeros = NodeReport::default();
        table.flat_map(move |(at, metric)| {
            let samples = metric.samples(&zeros).into_iter().enumerate();
            samples.map(move |(row, (label, _))| {
                let place = (at << 8 | row) as u32;
                (metric, label, self.0.get(&place).copied().unwrap_or(0))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_fabric::PacketCounts;
    use rackmem_proto::wire::Kind;

    #[test]
    fn a_figure_is_read_where_it_was_written() {
        let mut report = NodeReport {
            epoch: 7,
            ..NodeReport::default()
        };
        report.metrics.events.write_miss = 1 << 40;
        report.metrics.retransmissions = 9;
        let received = vec![(Kind::Ping, 4), (Kind::ReadMiss, 5)];
        report.metrics.received = PacketCounts(received);
        let told = ToldFigures::of(&report);
        assert_eq!(told.get("epoch", ""), Some(7));
        assert_eq!(told.get("misses", "write"), Some(1 << 40));
        assert_eq!(told.get("packets_received", "Ping"), Some(4));
        assert_eq!(told.sum("packets_received"), 9);
        assert_eq!(
            (told.get("misses", "read"), told.sum("misses")),
            (Some(0), 1 << 40)
        );
        assert_eq!(
            (told.get("retransmissions", ""), told.get("misses", "")),
            (None, None)
        );
    }

    #[test]
    fn a_record_of_another_table_is_refused() {
        let mark = u64::from(mark(NODE_METRICS)) << 32;
        let record = |head: u64| [head, 5].map(u64::to_be_bytes).concat();
        assert_eq!(decode(&record(mark | 3)), Some((3, 5)));
        assert_eq!(decode(&record(mark ^ 1 << 40 | 3)), None);
        assert_eq!(decode(&record(mark)[1..]), None);
    }
}
