//! Homes whose bytes a group keeps: which packets of FlowCC wait until a majority has what they are
//! about, which blocks are in place, and what becomes of a packet that waits. A host brings the
//! majority and the home agent, and asks here.

use super::coherent::{KINDS, Role, role};
use super::host::Defect;
use crate::abd::{GROUPS, first_line};
use crate::flowcc::{KeptBlocks, Whereabouts};
use crate::wire::{Header, Kind, NodeId, Tag};
use alloc::vec::Vec;

/// Whether the home agent takes a packet, about a block that it has given out.
pub fn concerns_home(me: NodeId, header: &Header) -> bool {
    let coherent = KINDS.iter().any(|kinds| kinds.contains(&header.kind));
    let memory = matches!(header.kind, Kind::Alloc | Kind::Free);
    coherent && !memory && role(me, header) == Role::Home
}

/// Whether a packet is of a rebuild: it comes while the home serves nothing else, and what it finds
/// need not be in place.
pub fn rescues(header: &Header) -> bool {
    header.kind == Kind::Rescue
}

/// Whether a packet brings bytes home.
pub fn brings_bytes(header: &Header) -> bool {
    rescues(header) || header.kind == Kind::WriteBack
}

/// Whether an answer says that bytes are home: a majority has them before it leaves.
pub fn says_home(answer: &Header) -> bool {
    matches!(answer.kind, Kind::WriteBackAck | Kind::RescueAck)
}

/// Whether such an answer leaves without a majority, where there is none: a rebuild ends when all
/// that is to be rescued is home, and this node has it.
pub fn leaves_alone(answer: &Header) -> bool {
    answer.kind == Kind::RescueAck
}

/// Whether a packet lets a lost block begin again, so that its new bytes can be written.
pub fn accepts_loss(header: &Header) -> bool {
    header.kind == Kind::AcceptLoss
}

/// How far the rack's keeper has been through the blocks of a home since the epoch began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Sweep {
    /// Blocks that it has been through.
    pub through: u64,
    /// Blocks that there are.
    pub of: u64,
    /// Of those that it has been through, written again by it: no thread has needed them before.
    pub repaired: u64,
}

/// Which blocks of homes that groups keep are in place at a node, as a majority has them, in an
/// epoch.
#[derive(Clone, Hash, Debug)]
pub struct InPlace {
    epoch: u32,
    /// Bytes of a block.
    block: u64,
    /// What there is, by group.
    laid: [KeptBlocks; GROUPS],
    /// A bit a block, by group.
    blocks: [Vec<u64>; GROUPS],
    sweeps: [Sweep; GROUPS],
}

impl InPlace {
    /// Nothing, in this epoch.
    pub const fn new(block: u32, epoch: u32) -> Self {
        InPlace {
            epoch,
            block: block as u64,
            laid: [KeptBlocks {
                first: 0,
                base: 0,
                bytes: 0,
            }; GROUPS],
            blocks: [const { Vec::new() }; GROUPS],
            sweeps: [Sweep {
                through: 0,
                of: 0,
                repaired: 0,
            }; GROUPS],
        }
    }

    /// The rack is in this epoch: nothing is in place.
    pub fn enter(&mut self, epoch: u32, defect: Option<Defect>) {
        self.epoch = epoch;
        if defect != Some(Defect::StayInPlace) {
            self.blocks.iter_mut().for_each(|words| words.fill(0));
        }
        for sweep in &mut self.sweeps {
            (sweep.through, sweep.repaired) = (0, 0);
        }
    }

    /// The home that a group keeps has this from here on. Whether it has had something else: then
    /// nothing of that is in place.
    pub fn lay_out(&mut self, group: u16, laid: KeptBlocks) -> bool {
        let at = usize::from(group);
        let Some(there) = self.laid.get_mut(at).filter(|there| **there != laid) else {
            return false;
        };
        *there = laid;
        let blocks = laid.bytes / self.block;
        self.sweeps[at] = Sweep {
            of: blocks,
            ..Sweep::default()
        };
        self.blocks[at].clear();
        self.blocks[at].resize(blocks.div_ceil(64) as usize, 0);
        true
    }

