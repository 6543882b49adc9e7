//! A thread reads or writes a line.

use super::{Part, Replicas};
use crate::data_plane::kernel::reads::KernelLineCounts;
use crate::error::{AccessError, RackError};
use crate::host::access::Access;
use crate::host::driving::errand::Question;
use crate::host::here::Here;
use crate::membership::current_view::Looked;
use crate::ports::requester::{Borrowed, Slot};
use rackmem_fabric::{Body, Nobody, Whole};
use rackmem_proto::abd::{Command, Config, Effects, Outcome, Phase, Why};
use rackmem_proto::engine::{self, ReplicatedHost};
use rackmem_proto::wire::{Header, Seq, Tag};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a thread waits for packets without a look whether its operation has ended otherwise.
pub(in crate::host) const LOOK_UP: Duration = Duration::from_millis(2);
/// How long a quorum that was asked first has for its answers until all are asked:
/// some round trips.
const HEDGE: Duration = Duration::from_micros(200);
/// How long a member that had not answered by then is asked after the others.
const SLOW: Duration = Duration::from_secs(1);

/// Operations of a node's threads on replicated memory.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::diagnostics::CopyCounts;
/// use rackmem::{Rack, RegionSpec};
///
/// let rack = Rack::local(3)?;
/// let spec = RegionSpec::new("log", 640).copies(3);
/// let first = rack.node(0).create_region(&spec)?.replicated::<u64>(0)?;
/// for number in 1..=10 {
///     first.write(number)?;
/// }
/// let CopyCounts { writes, write_rounds, .. } = rack.node(0).metrics().copies;
/// // The switch learns the line's stamp from the first write, and knows it from then on.
/// assert_eq!((writes, write_rounds), (10, 3 + 9));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCounts {
    /// Reads that have ended well.
    pub reads: u64,
    /// Round trips that they took, all together.
    pub read_rounds: u64,
    /// Writes that have ended well.
    pub writes: u64,
    /// Round trips that they took, all together.
    pub write_rounds: u64,
    /// Writes of one round that a change of members cut off, and whose fate nobody could tell.
    pub interrupted: u64,
    /// Answers to questions for lines and their stamps, by programs in the kernels of the hosts
    /// that have the copies.
    pub by_kernel: u64,
    /// By the agents of other nodes.
    pub by_agent: u64,
    /// What came to the program in the kernel of this node's host about the copies that this node
    /// keeps, if there is one.
    pub in_kernel: Option<KernelLineCounts>,
}

impl CopyCounts {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Read { rounds, .. } => {
                self.reads += 1;
                self.read_rounds += u64::from(rounds);
            }
            Outcome::Written { rounds, .. } => {
                self.writes += 1;
                self.write_rounds += u64::from(rounds);
            }
            Outcome::Interrupted => self.interrupted += 1,
            Outcome::Refused(_) => {}
        }
    }
}

/// What an operation is of, and ends with.
#[derive(Clone, Copy)]
enum Of {
    /// A region, which began with this config of its group.
    Region(u32),
    /// An epoch, which fences the group; of a region that can be removed, also that.
    Epoch(u32, Option<u32>),
    /// The pages of such a region, which this node has for itself.
    Pages(u32),
}

impl Of {
    /// Whether it is of another region than that which began with this config.
    fn is_other_than(self, first: u32) -> bool {
        matches!(self, Of::Region(of) | Of::Pages(of) | Of::Epoch(_, Some(of)) if of != first)
    }

    fn is_of_pages(self) -> bool {
        matches!(self, Of::Pages(_))
    }

    /// Whether it is of another epoch than this.
    fn is_past(self, epoch: u32) -> bool {
        matches!(self, Of::Epoch(of, _) if of != epoch)
    }
}

/// A look at a slot's operation.
enum Taken {
    /// What came of it, and its value.
    Ended(Outcome, Vec<u8>),
    /// It waits. Its phase, if only a quorum has been asked in that.
    Waits(Option<(Seq, Phase)>),
}

impl Access {
    /// The content of a line, whole and as of one moment since the call. The region began with this
    /// config of its group.
    pub fn read_line(&self, line: Tag, first: u32) -> Result<Vec<u8>, AccessError> {
        self.operate(Command::Read(line), Vec::new(), Of::Region(first))
    }

    /// Writes a line, whole.
    pub fn write_line(&self, line: Tag, first: u32, value: Vec<u8>) -> Result<(), AccessError> {
        let written = self.operate(Command::Write(line), value, Of::Region(first));
        written.map(drop)
    }

    /// Asks those that have copies of a line.
    pub fn ask_copies(&self, asks: Asks) -> Result<Vec<u8>, AccessError> {
        self.operate(asks.command, asks.value, Of::Region(asks.first))
    }

