//! Rules that can be broken on purpose.

defects! {
    "A rule of Bounded Incoherence that is broken.":
    /// Modifications and frees are stamped with the time at which the change began.
    StampBeforeVisible,
    /// What is to be stored is entered after it was stored.
    NoIntent,
    /// A reader passes an entry that its writer has not stamped yet.
    ForgetPending,
    /// A reader goes on where a ring is kept from, whatever it has missed.
    NewsGapIgnored,
    /// A full ring forgets its oldest entry, also one that is freed memory.
    RingOverwrites,
    /// Two domains store to one line at a time: they have no lock, and write whole lines back.
    ShareALine,
    /// A word is stored into its line as the writer's cache has that, which another domain has
    /// written since.
    KeepOldLine,
    /// Freed objects are dropped first and stale words second, as in the paper's Fig. 4.
    FreedBeforeStale,
    /// Memory that was freed at a tick is reused when all have quiesced after it: clocks are taken
    /// to be the same.
    NoMargin,
    /// A quiescence counts from its end.
    PublishQAtEnd,
    /// Pointers to objects of the program's own have a birth, as if quiescences were told of them.
    BornUntold,
    /// An object is freed that a word of the program's own has led to, and of that word nobody is
    /// told.
    FreeUntold,
    /// What the program has named is not dropped.
    ForgetOwn,
    /// A domain drops what was freed while its own sections still read it.
    SkipOwnThreads,
    /// Objects are looked at as they are in the cache, however young the pointer is.
    NoBirth,
    /// Memory does not wait for a domain that joins.
    JoinUncounted,
    /// Memory waits for the dead.
    CountTheDead,
    /// Memory does not wait for a domain that has not quiesced for long.
    ForgetLateReader,
    /// A domain that the rack has excluded is not waited for from that moment on.
    NoGrace,
    /// The word is stored before the object behind it is written back.
    AssignBeforeWriteBack,
    /// A lazy lookup reads its path through the cache.
    LazyThroughCache,
    /// A section begins however long ago its domain has quiesced.
    EnterWithoutClock,
    /// What a section has read is believed however long it has lasted.
    ExitWithoutClock,
}
