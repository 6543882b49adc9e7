//! Members over a compare-and-set register that loses and delays operations,
//! with clocks that are wrong by a tenth, processes that are paused, killed and started again.
//! Every interleaving comes from a seed.

mod cables;
mod cut;
mod random;
mod world;

use rackmem_proto::membership::{Member, Role, Standing, Timing};
use world::{BEAT, Faults, LEASE, World};

const SEEDS: u64 = 1000;

/// Every process either holds its place or has been told that it does not, all agree,
/// and nobody dead is listed.
fn assert_settled(world: &World, seed: u64) {
    let roster = world.roster();
    // Where nobody is left, nobody is there to say so.
    let watched = world
        .processes()
        .iter()
        .any(|process| !process.dead && !process.member.is_over());
    for process in world.processes() {
        let standing = process.member.standing();
        if process.dead {
            let listed = roster
                .holder(process.role)
                .is_some_and(|h| h.0 == process.token);
            assert!(
                !(watched && listed),
                "seed {seed}: {} is dead but listed",
                process.role
            );
        } else if let Standing::Member { incarnation } = standing {
            assert_eq!(
                roster.holder(process.role),
                Some((process.token, incarnation)),
                "seed {seed}"
            );
            assert!(
                process.serves(world.now()),
                "seed {seed}: {} does not serve",
                process.role
            );
            assert_eq!(
                process.member.roster(),
                Some(roster),
                "seed {seed}: {} is behind",
                process.role
            );
        } else {
            assert!(
                process.member.is_over(),
                "seed {seed}: {} is still {standing:?}",
                process.role
            );
        }
    }
}

#[test]
fn without_faults_nobody_is_ever_fenced() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::NONE);
        (0..6).for_each(|node| world.start(Role::Node(node)));
        world.start(Role::Switch);
        world.run(20 * LEASE);
        assert_settled(&world, seed);
        assert_eq!(world.roster().held().count(), 7, "seed {seed}");
        assert_eq!(world.exclusions, 0, "seed {seed}");
        assert_eq!(world.lapses(), 0, "seed {seed}");
    }
}

#[test]
fn whatever_happens_nobody_serves_outside_the_view_and_all_agree_afterwards() {
    let (mut exclusions, mut lapses, mut fenced) = (0, 0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::ALL);
        (0..5).for_each(|node| world.start(Role::Node(node)));
        world.start(Role::Switch);
        for _ in 0..12 {
            world.run(2 * LEASE);
            world.upset();
        }
        world.calm();
        world.run(12 * LEASE);
        assert_settled(&world, seed);
        exclusions += world.exclusions;
        lapses += world.lapses();
        fenced += world.standing_count(Standing::Fenced);
    }
    // The world asserts at every view that those it excludes do not serve.
    // That means little if it never happened.
    assert!(
        exclusions > SEEDS && lapses > SEEDS && fenced > SEEDS / 2,
        "{exclusions} {lapses} {fenced}"
    );
}

/// What a lease that has run out needs a version for.
#[test]
fn a_late_proposal_excludes_nobody_who_serves_again() {
    let (mut exclusions, mut lapses) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::LATE_PROPOSALS);
        (0..3).for_each(|node| world.start(Role::Node(node)));
        world.run(40 * LEASE);
        exclusions += world.exclusions;
        lapses += world.lapses();
    }
    assert!(
        exclusions > SEEDS / 4 && lapses > SEEDS,
        "{exclusions} {lapses}"
    );
}

#[test]
fn a_process_that_is_paused_for_long_ends_fenced() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::NONE);
        (0..3).for_each(|node| world.start(Role::Node(node)));
        world.run(5 * LEASE);
        world.pause(1, 4 * LEASE);
        world.run(3 * LEASE);
        assert_eq!(
            world.roster().incarnation(Role::Node(1)),
            None,
            "seed {seed}"
        );
        assert_eq!(world.roster().view.epoch, 2, "seed {seed}");
        world.run(2 * LEASE);
        assert_eq!(
            world.processes()[1].member.standing(),
            Standing::Fenced,
            "seed {seed}"
        );
        assert_settled(&world, seed);
    }
}

