//! The keepers of a world's members: each holds its process's lease by the membership's own rules,
//! at a store that takes its time.
//!
//! A process may be stopped: nothing of it runs, what is for it waits, and when it goes on its
//! threads do so in any order. Its keeper may be late alone, too. What excludes it then is its
//! silence, as the other members see it.

use super::block;
use super::fabric::{Fabric, Occurrence, member};
use super::failures::{Failure, Planned};
use super::membership::described;
use super::mutation::Mutation;
use super::node::Condition;
use super::run::World;
use rackmem_proto::membership::{
    Beat, Beats, Member, Observed, Places, Role, Roster, Standing, Term, Timing, View,
};
use rackmem_proto::switch::SWITCH;
use rackmem_proto::wire::{Copyset, NodeId};
use std::collections::BTreeMap;

/// The rhythm of a world's members.
const TIMING: Timing = Timing::of_lease(150_000);
/// What the store takes for an operation, at most, mostly.
const STORE: u64 = 4_000;
/// And sometimes: a proposal lands after those who made it have looked again.
const SLOW_STORE: u64 = 60_000;
/// How much later than the others a thread of a process goes on that was stopped, mostly.
const SOON: u64 = 3_000;
/// How much later its keeper does, every other time.
const LATE: u64 = 400_000;
/// Until a process that has been fenced is there again.
const RESTART: u64 = 100_000;

/// A member's keeper, as it was started: what an earlier one of the same place has begun is
/// nobody's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Who {
    member: NodeId,
    life: u32,
}

/// A step of a keeper, or something that happens at the store.
#[derive(Clone, Debug)]
pub enum Keep {
    /// It looks at the store.
    Look(Who),
    /// It has what it saw, and decides.
    Decide(Who),
    /// The store has taken the beat that was handed to it then.
    Stored(Who, u64),
    /// The lease may be over.
    Lapse(Who),
    /// A beat arrives at the store.
    Beat(Role, Beat),
    /// A proposal arrives at the store.
    Propose(Box<Roster>),
    /// A process starts.
    Start(NodeId),
    /// What has been held back of a process goes on.
    Release(NodeId),
}

/// What a node's threads see of its lease.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// To when the node may serve.
    pub term: Term,
    /// Whether operations may begin, as its keeper has told last.
    pub serves: bool,
    /// The rack has gone on without it, and nobody takes its packets any more: what it does,
    /// it does to itself.
    pub alone: bool,
    /// How long it has been stopped, which the wrong clock does not count, in nanoseconds.
    pub stopped: u64,
}

impl Default for Lease {
    /// Where nobody keeps a lease it does not end.
    fn default() -> Self {
        Lease {
            term: Term::ENDLESS,
            serves: true,
            alone: false,
            stopped: 0,
        }
    }
}

struct Keeper {
    who: Who,
    member: Member,
    /// When the look under way began, and what it showed.
    seen: Option<(u64, Roster, Beats)>,
    /// What is to be proposed when the beat is stored.
    proposal: Option<Roster>,
    /// The view that its process was told of last.
    version: u64,
}

/// What a process does not do while it is stopped, or its keeper late.
struct Held {
    whole: bool,
    since: u64,
    what: Vec<Occurrence>,
}

/// The store of a world, and its keepers.
pub struct Keeping {
    roster: Roster,
    beats: Beats,
    keepers: BTreeMap<NodeId, Keeper>,
    held: BTreeMap<NodeId, Held>,
    lives: u32,
}

impl Keeping {
    pub fn new(view: &View) -> Keeping {
        let mut keeping = Keeping {
            roster: Roster {
                view: *view,
                holders: [0; Role::COUNT],
                suspects: Places::EMPTY,
                suspected: 0,
            },
            beats: [None; Role::COUNT],
            keepers: BTreeMap::new(),
            held: BTreeMap::new(),
            lives: 0,
        };
        let members: Vec<NodeId> = keeping.roster.held().map(number).collect();
        for member in members {
            let who = keeping.begin(member, view.version);
            keeping.roster.holders[role(member).index()] = u64::from(who.life);
        }
        keeping
    }

