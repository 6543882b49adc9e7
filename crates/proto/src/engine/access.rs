//! What a thread does that found no usable copy of a block, or wants its lock or something of its
//! home: the requester's side of an access, whatever runs it.
//!
//! Two questions are answered here. What does the operation need, as the cache stands ([`plan`])?
//! And what is to be done next about its event ([`Access::next`])? A host carries out what [`Do`]
//! says, in that order, and decides when: it has the threads, the clock and the bytes.
//!
//! | purpose | request | when it is granted | then |
//! |---|---|---|---|
//! | read, write | READ-MISS, WRITE-MISS | use the block, then let the entry be `Shared`, `Modified` | unlock |
//! | upgrade | WRITE-SHARED | the same, `Modified` | unlock |
//! | evict clean | EVICT-SHARED | the entry is `Invalid` | unlock |
//! | evict dirty | EVICT-MODIFIED | the entry is `Invalid`, and only then the bytes go home | unlock |
//! | hold | LOCK-READ, LOCK-WRITE | the application has the lock | unlock, when it lets go |
//! | probe | LOCK-READ | nothing: who had the lock has ended its event | unlock |
//! | call | `Alloc`, `Free`, a guest's question … | nothing: it has happened | – |
//!
//! | refused | read, write, upgrade | evict | hold, probe | call |
//! |---|---|---|---|---|
//! | `Locked` | back off | back off | back off | back off |
//! | `Invalid`, `Moved` | again | look at the entry again | again | again |
//! | `Fenced` | again | look at the entry again | again | again; of a guest's question nobody knows whether it was heard |
//! | `NoMemory` | fail | the entry is `Invalid`: its region is removed | fail | fail |
//! | other | fail | fail | fail | fail |
//!
//! Three orders are what safety rests on. The operation runs *before* the entry is usable, and the
//! entry is usable *before* the rack's lock is let go: so a contended write cannot lose its block
//! before it has written, and a node that is asked for the block finds it. A dirty copy leaves the
//! cache *before* its bytes go home, so that no write is lost between the two; when the epoch ends
//! first, or the home answers no more, it is the only copy and comes back.

use super::Defect;
use crate::Output;
use crate::flowcc::{Event, LocalStatus, Requester, Step};
use crate::wire::{Kind, Reason, Tag};

/// What an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// Fetch a block to read it.
    Read,
    /// Fetch a block to change it.
    Write,
    /// Obtain the right to change a clean copy.
    Upgrade,
    /// Give a clean copy back.
    EvictClean,
    /// Write a dirty copy home and give it back.
    EvictDirty,
    /// Hold the block's bare lock.
    Hold {
        /// As a reader.
        shared: bool,
    },
    /// Be granted the lock once: who had it before has ended its event.
    Probe,
    /// Something that home does at once, and that takes no lock.
    Call(Kind),
}

impl Purpose {
    /// What empties an entry that has this status.
    pub fn to_evict(status: LocalStatus) -> Option<Self> {
        match status {
            LocalStatus::Invalid => None,
            LocalStatus::Shared => Some(Purpose::EvictClean),
            LocalStatus::Modified => Some(Purpose::EvictDirty),
        }
    }

    /// What asks for it.
    pub fn kind(self) -> Kind {
        match self {
            Purpose::Read => Kind::ReadMiss,
            Purpose::Write => Kind::WriteMiss,
            Purpose::Upgrade => Kind::WriteShared,
            Purpose::EvictClean => Kind::EvictShared,
            Purpose::EvictDirty => Kind::EvictModified,
            Purpose::Hold { shared: true } | Purpose::Probe => Kind::LockRead,
            Purpose::Hold { shared: false } => Kind::LockWrite,
            Purpose::Call(kind) => kind,
        }
    }

    /// What its cache entry, which is reserved for it, is afterwards. `None`: it needs no entry.
    pub fn leaves(self) -> Option<LocalStatus> {
        match self {
            Purpose::Read => Some(LocalStatus::Shared),
            Purpose::Write | Purpose::Upgrade => Some(LocalStatus::Modified),
            Purpose::EvictClean | Purpose::EvictDirty => Some(LocalStatus::Invalid),
            Purpose::Hold { .. } | Purpose::Probe | Purpose::Call(_) => None,
        }
    }

