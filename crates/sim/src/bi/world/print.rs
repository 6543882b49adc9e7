//! What tells two times of a rack apart.

use super::{BEGIN, Line, OLD, Reading, WORD, World};
use crate::driver::Unpacked;
use crate::print::Print;
use rackmem_proto::bi::{Board, BoardIn, Change, Phase, Queue, Tick};
use std::hash::Hash;

impl World {
    /// Whether a reader may still come across the word of an object that was superseded.
    fn is_seen(&self, object: u8) -> bool {
        let word = |line: &Line| line.object == object;
        let cached = self
            .domains
            .iter()
            .filter_map(|d| d.cache[WORD as usize].as_ref());
        let held = self
            .readers
            .iter()
            .filter_map(|reader| match &reader.reading {
                Some(Reading::At(word)) => Some(word),
                _ => None,
            });
        cached.chain(held).any(word)
    }
}

impl Unpacked for World {
    /// Ticks count by how long ago they are: the world has no other time.
    fn fingerprint(&self) -> u128 {
        let mut print = Print::default();
        let latest = self.domains.iter().map(|d| d.clock).max().unwrap_or(BEGIN);
        let ago = |tick: Tick| latest.since(tick).min(OLD);
        let line = |line: &Line| {
            let age = (latest.0 as u16).wrapping_sub(line.word as u16);
            (
                line.object,
                line.word >> 16,
                u64::from(age).min(OLD),
                line.beside,
            )
        };
        let mut words = self.words.clone();
        let board = BoardIn {
            layout: self.layout,
            me: 0,
            words: &mut words,
        };
        for (nth, state) in self.domains.iter().enumerate() {
            let row = board.row(nth as u8);
            (
                row.incarnation,
                row.presence,
                ago(row.modified),
                ago(row.freed),
            )
                .hash(&mut print);
            (
                board.excluded(0, nth as u8),
                self.writer
                    .roll
                    .told(nth as u8)
                    .map(|since| ago(since.minus(1))),
            )
                .hash(&mut print);
            (ago(state.clock), state.alive, state.present, state.leaving).hash(&mut print);
            (state.over, state.excluded, &state.awaited).hash(&mut print);
            (&state.demanded, &state.served).hash(&mut print);
            for cached in &state.cache {
                cached.as_ref().map(line).hash(&mut print);
            }
            (&state.dirty, &state.modified).hash(&mut print);
            state.quiescer.hash(&mut print);
            let quiescing = state.quiescing.as_ref();
            quiescing
                .map(|q| (q.act(), ago(q.began())))
                .hash(&mut print);
            quiescing
                .map(|q| Queue::BOTH.map(|queue| q.found(queue).clone()))
                .hash(&mut print);
        }
        let rings = (0..self.domains.len() as u8)
            .flat_map(|domain| Queue::BOTH.map(|queue| (domain, queue)));
        for (domain, queue) in rings {
            let (tail, head) = board.ends(domain, queue);
            (tail, head).hash(&mut print);
            for nth in tail..head {
                let entry = board.entry(domain, queue, nth);
                let counts = self.writer.left > 0 || entry.stamp.is_none();
                (entry.extent, counts.then_some(entry.stamp.map(ago))).hash(&mut print);
            }
        }
        self.memory
            .iter()
            .for_each(|content| line(content).hash(&mut print));
        let clock = |change: &Change| match change.phase() {
            Some(Phase::Link | Phase::Stamp(_)) => Some(ago(change.clock())),
            _ => None,
        };
        for reader in &self.readers {
            let change = reader.change.as_ref();
            (change.map(|c| (c.left(), clock(c))), &reader.entered).hash(&mut print);
            (reader.domain, reader.done, reader.sections, reader.at_least).hash(&mut print);
            (reader.served, reader.section.map(|s| ago(s.began()).min(5))).hash(&mut print);
            match reader.reading {
                None => 0u8.hash(&mut print),
                Some(Reading::Open) => 1u8.hash(&mut print),
                Some(Reading::At(word)) => (2u8, line(&word)).hash(&mut print),
            }
        }
        let writer = &self.writer;
        (writer.left, writer.object, &writer.entered, &writer.free).hash(&mut print);
        let change = writer.change.as_ref();
        change
            .map(|(new, c)| (*new, c.left(), clock(c)))
            .hash(&mut print);
        self.left.hash(&mut print);
        for (object, at) in self.judge.superseded.iter().enumerate() {
            if self.is_seen(object as u8) {
                at.iter().for_each(|tick| ago(*tick).hash(&mut print));
            }
        }
        print.whole()
    }
}
