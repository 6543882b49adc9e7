//! Delivery (2.7): the oldest order of each district that is not delivered. Each district is a
//! transaction of its own, as the specification allows (2.7.2.2).

use super::ordered;
use crate::access::{Access, Step, broken, record, update};
use crate::keys;
use crate::layout::Layout;
use crate::schema::{Customer, Order, OrderLine};
use crate::tally::Counts;
use zerocopy::IntoBytes;

/// Who carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// Of which warehouse.
    pub w: u32,
    /// The carrier, from 1 to 10.
    pub carrier: u32,
    /// When.
    pub now: u64,
}

/// Delivers the oldest order of a district: its number, if there was one.
///
/// # Errors
/// Those of [`Access`].
pub fn run(
    access: &mut dyn Access,
    layout: &Layout,
    delivery: &Delivery,
    d: u32,
) -> Step<Option<u32>> {
    let (w, of) = (delivery.w, ordered(layout, delivery.w, d)?);
    let all = (keys::order(0), keys::order(u32::MAX));
    let Some((key, _)) = of.new_orders.first(access, (&all.0, &all.1))? else {
        return Ok(None);
    };
    if !of.new_orders.remove(access, &key)? {
        return Err(broken("a new order is gone"));
    }
    let o_id = keys::order_of(&key);
    let mut of_customer = None;
    let next = keys::order(o_id + 1);
    of.orders.update(access, (&key, &next), &mut |value| {
        let mut order: Order = record(value)?;
        order.carrier = delivery.carrier;
        of_customer = Some(order.c_id);
        value.copy_from_slice(order.as_bytes());
        Ok(())
    })?;
    let c = of_customer.ok_or_else(|| broken("an order is missing"))?;
    let mut sum = 0;
    let lines = (keys::pair(o_id, 0), keys::pair(o_id + 1, 0));
    of.lines
        .update(access, (&lines.0, &lines.1), &mut |value| {
            let mut line: OrderLine = record(value)?;
            line.delivery_d = delivery.now;
            sum += line.amount;
            value.copy_from_slice(line.as_bytes());
            Ok(())
        })?;
    update(
        access,
        layout.customer(w, d, c),
        |customer: &mut Customer| {
            customer.balance += sum;
            customer.delivery_cnt += 1;
        },
    )?;
    access.note(Counts {
        delivered: 1,
        ..Counts::NONE
    });
    Ok(Some(o_id))
}