    /// Whether it empties its entry.
    pub fn evicts(self) -> bool {
        matches!(self, Purpose::EvictClean | Purpose::EvictDirty)
    }

    /// Whether it brings a block's bytes.
    pub fn fetches(self) -> bool {
        matches!(self, Purpose::Read | Purpose::Write)
    }

    /// Whether it takes the block's lock.
    pub fn locks(self) -> bool {
        !matches!(self, Purpose::Call(_))
    }

    /// Whether it takes it as a reader.
    pub fn shares(self) -> bool {
        self.kind().locks_shared()
    }

    /// What follows a refusal.
    pub fn refused(self, reason: Reason) -> Then {
        match reason {
            Reason::Locked => Then::BackOff,
            Reason::Fenced if self.kind() == Kind::GuestAsk => Then::Fail(reason),
            Reason::Invalid | Reason::Moved | Reason::Fenced => match self.evicts() {
                true => Then::Relook,
                false => Then::Again,
            },
            _ => Then::Fail(reason),
        }
    }
}

/// What follows an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Then {
    /// It has happened.
    Done,
    /// The operation looks at the cache again.
    Again,
    /// The eviction looks at its entry again, which stays reserved:
    /// the copy was taken or downgraded.
    Relook,
    /// Somebody else has the block locked: the operation waits, and looks at the cache again.
    BackOff,
    /// It cannot happen.
    Fail(Reason),
    /// There is no answer. What was granted, if anything, stays locked until the epoch ends.
    Lost,
}

/// What a host has to do about an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Do {
    /// Nothing until a packet comes or a timeout.
    Wait,
    /// Send this.
    Send(Output),
    /// Carry the operation out on the entry's bytes. Until [`Do::Set`] nobody else uses the entry.
    Use,
    /// The entry has this status from now on, and the event's block unless that is `Invalid`.
    Set(LocalStatus),
    /// The application has the lock until it calls [`Access::let_go`].
    Held,
    /// The event is over.
    Over(Then),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Stage {
    /// Answers are missing.
    Asking,
    /// The operation has run; the entry does not say so yet.
    Used,
    /// The entry is empty, and its bytes are to go home.
    Leaving,
    /// They are on their way.
    WritingBack,
    /// The application has the lock.
    Holding,
    /// It can be unlocked as soon as the unlock before it is acknowledged (§5.3.2).
    Ending(Then),
    /// Of [`Defect::UnlockFirst`]: it was unlocked, and nothing else has been done.
    Unlocked,
}

/// One event of a requester, from its beginning to its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    purpose: Purpose,
    tag: Tag,
    stage: Stage,
}

impl Access {
    /// Begins an event. What is returned is to be sent.
    #[inline]
    pub fn begin(
        purpose: Purpose,
        requester: &mut Requester,
        now: u64,
        (tag, offset, reply_port): (Tag, u32, u16),
    ) -> (Self, Output) {
        let kind = purpose.kind();
        let event = Event {
            kind,
            tag,
            offset,
            reply_port,
        };
        let access = Access {
            purpose,
            tag,
            stage: Stage::Asking,
        };
        (access, requester.begin(now, event))
    }

    /// An event whose home is no member. Nobody would answer, so nothing is sent, and it ends as
    /// what the end of an epoch cuts off.
    #[cold]
    pub fn begin_unheard(
        purpose: Purpose,
        requester: &mut Requester,
        now: u64,
        at: (Tag, u32, u16),
    ) -> Self {
        let (access, _) = Self::begin(purpose, requester, now, at);
        requester.refuse(Reason::Fenced);
        access
    }

    /// What it is for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Its address.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// The block whose lock it takes, if it takes one, and whether as a reader.
    pub fn lock(&self) -> Option<(Tag, bool)> {
        let lock = (self.tag, self.purpose.shares());
        self.purpose.locks().then_some(lock)
    }

    /// Whether the application holds the block's lock by it.
    pub fn is_held(&self) -> bool {
        self.stage == Stage::Holding
    }

