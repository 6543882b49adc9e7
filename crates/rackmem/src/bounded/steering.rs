//! Partitioned writers: each part of a structure has one node that changes it, and others leave
//! their changes to that node (BI §3.3).
//!
//! The requests are in trays that a mutex of the owner brings along, so they take the way that all
//! coherent memory takes: nothing here depends on the fabric.

use crate::bytes::value::Value;
use crate::coherent::fingerprint::fingerprint;
use crate::error::{LockError, RackError, RegionError, SteerError};
use crate::locked::{Condvar, Content, Mutex, MutexGuard};
use crate::node::Node;
use crate::region::{Region, RegionSpec};
use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// Bytes of a request or an answer, at most.
const ROOM: usize = 224;
/// Requests that wait at an owner, at most: who comes later waits for a tray.
const TRAYS: usize = 16;

const FREE: u64 = 0;
/// The owner has not seen it.
const ASKED: u64 = 1;
/// The owner is about it.
const TAKEN: u64 = 2;
const ANSWERED: u64 = 3;
/// The owner has taken it, and has lost the answer.
const LOST: u64 = 4;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Tray {
    state: u64,
    ticket: u64,
    /// Who asks, and in which of its lives.
    node: u32,
    incarnation: u32,
    bytes: [u8; ROOM],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Desk {
    /// 1 while there is an owner.
    open: u64,
    /// Tickets that were given out.
    tickets: u64,
    /// What it was emptied at: no answer is to a request of before.
    emptied: u64,
    trays: [Tray; TRAYS],
}

/// What a partition's region says: where its locks are. Zeros until they are there.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Plate {
    desk: u64,
    asked: u64,
    answered: u64,
}

impl Desk {
    /// Empty.
    const fn new() -> Self {
        let free = Tray {
            state: FREE,
            ticket: 0,
            node: 0,
            incarnation: 0,
            bytes: [0; ROOM],
        };
        Desk {
            open: 1,
            tickets: 0,
            emptied: 0,
            trays: [free; TRAYS],
        }
    }
}

type Held<'a> = MutexGuard<'a, Desk>;

/// Where an owner and those who ask meet.
struct Meeting {
    node: Node,
    name: String,
    desk: Mutex<Desk>,
    /// For the owner: a request has come.
    asked: Condvar,
    /// For those who ask: an answer has come, or a tray is free.
    answered: Condvar,
}

impl Meeting {
    fn no_owner(&self) -> SteerError {
        SteerError::NoOwner {
            name: self.name.clone(),
        }
    }

    fn unanswered(&self) -> SteerError {
        SteerError::Unanswered {
            name: self.name.clone(),
        }
    }

    /// What a node took along that died with the desk is older than what others did: nothing of it
    /// may be done twice, so all of it is forgotten, and who waits hears that.
    fn whole<'a>(&self, mut desk: Held<'a>) -> Held<'a> {
        if desk.content() != Content::Current {
            *desk = Desk {
                emptied: desk.token(),
                open: desk.open,
                ..Desk::new()
            };
        }
        desk
    }

    fn enter(&self) -> Result<Held<'_>, LockError> {
        self.desk.lock().map(|desk| self.whole(desk))
    }

    fn wait<'a>(&self, desk: Held<'a>) -> Result<Held<'a>, LockError> {
        self.answered.wait(desk).map(|desk| self.whole(desk))
    }
}

/// Where its region and locks are.
fn spec<Q: Value, R: Value>(name: &str) -> RegionSpec {
    const {
        assert!(
            size_of::<Q>() <= ROOM && size_of::<R>() <= ROOM,
            "a request or an answer has 224 bytes at most"
        );
    }
    let of = u64::from(fingerprint::<Q>()) << 32 | u64::from(fingerprint::<R>());
    RegionSpec::new(name, size_of::<Plate>()).element(of)
}

/// A part of a structure that one node changes, as any node sees it: a change is left to the owner
/// (BI §3.3, "partitioned writers").
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::bounded::{Partition, PartitionOwner};
/// use std::time::Duration;
///
/// let rack = Rack::local(2)?;
/// let mut owner = PartitionOwner::<u64, u64>::own(&rack.node(0), "prices/0")?;
/// std::thread::scope(|threads| -> rackmem::Result<()> {
///     let there = rack.node(1);
///     let asks = threads.spawn(move || {
///         Partition::<u64, u64>::named(&there, "prices/0")?.steer(&7)
///     });
///     let mut price = 30;
///     while owner.serve(Duration::from_secs(1), |by| { price += by; price })? == 0 {}
///     assert_eq!(asks.join().unwrap()?, 37);
///     Ok(())
/// })
/// # }
/// ```
pub struct Partition<Q: Value, R: Value> {
    at: Meeting,
    of: PhantomData<fn(Q) -> R>,
}