    fn begin(&mut self, member: NodeId, version: u64) -> Who {
        self.lives += 1;
        let life = self.lives;
        let who = Who { member, life };
        let keeper = Keeper {
            who,
            member: Member::new(role(member), u64::from(life), TIMING),
            seen: None,
            proposal: None,
            version,
        };
        self.keepers.insert(member, keeper);
        who
    }

    fn keeper(&mut self, who: Who) -> Option<&mut Keeper> {
        let keeper = self.keepers.get_mut(&who.member)?;
        (keeper.who == who).then_some(keeper)
    }

    /// Whether somebody is stopped, late or not there.
    pub fn busy(&self, nodes: u16) -> bool {
        let there = (0..nodes).all(|node| self.roster.view.live.contains(node));
        !there || !self.held.is_empty()
    }

    /// Keeps what a process would do that is stopped, or a keeper that is late.
    /// What anybody else does comes back.
    fn hold(&mut self, what: Occurrence, threads: usize) -> Option<Occurrence> {
        let (whose, keeps) = match &what {
            Occurrence::Wake(thread) | Occurrence::Lock(thread) => {
                ((thread / threads) as NodeId, false)
            }
            Occurrence::Tick(member) => (*member, false),
            Occurrence::Arrival(packet) => match member(packet.to) {
                Some(member) => (member, false),
                None => return Some(what),
            },
            Occurrence::Keep(
                Keep::Look(who) | Keep::Decide(who) | Keep::Stored(who, _) | Keep::Lapse(who),
            ) => (who.member, true),
            _ => return Some(what),
        };
        match self.held.get_mut(&whose) {
            Some(held) if held.whole || keeps => {
                held.what.push(what);
                None
            }
            _ => Some(what),
        }
    }
}

fn role(member: NodeId) -> Role {
    match member {
        SWITCH => Role::Switch,
        node => Role::Node(node),
    }
}

fn number(role: Role) -> NodeId {
    match role {
        Role::Switch => SWITCH,
        Role::Node(node) => node,
    }
}

impl World {
    /// Starts the keepers, if this world has any.
    pub(super) fn start_keepers(&mut self) {
        let Some(keeping) = &self.keeping else { return };
        let keepers: Vec<Who> = keeping.keepers.values().map(|it| it.who).collect();
        for who in keepers {
            let after = self.random.below(TIMING.beat);
            self.keep_after(after, Keep::Look(who));
            if who.member != SWITCH {
                self.nodes[usize::from(who.member)].lease.term = Term(TIMING.term());
            }
        }
    }

    /// What happens now; nothing if it is of a process that is stopped.
    pub(super) fn not_held(&mut self, what: Occurrence) -> Option<Occurrence> {
        match &mut self.keeping {
            Some(keeping) => keeping.hold(what, usize::from(self.config.threads)),
            None => Some(what),
        }
    }

    fn keep_after(&mut self, after: u64, keep: Keep) {
        self.fabric.schedule(after, Occurrence::Keep(keep));
    }

    fn store_takes(&mut self, most: u64) -> u64 {
        500 + self.random.below(most)
    }

    /// A process is stopped, or only its keeper is.
    pub(super) fn hold_back(&mut self, planned: Planned) {
        let (node, whole) = match planned.what {
            Failure::Stop(node) => (node, true),
            Failure::Starve(node) => (node, false),
            _ => return,
        };
        let now = self.fabric.now;
        let Some(keeping) = &mut self.keeping else {
            return;
        };
        let members = keeping.roster.view.live;
        let free = members.iter().filter(|it| !keeping.held.contains_key(it));
        if free.count() <= 2 || !members.contains(node) || keeping.held.contains_key(&node) {
            return;
        }
        let held = Held {
            whole,
            since: now,
            what: Vec::new(),
        };
        keeping.held.insert(node, held);
        self.broken.stopped += u64::from(whole);
        self.broken.starved += u64::from(!whole);
        self.fabric.tell(|| match whole {
            true => format!("node {node} is stopped"),
            false => format!("the keeper of node {node} gets no processor"),
        });
        self.keep_after(planned.lasts, Keep::Release(node));
    }

