//! One lock at one node: what its threads may do, what the directory has promised,
//! what is owed to others.
//!
//! | right | here | others |
//! |---|---|---|
//! | none | no thread is inside | – |
//! | Shared | readers may be inside; the data is current | none writes |
//! | Modified | readers or one writer may be inside; the data is current, the queue is here | nothing |
//!
//! A right stays when all threads have left, and then costs nothing until another node wants the
//! lock (§3.3). Between the directory's grant and the right there is a *promise*: data or
//! acknowledgements are still under way. Who may enter is in this file; Algorithm 1 is in
//! `hand_over`, what packets do in `answer`.

use super::queue::{Queue, Waiter};
use super::regions::Arrival;
use super::settle::{Age, age, worse};
use super::{Access, with_version};
use crate::wire::{
    Copyset, Dest, GlobalStatus, Header, Kind, NodeId, Reason, RequesterId, Seq, Tag,
};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What the threads of a node may do with a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Right {
    /// Nothing.
    #[default]
    None,
    /// Read: permission S.
    Shared,
    /// Read and write: permission M.
    Modified,
}

impl Right {
    /// Whether it is enough.
    pub fn allows(self, access: Access) -> bool {
        match access {
            Access::Read => self >= Right::Shared,
            Access::Write => self == Right::Modified,
        }
    }
}

/// The bytes that travel with a packet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Body {
    /// None.
    None,
    /// What the lock protects, as the sender has it, in as many segments as the network needs,
    /// each with its `offset`. The host may leave zeros at the end out,
    /// and says so ([`super::with_used`]).
    Regions,
    /// The waiting nodes: [`Queue::records`].
    Queue(Queue),
}

/// A packet to send.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Send {
    /// To whom.
    pub to: Dest,
    /// What.
    pub header: Header,
    /// With which bytes.
    pub body: Body,
}

/// A thread is inside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entered {
    /// As what.
    pub access: Access,
    /// The fencing token. A writer's is higher than those of all other nodes' threads that were
    /// inside before, a reader's not lower than that of any writer before. Threads that hand over
    /// inside a node share one.
    pub token: u64,
    /// `OwnerDied`, `Lost` (older than the last hand-over) or `None`.
    pub reason: Reason,
}

/// What the host does, in this order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Stores the packet's body beside the regions, at its `offset`: it is not current yet.
    Store,
    /// What lies beside the regions takes their place.
    Install,
    /// What lies in the regions is not needed any more: the lock is at its home.
    Drop,
    /// One thread that waits is inside, and is counted. If none waits any more,
    /// the host leaves for it.
    Enter(Entered),
    /// Sends a packet; bytes are as the regions are now.
    Send(Send),
}

/// What one input causes: a packet for each node of the rack and a few more at most.
pub type Steps = Vec<Event>;

/// What the directory has granted and is not complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Promise {
    /// What.
    pub access: Access,
    /// The directory's number of it.
    pub version: u64,
    /// Sharers that have not acknowledged.
    pub missing: Copyset,
    /// This node has the data itself.
    pub own: bool,
}

/// A release that the directory has not approved yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Releasing {
    /// The version that it expects.
    pub version: u64,
    /// Readers that it lets in.
    pub readers: Vec<Waiter>,
    /// The next queue holder.
    pub writer: Option<Waiter>,
    /// Its queue.
    pub rest: Queue,
    /// This node stays a sharer.
    pub stay: bool,
}

/// Acknowledgements that came before what they are for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Acks {
    pub version: u64,
    pub from: Copyset,
}

/// A waiting writer to whom an acknowledgement is owed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Owed {
    pub to: NodeId,
    pub version: u64,
}

/// Whose lock, and how to reach its directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub node: NodeId,
    pub epoch: u32,
    pub tag: Tag,
    pub directory: Dest,
    pub cohort: u8,
}

