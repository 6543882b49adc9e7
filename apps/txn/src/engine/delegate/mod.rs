//! Delegation, as a baseline: nothing is cached, and each cell is used where it is. A node owns the
//! cells that are at home there, in memory of its own, and others ask it for them: for a whole part
//! of a transaction where that needs one warehouse ([`crate::transactions::parts`]), or for a
//! cell. All of it is under two-phase locking, whose locks are their cells' owner's. A transaction
//! that has all that it needs has committed when all owners that it has asked know that it has.
//!
//! The protocol is a guest of the rack's nodes, and uses none of the rack's memory.

mod message;
mod owner;

use super::attempts::Attempts;
use super::{Engine, Outcome};
use crate::access::{Access, Cause, Footprint, Halt, Step};
use crate::error::{Result, TxnError};
use crate::layout::{Cell, Layout};
#[cfg(test)]
use crate::tests::Defect;
use message::{Answer, Ask, Question};
use owner::Owner;
use rackmem::Node;
use rackmem::guest::Guest;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Before a lock is asked for again that was not to be had, at most.
const PAUSE: Duration = Duration::from_micros(100);

/// The engine.
#[derive(Debug)]
pub struct Delegated {
    layout: Layout,
    nodes: Vec<Node>,
    /// By node of this process.
    seats: Vec<Mutex<Seats>>,
}

/// Seats that no thread has, and how many there are.
#[derive(Debug, Default)]
struct Seats {
    free: Vec<Seat>,
    count: u32,
}

/// What owners know a thread by, and how often it has asked.
#[derive(Debug)]
struct Seat {
    number: u32,
    asked: u64,
}

impl Delegated {
    /// Gives each node of a rack its cells: for [`rackmem::Builder::guests`] and
    /// [`rackmem::Config::guests`].
    pub fn guests(layout: Layout) -> impl Fn(u16) -> Arc<dyn Guest> + Send + Sync + 'static {
        move |me| Arc::new(Owner::new(me, layout.clone()))
    }

    #[cfg(test)]
    pub(crate) fn broken_guests(
        layout: Layout,
        defect: Defect,
    ) -> impl Fn(u16) -> Arc<dyn Guest> + Send + Sync + 'static {
        move |me| {
            let mut owner = Owner::new(me, layout.clone());
            owner.defect = Some(defect);
            Arc::new(owner)
        }
    }

    /// Cells whose locks are taken, of owners in this process.
    #[cfg(test)]
    pub(crate) fn locked(&self) -> usize {
        let of = |node: &Node| node.guest::<Owner>().map_or(0, Owner::locked);
        self.nodes.iter().map(of).sum()
    }

    /// The database of these nodes' rack, which has these guests. They are all nodes of the rack,
    /// or one.
    ///
    /// # Errors
    /// [`TxnError::NoOwner`]: a node has another guest, or none.
    pub fn new(nodes: &[Node], layout: Layout) -> Result<Delegated> {
        if nodes.iter().any(|node| node.guest::<Owner>().is_none()) {
            return Err(TxnError::NoOwner);
        }
        Ok(Delegated {
            layout,
            nodes: nodes.to_vec(),
            seats: nodes.iter().map(|_| Mutex::default()).collect(),
        })
    }

    /// Has something done with a seat that no other thread has meanwhile.
    fn seated<R>(&self, node: usize, f: impl FnOnce(&mut Seat) -> R) -> R {
        let seats = || self.seats[node].lock();
        let mut all = seats().unwrap_or_else(PoisonError::into_inner);
        let mut seat = all.free.pop().unwrap_or_else(|| {
            all.count += 1;
            Seat {
                number: all.count,
                asked: 0,
            }
        });
        drop(all);
        let done = f(&mut seat);
        let mut all = seats().unwrap_or_else(PoisonError::into_inner);
        all.free.push(seat);
        done
    }

    /// Asks an owner, by a call where it is this node.
    fn ask(&self, node: usize, seat: &mut Seat, (owner, ask): (u16, Ask<'_>)) -> Result<Answer> {
        let node = &self.nodes[node];
        let answer = match node.id() == owner {
            true => {
                let here = node.guest::<Owner>().ok_or(TxnError::NoOwner)?;
                Some(here.act((owner, seat.number), &ask))
            }
            false => {
                seat.asked += 1;
                let question = Question {
                    number: seat.asked,
                    seat: seat.number,
                    ask,
                };
                let answer = node.ask_for_bytes(owner, &question.to_bytes())?;
                Answer::from_bytes(&answer)
            }
        };
        answer.filter(|it| *it != Answer::Wrong).ok_or(UNEXPECTED)
    }
}

/// What no owner says of a whole database.
const UNEXPECTED: TxnError = TxnError::Broken {
    what: "an owner cannot do what it was asked",
};

impl Engine for Delegated {
    const NAME: &'static str = "delegate";

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn transact<R>(
        &self,
        node: usize,
        body: &mut dyn FnMut(&mut dyn Access) -> Step<R>,
    ) -> Result<Outcome<R>> {
        self.seated(node, |seat| {
            let mut attempts = Attempts::new();
            loop {
                let mut run = Run {
                    engine: self,
                    node,
                    seat,
                    wait: attempts.wait(),
                    cells: BTreeMap::new(),
                    asked: BTreeSet::new(),
                };
                let done = body(&mut run).and_then(|value| Ok((value, run.commit()?)));
                match done {
                    Ok(done) => return Ok(attempts.ended(Some(done))),
                    Err(Halt::Rollback) => {
                        run.end(|| Ask::Leave)?;
                        return Ok(attempts.ended(None));
                    }
                    Err(Halt::Abort(cause)) => {
                        run.end(|| Ask::Leave)?;
                        attempts.again(cause)?;
                    }
                    Err(Halt::Failed(error)) => {
                        // Where that fails, too, an owner is dead, and the database with it.
                        let _ = run.end(|| Ask::Leave);
                        return Err(error);
                    }
                }
            }
        })
    }

