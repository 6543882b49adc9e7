//! The network and the time of a world.

use super::member::{Deed, Member, Stage, Told, Worker};
use super::{CrowdConfig, CrowdReport};
use crate::history::{Call, Operation, Outcome, Reply};
use crate::world::Random;
use rackmem_proto::bi::cached::{Bi, BiAsk, BiOut, BiReply, Stock};
use rackmem_proto::call::Parcel;
use rackmem_proto::engine::is_current;
use rackmem_proto::wire::{Contract, Dest, HomeId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The first.
const EPOCH: u32 = 1;
/// Nanoseconds that a packet takes, at least; as much again by chance.
const FLIGHT: u64 = 5_000;
/// Between two steps of a thread or a quiescence, at most.
const STEP: u64 = 20_000;
/// Between two operations of a thread, at most.
const REST: u64 = 600_000;
/// Between two looks at what was asked and not answered.
const RETRY: u64 = 400_000;
/// Deaths of a world: where epochs begin faster than members hear of them nothing is answered.
const DEATHS: u64 = 64;
/// Events after which a world does not end: many times what any has.
const MOST: u64 = 20_000_000;

/// What happens at a node at some time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A packet of this number comes.
    Packet(u64),
    /// A thread goes on, or begins something.
    Thread(usize),
    /// A quiescence goes on.
    Quiesce,
    /// A tick begins.
    Tick,
    /// What was not answered is asked again.
    Retry,
    /// It hears that this epoch has begun.
    Epoch(u32),
    /// It comes back.
    Rebirth,
}

/// See the module.
pub struct World {
    config: CrowdConfig,
    random: Random,
    now: u64,
    next: u64,
    /// By time, and the order in which they came to be.
    events: BinaryHeap<Reverse<(u64, u64, usize, Event)>>,
    packets: BTreeMap<u64, Parcel>,
    members: Vec<Member>,
    /// Until when a member sleeps.
    asleep: Vec<u64>,
    dead: Vec<bool>,
    /// Of which epoch a member has heard last.
    epochs: Vec<u32>,
    /// The members' lives, in each epoch.
    lives: Vec<Vec<u32>>,
    written: u64,
    report: CrowdReport,
}

/// One that has joined.
fn member((me, life): (u16, u32), config: &CrowdConfig, random: &mut Random) -> Member {
    let stock = Stock::new(HomeId::of(me), 0, 1 << 30);
    let stock = stock.remembering(config.remembered).telling(config.told);
    // No two clocks have to agree.
    let offset = random.below(1 << 40);
    let tick = config.tick;
    Member::new(Bi::new((me, life), stock), (offset, tick), config.items)
}

impl World {
    pub fn new(seed: u64, config: &CrowdConfig) -> Self {
        let mut random = Random::new(seed);
        let members = (0..config.nodes).map(|me| member((me, 1), config, &mut random));
        let members: Vec<Member> = members.collect();
        let mut world = World {
            config: *config,
            random,
            now: 0,
            next: 0,
            events: BinaryHeap::new(),
            packets: BTreeMap::new(),
            asleep: vec![0; members.len()],
            dead: vec![false; members.len()],
            epochs: vec![EPOCH; members.len()],
            lives: vec![vec![1; members.len()]],
            members,
            written: 0,
            report: CrowdReport::default(),
        };
        world.open_region();
        for node in 0..usize::from(config.nodes) {
            for nth in 0..usize::from(config.threads) {
                world.members[node].workers.push(Worker {
                    item: 0,
                    deed: Deed::Read,
                    stage: Stage::Idle,
                    operation: 0,
                    left: config.operations,
                    due: false,
                });
                world.goes_on(node, nth, REST);
            }
            world.soon(node, Event::Tick, config.tick);
            world.soon(node, Event::Retry, RETRY);
        }
        world
    }

    /// The home makes the region, before anything may go wrong.
    fn open_region(&mut self) {
        let there = HomeId::of(0).start().under(Contract::Bounded);
        let mut out = BiOut::new(0, EPOCH);
        let home = &mut self.members[0].bi;
        home.ask(
            0,
            (BiAsk::Reserve(there, 8, self.config.items), 0),
            &mut out,
        );
        while !out.sent.is_empty() {
            for parcel in std::mem::take(&mut out.sent) {
                let (own, body) = parcel.split();
                home.packet(&parcel.header, &own, body, &mut out);
            }
        }
        if let Some(BiReply::Region(tag)) = home.take(0) {
            self.members.iter_mut().for_each(|member| member.opens(tag));
        }
    }

    fn at(&mut self, time: u64, node: usize, event: Event) {
        self.next += 1;
        self.events.push(Reverse((time, self.next, node, event)));
    }

