//! The writer of domain 0: a change, phase by phase, and memory for the next one.

use super::{Line, Reading, WORD, World, Writer, one};
use crate::bi::judge::{ENDS, REUSE};
use crate::bi::scenario::Sight;
use crate::driver::Complaint;
use rackmem_proto::bi::{BiPtr, Change, DomainRow, Extent, Phase, Tracking};

impl World {
    /// Whether the writer has something to do.
    pub fn writes(&self) -> bool {
        self.domains[0].alive && (self.writer.left > 0 || self.writer.change.is_some())
    }

    /// Whether it can.
    pub fn can_write(&self) -> bool {
        self.writes() && (self.writer.change.is_some() || self.lock_is_free())
    }

    /// The phase that the writer does next.
    pub fn phase(&self) -> Option<Phase> {
        self.writer
            .change
            .as_ref()
            .and_then(|(_, change)| change.phase())
    }

    /// The writer goes on, to the next point at which it matters that it may stop.
    pub fn write(&mut self, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        let begins = self.phase().is_none();
        self.write_phase(seen)?;
        while let Some(phase) = self.phase()
            && (goes_on(phase, self.shared)
                || begins && matches!(phase, Phase::Refresh | Phase::Intend))
        {
            self.write_phase(seen)?;
        }
        Ok(())
    }

    fn write_phase(&mut self, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        let Some((new, mut change)) = self.writer.change.take() else {
            return self.begin_change(seen);
        };
        let now = self.domains[0].clock;
        let mut writer = self.writer.clone();
        let old = BiPtr::from_word(self.memory[WORD as usize].word);
        if let Some(phase) = change.phase() {
            match phase {
                Phase::Refresh => self.evict(0, WORD)?,
                Phase::Intend => {
                    let word = Extent {
                        line: WORD,
                        lines: 1,
                    };
                    // Of what is the program's own, only that the word led to what is freed.
                    let entered = if self.own { 1 } else { 2 };
                    for extent in [word, new].into_iter().take(entered) {
                        let nth = writer.rings[0].push(extent, &mut self.board(0));
                        let nth = nth.map_err(|_| (ENDS, ENDS, "no room".to_owned()))?;
                        writer.entered[0].push((nth, extent));
                    }
                }
                Phase::WriteBack => self.write_back(0, new.line)?,
                Phase::Clock => {}
                Phase::Link => {
                    let tracking = self.tracking();
                    let word = BiPtr::assigned(new.line, change.clock(), tracking, self.broken);
                    let word = word.to_word();
                    let object = writer.object;
                    // What the old one was is needed when it is retired.
                    writer.entered[1] = old
                        .map(|old| (u64::MAX, one(old.line)))
                        .into_iter()
                        .collect();
                    let (is, _) = self.load(0, WORD);
                    self.store(0, WORD, Line { object, word, ..is });
                }
                Phase::Publish => self.write_back(0, WORD)?,
                Phase::Retire => {
                    for row in &mut writer.entered[1] {
                        let Ok(nth) = writer.rings[1].push(row.1, &mut self.board(0)) else {
                            // Until others have dropped what was freed before.
                            seen.push(Sight::WaitedForRoom);
                            self.reclaim(&mut writer);
                            writer.change = Some((new, change));
                            self.writer = writer;
                            return Ok(());
                        };
                        row.0 = nth;
                    }
                }
                Phase::Stamp(queue) => {
                    for row in writer.entered[queue as usize].drain(..) {
                        let stamp = change.clock();
                        writer.rings[queue as usize].stamp(row, stamp, &mut self.board(0));
                    }
                }
            }
        }
        change.done(now);
        if change.phase().is_some() {
            writer.change = Some((new, change));
        }
        self.writer = writer;
        Ok(())
    }

    fn tracking(&self) -> Tracking {
        match self.own {
            true => Tracking::Own,
            false => Tracking::Tracked,
        }
    }

    /// What was freed, and is in no cache, is free.
    fn reclaim(&mut self, writer: &mut Writer) {
        let now = self.domains[0].clock;
        let lives: Vec<bool> = self.domains.iter().map(|d| !d.excluded).collect();
        let mut board = self.board(0);
        let lives = |domain: u8, _: &DomainRow| lives[usize::from(domain)];
        let [modified, freed] = writer.roll.horizon(&mut board, lives, now);
        writer.rings[0].trim(modified, &mut board);
        for extent in writer.rings[1].trim(freed, &mut board) {
            writer.free.give(extent);
        }
    }

    /// Memory for the next object, if there is some.
    fn begin_change(&mut self, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        let mut writer = self.writer.clone();
        self.reclaim(&mut writer);
        if let Some(new) = writer.free.take(1) {
            if self.memory[new.line as usize].object > 0 {
                seen.push(Sight::Reused);
                self.is_reachable(new.line)?;
            }
            let object = writer.object + 1;
            (writer.object, writer.left) = (object, writer.left - 1);
            let whole = Line {
                object,
                ..Line::default()
            };
            self.store(0, new.line, whole);
            let change = Change::assign(self.tracking(), true, self.broken);
            writer.change = Some((new, change));
        } else {
            seen.push(Sight::WaitedForMemory);
        }
        self.writer = writer;
        Ok(())
    }

    /// A section that may still be believed has a pointer to this line, or a cache has it that
    /// fetches nothing by itself.
    fn is_reachable(&self, line: u64) -> Result<(), Complaint> {
        for (nth, state) in self.domains.iter().enumerate() {
            let counts = state.present && state.alive && !state.over && !state.excluded;
            let has = state.cache[line as usize].is_some() && !self.fetches;
            if counts && has {
                let seen = format!("line {line} is given out, domain {nth} has it in its cache");
                return Err((REUSE, "BI §3.1, P3", seen));
            }
        }
        for reader in &self.readers {
            let domain = &self.domains[reader.domain];
            let holds = reader
                .section
                .is_some_and(|s| s.holds(domain.clock).is_ok());
            let Some(Reading::At(word)) = reader.reading else {
                continue;
            };
            let to = BiPtr::from_word(word.word).map(|pointer| pointer.line);
            if holds && domain.alive && !domain.over && to == Some(line) {
                let seen = format!(
                    "line {line} is given out, domain {} reads it",
                    reader.domain
                );
                return Err((REUSE, "BI §3.1, P3", seen));
            }
        }
        Ok(())
    }
}

/// Whether a phase is one step with the one before it. A clock that is read at once shows the least
/// that it can; what is stored is not seen before it is written back, but where another domain
/// stores to the line meanwhile.
pub fn goes_on(phase: Phase, shared: bool) -> bool {
    phase == Phase::Clock || phase == Phase::Publish && !shared
}
