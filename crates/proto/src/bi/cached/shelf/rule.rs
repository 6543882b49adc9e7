//! What the kernel of a home's host answers about items (`switch/xdp/items.h` is the same in C).
//!
//! ```text
//! row: name, writes, shape, first slab     is there such a region, and such an item?
//! item: version                            even?
//! row: writes                              the number of the answer
//! bytes                                    copied, word by word
//! item: version; row: name                 the same as before?
//! ```
//!
//! If both looks at an item find one even version and both at the row the region's name, the item
//! was whole and the region there all the time: at the moment at which `writes` was loaded, the
//! home's agent would have given this answer. A region's name is never another's, so slabs that
//! another region has been given are noticed.
//!
//! Of questions for news the kernel answers the one to which the answer is that there are none:
//! one word says so. What was modified, the agent knows.

use super::{FIRST, HEADER_WORDS, NAME, SHAPE, WRITES, item_at, number_of, row};
use crate::bi::cached::MAX_ITEM;
use crate::wire::{Contract, Flags, GlobalStatus, Header, HomeId, Kind, NodeId, Own, Reason};
use crate::words::Words;
use alloc::vec::Vec;

/// Whose items they are, and in which epoch it serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShelfHome {
    /// The home.
    pub node: NodeId,
    /// The epoch; zero: none.
    pub epoch: u32,
    /// The offset at which its addresses begin.
    pub base: u64,
}

/// Why a packet is left to the agent, as it came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ShelfPassed {
    /// No region that is here, or no item of it: the agent may have it, or say why not.
    Elsewhere,
    /// The item is being written.
    Locked,
    /// It, or its region, has changed while it was copied.
    Torn,
    /// There is something to tell.
    News,
}

/// Whether this asks the home for what the kernel may answer: any other packet passes it, and is
/// not counted.
pub fn concerns(home: &ShelfHome, header: &Header) -> bool {
    matches!(header.kind, Kind::BiRead | Kind::BiAskNews)
        && home.epoch != 0
        && header.epoch == home.epoch
        && header.tag.home() == HomeId::of(home.node)
        && header.tag.is_under(Contract::Bounded)
        && header.flags == Flags::default()
        && header.status == GlobalStatus::Unshared
        && header.reason == Reason::None
        && header.reply_port != 0
}

/// What its answers say.
const BY_KERNEL: Flags = Flags(Flags::BY_KERNEL.0 | Flags::BY_GRANULES.0);

/// The answer to such a packet.
///
/// # Errors
/// Why it is left to the agent.
pub fn answer(
    words: &impl Words,
    home: &ShelfHome,
    header: &Header,
    own: &Own,
) -> Result<(Header, Own, Vec<u8>), ShelfPassed> {
    let number = number_of(header.tag.offset(), home.base).ok_or(ShelfPassed::Elsewhere)?;
    let row = row(number);
    let is_there = || words.load(row + NAME) == number + 1;
    if !is_there() {
        return Err(ShelfPassed::Elsewhere);
    }
    let shape = words.load(row + SHAPE);
    let (bytes, items) = (shape as u32, (shape >> 32) as u32);
    let first = words.load(row + FIRST) as usize;
    match header.kind {
        Kind::BiAskNews => {
            let writes = words.load(row + WRITES);
            if !is_there() {
                return Err(ShelfPassed::Torn);
            }
            if writes != own.a {
                return Err(ShelfPassed::News);
            }
            let mut said = header.answer(Kind::BiNews, home.node);
            said.flags = BY_KERNEL.and(Flags::DATA);
            let body = [bytes.to_be_bytes(), items.to_be_bytes()].concat();
            Ok((said, Own { a: writes, b: 0 }, body))
        }
        _ => {
            // A row that is being made may say anything.
            if own.b >= items.into() || !(1..=MAX_ITEM).contains(&bytes) {
                return Err(ShelfPassed::Elsewhere);
            }
            let at = item_at(first, bytes, own.b as u32);
            let version = words.load(at);
            if !version.is_multiple_of(2) {
                return Err(ShelfPassed::Locked);
            }
            let writes = words.load(row + WRITES);
            let len = (bytes as usize).div_ceil(8);
            let copied = (0..len).flat_map(|nth| words.load(at + HEADER_WORDS + nth).to_ne_bytes());
            let mut body: Vec<u8> = copied.collect();
            if words.load(at) != version || !is_there() {
                return Err(ShelfPassed::Torn);
            }
            let mut said = header.answer(Kind::BiData, home.node);
            // What nobody has written is zeros, which are not sent.
            said.flags = match version {
                0 => BY_KERNEL,
                _ => BY_KERNEL.and(Flags::DATA),
            };
            body.truncate(if version == 0 { 0 } else { bytes as usize });
            let own = Own {
                a: writes,
                b: bytes.into(),
            };
            Ok((said, own, body))
        }
    }
}
