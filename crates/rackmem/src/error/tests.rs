//! Every error has a code, a text of one form, and one place in [`Error`].

use super::*;
use rackmem_proto::abd::{Durability, Refused};
use rackmem_proto::heap::Backing;
use rackmem_proto::membership::{Places, Role, Unchanged};
use rackmem_proto::wire::{Contract, Reason};
use std::collections::BTreeSet;
use std::time::Duration;

const ADDR: u64 = 0x1_0000_0040;

fn name() -> String {
    "grid".into()
}

fn io() -> std::io::Error {
    std::io::Error::from_raw_os_error(24)
}

fn rack() -> Vec<RackError> {
    vec![
        RackError::Closed,
        RackError::Fenced,
        RackError::NoLease,
        RackError::NodeLost { node: 2 },
        RackError::NoSuchNode { node: 9 },
        RackError::Timeout { node: 1 },
        RackError::Refused {
            reason: Reason::Invalid,
        },
        RackError::NoSocket { os: 24 },
        RackError::NoSocket { os: 0 },
    ]
}

fn access() -> Vec<AccessError> {
    let mut all = vec![
        AccessError::BadAddress { addr: ADDR },
        AccessError::BadRange {
            addr: ADDR,
            len: 9,
            block: 4096,
        },
        AccessError::OutOfBounds {
            at: 9,
            len: 2,
            of: 10,
        },
        AccessError::NotShown { addr: ADDR, os: 12 },
        AccessError::Lost { addr: ADDR },
        AccessError::Interrupted { addr: ADDR },
        AccessError::NoQuorum {
            addr: ADDR,
            answered: 1,
            needed: 2,
            writes: true,
        },
        AccessError::Removed { addr: ADDR },
        AccessError::NoStamp { addr: ADDR },
        AccessError::Gone { addr: ADDR },
        AccessError::Torn {
            addr: ADDR,
            tries: 3,
        },
        AccessError::OtherSize {
            addr: ADDR,
            len: 9,
            is: 8,
        },
        AccessError::OtherSize {
            addr: ADDR,
            len: 9,
            is: 0,
        },
        AccessError::Stale {
            addr: ADDR,
            by: Duration::from_millis(9),
        },
        AccessError::TightBound {
            bound: Duration::from_millis(1),
            least: Duration::from_millis(5),
        },
        AccessError::NotMapped { addr: ADDR, os: 12 },
        AccessError::Busy { addr: ADDR },
        AccessError::TooManyAsked { most: 4096 },
    ];
    all.extend(Contract::ALL.map(|is| AccessError::WrongContract {
        addr: ADDR,
        wanted: Contract::Coherent,
        is,
    }));
    all
}

fn alloc() -> Vec<AllocError> {
    vec![
        AllocError::OutOfMemory { node: 1 },
        AllocError::TooLarge { len: 9, most: 8 },
        AllocError::NotAllocated { addr: ADDR },
    ]
}

fn lock() -> Vec<LockError> {
    let shapes = [
        LockShape::TooLong { most: 65528 },
        LockShape::ManyRanges { most: 64 },
        LockShape::BadRange,
        LockShape::Overlap,
        LockShape::Unaligned,
    ];
    let mut all = vec![
        LockError::NoLock { addr: ADDR },
        LockError::WrongType { addr: ADDR },
        LockError::Freed { addr: ADDR },
        LockError::Stays { addr: ADDR },
        LockError::FreedInPart {
            addr: ADDR,
            why: AccessError::Rack(RackError::Timeout { node: 1 }),
        },
        LockError::Busy { addr: ADDR },
        LockError::OutsideRanges { addr: ADDR, len: 9 },
        LockError::TooManyLocks { most: 7 },
        LockError::TooManyWaiting { most: 255 },
    ];
    all.extend(shapes.map(|why| LockError::BadShape { why }));
    all
}

fn steer() -> Vec<SteerError> {
    let name = name();
    vec![
        SteerError::NoOwner { name: name.clone() },
        SteerError::Owned {
            name: name.clone(),
            by: 1,
        },
        SteerError::Unanswered { name },
    ]
}

