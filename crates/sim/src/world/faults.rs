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
}

impl Faults {
    /// A network that only takes its time.
    pub const NONE: Faults = Faults {
        loss: 0,
        duplication: 0,
        late: 0,
        late_by: 0,
    };
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
    /// Everything together.
    pub const ALL: Faults = Faults {
        loss: 50,
        duplication: 100,
        late: 150,
        late_by: 600_000,
    };
}
