//! What an exploration has come across. Every “always” needs a “sometimes”:
//! an invariant over states in which nothing ever happened would hold as well.

/// Something worth having come across.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Witness {
    /// Two nodes held copies at once.
    TwoSharers,
    /// Two readers held one entry's lock at once.
    TwoReadersLock,
    /// A request found its entry locked.
    RefusedLocked,
    /// A request did not pass the check table.
    RefusedInvalid,
    /// A home was asked for an entry that the switch owned by then.
    RefusedMoved,
    /// What was refused was granted later.
    GrantedAfterRefusal,
    /// A provider wrote a dirty block home under a read miss (hard place FlowCC 3).
    WrittenBackUnderRead,
    /// An event began while the one before it waited for home to have its block.
    TailWaited,
    /// An agent was asked again for what it had done.
    AnsweredAgain,
    /// It answered from the block it had retained (§5.3.1).
    Recalled,
    /// An agent ignored a packet of an event that its requester had ended.
    IgnoredOld,
    /// An owner was told again to unlock what it had unlocked.
    UnlockedAgain,
    /// A home's unlock came after the entry had moved to the switch (hard place FlowCC 2).
    UnlockAfterMove,
    /// A copy was made writable while another node held one.
    UpgradedOverSharers,
    /// A clean copy was given back.
    EvictedClean,
    /// A dirty copy was written home and given back.
    EvictedDirty,
    /// An entry moved to the switch.
    Migrated,
    /// The switch had no room for one (hard place FlowCC 7).
    Collided,
    /// An entry came back from the switch.
    Returned,
    /// An entry stayed in the switch because somebody held its lock.
    Stayed,
    /// A copy of a request that its home had decided reached the switch when it had the entry (hard
    /// place FlowCC 7).
    PassedOnAfterMove,
    /// The switch granted a request.
    GrantedBySwitch,
    /// A thread waited for another thread's event on its own node (hard place FlowCC 8).
    WaitedForNeighbour,
    /// A home collected acknowledgements for a requester.
    Gathered,
    /// A home answered a requester that keeps no copy.
    Fetched,
    /// A home's thread wrote in home's memory.
    WrittenInPlace,
    /// A home stored a block for a requester that keeps no copy.
    Stored,
    /// A home refused to.
    StoreRefused,
    /// Two readers held a block's lock for their own purposes at once (§6).
    HeldTogether,
    /// A new epoch began while an event was under way.
    Fenced,
    /// A new epoch began while something that had been granted was not unlocked.
    FencedHeld,
    /// A block went home because it might have been on its way when an epoch ended.
    Rescued,
    /// A block's last content died with a node.
    LostWithNode,
    /// Someone was told so.
    ToldLost,
    /// Someone went on with what home had of such a block.
    LossAccepted,
    /// And another one held its lock meanwhile (§6).
    LossAcceptedUnderLock,
    /// A thread found that its block had gone with its home.
    HomeGone,
    /// A node dropped a copy because its home had died.
    DroppedWithHome,
    /// A node came back in its next incarnation.
    CameBack,
    /// A packet of a past epoch arrived, and did nothing.
    IgnoredPast,
    /// A new epoch began in the middle of a rebuild.
    RebuildCutOff,
    /// What a member of a rebuild had sent was sent again.
    ToldAgain,
    /// A node had gone on while another one still waited for somebody.
    WentOnFirst,
    /// A block would have been lost with a node if a rebuild that was cut off had not brought it
    /// home.
    SavedFromLoss,
    /// A node that had gone on was cut off by the next epoch together with one that had not.
    CutOffApart,
    /// The kernel of a node's host answered for its cache agent.
    AnsweredInKernel,
    /// It took away a copy that was written there.
    TookWritten,
    /// It gave a reader the block that its cache had.
    GaveInKernel,
    /// A node heard of a removal when it had a dirty copy.
    DirtyRemoved,
    /// It had clean ones.
    CleanRemoved,
    /// It had an event under way.
    RemovedUnderWay,
    /// A node heard of a removal and of the next region at once.
    HeardOfBoth,
    /// Bytes of a removed region came home.
    CameNowhere,
    /// A keeper was asked for a block of a region that it had not heard of.
    NotHeardYet,
    /// A thread found that the region of its block was removed.
    RegionGone,
    /// It was told so by others.
    RefusedRemoved,
}

