//! Threads: instructions, and what the handler of their faults does.

use super::super::scenario::{Op, Sight, Var};
use super::{Bytes, Event, FOUND, MOMENT, Rules, Taking, World};
use crate::driver::Complaint;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::pages::{Act, Defect, Habit, Right, Stop, showing};

/// What an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    Read,
    /// To store there, without a copy.
    Write,
    /// To store to a copy that is there.
    Upgrade,
    /// A copy goes home.
    Leave,
}

/// Where a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// At its next operation.
    Runs,
    /// In the handler: it looks whether the copy is enough.
    Looks(u8, bool),
    /// It is not: the block is to be reserved.
    Wants(u8, bool),
    /// It waits until home has nothing else to do with the block.
    Asks(u8, Purpose),
    /// Others give up what they have.
    Waits(u8, Purpose),
    /// Bytes are in place; the entry is to be locked.
    Has(u8, Purpose),
    /// With the entry's lock: acts that are done, and the event that ends with them.
    Shows(u8, bool, u8, Option<Purpose>),
    /// In a call, which stops stores.
    Stops(Taking),
    /// In a call, with the entry's lock, and the first word.
    Calls(u8, Option<u8>),
}

impl World {
    /// What an instruction needs that a thread is at.
    fn needs(&self, nth: usize, rules: &Rules) -> Option<(Var, Right)> {
        let thread = self.threads[nth].as_ref()?;
        match rules.op(nth, thread)? {
            Op::Load(var) => Some((var, Right::Load)),
            Op::Store(var, _) | Op::Add(var) => Some((var, Right::Store)),
            Op::Pin(block) => Some((Var(block, 0), Right::Store)),
            _ => None,
        }
    }

    /// Whether a thread can do its next operation without a fault, and whether it can have one.
    pub fn instruction(&self, nth: usize, rules: &Rules) -> (bool, bool) {
        let Some(thread) = self.threads[nth].as_ref() else {
            return (false, false);
        };
        if thread.phase != Phase::Runs {
            return (false, false);
        }
        let drained = thread.buffer[0].is_none();
        let Some((Var(block, _), right)) = self.needs(nth, rules) else {
            // Whatever is a call or a fence.
            return (rules.op(nth, thread).is_some() && drained, false);
        };
        let block = usize::from(block);
        let page = &self.pages[usize::from(thread.node)][block];
        let mapped = page.mapped;
        let room = match rules.op(nth, thread) {
            Some(Op::Store(..)) => thread.buffer[1].is_none(),
            Some(Op::Add(_)) => drained,
            // With the entry's lock for as long as that takes.
            Some(Op::Pin(_)) => drained && !page.locked && page.right >= right,
            _ => true,
        };
        let may = mapped.max(thread.stale[block]) >= right;
        // The handler's own atomics wait for the buffer.
        (may && room, mapped < right && drained)
    }

