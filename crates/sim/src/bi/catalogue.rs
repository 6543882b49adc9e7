//! The racks that are explored.

use super::scenario::Op::{Demand, Read, ReadLazily, SetBeside};
use super::scenario::Sight::{
    EverythingDropped, Excluded, Hit, OwnDropped, PendingSeen, Reused, SectionTooLong, StaleRead,
    WaitedForMemory, WaitedForRoom, WaitedToEnter, WriterDied, YoungDropped,
};
use super::scenario::{Events, Scenario};
use rackmem_proto::bi::Bound;

const NONE: Events = Events {
    caches: 0,
    skew: false,
    deaths: 0,
    exclusions: 0,
    joins: 0,
    leaves: 0,
};

const BASE: Scenario = Scenario {
    name: "",
    about: "",
    changes: 1,
    own: false,
    lines: 2,
    room: 4,
    lag: 1,
    bound: Bound { lag: 0, section: 1 },
    readers: &[&[&[Read]]],
    events: NONE,
    shows: &[],
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "bi-calm",
        about: "a change, and a reader that reads twice",
        readers: &[&[&[Read, Read]]],
        shows: &[Hit, StaleRead, WaitedToEnter],
        ..BASE
    },
    Scenario {
        name: "bi-stale",
        about: "a reader that is behind: it reads what is old within the bound, or has to wait",
        lag: 3,
        bound: Bound { lag: 1, section: 1 },
        readers: &[&[&[Read, Read]]],
        shows: &[Hit, StaleRead, WaitedToEnter],
        ..BASE
    },
    Scenario {
        name: "bi-long-section",
        about: "a section that lasts longer than it may",
        lag: 4,
        readers: &[&[&[Read, Read]]],
        shows: &[SectionTooLong, StaleRead],
        ..BASE
    },
    Scenario {
        name: "bi-pause",
        about: "a domain that stops for longer than the bound, is waited for, and goes on",
        changes: 2,
        lag: 6,
        shows: &[Reused, WaitedForMemory, WaitedToEnter, SectionTooLong],
        ..BASE
    },
    Scenario {
        name: "bi-reuse",
        about: "memory that a reader reads is freed and reused",
        lag: 4,
        changes: 2,
        shows: &[Reused, WaitedForMemory, SectionTooLong],
        ..BASE
    },
    Scenario {
        name: "bi-order",
        about: "a reader beside its quiescence, a stale word and memory that is reused",
        changes: 2,
        bound: Bound { lag: 1, section: 1 },
        readers: &[&[&[Read, Read]]],
        shows: &[Hit, Reused],
        ..BASE
    },
    Scenario {
        name: "bi-prefetch",
        about: "caches fetch and drop lines by themselves",
        changes: 2,
        events: Events { caches: 1, ..NONE },
        shows: &[Reused, YoungDropped],
        ..BASE
    },
    Scenario {
        name: "bi-preempted-writer",
        about: "a writer that stops anywhere, and a reader that falls behind",
        lag: 3,
        readers: &[&[&[Read, Read]]],
        shows: &[PendingSeen, StaleRead],
        ..BASE
    },
    Scenario {
        name: "bi-skew",
        about: "clocks that differ by a tick, and memory that is reused",
        changes: 2,
        events: Events { skew: true, ..NONE },
        shows: &[Reused],
        ..BASE
    },
    Scenario {
        name: "bi-ring-full",
        about: "rings of two entries, and more changes than they hold",
        changes: 3,
        lines: 4,
        room: 2,
        shows: &[EverythingDropped, WaitedForRoom],
        ..BASE
    },
    Scenario {
        name: "bi-news-lost",
        about: "a reader that has missed what was modified, and has had the line by itself",
        changes: 2,
        lines: 3,
        room: 2,
        events: Events { caches: 1, ..NONE },
        shows: &[EverythingDropped, YoungDropped],
        ..BASE
    },
    Scenario {
        name: "bi-two-writers-one-line",
        about: "threads of two domains that store to words of one line, under a lock",
        changes: 2,
        lines: 3,
        readers: &[&[&[Read, SetBeside, Read]]],
        shows: &[Hit, StaleRead],
        ..BASE
    },
    Scenario {
        name: "bi-death",
        about: "a domain dies, and memory is reused",
        changes: 2,
        readers: &[&[&[]]],
        events: Events {
            deaths: 1,
            exclusions: 1,
            ..NONE
        },
        shows: &[Reused, WaitedForMemory],
        ..BASE
    },
    Scenario {
        name: "bi-expel",
        about: "a domain that lives is excluded, and wakes up",
        changes: 2,
        bound: Bound { lag: 0, section: 3 },
        events: Events {
            exclusions: 2,
            ..NONE
        },
        shows: &[Reused, Excluded, SectionTooLong],
        ..BASE
    },
    Scenario {
        name: "bi-join",
        about: "a domain joins while memory is reused",
        changes: 2,
        lag: 3,
        readers: &[],
        events: Events { joins: 1, ..NONE },
        shows: &[Reused],
        ..BASE
    },
    Scenario {
        name: "bi-leave",
        about: "a domain leaves while memory is reused",
        changes: 2,
        events: Events { leaves: 1, ..NONE },
        shows: &[Reused],
        ..BASE
    },
    Scenario {
        name: "bi-lazy",
        about: "a lookup past the cache after one through it",
        readers: &[&[&[Read, ReadLazily]]],
        ..BASE
    },
    Scenario {
        name: "bi-own-tracking",
        about: "what the program drops itself, by a quiescence on demand",
        own: true,
        readers: &[&[&[Demand, Demand]]],
        shows: &[OwnDropped],
        ..BASE
    },
    Scenario {
        name: "bi-own-freed",
        about: "what the program has not dropped itself is freed, and its memory is reused",
        changes: 2,
        own: true,
        readers: &[&[&[Read, Read]]],
        shows: &[Hit, Reused],
        ..BASE
    },
    Scenario {
        name: "bi-own-prefetch",
        about: "caches fetch and drop lines of what nobody is told of",
        changes: 2,
        own: true,
        readers: &[&[&[Demand]]],
        events: Events { caches: 1, ..NONE },
        shows: &[Reused, YoungDropped],
        ..BASE
    },
    Scenario {
        name: "bi-writer-dies",
        about: "a writer dies anywhere in its change",
        readers: &[&[&[Read, Read]]],
        events: Events { deaths: 2, ..NONE },
        shows: &[WriterDied, PendingSeen],
        ..BASE
    },
];
