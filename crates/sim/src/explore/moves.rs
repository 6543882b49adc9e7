//! What can happen next in a state, and the state that follows each.
//!
//! | move | costs |
//! |---|---|
//! | any packet in flight arrives: every order is one | nothing |
//! | it arrives and stays in flight | a duplicate |
//! | it is their turn: a thread's next operation, the end of a hold | nothing |
//! | a thread tries again what was refused | a retry, while it would be refused again |
//! | a requester or a home agent sends again | an early timeout, while packets are in flight |
//! | a home agent is told to move an entry to the switch, or to take it back | a move |
//! | something dies and the rack goes on in a new epoch (`epoch`) | an epoch |
//! | a region is removed, the next one has its number, a node hears of that (`keeping`) | nothing |
//! | of the packets that any of these sends, some are lost | a loss each |
//!
//! Nothing more is needed. A packet that is lost late is one that was lost at once:
//! nobody can tell. Two copies in flight are one that stays when it arrives. Three reductions keep
//! the space finite or small, and each is sound:
//!
//! - *Answers to ended events are taken out.* A requester ignores every packet whose sequence
//!   number is not one of its open events', and numbers never come back. That it is ignored now is
//!   tried out each time, not assumed.
//! - *A retry that must fail is rationed.* It is refused, and leaves nothing but a higher sequence
//!   number; without a ration there would be no end of those. A retry that may succeed when it
//!   arrives is free, and so every thread can go on.
//! - *Retransmissions are rationed while packets are in flight*,
//!   which any timeout that is longer than the longest delay obeys by itself; the ration is how
//!   many timeouts are shorter.

use super::effects::{Complaint, Observation};
use super::layout::Layout;
use super::parts::{Input, PacketId, Part, Parts};
use super::plan::Next;
use super::scenario::Budget;
use super::state::State;
use super::view::Entry;
use super::witness::Witnesses;
use rackmem_proto::flowcc::{lock, tables};
use rackmem_proto::wire::{Kind, NodeId};

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// The part that it happens to.
    pub part: usize,
    /// What.
    pub input: Input,
    /// Whether the packet stays in flight.
    pub stays: bool,
    /// Which of the packets that this sends are lost, a bit each.
    pub lost: u8,
    /// What came of it, to be looked up.
    pub outcome: u32,
}

/// A promise that was broken by a move.
pub type Broken = (Move, Complaint);

/// A scenario's rack, as far as it has been explored.
pub struct ExplorerRack {
    /// Where everything is.
    pub layout: Layout,
    /// Its parts.
    pub parts: Parts,
    /// The state in which nothing has happened.
    pub first: State,
    /// What was seen.
    pub seen: Witnesses,
}

/// What a move costs, and which packet it takes out of flight.
pub struct Price {
    /// What is left.
    pub left: Budget,
    /// The packet.
    pub taken: Option<usize>,
}

impl ExplorerRack {
    /// A rack of which nothing has been explored.
    pub fn new(layout: Layout) -> Self {
        let (parts, numbers) = Parts::new(&layout);
        let mut first = State {
            left: layout.scenario.budget,
            ..State::default()
        };
        first.parts[..numbers.len()].copy_from_slice(&numbers);
        ExplorerRack {
            layout,
            parts,
            first,
            seen: Witnesses::default(),
        }
    }

    /// Every move of a state with the state that follows, in an order that is always the same.
    pub fn successors(
        &mut self,
        state: &State,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        into.clear();
        for at in 0..state.packets.len() {
            if at > 0 && state.packets[at - 1] == state.packets[at] {
                continue;
            }
            self.arrival(state, at, into)?;
        }
        for part in 0..usize::from(self.layout.scenario.nodes) {
            if self.layout.scenario.inside {
                self.inside(state, part, into)?;
                if self.parts.view(state.parts[part]).epoch < state.views.epoch() {
                    continue;
                }
            }
            self.turns(state, part, into)?;
            self.migrations(state, part, into)?;
            self.resends(state, part, into)?;
        }
        self.groups(state, into)?;
        self.epochs(state, into)
    }

