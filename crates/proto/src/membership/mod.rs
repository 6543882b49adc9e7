//! Who belongs to the rack, as pure values: what everybody agrees on ([`View`]).

mod view;

pub use view::View;
