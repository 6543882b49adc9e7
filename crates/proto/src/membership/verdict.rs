//! What becomes of members that a majority cannot reach.
//!
//! They are alive in the store, and may be serving: so they are not excluded at once. First the
//! roster says that they are suspected, by which they stop serving as soon as they see it; a lease
//! later, when the last lease that they could have from before is over, they are excluded. If they
//! can be reached again by then, the roster says so, and they go on.

use super::links::unreachable;
use super::watch::Watch;
use super::{Beats, Places, Role, Roster, Timing};

/// What one member remembers of it.
pub(super) struct Verdict {
    /// Whom the beats of now call unreachable.
    found: Places,
    /// Who is suspected by the roster, since which version, and when the look ended that first
    /// showed it so, ns.
    suspects: Places,
    suspected: u64,
    since: u64,
    /// When the roster was first seen to differ from what the beats say, ns.
    differs: Option<u64>,
}

impl Default for Verdict {
    fn default() -> Self {
        Verdict {
            found: Places::EMPTY,
            suspects: Places::EMPTY,
            suspected: 0,
            since: 0,
            differs: None,
        }
    }
}

impl Verdict {
    /// Whether this one may propose what should become of the roster. One that is suspected may
    /// only when nobody has anything against it any more: those who suspected it may all be gone.
    pub fn lets(&self, role: Role, next: &Roster) -> bool {
        let stays = next.incarnation(role).is_some() && !next.suspects.contains(role);
        stays && !self.found.contains(role)
    }

    /// Whether this one is called unreachable, or was.
    pub fn concerns(&self, role: Role) -> bool {
        self.found.or(self.suspects).contains(role)
    }

    /// Takes a look that ended at `now`. What should become of the roster, and since when.
    pub fn look(
        &mut self,
        now: u64,
        roster: &Roster,
        beats: &Beats,
        watch: &Watch,
        timing: &Timing,
    ) -> Option<(u64, Roster)> {
        // Whoever has just come is not judged by what was said of the process before it.
        let settled = |role: Role| {
            let since = watch.since(role);
            since.is_some_and(|since| now.saturating_sub(since) >= timing.deaf())
        };
        let recent = now.saturating_sub(3 * timing.beat);
        let counts = |role: Role| watch.has_come_since(role, recent);
        let found = unreachable(roster, beats, counts);
        self.found = found.iter().filter(|&role| settled(role)).collect();
        if roster.suspected != self.suspected {
            (self.suspected, self.since) = (roster.suspected, now);
        }
        self.suspects = roster.suspects;
        if self.found != self.suspects {
            let since = *self.differs.get_or_insert(now);
            return Some((since, roster.suspect(self.found)?));
        }
        self.differs = None;
        let over = self.since.saturating_add(timing.lease);
        let next = roster
            .exclude(self.suspects.iter())
            .filter(|_| now >= over)?;
        Some((over, next))
    }
}
