//! Which members the others cannot reach: each says in its beats whom it does not hear,
//! and a majority's word counts.
//!
//! "Reach" is a round trip: a question and its answer, so a link that carries packets one way only
//! is no link to either end.

use super::{Beats, Places, Role, Roster};

/// What a member knows of its links to the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Links {
    /// Those that have not answered it for long. Whoever is no member does not matter.
    pub unheard: Places,
    /// Its own thread that answers others has not had its turn for long: the others' silence says
    /// nothing about them, and its own nothing about its links.
    pub starved: bool,
}

/// The members that a majority of all members cannot reach. `counts` says whose last beat is of
/// now.
///
/// The word of a member that cannot reach a majority itself does not count:
/// it is more likely to be cut off than they. A member that says that it is starved is not found
/// unreachable.
pub(super) fn unreachable(roster: &Roster, beats: &Beats, counts: impl Fn(Role) -> bool) -> Places {
    let held: Places = roster.held().collect();
    let is_majority = |some: usize| 2 * some > held.len();
    let links = |role: Role| {
        let beat = beats[role.index()].filter(|_| counts(role))?;
        (roster.holder(role) == Some((beat.token, beat.incarnation))).then_some(beat.links)
    };
    let unheard = |voter: Role| {
        let links = links(voter).filter(|links| !links.starved)?;
        let unheard = links.unheard.and(held).without(voter);
        is_majority(held.len() - unheard.len()).then_some(unheard)
    };
    let votes = |accused: Role| {
        let words = held.iter().filter_map(unheard);
        words.filter(|unheard| unheard.contains(accused)).count()
    };
    let excused = |role: Role| links(role).is_some_and(|links| links.starved);
    let found = held.iter().filter(|&role| is_majority(votes(role)));
    found.filter(|&role| !excused(role)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Beat;
    use alloc::vec::Vec;

    const A: Role = Role::Node(0);
    const B: Role = Role::Node(1);
    const C: Role = Role::Node(2);
    const D: Role = Role::Node(3);
    const S: Role = Role::Switch;

    fn roster(roles: &[Role]) -> Roster {
        let first = Roster::first(roles[0], 1);
        roles[1..].iter().fold(first, |roster, &role| {
            roster.admit(role, role.index() as u64 + 1).unwrap()
        })
    }

    /// Who is found when these say that they do not hear those.
    fn found(roles: &[Role], words: &[(Role, &[Role])], starved: &[Role]) -> Vec<Role> {
        let roster = roster(roles);
        let mut beats: Beats = [None; Role::COUNT];
        for &role in roles {
            let (token, incarnation) = roster.holder(role).unwrap();
            let words = words.iter().filter(|word| word.0 == role);
            let links = Links {
                unheard: words.flat_map(|word| word.1).copied().collect(),
                starved: starved.contains(&role),
            };
            beats[role.index()] = Some(Beat {
                token,
                incarnation,
                counter: 1,
                links,
            });
        }
        unreachable(&roster, &beats, |_| true).iter().collect()
    }

    #[test]
    fn one_whose_cable_is_cut_is_found_and_its_own_word_does_not_count() {
        let cut: &[(Role, &[Role])] = &[(A, &[C]), (B, &[C]), (C, &[A, B])];
        assert_eq!(found(&[A, B, C], cut, &[]), [C]);
        let with_switch: &[(Role, &[Role])] = &[(A, &[B]), (S, &[B]), (B, &[A, S])];
        assert_eq!(found(&[A, B, S], with_switch, &[]), [B]);
        let switch: &[(Role, &[Role])] = &[(A, &[S]), (B, &[S]), (S, &[A, B])];
        assert_eq!(found(&[A, B, S], switch, &[]), [S]);
    }

    #[test]
    fn without_a_majority_nobody_is_found() {
        assert!(found(&[A, B], &[(A, &[B]), (B, &[A])], &[]).is_empty());
        let halves: &[(Role, &[Role])] = &[(A, &[C, D]), (B, &[C, D]), (C, &[A, B]), (D, &[A, B])];
        assert!(found(&[A, B, C, D], halves, &[]).is_empty());
        // One link of two good members.
        let link: &[(Role, &[Role])] = &[(A, &[B]), (B, &[A])];
        assert!(found(&[A, B, C, D], link, &[]).is_empty());
        // All cables at once: nobody knows anything.
        let all: &[(Role, &[Role])] = &[(A, &[B, C]), (B, &[A, C]), (C, &[A, B])];
        assert!(found(&[A, B, C], all, &[]).is_empty());
    }

    #[test]
    fn the_starved_neither_accuse_nor_are_accused() {
        let cut: &[(Role, &[Role])] = &[(A, &[C]), (B, &[C])];
        assert!(found(&[A, B, C], cut, &[C]).is_empty());
        assert!(found(&[A, B, C], cut, &[B]).is_empty());
    }

    #[test]
    fn words_of_old_beats_and_of_earlier_processes_do_not_count() {
        let roster = roster(&[A, B, C]);
        let beat = |role: Role, incarnation| {
            Some(Beat {
                token: role.index() as u64 + 1,
                incarnation,
                counter: 1,
                links: Links {
                    unheard: Places::EMPTY.with(C),
                    starved: false,
                },
            })
        };
        let mut beats: Beats = [None; Role::COUNT];
        (beats[A.index()], beats[B.index()]) = (beat(A, 1), beat(B, 1));
        assert_eq!(unreachable(&roster, &beats, |_| true).len(), 1);
        assert!(unreachable(&roster, &beats, |role| role != B).is_empty());
        beats[B.index()] = beat(B, 2);
        assert!(unreachable(&roster, &beats, |_| true).is_empty());
    }
}
