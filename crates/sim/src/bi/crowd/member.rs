//! A member: its copies, how far it has heard, and its threads. Its steps are those of the
//! library's host (`rackmem/src/bounded/copies.rs`).

use rackmem_proto::bi::cached::{
    Bi, BiAsk, BiNews, BiOut, BiReply, Hearing, HeldItem, MEMBER_BOUND, Question, asks_again,
};
use rackmem_proto::bi::{BiClock, ReadSection, Tick};
use rackmem_proto::wire::Tag;

/// The slot of quiescences. Threads have those below.
pub const QUIESCER: u8 = 9;

/// What a thread does with an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    Read,
    Write(u64),
}

/// Where a thread is in its operation.
#[derive(Clone, Copy, Debug)]
pub enum Stage {
    Idle,
    /// It needs a quiescence of this moment or later to begin its section.
    Late(Tick),
    /// In its section, before it looks.
    Open(ReadSection),
    /// It has asked; with a section if it reads.
    Asked(Option<ReadSection>),
    /// It has this value, and looks at the clock next.
    Has(ReadSection, u64),
}

/// What came of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// It goes on.
    Nothing,
    /// What it has asked for is not there yet.
    Waits,
    Read(u64),
    Written,
    /// What it has is too old.
    Refused,
}

#[derive(Clone, Debug)]
pub struct Worker {
    pub item: u32,
    pub deed: Deed,
    pub stage: Stage,
    /// Of the history.
    pub operation: usize,
    pub left: u32,
    /// It goes on at some time, whatever comes before.
    pub due: bool,
}

/// What a quiescence does next.
#[derive(Clone, Debug)]
enum Quiescing {
    Nothing,
    Asked(Question),
    Drops(BiNews, Option<Tick>),
    Tells(Tick),
}

pub struct Member {
    pub bi: Bi,
    pub workers: Vec<Worker>,
    /// What its clock shows more than the world's.
    offset: u64,
    clock: BiClock,
    region: Tag,
    items: Vec<HeldItem<u64>>,
    heard: Hearing,
    quiesced: Tick,
    quiescing: Quiescing,
    pub hits: u64,
    pub everything: u64,
}

