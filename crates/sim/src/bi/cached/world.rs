//! A rack at one time: nodes, what is under way between them, and the member's copies.

use super::catalogue::{Op, Scenario, Sight};
use crate::driver::{Complaint, Unpacked};
use crate::print::Print;
use rackmem_proto::bi::cached::{
    Bi, BiAsk, BiNews, BiOut, BiReply, Defect, Hearing, HeldItem, Question, Stock,
};
use rackmem_proto::bi::{Bound, ReadSection, Tick};
use rackmem_proto::call::Parcel;
use rackmem_proto::wire::{Contract, Dest, HomeId, Tag};
use std::hash::Hash;

const HOME: usize = 0;
const MEMBER: usize = 1;
const OTHER: usize = 2;
const ITEMS: u32 = 2;
const EPOCH: u32 = 1;
const BEGIN: Tick = Tick(10);
/// The slot of the member's quiescence. Its threads have those below.
const QUIESCER: u8 = 9;

const CURRENT: &str = "what a section reads was current within the bound";
const ONCE: &str = "a write takes effect once";
const ONWARD: &str = "what a member reads never goes back";

/// Where a thread is in its operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Idle,
    /// In its section, before it looks.
    Open(ReadSection),
    /// It has asked; with a section if it reads.
    Asked(Option<ReadSection>),
    /// It has this value.
    Has(ReadSection, u8),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Thread {
    node: usize,
    slot: u8,
    ops: &'static [Op],
    done: u8,
    at: At,
    /// What it has read or written last, by item.
    seen: [u8; ITEMS as usize],
    writes: u8,
}

/// What a quiescence does next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Quiescing {
    Nothing,
    Asked(Question),
    /// It has heard: copies are dropped, and then it says so.
    Drops(BiNews, Option<Tick>),
    Tells(Tick),
}

/// See the module.
#[derive(Clone)]
pub struct World {
    nodes: Vec<Bi>,
    region: Tag,
    now: Tick,
    packets: Vec<Parcel>,
    threads: Vec<Thread>,
    kept: Vec<HeldItem<u8>>,
    heard: Hearing,
    quiesced: Tick,
    quiescing: Quiescing,
    /// When it has asked last.
    asked: Tick,
    /// By item, the values that were there and until when.
    past: Vec<Vec<(u8, Tick)>>,
    pub ticks: u8,
    pub faults: [u8; 2],
    bound: Bound,
    broken: Option<Defect>,
}

impl World {
    pub fn new(scenario: &Scenario, broken: Option<Defect>) -> Self {
        let stock = |me: u16| {
            let stock = Stock::new(HomeId::of(me), 0, 1 << 20);
            stock
                .remembering(scenario.remembered)
                .telling(scenario.told)
        };
        let nodes = (0..3).map(|me| Bi::new((me, 1), stock(me)));
        let thread = |(nth, node, ops): (usize, usize, &'static [Op])| Thread {
            node,
            slot: nth as u8,
            ops,
            done: 0,
            at: At::Idle,
            seen: [0; ITEMS as usize],
            writes: 0,
        };
        let members = scenario.members.iter().enumerate();
        let members = members.map(|(nth, ops)| (nth, MEMBER, *ops));
        let threads = members.chain([(7, OTHER, scenario.other)]);
        let mut world = World {
            nodes: nodes.collect(),
            region: Tag(0),
            now: BEGIN,
            packets: Vec::new(),
            threads: threads.map(thread).collect(),
            kept: vec![HeldItem::default(); ITEMS as usize],
            heard: Hearing::default(),
            quiesced: BEGIN,
            quiescing: Quiescing::Nothing,
            asked: BEGIN,
            past: vec![Vec::new(); ITEMS as usize],
            ticks: scenario.ticks,
            faults: scenario.faults,
            bound: scenario.bound,
            broken,
        };
        let there = HomeId::of(0).start().under(Contract::Bounded);
        world.ask(HOME, 0, BiAsk::Reserve(there, 1, ITEMS));
        while !world.packets.is_empty() {
            let _ = world.deliver(0, &mut Vec::new());
        }
        if let Some(BiReply::Region(tag)) = world.nodes[HOME].take(0) {
            world.region = tag;
        }
        world
    }

