//! New-Order (2.4): several items, some of them of other warehouses.

use super::ordered;
use super::parts::{Part, Take, Taken, at_owner};
use crate::access::{Access, Halt, Step, get, record, update};
use crate::keys;
use crate::layout::Layout;
use crate::random::ORIGINAL;
use crate::schema::{Customer, Item, NextOrder, Order, OrderLine, Place, Stock};
use crate::tally::Counts;
use zerocopy::IntoBytes;

/// What is ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewOrder {
    /// The customer's warehouse.
    pub w: u32,
    /// The customer's district.
    pub d: u32,
    /// The customer.
    pub c: u32,
    /// When.
    pub now: u64,
    /// The items.
    pub lines: Vec<Wanted>,
}

/// An item that is ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Which one. One that there is not makes the user take the order back.
    pub item: u32,
    /// Of which warehouse's stock.
    pub supply_w: u32,
    /// How many.
    pub quantity: u32,
}

/// What has become of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Placed {
    /// The order's number in its district.
    pub o_id: u32,
    /// What it costs, in cents.
    pub total: i64,
    /// Lines whose item and stock are of a brand, which a terminal would show.
    pub brands: usize,
}

/// Places the order.
///
/// # Errors
/// [`Halt::Rollback`] when there is no such item; those of [`Access`].
pub fn run(access: &mut dyn Access, layout: &Layout, order: &NewOrder) -> Step<Placed> {
    let (w, d) = (order.w, order.d);
    let warehouse: Place = get(access, layout.place(w))?;
    let district: Place = get(access, layout.district(w, d))?;
    let customer: Customer = get(access, layout.customer(w, d, order.c))?;
    let (lines, brands) = take_stock(access, layout, order)?;
    // All orders of a district go through this number: it is the last thing to be taken.
    let next: NextOrder = update(access, layout.next_order(w, d), |next: &mut NextOrder| {
        next.o_id += 1;
    })?;
    let o_id = next.o_id as u32;
    let of = ordered(layout, w, d)?;
    let key = keys::order(o_id);
    let is_local = order.lines.iter().all(|line| line.supply_w == w);
    let row = Order {
        entry_d: order.now,
        c_id: order.c,
        carrier: 0,
        ol_cnt: lines.len() as u32,
        all_local: u32::from(is_local),
    };
    of.orders.insert(access, &key, row.as_bytes())?;
    of.new_orders.insert(access, &key, &[])?;
    let of_customer = keys::customers_order(order.c, o_id);
    of.by_customer.insert(access, &of_customer, &[])?;
    for (nth, line) in (1..).zip(&lines) {
        let key = keys::pair(o_id, nth);
        of.lines.insert(access, &key, line.as_bytes())?;
    }
    access.note(Counts {
        orders: 1,
        ..Counts::NONE
    });
    let sum: i64 = lines.iter().map(|line| line.amount).sum();
    let (tax, less) = (warehouse.tax + district.tax, customer.discount);
    Ok(Placed {
        o_id,
        total: total(sum, i64::from(tax), i64::from(less)),
        brands,
    })
}

/// With taxes and discount, in parts of 10,000.
fn total(sum: i64, tax: i64, discount: i64) -> i64 {
    sum * (10_000 - discount) * (10_000 + tax) / 100_000_000
}

/// Takes all items out of stock, in the order of stocks, which is the same for all; the lines in
/// their own order, and of how many there is a brand.
fn take_stock(
    access: &mut dyn Access,
    layout: &Layout,
    order: &NewOrder,
) -> Step<(Vec<OrderLine>, usize)> {
    let mut by_stock: Vec<(usize, &Wanted)> = order.lines.iter().enumerate().collect();
    by_stock.sort_by_key(|(_, line)| (layout.home(line.supply_w), line.supply_w, line.item));
    let mut lines = Vec::with_capacity(by_stock.len());
    let (mut is_complete, mut brands) = (true, 0);
    for (nth, wanted) in by_stock {
        match layout.item(wanted.item) {
            None => is_complete = false,
            Some(cell) => {
                let item: Item = record(&access.constant(cell)?)?;
                let (line, is_brand) = line(access, layout, order, (wanted, &item))?;
                brands += usize::from(is_brand);
                lines.push((nth, line));
            }
        }
    }
    if !is_complete {
        return Err(Halt::Rollback);
    }
    lines.sort_by_key(|(nth, _)| *nth);
    Ok((lines.into_iter().map(|(_, line)| line).collect(), brands))
}

fn line(
    access: &mut dyn Access,
    layout: &Layout,
    order: &NewOrder,
    (wanted, item): (&Wanted, &Item),
) -> Step<(OrderLine, bool)> {
    let take = Take {
        supply_w: wanted.supply_w,
        item: wanted.item,
        quantity: wanted.quantity,
        d: order.d,
        is_remote: u32::from(wanted.supply_w != order.w),
    };
    let taken = at_owner(access, layout, &take)?;
    let line = OrderLine {
        delivery_d: 0,
        amount: i64::from(wanted.quantity) * item.price,
        i_id: wanted.item,
        supply_w: wanted.supply_w,
        quantity: wanted.quantity,
        dist_info: taken.dist_info,
        pad: [0; 4],
    };
    Ok((line, is_brand(&item.data) && taken.is_brand == 1))
}

impl Part for Take {
    const CODE: u32 = 1;
    type Answer = Taken;

    fn warehouse(&self) -> u32 {
        self.supply_w
    }

    fn run(&self, access: &mut dyn Access, layout: &Layout) -> Step<Taken> {
        let cell = layout.stock(self.supply_w, self.item);
        let before: Stock = update(access, cell, |stock: &mut Stock| {
            stock.quantity = left(stock.quantity, self.quantity as i32);
            stock.ytd += self.quantity;
            stock.order_cnt += 1;
            stock.remote_cnt += self.is_remote;
        })?;
        let district = self.d.saturating_sub(1) as usize;
        Ok(Taken {
            dist_info: before.dist.get(district).copied().unwrap_or_default(),
            is_brand: u32::from(is_brand(&before.data)),
        })
    }
}

/// What is left of a stock, which is filled up before it ends (2.4.2.2).
fn left(quantity: i32, wanted: i32) -> i32 {
    match quantity >= wanted + 10 {
        true => quantity - wanted,
        false => quantity - wanted + 91,
    }
}

fn is_brand(data: &[u8]) -> bool {
    data.windows(ORIGINAL.len()).any(|part| part == ORIGINAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_filled_up() {
        assert_eq!(left(20, 10), 10);
        assert_eq!(left(19, 10), 100);
    }

    #[test]
    fn taxes_and_discount() {
        assert_eq!(total(10_000, 1_000, 500), 10_450);
        assert!(is_brand(b"xORIGINALx") && !is_brand(b"ORIGINA"));
    }
}
