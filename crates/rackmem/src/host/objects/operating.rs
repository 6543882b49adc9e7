//! A thread does something with an object of a home whose memory it has not.

use super::Objects;
use super::asking::{Answered, Asking, Asks, Questions};
use crate::backoff::Backoff;
use crate::error::{AccessError, AllocError};
use crate::host::access::Access;
use crate::host::driving::errand::{self, Action};
use crate::host::here::Here;
use crate::host::replicated::LOOK_UP;
use crate::ports::requester::{Slot, refused};
use rackmem_fabric::{Body, Nobody, Whole};
use rackmem_proto::engine::ObjectHost;
use rackmem_proto::sabre::{Answer, Command, Known, Outcome, Ref};
use rackmem_proto::wire::{Contract, Reason, Tag};
use std::time::{Duration, Instant};

impl Access {
    /// Whether an object is in this node's own memory. Of a home that a group keeps, threads of its
    /// keeper ask as all others do.
    pub fn has_home_of(&self, tag: Tag) -> bool {
        tag.home().is_of(self.me())
    }

    /// Asks an object's home. A refusal is an outcome; `value` is what is written.
    pub fn ask_home(&self, command: Command, value: Vec<u8>) -> Answered {
        let tag = command.tag();
        self.alive(tag)?;
        // Whoever has removed a region asks whether its keeper knows.
        if !matches!(command, Command::Remove(_)) {
            self.is_there(tag)?;
        }
        let mut answered = self.ask_all(Questions::One(command, value))?;
        answered.pop().unwrap_or(Err(silence(self, tag)))
    }

    /// An address in a home that a group keeps is of a region that is there,
    /// as far as this node can know: it asks nobody for what it knows to be gone,
    /// and nobody waits for what never was.
    pub(in crate::host) fn is_there(&self, tag: Tag) -> Result<(), AccessError> {
        if tag.home().is_own() || !tag.is_under(Contract::Object) {
            return Ok(());
        }
        let objects = &self.agents.objects;
        let unheard = match objects.is_removed(tag) {
            None => return Ok(()),
            Some(true) => return Err(AccessError::Gone { addr: tag.0 }),
            Some(false) => self.groups.look(),
        };
        match (objects.is_removed(tag), unheard) {
            (Some(true), _) => Err(AccessError::Gone { addr: tag.0 }),
            (Some(false), Ok(_)) => Err(AccessError::BadAddress { addr: tag.0 }),
            // Where the store is away, the keeper may know.
            _ => Ok(()),
        }
    }

    /// Asks homes for several objects, [`MANY`](rackmem_proto::sabre::MANY) at most, which are
    /// under way together; each unless it has this version.
    pub fn read_at_homes(&self, objects: &[(Ref, Known)]) -> Result<Vec<Answered>, AccessError> {
        let there = objects.iter().map(|(at, _)| self.is_there(at.tag));
        let there: Vec<Result<(), AccessError>> = there.collect();
        let asked = objects
            .iter()
            .zip(&there)
            .filter(|(_, there)| there.is_ok());
        let asked: Vec<(Ref, Known)> = asked.map(|(object, _)| *object).collect();
        let mut answered = match asked.is_empty() {
            true => Vec::new(),
            false => self.ask_all(Questions::Reads(asked))?,
        }
        .into_iter();
        let mut all = Vec::with_capacity(objects.len());
        for (there, (object, _)) in there.into_iter().zip(objects) {
            let answer = there.and_then(|()| {
                let silent = || Err(silence(self, object.tag));
                answered.next().unwrap_or_else(silent)
            });
            all.push(answer);
        }
        Ok(all)
    }

