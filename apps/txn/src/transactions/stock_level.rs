//! Stock-Level (2.8): of how many items that were ordered lately there are few. The specification
//! asks of it that all it reads is committed, and no more: items are found in one transaction, and
//! stocks are looked at one by one.

use super::ordered;
use crate::access::{Access, Step, get, known, record};
use crate::keys;
use crate::layout::Layout;
use crate::schema::{NextOrder, OrderLine, Stock};
use std::collections::BTreeSet;

/// Orders that are looked at.
const LAST: u32 = 20;

/// Items of the last orders of a district.
///
/// # Errors
/// Those of [`Access`].
pub fn items(access: &mut dyn Access, layout: &Layout, (w, d): (u32, u32)) -> Step<Vec<u32>> {
    let next: NextOrder = get(access, layout.next_order(w, d))?;
    let next = next.o_id as u32;
    let (from, to) = (
        keys::pair(next.saturating_sub(LAST), 0),
        keys::pair(next, 0),
    );
    let mut items = BTreeSet::new();
    let lines = ordered(layout, w, d)?.lines;
    lines.scan(access, (&from, &to), &mut |_, value| {
        items.extend(record::<OrderLine>(value).map(|line| line.i_id));
        true
    })?;
    Ok(items.into_iter().collect())
}

/// Of how many of these there are fewer than `threshold`.
///
/// # Errors
/// Those of [`Access`].
pub fn few(
    access: &mut dyn Access,
    layout: &Layout,
    (w, threshold): (u32, u32),
    items: &[u32],
) -> Step<usize> {
    let mut few = 0;
    for item in items {
        let cell = known(layout.stock(w, *item))?;
        let stock: Stock = record(&access.committed(cell)?)?;
        few += usize::from(stock.quantity < threshold as i32);
    }
    Ok(few)
}
