//! A protocol on trial at a node: a site that speaks it and nothing else, and has no block.

use super::Trial;
use crate::site::{self, Speaks};
use rackmem_proto::engine::{Holds, Protocol};

/// The node but for its thread.
pub type Site<P> = site::Site<(), P>;

impl<P: Trial> Speaks<()> for P {
    type Protocols = (P,);
}

impl<P: Trial> Holds<P> for Site<P> {
    fn part<R>(&mut self, section: impl FnOnce(&mut P) -> R) -> R {
        section(&mut self.part)
    }

    fn done(&mut self, _: u8, _: <P as Protocol<Self>>::Outcome) {
        self.passed = true;
    }
}
