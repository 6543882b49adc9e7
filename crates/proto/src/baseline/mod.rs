//! What FlowCC is measured against, chosen by configuration, over the same packets and the same node.
//!
//! - `home-only` (the paper's Concordia-base) is FlowCC without a switch and needs no code of its own.
//! - [`gather`] is a classic directory: the home collects the acknowledgements (GAM-style).
//! - [`delegate`] has no cache: the operation travels to the data (Grappa-style).

pub mod delegate;
pub mod gather;