    /// What the home that a group keeps has, as far as this node has heard.
    pub fn blocks_of(&self, group: u16) -> KeptBlocks {
        let laid = self.laid.get(usize::from(group));
        laid.copied().unwrap_or_default()
    }

    fn laid(&self, tag: Tag) -> Option<(u16, &KeptBlocks)> {
        let group = tag.home().group()?;
        Some((group, self.laid.get(usize::from(group))?))
    }

    /// Where an address is, as far as this node has heard.
    pub fn whereabouts(&self, tag: Tag) -> Whereabouts {
        let laid = self.laid(tag);
        laid.map_or(Whereabouts::Unheard, |(_, laid)| laid.whereabouts(tag))
    }

    /// A block's line, and the config with which its region began: another region may have its
    /// number before this node hears of that, and no epoch tells them apart.
    pub fn line(&self, tag: Tag) -> Option<(Tag, u32)> {
        let (group, laid) = self.laid(tag)?;
        Some((Tag(first_line(group).0 + laid.at(tag)?), laid.first))
    }

    fn nth(&self, tag: Tag) -> Option<(usize, usize)> {
        let (group, laid) = self.laid(tag)?;
        Some((group.into(), (laid.at(tag)? / self.block) as usize))
    }

    /// Whether a block is in place in this epoch.
    pub fn has(&self, tag: Tag, epoch: u32) -> bool {
        let bit = self.nth(tag).and_then(|(group, nth)| {
            let word = self.blocks[group].get(nth / 64)?;
            Some(word >> (nth % 64) & 1 == 1)
        });
        self.epoch == epoch && bit == Some(true)
    }

    /// A block is as a majority has it, in this epoch.
    pub fn put(&mut self, tag: Tag, epoch: u32) {
        let place = self.nth(tag).filter(|_| self.epoch == epoch);
        let word = place.and_then(|(group, nth)| {
            let word = self.blocks[group].get_mut(nth / 64)?;
            Some((word, nth))
        });
        if let Some((word, nth)) = word {
            *word |= 1 << (nth % 64);
        }
    }

    /// The first block, by home, that the sweep of this epoch has not been through.
    pub fn to_sweep(&self, epoch: u32) -> Option<Tag> {
        let mut sweeps = (0..).zip(&self.sweeps);
        let (group, sweep) = sweeps.find(|(_, sweep)| sweep.through < sweep.of)?;
        let laid = self.laid.get(usize::from(group))?;
        let block = laid.tag(group, sweep.through * self.block);
        (self.epoch == epoch).then_some(block)
    }

    /// The sweep of this epoch has been through a block. `repaired`: it has written it again.
    pub fn swept(&mut self, tag: Tag, epoch: u32, repaired: bool) {
        let place = self.nth(tag).filter(|_| self.epoch == epoch);
        if let Some((group, _)) = place {
            let sweep = &mut self.sweeps[group];
            sweep.through += 1;
            sweep.repaired += u64::from(repaired);
        }
    }

    /// How far the sweep of a home is in this epoch.
    pub fn sweep(&self, group: u16, epoch: u32) -> Option<Sweep> {
        let sweep = self.sweeps.get(usize::from(group));
        sweep.copied().filter(|_| self.epoch == epoch)
    }
}

/// Who serves a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Whoever has it, as all packets are.
    AtOnce,
    /// It has its turn ([`KeptTurn`]), beside those about other things ([`super::turns`]).
    ByTurn,
    /// Nobody: it comes again.
    Nobody,
}

/// Who serves a packet that has come to node `me`, in an epoch with this keeper. `heard_of`: the
/// node has heard of its region, or that it is removed; `in_place`: what the packet is about,
/// a block or an object, is there.
pub fn way(
    me: NodeId,
    header: &Header,
    (epoch, keeper): (u32, Option<NodeId>),
    heard_of: impl FnOnce(Tag) -> bool,
    in_place: impl FnOnce(Tag) -> bool,
) -> Way {
    let (tag, home) = (header.tag, header.tag.home());
    let object = header.kind.asks_object();
    let concerns = object || rescues(header) || concerns_home(me, header);
    if home.is_own() || !concerns || header.epoch != epoch {
        return Way::AtOnce;
    }
    if keeper != Some(me) || !heard_of(tag) {
        return Way::Nobody;
    }
    match (object || !brings_bytes(header)) && in_place(tag) {
        true => Way::AtOnce,
        false => Way::ByTurn,
    }
}

