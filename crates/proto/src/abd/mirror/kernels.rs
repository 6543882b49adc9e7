//! Whose kernels answer for members, as their answers say, and what comes of it: a hint, which
//! costs zeros where it is wrong.

use crate::abd::GROUPS;
use crate::switch::SWITCH;
use crate::wire::{Copyset, Dest, Flags, Header, Kind, NodeId};

/// Answers of other nodes to operations of this one, by who has given them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Answerers {
    /// A program in the kernel of the member's host.
    pub kernel: u64,
    /// The member's agent.
    pub agent: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Kernels {
    /// Of which members of each group.
    of: [Copyset; GROUPS],
    /// Of which groups a program here reads lines, a bit each.
    here: u32,
    /// Who has answered.
    pub answerers: Answerers,
}

/// Whether a member says a line's stamp by this.
const fn tells(kind: Kind) -> bool {
    matches!(kind, Kind::AbdReadAck | Kind::AbdStampAck)
}

impl Kernels {
    /// Members of a group whose kernels answer.
    pub(crate) fn of(&self, group: u16) -> Copyset {
        let of = self.of.get(usize::from(group));
        of.copied().unwrap_or(Copyset::EMPTY)
    }

    /// A program in the kernel of this host reads lines of these groups, a bit each.
    pub fn are_here(&mut self, groups: u32) {
        self.here = groups;
    }

    /// What an answer says to another node, if it goes there and to no switch.
    pub(crate) fn say(&self, to: &Dest, header: &mut Header) {
        let group = u32::from(header.tag.home().0);
        let here = self.here.checked_shr(group).unwrap_or(0) & 1 == 1;
        if here && tells(header.kind) && matches!(to, Dest::Agent(_)) {
            header.flags = header.flags.and(Flags::BY_GRANULES);
        }
    }

    /// An answer to an operation of this node.
    pub(crate) fn hear(&mut self, me: NodeId, header: &Header) {
        if !tells(header.kind) || [me, SWITCH].contains(&header.sender) {
            return;
        }
        let answerer = match header.flags.has(Flags::BY_KERNEL) {
            true => &mut self.answerers.kernel,
            false => &mut self.answerers.agent,
        };
        *answerer += 1;
        if let Some(of) = self.of.get_mut(usize::from(header.tag.home().0)) {
            *of = match header.flags.has(Flags::BY_GRANULES) {
                true => of.with(header.sender),
                false => of.without(header.sender),
            };
        }
    }
}