    /// Asks, and waits for all answers.
    fn ask_all(&self, questions: Questions) -> Result<Vec<Answered>, AccessError> {
        let mut slot = self.requesters.borrow()?;
        let mut asking = Asking::new(self, questions);
        let mut answers: Vec<Option<Answered>> = asking.open.iter().map(|_| None).collect();
        while !asking.look(&mut slot, |nth, answer| answers[nth] = Some(answer)) {
            asking.wait(&mut slot, LOOK_UP);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Waits for packets, no longer than this, and takes those that come. `asked`: when what is
    /// under way in the slot was asked for last.
    pub(super) fn wait_for_homes(&self, slot: &mut Slot, at_most: Duration, asked: &mut Instant) {
        let objects = &self.agents.objects;
        self.listen_for(slot, at_most, |time| objects.wait(time));
        // Where packets are calls nobody else sends it again, and a keeper may have had no answer:
        // it has not heard of a region, or no majority has answered it.
        if !slot.overlaps() && asked.elapsed() >= LOOK_UP {
            *asked = Instant::now();
            let (nth, mut nobody) = (slot.number(), Nobody);
            let mut here = Here::new(&self.agents, slot.net(), Body::None, &mut nobody);
            here.objects(|sabre, fx| sabre.ask_again(nth, fx));
        }
    }

    /// A region of so many bytes for objects, in the memory of this home.
    pub fn reserve_objects(&self, home: Tag, bytes: u64) -> Result<Tag, AllocError> {
        let at_home = |here: &mut Here<'_>| {
            here.at_home(|home, _| {
                let tag = home.book.reserve(bytes)?;
                Ok(Answer {
                    tag,
                    ..Answer::default()
                })
            })
        };
        let wanted = Command::Reserve(home, bytes.max(1));
        let given = self.call_home(|came| self.give(wanted, &at_home, came));
        Ok(given??.tag)
    }

    /// An object of zeros in a region: what is to be done next, when the region's home has answered
    /// this if it was asked. `wanted` is [`Command::Alloc`].
    pub fn give_object(
        &self,
        wanted: Command,
        came: Option<Answered>,
    ) -> Action<Result<Ref, AllocError>, Asks> {
        let at_home = |here: &mut Here<'_>| {
            here.at_home(|home, fx| match wanted {
                Command::Alloc(region, len) => home.give(region, len, fx),
                _ => Err(Reason::Refused),
            })
        };
        self.give(wanted, &at_home, came)
    }

