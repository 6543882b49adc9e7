//! What is looked at after everything that happens, and at the end.

use super::block::{self, COUNTERS};
use super::run::World;
use super::thread::Thread;
use super::trace::Subject;
use super::violation::Violation;
use crate::invariants::{BlockState, Copy, INVARIANTS, Owners, liveness};
use rackmem_proto::wire::{Kind, Tag};

/// The lock word of an entry that the switch serves no more.
const RETIRED: u16 = 1 << 15;

impl World {
    /// The invariants of every block that something has happened to.
    pub(super) fn check(&mut self) -> Result<(), Box<Violation>> {
        if let Some(complaint) = self.threads.iter_mut().find_map(|t| t.complaint.take()) {
            let subject = Subject::Block(complaint.tag);
            return Err(self.violation(complaint.promise, complaint.detail, subject));
        }
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

    fn check_block(&mut self, tag: Tag) -> Result<(), Box<Violation>> {
        let Some(state) = self.state(tag) else {
            return Ok(());
        };
        for invariant in &INVARIANTS {
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
        let number = block::number(tag, self.config.nodes);
        if number >= self.config.blocks {
            return None;
        }
        let oracle = &self.oracle;
        let copies = self.nodes.iter().filter_map(|node| {
            let (status, words) = node.cache.copy(tag)?;
            Some(Copy {
                node: node.id,
                status,
                current: oracle.agrees(number, words),
            })
        });
        let copies = copies.collect();
        let home = &mut self.nodes[usize::from(tag.home())];
        let (lock, status, copyset, away) = home.home.inspect(tag)?;
        let moves = |kind| {
            let mut moves = home.home.resend();
            moves.any(|move_| move_.header.tag == tag && move_.header.kind == kind)
        };
        let (adding, removing) = (moves(Kind::AddToSwitch), moves(Kind::RemoveFromSwitch));
        let home_current = oracle.agrees(number, home.memory(tag));
        let in_switch = self.switch.as_ref().and_then(|switch| switch.inspect(tag));
        let owners = Owners {
            home: !away && !adding,
            switch: in_switch.is_some_and(|(lock, ..)| !(removing && lock == RETIRED)),
            moving: adding || removing,
        };
        let served_by_switch = in_switch.filter(|_| away || adding);
        let (lock, status, copyset) = served_by_switch.unwrap_or((lock, status, copyset));
        let live = self.threads.iter().flat_map(Thread::live);
        Some(BlockState {
            lock,
            status,
            copyset,
            owners,
            copies,
            events: live.filter(|event| event.tag == tag).collect(),
            home_current,
        })
    }

    /// All caches are empty and no packet is on its way: every lock is free and home has every write.
    pub(super) fn finish(&mut self) -> Result<(), Box<Violation>> {
        let mut sum = 0;
        for number in 0..self.config.blocks {
            let tag = block::tag(number, self.config.nodes);
            self.check_block(tag)?;
            let clean = self.state(tag).is_none_or(|state| {
                state.lock == 0 && state.copies.is_empty() && state.home_current
            });
            if !clean {
                let detail = format!("at the end: {:?}", self.state(tag));
                return Err(self.violation(("home is current", "§4"), detail, Subject::Block(tag)));
            }
            let words = self.nodes[usize::from(tag.home())].memory(tag);
            let counters: [u64; COUNTERS] = block::counters(words);
            sum += counters.iter().sum::<u64>();
        }
        if sum == self.oracle.stores() {
            return self.finish_chunks();
        }
        let detail = format!("{} stores, counters add up to {sum}", self.oracle.stores());
        Err(self.violation(("home is current", "§4"), detail, Subject::Block(Tag(0))))
    }

    /// Homes have handed out exactly what threads were given.
    fn finish_chunks(&self) -> Result<(), Box<Violation>> {
        let out: u32 = self.nodes.iter().map(|node| node.home.chunks() - 1).sum();
        let given: u64 = self.threads.iter().map(|t| t.work.chunks).sum();
        if u64::from(out) == given {
            return Ok(());
        }
        let detail = format!("homes handed out {out} chunks, threads were given {given}");
        let subject = Subject::Block(Tag(0));
        Err(self.violation(("chunks are handed out once", "§6"), detail, subject))
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
        let subject = culprit.map_or(Subject::Block(Tag(0)), |thread| {
            Subject::Requester(thread.id)
        });
        let detail = format!("still at it: {}", stuck.join("; "));
        self.violation((liveness::NAME, liveness::SECTION), detail, subject)
    }

    fn violation(
        &self,
        (invariant, section): (&'static str, &'static str),
        detail: String,
        subject: Subject,
    ) -> Box<Violation> {
        Box::new(Violation {
            seed: self.seed,
            invariant,
            section,
            detail,
            at: self.fabric.now,
            trace: self.fabric.trace.about(subject),
        })
    }
}