    fn outbox(&self, node: usize) -> BiOut {
        let mut out = BiOut::new(node as u16, EPOCH);
        out.broken = self.broken;
        out
    }

    fn ask(&mut self, node: usize, slot: u8, ask: BiAsk) {
        let mut out = self.outbox(node);
        self.nodes[node].ask(slot, (ask, 0), &mut out);
        self.packets.extend(out.sent);
    }

    fn to(parcel: &Parcel) -> usize {
        match parcel.to {
            Dest::Agent(node) => node.into(),
            Dest::Home(home) => home.0.into(),
            _ => HOME,
        }
    }

    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// A packet is lost.
    pub fn lose(&mut self, nth: usize) {
        self.faults[0] -= 1;
        self.packets.remove(nth);
    }

    /// A packet arrives, and a copy of it is still under way.
    pub fn double(&mut self, nth: usize, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        self.faults[1] -= 1;
        let copy = self.packets[nth].clone();
        self.deliver(nth, seen)?;
        self.packets.push(copy);
        Ok(())
    }

    /// A packet arrives.
    pub fn deliver(&mut self, nth: usize, _: &mut Vec<Sight>) -> Result<(), Complaint> {
        let parcel = self.packets.remove(nth);
        let to = World::to(&parcel);
        let before = self.values();
        let (own, body) = parcel.split();
        let mut out = self.outbox(to);
        self.nodes[to].packet(&parcel.header, &own, body, &mut out);
        self.packets.extend(out.sent);
        for (item, (was, is)) in before.into_iter().zip(self.values()).enumerate() {
            if was == is {
                continue;
            }
            let past = &mut self.past[item];
            if past.iter().any(|(value, _)| *value == is) {
                return Err((ONCE, "spec §6", format!("item {item} is {is} again")));
            }
            past.push((was, self.now));
        }
        Ok(())
    }

    fn values(&self) -> Vec<u8> {
        let value = |item| self.nodes[HOME].stock.value(self.region, item);
        (0..ITEMS)
            .map(|item| value(item).first().copied().unwrap_or(0))
            .collect()
    }

    /// Whether a node may ask again: nothing is under way.
    pub fn asks_again(&self) -> bool {
        let waits = |thread: &Thread| matches!(thread.at, At::Asked(_));
        let quiesces = matches!(self.quiescing, Quiescing::Asked(_));
        let told = (0..self.threads.len()).any(|thread| self.is_told(thread));
        let told = told || self.nodes[MEMBER].clone().take(QUIESCER).is_some();
        self.packets.is_empty() && !told && (quiesces || self.threads.iter().any(waits))
    }

    /// Everybody asks again.
    pub fn ask_again(&mut self) {
        for node in [MEMBER, OTHER] {
            let mut out = self.outbox(node);
            self.nodes[node].resume(&mut out);
            self.packets.extend(out.sent);
        }
    }

    // Threads.

    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    pub fn op(&self, thread: usize) -> Option<Op> {
        let thread = &self.threads[thread];
        thread.ops.get(usize::from(thread.done)).copied()
    }

    fn is_told(&self, thread: usize) -> bool {
        let Thread { node, slot, .. } = self.threads[thread];
        self.nodes[node].clone().take(slot).is_some()
    }

    fn enter(&self) -> Option<ReadSection> {
        let broken = match self.broken {
            Some(Defect::BeginLate) => Some(rackmem_proto::bi::Defect::EnterWithoutClock),
            Some(Defect::BelieveLate) => Some(rackmem_proto::bi::Defect::ExitWithoutClock),
            _ => None,
        };
        ReadSection::enter((self.now, self.quiesced), self.bound, broken).ok()
    }