    fn give(
        &self,
        wanted: Command,
        at_home: &impl Fn(&mut Here<'_>) -> Result<Answer, Reason>,
        came: Option<Answered>,
    ) -> Action<Result<Ref, AllocError>, Asks> {
        let tag = wanted.tag();
        let outcome = match came {
            Some(answered) => answered.map(|(outcome, _)| outcome),
            None if self.has_home_of(tag) => {
                let Some(done) = self.here_now(at_home) else {
                    return Action::Later(not_done(Reason::Locked, tag));
                };
                done.map(|done| match done {
                    Ok(answer) => Outcome::Given(Ref {
                        tag: answer.tag,
                        generation: answer.generation,
                    }),
                    Err(reason) => Outcome::Refused(reason),
                })
            }
            None => return Action::Ask(Asks::to(wanted)),
        };
        Action::Over(match outcome {
            Ok(Outcome::Given(object)) => Ok(Ok(object)),
            Ok(Outcome::Refused(Reason::Locked)) => {
                return Action::Later(not_done(Reason::Locked, tag));
            }
            // Before it answered, this node had perhaps not heard who serves it; and if nobody does
            // any more, the next one is asked.
            Ok(Outcome::Refused(Reason::Full)) => match self.standing.host(tag.home()) {
                Some(node) => Ok(Err(AllocError::OutOfMemory { node })),
                None => return Action::Ask(Asks::to(wanted)),
            },
            Ok(outcome) => Err(unlike(outcome, tag)),
            Err(error) => Err(error),
        })
    }

    /// An object is no more: what is to be done next, when its home has answered this if it was
    /// asked.
    pub fn free_object(&self, object: Ref, came: Option<Answered>) -> Action<(), Asks> {
        let Ref { tag, generation } = object;
        let locked = || Action::Later(not_done(Reason::Locked, tag));
        if let Some(answered) = came {
            return match answered {
                Ok((Outcome::Freed, _)) => Action::Over(Ok(())),
                Ok((Outcome::Refused(Reason::Locked), _)) => locked(),
                Ok((outcome, _)) => Action::Over(Err(unlike(outcome, tag))),
                Err(error) => Action::Over(Err(error)),
            };
        }
        if !self.has_home_of(tag) {
            return Action::Ask(Asks::to(Command::Free(object)));
        }
        let free = |here: &mut Here<'_>| here.at_home(|home, fx| home.free(tag, generation, fx));
        match self.here_now(free) {
            None | Some(Ok(Err(Reason::Locked))) => locked(),
            Some(Ok(Ok(_))) => Action::Over(Ok(())),
            Some(Ok(Err(reason))) => Action::Over(Err(not_done(reason, tag))),
            Some(Err(error)) => Action::Over(Err(error)),
        }
    }

    /// Goes through an operation on objects in this thread.
    pub fn call_home<R>(
        &self,
        go_on: impl FnMut(Option<Answered>) -> Action<R, Asks>,
    ) -> Result<R, AccessError> {
        let ask = |asks: Asks| self.ask_home(asks.command, asks.value);
        errand::call(self, ask, go_on)
    }

    /// A region is no more, nor are its objects.
    pub fn remove_objects(&self, region: Tag) -> Result<(), AccessError> {
        let mut backoff = Backoff::new(self.patience);
        loop {
            // Each time some of its objects go.
            let done = match self.has_home_of(region) {
                true => self.here(|here| here.at_home(|home, fx| home.remove(region, fx)))?,
                false => match self.ask_home(Command::Remove(region), Vec::new())?.0 {
                    Outcome::Refused(reason) => Err(reason),
                    Outcome::Freed => return Ok(()),
                    outcome => return Err(unlike(outcome, region)),
                },
            };
            match done {
                Ok(_) => return Ok(()),
                Err(Reason::Locked) if backoff.wait() => {}
                Err(reason) => return Err(not_done(reason, region)),
            }
        }
    }

    /// Why there is no object at an address of this node's own home.
    pub fn no_object(&self, tag: Tag) -> AccessError {
        let spot = self
            .here(|here| here.at_home(|home, _| home.book.spot(tag).map(|_| Answer::default())));
        match spot {
            Ok(Err(reason)) => not_done(reason, tag),
            Ok(Ok(_)) => AccessError::Gone { addr: tag.0 },
            Err(error) => error,
        }
    }

    /// Does something in this node's own home, if a requester is free.
    fn here_now<R>(&self, act: impl FnOnce(&mut Here<'_>) -> R) -> Option<Result<R, AccessError>> {
        let slot = match self.requesters.borrow_free()? {
            Ok(slot) => slot,
            Err(error) => return Some(Err(error.into())),
        };
        let mut nobody = Nobody;
        let mut here = Here::new(&self.agents, slot.net(), Body::None, &mut nobody);
        Some(Ok(act(&mut here)))
    }

    /// The same, with the first requester that is.
    fn here<R>(&self, act: impl FnOnce(&mut Here<'_>) -> R) -> Result<R, AccessError> {
        let slot = self.requesters.borrow()?;
        let mut nobody = Nobody;
        let mut here = Here::new(&self.agents, slot.net(), Body::None, &mut nobody);
        Ok(act(&mut here))
    }
}

/// A home has not answered.
pub(super) fn silence(access: &Access, tag: Tag) -> AccessError {
    AccessError::silent(tag, access.standing.host(tag.home()))
}

/// Why something was not done with an object.
pub(crate) fn not_done(reason: Reason, tag: Tag) -> AccessError {
    match reason {
        Reason::Gone => AccessError::Gone { addr: tag.0 },
        Reason::Refused if !tag.is_under(Contract::Object) => {
            AccessError::wrong_contract(tag, Contract::Object)
        }
        reason => refused(reason, tag),
    }
}

/// An outcome that is not what was asked for.
pub(crate) fn unlike(outcome: Outcome, tag: Tag) -> AccessError {
    match outcome {
        Outcome::Refused(reason) => not_done(reason, tag),
        _ => refused(Reason::Refused, tag),
    }
}

impl Objects {
    /// Waits until some operation of this node has ended, but not for long.
    pub(super) fn wait(&self, at_most: Duration) {
        let part = self.part();
        let _ = self.ended.wait_timeout(part, at_most).whole();
    }
}
