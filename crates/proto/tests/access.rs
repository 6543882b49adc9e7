//! What a thread does about its event, one thing after the other: in which order, after which
//! refusal, and what becomes of the only copy of a block.

use rackmem_proto::Dest;
use rackmem_proto::engine::{Access, Do, Entries, Plan, Purpose, Then, plan};
use rackmem_proto::flowcc::{LocalStatus, Requester, RequesterConfig};
use rackmem_proto::wire::{
    Copyset, Flags, GlobalStatus, Header, Kind, NodeId, Reason, RequesterId, Tag,
};

const BLOCK: u32 = 4096;
const X: Tag = Tag(1 << 48);
const ME: NodeId = 0;
const GIVE_UP: u64 = 1_000;

struct Thread {
    requester: Requester,
    access: Access,
    request: Header,
}

impl Thread {
    fn begin(purpose: Purpose) -> Self {
        let mut requester = Requester::new(RequesterConfig {
            id: RequesterId { node: ME, slot: 0 },
            epoch: 1,
            incarnation: 1,
            block: BLOCK,
            switch: false,
            min_timeout: 10,
            give_up: GIVE_UP,
        });
        let (access, output) = Access::begin(purpose, &mut requester, 0, (X, 0, 0));
        assert_eq!(output.to, Dest::Home(X.home()));
        Thread {
            requester,
            access,
            request: output.header,
        }
    }

    fn next(&mut self) -> Do {
        self.access.next(&mut self.requester, || 0, None)
    }

    /// The kind of packet that is to be sent next.
    fn sends(&mut self) -> Kind {
        match self.next() {
            Do::Send(output) => output.header.kind,
            other => panic!("{other:?}"),
        }
    }

    fn hears(&mut self, header: Header, body: u32) {
        self.requester.handle(0, &header, body);
    }

    /// The owner grants the request, with the block where there is to be one.
    fn is_granted(&mut self, status: GlobalStatus, copyset: Copyset) {
        let fetches = self.access.purpose().fetches();
        let data = if fetches {
            Flags::DATA
        } else {
            Flags::default()
        };
        let ack = Header {
            status,
            copyset,
            flags: Flags::GRANTED.and(data),
            ..self.request.answer(Kind::Ack, 1)
        };
        self.hears(ack, if fetches { BLOCK } else { 0 });
    }

    fn is_refused(&mut self, reason: Reason) {
        let ack = self.request.answer(Kind::Ack, 1);
        self.hears(Header { reason, ..ack }, 0);
    }

    fn is_unlocked(&mut self) {
        self.hears(self.request.answer(Kind::UnlockAck, 1), 0);
    }
}

/// A dirty copy that is on its way home: the entry says so already.
fn leaving() -> Thread {
    let mut thread = Thread::begin(Purpose::EvictDirty);
    thread.is_granted(GlobalStatus::Modified, Copyset::of(ME));
    assert_eq!(thread.next(), Do::Set(LocalStatus::Invalid));
    assert_eq!(thread.sends(), Kind::WriteBack);
    assert_eq!(thread.next(), Do::Wait);
    thread
}

#[test]
fn the_operation_runs_before_the_entry_is_usable_and_that_before_the_unlock() {
    for (purpose, status) in [
        (Purpose::Read, LocalStatus::Shared),
        (Purpose::Write, LocalStatus::Modified),
        (Purpose::Upgrade, LocalStatus::Modified),
    ] {
        let mut thread = Thread::begin(purpose);
        assert_eq!(thread.next(), Do::Wait);
        let (global, copyset) = match purpose {
            Purpose::Upgrade => (GlobalStatus::Shared, Copyset::of(ME)),
            _ => (GlobalStatus::Unshared, Copyset::EMPTY),
        };
        thread.is_granted(global, copyset);
        assert_eq!(thread.next(), Do::Use, "{purpose:?}");
        assert_eq!(thread.next(), Do::Set(status), "{purpose:?}");
        assert_eq!(thread.sends(), Kind::Unlock, "{purpose:?}");
        assert_eq!(thread.next(), Do::Over(Then::Done), "{purpose:?}");
    }
}

#[test]
fn nothing_is_used_before_all_of_it_is_here() {
    let mut thread = Thread::begin(Purpose::Read);
    let half = Header {
        status: GlobalStatus::Unshared,
        flags: Flags::GRANTED.and(Flags::DATA),
        ..thread.request.answer(Kind::Ack, 1)
    };
    thread.hears(half, BLOCK / 2);
    assert_eq!(thread.next(), Do::Wait);
    let offset = BLOCK / 2;
    thread.hears(Header { offset, ..half }, BLOCK / 2);
    assert_eq!(thread.next(), Do::Use);
}

