//! How a rack gets into a state, packet by packet.

use super::moves::{ExplorerRack, Move};
use super::packet::ExplorerPacket;
use super::parts::Input;
use super::scenario::Failure;
use rackmem_proto::wire::PacketLine;

impl ExplorerRack {
    /// The lines of one move: what happened, and what it sent.
    pub fn tell(&self, action: &Move) -> Vec<String> {
        let what = match action.input {
            Input::Arrival(packet) => {
                let verb = if action.stays {
                    "Arrived, stays"
                } else {
                    "Arrived"
                };
                format!("{verb:<16}{}", self.line(self.parts.packet(packet)))
            }
            Input::Turn(thread) => format!("{:<16}{}.{thread}", "Turn of", action.part),
            Input::Resend(thread, _) => format!("{:<16}{}.{thread}", "Timeout of", action.part),
            Input::Want(block) => format!("{:<16}block {block}", "To the switch:"),
            Input::Demote(block) => format!("{:<16}block {block}", "Back home:"),
            Input::Epoch(nth) => {
                let why = match self.layout.scenario.failures.get(usize::from(nth)) {
                    Some(Failure::Switch) => "the switch has died".into(),
                    Some(Failure::Node(node)) => format!("node {node} has died"),
                    Some(Failure::SwitchAndNode(node)) => {
                        format!("the switch and node {node} have died")
                    }
                    Some(Failure::Return(node)) => format!("node {node} has come back"),
                    Some(Failure::Restart(node)) => format!("node {node} has started again"),
                    Some(Failure::NewSwitch) => "a new switch has come".into(),
                    Some(Failure::Nothing) | None => "nobody has died".into(),
                };
                format!("{:<16}{why}", "New epoch:")
            }
            Input::Learn(_) => format!("{:<16}{}", "Epoch learned by", action.part),
            Input::Retell(_) => format!("{:<16}{}", "Told again by", action.part),
            Input::Groups => format!(
                "{:<16}the region is removed, or the next is there",
                "Groups:"
            ),
            Input::Hear(step) => {
                format!(
                    "{:<16}of step {step} of the groups",
                    format!("{} hears", action.part)
                )
            }
            Input::ResendHome(_) => format!("{:<16}home agent {}", "Timeout of", action.part),
        };
        let outcome = self.parts.outcome(action.outcome);
        let notes = outcome.notes.iter();
        let notes =
            notes.map(|(node, block, note)| format!("    node {node} block {block}: {note}"));
        let observed = outcome.observed.iter().map(|saw| format!("    {saw:?}"));
        let sent = outcome.sent.iter().enumerate().map(|(at, &packet)| {
            let lost = action.lost >> at & 1 == 1;
            let fate = if lost { "lost" } else { "sent" };
            format!("    {fate:<12}{}", self.line(self.parts.packet(packet)))
        });
        let lines = [what].into_iter().chain(notes).chain(observed).chain(sent);
        lines.collect()
    }

    fn line(&self, packet: &ExplorerPacket) -> String {
        let block = self.layout.block(packet.header.tag);
        let block = block.map_or_else(|| "?".into(), |block| block.to_string());
        let line = PacketLine {
            to: packet.to,
            header: &packet.header,
            block: &block,
        };
        line.to_string().trim_end().to_owned()
    }
}