/// What is to be done for a packet next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeptStep {
    /// The line of its block is read, written again in this epoch, and put in place
    /// ([`crate::abd::Command::Take`]).
    Take(Tag),
    /// The home agent serves it. What it wants sent stays.
    Serve,
    /// A majority gets this block, as it is at home now.
    Keep(Tag),
    /// What stayed leaves: the packet has been served.
    Leave,
    /// Nothing leaves: the packet comes again.
    Drop,
}

/// What has come of a write of a block to its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeptBy {
    /// A majority has it.
    Majority,
    /// No majority answers.
    NoQuorum,
    /// It has failed otherwise.
    Failed,
}

/// A packet's turn: what a node does for one that waits until a majority has what it is about.
#[derive(Clone, Hash, Debug)]
pub struct KeptTurn {
    header: Header,
    epoch: u32,
    /// Acknowledgements that are still to be true.
    acks: Vec<Header>,
}

/// How a node is when a packet's turn begins.
#[derive(Clone, Copy, Debug)]
pub struct AtKeeper {
    /// The epoch that it is in.
    pub epoch: u32,
    /// Whether it keeps homes of groups in that.
    pub keeps: bool,
    /// Whether the home serves nothing, since the epoch is beginning.
    pub frozen: bool,
    /// Whether the packet's block is in place, or there is no such block: that is refused.
    pub in_place: bool,
}

impl KeptTurn {
    /// The turn of a packet begins.
    pub fn begin(header: Header, at: AtKeeper, defect: Option<Defect>) -> (Self, KeptStep) {
        let turn = KeptTurn {
            header,
            epoch: at.epoch,
            acks: Vec::new(),
        };
        let rescues = rescues(&header);
        let step = if header.epoch != at.epoch || !at.keeps || at.frozen && !rescues {
            KeptStep::Drop
        } else if rescues || at.in_place || defect == Some(Defect::ServeUnplaced) {
            KeptStep::Serve
        } else {
            KeptStep::Take(header.tag)
        };
        (turn, step)
    }

    /// The packet.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The epoch that it is of.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Its block has been put in place, or could not be.
    pub fn taken(&self, there: bool) -> KeptStep {
        match there {
            true => KeptStep::Serve,
            false => KeptStep::Drop,
        }
    }

