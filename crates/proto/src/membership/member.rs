//! One process' part in the membership.

use super::lease::{Lease, Stored};
use super::verdict::Verdict;
use super::watch::Watch;
use super::{Beat, Beats, Links, Role, Roster};

/// The rhythm that the members of a rack agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// How long a member may be silent before it is declared dead, ns.
    pub lease: u64,
    /// How often a member beats and looks, ns. The host gives each operation of the store as long
    /// at most.
    pub beat: u64,
}

impl Timing {
    /// A lease of so many ns, and five beats in it.
    pub const fn of_lease(lease: u64) -> Timing {
        let beat = lease / 5;
        Timing { lease, beat }
    }

    /// How long a member is in the rack before others may find that they cannot reach it, and how
    /// long one has to be silent on its links to be called unheard, ns.
    pub const fn deaf(&self) -> u64 {
        self.lease.saturating_mul(2)
    }

    /// How long a member serves on a beat, ns. Less than the lease by more than clocks differ:
    /// with clocks that are wrong by a tenth, the slowest counts 3/4 of a lease before the fastest
    /// counts all of it.
    pub const fn term(&self) -> u64 {
        self.lease / 4 * 3
    }
}

/// What a look at the store showed.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// When the look began, ns by the member's clock. What it shows is no older.
    pub asked: u64,
    /// The roster; none before a rack has a member.
    pub roster: Option<&'a Roster>,
    /// The last beats, by role.
    pub beats: &'a Beats,
}

/// What a member asks its host to do, in this order. An operation that fails,
/// or whose answer does not come in time, is not tried again: the member asks anew at the next
/// look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acts {
    /// Store this beat; when the store has said yes, tell by [`Member::beaten`].
    pub beat: Option<Beat>,
    /// Put this roster in the place of the version before it, if that is still the newest.
    /// The answer does not matter; look again at once.
    pub propose: Option<Roster>,
}

/// Where a member stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It has asked to be admitted, or waits until it can ask.
    Joining,
    /// It is a member; whether it may serve, [`Member::serves`] knows.
    Member {
        /// The incarnation that it was admitted with.
        incarnation: u32,
    },
    /// It was a member and another view was agreed on: it must stop serving, for ever.
    /// The process may start again as a new one.
    Fenced,
    /// Another process holds this place and is alive.
    Taken,
    /// It has left, as it was asked to.
    Left,
}

/// One process' part. The host looks at the store about every [`Timing::beat`],
/// hands over what it saw, and does what it is asked to.
pub struct Member {
    role: Role,
    token: u64,
    timing: Timing,
    standing: Standing,
    /// The newest roster seen.
    roster: Option<Roster>,
    watch: Watch,
    lease: Lease,
    /// When the last look began that did not show us in our place.
    absent: u64,
    counter: u64,
    /// When the last beat was asked for.
    beat_at: Option<u64>,
    stored: Option<Stored>,
    /// It asks to be let go, and the epoch in which nobody needs it any more.
    leaving: Option<u32>,
    links: Links,
    verdict: Verdict,
}

impl Member {
    /// A process that wants this place. `token` is a random number that is not 0 and that no other
    /// process draws.
    pub fn new(role: Role, token: u64, timing: Timing) -> Member {
        Member {
            role,
            token,
            timing,
            standing: Standing::Joining,
            roster: None,
            watch: Watch::new(timing.beat.saturating_mul(2)),
            lease: Lease::Lapsed { chain: None },
            absent: 0,
            counter: 0,
            beat_at: None,
            stored: None,
            leaving: None,
            links: Links::default(),
            verdict: Verdict::default(),
        }
    }

    /// Takes a look at the store that ended at `now`, ns by the same clock as always.
    pub fn handle(&mut self, now: u64, seen: &Observed) -> Acts {
        if self.is_over() || self.is_outdated(seen) {
            return Acts::default();
        }
        self.roster = seen.roster.copied();
        let mut acts = Acts::default();
        let Some(roster) = seen.roster else {
            self.absent = seen.asked;
            acts.propose = Some(Roster::first(self.role, self.token));
            return acts;
        };
        self.watch.look(seen.asked, now, roster, seen.beats);
        let touch = self.stand(seen.asked, now, roster);
        if self.is_over() {
            return acts;
        }
        acts.beat = self.next_beat(now);
        let (watch, timing) = (&self.watch, &self.timing);
        let judged = self.verdict.look(now, roster, seen.beats, watch, timing);
        acts.propose = self.burial(roster).or_else(|| match self.standing {
            Standing::Joining if self.is_kept_out() => None,
            Standing::Joining => roster.admit(self.role, self.token),
            _ => {
                if let Some(settled) = self.leaving {
                    return roster.leave(self.role, settled);
                }
                let sentence = judged.filter(|(_, next)| self.verdict.lets(self.role, next));
                let turn = self.turn(roster);
                let due = |since: u64| now >= since.saturating_add(self.timing.beat * turn);
                match sentence {
                    Some((since, next)) if due(since) => Some(next),
                    _ if touch => roster.touch(),
                    _ => None,
                }
            }
        });
        acts
    }

    /// A beat that was handed to the store at `started` has been stored at `now`, ns.
    pub fn beaten(&mut self, started: u64, now: u64) {
        let ended = now;
        self.stored = Some(Stored { started, ended });
    }

    /// What this process knows of its links to others from now on. At first that is that all can be
    /// reached.
    pub fn hears(&mut self, links: Links) {
        self.links = links;
    }

