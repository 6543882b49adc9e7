//! A node's part: its cells, each under a lock, and what transactions of all nodes have done to
//! them so far. It is a guest of the node. Nobody waits here: who cannot have a lock is told so.

use super::super::cells::RISE;
use super::message::{Answer, Ask, Question};
use crate::access::{Access, Cause, Footprint, Halt, Step, Used, UsedCells, used};
use crate::layout::{Cell, Layout};
#[cfg(test)]
use crate::tests::Defect;
use crate::transactions::{no_row, parts};
use crate::tree::PAGE;
use rackmem::guest::wire::{Copyset, Kind};
use rackmem::guest::{Body, Dest, Guest, Header, Net, Receiver};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Threads are in each other's way when their cells have the same number by this.
const SHARDS: usize = 64;

/// Who runs a transaction: a node, and one of its seats.
pub type Seat = (u16, u32);

/// Who is inside of a cell's lock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Inside {
    readers: u32,
    writer: bool,
    /// A reader that is to write, when it is the only one.
    rising: Option<Seat>,
}

/// What has come of wanting a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entered {
    Yes,
    /// Others are inside.
    Busy,
    /// Another reader is to write as well, and waits for this one to leave.
    Never,
}

impl Inside {
    /// Enters for one that has the lock to write, to read, or not at all.
    fn enter(&mut self, seat: Seat, had: Option<bool>, to_write: bool) -> Entered {
        let is_free = match (had, to_write) {
            (Some(true), _) | (Some(false), false) => return Entered::Yes,
            (Some(false), true) if self.readers > 1 => {
                let first = *self.rising.get_or_insert(seat);
                return match first == seat {
                    true => Entered::Busy,
                    false => Entered::Never,
                };
            }
            (Some(false), true) => true,
            (None, true) => self.readers == 0 && !self.writer,
            (None, false) => !self.writer && self.rising.is_none(),
        };
        if !is_free {
            return Entered::Busy;
        }
        match to_write {
            true => {
                *self = Inside {
                    writer: true,
                    ..Inside::default()
                }
            }
            false => self.readers += 1,
        }
        Entered::Yes
    }

    fn leave(&mut self, seat: Seat, is_alone: bool) {
        self.rising = self.rising.filter(|rising| *rising != seat);
        match is_alone {
            true => self.writer = false,
            false => self.readers -= 1,
        }
    }
}

/// A cell.
#[derive(Debug)]
struct Row {
    version: u64,
    content: Box<[u8]>,
    inside: Inside,
}

/// A cell whose lock a transaction has.
#[derive(Debug)]
struct Hold {
    is_alone: bool,
    version: u64,
    /// What it becomes.
    new: Option<Vec<u8>>,
}

/// What a transaction has done here, and the last question of its seat.
#[derive(Debug)]
struct Part {
    seat: Seat,
    number: u64,
    answer: Vec<u8>,
    holds: BTreeMap<Cell, Hold>,
}

/// The cells of a node.
#[derive(Debug)]
pub struct Owner {
    me: u16,
    layout: Layout,
    shards: Vec<Mutex<HashMap<u32, Row>>>,
    parts: RwLock<HashMap<Seat, Arc<Mutex<Part>>>>,
    #[cfg(test)]
    pub(super) defect: Option<Defect>,
}

impl Owner {
    /// Those of a node; all are zeros.
    pub fn new(me: u16, layout: Layout) -> Owner {
        Owner {
            me,
            layout,
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            parts: RwLock::default(),
            #[cfg(test)]
            defect: None,
        }
    }

    /// Does what a transaction of this seat asks for.
    pub fn act(&self, seat: Seat, ask: &Ask<'_>) -> Answer {
        let part = self.part(seat);
        let mut part = lock(&part);
        self.carry_out(&mut part, ask)
    }

