//! Quiescences of domains, act by act.

use super::{WORD, World, one};
use crate::bi::judge::RISES;
use crate::bi::scenario::Sight;
use crate::driver::Complaint;
use rackmem_proto::bi::{Act, Presence, Queue, Quiescence};

impl World {
    /// What a domain's quiescence does next, if it can; with none under way, whether one begins.
    pub fn can_quiesce(&mut self, domain: usize) -> bool {
        let state = &self.domains[domain];
        if !state.alive || !state.present || state.over {
            return false;
        }
        match &state.quiescing {
            Some(_) => state.awaited.as_ref().is_none_or(|awaited| {
                let open = |(reader, section): &(usize, u8)| {
                    let reader = &self.readers[*reader];
                    reader.section.is_some() && reader.sections == *section
                };
                !awaited.iter().any(open)
            }),
            None => {
                let wanted = !state.demanded.is_empty();
                let clock = state.clock;
                wanted || self.row(domain).freed < clock
            }
        }
    }

    /// What a domain's quiescence does next, in a story.
    pub fn act(&self, domain: usize) -> String {
        match self.next_act(domain) {
            Some(act) => format!("domain {domain} quiesces: {act:?}"),
            None => format!("domain {domain} begins to quiesce"),
        }
    }

    /// A domain's quiescence goes on, to the next point at which it matters that it may stop:
    /// it begins and looks; drops what was modified; drops what was freed. What it says later than
    /// it could is older.
    pub fn quiesce(&mut self, domain: usize, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        if self.domains[domain].quiescing.is_none() {
            self.quiesce_act(domain, seen)?;
        }
        self.quiesce_act(domain, seen)?;
        while let Some(Act::Tell(_) | Act::Await) = self.next_act(domain)
            && self.domains[domain].awaited.is_none()
        {
            self.quiesce_act(domain, seen)?;
        }
        Ok(())
    }

    fn next_act(&self, domain: usize) -> Option<Act> {
        let quiescing = self.domains[domain].quiescing.as_ref();
        quiescing.and_then(Quiescence::act)
    }

    fn quiesce_act(&mut self, domain: usize, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        let now = self.domains[domain].clock;
        let Some(mut quiescence) = self.domains[domain].quiescing.take() else {
            let demanded = std::mem::take(&mut self.domains[domain].demanded);
            let wanted = !demanded.is_empty();
            self.domains[domain].served = demanded;
            let own = if wanted { vec![one(WORD)] } else { Vec::new() };
            self.domains[domain].quiescing = Some(Quiescence::begin(now, own, self.broken));
            return Ok(());
        };
        match quiescence.act() {
            Some(Act::Look) => {
                let quiescer = self.domains[domain].quiescer.clone();
                if quiescer.is_excluded(&self.board(domain)) {
                    seen.push(Sight::Excluded);
                    self.domains[domain].over = true;
                    return Ok(());
                }
                let entered = &self.writer.entered;
                if !entered[0].is_empty() {
                    seen.push(Sight::PendingSeen);
                }
                self.look(domain, &mut quiescence);
                self.board(domain).show(now);
                if quiescence.found(Queue::Modified).all {
                    seen.push(Sight::EverythingDropped);
                }
            }
            Some(Act::Drop(queue)) => {
                let found = quiescence.found(queue);
                for at in 1..self.memory.len() as u64 {
                    let named = found
                        .extents
                        .iter()
                        .any(|extent| extent.all().contains(&at));
                    let old = self.domains[domain].cache[at as usize];
                    let is_old = old.is_some_and(|line| line != self.memory[at as usize]);
                    if self.own && at == WORD && named && !found.all && is_old {
                        seen.push(Sight::OwnDropped);
                    }
                    if (found.all || named) && !self.is_dirty(domain, at) {
                        self.domains[domain].cache[at as usize] = None;
                    }
                }
            }
            Some(Act::Tell(queue)) => {
                let row = self.row(domain);
                let before = [row.modified, row.freed][queue as usize];
                if quiescence.began() < before {
                    let what =
                        format!("domain {domain}: {:?} after {before:?}", quiescence.began());
                    return Err((RISES, "BI §3.5", what));
                }
                self.board(domain).tell(queue, quiescence.began());
            }
            Some(Act::Await) if self.domains[domain].awaited.is_none() => {
                let open = self.readers.iter().enumerate();
                let open = open.filter(|(_, r)| r.domain == domain && r.section.is_some());
                let open: Vec<(usize, u8)> = open.map(|(nth, r)| (nth, r.sections)).collect();
                if !open.is_empty() {
                    self.domains[domain].awaited = Some(open);
                    self.domains[domain].quiescing = Some(quiescence);
                    return Ok(());
                }
            }
            Some(Act::Await) => self.domains[domain].awaited = None,
            None => {}
        }
        quiescence.done(now);
        if quiescence.act().is_some() {
            self.domains[domain].quiescing = Some(quiescence);
        } else {
            for reader in std::mem::take(&mut self.domains[domain].served) {
                self.readers[reader].served = true;
            }
            self.board(domain).set_presence(1, Presence::Running);
        }
        Ok(())
    }
}
