//! What programs hold of coherent memory (FlowCC).

pub(crate) mod atomics;
pub(crate) mod fingerprint;
pub(crate) mod shared;
pub(crate) mod slice;
mod slice_futures;
