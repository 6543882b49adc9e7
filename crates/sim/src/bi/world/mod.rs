//! A rack at one time: memory, caches, what stands in shared memory, and threads.

mod print;
mod quiescing;
mod reading;
mod setting;
mod writing;

use super::judge::{Judge, KEPT, STAYS};
use super::scenario::{Events, Op, Scenario, Sight};
use crate::driver::Complaint;
use rackmem_proto::bi::{
    BiPtr, Board, BoardIn, BoardLayout, BoardWords, Bound, Change, Defect, Extent, Extents,
    Presence, Queue, Quiescence, Quiescer, ReadSection, RingOwner, Roll, Tick,
};
use std::rc::Rc;

/// Ages beyond are one.
const OLD: u64 = 7;
/// The line of the word. Objects' lines follow.
const WORD: u64 = 1;
/// Where time begins: no tick falls below 0.
const BEGIN: Tick = Tick(100);

/// What a line holds: which object, and in the word's line a pointer to it, and a word of another
/// domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Line {
    object: u8,
    word: u64,
    beside: u8,
}

/// Shared words, of all domains.
#[derive(Clone)]
struct Words(Rc<Vec<u64>>);

impl BoardWords for Words {
    fn load(&self, word: u64) -> u64 {
        self.0[word as usize]
    }

    fn store(&mut self, word: u64, value: u64) {
        Rc::make_mut(&mut self.0)[word as usize] = value;
    }
}

/// Where a reader is in its operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// It is in its section.
    Open,
    /// It has the word.
    At(Line),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reader {
    pub domain: usize,
    ops: &'static [Op],
    done: u8,
    section: Option<ReadSection>,
    reading: Option<Reading>,
    /// Sections that it has begun.
    sections: u8,
    at_least: u8,
    /// Its quiescence on demand is over.
    served: bool,
    /// What it stores, and what it has entered.
    change: Option<Change>,
    entered: Vec<(u64, Extent)>,
}

#[derive(Clone)]
pub struct DomainState {
    pub clock: Tick,
    pub alive: bool,
    pub present: bool,
    /// It lets no section begin any more.
    leaving: bool,
    /// It has found out that it is excluded.
    pub over: bool,
    /// The rack has excluded it.
    pub excluded: bool,
    cache: Vec<Option<Line>>,
    /// Lines that were stored and not written back.
    dirty: Vec<u64>,
    /// What threads beside the writer have modified.
    modified: RingOwner,
    quiescer: Quiescer,
    quiescing: Option<Quiescence>,
    /// Sections that it waits for, by reader.
    awaited: Option<Vec<(usize, u8)>>,
    /// Readers that want a quiescence: the next one is theirs, and not one that has begun.
    demanded: Vec<usize>,
    /// Readers whose quiescence is under way.
    served: Vec<usize>,
}

/// The writer of domain 0.
#[derive(Clone)]
struct Writer {
    left: u8,
    object: u8,
    /// The object that is put in place, and its change.
    change: Option<(Extent, Change)>,
    entered: [Vec<(u64, Extent)>; 2],
    rings: [RingOwner; 2],
    free: Extents,
    roll: Roll,
}

/// See the module.
#[derive(Clone)]
pub struct World {
    layout: BoardLayout,
    words: Words,
    memory: Vec<Line>,
    pub domains: Vec<DomainState>,
    pub readers: Vec<Reader>,
    writer: Writer,
    pub judge: Judge,
    pub left: Events,
    own: bool,
    lag: u64,
    bound: Bound,
    /// Caches fetch by themselves.
    fetches: bool,
    /// Threads of two domains store to the word's line.
    shared: bool,
    pub broken: Option<Defect>,
}

