//! A lock's directory entry, and what requests do to it. The home agent and the switch run this
//! same table.
//!
//! | request | mode | queue holder | next | packet |
//! |---|---|---|---|---|
//! | Acquire S | S | – | sharers ∪ {n} | Grant to n and the keeper, who gives |
//! | Acquire M | S | – | M, holder n | Invalidate to the sharers and n; the keeper gives *case (i) → (iii)* |
//! | Acquire | M | another | | Wait to the holder |
//! | Acquire | M | n itself | as it was | Invalidate once more: it asks again for what was lost |
//! | Release, version matches | M | who releases | S or M, next holder, new sharers | Grant to all concerned; the keeper gives |
//! | Release, version differs | M | who releases | as it was | ReleaseAck `Moved`: requests are under way to it |
//! | Release, of an earlier tenure | any | any | as it was | ReleaseAck: that one is over |
//!
//! The version rises with everything but what leaves the entry as it was, and is never set back:
//! the paper resets it at each transfer, and then a duplicate transfer of an earlier tenure matches
//! again. Beside it the entry keeps the version with which its holder became that: without it a
//! node that does not know that its release was approved, and has got the lock again since, is told
//! that the release was refused, and goes on with the data that it had. There is no mode I: a lock
//! that is unused is M at its home.

use crate::Output;
use crate::wire::{Copyset, Dest, GlobalStatus, Header, Kind, NodeId, Reason};

/// A lock's permission, as the directory has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// Sharers read, without waiters. There is no queue: case (i).
    Shared,
    /// One node has the lock, or is the next to have it, and the queue: cases (ii) and (iii).
    #[default]
    Modified,
}

/// Everything of an entry that a request is decided by: one register of twenty bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct State {
    /// The number of the last thing that was done.
    pub version: u64,
    /// The version with which the queue holder became that.
    pub since: u64,
    /// Who holds the queue, in mode M.
    pub holder: u8,
    /// The keeper: the node that has the data for the last grant.
    pub keeper: u8,
    /// The permission.
    pub mode: Mode,
    /// What is wrong with the data, if anything is.
    pub reason: Reason,
}

/// An entry: its state and its sharer list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Entry {
    /// What requests are decided by.
    pub state: State,
    /// Nodes that may have a shared copy. In mode M, nodes that must drop theirs before the holder
    /// may write.
    pub sharers: Copyset,
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The requester joins the sharers.
    Share,
    /// The sharers make way for the requester.
    Invalidate,
    /// The queue holder takes note of the requester.
    Enqueue,
    /// The lock goes to new sharers, the queue to a new holder.
    Pass,
    /// The holder has yet to hear of requests.
    Deny,
    /// The sender is not the holder any more: an earlier copy of its release was carried out.
    Over,
    /// Nothing: not a request.
    Drop,
}

impl State {
    /// A lock that its home holds.
    pub const fn new(home: NodeId, epoch: u32) -> Self {
        State {
            version: super::first(epoch),
            since: super::first(epoch),
            holder: home as u8,
            keeper: home as u8,
            mode: Mode::Modified,
            reason: Reason::None,
        }
    }

    /// Decides about a packet and enters its outcome.
    pub fn decide(&mut self, header: &Header) -> Verdict {
        let verdict = self.verdict(header);
        let again = verdict == Verdict::Invalidate && self.mode == Mode::Modified;
        match verdict {
            Verdict::Share | Verdict::Enqueue => {}
            Verdict::Invalidate if !again => {
                self.mode = Mode::Modified;
                self.holder = header.requester.node as u8;
            }
            Verdict::Pass => {
                self.mode = match header.status {
                    GlobalStatus::Modified => Mode::Modified,
                    _ => Mode::Shared,
                };
                self.holder = header.requester.node as u8;
                self.keeper = header.sender as u8;
                self.reason = header.reason;
            }
            _ => return verdict,
        }
        self.version = self.version.wrapping_add(1);
        if matches!(verdict, Verdict::Invalidate | Verdict::Pass) {
            self.since = self.version;
        }
        verdict
    }

