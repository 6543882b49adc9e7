//! Order-Status (2.6): a customer asks for the last order.

use super::customer::{self, Who};
use super::ordered;
use crate::access::{Access, Step, broken, get, record};
use crate::keys;
use crate::layout::Layout;
use crate::schema::{Customer, Order, OrderLine};

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrderStatus {
    /// The customer's warehouse.
    pub w: u32,
    /// The customer's district.
    pub d: u32,
    /// The customer.
    pub who: Who,
}

/// What is answered.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// The customer's balance.
    pub balance: i64,
    /// The order's number.
    pub o_id: u32,
    /// The order.
    pub order: Order,
    /// Its lines.
    pub lines: Vec<OrderLine>,
}

/// Looks; there is nothing where a customer has never ordered.
///
/// # Errors
/// Those of [`Access`].
pub fn run(access: &mut dyn Access, layout: &Layout, asked: &OrderStatus) -> Step<Option<Status>> {
    let (w, d) = (asked.w, asked.d);
    let c = customer::find(access, layout, (w, d), &asked.who)?;
    let customer: Customer = get(access, layout.customer(w, d, c))?;
    let of = ordered(layout, w, d)?;
    let (newest, next) = (keys::customers_order(c, u32::MAX), keys::pair(c + 1, 0));
    let Some((key, _)) = of.by_customer.first(access, (&newest, &next))? else {
        return Ok(None);
    };
    let o_id = !keys::second_of(&key);
    let row = of.orders.get(access, &keys::order(o_id))?;
    let order: Order = record(&row.ok_or_else(|| broken("an order is missing"))?)?;
    let mut lines = Vec::new();
    let all = (keys::pair(o_id, 0), keys::pair(o_id + 1, 0));
    of.lines.scan(access, (&all.0, &all.1), &mut |_, value| {
        lines.extend(record::<OrderLine>(value));
        true
    })?;
    if lines.len() != order.ol_cnt as usize {
        return Err(broken("a line of an order is missing"));
    }
    Ok(Some(Status {
        balance: customer.balance,
        o_id,
        order,
        lines,
    }))
}