    fn arrival(
        &mut self,
        state: &State,
        at: usize,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        let packet = state.packets[at];
        let nodes = usize::from(self.layout.scenario.nodes);
        let Some(part) = self.layout.part(self.parts.packet(packet).to) else {
            return Ok(());
        };
        let input = Input::Arrival(packet);
        let left = state.left;
        let price = Price {
            left,
            taken: Some(at),
        };
        self.happen(state, part, input, price, into)?;
        let outcome = self.parts.step(state.parts[part], input, &self.layout);
        let past =
            self.parts.packet(packet).header.epoch != self.parts.view(state.parts[part]).epoch;
        let outcome = self.parts.outcome(outcome);
        let ignored = outcome.next == state.parts[part] && outcome.sent.is_empty();
        if self.layout.scenario.late && past && !ignored && part < nodes {
            let detail = "a packet of a past epoch has changed something".into();
            let action = into.last().map(|last| last.0);
            let broken = |action| (action, ("nothing of the past", "§5.4", detail));
            return action.map_or(Ok(()), |action| Err(broken(action)));
        }
        if let Some(duplicates) = left.duplicates.checked_sub(1)
            && !ignored
        {
            let left = Budget { duplicates, ..left };
            let price = Price { left, taken: None };
            self.happen(state, part, input, price, into)?;
        }
        Ok(())
    }

    fn turns(
        &mut self,
        state: &State,
        part: usize,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        for thread in 0..self.parts.view(state.parts[part]).threads.len() {
            let left = state.left;
            let left = match self.parts.view(state.parts[part]).threads[thread].next {
                Next::Nothing => continue,
                Next::Free => left,
                Next::Again(kind, block) if self.may_succeed(state, part, kind, block) => left,
                Next::Again(..) => match left.retries.checked_sub(1) {
                    Some(retries) => Budget { retries, ..left },
                    None => continue,
                },
            };
            let price = Price { left, taken: None };
            self.happen(state, part, Input::Turn(thread as u8), price, into)?;
        }
        Ok(())
    }

    fn resends(
        &mut self,
        state: &State,
        part: usize,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        let left = match (state.packets.is_empty(), state.left.early.checked_sub(1)) {
            (true, _) => state.left,
            (false, Some(early)) => Budget {
                early,
                ..state.left
            },
            (false, None) => return Ok(()),
        };
        let view = self.parts.view(state.parts[part]);
        let home = view.home_resends;
        let threads: Vec<usize> = view.threads.iter().map(|thread| thread.resends).collect();
        let inputs = threads.iter().enumerate().flat_map(|(thread, &resends)| {
            (0..resends).map(move |nth| Input::Resend(thread as u8, nth as u8))
        });
        let homes = (0..home).map(|nth| Input::ResendHome(nth as u8));
        for input in inputs.chain(homes) {
            let price = Price { left, taken: None };
            self.happen(state, part, input, price, into)?;
        }
        Ok(())
    }

