//! Homes whose bytes a group keeps: which packets of FlowCC wait until a majority has what they are
//! about. A host brings the majority, and asks here.

use super::coherent::{FlowCc, Role, role};
use super::host::CoherentHost;
use super::protocol::Protocol;
use crate::wire::{Header, Kind, NodeId};

/// Whether the home agent takes a packet, about a block that it has given out.
pub fn concerns_home<H: CoherentHost>(me: NodeId, header: &Header) -> bool {
    let kinds = <FlowCc as Protocol<H>>::KINDS;
    let coherent = kinds.iter().any(|kinds| kinds.contains(&header.kind));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{RequesterId, Seq, Tag};
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
}