    /// The threads of a process go on, each when it gets a processor;
    /// its keeper may be the last by far.
    fn release(&mut self, node: NodeId) {
        let Some(held) = self.keeping.as_mut().and_then(|it| it.held.remove(&node)) else {
            return;
        };
        if held.whole {
            let stopped = self.fabric.now - held.since;
            self.nodes[usize::from(node)].lease.stopped += stopped;
            self.fabric.tell(|| format!("node {node} goes on"));
        }
        let late = held.whole && self.random.below(2) == 0;
        if late && let Some(keeping) = &mut self.keeping {
            let held = Held {
                whole: false,
                since: self.fabric.now,
                what: Vec::new(),
            };
            keeping.held.insert(node, held);
        }
        for what in held.what {
            let after = self.random.below(SOON);
            self.fabric.schedule(after, what);
        }
        if late {
            let after = self.random.below(LATE);
            self.keep_after(after, Keep::Release(node));
        }
    }

    pub(super) fn keep(&mut self, keep: Keep) {
        match keep {
            Keep::Look(who) => self.look(who),
            Keep::Decide(who) => self.decide(who),
            Keep::Stored(who, started) => self.stored(who, started),
            Keep::Lapse(who) => self.lapse(who),
            Keep::Beat(role, beat) => {
                if let Some(keeping) = &mut self.keeping {
                    keeping.beats[role.index()] = Some(beat);
                }
            }
            Keep::Propose(roster) => self.land(&roster),
            Keep::Start(node) => {
                if let Some(keeping) = &mut self.keeping {
                    let who = keeping.begin(node, 0);
                    self.look(who);
                }
            }
            Keep::Release(node) => self.release(node),
        }
    }

    fn look(&mut self, who: Who) {
        let now = self.fabric.now;
        let Some(keeping) = &mut self.keeping else {
            return;
        };
        let (roster, beats) = (keeping.roster, keeping.beats);
        let Some(keeper) = keeping.keeper(who) else {
            return;
        };
        keeper.seen = Some((now, roster, beats));
        let after = self.store_takes(STORE);
        self.keep_after(after, Keep::Decide(who));
    }

    fn decide(&mut self, who: Who) {
        let now = self.fabric.now;
        let Some(keeper) = self.keeping.as_mut().and_then(|it| it.keeper(who)) else {
            return;
        };
        let Some((asked, roster, beats)) = keeper.seen.take() else {
            return;
        };
        let seen = Observed {
            asked,
            roster: Some(&roster),
            beats: &beats,
        };
        let acts = keeper.member.handle(now, &seen);
        keeper.proposal = acts.propose;
        self.told(who);
        match acts.beat {
            Some(beat) => {
                let arrives = self.store_takes(STORE);
                let answered = arrives + self.store_takes(STORE);
                self.keep_after(arrives, Keep::Beat(role(who.member), beat));
                self.keep_after(answered, Keep::Stored(who, now));
            }
            None => self.propose(who),
        }
    }

    /// What a process is told after a look: first the view, then to when it may serve.
    fn told(&mut self, who: Who) {
        let Some(keeper) = self.keeping.as_mut().and_then(|it| it.keeper(who)) else {
            return;
        };
        let (standing, until) = (keeper.member.standing(), keeper.member.serves_until());
        let view = keeper.member.roster().map(|roster| roster.view);
        let before = keeper.version;
        match (standing, view) {
            (Standing::Member { .. }, Some(view)) => {
                keeper.version = view.version;
                if view.version > before {
                    self.learn(who.member, &view);
                    self.leave_alone();
                }
                if who.member != SWITCH {
                    self.set_term(who, until);
                }
            }
            (Standing::Fenced, _) => {
                if let Some(keeping) = &mut self.keeping {
                    keeping.keepers.remove(&who.member);
                }
                self.broken.fenced += 1;
                self.stop(who.member, Condition::Down);
                let after = self.random.below(RESTART);
                self.keep_after(after, Keep::Start(who.member));
            }
            _ => {}
        }
    }

    fn set_term(&mut self, who: Who, until: u64) {
        let now = self.fabric.now;
        let lease = &mut self.nodes[usize::from(who.member)].lease;
        let served = std::mem::replace(&mut lease.serves, now < until);
        let regained = lease.serves && !served;
        lease.term = Term(until);
        self.broken.regained += u64::from(regained);
        if now < until {
            self.keep_after(until - now, Keep::Lapse(who));
        }
    }

