//! A packet in one line for people: the same in the simulator's stories,
//! the explorer's and a real rack's trace.

use crate::{Dest, Flags, Header, NodeId, Reason};
use core::fmt::{self, Display};

/// A packet and its destination as a line of text.
///
/// `kind block N of NODE.SLOT#SEQ from X to Y status copyset +offset flags`,
/// `own A B` if the kind has that, and `NO: reason` if it refuses.
pub struct PacketLine<'a> {
    /// To whom.
    pub to: Dest,
    /// The packet.
    pub header: &'a Header,
    /// How to call its block.
    pub block: &'a dyn Display,
}

impl Display for PacketLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PacketLine { to, header, block } = self;
        let (node, slot) = (header.requester.node, header.requester.slot);
        let (name, seq) = (header.kind.name(), header.seq.0);
        write!(f, "{name:<13} block {block} of {node}.{slot}#{seq} ")?;
        match header.sender {
            NodeId::MAX => write!(f, "from switch ")?,
            sender => write!(f, "from {sender} ")?,
        }
        match to {
            Dest::Switch => write!(f, "to switch")?,
            Dest::Agent(node) => write!(f, "to agent {node}")?,
            Dest::Home(home) => write!(f, "to home {home}")?,
            Dest::Requester(id) => write!(f, "to {}.{}", id.node, id.slot)?,
            Dest::Agents { nodes, .. } => write!(f, "to agents {:b}", nodes.0)?,
        }
        let (status, copyset) = (header.status, header.copyset.0);
        write!(f, " {status:?} {copyset:03b} +{}", header.offset)?;
        write!(f, " {}", FlagNames(header.flags))?;
        match header.reason {
            Reason::None => Ok(()),
            reason => write!(f, " NO: {reason:?}"),
        }
    }
}

/// One-bit fields by name.
struct FlagNames(Flags);

impl Display for FlagNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 7] = [
            "provider",
            "in-switch",
            "granted",
            "data",
            "keep",
            "reader",
            "gather",
        ];
        let set = NAMES
            .iter()
            .enumerate()
            .filter(|(bit, _)| self.0.has(Flags(1 << bit)));
        for (nth, (_, name)) in set.enumerate() {
            write!(f, "{}{name}", if nth == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{Copyset, GlobalStatus, Kind, RequesterId, Seq, Tag};
    use std::string::ToString;

    #[test]
    fn a_line_says_all_that_matters() {
        let requester = RequesterId { node: 2, slot: 5 };
        let mut header = Header::request(Kind::ReadMiss, 1, Tag(0), requester, Seq(9));
        header.copyset = Copyset(0b101);
        header.status = GlobalStatus::Shared;
        header.flags = Flags::PROVIDER.and(Flags::GRANTED);
        let line = |to, header: &Header| {
            let block = &"7";
            PacketLine { to, header, block }.to_string()
        };
        assert_eq!(
            line(Dest::Agent(1), &header),
            "ReadMiss      block 7 of 2.5#9 from 2 to agent 1 Shared 101 +0 provider,granted"
        );
        let refused = header.refuse(Kind::Ack, NodeId::MAX, Reason::Locked);
        assert_eq!(
            line(Dest::Requester(requester), &refused),
            "Ack           block 7 of 2.5#9 from switch to 2.5 Shared 101 +0 provider,granted NO: Locked"
        );
    }
}