fn region() -> Vec<RegionError> {
    vec![
        RegionError::BadName {
            name: String::new(),
        },
        RegionError::NotFound { name: name() },
        RegionError::Mismatch { name: name() },
        RegionError::NameLost {
            name: name(),
            node: 1,
        },
        RegionError::Removed { name: name() },
        RegionError::NotFreed {
            name: name(),
            why: AllocError::NotAllocated { addr: ADDR },
        },
        RegionError::OutOfBounds {
            name: name(),
            at: 9,
            len: 2,
        },
        RegionError::NotRemovable {
            name: name(),
            contract: Contract::Locked,
        },
        RegionError::ContractNotBuilt {
            contract: Contract::Bounded,
        },
        RegionError::BackingNotBuilt {
            backing: Backing::SharedFile,
        },
        RegionError::BadCopies { copies: 2 },
        RegionError::OtherCopies {
            name: name(),
            has: 3,
        },
        RegionError::FewMembers { copies: 5, live: 3 },
        RegionError::BadLines {
            line: 64,
            bytes: 100,
        },
        RegionError::NotDurable {
            durability: Durability::Sync,
        },
        RegionError::NoStore {
            durability: Durability::File,
        },
        RegionError::NotPersistent {
            why: "store/probe: its files are not in persistent memory".into(),
        },
        RegionError::Mapped {
            name: name(),
            node: 1,
        },
        RegionError::SmallBuffer { pages: 1, least: 4 },
        RegionError::NoPaging {
            tried: "userfaultfd",
            os: 1,
        },
        RegionError::NotMappable {
            name: name(),
            why: "its blocks are no whole pages of this system",
        },
        RegionError::TooManyMappings { most: 256 },
        RegionError::TooManyPinned { most: 4096 },
        RegionError::FixedMembers,
        RegionError::NoGroups {
            why: "the store does not answer".into(),
        },
        RegionError::TableFull { name: name() },
        RegionError::Unfinished { name: name() },
    ]
}

fn membership() -> Vec<MembershipError> {
    let (endpoint, why) = ("http://10.0.0.5:2379".to_string(), "refused".to_string());
    let role = Role::Node(1);
    let unchanged = |why| MembershipError::NotReplaced { name: name(), why };
    let refused = |why: &str| MembershipError::Refused {
        endpoint: endpoint.clone(),
        why: why.into(),
    };
    vec![
        MembershipError::Unreachable {
            endpoint: endpoint.clone(),
            why: why.clone(),
        },
        refused("database space exceeded"),
        refused("user name is empty"),
        refused("no"),
        MembershipError::File {
            path: "/nowhere".into(),
            error: io(),
        },
        MembershipError::Garbage {
            place: "a file".into(),
            why,
        },
        MembershipError::Taken { role },
        MembershipError::Late {
            role,
            waited: Duration::from_secs(1),
            cause: None,
        },
        MembershipError::Late {
            role,
            waited: Duration::from_secs(1),
            cause: Some(Box::new(MembershipError::Taken { role })),
        },
        MembershipError::NotHeld { role },
        MembershipError::OutOfReach {
            role,
            unheard: Places::EMPTY.with(Role::Switch),
        },
        MembershipError::NoGroup { name: name() },
        unchanged(Unchanged::NotLive(3)),
        unchanged(Unchanged::Copies(3)),
        unchanged(Unchanged::Members(2)),
        unchanged(Unchanged::Config(Refused::Filling)),
        unchanged(Unchanged::Config(Refused::Member)),
        unchanged(Unchanged::Full),
        MembershipError::Fixed,
        MembershipError::Thread(io()),
    ]
}

fn open() -> Vec<OpenError> {
    let mut all = vec![
        OpenError::Config("a rack has 1 to 32 nodes, not 33".into()),
        OpenError::PlaceTaken {
            place: "node 1: its address is in use".into(),
        },
        OpenError::NotOfThisHost,
        OpenError::Io(io()),
    ];
    let codes = ["permission", "not-built", "driver", "busy", "verifier"];
    all.extend(codes.map(|code| OpenError::Kernel {
        code,
        why: "the kernel does not take it".into(),
    }));
    all
}

fn leave() -> Vec<LeaveError> {
    vec![
        LeaveError::InUse { node: 1 },
        LeaveError::LocksInUse { node: 1 },
        LeaveError::Deserted {
            node: 1,
            addr: 1 << 12,
        },
    ]
}