    fn peek(&self, node: usize, cell: Cell) -> Result<Vec<u8>> {
        let ask = (cell.home, Ask::Look { cell });
        match self.seated(node, |seat| self.ask(node, seat, ask))? {
            Answer::Content { bytes, .. } => Ok(bytes),
            _ => Err(UNEXPECTED),
        }
    }

    fn poke(&self, node: usize, cell: Cell, content: &[u8]) -> Result<()> {
        let ask = (cell.home, Ask::Poke { cell, content });
        self.seated(node, |seat| self.ask(node, seat, ask))?;
        Ok(())
    }
}

/// A cell that a run has asked for.
struct Mine {
    bytes: Vec<u8>,
    is_alone: bool,
    is_changed: bool,
}

/// One run of a transaction.
struct Run<'e> {
    engine: &'e Delegated,
    node: usize,
    seat: &'e mut Seat,
    wait: Duration,
    cells: BTreeMap<Cell, Mine>,
    /// Owners that know of it.
    asked: BTreeSet<u16>,
}

impl Run<'_> {
    fn ask(&mut self, owner: u16, ask: Ask<'_>) -> Result<Answer> {
        self.asked.insert(owner);
        self.engine.ask(self.node, self.seat, (owner, ask))
    }

    /// Asks for what takes locks, again while others have them.
    fn ask_for(&mut self, owner: u16, ask: Ask<'_>) -> Step<Vec<u8>> {
        let end = Instant::now() + self.wait;
        loop {
            match self.ask(owner, ask)? {
                Answer::Content { bytes, .. } | Answer::Part(bytes) => return Ok(bytes),
                Answer::Busy if Instant::now() < end => {
                    let most = PAUSE.as_micros() as u64;
                    std::thread::sleep(Duration::from_micros(fastrand::u64(1..=most)));
                }
                Answer::Busy => return Err(Halt::Abort(Cause::Lock)),
                Answer::Late => return Err(Halt::Abort(Cause::Changed)),
                _ => return Err(UNEXPECTED.into()),
            }
        }
    }

    fn mine(&mut self, cell: Cell, to_write: bool) -> Step<&mut Mine> {
        let known = self.cells.get(&cell);
        if known.is_none_or(|it| to_write && !it.is_alone) {
            let bytes = self.ask_for(cell.home, Ask::Read { cell, to_write })?;
            let mine = Mine {
                bytes,
                is_alone: to_write,
                is_changed: false,
            };
            self.cells.insert(cell, mine);
        }
        match self.cells.entry(cell) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(_) => Err(UNEXPECTED.into()),
        }
    }

    /// Tells owners what cells are to become, of one or of all.
    fn tell(&mut self, owner: Option<u16>) -> Result<()> {
        let of = |cell: &Cell| owner.is_none_or(|owner| cell.home == owner);
        let told: Vec<Cell> = self.cells.keys().copied().filter(of).collect();
        for cell in told {
            let Some(mine) = self.cells.remove(&cell).filter(|it| it.is_changed) else {
                continue;
            };
            let content = &mine.bytes;
            self.ask(cell.home, Ask::Write { cell, content })?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<Footprint> {
        self.tell(None)?;
        self.end(|| Ask::Commit)
    }

    /// Has all owners end it.
    fn end(&mut self, how: fn() -> Ask<'static>) -> Result<Footprint> {
        let mut footprint = Footprint::default();
        for owner in std::mem::take(&mut self.asked) {
            let answer = self.engine.ask(self.node, self.seat, (owner, how()))?;
            if let Answer::Left(left) = answer {
                footprint.reads.extend(left.reads);
                footprint.writes.extend(left.writes);
            }
        }
        Ok(footprint)
    }
}

impl Access for Run<'_> {
    fn read(&mut self, cell: Cell) -> Step<&[u8]> {
        Ok(&self.mine(cell, false)?.bytes)
    }

    fn claim(&mut self, cell: Cell) -> Step<&[u8]> {
        Ok(&self.mine(cell, true)?.bytes)
    }

    fn change(&mut self, cell: Cell) -> Step<&mut [u8]> {
        let mine = self.mine(cell, true)?;
        mine.is_changed = true;
        Ok(&mut mine.bytes)
    }

    fn kept(&self, cell: Cell) -> Option<&[u8]> {
        self.cells.get(&cell).map(|mine| mine.bytes.as_slice())
    }

    fn constant(&mut self, cell: Cell) -> Step<Vec<u8>> {
        self.ask_for(cell.home, Ask::Look { cell })
    }

    fn delegate(&mut self, home: usize, (code, part): (u32, &[u8])) -> Step<Option<Vec<u8>>> {
        let owner = home as u16;
        if self.engine.nodes[self.node].id() == owner {
            return Ok(None);
        }
        // What it has of the owner's cells here may be other than what is there then.
        self.tell(Some(owner))?;
        self.ask_for(owner, Ask::Part { code, part }).map(Some)
    }
}
