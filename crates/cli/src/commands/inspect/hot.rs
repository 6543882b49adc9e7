//! The blocks that nodes miss most.

use rackmem::RegionInfo;
use rackmem::diagnostics::HotBlock;
use rackmem_bench::table::{Align, Table};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a node does with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfNode {
    pub node: usize,
    /// Misses.
    pub reads: u64,
    pub writes: u64,
    /// Operations that the block's home did for it.
    pub at_home: u64,
    /// Parts that it stores to, as bits; 0: that is not known.
    pub written: u64,
}

/// A block, and how often each node has missed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hot {
    pub addr: u64,
    pub nodes: Vec<OfNode>,
}

impl Hot {
    fn sum(&self, of: impl Fn(&OfNode) -> u64) -> u64 {
        self.nodes.iter().map(of).sum()
    }

    fn misses(&self) -> u64 {
        self.sum(|node| node.reads + node.writes + node.at_home)
    }

    /// Nodes that write it: two of them take it from each other.
    fn writers(&self) -> usize {
        let changes = |node: &&OfNode| node.writes + node.at_home > 0;
        self.nodes.iter().filter(changes).count()
    }

    /// Whether nodes that store to it store to different parts. `None`: there are not two of which
    /// that is known.
    fn apart(&self) -> Option<bool> {
        let (mut all, mut twice, mut nodes) = (0, 0, 0);
        for written in self.nodes.iter().map(|node| node.written) {
            twice |= all & written;
            all |= written;
            nodes += u32::from(written != 0);
        }
        (nodes > 1).then_some(twice == 0)
    }
}

/// The parts of a block as numbers, runs of them by their ends.
fn parts(written: u64) -> String {
    let is = |part: u32| part < 64 && written >> part & 1 != 0;
    let first = (0..64).filter(|part| is(*part) && (*part == 0 || !is(part - 1)));
    let runs = first.map(|first| {
        let past = (first..65).find(|part| !is(*part)).unwrap_or(64);
        match past - first {
            1 => first.to_string(),
            _ => format!("{first}-{}", past - 1),
        }
    });
    runs.collect::<Vec<_>>().join(",")
}

/// What nodes have told, by block, the most missed first.
pub fn by_block(told: &[Option<Vec<HotBlock>>]) -> Vec<Hot> {
    let mut blocks: BTreeMap<u64, Vec<OfNode>> = BTreeMap::new();
    for (node, told) in told.iter().enumerate() {
        for hot in told.iter().flatten() {
            let nodes = blocks.entry(hot.addr).or_default();
            nodes.push(OfNode {
                node,
                reads: hot.reads,
                writes: hot.writes,
                at_home: hot.at_home,
                written: hot.written,
            });
        }
    }
    let blocks = blocks.into_iter();
    let mut all: Vec<Hot> = blocks.map(|(addr, nodes)| Hot { addr, nodes }).collect();
    all.sort_by_key(|hot| std::cmp::Reverse(hot.misses()));
    all
}

/// What is new since another time, a second; blocks without a miss are left out.
pub fn rates(
    now: &[Option<Vec<HotBlock>>],
    before: &[Option<Vec<HotBlock>>],
    seconds: f64,
) -> Vec<Hot> {
    let risen = |now: u64, old: u64| {
        let risen = now.checked_sub(old).unwrap_or(now);
        (risen as f64 / seconds).round() as u64
    };
    let new = now.iter().enumerate().map(|(node, now)| {
        let before = before.get(node).and_then(Option::as_ref);
        let old = |addr| before.and_then(|old| old.iter().find(|old| old.addr == addr));
        let rates = now.as_ref()?.iter().map(|hot| {
            let old = old(hot.addr).map_or([0; 3], |old| [old.reads, old.writes, old.at_home]);
            HotBlock {
                addr: hot.addr,
                reads: risen(hot.reads, old[0]),
                writes: risen(hot.writes, old[1]),
                at_home: risen(hot.at_home, old[2]),
                written: hot.written,
            }
        });
        Some(rates.filter(|hot| hot.events() > 0).collect())
    });
    by_block(&new.collect::<Vec<_>>())
}

