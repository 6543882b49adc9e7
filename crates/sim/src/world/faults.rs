//! What a network may do to a packet, and how often.

/// Rates are out of a thousand packets; times are nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults {
    /// Packets that never arrive.
    pub loss: u32,
    /// Packets that arrive twice.
    pub duplication: u32,
    /// Packets that others overtake.
    pub late: u32,
    /// By how much at most. Longer than several coherence events is what finds stale packets.
    pub late_by: u64,
    /// Of the stretches of [`Faults::STRETCH`], those in which one node hears nothing.
    pub one_way: u32,
}

impl Faults {
    /// A network that only takes its time.
    pub const NONE: Faults = Faults {
        loss: 0,
        duplication: 0,
        late: 0,
        late_by: 0,
        one_way: 0,
    };
    /// How long a node may hear nothing at a time, in nanoseconds: many retransmissions.
    pub const STRETCH: u64 = 200_000;
    /// One packet of twenty is lost.
    pub const LOSS: Faults = Faults {
        loss: 50,
        ..Faults::NONE
    };
    /// One packet of ten comes twice, the second copy possibly much later.
    pub const DUPLICATION: Faults = Faults {
        duplication: 100,
        late_by: 300_000,
        ..Faults::NONE
    };
    /// One packet of five is late, by anything from nothing to many round trips.
    pub const REORDERING: Faults = Faults {
        late: 200,
        late_by: 500_000,
        ..Faults::NONE
    };
    /// Half of the time, some node hears nothing.
    pub const ONE_WAY: Faults = Faults {
        one_way: 500,
        ..Faults::NONE
    };
    /// Everything together.
    pub const ALL: Faults = Faults {
        loss: 50,
        duplication: 100,
        late: 150,
        late_by: 600_000,
        one_way: 100,
    };
    /// As little of a network as anything can still be done over.
    pub const STORM: Faults = Faults {
        loss: 250,
        duplication: 300,
        late: 400,
        late_by: 2_000_000,
        one_way: 200,
    };
}
