//! Homes that groups keep, at a node of a world: its copies of lines, and what it does as the
//! rack's keeper. The turns of packets are the library's ([`KeptTurn`]), and so is which of them
//! are under way at a time ([`Turns`]); here they go on when an operation on a line ends, where a
//! thread of the library waits for it.

use super::{Deed, Form, Load, Site, Speaks};
use crate::world::block::{BLOCK_BYTES, Block, LINE, line, of_line, to_line};
use rackmem_proto::Output;
use rackmem_proto::abd::{Abd, Command, Effect, Outcome, ReplicatedMemory, Section};
use rackmem_proto::call::Parcel;
use rackmem_proto::engine::keeping::{
    AtKeeper, InPlace, KeptBy, KeptStep, KeptTurn, Way, rescues, way,
};
use rackmem_proto::engine::turns::{AT_ONCE, About, Turns};
use rackmem_proto::engine::{self, FlowCc, Gcp, Host, Replicated, ReplicatedHost};
use rackmem_proto::flowcc::{KeptBlocks, Whereabouts};
use rackmem_proto::wire::{Header, NodeId, OWN_LEN, Own, Record, Tag};
use std::rc::Rc;

/// Bytes of a packet: a line comes in four.
const ROOM: usize = OWN_LEN + LINE as usize / 4;

/// How a block has come to a keeper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Came {
    /// It was put in place, as a majority had it.
    Placed,
    /// A live node had it when the epoch began.
    Rescued,
    /// It has come home.
    Home,
}

/// A packet's turn, and what stays until it leaves.
struct Turn {
    turn: KeptTurn,
    body: Rc<[u64]>,
    step: KeptStep,
    /// An operation is under way for it.
    asked: bool,
    /// Its line cannot be asked for: what this node has heard of the group and of its home is not
    /// of the same region.
    waits: bool,
    /// What a majority is to get.
    keeps: Option<Block>,
    stays: Vec<Deed<Block>>,
}

/// What a node has of homes that groups keep. Nothing, in a world without.
pub struct Copied {
    /// Its copies of lines, and its operations on them.
    pub memory: ReplicatedMemory,
    /// Which blocks are in place, where it is the keeper.
    pub in_place: InPlace,
    turns: Turns<Rc<[u64]>>,
    /// Those that are under way, each by the slot of its operations on lines.
    under_way: [Option<Turn>; AT_ONCE],
    effects: Vec<Effect>,
    /// Turns that have begun beside another one.
    pub side_by_side: u64,
    /// Blocks that it has as a majority has them from now on, and what a majority has.
    /// More may have come to the block since.
    pub news: Vec<(Tag, Came, Block)>,
}

impl Copied {
    /// None, at this life of a node, in this epoch.
    pub fn new((node, life): (NodeId, u32), epoch: u32) -> Self {
        let mut memory = ReplicatedMemory::new((node, life), ROOM);
        memory.abd.ask_a_quorum_first();
        memory.abd.enter(epoch);
        Copied {
            memory,
            in_place: InPlace::new(BLOCK_BYTES, epoch),
            turns: Turns::default(),
            under_way: [const { None }; AT_ONCE],
            effects: Vec::new(),
            side_by_side: 0,
            news: Vec::new(),
        }
    }

    /// Whether nothing waits for a majority.
    pub fn is_idle(&self) -> bool {
        self.turns.none_wait() && self.turns.none_under_way()
    }

    /// A section without a packet.
    pub fn act(&mut self, act: impl FnOnce(&mut Abd, &mut Section<'_>)) {
        let effects = self.memory.section((0, &[]), act).1;
        self.effects.extend(effects);
    }

    /// Begins an operation on a block's line, while the group is of the block's region: the
    /// library's `operate_in_region`. False: it is not.
    fn begin(
        &mut self,
        (slot, tag): (u8, Tag),
        command: impl FnOnce(Tag) -> Command,
        value: Vec<u8>,
    ) -> bool {
        let first = self.in_place.line(tag).map(|(_, first)| first);
        let group = tag.home().group();
        let config = group.and_then(|group| self.memory.abd.config(group));
        let of_it =
            config.is_some_and(|config| Some(config.first) == first && !config.is_removed());
        let Some(line) = line(tag).filter(|_| of_it) else {
            return false;
        };
        self.memory.lines.operands.begin(slot, value, 0);
        self.act(|abd, fx| abd.command(slot, command(line), fx));
        true
    }

    fn is_here(&self, tag: Tag) -> bool {
        self.in_place.whereabouts(tag) == Whereabouts::Here
    }
}

impl Speaks<Block> for Copied {
    type Protocols = (FlowCc, Gcp, Replicated);