fn transaction() -> Vec<TransactionError> {
    let why = RackError::Timeout { node: 1 };
    vec![
        TransactionError::Conflict { tries: 9 },
        TransactionError::Cancelled,
        TransactionError::GivenUp { why },
        TransactionError::Undecided { why },
        TransactionError::TooManyObjects { most: 64 },
        TransactionError::TooManyBytes { len: 9, most: 8 },
    ]
}

fn arena() -> Vec<ArenaError> {
    vec![
        ArenaError::Late {
            by: Duration::from_millis(4),
        },
        ArenaError::Expelled,
        ArenaError::ClockSkew {
            by: Duration::from_secs(4),
        },
        ArenaError::BadPointer { line: 77, len: 8 },
        ArenaError::RingFull { slowest: 2 },
        ArenaError::ArenaFull { share: 1 << 20 },
        ArenaError::ObjectTooLarge { len: 9, most: 8 },
        ArenaError::NoFile {
            tried: "open",
            os: 2,
        },
        ArenaError::NoFile {
            tried: "it is shorter than an arena of this size",
            os: 0,
        },
        ArenaError::NoArena {
            why: "its first line is not an arena's",
        },
        ArenaError::IsThere,
        ArenaError::OtherRack { rack: 7 },
        ArenaError::OtherShape {
            what: "nanoseconds of a tick",
            is: 7,
            wanted: 8,
        },
        ArenaError::AttachedTwice { node: 1 },
        ArenaError::BadSpec {
            why: "the bound is below 5 ms",
        },
        ArenaError::NameTaken { number: 7 },
        ArenaError::NoCacheOperations { missing: "clwb" },
    ]
}

