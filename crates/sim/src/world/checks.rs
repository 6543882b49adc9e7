//! What is looked at after everything that happens, and at the end.

use super::block::{self, BLOCK_BYTES};
use super::node::Condition;
use super::run::World;
use super::thread::Complaint;
use super::thread::Thread;
use super::trace::Subject;
use super::violation::Violation;
use crate::invariants::{BlockState, Copy, INVARIANTS, Owners, liveness, nothing_of_the_dead};
use rackmem_proto::CHUNK;
use rackmem_proto::wire::{Contract, Copyset, GlobalStatus, Kind, NodeId, Tag};

/// What calls for memory are held to.
pub(super) const GIVEN_ONCE: (&str, &str) = ("memory is given out once", "§6");

/// What entries that move are held to: one that has begun to move is locked until the switch
/// answers.
const NO_SWITCH: (&str, &str) = ("no entry moves where there is no switch", "§5.2.1");

/// The lock word of an entry that the switch serves no more.
const RETIRED: u16 = 1 << 15;

/// What became of a block's entry when its home settled.
#[derive(Clone, Copy, Debug)]
pub struct Settling {
    /// The block.
    pub tag: Tag,
    /// Its entry in the last epoch: lock word, status, copyset, and whether the switch owned it.
    pub before: Option<(u16, GlobalStatus, Copyset, bool)>,
    /// Whether its last content was lost already.
    pub was_lost: bool,
    /// Whether its last content is said to be lost.
    pub lost: bool,
    /// The nodes that have died since.
    pub gone: Copyset,
}

impl World {
    /// The invariants of every block that something has happened to.
    pub(super) fn check(&mut self) -> Result<(), Box<Violation>> {
        if let Some(complaint) = self
            .threads
            .iter_mut()
            .find_map(|t| t.judged.complaint.take())
        {
            let subject = Subject::Block(complaint.tag);
            return Err(self.violation(complaint.promise, complaint.detail, subject));
        }
        if let Some(complaint) = self.complaint.take() {
            let subject = Subject::Block(complaint.tag);
            return Err(self.violation(complaint.promise, complaint.detail, subject));
        }
        let stable = self.stable();
        if stable && !self.was_stable {
            for number in 0..self.config.blocks {
                let tag = self.tag(number);
                self.fabric.touched.push(tag);
            }
        }
        if stable && !self.was_stable {
            self.check_ghosts()?;
        }
        if stable {
            self.check_moves()?;
        }
        self.was_stable = stable;
        let mut touched = std::mem::take(&mut self.fabric.touched);
        touched.sort_unstable();
        touched.dedup();
        for tag in &touched {
            self.check_block(*tag)?;
        }
        touched.clear();
        self.fabric.touched = touched;
        Ok(())
    }

    fn check_moves(&mut self) -> Result<(), Box<Violation>> {
        let without = self.nodes.iter().filter(|node| {
            node.standing == Condition::Up && node.view.switch.is_none() && node.in_service()
        });
        let moves = without.filter_map(|node| node.moves().next());
        let tags: Vec<Tag> = moves.map(|output| output.header.tag).collect();
        match tags.first() {
            Some(&tag) => {
                let detail = "its home waits for the answer of a switch that is dead".into();
                Err(self.violation(NO_SWITCH, detail, Subject::Block(tag)))
            }
            None => Ok(()),
        }
    }

    /// Whoever serves has let go of memory whose home is gone.
    fn check_ghosts(&mut self) -> Result<(), Box<Violation>> {
        let up = self.nodes.iter().filter(|n| n.standing == Condition::Up);
        let ghosts = up.flat_map(|node| {
            let tags = node.cache.tags().filter(|&tag| !node.reaches(tag));
            tags.map(|tag| (tag, node.id))
        });
        for (tag, node) in ghosts.collect::<Vec<_>>() {
            if let Some(detail) = nothing_of_the_dead::broken(tag.home(), Copyset::of(node)) {
                let promise = (nothing_of_the_dead::NAME, nothing_of_the_dead::SECTION);
                return Err(self.violation(promise, detail, Subject::Block(tag)));
            }
        }
        Ok(())
    }

