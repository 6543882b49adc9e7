//! What rackmem is measured against, as pure values: a [`Guest`](https://docs.rs/rackmem) runs them
//! on real nodes, the cost models in virtual time.
//!
//! | baseline | where |
//! |---|---|
//! | locks laid over coherent memory, and a service of locks (Soul §5) | [`locks`] |
//! | a home that gathers acknowledgements and data, and answers then (GAM-style; Concordia §7.1) | [`gather`] |
//! | operations that travel to the data (Grappa-style; Concordia §7.1) | [`delegate`] |

pub mod delegate;
pub mod gather;
pub mod locks;