    /// Carries out a command on a line of a group that epochs fence: in this epoch, or not at all.
    pub fn operate_in(
        &self,
        epoch: u32,
        command: Command,
        value: Vec<u8>,
    ) -> Result<Vec<u8>, AccessError> {
        self.operate(command, value, Of::Epoch(epoch, None))
    }

    /// The same of the region that began with this config of its group, and of no other that has
    /// its number next.
    pub fn operate_in_region(
        &self,
        (epoch, first): (u32, u32),
        command: Command,
        value: Vec<u8>,
    ) -> Result<Vec<u8>, AccessError> {
        self.operate(command, value, Of::Epoch(epoch, Some(first)))
    }

    /// The same for something that nobody waits for, which gives up sooner.
    pub fn operate_in_passing(
        &self,
        (epoch, first, patience): (u32, u32, Duration),
        command: Command,
        value: Vec<u8>,
    ) -> Result<Vec<u8>, AccessError> {
        let patience = patience.min(self.patience);
        self.operate_for(patience, command, value, Of::Epoch(epoch, Some(first)))
    }

    /// Carries out a command on a line of a region whose pages this node has for itself: as long as
    /// it has, or not at all.
    pub fn operate_pages(
        &self,
        first: u32,
        command: Command,
        value: Vec<u8>,
    ) -> Result<Vec<u8>, AccessError> {
        self.operate(command, value, Of::Pages(first))
    }

    fn operate(&self, command: Command, value: Vec<u8>, of: Of) -> Result<Vec<u8>, AccessError> {
        self.operate_for(self.patience, command, value, of)
    }

    fn operate_for(
        &self,
        patience: Duration,
        command: Command,
        value: Vec<u8>,
        of: Of,
    ) -> Result<Vec<u8>, AccessError> {
        let mut slot = match of {
            Of::Epoch(_, Some(_)) => self.borrow_spare(command, of, patience)?,
            _ => self.requesters.borrow()?,
        };
        let (nth, group) = (slot.number(), command.line().home().0);
        let pages = &self.agents.replicas.pages;
        let _pager = of.is_of_pages().then(|| pages.work(group, nth));
        let what = (command, of, patience);
        let mut operating = Operating::begin(self, &mut slot, what, value);
        loop {
            match operating.look(&mut slot) {
                ControlFlow::Break(over) => return over,
                ControlFlow::Continue(at_most) => operating.wait(&mut slot, at_most),
            }
        }
    }

    /// A requester for a turn of the rack's keeper: one that is free. It waits for none in
    /// particular, whose thread may be waiting for this turn.
    fn borrow_spare(
        &self,
        command: Command,
        of: Of,
        patience: Duration,
    ) -> Result<Borrowed<'_>, AccessError> {
        let began = Instant::now();
        loop {
            if let Some(slot) = self.requesters.borrow_free() {
                return Ok(slot?);
            }
            if let Some(error) = self.cuts_off(command.line(), of) {
                return Err(error);
            }
            if began.elapsed() >= patience {
                let node = self.requesters.node();
                return Err(AccessError::Rack(RackError::Timeout { node }));
            }
            std::thread::sleep(HEDGE);
        }
    }

    /// Why an operation on a line is not waited for any longer, however late it is.
    fn cuts_off(&self, line: Tag, of: Of) -> Option<AccessError> {
        let pages = &self.agents.replicas.pages;
        if self.closed.load(Relaxed) {
            Some(AccessError::Rack(RackError::Closed))
        } else if self.standing.is_fenced() {
            Some(AccessError::Rack(RackError::Fenced))
        } else if of.is_of_pages() && !pages.has(line.home().0) {
            // Another node has them, which takes that the rack goes on without this one.
            Some(AccessError::Rack(RackError::Fenced))
        } else if of.is_past(self.standing.epoch()) {
            Some(AccessError::Interrupted { addr: line.0 })
        } else {
            None
        }
    }

    /// Waits for packets, no longer than this, and takes those that come. `wait`: until another
    /// thread has taken some.
    pub(in crate::host) fn listen_for(
        &self,
        slot: &mut Slot,
        at_most: Duration,
        wait: impl FnOnce(Duration),
    ) {
        // A rebuild waits for requesters that are behind.
        slot.follow();
        if !slot.overlaps() {
            // Answers come while sending, in whichever thread does.
            return wait(at_most);
        }
        let mut came: Vec<(Header, Vec<u8>)> = Vec::new();
        slot.listen(at_most, |header, body| {
            if let Body::Bytes(bytes) = body {
                came.push((*header, bytes.to_vec()));
            }
        });
        for (header, bytes) in came {
            let (body, mut nobody) = (Body::Bytes(&bytes), Nobody);
            self.agents.packets.count(header.kind);
            let here = Here::new(&self.agents, slot.net(), body, &mut nobody);
            engine::packet(&mut here.at(header.offset), &header);
        }
    }
}

