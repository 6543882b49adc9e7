//! What a region's home is asked, step by step: what a call and the future beside it both go
//! through.

use super::copies::Copies;
use super::counter::Moment;
use crate::bytes::value::Value;
use crate::error::AccessError;
use crate::host::driving::errand::{self, Action, Came};
use rackmem_fabric::Whole;
use rackmem_proto::bi::cached::{BiAsk, Question};
use rackmem_proto::bi::{ReadSection, Tick};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

impl<T: Value> Copies<T> {
    /// Goes through an operation in this thread. Of several threads that have to hear one asks, and
    /// the others look again when it has heard.
    pub fn call<R>(
        &self,
        patience: Duration,
        mut go_on: impl FnMut(Option<Came<BiAsk>>) -> Action<R, BiAsk>,
    ) -> Result<R, AccessError> {
        let access = &self.node.inner.access;
        let mut one = None;
        let ask = |ask: BiAsk| access.ask_bounded(ask, patience);
        errand::call(access, ask, |came| match go_on(came) {
            Action::Ask(BiAsk::News(..)) if one.is_none() => {
                one = Some(self.asking.lock().whole());
                go_on(None)
            }
            Action::Ask(news @ BiAsk::News(..)) => Action::Ask(news),
            other => {
                one = None;
                other
            }
        })
    }

    /// A read of an item at its home: what is to be done next, when that has answered this if it
    /// was asked.
    pub fn fetch_on(&self, index: usize, came: Option<Came<BiAsk>>) -> Action<T, BiAsk> {
        if let Some(came) = came {
            return Action::Over(came.and_then(|reply| self.fetched(index, reply)));
        }
        if let Err(outside) = self.check(index) {
            return Action::Over(Err(outside));
        }
        self.counters().misses.fetch_add(1, Relaxed);
        Action::Ask(BiAsk::Read(self.region, index as u32, self.line as u32))
    }

    /// The same of a write.
    pub fn write_on(
        &self,
        (index, value): (usize, &T),
        came: Option<Came<BiAsk>>,
    ) -> Action<(), BiAsk> {
        if let Some(came) = came {
            return Action::Over(came.and_then(|reply| self.written((index, value), reply)));
        }
        if let Err(outside) = self.check(index) {
            return Action::Over(Err(outside));
        }
        let mut bytes = value.as_bytes().to_vec();
        bytes.resize(self.line, 0);
        self.counters().writes.fetch_add(1, Relaxed);
        Action::Ask(BiAsk::Write(self.region, index as u32, bytes))
    }
}

/// A quiescence, between two of its questions.
#[derive(Default)]
pub(super) struct Quiescing {
    /// What was asked, and when.
    asked: Option<(Question, Moment)>,
}

impl Quiescing {
    /// What is to be done next, when the home has answered this if it was asked. Nothing is asked
    /// where what others have heard is `enough`.
    pub fn go_on<T: Value>(
        &mut self,
        copies: &Copies<T>,
        came: Option<Came<BiAsk>>,
        enough: impl Fn(Tick) -> bool,
    ) -> Action<(), BiAsk> {
        let asked = self.asked.take();
        if let Some((came, asked)) = came.zip(asked) {
            match came.and_then(|reply| copies.hear(asked, reply)) {
                // Where the home has to say more than an answer holds, the next question is for
                // the rest.
                Ok(false) => {}
                Ok(true) => return Action::Over(Ok(())),
                Err(error) => return Action::Over(Err(error)),
            }
        }
        if enough(copies.quiesced()) {
            return Action::Over(Ok(()));
        }
        let (question, moment) = copies.question();
        self.asked = Some((question, moment));
        Action::Ask(BiAsk::News(copies.region, question.from))
    }
}

/// A section that begins with a look at the clock.
#[derive(Default)]
pub(super) struct Entering {
    /// It is late: the home is asked first.
    late: Option<Quiescing>,
}