impl At {
    /// A packet about the lock on behalf of a node.
    pub fn header(&self, kind: Kind, node: NodeId, version: u64) -> Header {
        let requester = RequesterId { node, slot: 0 };
        let mut header = Header::request(kind, self.epoch, self.tag, requester, Seq(0));
        header.sender = self.node;
        with_version(header, version)
    }
}

/// A lock at a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Lock {
    /// Bytes that it protects.
    pub(super) len: u32,
    pub(super) right: Right,
    /// The version that the right was granted with.
    pub(super) since: u64,
    /// Grants up to here are over: given up, or refused when an acknowledgement was asked for.
    pub(super) floor: u64,
    /// How new the data here is.
    pub(super) age: Age,
    /// What is wrong with the data.
    pub(super) reason: Reason,
    /// The directory may take this node for the one that gives the data to readers that come.
    pub(super) keeper: bool,
    pub(super) readers: u16,
    pub(super) writer: bool,
    /// Entries since another node began to wait.
    pub(super) passes: u8,
    /// What threads wait for.
    pub(super) want: Option<Access>,
    /// What the directory was asked for.
    pub(super) asked: Option<Access>,
    /// What the directory was asked for and no thread waits for any more. It may come, and what the
    /// lock protects before the grant.
    pub(super) left: Option<Access>,
    pub(super) promise: Option<Promise>,
    pub(super) acks: Acks,
    pub(super) arrival: Arrival,
    pub(super) owed: Option<Owed>,
    pub(super) queue: Queue,
    /// The directory's last number that this queue holder has heard.
    pub(super) seen: u64,
    pub(super) releasing: Option<Box<Releasing>>,
    /// The epoch that ended while a release was under way, if no right has come since.
    pub(super) passed: Option<u32>,
    /// Whom the queue went to, and what it was: sent again when that node asks.
    pub(super) given: Option<(NodeId, Queue)>,
}

impl Lock {
    /// A lock that this node has never had.
    pub fn new(len: u32) -> Self {
        Lock {
            len,
            ..Lock::default()
        }
    }

    /// A new lock, at its home.
    pub(super) fn at_home(len: u32, epoch: u32) -> Self {
        let first = super::first(epoch);
        Lock {
            right: Right::Modified,
            keeper: true,
            since: first,
            age: age(first, Right::Modified),
            seen: first,
            ..Lock::new(len)
        }
    }

    /// What the node's threads may do with it.
    pub fn right(&self) -> Right {
        self.right
    }

    /// A release that is under way: the version that it expects. No thread enters until the
    /// directory has answered.
    pub fn releasing(&self) -> Option<u64> {
        self.releasing.as_ref().map(|releasing| releasing.version)
    }

    /// What is promised.
    pub fn promise(&self) -> Option<&Promise> {
        self.promise.as_ref()
    }

    /// Threads inside: readers, and whether a writer.
    pub fn inside(&self) -> (u16, bool) {
        (self.readers, self.writer)
    }

    /// What threads here wait for.
    pub fn waits(&self) -> Option<Access> {
        self.want
    }

    /// Nodes that are known here to wait.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The version of its right.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// The fencing token of the holder, or of a thread that enters without a packet.
    pub fn token(&self) -> u64 {
        // Readers that stay where a writer's release was cut off go on with what it left,
        // and not with less.
        age(self.since, self.right).max(self.age)
    }

    /// What is wrong with the data, if anything is.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Whether [`super::Blade::retry`] would ask again for something.
    pub fn unfinished(&self) -> bool {
        self.releasing.is_some() || self.promise.is_some() || self.asked.is_some()
    }

    /// What [`super::Blade::retry`] would ask for: a number that changes when some of it has come,
    /// and zero when it waits for nothing. An approval that is refused is still awaited.
    pub fn awaits(&self) -> u32 {
        let (stage, came) = if self.releasing.is_some() {
            (1, 0)
        } else if let Some(promise) = self.promise {
            let part = match self.arrival.version == promise.version {
                true => self.arrival.count(),
                false => 0,
            };
            let version = promise.version as u32;
            (
                2,
                version ^ promise.missing.0.rotate_left(8) ^ part.rotate_left(24),
            )
        } else {
            let asked = self.asked.map(|access| access as u32);
            return asked.map_or(0, |access| access << 2 | 3);
        };
        came << 2 | stage
    }

