//! What a step of replicated memory needs of its host, and the rules that it can be made to break.

use super::{Outcome, Stamp};
use crate::wire::{Dest, Header, Own, Record, RequesterId, Tag};

/// Where segments of a line are put together before it is a line: one place for each,
/// at every member. Groups know nothing of each other, so each has places of its own: a requester
/// writes to one while packets for another one are late, and a node fills in several at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Staging {
    /// What this requester writes to a group, by the parity of its number.
    Of(u16, RequesterId, u8),
    /// What a member of a group that fills fetches.
    Fill(u16, u8),
}

impl Staging {
    /// The group.
    pub fn group(self) -> u16 {
        match self {
            Staging::Of(group, ..) | Staging::Fill(group, _) => group,
        }
    }
}

/// The bytes that travel with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body<'a> {
    /// None.
    Nothing,
    /// The line of the packet's tag, as this member has it now, in as many segments as the network
    /// needs.
    Line,
    /// What the operation in this slot writes or has read, likewise.
    Value(u8),
    /// Records.
    Records(&'a [Record]),
}

/// What a step wants done, in this order and in the same section:
/// a line's stamp and its bytes never part.
pub trait Effects {
    /// Puts the segment of the packet at hand in its place in a staging line.
    fn stage(&mut self, at: Staging);
    /// The staging line is whole: makes it durable, and calls [`super::Abd::synced`] with these
    /// when it is. For members with a durable store.
    fn sync(&mut self, _at: Staging, _header: &Header, _own: Own) {}
    /// The staging line is the content of the line from here on, under this stamp.
    fn commit(&mut self, at: Staging, line: Tag, stamp: Stamp);
    /// Puts the segment of the packet at hand in its place in what this slot reads.
    fn gather(&mut self, slot: u8);
    /// Sends a packet. A segmented body comes with `DATA` and its offset in each packet.
    fn send(&mut self, to: Dest, header: &Header, own: Own, body: Body<'_>);
    /// The operation in this slot has ended.
    fn done(&mut self, slot: u8, outcome: Outcome);
    /// A group has a newer config than is known here: the rack's view says which.
    fn behind(&mut self, _group: u16, _config: u32) {}
    /// This member lives by this config of a group from here on. A durable member writes that down
    /// before it sends anything, or before it learns the config at all.
    fn adopted(&mut self, _group: u16, _config: u32) {}
    /// No copy of this group is kept here any more: the bytes of its lines are of no use.
    fn forget(&mut self, _group: u16) {}
    /// A member, or a program in the kernel of its host, has answered an operation of this node.
    fn answered(&mut self, _header: &Header) {}
    /// The rule that is broken on purpose.
    #[inline]
    fn defect(&self) -> Option<Defect> {
        None
    }
}

defects! {
    "A rule of replicated memory that can be broken, to see that checkers notice.":

    /// A write that is sent again has another stamp.
    RestampRetransmission,
    /// Answers are counted, not members.
    CountCopiesTwice,
    /// Half of the copies are taken for a majority.
    QuorumOfHalf,
    /// A reader never writes back.
    ElideAlways,
    /// Members that answered with a lower stamp count as agreeing with the highest.
    AgreeOnOlder,
    /// A member stores a line over one with a higher stamp.
    StoreLowerStamp,
    /// A member acknowledges and stores when the first segment is there.
    AckHalfLine,
    /// Segments of a requester's last write count as those of the next.
    MixTwoWrites,
    /// Segments of a line under two stamps are read as one.
    MixTwoReads,
    /// Members that fill answer, and count.
    FillingCounts,
    /// A process that has forgotten answers as the member that it was.
    ForgetfulCounts,
    /// A member answers packets of a config that it has left.
    AcceptOldConfig,
    /// A member fills from one other member.
    FillFromOne,
    /// A member acknowledges before a line is durable.
    AckBeforeDurable,
    /// A requester that has restarted uses the stamps of its last life.
    ReuseOwnStamp,
    /// Answers to an earlier operation count.
    LateStampCounts,
    /// A reader gives a line that it has the stamp of another that it has not.
    BytesOfOneStampOfAnother,
    /// The switch counts on where it was when a requester's next phase begins.
    CountOn,
    /// The switch believes that it knows a line's highest stamp when a write of it passes.
    LearnStampFromWrite,
    /// A write whose fate is not known is written again under another stamp.
    ForgetFate,
    /// Of those that keep copies, a member that fills is not asked for a write's fate.
    AskCountingOnly,
    /// The switch gives a requester that has restarted what it chose for its last life.
    ChooseForLastLife,
    /// A switch that has started again chooses in the config of its last life.
    ChooseInLastLife,
    /// A member that fills puts all that it has not asked for since it asked anew in one place.
    MixFetches,
    /// A durable member counts what it has filled before that is durable.
    FillBeforeDurable,
    /// Of a line's records in a journal, the last one counts, whatever its stamp.
    ReplayInOrder,
    /// A durable member does not write down by which config it lives.
    ForgetConfig,
    /// A checkpoint has lines without their stamps.
    CheckpointWithoutStamps,
    /// A member whose store is damaged counts with what is left.
    CountAfterDamage,
    /// A member whose sync has failed tries again and believes what it hears then.
    TrustSecondSync,
    /// A member counts for a region with what it has of a removed one, whose number that has.
    KeepRemoved,
    /// Of two copies of a region that grows, the second one goes on alone.
    KeepTheSecond,
    /// A member carries out what a home of an old epoch asks for.
    OldHomeWrites,
    /// The next home of a line does not write again what it finds.
    TakeUnwritten,
    /// A question that went to a quorum goes to the same members again.
    AskFewAgain,
    /// A switch that holds lines chooses another stamp for a copy of a write.
    ChooseAgain,
    /// It holds the first line that comes, whatever comes after it.
    HoldFirstLine,
    /// It answers a read before a quorum has what was read.
    ElideHeld,
    /// It counts acknowledgements of what an earlier copy of a read has found.
    CountOtherStamps,
    /// An operation on a removed region goes on in the next one that has its number.
    CarryOver,
}