    fn lapse(&mut self, who: Who) {
        let now = self.fabric.now;
        if self
            .keeping
            .as_mut()
            .and_then(|it| it.keeper(who))
            .is_some()
        {
            let lease = &mut self.nodes[usize::from(who.member)].lease;
            lease.serves = lease.term.holds(|| now);
        }
    }

    fn stored(&mut self, who: Who, started: u64) {
        let now = self.fabric.now;
        let extends = self.config.mutation == Some(Mutation::ExtendEndedTerm);
        let Some(keeper) = self.keeping.as_mut().and_then(|it| it.keeper(who)) else {
            return;
        };
        keeper.member.beaten(started, now);
        if extends && who.member != SWITCH {
            self.set_term(who, started + TIMING.term());
        }
        self.propose(who);
    }

    fn propose(&mut self, who: Who) {
        let Some(keeper) = self.keeping.as_mut().and_then(|it| it.keeper(who)) else {
            return;
        };
        let Some(next) = keeper.proposal.take() else {
            return self.keep_after(TIMING.beat, Keep::Look(who));
        };
        let slow = self.random.below(4) == 0;
        let arrives = self.store_takes(if slow { SLOW_STORE } else { STORE });
        self.keep_after(arrives, Keep::Propose(Box::new(next)));
        // Its answer may be late, and is not waited for longer than a beat.
        let again = arrives.min(TIMING.beat) + self.random.below(TIMING.beat / 8);
        self.keep_after(again, Keep::Look(who));
    }

    /// A proposal takes the place of the version before it, if that is still the newest.
    fn land(&mut self, next: &Roster) {
        let Some(keeping) = &mut self.keeping else {
            return;
        };
        let before = keeping.roster.view;
        if next.view.version != before.version + 1 {
            return;
        }
        keeping.roster = *next;
        let view = next.view;
        self.fabric.tell(|| described(&view));
        let excluded = Copyset(before.live.0 & !view.live.0);
        for node in excluded.iter() {
            // Its threads may go on for a while: nobody counts what they have.
            self.died = self.died.with(node);
            self.broken.excluded += 1;
            if self.nodes[usize::from(node)].standing == Condition::Up {
                self.nodes[usize::from(node)].standing = Condition::Fenced;
            }
        }
        let old = std::mem::replace(&mut self.view, view);
        let come = Copyset(view.live.0 & !before.live.0);
        for node in come.iter() {
            self.come_back(node, old);
        }
    }

    /// A node that was fenced is a member again, with an empty cache and other memory.
    fn come_back(&mut self, node: NodeId, before: View) {
        let view = self.view;
        let at = usize::from(node);
        let incarnation = view.incarnations[at];
        self.oracle
            .bury(|tag| tag.home().is_of(node) && block::incarnation(tag) < incarnation);
        let fresh = World::node(node, &self.config, &view, before, self.draw);
        let retired = std::mem::replace(&mut self.nodes[at], fresh);
        self.past.add_node(&retired);
        self.nodes[at].lease = Lease {
            term: Term::NONE,
            serves: false,
            ..Lease::default()
        };
        let switch = view.switch.is_some();
        for thread in self.threads_of(node) {
            let fabric = &mut self.fabric;
            self.threads[thread].born_again(view.epoch, incarnation, switch, fabric);
        }
        self.learn(node, &view);
        self.leave_alone();
    }

    /// Nobody takes the packets of a node whose epoch all members have left.
    fn leave_alone(&mut self) {
        let members = self.view.live.iter();
        let epochs = members.map(|node| self.nodes[usize::from(node)].view.epoch);
        let switch = self.switch.as_ref().map(|switch| switch.epoch());
        let Some(oldest) = epochs.chain(switch).min() else {
            return;
        };
        for node in &mut self.nodes {
            node.lease.alone |= node.standing == Condition::Fenced && node.view.epoch < oldest;
        }
    }
}

/// How a thread's clock runs.
pub fn clock(fabric: &Fabric, lease: &Lease, mutation: Option<Mutation>) -> u64 {
    match mutation {
        // One that stands still while the process does.
        Some(Mutation::WrongClock) => fabric.now - lease.stopped,
        _ => fabric.now,
    }
}
