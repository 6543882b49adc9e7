//! Virtual time, the store, and processes that run members over it.

use crate::cables::Cables;
use crate::random::Random;
use rackmem_proto::membership::{
    Acts, Beat, Beats, Member, Observed, Role, Roster, Standing, Timing,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Of true time, ns.
pub const LEASE: u64 = 1_000_000;
pub const BEAT: u64 = LEASE / 5;

/// How often things go wrong: one in so many, 0 for never.
#[derive(Clone, Copy)]
pub struct Faults {
    lost: u64,
    late: u64,
    pause: u64,
    late_proposal: u64,
}

impl Faults {
    pub const NONE: Faults = Faults {
        lost: 0,
        late: 0,
        pause: 0,
        late_proposal: 0,
    };
    pub const LATE_PROPOSALS: Faults = Faults {
        pause: 25,
        late_proposal: 2,
        ..Faults::NONE
    };
    pub const ALL: Faults = Faults {
        lost: 12,
        late: 12,
        pause: 60,
        late_proposal: 4,
    };
}

pub struct Process {
    pub role: Role,
    pub token: u64,
    pub member: Member,
    pub dead: bool,
    /// Its clock: thousandths of true time, and what it showed at the beginning.
    rate: u64,
    offset: u64,
    paused_until: u64,
    lapses: u64,
    served: bool,
}

impl Process {
    fn clock(&self, now: u64) -> u64 {
        self.offset + now * self.rate / 1000
    }

    pub fn serves(&self, now: u64) -> bool {
        !self.dead && self.member.serves(self.clock(now))
    }
}

#[derive(Clone, Debug)]
enum Event {
    /// The process looks at the store.
    Wake,
    /// A look is made at this moment; the answer comes later.
    Look {
        asked: u64,
        answer: u64,
    },
    Answer {
        asked: u64,
        seen: Box<(Option<Roster>, Beats)>,
    },
    Store(Beat),
    Beaten {
        started: u64,
        then: Option<Box<Roster>>,
    },
    Unknown {
        then: Option<Box<Roster>>,
    },
    Propose(Box<Roster>),
}

pub struct World {
    random: Random,
    seed: u64,
    faults: Faults,
    now: u64,
    order: u64,
    agenda: BinaryHeap<Reverse<(u64, u64, usize)>>,
    events: BTreeMap<u64, Event>,
    processes: Vec<Process>,
    roster: Option<Roster>,
    beats: Beats,
    closed_until: u64,
    cables: Cables,
    pub exclusions: u64,
}

impl World {
    pub fn new(seed: u64, faults: Faults) -> World {
        World {
            random: Random::new(seed),
            seed,
            faults,
            now: 0,
            order: 0,
            agenda: BinaryHeap::new(),
            events: BTreeMap::new(),
            processes: Vec::new(),
            roster: None,
            beats: [None; Role::COUNT],
            closed_until: 0,
            cables: Cables::default(),
            exclusions: 0,
        }
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn roster(&self) -> &Roster {
        self.roster.as_ref().expect("somebody was admitted")
    }

    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    pub fn lapses(&self) -> u64 {
        self.processes.iter().map(|process| process.lapses).sum()
    }

    pub fn standing_count(&self, standing: Standing) -> u64 {
        let alive = self.processes.iter().filter(|process| !process.dead);
        alive
            .filter(|process| process.member.standing() == standing)
            .count() as u64
    }

    pub fn start(&mut self, role: Role) {
        let token = self.processes.len() as u64 + 1;
        let process = Process {
            role,
            token,
            member: Member::new(role, token, Timing::of_lease(LEASE)),
            dead: false,
            rate: self.random.range(900, 1101),
            offset: self.random.range(0, 100 * LEASE),
            paused_until: 0,
            lapses: 0,
            served: false,
        };
        self.processes.push(process);
        let delay = self.random.range(0, BEAT);
        self.at(delay, self.processes.len() - 1, Event::Wake);
    }

    pub fn kill(&mut self, process: usize) {
        self.processes[process].dead = true;
    }

    pub fn pause(&mut self, process: usize, time: u64) {
        self.processes[process].paused_until = self.now + time;
    }

    /// It has emptied its cache in this epoch.
    pub fn leave(&mut self, process: usize, settled: u32) {
        self.processes[process].member.leave(settled);
    }

    /// Nothing that the one sends reaches the other any more.
    pub fn cut(&mut self, from: Role, to: Role) {
        self.cables.cut(self.now, from, to);
    }

    pub fn starve(&mut self, role: Role) {
        self.cables.starve(self.now, role);
    }

    pub fn mend(&mut self) {
        self.cables.mend(self.now);
    }

    /// A cable is cut, one of its ways, or all of a place; somebody is starved;
    /// or all is whole again.
    pub fn upset_cables(&mut self) {
        let roles: Vec<Role> = self.roster().held().collect();
        let from = roles[self.random.range(0, roles.len() as u64) as usize];
        let to = roles[self.random.range(0, roles.len() as u64) as usize];
        match self.random.range(0, 6) {
            0 => self.mend(),
            1 => self.starve(from),
            2 => self.cut(from, to),
            3 => {
                self.cut(from, to);
                self.cut(to, from);
            }
            4 => roles.iter().for_each(|&to| self.cut(from, to)),
            _ => roles.iter().for_each(|&from| self.cut(from, to)),
        }
    }

    pub fn close_store(&mut self, time: u64) {
        self.closed_until = self.now + time;
    }

    /// Something bad, of some kind.
    pub fn upset(&mut self) {
        let victim = self.random.range(0, self.processes.len() as u64) as usize;
        match self.random.range(0, 5) {
            0 => self.kill(victim),
            1 => {
                let time = self.random.range(LEASE / 2, 4 * LEASE);
                self.pause(victim, time);
            }
            2 => {
                let time = self.random.range(LEASE / 4, 3 * LEASE);
                self.close_store(time);
            }
            3 => self.start(self.processes[victim].role),
            _ => {
                self.kill(victim);
                self.start(self.processes[victim].role);
            }
        }
    }

    pub fn calm(&mut self) {
        self.faults = Faults::NONE;
        self.closed_until = self.now;
    }

    pub fn run(&mut self, time: u64) {
        let end = self.now + time;
        while let Some(&Reverse((at, order, process))) = self.agenda.peek() {
            if at > end {
                break;
            }
            self.agenda.pop();
            self.now = at;
            let event = self.events.remove(&order).expect("one event an order");
            self.happen(process, event);
        }
        self.now = end;
    }

    fn at(&mut self, delay: u64, process: usize, event: Event) {
        self.order += 1;
        self.agenda
            .push(Reverse((self.now + delay, self.order, process)));
        self.events.insert(self.order, event);
    }

    fn happen(&mut self, process: usize, event: Event) {
        // What the store does, it does without the process that asked for it.
        match event {
            Event::Store(beat) => {
                self.beats[self.processes[process].role.index()] = Some(beat);
                return;
            }
            Event::Propose(roster) => return self.install(*roster),
            Event::Look { asked, answer } => {
                let seen = Box::new((self.roster, self.beats));
                let delay = answer.saturating_sub(self.now);
                return self.at(delay, process, Event::Answer { asked, seen });
            }
            _ => {}
        }
        let it = &self.processes[process];
        if it.dead {
            return;
        }
        if it.paused_until > self.now {
            let delay = it.paused_until - self.now;
            return self.at(delay, process, event);
        }
        if self.random.one_in(self.faults.pause) {
            let time = self.random.range(0, 2 * LEASE);
            self.pause(process, time);
            return self.at(time, process, event);
        }
        self.step(process, event);
        self.note_lapse(process);
    }

    fn step(&mut self, process: usize, event: Event) {
        let clock = self.processes[process].clock(self.now);
        match event {
            Event::Wake if self.processes[process].member.is_over() => {}
            Event::Wake => self.look(process, clock),
            Event::Answer { asked, seen } => {
                let observed = Observed {
                    asked,
                    roster: seen.0.as_ref(),
                    beats: &seen.1,
                };
                let it = &mut self.processes[process];
                let waits = match it.member.standing() {
                    // Whoever begins has heard nobody.
                    Standing::Joining => 0,
                    _ => Cables::patience(Timing::of_lease(LEASE)),
                };
                it.member.hears(self.cables.links(self.now, it.role, waits));
                let acts = it.member.handle(clock, &observed);
                self.act(process, acts);
            }
            Event::Beaten { started, then } => {
                self.processes[process].member.beaten(started, clock);
                self.propose(process, then);
            }
            Event::Unknown { then } => self.propose(process, then),
            Event::Look { .. } | Event::Store(_) | Event::Propose(_) => {
                unreachable!("of the store")
            }
        }
    }

    fn note_lapse(&mut self, process: usize) {
        let now = self.now;
        let it = &mut self.processes[process];
        let serves = it.serves(now);
        if it.served && !serves && !it.member.is_over() {
            it.lapses += 1;
        }
        it.served = serves;
    }

    /// How long until an operation takes effect, if it does, and until its answer comes,
    /// if it does in time.
    fn fate(&mut self) -> (Option<u64>, Option<u64>) {
        if self.closed_until > self.now || self.random.one_in(self.faults.lost) {
            return (None, None);
        }
        if self.random.one_in(self.faults.late) {
            return (Some(self.random.range(0, 3 * LEASE)), None);
        }
        let effect = self.random.range(0, BEAT / 8);
        (Some(effect), Some(effect + self.random.range(0, BEAT / 8)))
    }

    fn look(&mut self, process: usize, asked: u64) {
        match self.fate() {
            (Some(effect), Some(answer)) => {
                let answer = self.now + answer;
                self.at(effect, process, Event::Look { asked, answer });
            }
            _ => self.at(BEAT, process, Event::Wake),
        }
    }

    fn act(&mut self, process: usize, acts: Acts) {
        let then = acts.propose.map(Box::new);
        let Some(beat) = acts.beat else {
            return self.propose(process, then);
        };
        let started = self.processes[process].clock(self.now);
        let (effect, answer) = self.fate();
        if let Some(effect) = effect {
            self.at(effect, process, Event::Store(beat));
        }
        match answer {
            Some(answer) => self.at(answer, process, Event::Beaten { started, then }),
            None => self.at(BEAT, process, Event::Unknown { then }),
        }
    }

    fn propose(&mut self, process: usize, roster: Option<Box<Roster>>) {
        let Some(roster) = roster else {
            return self.at(BEAT, process, Event::Wake);
        };
        let (mut effect, answer) = self.fate();
        if self.random.one_in(self.faults.late_proposal) {
            effect = effect.map(|_| self.random.range(0, 2 * LEASE));
        }
        if let Some(effect) = effect {
            self.at(effect, process, Event::Propose(roster));
        }
        self.at(answer.unwrap_or(BEAT), process, Event::Wake);
    }

    /// The compare-and-set, and what must hold whenever it succeeds.
    fn install(&mut self, next: Roster) {
        let version = self.roster.map_or(0, |roster| roster.view.version);
        if next.view.version != version + 1 {
            return;
        }
        assert!(next.view.is_consistent(), "{next:?}");
        for process in &self.processes {
            let held = |roster: &Roster| {
                roster
                    .holder(process.role)
                    .is_some_and(|h| h.0 == process.token)
            };
            if self.roster.as_ref().is_some_and(held) && !held(&next) {
                assert!(
                    !process.serves(self.now),
                    "seed {}: {} serves while version {} goes on without it",
                    self.seed,
                    process.role,
                    next.view.version
                );
                self.exclusions += u64::from(next.view.epoch != self.roster().view.epoch);
            }
        }
        self.roster = Some(next);
    }
}