    /// Whether this process wants a place and does not ask for it, because it cannot reach a
    /// majority of those who are there: it would be declared dead again. Those that have been
    /// silent for a lease are not waited for.
    pub fn is_kept_out(&self) -> bool {
        let (Standing::Joining, Some(roster)) = (self.standing, &self.roster) else {
            return false;
        };
        let lives = |role: &Role| {
            let quiet = self.watch.quiet(*role).unwrap_or(0);
            *role != self.role && quiet < self.timing.lease && !roster.suspects.contains(*role)
        };
        let heard = |role: &Role| !self.links.unheard.contains(*role);
        let others = roster.held().filter(lives).count();
        let reached = roster.held().filter(lives).filter(heard).count();
        2 * (reached + 1) <= others + 1
    }

    /// How many members propose before this one.
    fn turn(&self, roster: &Roster) -> u64 {
        if self.verdict.concerns(self.role) {
            return roster.held().count() as u64;
        }
        let before = roster.held().take_while(|&role| role != self.role);
        before.filter(|&role| !self.verdict.concerns(role)).count() as u64
    }

    /// From now on asks to be let go. The process serves nobody any more and its cache is empty,
    /// and all members had what they needed of it to begin the epoch `settled`. If the rack has
    /// gone on in another one, which this process may not have heard of, it goes as one that is
    /// dead ([`View::leave`](super::View::leave)). The first time this is said counts.
    pub fn leave(&mut self, settled: u32) {
        self.leaving.get_or_insert(settled);
    }

    /// A look that went back in time shows nothing: a folder may be read while it changes.
    fn is_outdated(&self, seen: &Observed) -> bool {
        let version = |roster: &Roster| roster.view.version;
        let known = self.roster.as_ref().map_or(0, version);
        seen.roster.map_or(0, version) < known
    }

    /// Where we stand by this roster. Says whether the version must rise before we may serve.
    fn stand(&mut self, asked: u64, now: u64, roster: &Roster) -> bool {
        let holder = roster.holder(self.role);
        let ours = holder.filter(|&(token, _)| token == self.token);
        match (self.standing, ours) {
            (Standing::Joining, Some((_, incarnation))) => {
                self.standing = Standing::Member { incarnation };
                // Whoever watches us began after that look.
                self.lease = Lease::Held {
                    until: self.absent.saturating_add(self.timing.term()),
                };
            }
            (Standing::Joining, None) => {
                self.absent = asked;
                if self.watch.is_alive(self.role) {
                    self.standing = Standing::Taken;
                } else if self.leaving.is_some() {
                    self.standing = Standing::Left;
                }
                return false;
            }
            (Standing::Member { incarnation }, Some((_, listed))) if incarnation == listed => {}
            (Standing::Member { .. }, _) if self.leaving.is_some() => {
                self.standing = Standing::Left
            }
            _ => self.standing = Standing::Fenced,
        }
        if roster.suspects.contains(self.role) {
            self.lease.end();
            return false;
        }
        let version = roster.view.version;
        self.lease
            .look(asked, now, version, self.stored, self.timing.term())
    }

    fn next_beat(&mut self, now: u64) -> Option<Beat> {
        let Standing::Member { incarnation } = self.standing else {
            return None;
        };
        // Looks between beats, after a proposal, need none of their own.
        let recent = |at: u64| now.saturating_sub(at) < self.timing.beat / 2;
        if self.beat_at.is_some_and(recent) {
            return None;
        }
        self.beat_at = Some(now);
        self.counter += 1;
        Some(Beat {
            token: self.token,
            incarnation,
            counter: self.counter,
            links: self.links,
        })
    }

    /// A roster without those who have been silent for a lease, when it is our turn:
    /// the first of those who are left proposes at once, each other waits a beat longer, newcomers
    /// longest. Any of them may, so this only saves proposals.
    fn burial(&self, roster: &Roster) -> Option<Roster> {
        let quiet = |role: Role| {
            let ours = self.standing != Standing::Joining && role == self.role;
            self.watch.quiet(role).filter(|_| !ours).unwrap_or(0)
        };
        let is_dead = |&role: &Role| quiet(role) >= self.timing.lease;
        let longest = roster.held().map(quiet).max()?;
        let before = roster.held().filter(|role| !is_dead(role));
        let turn = match self.standing {
            Standing::Member { .. } => before.take_while(|&role| role != self.role).count(),
            _ => before.count() + 1,
        };
        let late = 2 * self.timing.beat;
        let is_late = |role: Role| (late..self.timing.lease).contains(&quiet(role));
        // Those who died together are found dead one after another, by up to a beat:
        // one change is better than two.
        let doubt = if roster.held().any(is_late) { late } else { 0 };
        let patience = self.timing.beat.saturating_mul(turn as u64) + doubt;
        if longest < self.timing.lease.saturating_add(patience) {
            return None;
        }
        roster.exclude(roster.held().filter(is_dead))
    }

    /// Whether this member may answer others and serve from its cache at `now`, ns.
    pub fn serves(&self, now: u64) -> bool {
        now < self.serves_until()
    }

    /// To when it may, ns, if it learns nothing more; 0 when it may not at all.
    pub fn serves_until(&self) -> u64 {
        match self.standing {
            Standing::Member { .. } if self.leaving.is_none() => self.lease.until(),
            _ => 0,
        }
    }

    /// Where it stands.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// Whether nothing can change any more: the host need not look again.
    pub fn is_over(&self) -> bool {
        !matches!(self.standing, Standing::Joining | Standing::Member { .. })
    }

    /// The newest roster that it has seen.
    pub fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// The place that it holds or wants.
    pub fn role(&self) -> Role {
        self.role
    }
}