/// The one node that changes a part of a structure. Others ask it to, by a [`Partition`]. Dropped,
/// it gives the partition up, and another handle may own it.
pub struct PartitionOwner<Q: Value, R: Value> {
    at: Option<Meeting>,
    of: PhantomData<fn(Q) -> R>,
}

impl<Q: Value, R: Value> Partition<Q, R> {
    /// The partition of this name, on any node, that of the owner included.
    ///
    /// # Errors
    /// [`SteerError::NoOwner`] when none has it, or has died;
    /// [`RegionError::Mismatch`] when requests or answers are of other types;
    /// those of [`Node::open_region`] and [`Mutex::attach`].
    pub fn named(node: &Node, name: &str) -> Result<Self, SteerError> {
        let none = || SteerError::NoOwner { name: name.into() };
        let region = match node.open_region(&spec::<Q, R>(name)) {
            Ok(region) => region,
            Err(
                RegionError::NotFound { .. }
                | RegionError::NameLost { .. }
                | RegionError::Removed { .. },
            ) => return Err(none()),
            Err(error) => return Err(error.into()),
        };
        let mut plate = Plate::new_zeroed();
        region.read(0, plate.as_mut_bytes())?;
        // Zeros: it is about to be owned.
        if plate.answered == 0 {
            return Err(none());
        }
        let attach = || -> Result<Meeting, LockError> {
            Ok(Meeting {
                node: node.clone(),
                name: name.into(),
                desk: Mutex::attach(node, plate.desk)?,
                asked: Condvar::attach(node, plate.asked)?,
                answered: Condvar::attach(node, plate.answered)?,
            })
        };
        match attach() {
            Ok(at) => Ok(Partition {
                at,
                of: PhantomData,
            }),
            Err(error) if is_gone(&error) => Err(none()),
            Err(error) => Err(error.into()),
        }
    }

    /// Has the owner do this, and waits for its answer. The owner does it once, or not at all.
    /// Requests of one thread are done in their order; 16 wait at an owner, others before it.
    ///
    /// # Errors
    /// [`SteerError::NoOwner`]: it was not done. [`SteerError::Unanswered`]: the owner has died or
    /// given up the partition, or has failed in between, or a node has died that had the requests
    /// just then: it was done or was not. Those of [`Mutex::lock`] and [`Condvar::wait`],
    /// before it was asked.
    pub fn steer(&self, request: &Q) -> Result<R, SteerError> {
        let at = &self.at;
        let not_asked = |error: LockError| match is_gone(&error) {
            true => at.no_owner(),
            false => error.into(),
        };
        let node = &at.node;
        let mut desk = at.enter().map_err(not_asked)?;
        let tray = loop {
            if desk.open == 0 {
                return Err(at.no_owner());
            }
            // Trays of the dead are nobody's, but for one that the owner is about to fill.
            let free = desk.trays.iter().position(|tray| {
                let asker = u16::try_from(tray.node).unwrap_or(u16::MAX);
                let known = node.incarnation_of(asker);
                // One that this process has not heard of yet lives.
                let dead =
                    tray.incarnation < known || tray.incarnation == known && !node.is_member(asker);
                tray.state == FREE || tray.state != TAKEN && dead
            });
            match free {
                Some(tray) => break tray,
                None => desk = at.wait(desk).map_err(not_asked)?,
            }
        };
        desk.tickets += 1;
        let (ticket, emptied) = (desk.tickets, desk.emptied);
        let mut bytes = [0; ROOM];
        bytes[..size_of::<Q>()].copy_from_slice(request.as_bytes());
        desk.trays[tray] = Tray {
            state: ASKED,
            ticket,
            node: node.id().into(),
            incarnation: node.incarnation_of(node.id()),
            bytes,
        };
        self.answer(desk, tray, (ticket, emptied))
            .map_err(|_| at.unanswered())?
            .ok_or_else(|| at.unanswered())
    }

    /// The answer, when it is there; none when the request was forgotten.
    fn answer(
        &self,
        mut desk: Held<'_>,
        tray: usize,
        (ticket, emptied): (u64, u64),
    ) -> Result<Option<R>, LockError> {
        self.at.asked.notify_one()?;
        loop {
            if desk.emptied != emptied || desk.trays[tray].ticket != ticket || desk.open == 0 {
                return Ok(None);
            }
            let mine = &mut desk.trays[tray];
            if let ANSWERED | LOST = mine.state {
                let answer = R::read_from_bytes(&mine.bytes[..size_of::<R>()]).ok();
                let answer = answer.filter(|_| mine.state == ANSWERED);
                mine.state = FREE;
                // Somebody may wait for a tray.
                self.at.answered.notify_all()?;
                return Ok(answer);
            }
            desk = self.at.wait(desk)?;
        }
    }
}

