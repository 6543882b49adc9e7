//! The network and the time of a world.

use super::member::{Deed, Member, Stage, Told, Worker};
use super::{CrowdConfig, CrowdReport};
use crate::history::{Call, Operation, Outcome, Reply};
use crate::world::Random;
use rackmem_proto::bi::cached::{Bi, BiAsk, BiOut, BiReply, Stock};
use rackmem_proto::call::Parcel;
use rackmem_proto::wire::{Contract, Dest, HomeId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

const EPOCH: u32 = 1;
/// Nanoseconds that a packet takes, at least; as much again by chance.
const FLIGHT: u64 = 5_000;
/// Between two steps of a thread or a quiescence, at most.
const STEP: u64 = 20_000;
/// Between two operations of a thread, at most.
const REST: u64 = 600_000;
/// Between two looks at what was asked and not answered.
const RETRY: u64 = 400_000;
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
    written: u64,
    report: CrowdReport,
}

impl World {
    pub fn new(seed: u64, config: &CrowdConfig) -> Self {
        let mut random = Random::new(seed);
        let member = |me: u16| {
            let stock = Stock::new(HomeId::of(me), 0, 1 << 30);
            let stock = stock.remembering(config.remembered).telling(config.told);
            // No two clocks have to agree.
            let offset = random.below(1 << 40);
            Member::new(Bi::new((me, 1), stock), (offset, config.tick), config.items)
        };
        let members: Vec<Member> = (0..config.nodes).map(member).collect();
        let mut world = World {
            config: *config,
            random,
            now: 0,
            next: 0,
            events: BinaryHeap::new(),
            packets: BTreeMap::new(),
            asleep: vec![0; members.len()],
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
            self.happens(node, event);
        }
        None
    }

    fn happens(&mut self, node: usize, event: Event) {
        let mut out = BiOut::new(node as u16, EPOCH);
        out.broken = self.config.broken;
        let member = &mut self.members[node];
        match event {
            Event::Packet(number) => {
                if let Some(parcel) = self.packets.remove(&number) {
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
        }
        if self.members[node].wants_news() {
            self.members[node].ask_news(self.now, &mut out);
        }
        out.sent.into_iter().for_each(|parcel| self.send(parcel));
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
            client: node as u32,
            key,
            call,
            invoke: self.now,
            outcome: Outcome::Unknown,
        });
        self.members[node].begin(nth, self.now, out);
        self.goes_on(node, nth, STEP);
    }
}
