//! The switch: its control plane, and its program in this process or in the kernel.

pub(crate) mod data_plane;
pub(crate) mod kernel;
pub(crate) mod soft;
