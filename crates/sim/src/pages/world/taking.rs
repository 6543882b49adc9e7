//! A node stops what its program may do with a page: for another node, for home, for a call.

use super::super::scenario::Sight;
use super::{Bytes, CLOSES, World};
use crate::pages::world::{Purpose, Rules};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::pages::{self, Defect, Right, Stop};

/// How long a page stays, in the world's only unit of time.
const HOLD: u64 = 1;

/// Where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    /// The page may rest, then its entry is locked.
    Begins,
    /// The mapping has a new right; not all processors may have heard.
    Told,
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Taking {
    pub node: u8,
    pub block: u8,
    stop: Stop,
    /// The copy's status afterwards, if that changes.
    next: Option<LocalStatus>,
    /// A page that was shown just now rests before.
    rests: bool,
    /// What the entry will say of the mapping.
    left: Right,
    at: At,
    /// The bytes that were copied out.
    pub bytes: Option<Bytes>,
}

impl Taking {
    fn new(node: usize, block: usize, stop: Stop, next: Option<LocalStatus>) -> Taking {
        Taking {
            node: node as u8,
            block: block as u8,
            stop,
            next,
            rests: true,
            left: Right::Hidden,
            at: At::Begins,
            bytes: None,
        }
    }

    /// For another node, which reads, or will store.
    pub fn to_give(node: usize, block: usize, reads: bool, rules: &Rules) -> Taking {
        let stop = match reads && rules.breaks(Defect::StoresGoOn) {
            true => Stop::Nothing,
            false => Stop::to_give(reads),
        };
        let next = match reads {
            true => LocalStatus::Shared,
            false => LocalStatus::Invalid,
        };
        Taking::new(node, block, stop, Some(next))
    }

    /// For home.
    pub fn to_leave(node: usize, block: usize) -> Taking {
        let next = Some(LocalStatus::Invalid);
        Taking {
            rests: false,
            ..Taking::new(node, block, Stop::to_end(true), next)
        }
    }

    /// For a call of this node, which keeps the entry locked afterwards.
    pub fn for_call(node: usize, block: usize, rules: &Rules) -> Taking {
        let stop = match rules.breaks(Defect::CallBeside) {
            true => Stop::Nothing,
            false => Stop::Stores,
        };
        Taking {
            rests: false,
            ..Taking::new(node, block, stop, None)
        }
    }

    /// For a node that cannot show that it is alive.
    pub fn to_close(block: usize) -> Taking {
        Taking {
            rests: false,
            ..Taking::new(CLOSES, block, Stop::All, None)
        }
    }

    pub fn is_over(&self) -> bool {
        self.at == At::Over
    }
}

impl World {
    /// Whether a page that is to be taken has been shown just now, so that time may go on.
    pub fn rests(&self, taking: &Taking, rules: &Rules) -> bool {
        let page = &self.pages[usize::from(taking.node)][usize::from(taking.block)];
        let waits = taking.at == At::Begins && taking.rests;
        let now = if page.fresh { 0 } else { HOLD };
        let rests = match rules.breaks(Defect::HoldForEver) {
            true => page.status != LocalStatus::Invalid,
            false => pages::rest(0, now, HOLD).is_some(),
        };
        waits && page.right != Right::Hidden && rests
    }

    /// Whether the program has pinned what is to be taken, for another node.
    pub fn is_pinned(&self, taking: &Taking) -> bool {
        let page = &self.pages[usize::from(taking.node)][usize::from(taking.block)];
        let begins = taking.at == At::Begins && taking.rests;
        begins && pages::stays(page.pinned, page.right, taking.stop)
    }

    pub fn can_take(&self, taking: &Taking, rules: &Rules) -> bool {
        let (node, block) = (usize::from(taking.node), usize::from(taking.block));
        let page = &self.pages[node][block];
        match taking.at {
            At::Begins => {
                let waits = page.locked || self.rests(taking, rules) || self.is_pinned(taking);
                let taken = rules.breaks(Defect::TakePinned) && self.is_pinned(taking);
                !waits || taken && !page.locked
            }
            At::Told => rules.breaks(Defect::NoShootdown) || self.is_known(node, block),
            At::Over => false,
        }
    }

    /// Its next step; what it is then.
    pub fn take(&mut self, mut taking: Taking, rules: &Rules) -> Taking {
        let (node, block) = (usize::from(taking.node), usize::from(taking.block));
        let page = self.page(node, block);
        match taking.at {
            At::Begins => {
                page.locked = true;
                if taking.rests {
                    rules.learn(page, |habit| habit.taken());
                }
                if rules.breaks(Defect::CopyBeforeTakingAway) {
                    taking.bytes = Some(page.bytes);
                }
                let (act, left) = match taking.stop.act(page.right) {
                    Some((act, left)) => (Some(act), left),
                    None => (None, page.right),
                };
                act.into_iter().for_each(|act| self.act(node, block, act));
                (taking.left, taking.at) = (left, At::Told);
            }
            _ => {
                page.right = taking.left;
                let leaves = !taking.rests && taking.next == Some(LocalStatus::Invalid);
                if leaves && rules.breaks(Defect::DiscardFirst) {
                    page.bytes = [super::GONE; _];
                }
                taking.bytes.get_or_insert(page.bytes);
                if let Some(next) = taking.next {
                    page.status = next;
                }
                if leaves {
                    page.bytes = [super::GONE; _];
                }
                // A call goes on with the lock.
                page.locked = taking.next.is_none() && taking.stop != Stop::All;
                taking.at = At::Over;
            }
        }
        taking
    }

    /// A node does the next step of what an event asks of it.
    pub fn give(&mut self, block: usize, node: usize, rules: &Rules, seen: &mut Vec<Sight>) {
        let Some(mut event) = self.events[block] else {
            return;
        };
        let Some(taking) = event.takings[node] else {
            return;
        };
        let was = self.pages[node][block].status;
        let taking = self.take(taking, rules);
        event.takings[node] = Some(taking);
        if taking.is_over() {
            if was == LocalStatus::Modified {
                event.bytes = taking.bytes;
                // Who reads leaves home with what was stored; so does who leaves.
                let home = matches!(event.purpose, Purpose::Read | Purpose::Leave);
                if let Some(bytes) = taking.bytes.filter(|_| home) {
                    self.home[block] = bytes;
                }
            }
            if event.purpose == Purpose::Leave {
                seen.push(Sight::SentHome);
            }
        }
        self.events[block] = Some(event);
    }

    /// Node 1, which is closing, looks at a page or does its next step to it.
    pub fn go_on_closing(&mut self, block: usize, rules: &Rules, seen: &mut Vec<Sight>) {
        if let Some(taking) = self.closing[block] {
            let taking = self.take(taking, rules);
            self.closing[block] = (!taking.is_over()).then_some(taking);
            return;
        }
        self.unseen[block] = false;
        let page = self.pages[CLOSES][block];
        let locked = page.locked && !rules.breaks(Defect::CloseUnlocked);
        if locked && page.right == Right::Hidden {
            seen.push(Sight::ClosedWhileShown);
        }
        if pages::may_have_right(page.right, locked) {
            self.closing[block] = Some(Taking::to_close(block));
        }
    }

    /// Whether that is possible.
    pub fn can_close(&self, block: usize, rules: &Rules) -> bool {
        match &self.closing[block] {
            Some(taking) => self.can_take(taking, rules),
            None => self.unseen[block],
        }
    }
}