    /// Does a thread's next operation.
    pub fn run(
        &mut self,
        nth: usize,
        rules: &Rules,
        seen: &mut Vec<Sight>,
    ) -> Result<(), Complaint> {
        let thread = *self.thread(nth);
        let node = usize::from(thread.node);
        let stale = |var: Var, right| {
            let block = usize::from(var.0);
            self.pages[node][block].mapped < right && thread.stale[block] >= right
        };
        let mut done = true;
        match rules.op(nth, &thread) {
            Some(Op::Load(var)) => {
                if stale(var, Right::Load) {
                    seen.push(Sight::LoadedBeforeTheShootdown);
                }
                let own = thread.buffer.iter().flatten().rev();
                let own = own.clone().find(|store| store.0 == var);
                let value = match own {
                    Some((_, value)) => *value,
                    None => self.check(node, var)?,
                };
                let thread = self.thread(nth);
                thread.seen[usize::from(thread.loads)] = value;
                thread.loads += 1;
            }
            Some(Op::Store(var, value)) => {
                if stale(var, Right::Store) {
                    seen.push(Sight::StoredBeforeTheShootdown);
                }
                let free = usize::from(thread.buffer[0].is_some());
                self.thread(nth).buffer[free] = Some((var, value));
            }
            Some(Op::Add(var)) => {
                let value = self.check(node, var)? + 1;
                let (block, word) = (usize::from(var.0), usize::from(var.1));
                self.page(node, block).bytes[word] = value;
                self.truth[block][word] = value;
            }
            Some(Op::Fence) | None => {}
            Some(Op::Pin(block)) => self.page(node, block.into()).pinned = Right::Store,
            Some(Op::Unpin(block)) => self.page(node, block.into()).pinned = Right::Hidden,
            Some(Op::System(var, value)) => {
                let (block, word) = (usize::from(var.0), usize::from(var.1));
                let page = self.page(node, block);
                match (page.mapped == Right::Store, page.pinned) {
                    (true, _) => {
                        page.bytes[word] = value;
                        self.truth[block][word] = value;
                        seen.push(Sight::FoundPinned);
                    }
                    (false, Right::Store) => {
                        let detail = format!("block {block} is not in node {node}'s mapping");
                        return Err((FOUND, "decision 93", detail));
                    }
                    // It fails.
                    (false, _) => seen.push(Sight::PinEnded),
                }
            }
            Some(Op::Call(block)) => {
                done = false;
                let taking = Taking::for_call(node, block.into(), rules);
                self.thread(nth).phase = Phase::Stops(taking);
            }
            Some(Op::Evict(block)) => {
                let page = self.page(node, block.into());
                done = page.status == LocalStatus::Invalid;
                if !done && !page.reserved {
                    page.reserved = true;
                    self.thread(nth).phase = Phase::Asks(block, Purpose::Leave);
                }
            }
        }
        self.thread(nth).next += u8::from(done);
        Ok(())
    }

    /// A thread's instruction is interrupted.
    pub fn fault(&mut self, nth: usize, rules: &Rules) {
        if let Some((Var(block, _), right)) = self.needs(nth, rules) {
            self.thread(nth).phase = Phase::Looks(block, right == Right::Store);
        }
    }

    /// Whether a thread that is not at an instruction can go on.
    pub fn can_go_on(&self, nth: usize, rules: &Rules) -> bool {
        let Some(thread) = self.threads[nth].as_ref() else {
            return false;
        };
        let page = |block: u8| &self.pages[usize::from(thread.node)][usize::from(block)];
        let closed = self.closed && usize::from(thread.node) == super::CLOSES;
        match &thread.phase {
            Phase::Runs => false,
            // It waits for the lease first.
            Phase::Looks(block, _) => !closed && !page(*block).locked,
            Phase::Wants(block, _) => !page(*block).reserved,
            Phase::Asks(block, _) => self.events[usize::from(*block)].is_none(),
            Phase::Waits(block, _) => {
                let event = self.events[usize::from(*block)].as_ref();
                let takings = event.map(|event| event.takings.iter().flatten());
                takings.is_some_and(|mut all| all.all(Taking::is_over))
            }
            Phase::Has(block, _) => !page(*block).locked,
            Phase::Shows(..) | Phase::Calls(..) => true,
            Phase::Stops(taking) => self.can_take(taking, rules),
        }
    }