#[test]
fn several_that_die_together_are_one_change() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::NONE);
        (0..5).for_each(|node| world.start(Role::Node(node)));
        world.start(Role::Switch);
        world.run(5 * LEASE);
        let before = world.roster().view;
        // The lowest two, whose turn it would have been, and the switch.
        [0, 1, 5]
            .into_iter()
            .for_each(|process| world.kill(process));
        world.run(4 * LEASE);
        let after = world.roster().view;
        assert_eq!((after.live.0, after.switch), (0b11100, None), "seed {seed}");
        assert!(
            after.epoch <= before.epoch + 1,
            "seed {seed}: {} views",
            after.epoch - before.epoch
        );
        assert_settled(&world, seed);
    }
}

#[test]
fn a_place_that_is_held_is_refused_and_one_whose_holder_died_is_given() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::NONE);
        (0..2).for_each(|node| world.start(Role::Node(node)));
        world.run(3 * LEASE);
        world.start(Role::Node(1));
        world.run(2 * LEASE);
        assert_eq!(
            world.processes()[2].member.standing(),
            Standing::Taken,
            "seed {seed}"
        );
        assert_eq!(world.exclusions, 0, "seed {seed}");
        world.kill(1);
        world.start(Role::Node(1));
        world.run(3 * LEASE);
        let incarnation = 2;
        assert_eq!(
            world.processes()[3].member.standing(),
            Standing::Member { incarnation },
            "seed {seed}"
        );
        assert_settled(&world, seed);
    }
}

#[test]
fn two_that_start_at_once_for_one_place_are_not_both_admitted() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::NONE);
        world.start(Role::Switch);
        world.start(Role::Switch);
        world.run(4 * LEASE);
        assert_eq!(world.standing_count(Standing::Taken), 1, "seed {seed}");
        assert_settled(&world, seed);
    }
}

#[test]
fn the_last_of_a_rack_can_die_and_the_rack_come_back() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::NONE);
        (0..2).for_each(|node| world.start(Role::Node(node)));
        world.run(3 * LEASE);
        world.kill(0);
        world.kill(1);
        world.run(5 * LEASE);
        world.start(Role::Node(1));
        world.run(3 * LEASE);
        let view = world.roster().view;
        assert_eq!(
            (view.live.0, view.epoch, view.incarnations[1]),
            (0b10, 3, 2),
            "seed {seed}"
        );
        assert_settled(&world, seed);
    }
}

#[test]
fn a_store_that_is_away_for_long_fences_nobody() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, Faults::NONE);
        (0..4).for_each(|node| world.start(Role::Node(node)));
        world.run(3 * LEASE);
        world.close_store(5 * LEASE);
        world.run(4 * LEASE);
        assert!(
            world
                .processes()
                .iter()
                .all(|process| !process.serves(world.now())),
            "seed {seed}"
        );
        world.run(4 * LEASE);
        assert_settled(&world, seed);
        assert_eq!(world.exclusions, 0, "seed {seed}");
    }
}

#[test]
fn one_that_leaves_is_let_go_without_a_fence() {
    for seed in 0..SEEDS {
        assert_eq!(let_go(seed, 1), (0b011, 1), "seed {seed}");
    }
}

/// The others wait for its part of the epoch that has begun, until they go on without it.
#[test]
fn one_that_leaves_by_what_was_so_in_another_epoch_goes_as_one_that_is_dead() {
    for seed in 0..SEEDS {
        assert_eq!(let_go(seed, 0), (0b011, 2), "seed {seed}");
    }
}

/// One of three leaves that has emptied its cache in this epoch: who is left, and their epoch.
fn let_go(seed: u64, settled: u32) -> (u32, u32) {
    let mut world = World::new(seed, Faults::NONE);
    (0..3).for_each(|node| world.start(Role::Node(node)));
    world.run(3 * LEASE);
    world.leave(2, settled);
    world.run(2 * BEAT + LEASE);
    let standing = world.processes()[2].member.standing();
    assert_eq!(standing, Standing::Left, "seed {seed}");
    let view = world.roster().view;
    (view.live.0, view.epoch)
}

/// Others may count from the moment at which a term is over: at that moment it serves no more, and
/// who is no member has none, whatever its clock shows.
#[test]
fn a_member_serves_until_its_term_is_over_and_not_at_that_moment() {
    let mut world = World::new(1, Faults::NONE);
    (0..3).for_each(|node| world.start(Role::Node(node)));
    world.run(3 * LEASE);
    for process in world.processes() {
        let until = process.member.serves_until();
        assert!(process.member.serves(until - 1) && !process.member.serves(until));
    }
    let joining = Member::new(Role::Node(3), 1, Timing::of_lease(LEASE));
    assert!(!joining.serves(0));
}
