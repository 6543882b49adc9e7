//! The racks that are explored.

use super::scenario::Op::{Add, Call, Evict, Fence, Load, Pin, Store, System, Unpin};
use super::scenario::Sight::{
    AskedForStores, CallWaited, ClosedWhileShown, DrainedByTheShootdown, FoundPinned,
    LoadedBeforeTheShootdown, LookedAt, PinEnded, PlacedAgain, Rested, SentHome, ShownByAnother,
    StoredBeforeTheShootdown, UpgradeOvertaken, Weak,
};
use super::scenario::{Events, Scenario, Seen, Var};
use rackmem_proto::pages::Habit;

/// A word, one of the same block, and one of another.
const X: Var = Var(0, 0);
const NEAR: Var = Var(0, 1);
const Y: Var = Var(1, 0);

/// Once more, and then a page is looked at.
const ASKING: Option<Habit> = Some(Habit::of(0b110));

fn no(_: &[Seen]) -> bool {
    false
}

const BASE: Scenario = Scenario {
    name: "",
    about: "",
    threads: &[],
    events: Events {
        drops: 0,
        closes: 0,
    },
    habit: None,
    never: no,
    weak: no,
    shows: &[],
};

fn neither(seen: &[Seen]) -> bool {
    seen[0][0] == 0 && seen[1][0] == 0
}

fn second_first(seen: &[Seen]) -> bool {
    seen[1][..2] == [2, 0]
}

fn two_orders(seen: &[Seen]) -> bool {
    seen[2][..2] == [1, 0] && seen[3][..2] == [1, 0]
}

fn back(seen: &[Seen]) -> bool {
    let falls = |seen: &Seen| seen[0] > seen[1];
    falls(&seen[1]) || falls(&seen[2])
}

