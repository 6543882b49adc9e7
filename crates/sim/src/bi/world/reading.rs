//! Readers: sections, and what is read in them.

use super::{Reading, WORD, World};
use crate::bi::judge::Believed;
use crate::bi::scenario::{Op, Sight};
use crate::driver::Complaint;
use rackmem_proto::bi::{BiPtr, Late, ReadSection};

impl World {
    /// The operation that a reader is at.
    pub fn op(&self, reader: usize) -> Option<Op> {
        let reader = &self.readers[reader];
        let domain = &self.domains[reader.domain];
        let over = domain.over || !domain.alive || (domain.leaving && reader.section.is_none());
        let op = reader.ops.get(usize::from(reader.done)).copied();
        op.filter(|_| !over)
    }

    /// Whether a reader can go on.
    pub fn can_go(&mut self, reader: usize) -> bool {
        let Some(op) = self.op(reader) else {
            return false;
        };
        let at = self.readers[reader].clone();
        if !self.domains[at.domain].present {
            return false;
        }
        if at.section.is_some() {
            return true;
        }
        if op == Op::SetBeside {
            return at.change.is_some() || self.lock_is_free();
        }
        if op == Op::Demand && !at.served {
            let domain = &self.domains[at.domain];
            return !domain.demanded.contains(&reader) && !domain.served.contains(&reader);
        }
        self.enter(at.domain).is_ok()
    }

    /// Whether a reader waits until its domain has quiesced.
    pub fn waits(&mut self, reader: usize) -> bool {
        self.op(reader).is_some() && !self.can_go(reader)
    }

    fn enter(&mut self, domain: usize) -> Result<ReadSection, Late> {
        let times = (self.domains[domain].clock, self.row(domain).modified);
        ReadSection::enter(times, self.bound, self.broken)
    }

    /// A reader goes on.
    pub fn read(&mut self, reader: usize, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        let Some(op) = self.op(reader) else {
            return Ok(());
        };
        if op == Op::SetBeside {
            return self.set_beside(reader);
        }
        let mut at = self.readers[reader].clone();
        let (domain, lazily) = (at.domain, op == Op::ReadLazily);
        let now = self.domains[domain].clock;
        match (at.section, at.reading) {
            (None, _) if op == Op::Demand && !at.served => {
                at.at_least = self.judge.current();
                self.domains[domain].demanded.push(reader);
            }
            (None, _) => {
                let Ok(section) = self.enter(domain) else {
                    return Ok(());
                };
                if lazily {
                    at.at_least = self.judge.current();
                }
                at.section = Some(section);
                at.sections += 1;
                at.reading = Some(Reading::Open);
            }
            (Some(section), Some(Reading::Open)) => {
                if section.drops_path(lazily) {
                    self.domains[domain].cache[WORD as usize] = None;
                }
                let (word, hit) = self.load(domain, WORD);
                if hit {
                    seen.push(Sight::Hit);
                }
                at.reading = Some(Reading::At(word));
            }
            (Some(section), Some(Reading::At(word))) => {
                let to = BiPtr::from_word(word.word).unwrap_or_default();
                let modified = self.row(domain).modified;
                if section.drops_first(to, (now, modified), lazily) {
                    let dropped = self.domains[domain].cache[to.line as usize].take();
                    if dropped.is_some_and(|line| line.object < word.object) {
                        seen.push(Sight::YoungDropped);
                    }
                }
                let (object, _) = self.load(domain, to.line);
                if section.holds(now).is_ok() {
                    if word.object < self.judge.current() {
                        seen.push(Sight::StaleRead);
                    }
                    let believed = Believed {
                        word: word.object,
                        object: object.object,
                        began: section.began(),
                        at_least: at.at_least,
                        domain,
                    };
                    // Of what is the program's own, only what it has dropped is known to be new.
                    let bound = (!self.own).then_some(self.bound);
                    self.judge.read(believed, bound)?;
                } else {
                    seen.push(Sight::SectionTooLong);
                }
                (at.section, at.reading, at.served, at.at_least) = (None, None, false, 0);
                at.done += 1;
            }
            (Some(_), None) => {}
        }
        self.readers[reader] = at;
        Ok(())
    }
}