impl Witness {
    /// All of them.
    pub const ALL: [Witness; 56] = [
        Witness::TwoSharers,
        Witness::TwoReadersLock,
        Witness::RefusedLocked,
        Witness::RefusedInvalid,
        Witness::RefusedMoved,
        Witness::GrantedAfterRefusal,
        Witness::WrittenBackUnderRead,
        Witness::TailWaited,
        Witness::AnsweredAgain,
        Witness::Recalled,
        Witness::IgnoredOld,
        Witness::UnlockedAgain,
        Witness::UnlockAfterMove,
        Witness::UpgradedOverSharers,
        Witness::EvictedClean,
        Witness::EvictedDirty,
        Witness::Migrated,
        Witness::Collided,
        Witness::Returned,
        Witness::Stayed,
        Witness::PassedOnAfterMove,
        Witness::GrantedBySwitch,
        Witness::WaitedForNeighbour,
        Witness::Gathered,
        Witness::Fetched,
        Witness::WrittenInPlace,
        Witness::Stored,
        Witness::StoreRefused,
        Witness::HeldTogether,
        Witness::Fenced,
        Witness::FencedHeld,
        Witness::Rescued,
        Witness::LostWithNode,
        Witness::ToldLost,
        Witness::LossAccepted,
        Witness::LossAcceptedUnderLock,
        Witness::HomeGone,
        Witness::DroppedWithHome,
        Witness::CameBack,
        Witness::IgnoredPast,
        Witness::RebuildCutOff,
        Witness::ToldAgain,
        Witness::WentOnFirst,
        Witness::SavedFromLoss,
        Witness::CutOffApart,
        Witness::AnsweredInKernel,
        Witness::TookWritten,
        Witness::GaveInKernel,
        Witness::DirtyRemoved,
        Witness::CleanRemoved,
        Witness::RemovedUnderWay,
        Witness::HeardOfBoth,
        Witness::CameNowhere,
        Witness::NotHeardYet,
        Witness::RegionGone,
        Witness::RefusedRemoved,
    ];

    /// Its name in reports: `two-sharers`.
    pub fn name(self) -> String {
        crate::names::kebab(self)
    }
}

/// A set of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Witnesses(u64);

impl Witnesses {
    /// Adds one.
    pub fn see(&mut self, witness: Witness) {
        self.0 |= 1 << witness as u8;
    }

    /// Adds one if it holds.
    pub fn see_if(&mut self, holds: bool, witness: Witness) {
        if holds {
            self.see(witness);
        }
    }

    /// Adds all of another set.
    pub fn add(&mut self, other: Witnesses) {
        self.0 |= other.0;
    }

    /// Whether one is there.
    pub fn has(self, witness: Witness) -> bool {
        self.0 >> witness as u8 & 1 == 1
    }

    /// Those that are there.
    pub fn iter(self) -> impl Iterator<Item = Witness> {
        Witness::ALL.into_iter().filter(move |w| self.has(*w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_them_all_once_and_in_order() {
        for (at, witness) in Witness::ALL.into_iter().enumerate() {
            assert_eq!(witness as usize, at);
        }
    }

    #[test]
    fn names_are_for_reports() {
        assert_eq!(Witness::TwoSharers.name(), "two-sharers");
        let mut set = Witnesses::default();
        set.see(Witness::Recalled);
        set.see_if(false, Witness::Migrated);
        assert!(set.iter().eq([Witness::Recalled]));
    }
}
