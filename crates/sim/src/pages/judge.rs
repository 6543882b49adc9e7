//! What must hold in every state, and at the end.

use super::scenario::{BLOCKS, NODES, Seen};
use super::world::{Phase, Rules, World};
use crate::driver::Complaint;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::pages::Right;

const ALONE: &str = "one node has a right to store, or several to load";
const COVERED: &str = "no right is more than the copy allows";
const LOST: &str = "no store is lost";
const ALLOWED: &str = "threads see what x86-TSO allows";
const RULE: &str = "paper §5.1.2";

impl World {
    /// What threads of a node can do with a block, whatever its mapping says by now.
    fn used(&self, node: usize, block: usize) -> Right {
        let here = self.threads().map(|(_, thread)| thread);
        let here = here.filter(|thread| usize::from(thread.node) == node);
        let stale = here.map(|thread| thread.stale[block]).max();
        let mapped = self.pages[node][block].mapped;
        stale.map_or(Right::Hidden, |stale| stale.max(mapped))
    }

    pub fn is_done(&self, rules: &Rules) -> bool {
        let over = |(nth, thread): (usize, &super::world::Thread)| {
            let ended = rules.op(nth, thread).is_none() && thread.phase == Phase::Runs;
            // The lease does not come again here.
            let closed = self.closed && thread.node == super::world::CLOSES as u8;
            (ended || closed) && thread.buffer[0].is_none()
        };
        let asked = self.events.iter().any(Option::is_some);
        let closing = self.unseen.contains(&true) || self.closing.iter().any(Option::is_some);
        !asked && !closing && self.threads().all(over)
    }

    /// The first promise that is broken.
    pub fn broken(&self, rules: &Rules) -> Option<Complaint> {
        for block in 0..BLOCKS {
            let rights: [Right; NODES] = std::array::from_fn(|node| self.used(node, block));
            let stores = rights
                .iter()
                .filter(|right| **right == Right::Store)
                .count();
            let loads = rights
                .iter()
                .filter(|right| **right != Right::Hidden)
                .count();
            if stores > 0 && loads > 1 {
                return Some((ALONE, RULE, format!("block {block}: {rights:?}")));
            }
            let pages = self.pages.iter().map(|pages| &pages[block]);
            for (node, page) in pages.enumerate().filter(|(_, page)| !page.locked) {
                let most = page.right.min(Right::of(page.status));
                if page.mapped > page.right || page.right > most {
                    let detail = format!(
                        "node {node}, block {block}: the mapping allows {:?}, its entry says {:?}, the copy is {:?}",
                        page.mapped, page.right, page.status
                    );
                    return Some((COVERED, RULE, detail));
                }
            }
        }
        self.is_done(rules).then(|| self.ended(rules)).flatten()
    }

    fn ended(&self, rules: &Rules) -> Option<Complaint> {
        for block in 0..BLOCKS {
            let pages = self.pages.iter().map(|pages| &pages[block]);
            let valid = pages
                .clone()
                .filter(|page| page.status != LocalStatus::Invalid);
            let owned = pages
                .clone()
                .any(|page| page.status == LocalStatus::Modified);
            let home = (!owned).then_some(&self.home[block]);
            let last = &self.truth[block];
            let all = valid.map(|page| &page.bytes).chain(home);
            if let Some(other) = all.clone().find(|bytes| *bytes != last) {
                let detail = format!("block {block} is {other:?}; last was stored {last:?}");
                return Some((LOST, RULE, detail));
            }
        }
        let seen: Vec<Seen> = self.threads().map(|(_, thread)| thread.seen).collect();
        let never = (rules.scenario.never)(&seen);
        never.then(|| (ALLOWED, RULE, format!("they have seen {seen:?}")))
    }

    /// Whether it is an end that only some memories allow.
    pub fn is_weak(&self, rules: &Rules) -> bool {
        let seen: Vec<Seen> = self.threads().map(|(_, thread)| thread.seen).collect();
        self.is_done(rules) && (rules.scenario.weak)(&seen)
    }
}
