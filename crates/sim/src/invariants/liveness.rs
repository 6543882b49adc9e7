//! Every operation ends once faults stop (§5.3; hard place FlowCC 9).

/// Its name in a violation.
pub const NAME: &str = "liveness";
/// Where the paper promises it.
pub const SECTION: &str = "§5.3";
/// Virtual time within which everything must end after the network has calmed down, in nanoseconds:
/// thousands of round trips.
pub const PATIENCE: u64 = 60_000_000;

/// Whether a run that calmed down at `calm` has taken too long.
pub fn broken(now: u64, calm: Option<u64>) -> bool {
    calm.is_some_and(|calm| now > calm + PATIENCE)
}