    fn part(&self, seat: Seat) -> Arc<Mutex<Part>> {
        let known = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&seat) {
            return known.clone();
        }
        drop(known);
        let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let part = Part {
                seat,
                number: 0,
                answer: Vec::new(),
                holds: BTreeMap::new(),
            };
            Arc::new(Mutex::new(part))
        };
        parts.entry(seat).or_insert_with(new).clone()
    }

    /// Answers a question, and one that comes again as before; nothing to one that is over.
    fn answer(&self, node: u16, question: &Question<'_>) -> Option<Vec<u8>> {
        let part = self.part((node, question.seat));
        let mut part = lock(&part);
        if question.number < part.number {
            return None;
        }
        if question.number > part.number || self.forgets_answers() {
            part.answer = self.carry_out(&mut part, &question.ask).to_bytes();
            part.number = question.number;
        }
        Some(part.answer.clone())
    }

    fn carry_out(&self, part: &mut Part, ask: &Ask<'_>) -> Answer {
        match *ask {
            Ask::Read { cell, .. } | Ask::Look { cell } if !self.has(cell) => Answer::Wrong,
            Ask::Write { cell, content } | Ask::Poke { cell, content }
                if !self.has(cell) || content.len() != cell.bytes as usize =>
            {
                Answer::Wrong
            }
            Ask::Read { cell, to_write } => match self.enter(part, cell, to_write) {
                Entered::Yes => Answer::content(self.load(part, cell)),
                Entered::Busy => Answer::Busy,
                Entered::Never => Answer::Late,
            },
            Ask::Look { cell } => Answer::content(self.with(cell, |row| used_of(row))),
            Ask::Write { cell, content } => match part.holds.get_mut(&cell) {
                Some(hold) if hold.is_alone => {
                    hold.new = Some(content.to_vec());
                    Answer::Done
                }
                _ => Answer::Wrong,
            },
            Ask::Part { code, part: bytes } => self.run(part, (code, bytes)),
            Ask::Commit => Answer::Left(self.leave(part, true)),
            Ask::Leave => Answer::Left(self.leave(part, false)),
            Ask::Poke { cell, content } => {
                self.with(cell, |row| {
                    row.version += RISE;
                    row.content = content.into();
                });
                Answer::Done
            }
        }
    }

    fn has(&self, cell: Cell) -> bool {
        let part = self.layout.parts().get(usize::from(self.me));
        let is_here = part.is_some_and(|part| cell.home == self.me && cell.number < part.cells);
        is_here && cell.bytes as usize <= PAGE
    }

    fn with<R>(&self, cell: Cell, f: impl FnOnce(&mut Row) -> R) -> R {
        let mut shard = lock(&self.shards[cell.number as usize % SHARDS]);
        f(shard.entry(cell.number).or_insert_with(|| Row {
            version: 0,
            content: vec![0; cell.bytes as usize].into(),
            inside: Inside::default(),
        }))
    }

    /// Takes a cell's lock, if nobody is in the way.
    fn enter(&self, part: &mut Part, cell: Cell, to_write: bool) -> Entered {
        let had = part.holds.get(&cell).map(|hold| hold.is_alone);
        let (entered, version) = self.with(cell, |row| match self.lets_all_in() {
            true => (Entered::Yes, row.version),
            false => (row.inside.enter(part.seat, had, to_write), row.version),
        });
        if entered != Entered::Yes {
            return entered;
        }
        let hold = part.holds.entry(cell).or_insert(Hold {
            is_alone: to_write,
            version,
            new: None,
        });
        hold.is_alone |= to_write;
        Entered::Yes
    }

    /// A cell as a transaction has it that has its lock.
    fn load(&self, part: &Part, cell: Cell) -> Used {
        let new = part.holds.get(&cell).and_then(|hold| hold.new.clone());
        let mut used = self.with(cell, |row| used_of(row));
        if let Some(new) = new {
            used.bytes = new;
        }
        used
    }

    /// Runs a part of a transaction: all of it, or nothing that is seen.
    fn run(&self, part: &mut Part, bytes: (u32, &[u8])) -> Answer {
        let mut here = Here {
            owner: self,
            part,
            cells: UsedCells::new(),
        };
        match parts::run_bytes(&mut here, &self.layout, bytes) {
            Ok(answer) => {
                let changed = here.cells.into_iter().filter(|(_, used)| used.is_changed);
                for (cell, used) in changed {
                    if let Some(hold) = here.part.holds.get_mut(&cell) {
                        hold.new = Some(used.bytes);
                    }
                }
                Answer::Part(answer)
            }
            Err(Halt::Abort(Cause::Changed)) => Answer::Late,
            Err(Halt::Abort(_)) => Answer::Busy,
            Err(Halt::Rollback | Halt::Failed(_)) => Answer::Wrong,
        }
    }

    /// Ends a transaction here: its locks are free, and if it commits, cells are as it wants them.
    fn leave(&self, part: &mut Part, commits: bool) -> Footprint {
        let mut footprint = Footprint::default();
        for (cell, hold) in std::mem::take(&mut part.holds) {
            footprint.reads.push((cell.key(), hold.version));
            let new = hold.new.filter(|_| commits);
            if new.is_some() {
                footprint.writes.push((cell.key(), hold.version + RISE));
            }
            let lets_all_in = self.lets_all_in();
            self.with(cell, |row| {
                if let Some(new) = new {
                    row.version = hold.version + RISE;
                    row.content = new.into();
                }
                if !lets_all_in {
                    row.inside.leave(part.seat, hold.is_alone);
                }
            });
        }
        footprint
    }

    /// Cells whose locks are taken.
    #[cfg(test)]
    pub fn locked(&self) -> usize {
        let taken = |row: &&Row| row.inside != Inside::default();
        let of = |shard: &Mutex<HashMap<u32, Row>>| lock(shard).values().filter(taken).count();
        self.shards.iter().map(of).sum()
    }

    #[cfg(test)]
    fn lets_all_in(&self) -> bool {
        self.defect == Some(Defect::WritesUnlocked)
    }

    #[cfg(not(test))]
    fn lets_all_in(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn forgets_answers(&self) -> bool {
        self.defect == Some(Defect::ActsTwice)
    }

    #[cfg(not(test))]
    fn forgets_answers(&self) -> bool {
        false
    }
}