/// What an operation asks those that have copies of a line of the region that began with this
/// config of its group.
pub(crate) struct Asks {
    pub command: Command,
    /// What is written.
    pub value: Vec<u8>,
    pub first: u32,
}

impl Question for Asks {
    type Answer = Vec<u8>;

    /// There is: a majority, or time will tell.
    fn has_answerer(&self, _: &Access, _: &mut Option<Looked>) -> Option<Result<(), AccessError>> {
        Some(Ok(()))
    }

    fn unanswered(&self, access: &Access) -> AccessError {
        let config = access.agents.replicas.config(self.command.line().home().0);
        let needed = config.map_or(0, |config| config.quorum() as u8);
        silence(self.command, (0, needed))
    }
}

/// A read or write of a line that is under way in a requester's slot, for the thread that waits for
/// it or has several.
pub(in crate::host) struct Operating<'a> {
    access: &'a Access,
    command: Command,
    of: Of,
    patience: Duration,
    began: Instant,
    /// The phase in which only a quorum has been asked, and since when.
    first: (Option<(Seq, Phase)>, Instant),
}

impl<'a> Operating<'a> {
    /// One of a program, on a line of the region that began with this config of its group.
    pub fn of_region(access: &'a Access, slot: &mut Slot, asks: Asks) -> Self {
        let what = (asks.command, Of::Region(asks.first), access.patience);
        Operating::begin(access, slot, what, asks.value)
    }

    fn begin(
        access: &'a Access,
        slot: &mut Slot,
        (command, of, patience): (Command, Of, Duration),
        value: Vec<u8>,
    ) -> Self {
        let (nth, replicas) = (slot.number(), &access.agents.replicas);
        let group = command.line().home().0;
        replicas.sit_down(nth, slot.reply_port(), value);
        let mut nobody = Nobody;
        let mut here = Here::new(&access.agents, slot.net(), Body::None, &mut nobody);
        here.replicated(|abd, fx| {
            // Looked at in the same section: another region may have the number at any time,
            // and another node the pages.
            let now = abd.config(group);
            let gone = |now: &Config| now.is_removed() || of.is_other_than(now.first);
            match now.is_some_and(gone) {
                true => fx.done(nth, Outcome::Refused(Why::Removed)),
                false if of.is_of_pages() && !replicas.pages.has(group) => {}
                false => abd.command(nth, command, fx),
            }
        });
        let began = Instant::now();
        Operating {
            access,
            command,
            of,
            patience,
            began,
            first: (None, began),
        }
    }

    /// What came of it, if it is over; else how long packets may be waited for before the next
    /// look.
    pub fn look(&mut self, slot: &mut Slot) -> ControlFlow<Result<Vec<u8>, AccessError>, Duration> {
        let (nth, replicas) = (slot.number(), &self.access.agents.replicas);
        loop {
            let few = match replicas.take(nth) {
                Taken::Ended(outcome, value) => {
                    return ControlFlow::Break(ended(self.command, outcome, value));
                }
                Taken::Waits(few) => few,
            };
            if self.first.0 != few {
                self.first = (few, Instant::now());
            }
            let asked_for = self.first.1.elapsed();
            // Where packets are calls, all answers are here.
            if few.is_some() && (!slot.overlaps() || asked_for >= HEDGE) {
                self.ask_others(slot);
                continue;
            }
            let Some(error) = self.given_up(nth) else {
                return ControlFlow::Continue(few.map_or(LOOK_UP, |_| HEDGE - asked_for));
            };
            // It may have ended just now.
            return ControlFlow::Break(match replicas.stand_up(nth) {
                Some((outcome, value)) => ended(self.command, outcome, value),
                None => Err(error),
            });
        }
    }

    /// Why nobody waits for it any longer.
    fn given_up(&self, slot: u8) -> Option<AccessError> {
        let cut_off = self.access.cuts_off(self.command.line(), self.of);
        cut_off.or_else(|| {
            // Of a rack that this process leaves nobody may be left to answer.
            let deserted = self.access.standing.is_deserted();
            let late = deserted || self.began.elapsed() >= self.patience;
            late.then(|| self.access.agents.replicas.no_quorum(slot, self.command))
        })
    }

    /// Asks those as well whose answers a quorum should have made needless.
    fn ask_others(&self, slot: &Slot) {
        let (nth, mut nobody) = (slot.number(), Nobody);
        let mut here = Here::new(&self.access.agents, slot.net(), Body::None, &mut nobody);
        here.replicated(|abd, fx| {
            if abd.few(nth).is_some() {
                abd.retry(nth, fx);
            }
        });
    }