    fn soon(&mut self, node: usize, event: Event, most: u64) {
        let time = self.now + 1 + self.random.below(most);
        self.at(time, node, event);
    }

    /// Until all operations have ended; nothing if they do not.
    pub fn run(mut self) -> Option<CrowdReport> {
        for _ in 0..MOST {
            let left = |worker: &Worker| worker.left > 0 || !matches!(worker.stage, Stage::Idle);
            let idle = !self.members.iter().any(|m| m.workers.iter().any(left));
            let Some(Reverse((time, _, node, event))) = self.events.pop().filter(|_| !idle) else {
                let members = self.members.iter();
                let (hits, all) = members.fold((0, 0), |(hits, all), member| {
                    (hits + member.hits, all + member.everything)
                });
                (self.report.hits, self.report.everything) = (hits, all);
                return idle.then_some(self.report);
            };
            self.now = time;
            if self.dead[node] {
                self.passes(node, event);
                continue;
            }
            if self.asleep[node] > time {
                // In the order in which they would have come.
                self.at(self.asleep[node], node, event);
                continue;
            }
            if self.random.per_mille(self.config.sleeps) && event != Event::Retry {
                let bound = self.config.promise().bound;
                self.asleep[node] = time + self.random.below(3 * bound);
                self.report.slept += 1;
            }
            let may_die = node > 0 && self.config.deaths > 0 && self.report.died < DEATHS;
            if may_die
                && matches!(event, Event::Thread(_))
                && self.random.per_mille(self.config.deaths)
            {
                self.dies(node);
                self.passes(node, event);
                continue;
            }
            self.happens(node, event);
        }
        None
    }

    /// What its threads were about is not known to have happened, and it has nothing when it comes
    /// back.
    fn dies(&mut self, node: usize) {
        self.report.died += 1;
        (self.dead[node], self.asleep[node]) = (true, 0);
        for worker in &mut self.members[node].workers {
            worker.stage = Stage::Idle;
        }
        self.begin_epoch(|_| ());
        self.soon(node, Event::Rebirth, 3 * self.config.promise().bound);
    }

    /// Members hear of it one after the other.
    fn begin_epoch(&mut self, change: impl FnOnce(&mut Vec<u32>)) {
        let mut lives = self.lives.last().cloned().unwrap_or_default();
        change(&mut lives);
        self.lives.push(lives);
        let epoch = self.lives.len() as u32;
        for node in 0..self.members.len() {
            self.soon(node, Event::Epoch(epoch), 16 * self.config.tick);
        }
    }

    /// Something happens at a node that is dead.
    fn passes(&mut self, node: usize, event: Event) {
        match event {
            Event::Packet(number) => drop(self.packets.remove(&number)),
            Event::Thread(nth) => self.members[node].workers[nth].due = false,
            Event::Tick => self.at(self.now + self.config.tick, node, Event::Tick),
            Event::Retry => self.at(self.now + RETRY, node, Event::Retry),
            Event::Quiesce | Event::Epoch(_) => {}
            Event::Rebirth => self.comes_back(node),
        }
    }

    fn comes_back(&mut self, node: usize) {
        self.begin_epoch(|lives| lives[node] += 1);
        let epoch = self.lives.len();
        let life = self.lives[epoch - 1][node];
        let mut member = member((node as u16, life), &self.config, &mut self.random);
        member.opens(self.members[0].region());
        let before = &mut self.members[node];
        member.workers = std::mem::take(&mut before.workers);
        (member.hits, member.everything) = (before.hits, before.everything);
        let workers = member.workers.len();
        self.members[node] = member;
        (self.dead[node], self.epochs[node]) = (false, epoch as u32);
        for nth in 0..workers {
            self.goes_on(node, nth, REST);
        }
    }

