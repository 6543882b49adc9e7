//! Which customer: by number, or by last name through the index of names.

use super::{no_row, ordered};
use crate::access::{Access, Step};
use crate::keys;
use crate::layout::{Layout, NAME};

/// How a customer is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// By number.
    Number(u32),
    /// By last name: of all who have it, the one in the middle by first name.
    Name([u8; NAME]),
}

/// The customer's number.
///
/// # Errors
/// Those of [`Access::read`].
pub fn find(access: &mut dyn Access, layout: &Layout, (w, d): (u32, u32), who: &Who) -> Step<u32> {
    let last = match who {
        Who::Number(c) => return Ok(*c),
        Who::Name(last) => last,
    };
    let mut all = Vec::new();
    let from = keys::name(last, &[0; NAME], 0);
    let to = keys::name(last, &[u8::MAX; NAME], u32::MAX);
    let names = ordered(layout, w, d)?.names;
    names.scan(access, (&from, &to), &mut |key, _| {
        all.push(keys::second_of(key));
        true
    })?;
    let middle = all.len().div_ceil(2).saturating_sub(1);
    all.get(middle).copied().ok_or_else(no_row)
}