    /// Waits for packets, no longer than this, and takes those that come.
    pub fn wait(&self, slot: &mut Slot, at_most: Duration) {
        let (nth, replicas) = (slot.number(), &self.access.agents.replicas);
        self.access
            .listen_for(slot, at_most, |time| replicas.wait(nth, time));
    }
}

/// So many have answered, and so many are needed.
fn silence(command: Command, (answered, needed): (u8, u8)) -> AccessError {
    AccessError::NoQuorum {
        addr: command.line().0,
        answered,
        needed,
        writes: matches!(command, Command::Write(_)),
    }
}

/// What came of an operation.
fn ended(command: Command, outcome: Outcome, value: Vec<u8>) -> Result<Vec<u8>, AccessError> {
    let line = command.line();
    match outcome {
        Outcome::Read { .. } | Outcome::Written { .. } => Ok(value),
        Outcome::Interrupted => Err(AccessError::Interrupted { addr: line.0 }),
        Outcome::Refused(Why::Removed) => Err(AccessError::Removed { addr: line.0 }),
        Outcome::Refused(Why::NoLine | Why::Slot) => Err(AccessError::BadAddress { addr: line.0 }),
        Outcome::Refused(Why::Stamps) => Err(AccessError::NoStamp { addr: line.0 }),
    }
}

impl Part {
    /// Who was late a while ago may be as quick as the others now.
    fn forgive(&mut self) {
        let abd = &mut self.memory.abd;
        if abd.slow().is_empty() {
            self.forgiven = None;
        } else if *self.forgiven.get_or_insert_with(|| Instant::now() + SLOW) <= Instant::now() {
            abd.ask_a_quorum_first();
            self.forgiven = None;
        }
    }

    fn counted(&mut self, ended: Option<(Outcome, Vec<u8>)>) -> Option<(Outcome, Vec<u8>)> {
        if let Some((outcome, _)) = &ended {
            self.counts.count(*outcome);
        }
        ended
    }
}

impl Replicas {
    /// A thread is about to begin an operation in a slot that it has for itself.
    fn sit_down(&self, slot: u8, reply_port: u16, value: Vec<u8>) {
        let part = &mut *self.part();
        part.forgive();
        part.memory.lines.operands.begin(slot, value, reply_port);
    }

    /// What came of the operation, if it has ended.
    fn take(&self, slot: u8) -> Taken {
        let part = &mut *self.part();
        let ended = part.memory.lines.operands.take(slot);
        match part.counted(ended) {
            Some((outcome, value)) => Taken::Ended(outcome, value),
            None => Taken::Waits(part.memory.abd.few(slot)),
        }
    }

    /// What this node's threads have done.
    pub fn counts(&self) -> CopyCounts {
        let (counts, answerers, groups) = {
            let part = self.part();
            let groups = part.mirror.as_ref().map(|mirror| mirror.groups());
            (part.counts, part.memory.lines.kernels.answerers, groups)
        };
        let in_kernel = self.kernel.as_ref().zip(groups);
        CopyCounts {
            by_kernel: answerers.kernel,
            by_agent: answerers.agent,
            in_kernel: in_kernel.map(|(kernel, groups)| KernelLineCounts {
                groups: groups.into(),
                ..kernel.line_counts()
            }),
            ..counts
        }
    }

    /// The thread waits no longer.
    fn stand_up(&self, slot: u8) -> Option<(Outcome, Vec<u8>)> {
        let part = &mut *self.part();
        let ended = part.memory.abandon(slot);
        part.counted(ended)
    }

    fn no_quorum(&self, slot: u8, command: Command) -> AccessError {
        let progress = self.part().memory.abd.progress(slot);
        silence(command, progress.unwrap_or_default())
    }

    fn config(&self, group: u16) -> Option<Config> {
        self.part().memory.abd.config(group).copied()
    }

    /// Waits until some operation of this node has ended, but not for long: unless the one in this
    /// slot has.
    fn wait(&self, slot: u8, at_most: Duration) {
        // Copies that are durable answer when they are, also where packets are calls.
        rackmem_fabric::awake::sleeps();
        let part = self.part();
        if part.memory.lines.operands.has_ended(slot) {
            return;
        }
        self.waiting.fetch_add(1, Relaxed);
        let _ = self.ended.wait_timeout(part, at_most).whole();
        self.waiting.fetch_sub(1, Relaxed);
    }

    /// An operation has ended. Who waits without a lock held looks by itself after a while.
    pub(super) fn has_ended(&self) {
        if self.waiting.load(Relaxed) > 0 {
            self.ended.notify_all();
        }
    }
}
