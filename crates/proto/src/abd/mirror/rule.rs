//! What the kernel of a member's host answers (`switch/xdp/lines.h` is the same in C).
//!
//! ```text
//! row: name, bytes of a line, of all, first slab     is it the question's config, and a line?
//! line: version                                      even?
//! line: stamp; bytes, if they are asked for          copied, word by word
//! line: version; row: name                           the same as before?
//! ```
//!
//! If both looks at a line find one even version and both at the row the question's config, there
//! was a moment at which the member lived by that config, counted in it, and had this line under
//! this stamp: what its agent would have answered then. No config is named twice, so lines of
//! another region that has been given the slabs are noticed.
//!
//! Nothing here is of a time. A member whose process is stopped is in the config and has the lines
//! that it has, however long that lasts: to the others it is one to which packets are slow, and
//! what it tells is told as of a moment at which it is stopped.

use super::{BYTES, FIRST, HEADER_WORDS, LINE, MIRROR_LINE, NAME, STAMP, line_at, row};
use crate::abd::{GROUPS, Stamp, config_of, own};
use crate::wire::{Contract, Flags, GlobalStatus, Header, Kind, NodeId, Own, Reason};
use crate::words::Words;
use alloc::vec::Vec;

/// Why a packet is left to the agent, as it came.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MirrorPassed {
    /// No group that is here in this config, or no line of it: the agent may have it, or say by
    /// which config it lives.
    Elsewhere,
    /// The line is being written.
    Locked,
    /// It, or its group's config, has changed while it was copied.
    Torn,
}

/// Whether this asks a member for what the kernel may answer: any other packet passes it, and is
/// not counted.
pub fn concerns(header: &Header) -> bool {
    let may = match header.kind {
        Kind::AbdRead => Flags::PROVIDER,
        Kind::AbdStamp => Flags::default(),
        _ => return false,
    };
    header.tag.is_under(Contract::Replicated)
        && header.flags.but(may) == Flags::default()
        && header.status == GlobalStatus::Unshared
        && header.reason == Reason::None
        && header.reply_port != 0
}

/// What its answers say.
const BY_KERNEL: Flags = Flags(Flags::BY_KERNEL.0 | Flags::BY_GRANULES.0);

/// The answer of the member at this node to such a packet.
///
/// # Errors
/// Why it is left to the agent.
pub fn answer(
    words: &impl Words,
    node: NodeId,
    header: &Header,
    asked: &Own,
) -> Result<(Header, Own, Vec<u8>), MirrorPassed> {
    let (group, config) = (header.tag.home().0, config_of(asked));
    let row = row(group);
    let is_its = || config != 0 && words.load(row + NAME) == u64::from(config);
    if usize::from(group) >= GROUPS || !is_its() {
        return Err(MirrorPassed::Elsewhere);
    }
    let (bytes, all) = (words.load(row + LINE), words.load(row + BYTES));
    let first = words.load(row + FIRST) as usize;
    let offset = header.tag.offset();
    // A row that is being made may say anything.
    let line = u32::try_from(bytes).ok();
    let line = line.filter(|line| (1..=MIRROR_LINE).contains(line));
    let line = line.ok_or(MirrorPassed::Elsewhere)?;
    if offset >= all || !offset.is_multiple_of(bytes) {
        return Err(MirrorPassed::Elsewhere);
    }
    let at = line_at(first, line, offset / bytes);
    let version = words.load(at);
    if !version.is_multiple_of(2) {
        return Err(MirrorPassed::Locked);
    }
    let stamp = words.load(at + STAMP);
    let provides = header.flags.has(Flags::PROVIDER);
    let len = if provides { line as usize / 8 } else { 0 };
    let copied = (0..len).flat_map(|nth| words.load(at + HEADER_WORDS + nth).to_ne_bytes());
    let body: Vec<u8> = copied.collect();
    if words.load(at) != version || !is_its() {
        return Err(MirrorPassed::Torn);
    }
    let kind = match header.kind {
        Kind::AbdStamp => Kind::AbdStampAck,
        _ => Kind::AbdReadAck,
    };
    let mut said = header.answer(kind, node);
    said.offset = 0;
    said.flags = match provides {
        true => BY_KERNEL.and(Flags::DATA),
        false => BY_KERNEL,
    };
    Ok((said, own(Stamp(stamp), config), body))
}