    fn body_len(header: &Header, body: &Rc<[u64]>) -> u32 {
        match header.kind.is_fenced_by_config() {
            true => (body.len() * size_of::<u64>()) as u32,
            false => Block::len(body),
        }
    }

    fn in_place(&self) -> Option<&InPlace> {
        Some(&self.in_place)
    }

    fn in_place_mut(&mut self) -> Option<&mut InPlace> {
        Some(&mut self.in_place)
    }
}

impl ReplicatedHost for Site<Block, Copied> {
    type Fx<'f> = Section<'f>;

    fn replicated<R>(&mut self, act: impl FnOnce(&mut Abd, &mut Section<'_>) -> R) -> R {
        let came = self.memory.came.as_ref();
        let came = came.filter(|(header, _)| header.kind.is_fenced_by_config());
        let (offset, body) = came.map_or((0, &[][..]), |(header, body)| (header.offset, body));
        let bytes = to_line(body);
        let rest = bytes.get(OWN_LEN..).unwrap_or_default();
        let (result, effects) = self.part.memory.section((offset, rest), act);
        self.part.effects.extend(effects);
        result
    }

    fn own(&self) -> Own {
        let first = self.records().first().copied().unwrap_or_default();
        Own {
            a: first.tag.0,
            b: first.word,
        }
    }
}

impl Site<Block, Copied> {
    /// It hears what the home that a group keeps has from here on.
    pub fn hear_of(&mut self, group: u16, blocks: KeptBlocks) {
        engine::hear(self, group, blocks);
        self.carry_out();
    }

    /// A packet for its agents.
    pub fn arrive(&mut self, header: &Header, body: Rc<[u64]>) {
        let (epoch, keeper) = (self.view.epoch, self.view.keeper());
        let part = &self.part;
        let heard_of = |tag| part.in_place.whereabouts(tag) != Whereabouts::Unheard;
        let in_place = |tag| part.in_place.has(tag, epoch);
        let way = way(self.id, header, (epoch, keeper), heard_of, in_place);
        self.passed = false;
        match way {
            Way::AtOnce => self.take(header, body),
            Way::ByTurn => drop(self.part.turns.wait(header, || body)),
            Way::Nobody => {}
        }
        // What waits is for no requester.
        let passed = self.passed;
        self.carry_out();
        self.passed = passed;
    }

    /// The rack is in a new epoch: what waits comes again, and nothing is in place.
    pub fn enter_kept(&mut self) {
        let defect = Host::defect(self);
        self.part.in_place.enter(self.view.epoch, defect);
        self.part.turns.enter();
        for slot in 0..AT_ONCE {
            if let Some(turn) = self.part.under_way[slot].take() {
                self.part.turns.end(About::of(turn.turn.header()));
            }
            self.part.memory.abandon(slot as u8);
        }
        if self.view.keeper() != Some(self.id) {
            self.memory.blocks.retain(|tag, _| tag.home().is_own());
        }
        self.carry_out();
    }

    /// Carries out what copies want done, and serves what waits as far as that goes by itself.
    pub fn carry_out(&mut self) {
        for turn in self.part.under_way.iter_mut().flatten() {
            turn.waits = false;
        }
        loop {
            self.carry_out_effects();
            let mut goes_on = false;
            for slot in 0..AT_ONCE {
                let turn = self.part.under_way[slot]
                    .take()
                    .or_else(|| self.next_turn());
                let Some(turn) = turn else { continue };
                if turn.asked || turn.waits {
                    self.part.under_way[slot] = Some(turn);
                    continue;
                }
                goes_on = true;
                let about = About::of(turn.turn.header());
                self.part.under_way[slot] = self.go_on_with(slot as u8, turn);
                if self.part.under_way[slot].is_none() {
                    self.part.turns.end(about);
                }
            }
            if !goes_on {
                return;
            }
        }
    }

    fn carry_out_effects(&mut self) {
        for effect in std::mem::take(&mut self.part.effects) {
            match effect {
                Effect::Send(parcel) => self.deeds.push(sent(self.id, &parcel)),
                Effect::Ended(slot) => {
                    let ended = self.part.memory.lines.operands.take(slot);
                    ended.into_iter().for_each(|ended| self.ended(slot, ended));
                }
                Effect::Sync(..)
                | Effect::Stored(..)
                | Effect::Adopted(_)
                | Effect::Forgot(_)
                | Effect::Behind => {}
            }
        }
    }

