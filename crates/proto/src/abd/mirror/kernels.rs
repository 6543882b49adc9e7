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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abd::first_line;
    use crate::wire::{RequesterId, Seq};

    const ME: NodeId = 0;

    fn answer(kind: Kind, group: u16, sender: NodeId, flags: Flags) -> Header {
        let requester = RequesterId { node: ME, slot: 0 };
        let mut header = Header::request(kind, 0, first_line(group), requester, Seq(1));
        (header.sender, header.flags) = (sender, flags);
        header
    }

    #[test]
    fn an_answer_says_whether_its_senders_kernel_answers_and_the_last_one_counts() {
        let mut kernels = Kernels::default();
        let has = |flags, kernels: &mut Kernels| {
            kernels.hear(ME, &answer(Kind::AbdReadAck, 3, 2, flags));
            (kernels.of(3).contains(2), kernels.of(4).contains(2))
        };
        assert_eq!(has(Flags::BY_GRANULES, &mut kernels), (true, false));
        let by = Flags::BY_GRANULES.and(Flags::BY_KERNEL);
        assert_eq!(has(by, &mut kernels), (true, false));
        assert_eq!(has(Flags::default(), &mut kernels), (false, false));
        let counted = (kernels.answerers.kernel, kernels.answerers.agent);
        assert_eq!(counted, (1, 2));
    }

    #[test]
    fn nothing_else_says_it() {
        let mut kernels = Kernels::default();
        for (kind, sender) in [
            (Kind::AbdReadAck, ME),
            (Kind::AbdReadAck, SWITCH),
            (Kind::AbdWriteAck, 2),
            (Kind::AbdTold, 2),
        ] {
            kernels.hear(ME, &answer(kind, 3, sender, Flags::BY_GRANULES));
            assert_eq!(kernels.of(3), Copyset::EMPTY, "{kind:?} of {sender}");
        }
        let counted = (kernels.answerers.kernel, kernels.answerers.agent);
        assert_eq!(counted, (0, 0));
    }

    #[test]
    fn a_node_says_it_of_groups_that_are_here_and_to_nodes() {
        let mut kernels = Kernels::default();
        kernels.are_here(1 << 3);
        for (kind, group, to, says) in [
            (Kind::AbdReadAck, 3, Dest::Agent(2), true),
            (Kind::AbdStampAck, 3, Dest::Agent(2), true),
            (Kind::AbdReadAck, 4, Dest::Agent(2), false),
            (Kind::AbdReadAck, 3, Dest::Switch, false),
            (Kind::AbdWriteAck, 3, Dest::Agent(2), false),
        ] {
            let mut header = answer(kind, group, ME, Flags::default());
            kernels.say(&to, &mut header);
            let case = (kind, group, to);
            assert_eq!(header.flags.has(Flags::BY_GRANULES), says, "{case:?}");
        }
    }
}