/// The eight bytes of an item; one that nobody has written is 0.
fn value(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let len = bytes.len().min(8);
    word[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(word)
}

impl Member {
    pub fn new(bi: Bi, (offset, tick): (u64, u64), items: u32) -> Self {
        let clock = BiClock::new(tick);
        Member {
            bi,
            workers: Vec::new(),
            offset,
            clock,
            region: Tag(0),
            items: vec![HeldItem::default(); items as usize],
            heard: Hearing::default(),
            // It has no copies.
            quiesced: clock.tick(offset),
            quiescing: Quiescing::Nothing,
            hits: 0,
            everything: 0,
        }
    }

    pub fn opens(&mut self, region: Tag) {
        self.region = region;
    }

    pub fn region(&self) -> Tag {
        self.region
    }

    fn now(&self, now: u64) -> Tick {
        self.clock.tick(now + self.offset)
    }

    fn enter(&self, now: u64, out: &BiOut) -> Option<ReadSection> {
        use rackmem_proto::bi::{Defect, cached};
        let broken = match out.broken {
            Some(cached::Defect::BeginLate) => Some(Defect::EnterWithoutClock),
            Some(cached::Defect::BelieveLate) => Some(Defect::ExitWithoutClock),
            _ => None,
        };
        let times = (self.now(now), self.quiesced);
        ReadSection::enter(times, MEMBER_BOUND, broken).ok()
    }

    /// A thread begins what it is to do.
    pub fn begin(&mut self, nth: usize, now: u64, out: &mut BiOut) {
        let worker = &self.workers[nth];
        let (item, deed) = (worker.item, worker.deed);
        self.workers[nth].stage = match deed {
            Deed::Write(value) => {
                let bytes = value.to_be_bytes().to_vec();
                let ask = BiAsk::Write(self.region, item, bytes);
                self.bi.ask(nth as u8, (ask, 0), out);
                Stage::Asked(None)
            }
            Deed::Read => match self.enter(now, out) {
                Some(section) => Stage::Open(section),
                None => Stage::Late(self.now(now)),
            },
        };
    }

    /// A thread goes on.
    pub fn go(&mut self, nth: usize, now: u64, out: &mut BiOut) -> Told {
        let worker = self.workers[nth].clone();
        let at = worker.item as usize;
        let mut told = Told::Nothing;
        self.workers[nth].stage = match worker.stage {
            Stage::Idle => Stage::Idle,
            Stage::Late(tick) if self.quiesced < tick => {
                told = Told::Waits;
                worker.stage
            }
            Stage::Late(_) => match self.enter(now, out) {
                Some(section) => Stage::Open(section),
                None => {
                    told = Told::Refused;
                    Stage::Idle
                }
            },
            Stage::Open(section) => match self.items[at].get() {
                Some(value) => {
                    self.hits += 1;
                    Stage::Has(section, *value)
                }
                None => {
                    let ask = BiAsk::Read(self.region, worker.item, 0);
                    self.bi.ask(nth as u8, (ask, 0), out);
                    Stage::Asked(Some(section))
                }
            },
            Stage::Asked(section) => match (self.bi.take(nth as u8), section, worker.deed) {
                (Some(BiReply::Item(number, bytes)), Some(section), _) => {
                    let value = value(&bytes);
                    self.put(at, (value, number), out);
                    Stage::Has(section, value)
                }
                (Some(BiReply::Written(number)), _, Deed::Write(value)) => {
                    use rackmem_proto::bi::cached::Defect;
                    if out.broken != Some(Defect::KeepOwnOld) {
                        self.put(at, (value, number), out);
                    }
                    told = Told::Written;
                    Stage::Idle
                }
                (None, ..) => {
                    told = Told::Waits;
                    worker.stage
                }
                _ => {
                    told = Told::Refused;
                    Stage::Idle
                }
            },
            Stage::Has(section, value) => {
                told = match section.holds(self.now(now)) {
                    Ok(()) => Told::Read(value),
                    Err(_) => Told::Refused,
                };
                Stage::Idle
            }
        };
        told
    }

    fn put(&mut self, at: usize, (value, number): (u64, u64), out: &BiOut) {
        self.items[at].put(value, number, self.heard.upto, out.broken);
    }

    /// Whether it is time to ask, if it is read.
    pub fn is_due(&self, now: u64) -> bool {
        asks_again(self.now(now), self.quiesced, MEMBER_BOUND)
    }

    /// It is time to, or a thread waits: asks what was modified, unless that is under way.
    pub fn ask_news(&mut self, now: u64, out: &mut BiOut) {
        if matches!(self.quiescing, Quiescing::Nothing) {
            let question = self.heard.ask(self.now(now));
            let ask = BiAsk::News(self.region, question.from);
            self.bi.ask(QUIESCER, (ask, 0), out);
            self.quiescing = Quiescing::Asked(question);
        }
    }

    /// Whether a thread waits for a later quiescence than is under way.
    pub fn wants_news(&self) -> bool {
        let late = |worker: &Worker| matches!(worker.stage, Stage::Late(_));
        matches!(self.quiescing, Quiescing::Nothing) && self.workers.iter().any(late)
    }

    /// The quiescence goes on; whether it has more to do by itself.
    pub fn quiesce(&mut self, now: u64, out: &mut BiOut) -> bool {
        let (next, more) = match std::mem::replace(&mut self.quiescing, Quiescing::Nothing) {
            Quiescing::Nothing => (Quiescing::Nothing, false),
            Quiescing::Asked(question) => match self.bi.take(QUIESCER) {
                None => (Quiescing::Asked(question), false),
                Some(BiReply::News(news)) => {
                    match question.answered(&news, self.now(now), out.broken) {
                        Some((heard, quiesced)) => {
                            self.heard = heard;
                            (Quiescing::Drops(news, quiesced), true)
                        }
                        None => (Quiescing::Nothing, false),
                    }
                }
                Some(_) => (Quiescing::Nothing, false),
            },
            Quiescing::Drops(news, quiesced) => {
                match news.each() {
                    Some(each) => each.for_each(|(item, bytes)| {
                        let kept = &mut self.items[item as usize];
                        match bytes {
                            Some(bytes) => kept.refresh(value(bytes), news.now(), out.broken),
                            None => kept.hear(news.upto),
                        };
                    }),
                    None => {
                        self.everything += 1;
                        self.items.iter_mut().for_each(|item| {
                            item.hear(news.upto);
                        });
                    }
                }
                match quiesced {
                    Some(quiesced) => (Quiescing::Tells(quiesced), true),
                    None => {
                        self.ask_news(now, out);
                        return false;
                    }
                }
            }
            Quiescing::Tells(quiesced) => {
                self.quiesced = quiesced;
                (Quiescing::Nothing, false)
            }
        };
        self.quiescing = next;
        more
    }
}
