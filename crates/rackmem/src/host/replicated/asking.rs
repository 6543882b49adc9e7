//! Questions go to as many members as make a quorum, and to the others when these have not
//! answered for a while: each member that answers takes a turn of a processor from those whose
//! answers are needed. A switch multiplies a question to those that it names.
//!
//! To the protocol a question that is not sent is one that the network has lost: what is asked
//! again goes to all. What stores something goes to all members at once: on a busy machine two
//! that are chosen before take longer than the first two of three.

use rackmem_proto::abd::{Abd, Effect, FILLING};
use rackmem_proto::call::Parcel;
use rackmem_proto::wire::{
    Copyset, Dest, Flags, Header, Kind, MAX_NODES, NodeId, RequesterId, Seq,
};
use std::time::{Duration, Instant};

/// How long a quorum has for its answers until all are asked: some round trips.
pub(super) const HEDGE: Duration = Duration::from_micros(200);
/// How long a member that had not answered by then is asked after the others.
const SLOW: Duration = Duration::from_secs(1);

/// What a requester has asked a quorum.
struct First {
    seq: Seq,
    kind: Kind,
    /// The quorum.
    asked: Copyset,
    /// It has gone to all since.
    again: bool,
}

/// What requesters have asked last, and who has not answered.
#[derive(Default)]
pub(super) struct Questions {
    /// By slot.
    last: Vec<Option<First>>,
    slow: Option<(Copyset, Instant)>,
}

/// A question of this node's to members: directly, or through a switch that multiplies it.
fn question(me: NodeId, effect: &Effect) -> Option<(&Parcel, Copyset)> {
    let Effect::Send(parcel) = effect else {
        return None;
    };
    let header = &parcel.header;
    let to = match parcel.to {
        Dest::Agent(to) => Copyset::of(to),
        Dest::Switch => header.copyset,
        _ => return None,
    };
    let asks = matches!(header.kind, Kind::AbdStamp | Kind::AbdRead);
    let mine = header.requester.node == me && header.seq != FILLING;
    (asks && mine).then_some((parcel, to))
}

/// The same of one requester.
fn of(who: RequesterId, effect: &Effect) -> Option<(&Parcel, Copyset)> {
    question(who.node, effect).filter(|(parcel, _)| parcel.header.requester == who)
}

/// Who is to send the line, if it is one of these that a packet names.
fn provider(parcel: &Parcel) -> Copyset {
    let Parcel { to, header, .. } = parcel;
    match (*to, header.kind) {
        (Dest::Agent(to), _) if header.flags.has(Flags::PROVIDER) => Copyset::of(to),
        (Dest::Switch, Kind::AbdRead) if header.offset < MAX_NODES as u32 => {
            Copyset::of(header.offset as NodeId)
        }
        _ => Copyset::EMPTY,
    }
}