    /// Hotness is the explorer's choice: any entry may be told to go to the switch or to come back.
    fn migrations(
        &mut self,
        state: &State,
        part: usize,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        let switch = state.parts[usize::from(self.layout.scenario.nodes)];
        let lives = self.layout.has_switch() && matches!(self.parts.part(switch), Part::Switch(_));
        let Some(moves) = state.left.moves.checked_sub(1).filter(|_| lives) else {
            return Ok(());
        };
        let left = Budget {
            moves,
            ..state.left
        };
        for block in 0..self.layout.blocks() as u8 {
            for input in [Input::Want(block), Input::Demote(block)] {
                let outcome = self.parts.step(state.parts[part], input, &self.layout);
                if self.parts.outcome(outcome).next != state.parts[part] {
                    let price = Price { left, taken: None };
                    self.happen(state, part, input, price, into)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a request would be granted if it arrived now.
    fn may_succeed(&self, state: &State, part: usize, kind: Kind, block: u8) -> bool {
        // The switch is asked first, and refuses for an entry that it is giving back until its
        // location is free. A home that has come back without it says so, which ends the operation.
        let Some((at_home, in_switch)) = self.entries(state, usize::from(block)) else {
            return true;
        };
        let entry = in_switch.unwrap_or(at_home);
        let mut word = entry.lock;
        let node = part as NodeId;
        !entry.away
            && lock::acquire(&mut word, kind.locks_shared())
            && (kind == Kind::Operate || tables::check(kind, node, entry.status, entry.copyset))
    }

    /// A block's entry at its home, and in the switch if it is there.
    pub fn entries(&self, state: &State, block: usize) -> Option<(Entry, Option<Entry>)> {
        let nodes = usize::from(self.layout.scenario.nodes);
        let home = usize::from(self.layout.scenario.homes[block]);
        let at_home = self.parts.view(state.parts[home]).entries[block]?;
        let in_switch = self.layout.has_switch().then(|| {
            let view = self.parts.view(state.parts[nodes]);
            view.entries[block]
        });
        Some((at_home, in_switch.flatten()))
    }

    /// A block's entry at its owner.
    pub fn entry(&self, state: &State, block: usize) -> Option<Entry> {
        let (at_home, in_switch) = self.entries(state, block)?;
        let served = in_switch.filter(|_| at_home.away || at_home.adding);
        Some(served.unwrap_or(at_home))
    }

    pub(super) fn happen(
        &mut self,
        state: &State,
        part: usize,
        input: Input,
        price: Price,
        into: &mut Vec<(Move, State)>,
    ) -> Result<(), Broken> {
        let number = self.parts.step(state.parts[part], input, &self.layout);
        let stays = matches!(input, Input::Arrival(_)) && price.taken.is_none();
        let mut action = Move {
            part,
            input,
            stays,
            lost: 0,
            outcome: number,
        };
        let outcome = self.parts.outcome(number);
        self.seen.add(outcome.seen);
        if let Some(complaint) = &outcome.complaint {
            return Err((action, complaint.clone()));
        }
        let mut next = state.clone();
        next.left = price.left;
        next.parts[part] = outcome.next;
        if let Err(complaint) = observe(&outcome.observed, &mut next, &self.layout) {
            return Err((action, complaint));
        }
        let mut sent: Vec<PacketId> = outcome.sent.to_vec();
        if let Some(at) = price.taken {
            next.packets.remove(at);
        }
        self.take_out(&next.parts, &mut sent);
        let mut packets = std::mem::take(&mut next.packets);
        self.take_out(&next.parts, &mut packets);
        for lost in 0..1_u32 << sent.len().min(8) {
            let Some(losses) = next.left.losses.checked_sub(lost.count_ones() as u8) else {
                continue;
            };
            let mut after = State {
                packets: packets.clone(),
                ..next.clone()
            };
            after.left.losses = losses;
            let arrive = sent.iter().enumerate();
            let arrive = arrive.filter(|(at, _)| lost >> at & 1 == 0);
            after.packets.extend(arrive.map(|(_, packet)| *packet));
            after.packets.sort_unstable();
            action.lost = lost as u8;
            into.push((action, after));
        }
        Ok(())
    }

    /// Takes out the answers to ended events.
    fn take_out(&mut self, states: &[u32], packets: &mut Vec<PacketId>) {
        let (parts, layout) = (&mut self.parts, &self.layout);
        packets.retain(|&packet| {
            let Some((requester, seq)) = parts.packet(packet).answers() else {
                return true;
            };
            let part = states[usize::from(requester.node)];
            let threads = &parts.view(part).threads;
            let Some(thread) = threads.get(usize::from(requester.slot)) else {
                return true;
            };
            let past = parts.packet(packet).header.epoch != parts.view(part).epoch;
            if past || thread.open.contains(&Some(seq)) {
                return true;
            }
            let outcome = parts.step(part, Input::Arrival(packet), layout);
            let outcome = parts.outcome(outcome);
            outcome.next != part || !outcome.sent.is_empty()
        });
    }
}

/// Loads and stores happen at one instant: each must agree with a memory that does one at a time.
/// What is of a removed region is only promised to be no block of the next one.
pub(super) fn observe(
    observed: &[Observation],
    state: &mut State,
    layout: &Layout,
) -> Result<(), Complaint> {
    let removed = |block: u8| layout.is_removed(block.into(), state.groups);
    let refused = observed.iter().find_map(|observation| match observation {
        Observation::NoMemory(block) if !removed(*block) => Some(block),
        _ => None,
    });
    if let Some(block) = refused {
        let detail = format!("block {block} is there, and somebody is told that it is not");
        return Err(("what is there is served", "docs/decisions/0120", detail));
    }
    let of_the_removed = |observation: &&Observation| match observation {
        Observation::Read(block, _)
        | Observation::Wrote(block, ..)
        | Observation::Accepted(block, _)
        | Observation::NoMemory(block) => removed(*block),
    };
    let observed: Vec<_> = observed.iter().filter(|it| !of_the_removed(it)).collect();
    for observation in observed {
        if let Observation::Accepted(block, instead) = *observation {
            state.memory[usize::from(block)] = instead[0];
            continue;
        }
        let (Observation::Read(block, saw) | Observation::Wrote(block, saw, _)) = *observation
        else {
            continue;
        };
        let block = usize::from(block);
        if !state.current(block, saw) {
            let expected = state.memory[block];
            let detail = format!("block {block} read as {saw:?}, write {expected} was the last");
            return Err(("data value", "§5.1.2", detail));
        }
        if let Observation::Wrote(_, _, written) = *observation {
            state.memory[block] = written[0];
        }
    }
    Ok(())
}
