//! Redis' protocol, versions 2 and 3: nothing here knows of the store.

pub(crate) mod args;
pub(crate) mod inline;
pub(crate) mod parse;
pub(crate) mod reply;