    /// Bytes that it protects.
    pub fn protects(&self) -> u32 {
        self.len
    }

    /// Whether another node waits for this one to leave.
    pub fn contended(&self) -> bool {
        self.owed.is_some() || (self.right == Right::Modified && !self.queue.is_empty())
    }

    /// Whether a thread may enter now. While others wait a node's threads enter a bounded number of
    /// times (cohorting).
    fn open(&self, at: &At, access: Access) -> bool {
        let free = match access {
            Access::Read => !self.writer,
            Access::Write => !self.writer && self.readers == 0,
        };
        let turn = !self.contended() || self.passes < at.cohort;
        free && turn && self.releasing.is_none() && self.right.allows(access)
    }

    /// A thread wants to enter: it is inside, or it waits for [`Event::Enter`].
    pub(super) fn enter(&mut self, at: &At, access: Access, steps: &mut Steps) -> Option<Entered> {
        if self.open(at, access) {
            self.passes += u8::from(self.contended());
            return Some(self.admit(access));
        }
        self.want = self.want.max(Some(access));
        self.settle(at, steps);
        None
    }

    /// A thread leaves; `next` is one of the same node that wants to be next.
    pub(super) fn leave(
        &mut self,
        at: &At,
        access: Access,
        next: Option<Access>,
        steps: &mut Steps,
    ) -> Option<Entered> {
        if access == Access::Write && self.writer {
            // Who was told has put it right, or goes on with it.
            self.reason = Reason::None;
        }
        self.go(access);
        if let Some(next) = next
            && let Some(entered) = self.enter(at, next, steps)
        {
            return Some(entered);
        }
        self.settle(at, steps);
        None
    }

    /// A thread that was let in is not there to enter: whoever comes next is told what it would
    /// have been.
    pub(super) fn decline(&mut self, at: &At, access: Access, steps: &mut Steps) {
        self.go(access);
        self.settle(at, steps);
    }

    /// The writer inside has found this wrong with the data.
    pub(super) fn found(&mut self, reason: Reason) {
        self.reason = worse(self.reason, reason);
    }

    fn go(&mut self, access: Access) {
        match access {
            Access::Read => self.readers = self.readers.saturating_sub(1),
            Access::Write => self.writer = false,
        }
    }

    fn admit(&mut self, access: Access) -> Entered {
        match access {
            Access::Read => self.readers = self.readers.saturating_add(1),
            Access::Write => self.writer = true,
        }
        Entered {
            access,
            // The readers of a grant and the writer behind them have one version.
            token: self.token(),
            reason: self.reason,
        }
    }

    /// Lets a thread in that waits, if the right is enough now.
    fn serve(&mut self, steps: &mut Steps) {
        if let Some(want) = self.want
            && self.right.allows(want)
            && (want == Access::Read || self.readers == 0)
        {
            self.want = None;
            let entered = self.admit(want);
            steps.push(Event::Enter(entered));
        }
    }

    /// Lets a thread in that waited for another one of this node.
    fn readmit(&mut self, at: &At, steps: &mut Steps) {
        if let Some(want) = self.want
            && self.open(at, want)
        {
            self.passes += u8::from(self.contended());
            self.serve(steps);
        }
    }

    /// Everything that may follow from a change, until nothing does.
    pub(super) fn settle(&mut self, at: &At, steps: &mut Steps) {
        self.complete(steps);
        self.readmit(at, steps);
        self.give_up(at, steps);
        self.release(at, steps);
        self.ask(at, steps);
    }