fn overwritten(seen: &[Seen]) -> bool {
    // Both have seen the other's store after their own.
    seen[0][0] == 2 && seen[1][0] == 1
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "pages-calm",
        about: "two nodes load and store a word",
        threads: &[
            (0, &[Store(X, 1), Load(X)]),
            (1, &[Load(X), Store(X, 2), Load(X)]),
        ],
        shows: &[
            Rested,
            LoadedBeforeTheShootdown,
            StoredBeforeTheShootdown,
            DrainedByTheShootdown,
            UpgradeOvertaken,
        ],
        ..BASE
    },
    Scenario {
        name: "pages-count",
        about: "three nodes add to a word, one of them twice",
        threads: &[(0, &[Add(X), Add(X)]), (1, &[Add(X)]), (2, &[Add(X)])],
        shows: &[Rested],
        ..BASE
    },
    Scenario {
        name: "pages-false-sharing",
        about: "two nodes store to two words of a page",
        threads: &[
            (0, &[Store(X, 1), Store(X, 2)]),
            (1, &[Store(NEAR, 1), Store(NEAR, 2)]),
        ],
        shows: &[Rested, StoredBeforeTheShootdown, DrainedByTheShootdown],
        ..BASE
    },
    Scenario {
        name: "pages-threads",
        about: "two threads of a node fault on a page that another node takes",
        threads: &[
            (0, &[Load(X), Store(X, 1)]),
            (0, &[Store(NEAR, 1)]),
            (1, &[Add(X)]),
        ],
        shows: &[ShownByAnother, UpgradeOvertaken, DrainedByTheShootdown],
        ..BASE
    },
    Scenario {
        name: "pages-store-buffering",
        about: "each stores a word and loads the other, with fences",
        threads: &[
            (0, &[Store(X, 1), Fence, Load(Y)]),
            (1, &[Store(Y, 1), Fence, Load(X)]),
        ],
        never: neither,
        ..BASE
    },
    Scenario {
        name: "pages-no-fence",
        about: "the same without, by threads of one node: both may load what was there before",
        threads: &[
            (0, &[Store(X, 1), Load(Y)]),
            (0, &[Store(Y, 1), Load(X)]),
            (1, &[Load(X)]),
        ],
        weak: neither,
        shows: &[Weak],
        ..BASE
    },
    Scenario {
        name: "pages-no-fence-apart",
        about: "the same by two nodes: a page is taken once the stores to it have left the buffer",
        threads: &[(0, &[Store(X, 1), Load(Y)]), (1, &[Store(Y, 1), Load(X)])],
        never: neither,
        ..BASE
    },
    Scenario {
        name: "pages-message-passing",
        about: "who sees the second of two stores sees the first",
        threads: &[(0, &[Store(X, 1), Store(Y, 2)]), (1, &[Load(Y), Load(X)])],
        never: second_first,
        shows: &[LoadedBeforeTheShootdown],
        ..BASE
    },
    Scenario {
        name: "pages-iriw",
        about: "two see two stores of two others in one order",
        threads: &[
            (0, &[Store(X, 1)]),
            (1, &[Store(Y, 1)]),
            (1, &[Load(X), Load(Y)]),
            (2, &[Load(Y), Load(X)]),
        ],
        never: two_orders,
        shows: &[LoadedBeforeTheShootdown],
        ..BASE
    },
    Scenario {
        name: "pages-coherence",
        about: "nobody sees a word go back",
        threads: &[
            (0, &[Store(X, 1), Store(X, 2)]),
            (1, &[Load(X), Load(X)]),
            (2, &[Load(X), Load(X)]),
        ],
        never: back,
        shows: &[Rested, LoadedBeforeTheShootdown],
        ..BASE
    },
    Scenario {
        name: "pages-write-order",
        about: "two stores to a word have one order",
        threads: &[(0, &[Store(X, 1), Load(X)]), (1, &[Store(X, 2), Load(X)])],
        never: overwritten,
        shows: &[DrainedByTheShootdown],
        ..BASE
    },
    Scenario {
        name: "pages-dropped",
        about: "the system takes a page out of a mapping",
        threads: &[
            (0, &[Store(X, 1), Load(X), Add(X)]),
            (1, &[Load(X), Store(NEAR, 1)]),
        ],
        events: Events {
            drops: 1,
            closes: 0,
        },
        shows: &[PlacedAgain],
        ..BASE
    },
    Scenario {
        name: "pages-calls",
        about: "a call sees two words that a program stores to",
        threads: &[
            (0, &[Store(X, 1), Store(NEAR, 1), Store(X, 2)]),
            (0, &[Call(0)]),
            (1, &[Call(0)]),
        ],
        never: |seen| seen[2][1] == 1 && seen[2][0] == 0,
        shows: &[CallWaited, DrainedByTheShootdown],
        ..BASE
    },
    Scenario {
        name: "pages-evict",
        about: "a page makes room while its program stores to it",
        threads: &[
            (0, &[Store(X, 1), Add(X)]),
            (0, &[Evict(0)]),
            (1, &[Load(X), Add(X)]),
        ],
        shows: &[SentHome, StoredBeforeTheShootdown],
        ..BASE
    },
    Scenario {
        name: "pages-pinned",
        about: "a page stays for a system call, and another node wants it",
        threads: &[
            (0, &[Pin(0), System(X, 1), System(NEAR, 1), Unpin(0)]),
            (0, &[Add(X)]),
            (1, &[Load(X), Add(X)]),
        ],
        shows: &[FoundPinned, PinEnded],
        ..BASE
    },
    Scenario {
        name: "pages-pinned-twice",
        about: "two nodes pin two pages, in both orders",
        threads: &[
            (0, &[Pin(0), Pin(1), System(X, 1), Unpin(1), Unpin(0)]),
            (1, &[Pin(1), Pin(0), System(Y, 1), Unpin(0), Unpin(1)]),
        ],
        shows: &[FoundPinned, PinEnded],
        ..BASE
    },
    Scenario {
        name: "pages-asked",
        about: "loads ask for stores, since stores have followed",
        threads: &[
            (0, &[Load(X), Store(X, 1), Load(X)]),
            (1, &[Load(X), Store(X, 2), Load(X)]),
        ],
        habit: ASKING,
        shows: &[AskedForStores, LookedAt, UpgradeOvertaken, Rested],
        ..BASE
    },
    Scenario {
        name: "pages-asked-in-vain",
        about: "one loads and stores, another only loads, and asks",
        threads: &[
            (0, &[Load(X), Store(X, 1), Store(X, 2)]),
            (1, &[Load(X), Load(X), Load(X)]),
        ],
        habit: ASKING,
        never: |seen| seen[1][0] > seen[1][1] || seen[1][1] > seen[1][2],
        shows: &[AskedForStores, LookedAt],
        ..BASE
    },
    Scenario {
        name: "pages-closed",
        about: "a node cannot show that it is alive, and is given a right just then",
        threads: &[(0, &[Store(X, 1)]), (1, &[Load(X), Store(X, 2), Load(X)])],
        events: Events {
            drops: 0,
            closes: 1,
        },
        shows: &[ClosedWhileShown, LoadedBeforeTheShootdown],
        ..BASE
    },
];