    /// Its next step there.
    pub fn go_on(
        &mut self,
        nth: usize,
        rules: &Rules,
        seen: &mut Vec<Sight>,
    ) -> Result<(), Complaint> {
        let thread = *self.thread(nth);
        let node = usize::from(thread.node);
        let phase = match thread.phase {
            Phase::Runs => Phase::Runs,
            Phase::Looks(block, stores) => self.look(node, block, stores, rules, seen),
            Phase::Wants(block, stores) => {
                let page = self.page(node, block.into());
                let asks = page.status == LocalStatus::Invalid && page.habit.asks(stores);
                if asks && !stores {
                    seen.push(Sight::AskedForStores);
                }
                let purpose = match (page.status, stores) {
                    (LocalStatus::Invalid, _) if asks => Some(Purpose::Write),
                    (LocalStatus::Invalid, false) => Some(Purpose::Read),
                    (LocalStatus::Invalid, true) => Some(Purpose::Write),
                    (LocalStatus::Shared, true) => Some(Purpose::Upgrade),
                    _ => None,
                };
                page.reserved = purpose.is_some();
                match purpose {
                    Some(purpose) => Phase::Asks(block, purpose),
                    None => Phase::Looks(block, stores),
                }
            }
            Phase::Asks(block, purpose) => self.ask(node, block, purpose, rules, seen),
            Phase::Waits(block, purpose) => self.hear(nth, block, purpose),
            Phase::Has(block, purpose) => {
                let closed = self.closed && node == super::CLOSES;
                let stores =
                    (self.needs(nth, rules)).is_some_and(|(_, right)| right == Right::Store);
                let page = self.page(node, block.into());
                page.locked = true;
                let right = page.right;
                let granted = Right::wanted(purpose != Purpose::Read);
                let came = |habit: &mut Habit| match purpose {
                    Purpose::Upgrade => {
                        habit.stored();
                        granted
                    }
                    _ => habit.came(stores, granted),
                };
                let shows = rules.learn(page, came).unwrap_or(granted);
                if shows < granted {
                    seen.push(Sight::LookedAt);
                }
                match closed {
                    // No right is given.
                    true => self.shown(node, block, right, Some(purpose)),
                    false => Phase::Shows(block, shows == Right::Store, 0, Some(purpose)),
                }
            }
            Phase::Shows(block, stores, at, purpose) => {
                let right = self.pages[node][usize::from(block)].right;
                let (acts, right) = showing(right, stores);
                let place_open = rules.breaks(Defect::PlaceOpen);
                let acts: Vec<Act> = acts
                    .map(|act| match act {
                        Act::Place { .. } if place_open => Act::Place { stores: true },
                        act => act,
                    })
                    .collect();
                self.act(node, block.into(), acts[usize::from(at)]);
                match acts.len() > usize::from(at) + 1 {
                    true => Phase::Shows(block, stores, at + 1, purpose),
                    false => {
                        self.page(node, block.into()).fresh = true;
                        self.shown(node, block, right, purpose)
                    }
                }
            }
            Phase::Stops(taking) => {
                let begins = taking;
                let taking = self.take(taking, rules);
                let block = taking.block;
                let page = self.page(node, block.into());
                match taking.is_over() {
                    true if page.status == LocalStatus::Invalid => {
                        // It is fetched first.
                        page.locked = false;
                        Phase::Looks(block, false)
                    }
                    true => Phase::Calls(block, None),
                    false => {
                        if page.mapped != Right::Store
                            && begins != taking
                            && !self.is_known(node, block.into())
                        {
                            seen.push(Sight::CallWaited);
                        }
                        Phase::Stops(taking)
                    }
                }
            }
            Phase::Calls(block, None) => {
                let first = self.pages[node][usize::from(block)].bytes[0];
                Phase::Calls(block, Some(first))
            }
            Phase::Calls(block, Some(first)) => {
                let second = self.pages[node][usize::from(block)].bytes[1];
                self.page(node, block.into()).locked = false;
                self.called(nth, block, [first, second])?;
                Phase::Runs
            }
        };
        self.thread(nth).phase = phase;
        Ok(())
    }

    fn called(&mut self, nth: usize, block: u8, bytes: Bytes) -> Result<(), Complaint> {
        let last = self.truth[usize::from(block)];
        if bytes != last {
            let detail = format!("block {block} is {last:?}, a call has seen {bytes:?}");
            return Err((MOMENT, "paper §5.1.2", detail));
        }
        let thread = self.thread(nth);
        for value in bytes {
            thread.seen[usize::from(thread.loads)] = value;
            thread.loads += 1;
        }
        thread.next += 1;
        Ok(())
    }