impl Entering {
    /// See [`Quiescing::go_on`].
    pub fn go_on<T: Value>(
        &mut self,
        copies: &Copies<T>,
        came: Option<Came<BiAsk>>,
    ) -> Action<ReadSection, BiAsk> {
        let enter = |quiesced| ReadSection::enter((copies.now(), quiesced), copies.bound, None);
        let late = match &mut self.late {
            Some(late) => late,
            none => {
                if let Ok(section) = enter(copies.quiesced()) {
                    return Action::Over(Ok(section));
                }
                copies.counters().waited.fetch_add(1, Relaxed);
                none.insert(Quiescing::default())
            }
        };
        let quiesced = late.go_on(copies, came, |quiesced| enter(quiesced).is_ok());
        quiesced.and_then(|()| enter(copies.quiesced()).map_err(|late| copies.stale(late.by)))
    }
}

/// A read of one item, in a section of its own.
pub(super) struct Reading {
    index: usize,
    step: Step,
}

enum Step {
    /// Nothing has been done.
    New,
    Enters(Entering),
    /// There is no copy.
    Fetches,
}

impl Reading {
    pub fn new(index: usize) -> Self {
        let step = Step::New;
        Reading { index, step }
    }

    /// See [`Quiescing::go_on`].
    pub fn go_on<T: Value>(
        &mut self,
        copies: &Copies<T>,
        mut came: Option<Came<BiAsk>>,
    ) -> Action<T, BiAsk> {
        loop {
            match &mut self.step {
                Step::New => {
                    if let Some(value) = copies.read_now(self.index) {
                        return Action::Over(Ok(value));
                    }
                    self.step = Step::Enters(Entering::default());
                }
                Step::Enters(entering) => match entering.go_on(copies, came.take()) {
                    Action::Over(Ok(section)) => {
                        if let Some(value) = copies.here(self.index) {
                            copies.counters().hits.add();
                            let holds = section.holds(copies.now());
                            let holds = holds.map_err(|late| copies.stale(late.by));
                            return Action::Over(holds.map(|()| value));
                        }
                        self.step = Step::Fetches;
                    }
                    Action::Over(Err(error)) => return Action::Over(Err(error)),
                    Action::Ask(question) => return Action::Ask(question),
                    Action::Pause(most) => return Action::Pause(most),
                    Action::Later(why) => return Action::Later(why),
                },
                // Its home has it when it is asked: however long that takes, it is not older than
                // this read.
                Step::Fetches => return copies.fetch_on(self.index, came.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Domain;
    use super::*;
    use crate::{Contract, Rack, RegionSpec};

    /// A future asks beside a thread, and is answered after it.
    #[test]
    fn an_answer_that_others_have_overtaken_is_as_one_that_was_lost() {
        let rack = Rack::local(2).unwrap();
        let spec = RegionSpec::new("items", 64 * 4).contract(Contract::Bounded);
        // So long that nobody asks by himself.
        let bound = Duration::from_secs(600);
        let home = Domain::of(&rack.node(0).create_region(&spec).unwrap(), bound).unwrap();
        let far: Domain<u64> =
            Domain::of(&rack.node(1).open_region(&spec).unwrap(), bound).unwrap();
        assert_eq!(far.read(0), Ok(0));
        let copies = &*far.copies;
        let ask = || {
            let (question, moment) = copies.question();
            let news = BiAsk::News(copies.region, question.from);
            let access = &copies.node.inner.access;
            let reply = access.ask_bounded(news, copies.patience()).unwrap();
            ((question, moment), reply)
        };
        home.set(0, &1).unwrap();
        let (first, second) = (ask(), ask());
        home.set(0, &2).unwrap();
        let (third, late) = (ask(), ask());
        assert_eq!(copies.hear(third.0, third.1), Ok(true));
        assert_eq!(far.read(0), Ok(2));
        for (asked, reply) in [first, second, late] {
            assert_eq!(copies.hear(asked, reply), Ok(false));
        }
        assert_eq!(far.read(0), Ok(2));
        // Where nothing was written between, the later moment stays.
        let (early, later) = (ask(), ask());
        assert_eq!(copies.hear(later.0, later.1), Ok(true));
        copies.set_quiesced(Tick(7));
        assert_eq!(copies.hear(early.0, early.1), Ok(true));
        assert_eq!(copies.quiesced(), Tick(7));
    }
}
