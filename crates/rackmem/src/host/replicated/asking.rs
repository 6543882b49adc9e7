//! Questions go to as many members as make a quorum, and to the others when these have not
//! answered for a while: each member that answers takes a turn of a processor from those whose
//! answers are needed.
//!
//! To the protocol a question that is not sent is one that the network has lost: what is asked
//! again goes to all. What stores something goes to all members at once.

use rackmem_proto::abd::{Abd, Effect, FILLING};
use rackmem_proto::wire::{Copyset, Dest, Flags, Header, Kind, NodeId, Seq};
use std::time::{Duration, Instant};

/// How long a quorum has for its answers until all are asked: some round trips.
pub(super) const HEDGE: Duration = Duration::from_micros(200);
/// How long a member that had not answered by then is asked after the others.
const SLOW: Duration = Duration::from_secs(1);

/// What requesters have asked last, and who has not answered.
#[derive(Default)]
pub(super) struct Questions {
    /// By slot.
    last: Vec<Option<(Seq, Kind, Copyset)>>,
    slow: Option<(Copyset, Instant)>,
}

/// A question of this node to one member.
fn question(me: NodeId, effect: &Effect) -> Option<(&Header, NodeId)> {
    let Effect::Send(parcel) = effect else {
        return None;
    };
    let (header, Dest::Agent(to)) = (&parcel.header, parcel.to) else {
        return None;
    };
    let asks = matches!(header.kind, Kind::AbdStamp | Kind::AbdRead) && header.seq != FILLING;
    (asks && header.requester.node == me).then_some((header, to))
}

impl Questions {
    /// Leaves out what a section asks beyond a quorum, the first time that it asks.
    pub fn spare(&mut self, me: NodeId, abd: &Abd, effects: &mut Vec<Effect>) {
        let Some((first, _)) = effects.iter().find_map(|effect| question(me, effect)) else {
            return;
        };
        let (slot, seq, kind) = (first.requester.slot, first.seq, first.kind);
        let Some(config) = abd.config(first.tag.home().0) else {
            return;
        };
        let quorum = config.quorum() as usize;
        let at = usize::from(slot);
        if self.last.len() <= at {
            self.last.resize(at + 1, None);
        }
        if self.last[at].is_some_and(|(s, k, _)| (s, k) == (seq, kind)) {
            return;
        }
        let of_slot = |effect: &&Effect| {
            question(me, effect).is_some_and(|(header, _)| header.requester.slot == slot)
        };
        if effects.iter().filter(of_slot).count() <= quorum {
            return;
        }
        let slow = self.slow();
        let mut asked = Copyset::EMPTY;
        // The provider sends the line, an own copy costs no packet.
        for rank in 0..4 {
            let of_rank = |header: &Header, to| match rank {
                0 => header.flags.has(Flags::PROVIDER),
                1 => to == me,
                2 => !slow.contains(to),
                _ => true,
            };
            for (header, to) in effects.iter().filter_map(|effect| question(me, effect)) {
                let next = header.requester.slot == slot && (asked.len() as usize) < quorum;
                if next && of_rank(header, to) {
                    asked = asked.with(to);
                }
            }
        }
        self.last[at] = Some((seq, kind, asked));
        effects.retain(|effect| {
            let asks = question(me, effect);
            asks.is_none_or(|(header, to)| header.requester.slot != slot || asked.contains(to))
        });
    }

    fn slow(&mut self) -> Copyset {
        match self.slow {
            Some((slow, until)) if Instant::now() < until => slow,
            _ => {
                self.slow = None;
                Copyset::EMPTY
            }
        }
    }

    /// Whether a slot's question is still not answered by a quorum, and all are to be asked.
    /// Those that were asked and have not answered are slow.
    pub fn is_late(&mut self, slot: u8, abd: &Abd) -> bool {
        let last = self.last.get(usize::from(slot)).copied().flatten();
        let (Some((now, phase)), Some((seq, kind, asked))) = (abd.awaits(slot), last) else {
            return false;
        };
        if (now, phase.asks()) != (seq, kind) {
            return false;
        }
        let answered = abd.answered_by(slot);
        let silent = asked.iter().filter(|node| !answered.contains(*node));
        let slow = silent.fold(self.slow(), Copyset::with);
        self.slow = Some((slow, Instant::now() + SLOW));
        true
    }
}