/// The region that a block is of, and where in it.
fn place(addr: u64, regions: &[RegionInfo]) -> Option<(&str, u64)> {
    let found = regions.iter().find(|region| {
        let at = addr.checked_sub(region.addr);
        at.is_some_and(|at| at < region.spec.bytes() as u64)
    })?;
    Some((found.spec.name(), addr - found.addr))
}

/// As a table, of so many at most.
pub fn table(title: &str, hot: &[Hot], regions: &[RegionInfo], most: usize) -> Table {
    let columns = [
        ("block", Align::Left),
        ("region", Align::Left),
        ("reads", Align::Right),
        ("writes", Align::Right),
        ("at home", Align::Right),
        ("nodes", Align::Left),
    ];
    let mut table = Table::new(title, &columns);
    for hot in hot.iter().take(most) {
        let region = place(hot.addr, regions);
        let region = region.map_or(String::new(), |(name, at)| format!("{name} + {at:#x}"));
        let nodes: Vec<String> = hot.nodes.iter().map(|of| of.node.to_string()).collect();
        let mut nodes = nodes.join(" ");
        if hot.writers() > 1 {
            nodes.push_str(&format!(", {} write it", hot.writers()));
        }
        nodes.push_str(match hot.apart() {
            Some(true) => ", each another part",
            Some(false) => ", the same parts",
            None => "",
        });
        table.row(&[
            &format!("{:#x}", hot.addr),
            &region,
            &hot.sum(|node| node.reads).to_string(),
            &hot.sum(|node| node.writes).to_string(),
            &hot.sum(|node| node.at_home).to_string(),
            &nodes,
        ]);
    }
    table
}

/// For programs.
pub fn object(hot: &Hot, regions: &[RegionInfo]) -> Value {
    let place = place(hot.addr, regions);
    let nodes: Vec<Value> = hot
        .nodes
        .iter()
        .map(|of| {
            json!({
                "node": of.node, "reads": of.reads, "writes": of.writes, "at_home": of.at_home,
                "written": (of.written != 0).then(|| parts(of.written)),
            })
        })
        .collect();
    json!({
        "addr": format!("{:#x}", hot.addr),
        "region": place.map(|place| place.0),
        "offset": place.map(|place| place.1),
        "nodes": nodes,
        "apart": hot.apart(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hot(addr: u64, reads: u64, writes: u64) -> HotBlock {
        HotBlock {
            addr,
            reads,
            writes,
            at_home: 0,
            written: 0,
        }
    }

    fn of(node: usize, reads: u64, writes: u64) -> OfNode {
        OfNode {
            node,
            reads,
            writes,
            at_home: 0,
            written: 0,
        }
    }

    #[test]
    fn nodes_that_store_to_different_parts_are_told_apart() {
        let block = |written: &[u64]| {
            let nodes = written.iter().map(|written| OfNode {
                written: *written,
                ..of(1, 0, 9)
            });
            let (addr, nodes) = (0, nodes.collect());
            Hot { addr, nodes }
        };
        assert_eq!(block(&[1, 0]).apart(), None);
        assert_eq!(block(&[1, 0, 2]).apart(), Some(true));
        assert_eq!(block(&[1, 2, 3]).apart(), Some(false));
        assert_eq!(parts(1 | 0b111 << 4 | 1 << 63), "0,4-6,63");
        assert_eq!(parts(u64::MAX), "0-63");
    }

    #[test]
    fn rates_are_of_what_is_new() {
        let before = [Some(vec![hot(0, 10, 0), hot(4096, 100, 100)]), None];
        let now = [
            Some(vec![hot(0, 10, 0), hot(4096, 140, 120), hot(8192, 2, 0)]),
            Some(vec![hot(4096, 6, 40)]),
        ];
        let rates = rates(&now, &before, 2.0);
        let wanted = Hot {
            addr: 4096,
            nodes: vec![of(0, 20, 10), of(1, 3, 20)],
        };
        assert_eq!(rates[0], wanted);
        assert_eq!((rates[1].addr, rates.len()), (8192, 2));
        // One that has given its place up meanwhile, and has it again.
        let again = [Some(vec![hot(4096, 4, 0)]), None];
        let seen = super::rates(&again, &now, 2.0);
        assert_eq!(seen[0].nodes, [of(0, 2, 0)]);
        assert_eq!(seen.len(), 1);
    }
}