    /// Whether a thread can go on.
    pub fn can_go(&self, thread: usize) -> bool {
        let Some(op) = self.op(thread) else {
            return false;
        };
        match (self.threads[thread].at, op) {
            (At::Asked(_), _) => self.is_told(thread),
            (At::Idle, Op::Read(_)) => self.enter().is_some(),
            _ => true,
        }
    }

    /// A thread goes on.
    pub fn go(&mut self, nth: usize, seen: &mut Vec<Sight>) -> Result<(), Complaint> {
        let Some(op) = self.op(nth) else {
            return Ok(());
        };
        let mut thread = self.threads[nth].clone();
        let (Op::Read(item) | Op::Write(item)) = op;
        let at = item as usize;
        match (thread.at, op) {
            (At::Idle, Op::Read(_)) => {
                let section = self.enter();
                thread.at = section.map_or(At::Idle, At::Open);
            }
            (At::Idle, Op::Write(_)) => {
                thread.writes += 1;
                // Each write has a value of its own.
                let value = 16 * (thread.slot + 1) + thread.writes;
                let ask = BiAsk::Write(self.region, item, vec![value]);
                self.ask(thread.node, thread.slot, ask);
                thread.at = At::Asked(None);
            }
            (At::Open(section), _) => match self.kept[at].get() {
                Some(value) => {
                    seen.push(Sight::Hit);
                    thread.at = At::Has(section, *value);
                }
                None => {
                    self.ask(thread.node, thread.slot, BiAsk::Read(self.region, item, 0));
                    thread.at = At::Asked(Some(section));
                }
            },
            (At::Asked(section), _) => match (self.nodes[thread.node].take(thread.slot), section) {
                (Some(BiReply::Item(number, value)), Some(section)) => {
                    let value = value.first().copied().unwrap_or(0);
                    self.put(at, value, number, seen);
                    thread.at = At::Has(section, value);
                }
                (Some(BiReply::Written(number)), _) => {
                    let value = 16 * (thread.slot + 1) + thread.writes;
                    if thread.node == MEMBER && self.broken != Some(Defect::KeepOwnOld) {
                        self.put(at, value, number, seen);
                    }
                    thread.seen[at] = value;
                    (thread.at, thread.done) = (At::Idle, thread.done + 1);
                }
                _ => {}
            },
            (At::Has(section, value), _) => {
                (thread.at, thread.done) = (At::Idle, thread.done + 1);
                match section.holds(self.now) {
                    Ok(()) => {
                        self.judge(item, (thread.seen[at], value), section, seen)?;
                        thread.seen[at] = value;
                    }
                    Err(_) => seen.push(Sight::SectionTooLong),
                }
            }
        }
        self.threads[nth] = thread;
        Ok(())
    }

    fn put(&mut self, at: usize, value: u8, number: u64, seen: &mut Vec<Sight>) {
        let heard = self.heard.upto;
        if number < heard {
            seen.push(Sight::LateCopy);
        }
        self.kept[at].put(value, number, heard, self.broken);
    }

    /// A value is believed now.
    fn judge(
        &self,
        item: u32,
        (before, value): (u8, u8),
        section: ReadSection,
        seen: &mut Vec<Sight>,
    ) -> Result<(), Complaint> {
        let past = &self.past[item as usize];
        let order = |value: u8| past.iter().position(|(old, _)| *old == value);
        let Some(nth) = order(value) else {
            return Ok(());
        };
        seen.push(Sight::Stale);
        if order(before).is_none_or(|before| before > nth) {
            let what = format!("item {item}: {value} after {before}");
            return Err((ONWARD, "spec §7", what));
        }
        // One clock here: without the two ticks for what it shows.
        let until = past[nth].1;
        let Bound { lag, section: most } = self.bound;
        let (late, long) = (section.began().since(until), self.now.since(until));
        if late > lag || long > lag + most {
            let what = format!("item {item}: {value}, {late} ticks late, {long} at its end");
            return Err((CURRENT, "BI §3.1, P2", what));
        }
        Ok(())
    }