    fn happens(&mut self, node: usize, event: Event) {
        let mut out = BiOut::new(node as u16, self.epochs[node]);
        out.broken = self.config.broken;
        let lives = &self.lives[self.epochs[node] as usize - 1];
        let member = &mut self.members[node];
        match event {
            Event::Packet(number) => {
                let parcel = self.packets.remove(&number);
                let of = |node: u16| lives.get(usize::from(node)).copied().unwrap_or(0);
                let is_current = |parcel: &Parcel| is_current(&parcel.header, out.epoch(), of);
                if let Some(parcel) = parcel.filter(is_current) {
                    let (own, body) = parcel.split();
                    member.bi.packet(&parcel.header, &own, body, &mut out);
                    if out.ended {
                        self.soon(node, Event::Quiesce, STEP);
                        self.wake(node);
                    }
                }
            }
            Event::Thread(nth) => self.thread(node, nth, &mut out),
            Event::Quiesce => {
                if member.quiesce(self.now, &mut out) {
                    self.soon(node, Event::Quiesce, STEP);
                } else {
                    self.wake(node);
                }
            }
            Event::Tick => {
                if member.is_due(self.now) {
                    member.ask_news(self.now, &mut out);
                }
                self.at(self.now + self.config.tick, node, Event::Tick);
            }
            Event::Retry => {
                member.bi.tick(&mut out);
                self.at(self.now + RETRY, node, Event::Retry);
            }
            Event::Epoch(epoch) => {
                if epoch > self.epochs[node] {
                    self.epochs[node] = epoch;
                    out = BiOut::new(node as u16, epoch);
                    out.broken = self.config.broken;
                    member.bi.resume(&mut out);
                }
            }
            // Of who lives.
            Event::Rebirth => {}
        }
        if self.members[node].wants_news() {
            self.members[node].ask_news(self.now, &mut out);
        }
        out.sent.into_iter().for_each(|parcel| self.send(parcel));
    }

    fn life(&self, node: usize) -> u32 {
        let lives = self.lives.last();
        lives.map_or(0, |lives| lives[node])
    }

    /// A thread goes on, unless it does so anyway.
    fn goes_on(&mut self, node: usize, nth: usize, most: u64) {
        if !std::mem::replace(&mut self.members[node].workers[nth].due, true) {
            self.soon(node, Event::Thread(nth), most);
        }
    }

    /// Threads that may have what they waited for look soon.
    fn wake(&mut self, node: usize) {
        for nth in 0..self.members[node].workers.len() {
            let stage = self.members[node].workers[nth].stage;
            if matches!(stage, Stage::Late(_) | Stage::Asked(_)) {
                self.goes_on(node, nth, STEP);
            }
        }
    }

    fn send(&mut self, parcel: Parcel) {
        let node = match parcel.to {
            Dest::Agent(node) => usize::from(node),
            Dest::Home(home) => usize::from(home.0),
            _ => 0,
        };
        self.report.packets += 1;
        let own = node == usize::from(parcel.header.sender);
        if !own && self.random.per_mille(self.config.loss) {
            return;
        }
        let copies = 1 + u64::from(self.random.per_mille(self.config.doubled));
        for _ in 0..copies {
            let late = self.random.per_mille(self.config.late);
            let most = if late { 16 * self.config.tick } else { FLIGHT };
            let time = self.now + FLIGHT + self.random.below(most);
            self.packets.insert(self.next + 1, parcel.clone());
            self.at(time, node, Event::Packet(self.next + 1));
        }
    }

    fn thread(&mut self, node: usize, nth: usize, out: &mut BiOut) {
        let now = self.now;
        self.members[node].workers[nth].due = false;
        if matches!(self.members[node].workers[nth].stage, Stage::Idle) {
            return self.begin(node, nth, out);
        }
        let told = self.members[node].go(nth, now, out);
        let operation = self.members[node].workers[nth].operation;
        self.report.history[operation].outcome = match told {
            Told::Nothing => {
                // It may be held back in its section.
                let most = if self.random.per_mille(20) {
                    12_000_000
                } else {
                    STEP
                };
                return self.goes_on(node, nth, most);
            }
            Told::Waits => return,
            Told::Written => Outcome::Ok {
                at: now,
                reply: Reply::Nil,
            },
            Told::Read(0) => Outcome::Ok {
                at: now,
                reply: Reply::Nil,
            },
            Told::Read(value) => Outcome::Ok {
                at: now,
                reply: Reply::Text(value.to_string()),
            },
            Told::Refused => {
                self.report.refused += 1;
                Outcome::Fail { at: now }
            }
        };
        self.goes_on(node, nth, REST);
    }

    fn begin(&mut self, node: usize, nth: usize, out: &mut BiOut) {
        let worker = &mut self.members[node].workers[nth];
        if worker.left == 0 {
            return;
        }
        worker.left -= 1;
        worker.item = self.random.below(self.config.items.into()) as u32;
        worker.operation = self.report.history.len();
        let key = worker.item.to_string();
        let call = match self.random.per_mille(self.config.writes) {
            true => {
                self.written += 1;
                worker.deed = Deed::Write(self.written);
                let value = self.written.to_string();
                Call::Set { value }
            }
            false => {
                worker.deed = Deed::Read;
                Call::Get
            }
        };
        self.report.history.push(Operation {
            // Who comes back remembers nothing of what it has read.
            client: node as u32 + u32::from(self.config.nodes) * self.life(node),
            key,
            call,
            invoke: self.now,
            outcome: Outcome::Unknown,
        });
        self.members[node].begin(nth, self.now, out);
        self.goes_on(node, nth, STEP);
    }
}
