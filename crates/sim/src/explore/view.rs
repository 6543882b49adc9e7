//! What explorers look at in a part of the rack, taken out once for each state of the part.

use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::Value;
use super::plan::Next;
use crate::invariants::LiveEvent;
use rackmem_proto::engine::Host;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::switch::SwitchProgram;
use rackmem_proto::wire::{Copyset, GlobalStatus, Kind, RequesterId, Seq};

/// A directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its lock word.
    pub lock: u16,
    /// Its status.
    pub status: GlobalStatus,
    /// Its copyset.
    pub copyset: Copyset,
    /// Whether its home has given it away.
    pub away: bool,
    /// Whether its last content died with a node.
    pub lost: bool,
    /// Whether its home is giving it away.
    pub adding: bool,
    /// Whether its home is taking it back.
    pub removing: bool,
}

/// A thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadView {
    /// Its requester.
    pub id: RequesterId,
    /// Events that it still takes answers to.
    pub open: [Option<Seq>; 3],
    /// Whether nothing is left to do or to be acknowledged.
    pub idle: bool,
    /// What it would do if it were its turn.
    pub next: Next,
    /// Packets that it may send again, one by one.
    pub resends: usize,
}

/// What is in a part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExplorerView {
    /// Entries of blocks that the part is the home of, or owns as the switch.
    pub entries: Vec<Option<Entry>>,
    /// Home memory of blocks that it is the home of.
    pub memory: Vec<Option<Value>>,
    /// Valid copies by block.
    pub copies: Vec<Option<(LocalStatus, Value)>>,
    /// Events that may hold a lock.
    pub live: Vec<LiveEvent>,
    /// Locks that threads hold for their own purposes: the block, and whether as a reader.
    pub holding: Vec<(u8, bool)>,
    /// Its threads.
    pub threads: Vec<ThreadView>,
    /// Packets that its home agent may send again.
    pub home_resends: usize,
    /// Whether what it was has died.
    pub gone: bool,
    /// How often it has started.
    pub incarnation: u32,
    /// The epoch it is in.
    pub epoch: u32,
    /// Whether its home agent serves nothing.
    pub frozen: bool,
    /// Whether it is in no rebuild.
    pub in_service: bool,
    /// What it may tell others in a rebuild again.
    pub retells: usize,
    /// Steps of the rack's groups that it has heard of.
    pub heard: u8,
}

/// Looks at a node. Until it goes on in a new epoch its threads wait.
pub fn of_node(node: &mut ExplorerNode, layout: &Layout) -> ExplorerView {
    let blocks = 0..layout.blocks() as u8;
    let me = node.site.id;
    let mine = |block: &u8| layout.scenario.homes[usize::from(*block)] == me;
    let moves: Vec<_> = node
        .site
        .books()
        .resend()
        .map(|output| output.header)
        .collect();
    let memory = blocks.clone().map(|block| {
        let words = *node.site.memory(layout.tag(block));
        mine(&block).then_some(words)
    });
    let memory = memory.collect();
    let copies = blocks.clone().map(|block| {
        let (status, words) = node.site.cache.copy(layout.tag(block))?;
        Some((status, *words))
    });
    let copies = copies.collect();
    let serves = node.site.in_service();
    let threads = node.threads.iter().enumerate().map(|(at, thread)| {
        let (next, resends) = match serves {
            true => (node.next(at, layout), node.resends(at).count()),
            false => (Next::Nothing, 0),
        };
        ThreadView {
            id: thread.client.engine.id(),
            open: thread.client.engine.open(),
            idle: thread.op(layout).is_none() && thread.client.engine.can_unlock(),
            next,
            resends,
        }
    });
    let threads = threads.collect();
    let live = node
        .threads
        .iter()
        .flat_map(|thread| LiveEvent::of(&thread.client))
        .collect();
    let holding = node.threads.iter().filter_map(|thread| {
        let (tag, shared) = thread.client.holding()?;
        Some((layout.block(tag)?, shared))
    });
    let holding = holding.collect();
    let entries = blocks.map(|block| {
        let tag = layout.tag(block);
        let home = node.site.home_of(tag);
        let (lock, status, copyset, away) = home.inspect(tag)?;
        let moves = |kind| {
            let mut moves = moves.iter();
            moves.any(|move_| (move_.tag, move_.kind) == (tag, kind))
        };
        Some(Entry {
            lock,
            status,
            copyset,
            away,
            lost: home.lost(tag),
            adding: moves(Kind::AddToSwitch),
            removing: moves(Kind::RemoveFromSwitch),
        })
    });
    let entries = entries.collect();
    let home = node.site.books();
    ExplorerView {
        entries,
        memory,
        copies,
        live,
        holding,
        threads,
        home_resends: if serves { moves.len() } else { 0 },
        gone: false,
        incarnation: node.site.incarnation(me),
        epoch: node.site.view.epoch,
        frozen: home.frozen(),
        in_service: serves,
        retells: node.site.recovery.unacknowledged().len(),
        heard: node.site.part.heard,
    }
}

/// Nothing is to be seen of what has died.
pub fn of_nothing(layout: &Layout) -> ExplorerView {
    ExplorerView {
        entries: vec![None; layout.blocks()],
        memory: vec![None; layout.blocks()],
        copies: vec![None; layout.blocks()],
        gone: true,
        ..ExplorerView::default()
    }
}

/// Looks at a switch.
pub fn of_switch(switch: &SwitchProgram, layout: &Layout) -> ExplorerView {
    let entries = (0..layout.blocks() as u8).map(|block| {
        let (lock, status, copyset) = switch.inspect(layout.tag(block))?;
        Some(Entry {
            lock,
            status,
            copyset,
            away: false,
            lost: false,
            adding: false,
            removing: false,
        })
    });
    ExplorerView {
        entries: entries.collect(),
        ..ExplorerView::default()
    }
}