#[test]
fn an_evicted_copy_is_unusable_before_its_bytes_go_home_and_gone_when_they_are_there() {
    let mut thread = leaving();
    thread.hears(thread.request.answer(Kind::WriteBackAck, 1), 0);
    assert_eq!(thread.sends(), Kind::Unlock);
    assert_eq!(thread.next(), Do::Over(Then::Done));
    let mut thread = Thread::begin(Purpose::EvictClean);
    thread.is_granted(GlobalStatus::Shared, Copyset::of(ME));
    assert_eq!(thread.next(), Do::Set(LocalStatus::Invalid));
    assert_eq!(thread.sends(), Kind::Unlock);
    assert_eq!(thread.next(), Do::Over(Then::Done));
}

/// Its region is removed, which this node has not heard: the entry is needed for another block.
#[test]
fn a_copy_that_its_home_has_no_memory_of_goes() {
    for purpose in [Purpose::EvictClean, Purpose::EvictDirty] {
        let mut thread = Thread::begin(purpose);
        thread.is_refused(Reason::NoMemory);
        assert_eq!(thread.next(), Do::Set(LocalStatus::Invalid), "{purpose:?}");
        assert_eq!(thread.next(), Do::Over(Then::Done), "{purpose:?}");
    }
}

#[test]
fn the_only_copy_comes_back_when_the_epoch_ends_on_its_way_home() {
    let mut thread = leaving();
    thread.requester.enter(2, false);
    assert_eq!(thread.next(), Do::Set(LocalStatus::Modified));
    assert_eq!(thread.next(), Do::Over(Then::Relook));
}

#[test]
fn the_only_copy_comes_back_when_home_does_not_answer() {
    let mut thread = leaving();
    thread.requester.handle_timeout(GIVE_UP);
    assert_eq!(thread.next(), Do::Set(LocalStatus::Modified));
    // Some of it may be on its way still: the lock stays till the epoch ends.
    assert_eq!(thread.next(), Do::Over(Then::Lost));
    let mut thread = leaving();
    let Thread {
        access, requester, ..
    } = &mut thread;
    assert_eq!(access.abandon(requester, 0), Do::Set(LocalStatus::Modified));
    assert_eq!(thread.next(), Do::Over(Then::Lost));
}

#[test]
fn an_event_of_a_home_that_is_no_member_is_over_at_once_and_leaves_the_requester_whole() {
    for (purpose, then) in [
        (Purpose::EvictDirty, Then::Relook),
        (Purpose::EvictClean, Then::Relook),
        (Purpose::Write, Then::Again),
        (Purpose::Hold { shared: true }, Then::Again),
        (Purpose::Call(Kind::Alloc), Then::Again),
    ] {
        let mut thread = Thread::begin(Purpose::Read);
        thread.is_refused(Reason::Locked);
        assert_eq!(thread.next(), Do::Over(Then::BackOff));
        let at = (Tag(7 << 48), 0, 0);
        thread.access = Access::begin_unheard(purpose, &mut thread.requester, 0, at);
        assert!(!thread.access.waits(&thread.requester), "{purpose:?}");
        assert_eq!(thread.requester.poll_timeout(), None);
        assert_eq!(thread.next(), Do::Over(then), "{purpose:?}");
        let cut = thread.requester.enter(2, false);
        assert!(cut.open.iter().all(Option::is_none), "{cut:?}");
        let (_, output) = Access::begin(Purpose::Read, &mut thread.requester, 0, (X, 0, 0));
        assert_eq!((output.header.epoch, output.header.tag), (2, X));
    }
}

#[test]
fn an_event_is_unlocked_after_the_one_before_it_or_when_nothing_more_will_come() {
    let mut thread = Thread::begin(Purpose::EvictClean);
    thread.is_granted(GlobalStatus::Shared, Copyset::of(ME));
    let first = thread.request;
    while thread.next() != Do::Over(Then::Done) {}
    let (access, output) = Access::begin(Purpose::Read, &mut thread.requester, 0, (X, 0, 0));
    (thread.access, thread.request) = (access, output.header);
    thread.is_granted(GlobalStatus::Unshared, Copyset::EMPTY);
    assert_eq!(thread.next(), Do::Use);
    assert_eq!(thread.next(), Do::Set(LocalStatus::Shared));
    assert_eq!(thread.next(), Do::Wait);
    let (mut abandoned, mut requester) = (thread.access, thread.requester.clone());
    assert!(matches!(abandoned.abandon(&mut requester, 0), Do::Send(_)));
    assert_eq!(
        abandoned.next(&mut requester, || 0, None),
        Do::Over(Then::Done)
    );
    let second = std::mem::replace(&mut thread.request, first);
    thread.is_unlocked();
    thread.request = second;
    assert_eq!(thread.sends(), Kind::Unlock);
    assert_eq!(thread.next(), Do::Over(Then::Done));
}

