//! Scripts: programs in Lua whose commands take effect together.
//!
//! [`engine`] runs them: it knows nothing of the store. What runs their commands is a
//! [`api::Host`], which `command/scripting.rs` has. The other files are what scripts may use
//! (`api.rs`, `libraries/`), and how their values become replies (`convert.rs`).

pub(crate) mod api;
mod arguments;
mod convert;
pub(crate) mod decimal;
pub(crate) mod engine;
pub(crate) mod errors;
pub(crate) mod functions;
pub(crate) mod header;
mod libraries;
pub(crate) mod running;
pub(crate) mod sha1;
pub(crate) mod shelf;