    fn verdict(&self, header: &Header) -> Verdict {
        let holds = |node: NodeId| self.mode == Mode::Modified && NodeId::from(self.holder) == node;
        match (header.kind, header.status) {
            (Kind::Acquire, GlobalStatus::Unshared) => Verdict::Drop,
            (Kind::Acquire, _) if holds(header.requester.node) => Verdict::Invalidate,
            (Kind::Acquire, _) if self.mode == Mode::Modified => Verdict::Enqueue,
            (Kind::Acquire, GlobalStatus::Shared) => Verdict::Share,
            (Kind::Acquire, GlobalStatus::Modified) => Verdict::Invalidate,
            (Kind::Release, _) if !holds(header.sender) => Verdict::Over,
            (Kind::Release, _) if super::version(header) < self.since => Verdict::Over,
            (Kind::Release, _) if super::version(header) != self.version => Verdict::Deny,
            (Kind::Release, _) => Verdict::Pass,
            _ => Verdict::Drop,
        }
    }
}

/// What a verdict does to the sharer list. Says what the list is then.
pub fn share(sharers: &mut u32, verdict: Verdict, header: &Header) -> Copyset {
    match verdict {
        Verdict::Share => *sharers |= Copyset::of(header.requester.node).0,
        Verdict::Pass => *sharers = header.copyset.0,
        _ => {}
    }
    Copyset(*sharers)
}

/// The packet that a verdict causes: at most one, however many it goes to.
pub fn send(
    verdict: Verdict,
    state: State,
    sharers: Copyset,
    header: &Header,
    me: NodeId,
) -> Option<Output> {
    let keeper = NodeId::from(state.keeper);
    let (requester, beside) = (header.requester.node, Copyset::of(header.requester.node));
    let (kind, to) = match verdict {
        Verdict::Share => (Kind::Grant, beside),
        Verdict::Invalidate => (Kind::Invalidate, sharers.union(beside)),
        Verdict::Pass => (Kind::Grant, sharers.union(beside)),
        Verdict::Enqueue => (Kind::Wait, Copyset::EMPTY),
        Verdict::Deny | Verdict::Over => (Kind::ReleaseAck, Copyset::EMPTY),
        Verdict::Drop => return None,
    };
    let number = match verdict {
        // A repeated answer keeps its number.
        Verdict::Invalidate => state.since,
        _ => state.version,
    };
    let mut answer = super::with_version(header.answer(kind, me), number);
    let to = match verdict {
        Verdict::Enqueue => Dest::Agent(NodeId::from(state.holder)),
        Verdict::Deny | Verdict::Over => {
            // The answer names the release that it is about.
            answer.offset = super::version(header) as u32;
            answer.reason = match verdict {
                Verdict::Deny => Reason::Moved,
                _ => Reason::None,
            };
            Dest::Agent(header.sender)
        }
        _ => {
            answer.copyset = sharers;
            answer.reason = state.reason;
            answer.status = match (verdict, state.mode) {
                (Verdict::Share, _) | (_, Mode::Shared) => GlobalStatus::Shared,
                _ => GlobalStatus::Modified,
            };
            debug_assert!(to.contains(requester));
            Dest::Agents {
                nodes: to.with(keeper),
                provider: Some(keeper),
            }
        }
    };
    Some(Output::new(to, answer))
}

impl Entry {
    /// A lock that its home holds.
    pub const fn new(home: NodeId, epoch: u32) -> Self {
        Entry {
            state: State::new(home, epoch),
            sharers: Copyset::EMPTY,
        }
    }