#[test]
fn a_lock_is_the_applications_until_it_lets_go() {
    let mut thread = Thread::begin(Purpose::Hold { shared: false });
    thread.is_granted(GlobalStatus::Modified, Copyset::of(2));
    assert_eq!((thread.next(), thread.next()), (Do::Held, Do::Held));
    thread.access.let_go();
    let Do::Send(output) = thread.next() else {
        panic!("an unlock");
    };
    assert!(output.header.flags.has(Flags::KEEP));
    assert_eq!(thread.next(), Do::Over(Then::Done));
}

#[test]
fn what_follows_a_refusal() {
    use Reason::{Fenced, Full, Invalid, Locked, Lost, Moved, NoMemory};
    let rows = [
        (Purpose::Read, Locked, Then::BackOff),
        (Purpose::Upgrade, Invalid, Then::Again),
        (Purpose::Write, Moved, Then::Again),
        (Purpose::Write, Fenced, Then::Again),
        (Purpose::Write, Lost, Then::Fail(Lost)),
        (Purpose::Read, NoMemory, Then::Fail(NoMemory)),
        (Purpose::EvictClean, Locked, Then::BackOff),
        (Purpose::EvictClean, Invalid, Then::Relook),
        (Purpose::EvictDirty, Moved, Then::Relook),
        (Purpose::EvictDirty, Fenced, Then::Relook),
        (Purpose::Hold { shared: true }, Locked, Then::BackOff),
        (Purpose::Probe, Fenced, Then::Again),
        (Purpose::Call(Kind::Alloc), Full, Then::Fail(Full)),
        (Purpose::Call(Kind::Alloc), Fenced, Then::Again),
        (Purpose::Call(Kind::GuestAsk), Fenced, Then::Fail(Fenced)),
    ];
    for (purpose, reason, then) in rows {
        assert_eq!(purpose.refused(reason), then, "{purpose:?} {reason:?}");
    }
    let mut thread = Thread::begin(Purpose::Read);
    thread.is_refused(Locked);
    assert_eq!(thread.next(), Do::Over(Then::BackOff));
}

/// A cache of one entry.
struct One {
    under_way: bool,
    copy: Option<(Tag, LocalStatus)>,
    taken: bool,
}

impl Entries for One {
    type Entry = ();
    type Block = Tag;

    fn under_way(&self, _: Tag) -> bool {
        self.under_way
    }

    fn find(&self, tag: Tag) -> Option<((), LocalStatus)> {
        let (_, status) = self.copy.filter(|copy| copy.0 == tag)?;
        Some(((), status))
    }

    fn makes_room(&self, _: Tag) -> bool {
        false
    }

    fn room(&self, _: Tag) -> Option<((), Option<Tag>)> {
        let old = self.copy.filter(|copy| copy.1 != LocalStatus::Invalid);
        (!self.taken).then_some(((), old.map(|copy| copy.0)))
    }
}

#[test]
fn what_an_operation_needs() {
    use LocalStatus::{Invalid, Modified, Shared};
    const OTHER: Tag = Tag(2 << 48);
    let cache = |copy| One {
        under_way: false,
        copy,
        taken: false,
    };
    let rows = [
        (
            None,
            [
                Plan::Begin((), Purpose::Read),
                Plan::Begin((), Purpose::Write),
            ],
        ),
        (
            Some((X, Invalid)),
            [
                Plan::Begin((), Purpose::Read),
                Plan::Begin((), Purpose::Write),
            ],
        ),
        (
            Some((X, Shared)),
            [Plan::Hit(()), Plan::Begin((), Purpose::Upgrade)],
        ),
        (Some((X, Modified)), [Plan::Hit(()); 2]),
        (Some((OTHER, Shared)), [Plan::Evict((), OTHER); 2]),
    ];
    for (copy, plans) in rows {
        let found = [false, true].map(|writes| plan(&cache(copy), X, writes));
        assert_eq!(found, plans, "{copy:?}");
    }
    let under_way = One {
        under_way: true,
        ..cache(Some((X, Shared)))
    };
    assert_eq!(plan(&under_way, X, true), Plan::Wait);
    assert_eq!(plan(&under_way, X, false), Plan::Hit(()));
    let taken = One {
        taken: true,
        ..cache(Some((OTHER, Shared)))
    };
    assert_eq!(plan(&taken, X, false), Plan::WaitForRoom);
}