    // The member's quiescence.

    pub fn can_quiesce(&self) -> bool {
        match self.quiescing {
            Quiescing::Nothing => self.asked < self.now,
            Quiescing::Asked(_) => self.nodes[MEMBER].clone().take(QUIESCER).is_some(),
            _ => true,
        }
    }

    fn ask_news(&mut self) -> Quiescing {
        let question = self.heard.ask(self.now);
        self.asked = self.now;
        self.ask(MEMBER, QUIESCER, BiAsk::News(self.region, question.from));
        Quiescing::Asked(question)
    }

    /// The member's quiescence goes on.
    pub fn quiesce(&mut self, seen: &mut Vec<Sight>) {
        self.quiescing = match self.quiescing.clone() {
            Quiescing::Nothing => self.ask_news(),
            Quiescing::Asked(question) => {
                let told = self.nodes[MEMBER].take(QUIESCER);
                let Some(BiReply::News(news)) = told else {
                    return;
                };
                match question.answered(&news, self.now, self.broken) {
                    Some((heard, quiesced)) => {
                        self.heard = heard;
                        Quiescing::Drops(news, quiesced)
                    }
                    None => Quiescing::Nothing,
                }
            }
            Quiescing::Drops(news, quiesced) => {
                match news.each() {
                    Some(each) => each.for_each(|(item, value)| {
                        let kept = &mut self.kept[item as usize];
                        match value {
                            Some(value) => {
                                seen.push(Sight::Refreshed);
                                let value = value.first().copied().unwrap_or(0);
                                kept.refresh(value, news.now(), self.broken)
                            }
                            None => kept.hear(news.upto),
                        };
                    }),
                    None => {
                        seen.push(Sight::Everything);
                        for kept in &mut self.kept {
                            kept.hear(news.upto);
                        }
                    }
                }
                match quiesced {
                    Some(quiesced) => Quiescing::Tells(quiesced),
                    None => {
                        seen.push(Sight::InParts);
                        self.ask_news()
                    }
                }
            }
            Quiescing::Tells(quiesced) => {
                self.quiesced = quiesced;
                Quiescing::Nothing
            }
        };
    }

    /// What that is, in a story.
    pub fn next_act(&self) -> String {
        match &self.quiescing {
            Quiescing::Nothing => "the member asks for news".into(),
            Quiescing::Asked(_) => "the member hears its news".into(),
            Quiescing::Drops(news, _) => format!("the member drops {:?}", news.items),
            Quiescing::Tells(at) => format!("the member has quiesced at {}", at.0),
        }
    }

    /// A packet, in a story.
    pub fn packet(&self, nth: usize) -> String {
        let header = &self.packets[nth].header;
        format!("{:?} of {}", header.kind, header.requester.node)
    }

    /// Time goes on.
    pub fn tick(&mut self, seen: &mut Vec<Sight>) {
        self.ticks -= 1;
        self.now = self.now.plus(1);
        if self.enter().is_none() {
            seen.push(Sight::Waited);
        }
    }
}

impl Unpacked for World {
    fn fingerprint(&self) -> u128 {
        let mut print = Print::default();
        for node in &self.nodes {
            node.fingerprint(&mut print);
        }
        let mut packets: Vec<_> = self.packets.iter().collect();
        packets.sort_by_key(|parcel| (World::to(parcel), parcel.header.seq.0, &parcel.bytes[..]));
        packets.hash(&mut print);
        (&self.threads, &self.kept, self.heard, self.quiesced).hash(&mut print);
        (&self.quiescing, self.asked, &self.past).hash(&mut print);
        (self.now, self.ticks, self.faults).hash(&mut print);
        print.whole()
    }
}