    /// Decides about a packet, and says what to send.
    pub fn handle(&mut self, header: &Header, me: NodeId) -> Option<Output> {
        let verdict = self.state.decide(header);
        let sharers = share(&mut self.sharers.0, verdict, header);
        send(verdict, self.state, sharers, header, me)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcp::version;
    use crate::wire::{RequesterId, Seq, Tag};

    const TAG: Tag = Tag(0);

    fn acquire(node: NodeId, status: GlobalStatus) -> Header {
        let requester = RequesterId { node, slot: 0 };
        Header {
            status,
            ..Header::request(Kind::Acquire, 1, TAG, requester, Seq(1))
        }
    }

    fn release(from: NodeId, to: NodeId, status: GlobalStatus, version: u64) -> Header {
        let header = Header {
            kind: Kind::Release,
            sender: from,
            ..acquire(to, status)
        };
        super::super::with_version(header, version)
    }

    fn to(output: Option<Output>) -> (Kind, Dest) {
        let output = output.expect("a packet");
        (output.header.kind, output.to)
    }

    fn many(nodes: u32, provider: NodeId) -> Dest {
        let (nodes, provider) = (Copyset(nodes), Some(provider));
        Dest::Agents { nodes, provider }
    }

    const S: GlobalStatus = GlobalStatus::Shared;
    const M: GlobalStatus = GlobalStatus::Modified;

    #[test]
    fn the_table_is_what_the_entry_does() {
        let mut entry = Entry::new(0, 0);
        // Case (ii): the home holds it, others wait there.
        let waits = (Kind::Wait, Dest::Agent(0));
        assert_eq!(to(entry.handle(&acquire(1, M), 9)), waits);
        assert_eq!(to(entry.handle(&acquire(2, S), 9)), waits);
        assert_eq!(entry.state.version, 3);
        // Case (ii) to (ii).
        let granted = (Kind::Grant, many(0b011, 0));
        assert_eq!(to(entry.handle(&release(0, 1, M, 3), 9)), granted);
        // Case (ii) to (i): the reader, and the writer that stays as a sharer.
        let readers = Header {
            copyset: Copyset(0b110),
            ..release(1, 1, S, 4)
        };
        assert_eq!(to(entry.handle(&readers, 9)), (Kind::Grant, many(0b110, 1)));
        // One more reader; the keeper gives.
        assert_eq!(
            to(entry.handle(&acquire(0, S), 9)),
            (Kind::Grant, many(0b011, 1))
        );
        // Case (i) to (iii).
        let makes_way = (Kind::Invalidate, many(0b1111, 1));
        assert_eq!(to(entry.handle(&acquire(3, M), 9)), makes_way);
        let before = entry;
        assert_eq!(to(entry.handle(&acquire(3, M), 9)), makes_way);
        assert_eq!(entry, before, "asking again changes nothing");
        assert_eq!(
            to(entry.handle(&acquire(0, S), 9)),
            (Kind::Wait, Dest::Agent(3))
        );
    }

    #[test]
    fn a_release_counts_once_and_only_when_the_holder_knows_all() {
        let mut entry = Entry::new(0, 0);
        entry.handle(&acquire(1, M), 9);
        let early = entry.handle(&release(0, 1, M, 1), 9).unwrap();
        assert_eq!(early.to, Dest::Agent(0));
        assert_eq!(early.header.reason, Reason::Moved);
        assert_eq!((early.header.offset, version(&early.header)), (1, 2));
        assert!(entry.handle(&release(0, 1, M, 2), 9).is_some());
        let again = entry.handle(&release(0, 1, M, 2), 9).unwrap();
        assert_eq!(again.header.kind, Kind::ReleaseAck);
        assert_eq!(again.header.reason, Reason::None);
        // The same node holds it again later: its old release is of another version.
        entry.handle(&acquire(0, M), 9);
        entry.handle(&release(1, 0, M, 4), 9);
        let doubled = entry.handle(&release(0, 1, M, 2), 9).unwrap();
        assert_eq!(doubled.header.reason, Reason::None, "that one is over");
        assert_eq!(entry.state.holder, 0);
    }
}