impl<Q: Value, R: Value> PartitionOwner<Q, R> {
    /// Owns the partition of this name, with what waits at this node from now on. What has died
    /// with an earlier owner is forgotten.
    ///
    /// # Errors
    /// [`SteerError::Owned`]; [`RegionError::Mismatch`]; those of [`Node::create_region`],
    /// [`Mutex::create`] and [`Condvar::create`].
    pub fn own(node: &Node, name: &str) -> Result<Self, SteerError> {
        let region = node.create_region(&spec::<Q, R>(name).renew())?;
        if !region.is_new() {
            return Err(SteerError::Owned {
                name: name.into(),
                by: region.home().0,
            });
        }
        let made = Self::meet(node, &region);
        if made.is_err() {
            node.remove_region(name)?;
        }
        made
    }

    fn meet(node: &Node, region: &Region) -> Result<Self, SteerError> {
        let at = Meeting {
            node: node.clone(),
            name: region.name().into(),
            desk: Mutex::create(node, Desk::new())?,
            asked: Condvar::create(node)?,
            answered: Condvar::create(node)?,
        };
        let plate = Plate {
            desk: at.desk.addr(),
            asked: at.asked.addr(),
            answered: at.answered.addr(),
        };
        region.write(0, plate.as_bytes())?;
        Ok(PartitionOwner {
            at: Some(at),
            of: PhantomData,
        })
    }

    /// Does what others ask, and says how much that was: 0 when nothing has come within this time.
    /// What is asked meanwhile is left to the next call.
    ///
    /// # Errors
    /// Those of [`Mutex::lock`] and [`Condvar::wait_within`]. Who asks for what was done then hears
    /// at the next call that nobody knows, and so after a panic of `does`.
    pub fn serve(
        &mut self,
        within: Duration,
        mut does: impl FnMut(Q) -> R,
    ) -> Result<usize, SteerError> {
        let Some(at) = &self.at else { return Ok(0) };
        let until = Instant::now().checked_add(within);
        let mut desk = at.enter()?;
        // Nobody else takes requests: these were taken by a call that has failed.
        let mut taken = desk.trays.iter_mut().filter(|tray| tray.state == TAKEN);
        if taken.by_ref().map(|tray| tray.state = LOST).count() > 0 {
            at.answered.notify_all()?;
        }
        while !desk.trays.iter().any(|tray| tray.state == ASKED) {
            let left = until.map_or(Duration::MAX, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(0);
            }
            desk = at.whole(at.asked.wait_within(desk, left)?.0);
        }
        let mut taken = Vec::with_capacity(TRAYS);
        for (nth, tray) in desk.trays.iter_mut().enumerate() {
            let request = Q::read_from_bytes(&tray.bytes[..size_of::<Q>()]);
            if let (ASKED, Ok(request)) = (tray.state, request) {
                tray.state = TAKEN;
                taken.push((tray.ticket, nth, request));
            }
        }
        let emptied = desk.emptied;
        drop(desk);
        taken.sort_by_key(|(ticket, ..)| *ticket);
        let done = taken.len();
        let answers = taken
            .into_iter()
            .map(|(ticket, nth, request)| (ticket, nth, does(request)));
        let answers: Vec<(u64, usize, R)> = answers.collect();
        let mut desk = at.enter()?;
        if desk.emptied == emptied {
            for (ticket, nth, answer) in answers {
                let tray = &mut desk.trays[nth];
                if (tray.state, tray.ticket) == (TAKEN, ticket) {
                    tray.state = ANSWERED;
                    tray.bytes[..size_of::<R>()].copy_from_slice(answer.as_bytes());
                }
            }
        }
        drop(desk);
        at.answered.notify_all()?;
        Ok(done)
    }

    fn give_up(at: Meeting) -> Result<(), SteerError> {
        at.enter()?.open = 0;
        at.answered.notify_all()?;
        at.node.remove_region(&at.name)?;
        at.asked.free()?;
        at.answered.free()?;
        at.desk.free()?;
        Ok(())
    }
}

impl<Q: Value, R: Value> Drop for PartitionOwner<Q, R> {
    fn drop(&mut self) {
        // Where the rack is closed already it goes with this node's memory.
        let _ = self.at.take().map(Self::give_up);
    }
}

/// Whether a lock went with its owner.
fn is_gone(error: &LockError) -> bool {
    matches!(
        error,
        LockError::Freed { .. }
            | LockError::NoLock { .. }
            | LockError::Rack(RackError::NodeLost { .. })
    )
}

impl<Q: Value, R: Value> fmt::Debug for Partition<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partition")
            .field("name", &self.at.name)
            .finish_non_exhaustive()
    }
}

impl<Q: Value, R: Value> fmt::Debug for PartitionOwner<Q, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.at.as_ref().map(|at| &at.name);
        f.debug_struct("PartitionOwner")
            .field("name", &name)
            .finish_non_exhaustive()
    }
}
