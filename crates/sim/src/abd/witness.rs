//! What shows that a scenario is about something.

macro_rules! witnesses {
    ($($(#[$text:meta])* $name:ident,)*) => {
        /// What shows that a scenario is about something.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Witness { $($(#[$text])* $name,)* }

        impl Witness {
            /// All of them.
            pub const ALL: &'static [Witness] = &[$(Witness::$name,)*];
        }
    };
}

witnesses! {
    /// A write was acknowledged by a member that has a later one.
    Superseded,
    /// A read has taken one round.
    Agreed,
    /// A read has found that no majority has the latest.
    Disagreed,
    /// The provider's line was not the latest.
    Fetched,
    /// A write-back has brought a member up to date.
    Repaired,
    /// A member that fills has fetched a line.
    Filled,
    /// A member that fills was written to before it had all.
    FilledOver,
    /// A write has begun to count anew in another config.
    Recounted,
    /// A packet of a config that its receiver has left was answered with the newer one.
    ToldConfig,
    /// The switch has said that a quorum has answered.
    Counted,
    /// A switch that holds lines has begun the second round of a write.
    WrittenBySwitch,
    /// Likewise of a read.
    WrittenBack,
    /// A write has taken one round.
    AtOnce,
    /// A member was asked for a write of one round, and it had come there.
    HadCome,
    /// It had not.
    NeverCame,
    /// A write whose requester is gone was finished by a reader.
    Adopted,
    /// A process has come back while its lines were on their way to the durable store.
    CutSync,
    /// Likewise, and they had come there.
    KeptSync,
    /// An operation has ended since its region was removed.
    EndedByRemoval,
    /// A store was damaged, and its member did not count any more.
    RefusedStore,
    /// An operation has ended since its epoch had.
    Fenced,
    /// A home has put in place what an earlier one had written.
    Retaken,
}
