//! In which form a home is asked for its objects.
//!
//! Where the kernel of a home's host answers reads, its agent says so in each of its answers, and
//! they are asked for by granules from then on. A reader whose packets do not meet that kernel, on
//! the home's own host or behind another interface, would ask the agent for each granule: after
//! [`MISSES`] reads that only the agent has answered it asks for whole objects, and tries granules
//! again after some hundred of them.

use super::Operation;
use crate::wire::{Flags, Header, HomeId, MAX_NODES};

/// Reads by granules that the agent may answer one after the other.
pub const MISSES: u8 = 8;

/// What is known of one home.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Form {
    /// Its host's kernel answers reads.
    kernel: bool,
    /// Reads that the agent has answered since the kernel has answered one. It comes round.
    misses: u8,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Forms([Form; MAX_NODES]);

impl Forms {
    /// Whether this home is asked by granules.
    pub fn is_by_granules(&self, home: HomeId) -> bool {
        let form = self.0.get(usize::from(home.0));
        form.is_some_and(|form| form.kernel && form.misses < MISSES)
    }

    /// A home's answer to something.
    pub(super) fn hear(&mut self, home: HomeId, header: &Header) {
        if let Some(form) = self.0.get_mut(usize::from(home.0)) {
            form.kernel = header.flags.has(Flags::BY_GRANULES);
        }
    }

    /// A read has ended with the object.
    pub(super) fn note(&mut self, home: HomeId, operation: &Operation) {
        if let Some(form) = self
            .0
            .get_mut(usize::from(home.0))
            .filter(|form| form.kernel)
        {
            form.misses = match operation.is_by_kernel() {
                true => 0,
                false => form.misses.wrapping_add(1),
            };
        }
    }
}