    /// Whether what it was for is done, or will not be: only its unlock is left.
    pub fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Ending(_))
    }

    /// Whether its block is on its way home, and nowhere else in the cache's eyes.
    pub fn is_leaving(&self) -> bool {
        self.stage == Stage::WritingBack
    }

    /// The application lets the lock go.
    pub fn let_go(&mut self) {
        if self.is_held() {
            self.stage = Stage::Ending(Then::Done);
        }
    }

    /// Whether only a packet or a timeout makes it go on.
    #[inline]
    pub fn waits(&self, requester: &Requester) -> bool {
        match self.stage {
            Stage::Asking | Stage::WritingBack => requester.is_waiting(),
            Stage::Ending(_) => requester.holds() && !requester.can_unlock(),
            Stage::Unlocked => !requester.can_unlock(),
            _ => false,
        }
    }

    /// What is to be done next. To be called until it is [`Do::Wait`],
    /// [`Do::Held`] or [`Do::Over`].
    #[inline(always)]
    pub fn next(
        &mut self,
        requester: &mut Requester,
        now: impl FnOnce() -> u64,
        defect: Option<Defect>,
    ) -> Do {
        let early = defect == Some(Defect::InstallInPart)
            && self.stage == Stage::Asking
            && self.purpose.fetches()
            && requester.holds();
        if self.waits(requester) && !early {
            return Do::Wait;
        }
        match self.stage {
            Stage::Asking => match requester.step() {
                Step::Held(_) => self.granted(requester, now, defect),
                Step::Waiting => self.granted(requester, now, defect),
                Step::Refused(reason) if self.ignores(reason, defect) => {
                    self.granted(requester, now, defect)
                }
                // Its region is removed, and the copy is of no use to anybody.
                Step::Refused(Reason::NoMemory)
                    if self.purpose.evicts() && defect != Some(Defect::KeepRefused) =>
                {
                    self.stage = Stage::Ending(Then::Done);
                    Do::Set(LocalStatus::Invalid)
                }
                Step::Refused(reason) => self.end(self.purpose.refused(reason), requester, now),
                Step::Lost => Do::Over(Then::Lost),
            },
            Stage::Used => {
                self.stage = Stage::Ending(Then::Done);
                Do::Set(self.purpose.leaves().unwrap_or_default())
            }
            Stage::Leaving => {
                self.stage = Stage::WritingBack;
                match requester.write_back(now()) {
                    Some(output) => Do::Send(output),
                    None => self.come_back(requester.step(), defect),
                }
            }
            Stage::WritingBack => match requester.step() {
                Step::Held(_) if defect == Some(Defect::LeaveLate) => {
                    self.stage = Stage::Ending(Then::Done);
                    Do::Set(LocalStatus::Invalid)
                }
                Step::Held(_) => self.end(Then::Done, requester, now),
                step => self.come_back(step, defect),
            },
            Stage::Holding => Do::Held,
            Stage::Ending(then) => self.end(then, requester, now),
            Stage::Unlocked => {
                self.stage = Stage::Used;
                Do::Use
            }
        }
    }

    /// The block's lock is here, and everything that comes with it.
    #[inline(always)]
    fn granted(
        &mut self,
        requester: &mut Requester,
        now: impl FnOnce() -> u64,
        defect: Option<Defect>,
    ) -> Do {
        let (stage, next) = match self.purpose {
            Purpose::Read | Purpose::Write | Purpose::Upgrade => {
                if defect == Some(Defect::UnlockFirst)
                    && requester.can_unlock()
                    && let Some(output) = requester.unlock(now(), false)
                {
                    self.stage = Stage::Unlocked;
                    return Do::Send(output);
                }
                (Stage::Used, Do::Use)
            }
            Purpose::EvictClean => (Stage::Ending(Then::Done), Do::Set(LocalStatus::Invalid)),
            Purpose::EvictDirty if defect == Some(Defect::EvictWithoutWriteBack) => {
                (Stage::Ending(Then::Done), Do::Set(LocalStatus::Invalid))
            }
            Purpose::EvictDirty if defect == Some(Defect::LeaveLate) => {
                self.stage = Stage::WritingBack;
                return match requester.write_back(now()) {
                    Some(output) => Do::Send(output),
                    None => self.come_back(requester.step(), None),
                };
            }
            Purpose::EvictDirty => (Stage::Leaving, Do::Set(LocalStatus::Invalid)),
            Purpose::Hold { .. } => (Stage::Holding, Do::Held),
            Purpose::Probe | Purpose::Call(_) => return self.end(Then::Done, requester, now),
        };
        self.stage = stage;
        next
    }

    /// Home may have some of the block and not all: this is the only copy.
    fn come_back(&mut self, step: Step, defect: Option<Defect>) -> Do {
        let then = match step {
            Step::Refused(reason) => self.purpose.refused(reason),
            _ => Then::Lost,
        };
        self.stage = Stage::Ending(then);
        match defect {
            Some(Defect::SkipRestore) => Do::Over(then),
            _ => Do::Set(LocalStatus::Modified),
        }
    }

    /// The host waits no longer: what this says instead of [`Do::Wait`]. What is done stays done,
    /// and is unlocked at once.
    pub fn abandon(&mut self, requester: &mut Requester, now: u64) -> Do {
        match self.stage {
            Stage::WritingBack => self.come_back(Step::Lost, None),
            Stage::Ending(then) => match requester.unlock(now, then != Then::Done) {
                Some(output) => Do::Send(output),
                None => Do::Over(then),
            },
            _ => Do::Over(Then::Lost),
        }
    }

    /// What was refused after it had been granted, because its provider had nothing, leaves the
    /// entry's metadata as it was.
    #[inline]
    fn end(&mut self, then: Then, requester: &mut Requester, now: impl FnOnce() -> u64) -> Do {
        self.stage = Stage::Ending(then);
        if then == Then::Lost || !requester.holds() {
            return Do::Over(then);
        }
        if !requester.can_unlock() {
            return Do::Wait;
        }
        match requester.unlock(now(), then != Then::Done) {
            Some(output) => Do::Send(output),
            None => Do::Over(then),
        }
    }

    /// A refusal that is taken for a grant.
    fn ignores(&self, reason: Reason, defect: Option<Defect>) -> bool {
        let fetches = matches!(
            self.purpose,
            Purpose::Read | Purpose::Write | Purpose::Upgrade
        );
        match defect {
            Some(Defect::TakeRefusal) => fetches && reason != Reason::Fenced,
            Some(Defect::TakeFenced) => fetches && reason == Reason::Fenced,
            _ => false,
        }
    }
}

