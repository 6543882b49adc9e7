//! How long the others have been silent, by one's own clock and as far as one could see.

use super::{Beat, Beats, Role, Roster};

/// What is remembered of a place.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Token and incarnation of its holder; silence starts with the holder.
    holder: (u64, u32),
    /// The last beat, whoever made it.
    beat: Option<Beat>,
    /// When the look ended that first showed it so.
    since: u64,
    /// How long nothing had changed when the last look began, ns.
    quiet: u64,
    /// How many beats of this holder have been seen to come.
    beats: u32,
    /// When the look ended that first showed this holder.
    first: u64,
    /// When the look ended that showed its last beat to have come, since no look was missing;
    /// none before.
    came: Option<u64>,
}

/// The watch over all places.
pub(super) struct Watch {
    places: [Option<Place>; Role::COUNT],
    /// When the last look ended, ns.
    looked: Option<u64>,
    /// A longer time without a look is not held against anybody, ns: whoever could not look,
    /// perhaps because of the store, may not conclude that others did not beat.
    blind: u64,
}

impl Watch {
    pub fn new(blind: u64) -> Self {
        Watch {
            places: [None; Role::COUNT],
            looked: None,
            blind,
        }
    }

    /// Takes a look that began at `asked` and ended at `now`. What it shows is from some moment
    /// between, so silence is from the end of the look that showed the last change to the beginning
    /// of this one. What has held up a look may have held up the others' beats.
    pub fn look(&mut self, asked: u64, now: u64, roster: &Roster, beats: &Beats) {
        let long = |from: u64, to: u64| to.saturating_sub(from) > self.blind;
        let blind = self.looked.is_none_or(|looked| long(looked, asked)) || long(asked, now);
        self.looked = Some(now);
        for role in Role::all() {
            let place = &mut self.places[role.index()];
            let Some(holder) = roster.holder(role) else {
                *place = None;
                continue;
            };
            let known = place.filter(|place| place.holder == holder);
            let beat = beats[role.index()];
            // A late beat of somebody who held this place before counts too:
            // it may have replaced one that came in time, between two looks.
            let moves = known.is_some_and(|place| place.beat != beat);
            let since = match known {
                Some(place) if !moves && !blind => place.since,
                _ => now,
            };
            let own = beat.is_some_and(|beat| (beat.token, beat.incarnation) == holder);
            let seen = known.map_or(0, |place| place.beats);
            let came = known.and_then(|place| place.came).filter(|_| !blind);
            *place = Some(Place {
                holder,
                beat,
                since,
                quiet: asked.saturating_sub(since),
                beats: seen.saturating_add(u32::from(moves && own)),
                first: known.map_or(now, |place| place.first),
                came: came.max((moves && own && !blind).then_some(now)),
            });
        }
    }

    /// How long the holder of this place has been silent, ns; `None` where there is none.
    pub fn quiet(&self, role: Role) -> Option<u64> {
        self.places[role.index()].map(|place| place.quiet)
    }

    /// Since when this holder of the place has been seen there, ns.
    pub fn since(&self, role: Role) -> Option<u64> {
        self.places[role.index()].map(|place| place.first)
    }

    /// Whether a beat of this holder has been seen to come since `then`.
    pub fn has_come_since(&self, role: Role, then: u64) -> bool {
        let came = self.places[role.index()].and_then(|place| place.came);
        came.is_some_and(|came| came >= then)
    }

    /// Whether the holder of this place is certainly alive. One beat may have been on its way when
    /// it died.
    pub fn is_alive(&self, role: Role) -> bool {
        self.places[role.index()].is_some_and(|place| place.beats >= 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Links;

    const BLIND: u64 = 20;

    /// What another is said to have been silent for after these looks, each from and to a time,
    /// that show nothing new.
    fn quiet(looks: &[(u64, u64)]) -> Option<u64> {
        let other = Role::Node(1);
        let roster = Roster::first(Role::Node(0), 1).admit(other, 2).unwrap();
        let mut beats: Beats = [None; Role::COUNT];
        beats[other.index()] = Some(Beat {
            token: 2,
            incarnation: 1,
            counter: 1,
            links: Links::default(),
        });
        let mut watch = Watch::new(BLIND);
        for &(asked, now) in looks {
            watch.look(asked, now, &roster, &beats);
        }
        watch.quiet(other)
    }

    #[test]
    fn silence_is_counted_from_the_end_of_a_look_to_the_beginning_of_another() {
        assert_eq!(quiet(&[(0, 1), (10, 12), (20, 21), (30, 50)]), Some(29));
    }

    #[test]
    fn neither_a_pause_between_looks_nor_a_look_that_takes_long_is_held_against_others() {
        assert_eq!(quiet(&[(0, 1), (22, 23), (30, 31)]), Some(7));
        assert_eq!(quiet(&[(0, 1), (10, 31), (41, 42)]), Some(10));
    }
}