    fn check_block(&mut self, tag: Tag) -> Result<(), Box<Violation>> {
        if self.oracle.is_removed(tag) {
            let broken = self.check_removed(tag).map(|it| (it.promise, it.detail));
            return broken.map_or(Ok(()), |(promise, detail)| {
                Err(self.violation(promise, detail, Subject::Block(tag)))
            });
        }
        let Some(state) = self.state(tag) else {
            return Ok(());
        };
        for invariant in &INVARIANTS {
            if !self.was_stable && !invariant.always {
                continue;
            }
            if let Some(detail) = (invariant.broken)(&state) {
                return Err(self.violation(
                    (invariant.name, invariant.section),
                    detail,
                    Subject::Block(tag),
                ));
            }
        }
        Ok(())
    }

    /// A block's state; `None` for memory that no operation touches.
    fn state(&mut self, tag: Tag) -> Option<BlockState> {
        let number = block::number(tag, self.config.homes());
        if number >= self.config.blocks || self.tag(number) != tag {
            return None;
        }
        let host = self.view.host(tag.home())?;
        let there = self.nodes[usize::from(host)].standing == Condition::Up;
        if !there || !self.view.live.contains(host) {
            return None;
        }
        let oracle = &self.oracle;
        let up = self.nodes.iter().filter(|n| n.standing == Condition::Up);
        let copies = up.filter_map(|node| {
            let (status, words) = node.cache.copy(tag)?;
            Some(Copy {
                node: node.id,
                status,
                current: oracle.agrees(tag, words),
            })
        });
        let copies = copies.collect();
        let home = &mut self.nodes[usize::from(host)];
        let (lock, status, copyset, away) = home.home_of(tag).inspect(tag)?;
        let moves = |kind| {
            let mut moves = home.moves();
            moves.any(|move_| move_.header.tag == tag && move_.header.kind == kind)
        };
        let (adding, removing) = (moves(Kind::AddToSwitch), moves(Kind::RemoveFromSwitch));
        // What is not in place yet is with a majority.
        let own = tag.home().is_own();
        let here = own || home.part.in_place.has(tag, home.view.epoch);
        let home_current = !here || oracle.agrees(tag, home.memory(tag));
        let in_switch = self
            .switch
            .as_ref()
            .and_then(|switch| switch.program.inspect(tag));
        let lost = home.home_of(tag).lost(tag) || oracle.is_doubtful(tag);
        let home_current = home_current && self.is_with_majority(tag);
        let owners = Owners {
            home: !away && !adding,
            switch: in_switch.is_some_and(|(lock, ..)| !(removing && lock == RETIRED)),
            moving: adding || removing,
        };
        let served_by_switch = in_switch.filter(|_| away || adding);
        let (lock, status, copyset) = served_by_switch.unwrap_or((lock, status, copyset));
        let member = |node: NodeId| self.nodes[usize::from(node)].standing == Condition::Up;
        let live = self.threads.iter().flat_map(Thread::live);
        let live = live.filter(|event| member(event.node));
        Some(BlockState {
            lock,
            status,
            copyset,
            owners,
            copies,
            events: live.filter(|event| event.tag == tag).collect(),
            home_current,
            lost,
        })
    }

    /// All caches are empty and no packet is on its way: every lock is free and home has every
    /// write.
    pub(super) fn finish(&mut self) -> Result<(), Box<Violation>> {
        for number in 0..self.config.blocks {
            let tag = self.tag(number);
            self.check_block(tag)?;
            let clean = self.state(tag).is_none_or(|state| {
                state.lock == 0 && state.copies.is_empty() && (state.home_current || state.lost)
            });
            if !clean {
                let detail = format!("at the end: {:?}", self.state(tag));
                return Err(self.violation(("home is current", "§4"), detail, Subject::Block(tag)));
            }
        }
        if let Some(detail) = self.record.judge() {
            let subject = Subject::Rack;
            return Err(self.violation(("linearizable", "§2.1"), detail, subject));
        }
        let lossless = !self.config.failures.any() && self.config.removals == 0;
        if lossless && self.oracle.sum() != self.oracle.stores() {
            let (sum, stores) = (self.oracle.sum(), self.oracle.stores());
            let detail = format!("{stores} stores, counters add up to {sum}");
            return Err(self.violation(("home is current", "§4"), detail, Subject::Rack));
        }
        if self.config.failures.any() {
            return Ok(());
        }
        self.finish_memory()
    }

