//! What is asked of the homes of objects, and what has become of it: for a thread that waits for
//! that, or has more under way.

use super::operating::silence;
use super::{Objects, count};
use crate::error::{AccessError, RackError};
use crate::host::access::Access;
use crate::host::driving::errand::{Came, Question};
use crate::host::here::Here;
use crate::membership::current_view::Looked;
use crate::ports::requester::Slot;
use rackmem_fabric::{Body, Nobody};
use rackmem_proto::engine::{ObjectHost, Objects as Protocol, Protocol as _};
use rackmem_proto::sabre::{Command, Known, Lane, Outcome, Ref};
use rackmem_proto::wire::Tag;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What became of an operation, with what it has read; an error where nothing is known.
pub(crate) type Answered = Came<Asks>;

/// What an operation asks an object's home.
pub(crate) struct Asks {
    pub command: Command,
    /// What is written.
    pub value: Vec<u8>,
}

impl Asks {
    /// Something that writes nothing.
    pub fn to(command: Command) -> Self {
        let value = Vec::new();
        Asks { command, value }
    }

    /// The object that it reads, if it may be asked for together with others.
    pub fn read(&self) -> Option<(Ref, Known)> {
        match self.command {
            Command::Read(object, known) => Some((object, known)),
            _ => None,
        }
    }
}

impl Question for Asks {
    type Answer = (Outcome, Vec<u8>);

    fn has_answerer(
        &self,
        access: &Access,
        seen: &mut Option<Looked>,
    ) -> Option<Result<(), AccessError>> {
        let tag = self.command.tag();
        let alive = access.alive_now(tag, seen)?;
        Some(alive.and_then(|()| access.is_there(tag)))
    }

    fn unanswered(&self, access: &Access) -> AccessError {
        silence(access, self.command.tag())
    }
}

/// What a thread asks homes for, in a slot.
pub(in crate::host) enum Questions {
    /// Something, with what it writes.
    One(Command, Vec<u8>),
    /// Several objects, [`MANY`](rackmem_proto::sabre::MANY) at most, each unless it has this
    /// version.
    Reads(Vec<(Ref, Known)>),
}

impl Questions {
    fn tags(&self) -> Vec<Tag> {
        match self {
            Questions::One(command, _) => vec![command.tag()],
            Questions::Reads(objects) => objects.iter().map(|(object, _)| object.tag).collect(),
        }
    }
}

/// Operations on objects that are under way together in a requester's slot, for the thread that
/// waits for them or has more.
pub(in crate::host) struct Asking<'a> {
    access: &'a Access,
    tags: Vec<Tag>,
    /// Some are of homes that groups keep.
    kept: bool,
    /// What is asked once the slot may.
    asks: Option<Questions>,
    began: Instant,
    /// When what is under way was asked for last.
    again: Instant,
    /// Which of them have not ended.
    pub(super) open: Vec<bool>,
    /// What has come of those that have, until it is told.
    ended: Vec<Option<(Outcome, Vec<u8>)>>,
    seen: Option<Looked>,
}

impl<'a> Asking<'a> {
    /// These, which the first look begins.
    pub fn new(access: &'a Access, questions: Questions) -> Self {
        let (tags, now) = (questions.tags(), Instant::now());
        Asking {
            access,
            kept: tags.iter().any(|tag| !tag.home().is_own()),
            open: vec![true; tags.len()],
            ended: tags.iter().map(|_| None).collect(),
            tags,
            asks: Some(questions),
            began: now,
            again: now,
            seen: None,
        }
    }

    /// Says what has become of those that have ended, each once. True: all have.
    pub fn look(&mut self, slot: &mut Slot, mut came: impl FnMut(usize, Answered)) -> bool {
        let (access, number) = (self.access, slot.number());
        let objects = &access.agents.objects;
        self.begin(slot);
        let begun = self.asks.is_none();
        if begun {
            objects.take(number, &self.open, &mut self.ended);
        }
        let closed = access.closed.load(Relaxed);
        let late = self.began.elapsed() >= access.patience;
        for (nth, tag) in self.tags.iter().copied().enumerate() {
            if !self.open[nth] {
                continue;
            }
            let answer = match self.ended[nth].take() {
                Some(ended) => Ok(ended),
                None => {
                    let given_up = if closed {
                        Some(AccessError::Rack(RackError::Closed))
                    } else if late {
                        Some(silence(access, tag))
                    } else {
                        // Its home may have died, and this process may have been given up.
                        let alive = access.alive_now(tag, &mut self.seen);
                        alive.and_then(Result::err)
                    };
                    let Some(error) = given_up else {
                        continue;
                    };
                    // It may have ended just now.
                    let ended = begun.then(|| objects.stand_up(lane(number, nth)));
                    ended.flatten().ok_or(error)
                }
            };
            self.open[nth] = false;
            came(nth, answer);
        }
        !self.open.contains(&true)
    }

    fn begin(&mut self, slot: &Slot) {
        let (agents, number) = (&self.access.agents, slot.number());
        let (objects, kept) = (&agents.objects, self.kept);
        // A keeper that is to say what became of a transaction takes nothing newer before.
        let may = |_: &mut _| !kept || objects.part().sabre.may_ask_keeper(number);
        let Some(questions) = self.asks.take_if(may) else {
            return;
        };
        let (all, mut nobody) = (self.tags.len(), Nobody);
        let mut here = Here::new(agents, slot.net(), Body::None, &mut nobody);
        match questions {
            Questions::One(command, value) => {
                objects.sit_down(number, slot.reply_port(), (value, all));
                Protocol::command(&mut here, number, command);
            }
            Questions::Reads(reads) => {
                objects.sit_down(number, slot.reply_port(), (Vec::new(), all));
                here.objects(|sabre, fx| sabre.reads(number, &reads, fx));
            }
        }
        let counters = &objects.counters;
        counters.asked.fetch_add(all as u64, Relaxed);
        count(&counters.rounds);
    }

    /// Waits for packets, no longer than this, and takes those that come.
    pub fn wait(&mut self, slot: &mut Slot, at_most: Duration) {
        self.access.wait_for_homes(slot, at_most, &mut self.again);
    }
}

/// The operation of a slot at this place.
fn lane(slot: u8, nth: usize) -> Lane {
    let nth = nth as u8;
    Lane { slot, nth }
}

impl Objects {
    /// A thread is about to begin so many operations in a slot that it has for itself; the first
    /// one writes this.
    fn sit_down(&self, slot: u8, reply_port: u16, (value, count): (Vec<u8>, usize)) {
        let values = &mut self.part().values;
        values.begin(slot, reply_port, (value, count));
    }

    /// What came of those operations of a slot that have ended, of these.
    fn take(&self, slot: u8, open: &[bool], ended: &mut [Option<(Outcome, Vec<u8>)>]) {
        let mut part = self.part();
        for (nth, ended) in ended.iter_mut().enumerate().filter(|(nth, _)| open[*nth]) {
            *ended = part.values.take(lane(slot, nth));
        }
    }

    /// The thread does not wait for this operation any longer.
    fn stand_up(&self, lane: Lane) -> Option<(Outcome, Vec<u8>)> {
        let mut part = self.part();
        part.sabre.abandon(lane);
        part.values.take(lane)
    }
}