    /// With the entry's lock for as long as that takes.
    fn look(
        &mut self,
        node: usize,
        block: u8,
        stores: bool,
        rules: &Rules,
        seen: &mut Vec<Sight>,
    ) -> Phase {
        let page = self.page(node, block.into());
        let by_habit = rules.breaks(Defect::OpenByHabit) && page.right == Right::Load;
        if !Right::is_enough(page.status, stores) && !by_habit {
            return Phase::Wants(block, stores);
        }
        if page.right >= Right::wanted(stores) {
            if rules.breaks(Defect::TrustTheRight) {
                return Phase::Runs;
            }
            let again = page.mapped < Right::wanted(stores);
            seen.push(if again {
                Sight::PlacedAgain
            } else {
                Sight::ShownByAnother
            });
        }
        page.locked = true;
        if stores && page.right == Right::Load {
            rules.learn(page, Habit::stored);
        }
        Phase::Shows(block, stores, 0, None)
    }

    /// Home grants an event: those who have a copy that it does not allow are asked.
    fn ask(
        &mut self,
        node: usize,
        block: u8,
        purpose: Purpose,
        rules: &Rules,
        seen: &mut Vec<Sight>,
    ) -> Phase {
        let at = usize::from(block);
        let statuses = self.pages.map(|pages| pages[at].status);
        // Another node was granted something in between.
        let purpose = match (purpose, statuses[node]) {
            (Purpose::Upgrade, LocalStatus::Invalid) => {
                seen.push(Sight::UpgradeOvertaken);
                Purpose::Write
            }
            (Purpose::Leave, LocalStatus::Invalid) => {
                self.page(node, at).reserved = false;
                return Phase::Runs;
            }
            (purpose, _) => purpose,
        };
        let takings = std::array::from_fn(|other| match (purpose, statuses[other]) {
            (Purpose::Leave, _) if other == node => Some(Taking::to_leave(node, at)),
            (Purpose::Leave, _) | (_, LocalStatus::Invalid) => None,
            _ if other == node => None,
            (Purpose::Read, LocalStatus::Shared) => None,
            (purpose, _) => {
                let reads = purpose == Purpose::Read;
                Some(Taking::to_give(other, at, reads, rules))
            }
        });
        if purpose == Purpose::Upgrade && rules.breaks(Defect::OpenEarly) {
            self.act(node, at, Act::Open);
        }
        if rules.breaks(Defect::ShowBeforeBytes) && matches!(purpose, Purpose::Read) {
            self.act(node, at, Act::Place { stores: false });
        }
        self.events[at] = Some(Event {
            purpose,
            takings,
            bytes: None,
        });
        Phase::Waits(block, purpose)
    }

    /// All have answered.
    fn hear(&mut self, nth: usize, block: u8, purpose: Purpose) -> Phase {
        let at = usize::from(block);
        let node = usize::from(self.thread(nth).node);
        let bytes = self.events[at].and_then(|event| event.bytes);
        match purpose {
            Purpose::Leave => {
                self.events[at] = None;
                self.page(node, at).reserved = false;
                self.thread(nth).next += 1;
                return Phase::Runs;
            }
            Purpose::Upgrade => {}
            Purpose::Read | Purpose::Write => {
                let bytes = bytes.unwrap_or(self.home[at]);
                self.page(node, at).bytes = bytes;
            }
        }
        Phase::Has(block, purpose)
    }

    /// The entry says which right there is, and the event that there was is over.
    fn shown(&mut self, node: usize, block: u8, right: Right, purpose: Option<Purpose>) -> Phase {
        let at = usize::from(block);
        let page = self.page(node, at);
        page.right = right;
        page.locked = false;
        if let Some(purpose) = purpose {
            page.status = match purpose {
                Purpose::Read => LocalStatus::Shared,
                _ => LocalStatus::Modified,
            };
            // What the status does not allow has ended before.
            if let Some((act, left)) = Stop::before(page.status).act(right) {
                page.right = left;
                self.act(node, at, act);
            }
            self.page(node, at).reserved = false;
            self.events[at] = None;
        }
        Phase::Runs
    }
}