    /// A promise becomes a right.
    fn complete(&mut self, steps: &mut Steps) {
        let Some(promise) = self.promise else { return };
        let whole = self.arrival.complete();
        // Only what was sent for this very grant: a release that is not approved has sent its data,
        // too.
        let came = whole && self.arrival.version == promise.version;
        if !promise.missing.is_empty() || !(came || promise.own) {
            return;
        }
        if !promise.own {
            steps.push(Event::Install);
        }
        (self.promise, self.passed) = (None, None);
        (self.arrival, self.left) = (Arrival::default(), None);
        self.right = match promise.access {
            Access::Read => Right::Shared,
            Access::Write => Right::Modified,
        };
        (self.since, self.age) = (promise.version, age(promise.version, self.right));
        self.keeper = promise.own || self.right == Right::Modified;
        self.passes = 0;
        if self.asked <= Some(promise.access) {
            self.asked = None;
        }
        self.serve(steps);
    }

    /// A sharer that is done makes way for the writer that waits (Inv-Ack).
    fn give_up(&mut self, at: &At, steps: &mut Steps) {
        let Some(owed) = self.owed else { return };
        if self.right == Right::Shared && self.readers == 0 {
            self.make_way(at, owed, steps);
        }
    }

    /// Gives up whatever was granted before `owed`, for good, and says so.
    pub(super) fn make_way(&mut self, at: &At, owed: Owed, steps: &mut Steps) {
        self.right = Right::None;
        self.promise = None;
        self.owed = None;
        self.passes = 0;
        self.floor = self.floor.max(owed.version);
        self.queue.forget(self.floor);
        let header = at.header(Kind::InvAck, owed.to, owed.version);
        steps.push(Event::Send(Send {
            to: Dest::Agent(owed.to),
            header,
            body: Body::None,
        }));
    }

    /// Asks the directory for what threads want, once.
    fn ask(&mut self, at: &At, steps: &mut Steps) {
        let Some(want) = self.want else { return };
        let coming = self.promise.is_some_and(|p| p.access >= want);
        let held = self.right == Right::Modified || self.owed.is_some();
        if self.asked >= Some(want) || coming || held {
            return;
        }
        self.request(at, want, steps);
    }

    /// Asks the directory.
    pub(super) fn request(&mut self, at: &At, access: Access, steps: &mut Steps) {
        self.asked = Some(access);
        let mut header = at.header(Kind::Acquire, at.node, 0);
        header.status = access.status();
        steps.push(Event::Send(Send {
            to: at.directory,
            header,
            body: Body::None,
        }));
    }

    /// After a timeout: asks again. Says whether it waits for anything.
    pub(super) fn retry(&mut self, at: &At, steps: &mut Steps) -> bool {
        if let Some(releasing) = &self.releasing {
            steps.push(Event::Send(self.release_packet(at, releasing)));
            return true;
        }
        match (self.promise, self.owed) {
            (Some(promise), Some(owed)) if promise.access == Access::Read => {
                // The data did not come, and a writer waits behind: without this they would wait
                // for each other.
                self.make_way(at, owed, steps);
                self.asked = None;
                self.settle(at, steps);
            }
            (Some(promise), _) => self.request(
                at,
                promise.access.max(self.want.unwrap_or(promise.access)),
                steps,
            ),
            (None, _) => match self.asked {
                Some(asked) => self.request(at, asked, steps),
                None => return false,
            },
        }
        true
    }

    /// No thread waits any more. What was asked for may still come,
    /// and then stays until a node wants it.
    pub(super) fn cancel(&mut self) {
        self.left = self.left.max(self.asked);
        self.want = None;
        self.asked = None;
    }

    /// A packet that gives what the lock protects to a node.
    pub(super) fn give(&self, at: &At, to: NodeId, version: u64, steps: &mut Steps) {
        let mut header = at.header(Kind::Give, to, version);
        header.status = GlobalStatus::Shared;
        header.flags = match self.len == 0 {
            true => header.flags,
            false => header.flags.and(crate::wire::Flags::DATA),
        };
        steps.push(Event::Send(Send {
            to: Dest::Agent(to),
            header,
            body: Body::Regions,
        }));
    }
}
