//! A thread of another domain stores to the line that the writer stores to: each under the lock of
//! the rack that both take.

use super::writing::goes_on;
use super::{Line, WORD, World, one};
use crate::bi::judge::ENDS;
use crate::driver::Complaint;
use rackmem_proto::bi::{Change, Defect, Phase, Queue, Tracking};

impl World {
    /// Whether nobody stores now.
    pub fn lock_is_free(&self) -> bool {
        let held = self.writer.change.is_some() || self.readers.iter().any(|r| r.change.is_some());
        !held || self.broken == Some(Defect::ShareALine)
    }

    /// A line is this in a domain's cache, and not in memory yet.
    pub(super) fn store(&mut self, domain: usize, line: u64, content: Line) {
        let state = &mut self.domains[domain];
        state.cache[line as usize] = Some(content);
        if !state.dirty.contains(&line) {
            state.dirty.push(line);
        }
    }

    /// A thread begins to store its own word, or goes on with that.
    pub fn set_beside(&mut self, reader: usize) -> Result<(), Complaint> {
        let change = self.readers[reader].change.take();
        let mut change =
            change.unwrap_or_else(|| Change::assign(Tracking::Tracked, false, self.broken));
        self.set_phase(reader, &mut change)?;
        while let Some(phase) = change.phase()
            && (goes_on(phase, self.shared) || matches!(phase, Phase::Intend | Phase::WriteBack))
        {
            self.set_phase(reader, &mut change)?;
        }
        let at = &mut self.readers[reader];
        match change.phase() {
            Some(_) => at.change = Some(change),
            None => at.done += 1,
        }
        Ok(())
    }

    fn set_phase(&mut self, reader: usize, change: &mut Change) -> Result<(), Complaint> {
        let domain = self.readers[reader].domain;
        let mut ring = self.domains[domain].modified.clone();
        match change.phase() {
            Some(Phase::Refresh) => self.evict(domain, WORD)?,
            Some(Phase::Intend) => {
                let nth = ring.push(one(WORD), &mut self.board(domain));
                let nth = nth.map_err(|_| (ENDS, ENDS, "no room".to_owned()))?;
                self.readers[reader].entered.push((nth, one(WORD)));
            }
            Some(Phase::Link) => {
                let (is, _) = self.load(domain, WORD);
                let beside = is.beside + 1;
                self.store(domain, WORD, Line { beside, ..is });
            }
            Some(Phase::Publish) => self.write_back(domain, WORD)?,
            Some(Phase::Stamp(Queue::Modified)) => {
                for row in std::mem::take(&mut self.readers[reader].entered) {
                    ring.stamp(row, change.clock(), &mut self.board(domain));
                }
            }
            // It has no object.
            _ => {}
        }
        self.domains[domain].modified = ring;
        change.done(self.domains[domain].clock);
        Ok(())
    }
}