impl Questions {
    /// Leaves out what a section asks beyond a quorum, the first time that it asks.
    pub fn spare(&mut self, me: NodeId, abd: &Abd, effects: &mut Vec<Effect>) {
        let Some((first, _)) = effects.iter().find_map(|effect| question(me, effect)) else {
            return;
        };
        let Header {
            requester,
            seq,
            kind,
            tag,
            ..
        } = first.header;
        let Some(config) = abd.config(tag.home().0) else {
            return;
        };
        let at = usize::from(requester.slot);
        if self.last.len() <= at {
            self.last.resize_with(at + 1, || None);
        }
        let again = |last: &First| (last.seq, last.kind) == (seq, kind);
        if self.last[at].as_ref().is_some_and(again) {
            return;
        }
        self.last[at] = None;
        let (mut nodes, mut provides) = (Copyset::EMPTY, Copyset::EMPTY);
        for (parcel, to) in effects.iter().filter_map(|it| of(requester, it)) {
            nodes = nodes.union(to);
            provides = provides.union(provider(parcel));
        }
        let counting = config.nodes(config.counting);
        let quorum = config.quorum() as usize;
        let slow = self.slow();
        let mut asked = Copyset::EMPTY;
        // The provider sends the line, an own copy costs no packet.
        for rank in 0..4 {
            for node in nodes.iter().filter(|node| counting.contains(*node)) {
                let of_rank = match rank {
                    0 => provides.contains(node),
                    1 => node == me,
                    2 => !slow.contains(node),
                    _ => true,
                };
                if of_rank && (asked.len() as usize) < quorum {
                    asked = asked.with(node);
                }
            }
        }
        if (asked.len() as usize) < quorum || asked == nodes {
            return;
        }
        effects.retain_mut(|effect| {
            let Some((_, to)) = of(requester, effect) else {
                return true;
            };
            if let Effect::Send(parcel) = effect
                && parcel.to == Dest::Switch
            {
                parcel.header.copyset = asked;
                return true;
            }
            asked.covers(to)
        });
        self.last[at] = Some(First {
            seq,
            kind,
            asked,
            again: false,
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

    /// The phase that a slot's operation is in, if only a quorum has been asked in it.
    pub fn few(&self, slot: u8, abd: &Abd) -> Option<(Seq, Kind)> {
        let last = self.last.get(usize::from(slot))?.as_ref()?;
        let (seq, phase) = abd.awaits(slot)?;
        let same = (seq, phase.asks()) == (last.seq, last.kind);
        (same && !last.again).then_some((last.seq, last.kind))
    }

    /// A slot's quorum has had its time, and its question goes to all. Those that were asked and
    /// have not answered are slow. False: there is none.
    pub fn is_late(&mut self, slot: u8, abd: &Abd) -> bool {
        if self.few(slot, abd).is_none() {
            return false;
        }
        let slow = self.slow();
        let Some(last) = &mut self.last[usize::from(slot)] else {
            return false;
        };
        last.again = true;
        let answered = abd.answered_by(slot);
        let silent = last.asked.iter().filter(|node| !answered.contains(*node));
        self.slow = Some((silent.fold(slow, Copyset::with), Instant::now() + SLOW));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::abd::{Command, Config, Layout, Member, ReplicatedMemory, first_line};
    use rackmem_proto::wire::Tag;

    /// Who asks: no member.
    const ME: NodeId = 9;

    /// Three members, at nodes 0 to 2.
    fn memory(through_switch: bool) -> ReplicatedMemory {
        let members = [0, 1, 2].map(|node| Member { node, life: 1 });
        let config = Config {
            through_switch,
            ..Config::first(&members).unwrap()
        };
        let layout = Layout::new(64, 640).unwrap();
        let mut memory = ReplicatedMemory::new((ME, 1), 1400);
        memory.lines.lay_out(0, layout);
        memory.section((0, &[]), |abd, fx| abd.learn(0, layout, &config, fx));
        memory
    }

    fn asked(effects: &[Effect]) -> Vec<(Kind, Copyset)> {
        let asked = effects.iter().filter_map(|effect| question(ME, effect));
        let asked = asked.map(|(parcel, to)| (parcel.header.kind, to));
        asked.collect()
    }

    /// An operation on line 0 begins: what it sends.
    fn begin(memory: &mut ReplicatedMemory, command: fn(Tag) -> Command) -> Vec<Effect> {
        memory.lines.operands.begin(0, vec![7; 64], 40_000);
        let command = command(first_line(0));
        memory
            .section((0, &[]), |abd, fx| abd.command(0, command, fx))
            .1
    }

    #[test]
    fn a_question_goes_to_a_quorum() {
        let (mut memory, mut questions) = (memory(false), Questions::default());
        let mut sent = begin(&mut memory, Command::Write);
        assert_eq!(asked(&sent).len(), 3);
        questions.spare(ME, &memory.abd, &mut sent);
        let quorum = [0, 1].map(|node| (Kind::AbdStamp, Copyset::of(node)));
        assert_eq!(asked(&sent), quorum);
        // What is asked again goes to all.
        let mut again = memory.section((0, &[]), |abd, fx| abd.retry(0, fx)).1;
        questions.spare(ME, &memory.abd, &mut again);
        assert_eq!(asked(&again).len(), 3);
    }

    #[test]
    fn a_switch_multiplies_a_question_to_a_quorum_with_its_provider() {
        let (mut memory, mut questions) = (memory(true), Questions::default());
        let mut sent = begin(&mut memory, Command::Read);
        let provides = provider(question(ME, &sent[0]).unwrap().0);
        questions.spare(ME, &memory.abd, &mut sent);
        let [(Kind::AbdRead, quorum)] = asked(&sent)[..] else {
            panic!("{sent:?}");
        };
        assert!(quorum.len() == 2 && quorum.covers(provides) && !provides.is_empty());
    }

    #[test]
    fn who_is_late_is_asked_last_and_a_question_is_late_once() {
        let (mut memory, mut questions) = (memory(false), Questions::default());
        let mut sent = begin(&mut memory, Command::Write);
        questions.spare(ME, &memory.abd, &mut sent);
        assert!(questions.few(0, &memory.abd).is_some());
        assert!(questions.is_late(0, &memory.abd));
        assert!(!questions.is_late(0, &memory.abd), "it has gone to all");
        memory.abandon(0);
        let mut next = begin(&mut memory, Command::Write);
        questions.spare(ME, &memory.abd, &mut next);
        let quorum = [0, 2].map(|node| (Kind::AbdStamp, Copyset::of(node)));
        assert_eq!(asked(&next), quorum);
    }
}
