//! Members that live and beat, and that others cannot reach. The world asserts that nobody is
//! excluded who serves.

use super::{SEEDS, assert_settled};
use crate::world::{Faults, LEASE, World};
use rackmem_proto::membership::{Role, Standing};

/// How long it takes at most until one that cannot be reached is excluded: two leases until it is
/// called unheard, one until its own is over, by clocks that are wrong by a tenth; beats,
/// looks and turns.
const FEW: u64 = 6 * LEASE;

fn node(node: u16) -> Role {
    Role::Node(node)
}

/// A rack of so many nodes, and a switch, that has come up.
fn rack(seed: u64, faults: Faults, nodes: u16, switch: bool) -> World {
    let mut world = World::new(seed, faults);
    (0..nodes).for_each(|number| world.start(node(number)));
    if switch {
        world.start(Role::Switch);
    }
    world.run(6 * LEASE);
    world
}

fn others(world: &World, than: Role) -> Vec<Role> {
    world.roster().held().filter(|role| *role != than).collect()
}

#[test]
fn one_whose_cable_is_cut_is_excluded_and_the_others_go_on() {
    for seed in 0..SEEDS / 4 {
        // Both ways, only to it, only from it.
        for way in 0..3 {
            let (nodes, switch, victim) = match seed % 4 {
                0 => (3, false, node(2)),
                1 => (2, true, node(0)),
                2 => (4, true, Role::Switch),
                _ => (5, true, node(0)),
            };
            let mut world = rack(seed, Faults::NONE, nodes, switch);
            let before = world.roster().held().count();
            for other in others(&world, victim) {
                if way != 1 {
                    world.cut(victim, other);
                }
                if way != 2 {
                    world.cut(other, victim);
                }
            }
            world.run(FEW);
            let roster = *world.roster();
            assert_eq!(roster.incarnation(victim), None, "seed {seed}, way {way}");
            assert_eq!(roster.held().count(), before - 1, "seed {seed}, way {way}");
            assert!(roster.suspects.is_empty(), "seed {seed}");
            assert_eq!(world.standing_count(Standing::Fenced), 1, "seed {seed}");
            world.run(2 * LEASE);
            assert_settled(&world, seed);
        }
    }
}

#[test]
fn without_a_majority_nobody_is_excluded_and_all_serve() {
    for seed in 0..SEEDS / 4 {
        let mut world = match seed % 3 {
            // Two of two; halves; one cable of five.
            0 => rack(seed, Faults::NONE, 2, false),
            1 => rack(seed, Faults::NONE, 4, false),
            _ => rack(seed, Faults::NONE, 5, true),
        };
        let pairs: &[(u16, u16)] = match seed % 3 {
            0 => &[(0, 1), (1, 0)],
            1 => &[(0, 2), (3, 0), (1, 2), (1, 3)],
            _ => &[(0, 1)],
        };
        for &(from, to) in pairs {
            world.cut(node(from), node(to));
        }
        world.run(4 * FEW);
        assert_eq!(world.exclusions, 0, "seed {seed}");
        assert_eq!(world.lapses(), 0, "seed {seed}");
        assert_settled(&world, seed);
    }
}

#[test]
fn one_that_is_starved_and_says_so_is_not_excluded() {
    for seed in 0..SEEDS / 4 {
        let mut world = rack(seed, Faults::NONE, 4, true);
        world.starve(node(1));
        if seed % 2 == 0 {
            world.starve(node(2));
        }
        world.run(4 * FEW);
        assert_eq!(world.exclusions, 0, "seed {seed}");
        assert_eq!(world.lapses(), 0, "seed {seed}");
        assert_settled(&world, seed);
    }
}

#[test]
fn one_that_can_be_reached_again_in_time_goes_on() {
    let (mut acquitted, mut excluded) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = rack(seed, Faults::NONE, 4, false);
        for other in others(&world, node(1)) {
            world.cut(node(1), other);
        }
        // About when the roster says that it is suspected, or a little later.
        world.run(2 * LEASE + (seed % 20) * LEASE / 10);
        let suspected = !world.roster().suspects.is_empty();
        world.mend();
        world.run(FEW);
        assert!(world.roster().suspects.is_empty(), "seed {seed}");
        assert_settled(&world, seed);
        let stays = world.roster().incarnation(node(1)).is_some();
        acquitted += u64::from(suspected && stays);
        excluded += u64::from(!stays);
        assert_eq!(world.exclusions, u64::from(!stays), "seed {seed}");
    }
    assert!(
        acquitted > SEEDS / 10 && excluded > SEEDS / 10,
        "{acquitted} {excluded}"
    );
}

#[test]
fn one_that_starts_again_waits_until_it_can_reach_the_others() {
    for seed in 0..SEEDS / 4 {
        let mut world = rack(seed, Faults::NONE, 3, true);
        for other in others(&world, node(1)) {
            world.cut(node(1), other);
        }
        world.run(FEW);
        let epoch = world.roster().view.epoch;
        let again = world.processes().len();
        world.start(node(1));
        world.run(4 * FEW);
        let standing = |world: &World| world.processes()[again].member.standing();
        assert_eq!(standing(&world), Standing::Joining, "seed {seed}");
        assert!(world.processes()[again].member.is_kept_out(), "seed {seed}");
        assert_eq!(world.roster().view.epoch, epoch, "seed {seed}");
        world.mend();
        world.run(FEW);
        let incarnation = 2;
        assert_eq!(standing(&world), Standing::Member { incarnation });
        assert_settled(&world, seed);
    }
}

#[test]
fn whatever_is_cut_nobody_serves_outside_the_view_and_all_agree_when_it_is_whole() {
    let (mut exclusions, mut suspected) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = rack(seed, Faults::ALL, 5, true);
        for _ in 0..12 {
            world.upset_cables();
            world.run(3 * LEASE);
            suspected += u64::from(!world.roster().suspects.is_empty());
            if seed % 3 == 0 {
                world.upset();
            }
        }
        world.calm();
        world.mend();
        world.run(16 * LEASE);
        assert_settled(&world, seed);
        assert!(world.roster().suspects.is_empty(), "seed {seed}");
        exclusions += world.exclusions;
    }
    assert!(
        exclusions > SEEDS && suspected > SEEDS / 2,
        "{exclusions} {suspected}"
    );
}