    /// What a home has made of a block's entry.
    pub(super) fn judge(&mut self, id: NodeId, settling: &Settling) {
        let Settling { tag, gone, .. } = *settling;
        // What one that is fenced makes of it is nobody's business: the others are in another
        // epoch, or will be.
        if self.nodes[usize::from(id)].standing != Condition::Up {
            return;
        }
        let Some((lock, status, copyset, away)) = settling.before else {
            return;
        };
        // What becomes of blocks that groups keep is judged when a keeper puts them in place.
        if !tag.home().is_own() {
            return;
        }
        let copies = self.nodes.iter().filter(|node| {
            let member = node.standing == Condition::Up && self.view.founders.contains(node.id);
            member && node.reaches(tag) && node.cache.copy(tag).is_some()
        });
        let copies = copies.count();
        // Who has died since it told of its copies is the next rebuild's business.
        let newest = self.nodes[usize::from(id)].view.epoch == self.view.epoch;
        let mut founders = self.view.founders.iter();
        let all_here =
            newest && founders.all(|node| self.nodes[usize::from(node)].standing == Condition::Up);
        let home_current = self
            .oracle
            .agrees(tag, self.nodes[usize::from(id)].memory(tag));
        let unknown = away || lock & RETIRED != 0;
        let dirty = status == GlobalStatus::Modified && gone.covers(copyset);
        let detail = match (settling.lost, settling.was_lost) {
            (true, true) => return,
            (true, false) if copies > 0 => "is said to be lost, and there are copies",
            (true, false) if Copyset(gone.0 & self.died.0).is_empty() && !home_current => {
                "is said to be lost, and nobody has died"
            }
            (true, false) if !home_current => {
                self.past.lost += 1;
                return;
            }
            (true, false) if unknown || dirty => {
                self.past.doubted += 1;
                return;
            }
            (true, false) => "is said to be lost, and home has it",
            (false, _) if all_here && copies == 0 && !home_current => {
                "is old, and not said to be lost"
            }
            (false, _) => return,
        };
        self.complaint.get_or_insert(Complaint {
            promise: ("no dirty data is lost in silence", "§5.4"),
            tag,
            detail: format!("the block {detail}: {settling:?}"),
        });
    }

    /// Homes have given out exactly what threads have, beside the chunk that each began with.
    fn finish_memory(&self) -> Result<(), Box<Violation>> {
        let out = self
            .nodes
            .iter()
            .map(|node| node.books().heap().live() - CHUNK);
        let out: u64 = out.sum();
        let have: usize = self.threads.iter().map(|t| t.judged.objects.len()).sum();
        let have = have as u64 * u64::from(BLOCK_BYTES);
        if out == have {
            return Ok(());
        }
        let detail = format!("homes have given out {out} bytes, threads have {have}");
        Err(self.violation(GIVEN_ONCE, detail, Subject::Rack))
    }

    pub(super) fn stuck(&self) -> Box<Violation> {
        let stuck: Vec<String> = self
            .threads
            .iter()
            .filter(|thread| !thread.idle())
            .map(Thread::describe)
            .collect();
        // A thread whose unlock is unanswered is what the others wait for.
        let culprit = self
            .threads
            .iter()
            .find(|thread| thread.unlocks())
            .or_else(|| self.threads.iter().find(|thread| !thread.idle()));
        let subject = culprit.map_or(Subject::Rack, |thread| Subject::Requester(thread.id));
        let nodes: Vec<String> = self.nodes.iter().map(|node| node.describe()).collect();
        let switch = self.switch.as_ref().map(|s| s.serves(self.view.epoch));
        let detail = format!(
            "still at it: {}; {}; epoch {}, switch serves: {switch:?}, {} changes to come",
            stuck.join("; ") + &self.locking.describe(),
            nodes.join("; "),
            self.view.epoch,
            self.changes,
        );
        self.violation((liveness::NAME, liveness::SECTION), detail, subject)
    }

    fn violation(
        &self,
        (invariant, section): (&'static str, &'static str),
        detail: String,
        subject: Subject,
    ) -> Box<Violation> {
        let block = match subject {
            Subject::Block(tag) if !tag.is_under(Contract::Locked) => {
                Some(block::number(tag, self.config.homes()))
            }
            Subject::Block(_) | Subject::Requester(_) | Subject::Rack => None,
        };
        Box::new(Violation {
            block,
            seed: self.seed,
            invariant,
            section,
            detail,
            at: self.fabric.now,
            trace: self.fabric.trace.about(subject),
        })
    }
}