/// What a cache says to whoever plans an operation.
pub trait Entries {
    /// What names an entry.
    type Entry: Copy;
    /// What names a block: its tag, or a number where there are only so many.
    type Block: Copy;
    /// Whether an event of this node fills or empties the block's entry.
    fn under_way(&self, block: Self::Block) -> bool;
    /// The entry that has the block, and its status, which may fall at any time.
    fn find(&self, block: Self::Block) -> Option<(Self::Entry, LocalStatus)>;
    /// Whether an event of this node empties an entry that the block could go to.
    fn makes_room(&self, block: Self::Block) -> bool;
    /// Where the block could go: the best entry that no event fills or empties,
    /// and the block that has to leave it first.
    fn room(&self, block: Self::Block) -> Option<(Self::Entry, Option<Self::Block>)>;
}

/// What an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan<E, B = Tag> {
    /// Nothing: the copy in the cache is good for it.
    Hit(E),
    /// Another thread's event on this block to end.
    Wait,
    /// Another thread's event to end, whichever: all entries that the block could go to are taken.
    WaitForRoom,
    /// An event that fills or upgrades this entry, which is to be reserved for the block.
    Begin(E, Purpose),
    /// This block to leave its entry, which is to be reserved for that;
    /// then the operation looks again.
    Evict(E, B),
}

/// What an operation needs that reads or changes a block. Where the copy is good for it, an event
/// of another thread about it does not matter.
#[inline]
pub fn plan<C: Entries>(cache: &C, block: C::Block, writes: bool) -> Plan<C::Entry, C::Block> {
    match cache.find(block) {
        Some((entry, LocalStatus::Modified)) => Plan::Hit(entry),
        Some((entry, LocalStatus::Shared)) if !writes => Plan::Hit(entry),
        _ if cache.under_way(block) => Plan::Wait,
        Some((entry, LocalStatus::Shared)) => Plan::Begin(entry, Purpose::Upgrade),
        _ => match cache.room(block) {
            None => Plan::WaitForRoom,
            Some((entry, Some(old))) => Plan::Evict(entry, old),
            Some((entry, None)) if writes => Plan::Begin(entry, Purpose::Write),
            Some((entry, None)) => Plan::Begin(entry, Purpose::Read),
        },
    }
}
