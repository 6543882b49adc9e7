//! What the kernel of a home's host answers (`switch/xdp/blocks.bpf.c` is the same in C).
//!
//! ```text
//! front: block size, sets                    where the block's set is
//! each place: version; name                  is it the block's?
//! place: version                             even?
//! front: epoch, incarnation, MAC             of now, and can the requester be reached?
//! place: bytes                               copied, word by word
//! place: version                             the same as before?
//! ```
//!
//! Only then is anything sent, in as many packets as the home's agent makes of it ([`segments`]).
//!
//! If both looks at a place find one even version, the switch decided about the block and home had
//! these bytes all the time between them, and so at the moment at which the epoch was looked at:
//! what the home agent would have answered then ([`HomeAgent::handle`]). It would have changed
//! nothing: an event that the switch has granted is the switch's, its lock and its score are there,
//! and home only says what its memory has.
//!
//! [`HomeAgent::handle`]: crate::flowcc::HomeAgent::handle

use super::{
    BLOCK, EPOCH, INCARNATIONS, MACS, NAME, NODE, SEGMENT, SETS, TWIN_BLOCK, UNIT, VERSION, WAYS,
    name, place_at, set_of,
};
use crate::engine::is_current;
use crate::wire::{Contract, Flags, GlobalStatus, Header, Kind, MAX_NODES, NodeId, Reason};
use crate::words::Words;
use alloc::vec::Vec;

/// What the kernel sees of a node when a packet comes about a block that has a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwinView {
    /// The node.
    pub me: NodeId,
    /// The epoch that the node serves in. `None`: it serves nobody, or is not to be answered for.
    pub epoch: Option<u32>,
    /// The incarnation of the requester's node in it.
    pub incarnation: u32,
    /// Whether the kernel knows how the requester is reached.
    pub reaches: bool,
}

/// Why a packet is left to the agent, as it came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TwinPassed {
    /// The block has no place: there was no room, its entry has come home, or there is no such
    /// block.
    Elsewhere,
    /// It is being written.
    Locked,
    /// Of another epoch or incarnation than the node serves, or it serves none.
    NotOfNow,
    /// Where its requester is reached is not known, or it is of the home's own node.
    NoWay,
    /// The block was written, or came home, while it was copied.
    Torn,
}

/// What the switch says in a request that it has granted.
const GRANTED: Flags = Flags(Flags::GRANTED.0 | Flags::IN_SWITCH.0);

/// Whether the switch asks home for a block that home has and nobody else: any other packet passes
/// it, and is not counted.
pub fn concerns(header: &Header) -> bool {
    let misses = matches!(header.kind, Kind::ReadMiss | Kind::WriteMiss);
    misses
        && header.tag.is_under(Contract::Coherent)
        && header.flags == GRANTED
        && header.status == GlobalStatus::Unshared
        && header.reason == Reason::None
}

/// The acknowledgement that goes with the block's bytes, if its place has been the same all the
/// time.
///
/// # Errors
/// Why the packet is left to the agent.
pub fn acknowledge(view: &TwinView, header: &Header) -> Result<Header, TwinPassed> {
    let serves = |epoch| is_current(header, epoch, |_| view.incarnation);
    if !view.epoch.is_some_and(serves) {
        return Err(TwinPassed::NotOfNow);
    }
    // The node's own threads are reached by no interface.
    if !view.reaches || header.requester.node == view.me {
        return Err(TwinPassed::NoWay);
    }
    let mut said = header.answer(Kind::Ack, view.me);
    said.flags = said.flags.and(Flags::DATA);
    said.offset = 0;
    Ok(said)
}

/// The packets that carry a block behind this acknowledgement, as home's fabric cuts them.
pub fn segments<'b>(
    words: &impl Words,
    said: Header,
    block: &'b [u8],
) -> impl Iterator<Item = (Header, &'b [u8])> {
    let each = (words.load(SEGMENT) as usize).max(1);
    block.chunks(each).enumerate().map(move |(nth, bytes)| {
        let offset = (nth * each) as u32;
        (Header { offset, ..said }, bytes)
    })
}

/// The answer of the home at this node to such a packet, with the block whole. A request has no
/// body; one that has is left to the agent.
///
/// # Errors
/// Why it is left to the agent.
pub fn answer(words: &impl Words, header: &Header) -> Result<(Header, Vec<u8>), TwinPassed> {
    let block = u32::try_from(words.load(BLOCK)).unwrap_or(0);
    let (sets, me) = (words.load(SETS) as usize, words.load(NODE) as NodeId);
    let fits = (UNIT..=TWIN_BLOCK as usize).contains(&(block as usize))
        && (1..=u64::from(block)).contains(&words.load(SEGMENT));
    if header.tag.home().0 != me || sets == 0 || !fits {
        return Err(TwinPassed::Elsewhere);
    }
    let set = set_of(header.tag, sets);
    let found = (0..WAYS).find_map(|way| {
        let at = place_at(block, set, way);
        let version = words.load(at + VERSION);
        (words.load(at + NAME) == name(header.tag)).then_some((at, version))
    });
    let (at, version) = found.ok_or(TwinPassed::Elsewhere)?;
    if !version.is_multiple_of(2) {
        return Err(TwinPassed::Locked);
    }
    let node = usize::from(header.requester.node) % MAX_NODES;
    let epoch = u32::try_from(words.load(EPOCH)).ok();
    let view = TwinView {
        me,
        epoch: epoch.filter(|epoch| *epoch != 0),
        incarnation: words.load(INCARNATIONS + node) as u32,
        reaches: header.reply_port != 0 && words.load(MACS + node) != 0,
    };
    let said = acknowledge(&view, header)?;
    let copied = (0..block as usize / 8).flat_map(|nth| {
        let word = words.load(at + UNIT / 8 + nth);
        word.to_ne_bytes()
    });
    let bytes: Vec<u8> = copied.collect();
    if words.load(at + VERSION) != version {
        return Err(TwinPassed::Torn);
    }
    Ok((said, bytes))
}
