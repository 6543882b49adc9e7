//! A new protocol is explored, walked through with deaths, given garbage and pinned byte by byte,
//! because it implements `Protocol` and `Trial`, and for no other reason: no line of the library,
//! of the engine or of the checkers knows of it.

mod counter;

use counter::{CARELESS, Counter, SILENT};
use rackmem_sim::driver::Ended;
use rackmem_sim::trial::{Budget, explore, garbage, golden, walk};

type Good = Counter<0>;
type Careless = Counter<CARELESS>;
type Silent = Counter<SILENT>;

const CALM: Budget = Budget {
    lose: 0,
    double: 0,
    early: 0,
    die: 0,
};

const FAULTY: Budget = Budget {
    lose: 1,
    double: 1,
    early: 1,
    die: 0,
};

/// Racks, by how often the thread of each node adds, and how many states they have.
const RACKS: [(&[u8], Budget, usize); 4] = [
    (&[1, 1, 1], CALM, 1_000),
    (&[1, 1], FAULTY, 618),
    (&[1, 0, 0], Budget { die: 1, ..CALM }, 2_957),
    (
        &[1, 0],
        Budget {
            lose: 1,
            die: 1,
            ..CALM
        },
        44,
    ),
];

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    let sizes = RACKS.map(|(adds, budget, _)| {
        let report = explore::<Good>(adds, budget, 300_000);
        if let Some(violation) = report.violation() {
            panic!("{budget:?}: {violation}");
        }
        assert!(
            report.ended == Ended::Whole && report.passed(),
            "{report:?}"
        );
        report.states
    });
    assert_eq!(sizes, RACKS.map(|rack| rack.2));
}

#[test]
fn seeded_ways_with_deaths_keep_every_promise() {
    let budget = Budget {
        lose: 10,
        double: 10,
        early: 10,
        die: 2,
    };
    for seed in 0..300 {
        if let Err((complaint, story)) = walk::<Good>(seed, &[3; 4], budget) {
            panic!("seed {seed}: {complaint:?}\n{}", story.join("\n"));
        }
    }
}

#[test]
fn defects_are_found_with_a_short_story() {
    let report = explore::<Careless>(&[1, 1], CALM, 300_000);
    let violation = report.violation().expect("a defect");
    assert_eq!(violation.invariant, "what is added stays");
    assert!(violation.story.len() <= 2, "{violation}");
    // A list that is not told is missed where the epoch ends a wait.
    let report = explore::<Silent>(&[1, 0, 0], Budget { die: 1, ..CALM }, 300_000);
    let violation = report.violation().expect("a defect");
    assert_eq!(violation.invariant, "what is added stays");
    let found = (0..50).find_map(|seed| walk::<Careless>(seed, &[3; 4], CALM).err());
    let ((promise, ..), story) = found.expect("some way shows it");
    assert_eq!((promise, story.len()), ("what is added stays", 1));
}

#[test]
fn garbage_causes_no_panic_and_no_storm() {
    for seed in 0..200 {
        let sent = garbage::<Good>(seed, 200);
        assert!(sent <= 200, "one answer a question: {sent}");
    }
}

#[test]
fn packets_are_pinned() {
    let golden = golden::<Good>();
    let expected = [
        (
            "GuestAsk",
            "524d02f00000000100010000000000000000000000000001000000010000000000000000000000000000000000100000",
        ),
        (
            "GuestTell",
            "524d02f10000000100000000000000000000000000000001000000010000000000000001000000000000000000100000",
        ),
    ];
    let found: Vec<(&str, &str)> = golden.iter().map(|(kind, hex)| (*kind, &**hex)).collect();
    assert_eq!(found, expected);
}
