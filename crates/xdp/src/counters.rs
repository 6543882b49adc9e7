//! What the program has counted.

use rackmem_proto::switch::{LockCounters, SwitchCounters};
use rackmem_wire::Kind;

/// Rows of `enum did` in `switch/xdp/state.h`, in its order.
const DID: usize = 21;
/// `struct counters` as words.
pub(crate) const COUNTERS_LEN: usize = DID + 256;

/// The program's figures, of all processors together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// What every form of the program counts.
    pub switch: SwitchCounters,
    /// The same of the directory of locks.
    pub locks: LockCounters,
    /// Datagrams for the switch that were no packets.
    pub malformed: u64,
    /// Packets passed to the control plane.
    pub control: u64,
    /// Packets that the control plane was asked to send, since the ports could not.
    pub orders: u64,
    /// Packets lost on purpose.
    pub lost: u64,
    /// Well-formed packets, by kind.
    pub kinds: Vec<(Kind, u64)>,
}

impl Counters {
    pub(crate) fn of(values: impl Iterator<Item = [u64; COUNTERS_LEN]>) -> Counters {
        let mut sum = [0u64; COUNTERS_LEN];
        for one in values {
            sum.iter_mut()
                .zip(one)
                .for_each(|(sum, one)| *sum = sum.wrapping_add(one));
        }
        let [
            granted,
            locked,
            invalid,
            to_home,
            unlocked,
            added,
            collided,
            removed,
            dropped,
            _,
            malformed,
            control,
            orders,
            lost,
            locks_served,
            locks_denied,
            locks_to_home,
            _,
            locks_dropped,
            ..,
        ] = sum;
        let kinds = Kind::ALL
            .iter()
            .map(|&kind| (kind, sum[DID + kind as usize]));
        Counters {
            switch: SwitchCounters {
                granted,
                locked,
                invalid,
                to_home,
                unlocked,
                added,
                collided,
                removed,
                dropped,
                violations: 0,
            },
            locks: LockCounters {
                served: locks_served.wrapping_add(locks_denied),
                denied: locks_denied,
                to_home: locks_to_home,
                dropped: locks_dropped,
                violations: 0,
            },
            malformed,
            control,
            orders,
            lost,
            kinds: kinds.collect(),
        }
    }

    /// Well-formed packets of all kinds.
    pub fn packets(&self) -> u64 {
        self.kinds.iter().map(|row| row.1).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_added_up() {
        let mut one = [0; COUNTERS_LEN];
        one[0] = 1;
        one[12] = 2;
        one[DID + Kind::ReadMiss as usize] = 3;
        let both = Counters::of([one, one].into_iter());
        assert_eq!(
            (both.switch.granted, both.orders, both.packets()),
            (2, 4, 6)
        );
    }
}
