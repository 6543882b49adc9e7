//! Rules that can be broken on purpose.

defects! {
    "A rule of pages in a program's mapping that is broken.":
    /// Bytes are copied out, and then the right is taken away.
    CopyBeforeTakingAway,
    /// Taking away returns before the other processors have heard of it.
    NoShootdown,
    /// Who reads gets the bytes while they are stored to.
    StoresGoOn,
    /// A store may go on before other nodes have lost their copies.
    OpenEarly,
    /// A page is shown before its bytes are in place.
    ShowBeforeBytes,
    /// A page is shown for stores where a load has asked for it.
    PlaceOpen,
    /// A page whose loads ask for stores is opened by a store, whatever its copy is by then.
    OpenByHabit,
    /// A page stays as long as it is used.
    HoldForEver,
    /// Other nodes take what a program has pinned.
    TakePinned,
    /// What is pinned stays until it is unpinned, however long others wait.
    PinForEver,
    /// A fault of a page that has the right is over at once, though nobody can say that the page is
    /// in the mapping.
    TrustTheRight,
    /// A call reads what the program stores to meanwhile.
    CallBeside,
    /// The memory of a page that leaves goes before home has its bytes.
    DiscardFirst,
    /// Who closes a mapping looks at pages that have a right, and not at those that are being given
    /// one.
    CloseUnlocked,
}
