//! What programs hold of coherent memory (FlowCC).

pub(crate) mod lock;
pub(crate) mod shared;