impl World {
    /// In which object 1 is in place, and everybody has quiesced.
    pub fn new(scenario: &Scenario, broken: Option<Defect>) -> Self {
        let count = scenario.readers.len() + 1 + usize::from(scenario.events.joins > 0);
        let layout = BoardLayout {
            domains: count as u8,
            room: scenario.room,
        };
        let lines = 2 + usize::from(scenario.lines);
        let domain = |me: usize| DomainState {
            clock: BEGIN,
            alive: true,
            present: me <= scenario.readers.len(),
            leaving: false,
            over: false,
            excluded: false,
            cache: vec![None; lines],
            dirty: Vec::new(),
            modified: RingOwner::new(me as u8, Queue::Modified, broken),
            quiescer: Quiescer::new((me as u8, 1), broken),
            quiescing: None,
            awaited: None,
            demanded: Vec::new(),
            served: Vec::new(),
        };
        let late: &'static [&'static [Op]] = &[&[Op::Read]];
        let joining = (scenario.events.joins > 0).then_some(&late);
        let of = scenario.readers.iter().chain(joining).enumerate();
        let readers = of.flat_map(|(nth, threads)| {
            threads.iter().map(move |ops| Reader {
                domain: nth + 1,
                ops,
                done: 0,
                section: None,
                reading: None,
                sections: 0,
                at_least: 0,
                served: false,
                change: None,
                entered: Vec::new(),
            })
        });
        let mut free = Extents::default();
        for line in (WORD + 2..lines as u64).rev() {
            free.give(Extent { line, lines: 1 });
        }
        let writer = Writer {
            left: scenario.changes,
            object: 1,
            change: None,
            entered: [Vec::new(), Vec::new()],
            rings: Queue::BOTH.map(|queue| RingOwner::new(0, queue, broken)),
            free,
            roll: Roll::new(scenario.bound, broken),
        };
        let mut world = World {
            layout,
            words: Words(Rc::new(vec![0; layout.words() as usize])),
            memory: vec![Line::default(); lines],
            domains: (0..count).map(domain).collect(),
            readers: readers.collect(),
            writer,
            judge: Judge::default(),
            left: scenario.events,
            own: scenario.own,
            lag: scenario.lag,
            bound: scenario.bound,
            fetches: scenario.events.caches > 0,
            shared: scenario.has(Op::SetBeside),
            broken,
        };
        let first = BiPtr::new(WORD + 1, BEGIN.minus(4)).to_word();
        (world.memory[1].object, world.memory[1].word) = (1, first);
        world.memory[2].object = 1;
        world.judge.published(1, &vec![BEGIN; count]);
        if scenario.events.exclusions > 1 {
            world.domains[1].excluded = true;
        }
        for me in 0..count {
            if world.domains[me].present {
                world.board(me).join(1, BEGIN);
            }
        }
        for me in 0..count {
            if world.domains[me].present {
                world.board(me).set_presence(1, Presence::Running);
                world.look(me, &mut Quiescence::begin(BEGIN, Vec::new(), None));
            }
        }
        world
    }

    fn board(&mut self, me: usize) -> BoardIn<&mut Words> {
        BoardIn {
            layout: self.layout,
            me: me as u8,
            words: &mut self.words,
        }
    }

    fn look(&mut self, me: usize, into: &mut Quiescence) {
        let mut quiescer = self.domains[me].quiescer.clone();
        quiescer.look(&self.board(me), into);
        self.domains[me].quiescer = quiescer;
    }

    fn row(&mut self, domain: usize) -> rackmem_proto::bi::DomainRow {
        self.board(0).row(domain as u8)
    }

    /// A load through a domain's cache. Whether it was a hit.
    fn load(&mut self, domain: usize, line: u64) -> (Line, bool) {
        let at = line as usize;
        let cached = self.domains[domain].cache[at];
        let content = cached.unwrap_or(self.memory[at]);
        self.domains[domain].cache[at] = Some(content);
        (content, cached.is_some())
    }

    /// Whether a line was stored and not written back.
    fn is_dirty(&self, domain: usize, line: u64) -> bool {
        self.domains[domain].dirty.contains(&line)
    }

    fn write_back(&mut self, domain: usize, line: u64) -> Result<(), Complaint> {
        if !self.is_dirty(domain, line) {
            return Ok(());
        }
        self.domains[domain].dirty.retain(|other| *other != line);
        let Some(content) = self.domains[domain].cache[line as usize] else {
            return Ok(());
        };
        let before = std::mem::replace(&mut self.memory[line as usize], content);
        if line == WORD {
            let clocks: Vec<Tick> = self.domains.iter().map(|d| d.clock).collect();
            self.judge.published(content.object, &clocks);
            if content.object < before.object || content.beside < before.beside {
                let what = format!("domain {domain} has written {content:?} over {before:?}");
                return Err((STAYS, "BI §3.3, spec §5", what));
            }
        }
        Ok(())
    }

    /// A line leaves a cache by itself.
    pub fn evict(&mut self, domain: usize, line: u64) -> Result<(), Complaint> {
        self.write_back(domain, line)?;
        self.domains[domain].cache[line as usize] = None;
        Ok(())
    }

    /// Memory that is not in place, nor free, nor waits to be so, while no change is under way.
    pub fn lost(&self) -> Option<Complaint> {
        let mut free = self.writer.free.clone();
        let free = std::iter::from_fn(|| free.take(1)).count();
        let kept = free + self.writer.rings[1].kept() as usize;
        let lines = self.memory.len() - 1 - WORD as usize;
        let lost = self.writer.change.is_none() && kept + 1 < lines;
        lost.then(|| (KEPT, "BI §3.4", format!("{kept} of {lines} lines are left")))
    }

    /// A line comes into a cache by itself.
    pub fn fetch(&mut self, domain: usize, line: u64) {
        self.load(domain, line);
    }

    /// Lines that a cache may fetch and evict by itself.
    pub fn cached(&self, domain: usize) -> impl Iterator<Item = (u64, bool)> + '_ {
        let lines = self.domains[domain].cache.iter().enumerate().skip(1);
        lines.map(|(at, line)| (at as u64, line.is_some()))
    }

    /// Whether a domain's clock may go on.
    pub fn can_tick(&mut self, domain: usize) -> bool {
        let least = self.domains.iter().map(|d| d.clock).min().unwrap_or(BEGIN);
        let ahead = self.left.skew && self.domains[domain].clock > least;
        let held = (1..self.domains.len()).any(|other| {
            let state = &self.domains[other];
            let counts = state.present && state.alive && !state.over;
            let (clock, excluded) = (state.clock, state.excluded);
            counts && !excluded && clock.since(self.row(other).freed) >= self.lag
        });
        !ahead && !held
    }

    /// A domain's clock goes on, or all clocks.
    pub fn tick(&mut self, domain: Option<usize>, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        for nth in 0..self.domains.len() {
            if domain.is_none_or(|only| only == nth) {
                self.domains[nth].clock = self.domains[nth].clock.plus(1);
            }
        }
        if domain.is_none_or(|only| only == 0) && self.domains[0].alive {
            // The writer's domain has no readers, and quiesces at each tick.
            self.quiesce(0, seen)?;
            while self.domains[0].quiescing.is_some() {
                self.quiesce(0, seen)?;
            }
        }
        Ok(())
    }

    /// A domain's process dies.
    pub fn die(&mut self, domain: usize) {
        let state = &mut self.domains[domain];
        state.alive = false;
        (state.quiescing, state.awaited) = (None, None);
        for reader in self.readers.iter_mut().filter(|r| r.domain == domain) {
            reader.done = reader.ops.len() as u8;
            (reader.section, reader.reading) = (None, None);
        }
    }

    /// The last domain joins.
    pub fn join(&mut self) {
        let me = self.domains.len() - 1;
        let now = self.domains[me].clock;
        self.board(me).join(1, now);
        self.domains[me].present = true;
    }

    /// A domain lets no section begin; when none is open, it goes.
    pub fn leave(&mut self, domain: usize) {
        let open = self
            .readers
            .iter()
            .any(|r| r.domain == domain && r.section.is_some());
        if !self.domains[domain].leaving {
            self.domains[domain].leaving = true;
        } else if !open {
            self.board(domain).set_presence(1, Presence::Absent);
            let state = &mut self.domains[domain];
            (state.quiescing, state.present) = (None, false);
            state.cache.fill(None);
        }
    }

    /// Whether a domain is about to leave.
    pub fn leaves(&self, domain: usize) -> bool {
        let state = &self.domains[domain];
        state.leaving && state.present && state.alive
    }
}

/// One line.
fn one(line: u64) -> Extent {
    Extent { line, lines: 1 }
}
