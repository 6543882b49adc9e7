//! A switch starts anew in racks that know more locks than any queue holds packets.

use rackmem_sim::gcp::{Crowd, crowd};

const CROWD: Crowd = Crowd {
    nodes: 3,
    locks: 4_000,
    queue: 64,
    threads: 4,
    acquisitions: 25,
    patience: 40_000,
    seed: 0,
    place_all: false,
};

#[test]
fn threads_are_served_however_many_locks_there_are() {
    for seed in 0..4 {
        let few = crowd(&Crowd {
            seed,
            locks: 400,
            ..CROWD
        });
        let many = crowd(&Crowd { seed, ..CROWD });
        for outcome in [few, many] {
            assert_eq!(outcome.missing, 0, "{outcome:?}");
            // A thread waits for one lock, for which a handful of packets are under way.
            assert_eq!(outcome.lost, 0, "{outcome:?}");
        }
        assert!(many.packets < few.packets * 2, "{few:?} {many:?}");
        assert!(
            many.placed <= 300,
            "no more than threads have wanted: {many:?}"
        );
        assert!(many.placed >= 100, "{many:?}");
    }
}

/// What a rack did that placed every lock of every home when an epoch began.
#[test]
fn a_packet_for_every_lock_would_fill_every_queue() {
    let outcome = crowd(&Crowd {
        place_all: true,
        ..CROWD
    });
    assert!(outcome.missing > 0 && outcome.lost > 10_000, "{outcome:?}");
}