/// A family: its word, the codes that its variants have, and an error of each of its own variants.
fn families() -> Vec<(&'static str, &'static [&'static str], Vec<Error>)> {
    fn all<E: Into<Error>>(errors: Vec<E>) -> Vec<Error> {
        errors.into_iter().map(Into::into).collect()
    }
    vec![
        ("open", OpenError::CODES, all(open())),
        ("membership", MembershipError::CODES, all(membership())),
        ("rack", RackError::CODES, all(rack())),
        ("access", AccessError::CODES, all(access())),
        ("alloc", AllocError::CODES, all(alloc())),
        ("lock", LockError::CODES, all(lock())),
        ("region", RegionError::CODES, all(region())),
        ("leave", LeaveError::CODES, all(leave())),
        ("transaction", TransactionError::CODES, all(transaction())),
        ("arena", ArenaError::CODES, all(arena())),
        ("steering", SteerError::CODES, all(steer())),
    ]
}

#[test]
fn every_variant_has_an_example_and_a_code_of_its_own() {
    let mut seen = BTreeSet::new();
    for (family, codes, errors) in families() {
        let shown: BTreeSet<_> = errors.iter().map(Error::code).collect();
        assert_eq!(shown, codes.iter().copied().collect(), "{family}");
        for code in codes {
            assert!(seen.insert(*code), "{code} is two causes");
        }
        assert!(errors.iter().all(|error| error.family() == family));
    }
}

#[test]
fn kinds_are_of_codes_that_there_are() {
    let mut seen = BTreeSet::new();
    let there: Vec<&str> = families().iter().flat_map(|row| row.1).copied().collect();
    for code in ErrorKind::codes() {
        assert!(there.contains(&code), "{code} is no error's");
        assert!(seen.insert(code), "{code} is of two kinds");
    }
    let lost = Error::from(RackError::NodeLost { node: 2 });
    assert_eq!(lost.kind(), ErrorKind::Lost);
}

/// What happened; whether anything has changed; what to do.
#[test]
fn every_text_has_one_form() {
    for (_, _, errors) in families() {
        for error in errors {
            let text = error.to_string();
            let changed = error.changed().to_string();
            let parts: Vec<&str> = text.split("; ").collect();
            let [what, middle, next] = parts[..] else {
                panic!("three parts: {text}");
            };
            assert_eq!((what, middle), (&*error.what(), &*changed), "{text}");
            assert_eq!(next, error.next_step(), "{text}");
            for part in parts {
                assert!(part.len() >= 8, "says too little: {text}");
                assert!(!part.ends_with(['.', ' ', ':', ',']), "{text}");
                assert!(!part.contains("  ") && !part.contains('\n'), "{text}");
            }
            // The first word of the last part is what to do.
            let verb = next.split([' ', ',']).next().unwrap_or_default();
            assert!(
                next.starts_with(char::is_lowercase) && verb.len() > 1,
                "{text}"
            );
            let nobody = ["somebody", "whoever", "nobody"];
            assert!(!nobody.iter().any(|word| text.contains(word)), "{text}");
        }
    }
}

/// Through whichever families a cause has come, `?` leaves one [`Error`] of it.
#[test]
fn a_cause_has_one_place() {
    let cause = RackError::NodeLost { node: 2 };
    let same: [Error; 8] = [
        cause.into(),
        SteerError::from(LockError::from(cause)).into(),
        TransactionError::from(AccessError::from(cause)).into(),
        AccessError::from(cause).into(),
        AllocError::from(AccessError::from(cause)).into(),
        LockError::from(AllocError::from(cause)).into(),
        RegionError::from(LockError::from(AllocError::from(AccessError::from(cause)))).into(),
        LeaveError::from(AccessError::from(cause)).into(),
    ];
    for error in same {
        assert!(matches!(error, Error::Rack(found) if found == cause));
        assert_eq!((error.rack(), error.access()), (Some(cause), None));
    }
    let lost = AccessError::Lost { addr: ADDR };
    let same: [Error; 4] = [
        lost.into(),
        AllocError::from(lost).into(),
        LockError::from(AllocError::from(lost)).into(),
        RegionError::from(LockError::from(lost)).into(),
    ];
    for error in same {
        assert!(matches!(error, Error::Access(found) if found == lost));
    }
    let member = MembershipError::Fixed;
    let error = Error::from(OpenError::from(member));
    assert!(matches!(error, Error::Membership(MembershipError::Fixed)));
    let error = Error::from(LeaveError::from(MembershipError::Fixed));
    assert!(matches!(error, Error::Membership(MembershipError::Fixed)));
    let full = RegionError::from(LockError::from(AllocError::OutOfMemory { node: 1 }));
    assert!(matches!(Error::from(full), Error::Alloc(_)));
}

#[test]
fn a_range_written_in_part_has_changed_something() {
    let lost = AccessError::Rack(RackError::NodeLost { node: 2 });
    let silent = AccessError::Rack(RackError::Timeout { node: 2 });
    assert_eq!(BulkError::reading(5, silent).changed(), Changed::No);
    let outside = AccessError::OutOfBounds {
        at: 9,
        len: 2,
        of: 10,
    };
    assert_eq!(BulkError::writing(0, outside).changed(), Changed::No);
    // A block behind the one that is lost may have been written.
    assert_eq!(BulkError::writing(0, lost).changed(), Changed::Perhaps);
    assert_eq!(BulkError::writing(0, silent).changed(), Changed::Perhaps);
    assert_eq!(BulkError::writing(1, lost).changed(), Changed::Yes);
    // Neither the umbrella nor a region's error forgets how far it came.
    let error = Error::from(RegionError::from(BulkError::writing(1, lost)));
    assert_eq!(
        (error.changed(), error.code(), error.rack()),
        (Changed::Yes, "node-lost", lost.rack())
    );
    assert!(error.to_string().contains("after 1 element was written"));
    let bytes = BulkError::writing(2, lost).in_bytes().to_string();
    assert!(bytes.contains("after 2 bytes were written"), "{bytes}");
}

/// Where a hit returns one of them, it is moved in a few words and has nothing to drop.
#[test]
fn errors_of_hot_paths_are_small_and_plain() {
    fn plain<E: Copy>() -> usize {
        size_of::<E>()
    }
    assert!(plain::<RackError>() <= 16);
    assert!(plain::<AccessError>() <= 32);
    assert!(plain::<AllocError>() <= 32);
    assert!(plain::<LockError>() <= 48);
    assert!(plain::<ArenaError>() <= 56);
    assert!(plain::<BulkError>() <= 48);
    assert!(size_of::<Error>() <= 96);
    assert!(!std::mem::needs_drop::<Result<u64, LockError>>());
}