    /// The home agent has served it, and answers this. What says that bytes are home is true when
    /// it leaves.
    pub fn served<'a>(
        &mut self,
        answers: impl Iterator<Item = &'a Header>,
        defect: Option<Defect>,
    ) -> KeptStep {
        if defect != Some(Defect::SayHomeEarly) {
            let true_first = answers.filter(|ack| says_home(ack) && !ack.tag.home().is_own());
            self.acks = true_first.copied().collect();
        }
        self.next()
    }

    fn next(&self) -> KeptStep {
        let first = self.acks.first();
        first.map_or(KeptStep::Leave, |ack| KeptStep::Keep(ack.tag))
    }

    /// What has come of a block that a majority was to get. `goes_on`: the node is a member, in the
    /// same epoch. Without a majority nothing is acknowledged, for as long as that takes; but a
    /// rebuild ends when all that is to be rescued is home, and this node has it.
    pub fn kept(&mut self, kept: KeptBy, goes_on: bool) -> KeptStep {
        let alone = self.acks.first().is_some_and(leaves_alone);
        let home = match kept {
            KeptBy::Majority => true,
            KeptBy::NoQuorum => alone,
            KeptBy::Failed => false,
        };
        if home {
            self.acks.remove(0);
            return self.next();
        }
        match goes_on {
            true => self.next(),
            false => KeptStep::Drop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{HomeId, RequesterId, Seq, Tag};
    use alloc::vec::Vec;

    /// The kinds for which it is so.
    fn kinds(is: impl Fn(&Header) -> bool) -> Vec<&'static str> {
        let id = RequesterId { node: 1, slot: 0 };
        let header = |kind| Header::request(kind, 1, Tag(0), id, Seq(1));
        let those = Kind::ALL.iter().filter(|&&kind| is(&header(kind)));
        those.map(|kind| kind.name()).collect()
    }

    #[test]
    fn what_waits_for_a_majority_is_a_table() {
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
        assert_eq!(kinds(rescues), names(&[Kind::Rescue]));
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        let brings = names(&[Kind::WriteBack, Kind::Rescue]);
        let says = names(&[Kind::WriteBackAck, Kind::RescueAck]);
        assert_eq!(sorted(kinds(brings_bytes)), sorted(brings));
        assert_eq!(sorted(kinds(says_home)), sorted(says));
        assert_eq!(kinds(leaves_alone), names(&[Kind::RescueAck]));
        assert_eq!(kinds(accepts_loss), names(&[Kind::AcceptLoss]));
    }

    const BLOCK: u32 = 4096;

    fn packet(kind: Kind) -> Header {
        let id = RequesterId { node: 2, slot: 0 };
        Header::request(kind, 5, HomeId::of_group(1).start(), id, Seq(1))
    }

    #[test]
    fn a_block_is_in_place_in_its_epoch() {
        let mut blocks = InPlace::new(BLOCK, 5);
        let tag = Tag(HomeId::of_group(1).start().0 + 70 * u64::from(BLOCK));
        blocks.put(tag, 5);
        assert!(!blocks.has(tag, 5), "nobody has heard of the home");
        blocks.lay_out(1, KeptBlocks::of_bytes(100 * u64::from(BLOCK)));
        blocks.put(tag, 4);
        assert!(!blocks.has(tag, 5) && !blocks.has(tag, 4));
        blocks.put(tag, 5);
        assert!(blocks.has(tag, 5) && !blocks.has(tag, 6));
        let next = Tag(tag.0 + u64::from(BLOCK));
        assert!(!blocks.has(next, 5));
        blocks.enter(6, None);
        assert!(!blocks.has(tag, 6));
    }

    /// Its number is another region's, whose blocks nobody has put in place, and whose lines are no
    /// block's of the removed one.
    #[test]
    fn what_a_removed_region_had_is_not_in_place_in_the_next() {
        let block = u64::from(BLOCK);
        let mut blocks = InPlace::new(BLOCK, 5);
        let old = KeptBlocks {
            first: 3,
            base: 0,
            bytes: 2 * block,
        };
        let gone = KeptBlocks {
            first: 3,
            base: 1 << 16,
            bytes: 0,
        };
        let next = KeptBlocks {
            first: 4,
            base: 1 << 16,
            bytes: 3 * block,
        };
        let all = |laid: KeptBlocks| (0..2).map(move |nth| laid.tag(1, nth * block));
        assert!(blocks.lay_out(1, old));
        all(old).for_each(|tag| blocks.put(tag, 5));
        blocks.swept(old.tag(1, 0), 5, true);
        assert!(!blocks.lay_out(1, old), "as with each change of groups");
        assert!(all(old).all(|tag| blocks.has(tag, 5)));
        assert_eq!(
            blocks.line(old.tag(1, block)),
            Some((Tag(first_line(1).0 + block), 3))
        );
        assert_eq!(blocks.whereabouts(next.tag(1, 0)), Whereabouts::Unheard);
        for laid in [gone, next] {
            assert!(blocks.lay_out(1, laid));
            for tag in all(old) {
                assert_eq!(blocks.whereabouts(tag), Whereabouts::Gone);
                // What was under way of it comes too late.
                blocks.put(tag, 5);
                blocks.swept(tag, 5, true);
                assert!(!blocks.has(tag, 5) && blocks.line(tag).is_none());
            }
        }
        assert!(!all(next).any(|tag| blocks.has(tag, 5)));
        assert_eq!(blocks.to_sweep(5), Some(next.tag(1, 0)));
        let sweep = blocks.sweep(1, 5).unwrap();
        assert_eq!((sweep.through, sweep.of, sweep.repaired), (0, 3, 0));
        // Nor is it where a node hears of both at once.
        let mut late = InPlace::new(BLOCK, 5);
        late.lay_out(1, old);
        all(old).for_each(|tag| late.put(tag, 5));
        late.lay_out(1, next);
        assert!(!all(next).any(|tag| late.has(tag, 5)));
        assert_eq!(
            blocks.line(next.tag(1, block)),
            Some((Tag(first_line(1).0 + block), 4))
        );
    }

    #[test]
    fn a_sweep_goes_through_all_blocks_of_its_epoch_once() {
        let mut blocks = InPlace::new(BLOCK, 5);
        blocks.lay_out(0, KeptBlocks::of_bytes(2 * u64::from(BLOCK)));
        blocks.lay_out(3, KeptBlocks::of_bytes(u64::from(BLOCK)));
        let mut through = Vec::new();
        while let Some(tag) = blocks.to_sweep(5) {
            through.push((tag.home().0, tag.offset()));
            blocks.swept(tag, 5, tag.offset() == 0);
        }
        assert_eq!(through, [(32, 0), (32, 4096), (35, 0)]);
        let Sweep { of, repaired, .. } = blocks.sweep(0, 5).unwrap();
        assert_eq!((of, repaired), (2, 1));
        assert!(blocks.to_sweep(6).is_none() && blocks.sweep(0, 6).is_none());
        blocks.enter(6, None);
        assert!(blocks.to_sweep(6).is_some());
    }

    #[test]
    fn who_serves_a_packet_is_a_table() {
        use Way::{AtOnce, ByTurn, Nobody};
        let of = |kind, epoch, keeper, heard, there| {
            way(2, &packet(kind), (epoch, keeper), |_| heard, |_| there)
        };
        assert_eq!(of(Kind::ReadMiss, 5, Some(2), true, true), AtOnce);
        assert_eq!(of(Kind::ReadMiss, 5, Some(2), true, false), ByTurn);
        assert_eq!(of(Kind::WriteBack, 5, Some(2), true, true), ByTurn);
        assert_eq!(of(Kind::Rescue, 5, Some(2), true, true), ByTurn);
        assert_eq!(of(Kind::ReadMiss, 5, Some(1), true, true), Nobody);
        assert_eq!(of(Kind::ReadMiss, 5, Some(2), false, true), Nobody);
        // What is of another epoch is dropped as all of it is.
        assert_eq!(of(Kind::ReadMiss, 6, Some(2), true, false), AtOnce);
        assert_eq!(of(Kind::WriteBackAck, 5, Some(2), true, false), AtOnce);
    }

    #[test]
    fn a_turn_takes_serves_keeps_and_leaves() {
        let at = AtKeeper {
            epoch: 5,
            keeps: true,
            frozen: false,
            in_place: false,
        };
        let header = packet(Kind::WriteBack);
        let begin = |header, at| KeptTurn::begin(header, at, None).1;
        let (mut turn, step) = KeptTurn::begin(header, at, None);
        assert_eq!(step, KeptStep::Take(header.tag));
        assert_eq!(turn.taken(false), KeptStep::Drop);
        assert_eq!(turn.taken(true), KeptStep::Serve);
        let ack = header.answer(Kind::WriteBackAck, 2);
        let keep = KeptStep::Keep(header.tag);
        assert_eq!(turn.served([&ack].into_iter(), None), keep);
        assert_eq!(turn.kept(KeptBy::NoQuorum, true), keep);
        assert_eq!(turn.kept(KeptBy::Failed, false), KeptStep::Drop);
        assert_eq!(turn.kept(KeptBy::Majority, true), KeptStep::Leave);
        let rescued = header.answer(Kind::RescueAck, 2);
        turn.served([&rescued].into_iter(), None);
        assert_eq!(turn.kept(KeptBy::NoQuorum, true), KeptStep::Leave);
        let there = AtKeeper {
            in_place: true,
            ..at
        };
        assert_eq!(begin(header, there), KeptStep::Serve);
        let frozen = AtKeeper { frozen: true, ..at };
        assert_eq!(begin(header, frozen), KeptStep::Drop);
        assert_eq!(begin(packet(Kind::Rescue), frozen), KeptStep::Serve);
        for other in [AtKeeper { epoch: 6, ..at }, AtKeeper { keeps: false, ..at }] {
            assert_eq!(begin(header, other), KeptStep::Drop);
        }
    }
}