fn used_of(row: &Row) -> Used {
    Used {
        version: row.version,
        bytes: row.content.to_vec(),
        is_changed: false,
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guest for Owner {
    fn packet(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        let Body::Bytes(bytes) = body else { return };
        let question = Question::from_bytes(bytes, self.me);
        let Some(question) = question.filter(|_| header.kind == Kind::GuestAsk) else {
            return;
        };
        let by = header.requester;
        if let Some(answer) = self.answer(by.node, &question) {
            let header = header.answer(Kind::GuestTell, self.me);
            net.send(Dest::Requester(by), &header, Body::Bytes(&answer), reply);
        }
    }

    /// What a dead node's transactions have not committed here is not to be.
    fn gone(&self, nodes: Copyset) {
        let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|(node, _), part| {
            let is_dead = nodes.contains(*node);
            if is_dead {
                self.leave(&mut lock(part), false);
            }
            !is_dead
        });
    }
}

/// A part of a transaction that runs where its cells are.
struct Here<'o> {
    owner: &'o Owner,
    part: &'o mut Part,
    cells: UsedCells,
}

impl Here<'_> {
    fn used(&mut self, cell: Cell, to_write: bool) -> Step<&mut Used> {
        if !self.owner.has(cell) {
            return Err(no_row());
        }
        match self.owner.enter(self.part, cell, to_write) {
            Entered::Yes => {}
            Entered::Busy => return Err(Halt::Abort(Cause::Lock)),
            Entered::Never => return Err(Halt::Abort(Cause::Changed)),
        }
        let (owner, part) = (self.owner, &*self.part);
        used(&mut self.cells, cell, || Ok(owner.load(part, cell)))
    }
}

impl Access for Here<'_> {
    fn read(&mut self, cell: Cell) -> Step<&[u8]> {
        Ok(&self.used(cell, false)?.bytes)
    }

    fn change(&mut self, cell: Cell) -> Step<&mut [u8]> {
        Ok(self.used(cell, true)?.change())
    }

    fn kept(&self, cell: Cell) -> Option<&[u8]> {
        self.cells.get(&cell).map(|used| used.bytes.as_slice())
    }

    fn constant(&mut self, cell: Cell) -> Step<Vec<u8>> {
        Ok(self.owner.with(cell, |row| used_of(row)).bytes)
    }
}