    fn next_turn(&mut self) -> Option<Turn> {
        let beside = !self.part.turns.none_under_way();
        let (header, body) = self.part.turns.begin(Host::defect(self))?;
        self.part.side_by_side += u64::from(beside);
        let home = &self.homes[self.shards.of(header.tag)].agent;
        let at = AtKeeper {
            epoch: self.view.epoch,
            keeps: self.view.keeper() == Some(self.id),
            frozen: !rescues(&header) && home.frozen(),
            in_place: self.part.in_place.has(header.tag, self.view.epoch)
                || !self.part.is_here(header.tag),
        };
        let (turn, step) = KeptTurn::begin(header, at, Host::defect(self));
        Some(Turn {
            turn,
            body,
            step,
            asked: false,
            waits: false,
            keeps: None,
            stays: Vec::new(),
        })
    }

    fn go_on_with(&mut self, slot: u8, mut turn: Turn) -> Option<Turn> {
        match turn.step {
            KeptStep::Take(tag) => {
                turn.asked = self.part.begin((slot, tag), Command::Take, Vec::new());
                if !turn.asked {
                    // Its region may have been removed meanwhile.
                    turn.step = turn.turn.taken(!self.part.is_here(tag));
                }
            }
            KeptStep::Serve => {
                let begun = self.deeds.len();
                self.take(turn.turn.header(), turn.body.clone());
                let done = self.deeds.split_off(begun);
                let is_sent = |deed: &Deed<Block>| matches!(deed, Deed::Sent(..));
                let (stays, done): (Vec<_>, Vec<_>) = done.into_iter().partition(is_sent);
                self.deeds.extend(done);
                let answers = stays.iter().filter_map(|deed| match deed {
                    Deed::Sent(output, _) => Some(&output.header),
                    _ => None,
                });
                turn.step = turn.turn.served(answers, Host::defect(self));
                turn.stays = stays;
            }
            // Of a removed region nobody has to have anything.
            KeptStep::Keep(tag) if !self.part.is_here(tag) => {
                turn.step = turn.turn.kept(KeptBy::Majority, true);
            }
            KeptStep::Keep(tag) => {
                let block = self.memory.block(tag).clone();
                let bytes = to_line(&block);
                turn.keeps = Some(block);
                turn.asked = self.part.begin((slot, tag), Command::Write, bytes);
                turn.waits = !turn.asked;
            }
            KeptStep::Leave => {
                self.deeds.append(&mut turn.stays);
                return None;
            }
            KeptStep::Drop => return None,
        }
        Some(turn)
    }

    /// An operation on a line has ended.
    fn ended(&mut self, slot: u8, (outcome, value): (Outcome, Vec<u8>)) {
        let turn = self.part.under_way.get_mut(usize::from(slot));
        let Some(Some(turn)) = turn else {
            return;
        };
        turn.asked = false;
        let done = matches!(outcome, Outcome::Read { .. } | Outcome::Written { .. });
        let epoch = turn.turn.epoch();
        // A late copy of a rescue brings nothing.
        let header = turn.turn.header();
        let frozen = self.homes[self.shards.of(header.tag)].agent.frozen();
        let rescued = rescues(header) && frozen;
        let how = if rescued { Came::Rescued } else { Came::Home };
        let in_place = &self.part.in_place;
        let gone = |tag| in_place.whereabouts(tag) != Whereabouts::Here;
        let (tag, came) = match turn.step {
            KeptStep::Take(tag) => {
                turn.step = turn.turn.taken(done || gone(tag));
                (tag, Came::Placed)
            }
            KeptStep::Keep(tag) => {
                let home = done || gone(tag);
                let by = if home {
                    KeptBy::Majority
                } else {
                    KeptBy::Failed
                };
                turn.step = turn.turn.kept(by, home);
                (tag, how)
            }
            _ => return,
        };
        if !done || gone(tag) {
            turn.keeps = None;
            return;
        }
        let kept = turn.keeps.take();
        if came == Came::Placed {
            *self.memory.block(tag) = of_line(&value);
        }
        let block = kept.unwrap_or_else(|| self.memory.block(tag).clone());
        self.part.in_place.put(tag, epoch);
        self.part.news.push((tag, came, block));
    }
}

/// A packet of copies, as words.
fn sent(from: NodeId, parcel: &Parcel) -> Deed<Block> {
    let mut header = parcel.header;
    header.sender = from;
    let records = Record::all(&parcel.bytes).collect();
    Deed::Sent(Output::new(parcel.to, header), Load::Records(records))
}
